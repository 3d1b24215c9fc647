"""The content of key files: masters, generations, and the key that each generation's device starts with."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any, Self

from cloakwork.errors import KeyFileError
from cloakwork.sensor import keystream

VERSION = 1
LONGEST_NAME = 64
RING_NAMES = ("generation", "plan", "kind", "made", "revoked", "first")
OPTIONAL = ("first",)
EXPORT_NAMES = ("generation", "plan", "kind", "revoked", "key")
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


@dataclass(frozen=True)
class Master:
    """A secret from which the keys of all devices of generation `start` and above are derived."""

    start: int
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _require_whole("from", self.start, keystream.LARGEST_GENERATION)
        _require_key(self.key)


@dataclass(frozen=True)
class Generation:
    """One provisioning of a device: its plan and purpose, when it was made and when it was revoked (Unix seconds).

    `key` is the key that the device started with; empty if it has not been derived from a master. `first` is the first
    sensor of a device that has several: its key is that of all.
    """

    number: int
    plan: str
    kind: DeviceKind
    made: int = 0
    revoked: int | None = None
    key: bytes = field(default=b"", repr=False)
    first: str | None = None

    def __post_init__(self) -> None:
        _require_whole("generation", self.number, keystream.LARGEST_GENERATION)
        is_digest = isinstance(self.plan, str) and _HEX.fullmatch(self.plan) is not None
        _require(is_digest, "plan", "the digest of a plan has 64 lowercase hexadecimal digits")
        _require(self.kind in list(DeviceKind), "kind", "give reading or bench")
        object.__setattr__(self, "kind", DeviceKind(self.kind))
        _require_whole("made", self.made)
        if self.revoked is not None:
            _require_whole("revoked", self.revoked)
        if self.key:
            _require_key(self.key)
        if self.first is not None:
            require_name("first", self.first)

    def to_entry(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the fields of a JSON entry."""
        values = vars(self) | {"generation": self.number, "kind": str(self.kind), "key": self.key.hex()}
        return {name: values[name] for name in names if name not in OPTIONAL or values[name] is not None}

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> Self:
        """Read a JSON entry."""
        key = _from_hex(entry["key"]) if "key" in entry else b""
        return cls(
            entry["generation"],
            entry["plan"],
            entry["kind"],
            entry.get("made", 0),
            entry["revoked"],
            key,
            entry.get("first"),
        )


@dataclass(frozen=True)
class SensorKeys:
    """The keys that unveil one sensor and no other: its generations, each with its key."""

    site: str
    sensor: str
    keys: tuple[Generation, ...]

    def __post_init__(self) -> None:
        require_name("site", self.site)
        require_name("sensor", self.sensor)
        _require(_increases(self.keys), "generations", "give at least one, each larger than the one before")

    @property
    def sensors(self) -> tuple[str, ...]:
        """The sensor, alone."""
        return (self.sensor,)

    def keyed(self, sensor: str) -> tuple[Generation, ...]:
        """Return the generations of a sensor with their keys; none for any other sensor."""
        return self.keys if sensor == self.sensor else ()

    def to_json(self) -> str:
        """Return the text of an export."""
        generations = [generation.to_entry(EXPORT_NAMES) for generation in self.keys]
        return _json({"v": VERSION, "site": self.site, "sensor": self.sensor, "generations": generations})


@dataclass(frozen=True)
class KeyRing:
    """All keys of a site: its masters, the newest last, and the generations of each sensor, in order."""

    site: str
    masters: tuple[Master, ...]
    devices: dict[str, tuple[Generation, ...]]

    def __post_init__(self) -> None:
        require_name("site", self.site)
        starts = [master.start for master in self.masters]
        ordered = starts[:1] == [0] and all(before < after for before, after in pairwise(starts))
        _require(ordered, "masters", "the first starts at generation 0, and each further one later")
        for sensor, generations in self.devices.items():
            require_name("sensor", sensor)
            rule = f"{sensor}: give at least one generation, each larger than the one before"
            _require(_increases(generations), "devices", rule)

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

    def device_key(self, sensor: str, number: int) -> bytes:
        """Return the key that the device of a generation started with."""
        generation = next((known for known in self.generations(sensor) if known.number == number), None)
        if generation is None:
            raise KeyFileError(
                f"generation {number} was not opened for sensor {sensor}.", sensor=sensor, generation=number
            )
        master = next(master for master in reversed(self.masters) if master.start <= number)
        return keystream.device_key(
            master.key, wire_site(self.site, generation.kind), generation.first or sensor, number
        )

    def keyed(self, sensor: str) -> tuple[Generation, ...]:
        """Return the generations of a sensor with their keys; none for a sensor without generations."""
        return tuple(
            replace(known, made=0, key=self.device_key(sensor, known.number)) for known in self.devices.get(sensor, ())
        )

    def export(self, sensor: str) -> SensorKeys:
        """Return the keys of one sensor, with nothing about the others; refuses one that has none, or not alone."""
        if any(generation.first is not None for generation in self.generations(sensor)):
            raise KeyFileError(
                f"{sensor} shares its noise with other sensors, and its key unveils them all: none is for it alone.",
                sensor=sensor,
            )
        return SensorKeys(self.site, sensor, self.keyed(sensor))

    def in_use(self, sensor: str, generation: Generation) -> bool:
        """Whether a generation is the last of its kind for the sensor, and not revoked."""
        last = max(known.number for known in self.generations(sensor) if known.kind is generation.kind)
        return generation.number == last and generation.revoked is None

    def has_old_master(self, generation: Generation) -> bool:
        """Whether the master has changed since the generation was opened."""
        return generation.number < self.masters[-1].start

    def to_json(self) -> str:
        """Return the text of `keys.json`."""
        masters = [{"from": master.start, "key": master.key.hex()} for master in self.masters]
        devices = {
            sensor: [generation.to_entry(RING_NAMES) for generation in generations]
            for sensor, generations in self.devices.items()
        }
        return _json({"v": VERSION, "site": self.site, "masters": masters, "devices": devices})


def new_keys(site_name: str) -> KeyRing:
    """Create keys for a site that has none, with a master from the operating system's random generator."""
    return KeyRing(site_name, (Master(0, os.urandom(keystream.KEY_BYTES)),), {})


def parse_keys(content: dict[str, Any]) -> KeyRing | SensorKeys:
    """Read the content of a key file; an error names the place and what is allowed, never what is there."""
    _require(type(content.get("v")) is int and content["v"] == VERSION, "v", f"give {VERSION}; no other can be read")
    if "sensor" in content:
        _require_names("the file", content, ("v", "site", "sensor", "generations"))
        generations = map(Generation.from_entry, _entries("generations", content["generations"], EXPORT_NAMES))
        return SensorKeys(content["site"], content["sensor"], tuple(generations))
    _require_names("the file", content, ("v", "site", "masters", "devices"))
    entries = _entries("masters", content["masters"], ("from", "key"))
    masters = tuple(Master(entry["from"], _from_hex(entry["key"])) for entry in entries)
    _require(isinstance(content["devices"], dict), "devices", "give an object with a list for each sensor")
    devices = {
        require_name("sensor", sensor): tuple(
            map(Generation.from_entry, _entries(f"devices, {sensor}", generations, RING_NAMES))
        )
        for sensor, generations in content["devices"].items()
    }
    return KeyRing(content["site"], masters, devices)


def require_name(key: str, name: Any) -> str:
    """Return the name of a site or sensor; refuses one that cannot be part of a topic."""
    valid = isinstance(name, str) and _NAME.fullmatch(name) is not None
    _require(valid, key, f"a name has 1 to {LONGEST_NAME} letters, digits, - and _")
    return str(name)


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"


def _require(holds: bool, key: str, rule: str) -> None:
    if not holds:
        raise KeyFileError(f"{key}: {rule}.", key=key)


def _require_whole(key: str, number: Any, largest: int = 2**53) -> None:
    valid = type(number) is int and 0 <= number <= largest
    _require(valid, key, f"give a whole number from 0 to {largest}")


def _require_key(key: Any) -> None:
    valid = isinstance(key, bytes) and len(key) == keystream.KEY_BYTES
    _require(valid, "key", f"a key has {keystream.KEY_BYTES} bytes")


def _from_hex(text: Any) -> bytes:
    valid = isinstance(text, str) and _HEX.fullmatch(text) is not None
    _require(valid, "key", "a key has 64 lowercase hexadecimal digits")
    return bytes.fromhex(text)


def _entries(where: str, entries: Any, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    _require(isinstance(entries, list), where, "give a list")
    for number, entry in enumerate(entries, start=1):
        _require(isinstance(entry, dict), f"{where}, entry {number}", "give an object")
        _require_names(f"{where}, entry {number}", entry, names)
        yield entry


def _require_names(where: str, entry: dict[str, Any], names: tuple[str, ...]) -> None:
    # an unknown name is counted, not repeated: a key may have slipped into its place
    unknown = len(entry.keys() - set(names))
    _require(unknown == 0, where, f"{unknown} unknown name{'s'[: unknown > 1]}; allowed are {', '.join(names)}")
    missing = [name for name in names if name not in entry and name not in OPTIONAL]
    _require(not missing, where, f"{', '.join(missing)} missing")


def _increases(generations: tuple[Generation, ...]) -> bool:
    return bool(generations) and all(before.number < after.number for before, after in pairwise(generations))
