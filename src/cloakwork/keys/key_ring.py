"""The content of key files: each provisioning of each sensor, with the random key that its device started with."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, Self

from cloakwork.errors import KeyFileError
from cloakwork.sensor import keystream

VERSION = 2
LONGEST_NAME = 64
_BENCH = "-bench"
_LISTED = 10  # sensors that a message names
_HEX = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}")


class DeviceKind(StrEnum):
    """Purpose of a generation: readings of the site, or readings of a device under audit."""

    READING = "reading"
    BENCH = "bench"


def bench_name(site_name: str) -> str:
    """Return the name that devices under audit use instead of the site's, on the wire and in their keys.

    >>> bench_name("flat"), len(bench_name(64 * "x"))
    ('flat-bench', 64)
    """
    name = site_name[: LONGEST_NAME - len(_BENCH)] + _BENCH
    return name if name != site_name else site_name[: -len(_BENCH)] + "_bench"


def wire_site(site_name: str, kind: DeviceKind) -> str:
    """Return the site's name as devices of a kind use it, on the wire and in their keys."""
    return bench_name(site_name) if kind is DeviceKind.BENCH else site_name


def _is_whole(value: Any, largest: int = 2**53) -> bool:
    return type(value) is int and 0 <= value <= largest


def _is_hex(value: Any) -> bool:
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "generation": (
        lambda value: _is_whole(value, keystream.LARGEST_GENERATION),
        f"give a whole number from 0 to {keystream.LARGEST_GENERATION}",
    ),
    "plan": (_is_hex, "the digest of a plan has 64 lowercase hexadecimal digits"),
    "kind": (lambda value: value in list(DeviceKind), "give reading or bench"),
    "made": (_is_whole, "give Unix seconds"),
    "revoked": (lambda value: value is None or _is_whole(value), "give Unix seconds, or null"),
    "key": (_is_hex, "a key has 64 lowercase hexadecimal digits"),
}


@dataclass(frozen=True)
class Generation:
    """One provisioning of a device: its plan and purpose, when it was made and when it was revoked (Unix seconds).

    `key` is the key that the device started with, random like that of every other generation.
    """

    number: int
    plan: str
    kind: DeviceKind
    made: int
    revoked: int | None
    key: bytes = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields of a JSON entry."""
        values = (self.number, self.plan, str(self.kind), self.made, self.revoked, self.key.hex())
        return dict(zip(_RULES, values, strict=True))

    @classmethod
    def of(cls, where: str, entry: Any) -> Self:
        """Read a JSON entry; an error names the place and what is allowed, never what is there."""
        _require_names(where, entry, tuple(_RULES))
        for name, (holds, rule) in _RULES.items():
            _require(holds(entry[name]), f"{where}: {name}", rule, key=name)
        number, plan, kind, made, revoked, key = (entry[name] for name in _RULES)
        return cls(number, plan, DeviceKind(kind), made, revoked, bytes.fromhex(key))


@dataclass(frozen=True)
class KeyRing:
    """The keys of a site, or those of one of its sensors (`exported`): the generations of each sensor, in order."""

    site: str
    devices: dict[str, tuple[Generation, ...]]
    exported: bool = False

    @property
    def sensors(self) -> tuple[str, ...]:
        """Sensors that a device was provisioned for."""
        return tuple(self.devices)

    def generations(self, sensor: str) -> tuple[Generation, ...]:
        """Return the generations of a sensor, in order; refuses a sensor that has none."""
        if sensor not in self.devices:
            known = ", ".join(self.sensors[:_LISTED]) + (", ..." if len(self.sensors) > _LISTED else "")
            raise KeyFileError(
                f"no device was provisioned for sensor {sensor[:LONGEST_NAME]!r}. Provisioned: {known or 'none yet'}.",
                sensor=sensor,
            )
        return self.devices[sensor]

    def export(self, sensor: str) -> "KeyRing":
        """Return the keys of one sensor, with nothing about the others; refuses a sensor that has none."""
        return KeyRing(self.site, {sensor: self.generations(sensor)}, exported=True)

    def in_use(self, sensor: str, generation: Generation) -> bool:
        """Whether a generation is the last of its kind for the sensor, and not revoked."""
        last = max(known.number for known in self.generations(sensor) if known.kind is generation.kind)
        return generation.number == last and generation.revoked is None

    def as_dict(self) -> dict[str, Any]:
        """Return the content of a key file."""
        devices = {sensor: [known.as_dict() for known in generations] for sensor, generations in self.devices.items()}
        return {"v": VERSION, "site": self.site, "exported": self.exported, "devices": devices}

    @classmethod
    def of(cls, content: dict[str, Any]) -> Self:
        """Read the content of a key file; an error names the place and what is allowed, never what is there."""
        version = content.get("v")
        rule = f"this version reads {VERSION}. Unveil with the version that wrote the file, or create new keys"
        _require(type(version) is int and version == VERSION, "v", rule)
        _require_names("the file", content, ("v", "site", "exported", "devices"))
        _require(type(content["exported"]) is bool, "exported", "give true or false", key="exported")
        _require(isinstance(content["devices"], dict), "devices", "give an object with a list for each sensor")
        devices = {}
        for sensor, entries in content["devices"].items():
            require_name("sensor", sensor)
            _require(isinstance(entries, list) and bool(entries), f"devices, {sensor}", "give a list of generations")
            read = [Generation.of(f"devices, {sensor}, entry {k}", entry) for k, entry in enumerate(entries, start=1)]
            ordered = all(before.number < after.number for before, after in pairwise(read))
            _require(ordered, "devices", f"{sensor}: each generation is larger than the one before", key="devices")
            devices[sensor] = tuple(read)
        exported = content["exported"]
        _require(not exported or len(devices) == 1, "devices", "an export has one sensor")
        return cls(require_name("site", content["site"]), devices, exported)


def require_name(key: str, name: Any) -> str:
    """Return the name of a site or sensor; refuses one that cannot be part of a topic."""
    valid = isinstance(name, str) and _NAME.fullmatch(name) is not None
    _require(valid, key, f"a name has 1 to {LONGEST_NAME} letters, digits, - and _")
    return str(name)


def _require(holds: bool, where: str, rule: str, key: str | None = None) -> None:
    """Refuse the content of a key file unless a rule holds."""
    if not holds:
        raise KeyFileError(f"{where}: {rule}.", key=key or where)


def _require_names(where: str, entry: Any, names: tuple[str, ...]) -> None:
    """Refuse what is not an object with these names and no others."""
    _require(isinstance(entry, dict), where, "give an object")
    # an unknown name is counted, not repeated: a key may have slipped into its place
    unknown = len(entry.keys() - set(names))
    _require(unknown == 0, where, f"{unknown} unknown name{'s'[: unknown > 1]}; allowed are {', '.join(names)}")
    missing = [name for name in names if name not in entry]
    _require(not missing, where, f"{', '.join(missing)} missing")
