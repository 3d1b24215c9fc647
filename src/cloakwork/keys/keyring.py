"""What a file of keys says: masters, generations, and the key of each generation's device."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from cloakwork.errors import KeyFileError
from cloakwork.sensor import keystream

VERSION = 1
LONGEST_NAME = 64
_BENCH = "-bench"
_SHOWN = 10  # sensors that a message names
_HEX = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}")


class DeviceKind(StrEnum):
    """What a generation is for: readings of the site, or readings of a device that is being audited."""

    READING = "reading"
    BENCH = "bench"


def bench_name(site_name: str) -> str:
    """The name that a site's devices under audit use instead of the site's, on the wire and in their keys.

    >>> bench_name("flat"), len(bench_name(64 * "x"))
    ('flat-bench', 64)
    """
    name = site_name[: LONGEST_NAME - len(_BENCH)] + _BENCH
    return name if name != site_name else site_name[: -len(_BENCH)] + "_bench"


@dataclass(frozen=True)
class Master:
    """A secret that device keys are made from, for generations of `start` and above."""

    start: int
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _whole("from", self.start, keystream.LARGEST_GENERATION)
        _key(self.key)


@dataclass(frozen=True)
class Generation:
    """One provisioning of a device: under which plan, what for, when, and when it was revoked (Unix seconds)."""

    number: int
    plan: str
    kind: DeviceKind
    made: int
    revoked: int | None = None

    def __post_init__(self) -> None:
        _whole("generation", self.number, keystream.LARGEST_GENERATION)
        _digest(self.plan)
        if self.kind not in list(DeviceKind):
            raise KeyFileError("kind is not reading or bench.")
        object.__setattr__(self, "kind", DeviceKind(self.kind))
        _whole("made", self.made)
        if self.revoked is not None:
            _whole("revoked", self.revoked)


@dataclass(frozen=True)
class Unveiler:
    """What removes the noise of one generation of a sensor; readings after `revoked` (Unix seconds) are not its own."""

    generation: int
    plan: str
    kind: DeviceKind
    revoked: int | None
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        Generation(self.generation, self.plan, self.kind, 0, self.revoked)
        object.__setattr__(self, "kind", DeviceKind(self.kind))
        _key(self.key)


@dataclass(frozen=True)
class KeyRing:
    """All keys of a site: its masters, the newest last, and the generations of each sensor, in order."""

    site: str
    masters: tuple[Master, ...]
    devices: dict[str, tuple[Generation, ...]]

    def __post_init__(self) -> None:
        checked_name("site", self.site)
        starts = [master.start for master in self.masters]
        if not starts or starts[0] != 0 or not _grows(starts):
            raise KeyFileError("masters: the first is from generation 0, and each further one from a larger one.")
        for sensor, opened in self.devices.items():
            checked_name("sensor", sensor)
            if not opened or not _grows([one.number for one in opened]):
                raise KeyFileError(f"devices, {sensor}: each generation is larger than the one before.")

    @property
    def sensors(self) -> tuple[str, ...]:
        """Sensors that a generation was opened for."""
        return tuple(self.devices)

    def generations(self, sensor: str) -> tuple[Generation, ...]:
        """The generations of a sensor, in order; refused when there is none."""
        if sensor not in self.devices:
            known = ", ".join(self.sensors[:_SHOWN]) + (", ..." if len(self.sensors) > _SHOWN else "")
            raise KeyFileError(
                f"no device was provisioned for sensor {sensor[:LONGEST_NAME]!r}. Provisioned: {known or 'none yet'}.",
                sensor=sensor,
            )
        return self.devices[sensor]

    def device_key(self, sensor: str, generation: int) -> bytes:
        """The key that the device of a generation started with, from the master in force for that generation."""
        one = next((one for one in self.generations(sensor) if one.number == generation), None)
        if one is None:
            raise KeyFileError(f"generation {generation} was not opened for sensor {sensor}.", sensor=sensor)
        master = next(master for master in reversed(self.masters) if master.start <= generation)
        return keystream.device_key(master.key, wire_site(self.site, one.kind), sensor, generation)

    def unveilers(self, sensor: str) -> tuple[Unveiler, ...]:
        """What removes the noise of each generation of a sensor; nothing for a sensor that has none."""
        opened = self.devices.get(sensor, ())
        return tuple(Unveiler(g.number, g.plan, g.kind, g.revoked, self.device_key(sensor, g.number)) for g in opened)

    def in_use(self, sensor: str, generation: Generation) -> bool:
        """Whether it is the last of its kind for the sensor, and not revoked."""
        last = max(one.number for one in self.generations(sensor) if one.kind is generation.kind)
        return generation.number == last and generation.revoked is None

    def has_old_master(self, generation: Generation) -> bool:
        """Whether the master was changed since the generation was opened."""
        return generation.number < self.masters[-1].start

    def to_json(self) -> str:
        """The text of `keys.json`."""
        masters = [{"from": master.start, "key": master.key.hex()} for master in self.masters]
        devices = {
            sensor: [
                {"generation": g.number, "plan": g.plan, "kind": str(g.kind), "made": g.made, "revoked": g.revoked}
                for g in opened
            ]
            for sensor, opened in self.devices.items()
        }
        whole = {"v": VERSION, "site": self.site, "masters": masters, "devices": devices}
        return json.dumps(whole, indent=1) + "\n"


@dataclass(frozen=True)
class SensorKeys:
    """What unveils one sensor and no other: a device key for each of its generations."""

    site: str
    sensor: str
    keys: tuple[Unveiler, ...]

    def __post_init__(self) -> None:
        checked_name("site", self.site)
        checked_name("sensor", self.sensor)
        if not self.keys or not _grows([one.generation for one in self.keys]):
            raise KeyFileError("generations: each is larger than the one before, and there is at least one.")

    @property
    def sensors(self) -> tuple[str, ...]:
        """The sensor."""
        return (self.sensor,)

    def unveilers(self, sensor: str) -> tuple[Unveiler, ...]:
        """What removes the noise of each generation of a sensor; nothing for any other sensor."""
        return self.keys if sensor == self.sensor else ()

    def to_json(self) -> str:
        """The text of an export."""
        opened = [
            {"generation": u.generation, "plan": u.plan, "kind": str(u.kind), "revoked": u.revoked, "key": u.key.hex()}
            for u in self.keys
        ]
        whole = {"v": VERSION, "site": self.site, "sensor": self.sensor, "generations": opened}
        return json.dumps(whole, indent=1) + "\n"


def wire_site(site_name: str, kind: DeviceKind) -> str:
    """The site's name as devices of a kind use it, on the wire and in their keys."""
    return bench_name(site_name) if kind is DeviceKind.BENCH else site_name


def read_ring(given: dict[str, Any]) -> KeyRing | SensorKeys:
    """What a parsed file of keys says; a message names the place and what is allowed, never what stands there."""
    if type(given.get("v")) is not int or given["v"] != VERSION:
        raise KeyFileError(f"v: this release of Cloakwork reads version {VERSION}, and no other.")
    if "sensor" in given:
        _exactly("the file", given, ("v", "site", "sensor", "generations"))
        opened = _each("generations", given["generations"], ("generation", "plan", "kind", "revoked", "key"))
        unveilers = (Unveiler(u["generation"], u["plan"], u["kind"], u["revoked"], _from_hex(u["key"])) for u in opened)
        return SensorKeys(given["site"], given["sensor"], tuple(unveilers))
    _exactly("the file", given, ("v", "site", "masters", "devices"))
    masters = (Master(m["from"], _from_hex(m["key"])) for m in _each("masters", given["masters"], ("from", "key")))
    if not isinstance(given["devices"], dict):
        raise KeyFileError("devices: give an object with a list for each sensor.")
    fields = ("generation", "plan", "kind", "made", "revoked")
    devices = {
        sensor: tuple(
            Generation(g["generation"], g["plan"], g["kind"], g["made"], g["revoked"])
            for g in _each(f"devices, {checked_name('sensor', sensor)}", opened, fields)
        )
        for sensor, opened in given["devices"].items()
    }
    return KeyRing(given["site"], tuple(masters), devices)


def _each(where: str, given: Any, fields: tuple[str, ...]) -> Iterable[dict[str, Any]]:
    if not isinstance(given, list):
        raise KeyFileError(f"{where}: give a list.")
    for number, one in enumerate(given, start=1):
        if not isinstance(one, dict):
            raise KeyFileError(f"{where}, entry {number}: give an object.")
        _exactly(f"{where}, entry {number}", one, fields)
        yield one


def _exactly(where: str, given: dict[str, Any], fields: tuple[str, ...]) -> None:
    # an unknown name is not repeated: a key may have slipped into its place
    if unknown := len(given.keys() - set(fields)):
        raise KeyFileError(
            f"{where}: {unknown} unknown name{'s' if unknown > 1 else ''}; allowed are {', '.join(fields)}."
        )
    if missing := [name for name in fields if name not in given]:
        raise KeyFileError(f"{where}: {', '.join(missing)} missing.")


def _from_hex(given: Any) -> bytes:
    if not isinstance(given, str) or not _HEX.fullmatch(given):
        raise KeyFileError("a key is not 64 small hexadecimal digits.")
    return bytes.fromhex(given)


def checked_name(what: str, given: Any) -> str:
    """A site's or a sensor's name, refused unless it can stand in a topic."""
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        raise KeyFileError(f"{what}: a name has 1 to {LONGEST_NAME} letters, digits, - and _.")
    return given


def _whole(what: str, given: Any, most: int = 2**53) -> None:
    if type(given) is not int or not 0 <= given <= most:
        raise KeyFileError(f"{what}: give a whole number from 0 to {most}.")


def _digest(given: Any) -> None:
    if not isinstance(given, str) or not _HEX.fullmatch(given):
        raise KeyFileError("plan: the digest of a plan is 64 small hexadecimal digits.")


def _key(given: Any) -> None:
    if not isinstance(given, bytes) or len(given) != keystream.KEY_BYTES:
        raise KeyFileError(f"a key has {keystream.KEY_BYTES} bytes.")


def _grows(numbers: list[int]) -> bool:
    return all(one < after for one, after in pairwise(numbers))
