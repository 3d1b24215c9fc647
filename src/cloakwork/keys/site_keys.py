"""The keys of a site on the disk: made, handed out generation by generation, changed, and taken back.

`keys.json` holds the masters and which generations were opened for which sensor. A generation is opened each time a
device is provisioned and has a key of its own, made from the master in force then. Whoever has this file can unveil
every reading of the site; whoever has one sensor's export can unveil that sensor's.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cloakwork.errors import KeyFileError
from cloakwork.keys.key_file import Lock, locked, read_private, write_private
from cloakwork.keys.keyring import (
    DeviceKind,
    Generation,
    KeyRing,
    Master,
    SensorKeys,
    Unveiler,
    bench_name,
    checked_name,
    read_ring,
    wire_site,
)
from cloakwork.sensor import keystream

__all__ = [
    "FIRST_SECOND",
    "DeviceKind",
    "Generation",
    "KeyRing",
    "Master",
    "NewGeneration",
    "SensorKeys",
    "Unveiler",
    "bench_name",
    "export",
    "load_keys",
    "load_unveiling_keys",
    "new_keys",
    "open_generation",
    "revoke",
    "rotate",
    "save_export",
    "save_new_keys",
    "wire_site",
]

FIRST_SECOND = 1_767_225_600  # 2026-01-01 UTC, in Unix seconds; generations are counted in minutes from here


class NewGeneration(NamedTuple):
    """A new generation, and the key that its device starts with."""

    generation: int
    key: bytes

    def __repr__(self) -> str:
        return f"NewGeneration(generation={self.generation})"


def new_keys(site_name: str) -> KeyRing:
    """Keys for a site that has none: a master from the operating system's generator."""
    return KeyRing(site_name, (Master(0, os.urandom(keystream.KEY_BYTES)),), {})


def save_new_keys(ring: KeyRing, path: str | Path) -> None:
    """Write the first file of keys; never over another file."""
    with locked(Path(path)):
        write_private(Path(path), ring.to_json(), new=True)


def load_keys(path: str | Path) -> KeyRing:
    """Read and check `keys.json`; refused when others can get at it, or when anything in it is not as it should be."""
    found = load_unveiling_keys(path)
    if not isinstance(found, KeyRing):
        raise KeyFileError(f"{path}: this file has the keys of one sensor. Give the site's own file of keys.")
    return found


def load_unveiling_keys(path: str | Path) -> KeyRing | SensorKeys:
    """Like `load_keys`; the export of one sensor will do too."""
    given = read_private(Path(path))
    try:
        return read_ring(given)
    except KeyFileError as problem:
        raise KeyFileError(f"{path}: {problem}", path=str(path)) from None


def open_generation(
    path: str | Path,
    sensor: str,
    plan_digest: str,
    kind: DeviceKind | str,
    now: float | None = None,
    *,
    site: str | None = None,
) -> NewGeneration:
    """A generation that no device of this sensor ever had, and its key; on the disk before it returns.

    Keys of another site than `site` are refused, if that is given.

    Notes
    -----
    The number is the minutes from 2026-01-01 UTC to `now` (Unix seconds), or larger: above every generation that the
    file or its lock knows for the sensor, and not below the start of the newest master. So it grows when the clock goes
    back, and when the file comes back from a backup. When its lock comes back as well, it grows as soon as the clock
    is past the last generation that was opened, which is a minute later unless the clock or a hurry says otherwise.
    """

    def opened(ring: KeyRing, lock: Lock, moment: int) -> KeyRing:
        if site is not None and site != ring.site:
            raise KeyFileError(f"{path}: these are keys of {ring.site}, not of {site}.", site=site)
        before = ring.devices.get(checked_name("sensor", sensor), ())
        known = max([lock.latest(sensor), *(one.number for one in before)])
        number = max(known + 1, ring.masters[-1].start, _minutes(moment))
        if number > keystream.LARGEST_GENERATION:
            raise KeyFileError(f"no generation is left for sensor {sensor}. Check the clock of this machine.")
        one = Generation(number, plan_digest, DeviceKind(kind), moment)
        lock.mark(sensor, number)
        return replace(ring, devices=ring.devices | {sensor: (*before, one)})

    if kind not in list(DeviceKind):
        raise KeyFileError(f"kind={kind!r}: give reading or bench.", kind=kind)
    ring = _change(path, opened, now)
    number = ring.devices[sensor][-1].number
    return NewGeneration(number, ring.device_key(sensor, number))


def rotate(path: str | Path, now: float | None = None) -> KeyRing:
    """A fresh master for every generation that is opened from now on; the old ones are kept, for old readings."""

    def rotated(ring: KeyRing, lock: Lock, moment: int) -> KeyRing:
        known = [one.number for opened in ring.devices.values() for one in opened]
        start = max([ring.masters[-1].start, lock.latest(), *known]) + 1
        fresh = Master(max(start, _minutes(moment)), os.urandom(keystream.KEY_BYTES))
        return replace(ring, masters=(*ring.masters, fresh))

    return _change(path, rotated, now)


def revoke(path: str | Path, sensor: str, now: float | None = None) -> KeyRing:
    """Mark all generations of a sensor as revoked now: what they say later is not unveiled."""

    def revoked(ring: KeyRing, _: Lock, moment: int) -> KeyRing:
        opened = ring.generations(sensor)
        marked = tuple(one if one.revoked is not None else replace(one, revoked=moment) for one in opened)
        return replace(ring, devices=ring.devices | {sensor: marked})

    return _change(path, revoked, now)


def export(ring: KeyRing, sensor: str) -> SensorKeys:
    """What unveils one sensor, and nothing of the others."""
    ring.generations(sensor)  # refused when there is none
    return SensorKeys(ring.site, sensor, ring.unveilers(sensor))


def save_export(keys: SensorKeys, path: str | Path) -> None:
    """Write an export; never over another file."""
    write_private(Path(path), keys.to_json(), new=True)


def _change(path: str | Path, change: Callable[[KeyRing, Lock, int], KeyRing], now: float | None) -> KeyRing:
    """Read, change and write the file with nobody in between."""
    file = Path(path)
    moment = int(time.time() if now is None else now)
    if moment < FIRST_SECOND:
        raise KeyFileError("the clock of this machine is before 2026, so it is wrong. Set it first.")
    load_keys(file)  # a wrong file is refused before a lock is made beside it
    with locked(file) as lock:
        changed = change(load_keys(file), lock, moment)
        write_private(file, changed.to_json())
    return changed


def _minutes(moment: int) -> int:
    return (moment - FIRST_SECOND) // 60
