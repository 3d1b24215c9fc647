"""Key files on disk: private, written whole or not at all, and changed by one process at a time.

`keys.json` holds the masters and the generations of each sensor. Each time a device is provisioned, a generation is
opened for it, with a key derived from the newest master. Whoever has this file can unveil every reading of the site;
whoever has the export of one sensor can unveil that sensor's.
"""

import contextlib
import json
import os
import re
import shlex
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cloakwork._files import unique_object, write_durably
from cloakwork.errors import KeyFileError
from cloakwork.keys.keyring import DeviceKind, Generation, KeyRing, Master, SensorKeys, parse_keys, require_name
from cloakwork.sensor import keystream

if sys.platform != "win32":
    import fcntl

FIRST_SECOND = 1_767_225_600  # 2026-01-01 UTC, in Unix seconds; generations count minutes from here
LARGEST_FILE = 64_000_000
PRIVATE = 0o600
_MARK = re.compile(rb"([A-Za-z0-9_-]{1,64}) ([0-9]{1,8})")


def save_keys(keys: KeyRing | SensorKeys, path: str | Path) -> None:
    """Write a new key file or export, readable by its owner alone; refuses to replace a file."""
    file = Path(path)
    with locked(file) if isinstance(keys, KeyRing) else contextlib.nullcontext():
        if os.path.lexists(file):
            raise KeyFileError(f"{file} exists already: give another name, or move it away.", path=str(file))
        write_durably(file, keys.to_json().encode(), mode=PRIVATE)


def load_keys(path: str | Path) -> KeyRing:
    """Read and check `keys.json`; refuses a file that others can access, or that is damaged."""
    keys = load_unveiling_keys(path)
    if not isinstance(keys, KeyRing):
        raise KeyFileError(
            f"{path}: this file has the keys of one sensor. Give the site's own key file.",
            path=str(path),
            sensor=keys.sensor,
        )
    return keys


def load_unveiling_keys(path: str | Path) -> KeyRing | SensorKeys:
    """Read the keys of a site, or the export of one sensor."""
    content = _read_private(Path(path))
    try:
        return parse_keys(content)
    except KeyFileError as problem:
        raise KeyFileError(f"{path}: {problem}", path=str(path), **problem.values) from None


def open_generation(
    path: str | Path,
    sensor: str,
    plan_digest: str,
    kind: DeviceKind | str,
    now: float | None = None,
    *,
    site: str | None = None,
    others: Sequence[str] = (),
) -> Generation:
    """Open a generation that no device of this sensor ever had, with its key; it is on disk before this returns.

    Refuses the keys of another site than `site`, if that is given. `others` are sensors that the same device measures:
    they get the same generation and the same key.

    Notes
    -----
    The number is the minutes from 2026-01-01 UTC to `now` (Unix seconds), or larger: above every generation that the
    file or its lock knows for the sensor, and not below the start of the newest master. So it grows even if the clock
    goes back, or the file comes back from a backup. If the lock file comes back as well, the number grows once the
    clock has passed the last generation that was opened, usually a minute later.
    """

    def opened(ring: KeyRing, lock: "KeyLock", moment: int) -> KeyRing:
        if site is not None and site != ring.site:
            raise KeyFileError(
                f"{path}: these are keys of {ring.site}, not of {site}.", path=str(path), site=ring.site, expected=site
            )
        before = {name: ring.devices.get(require_name("sensor", name), ()) for name in (sensor, *others)}
        known = [generation.number for generations in before.values() for generation in generations]
        latest = max([*map(lock.latest, before), *known])
        number = max(latest + 1, ring.masters[-1].start, _minutes(moment))
        if number > keystream.LARGEST_GENERATION:
            raise KeyFileError(
                f"no generation is left for sensor {sensor}. Check the clock of this machine.",
                sensor=sensor,
                now=moment,
            )
        generation = Generation(number, plan_digest, DeviceKind(kind), moment, first=sensor if others else None)
        for name in before:
            lock.mark(name, number)
        return replace(ring, devices=ring.devices | {name: (*past, generation) for name, past in before.items()})

    if kind not in list(DeviceKind):
        raise KeyFileError(f"kind={kind!r}: give reading or bench.", key="kind", kind=kind)
    return _change(path, opened, now).keyed(sensor)[-1]


def rotate(path: str | Path, now: float | None = None) -> KeyRing:
    """Add a new master for every generation opened from now on; old masters stay, for old readings."""

    def rotated(ring: KeyRing, lock: "KeyLock", moment: int) -> KeyRing:
        numbers = [generation.number for generations in ring.devices.values() for generation in generations]
        start = max([ring.masters[-1].start, lock.latest(), *numbers]) + 1
        master = Master(max(start, _minutes(moment)), os.urandom(keystream.KEY_BYTES))
        return replace(ring, masters=(*ring.masters, master))

    return _change(path, rotated, now)


def revoke(path: str | Path, sensor: str, now: float | None = None) -> KeyRing:
    """Mark all generations of a sensor as revoked now; later readings of them are not unveiled.

    A device with several sensors is revoked for all of them.
    """

    def revoked(ring: KeyRing, _: "KeyLock", moment: int) -> KeyRing:
        devices = {(known.first or sensor, known.number) for known in ring.generations(sensor)}
        marked = {
            name: tuple(
                replace(known, revoked=moment)
                if known.revoked is None and (known.first or name, known.number) in devices
                else known
                for known in generations
            )
            for name, generations in ring.devices.items()
        }
        return replace(ring, devices=marked)

    return _change(path, revoked, now)


def _change(path: str | Path, change: Callable[[KeyRing, "KeyLock", int], KeyRing], now: float | None) -> KeyRing:
    """Read, change and write a key file under its lock."""
    file = Path(path)
    moment = int(time.time() if now is None else now)
    if moment < FIRST_SECOND:
        raise KeyFileError("the clock of this machine is before 2026, so it is wrong. Set it first.", now=moment)
    load_keys(file)  # refuse a wrong file before a lock file appears beside it
    with locked(file) as lock:
        changed = change(load_keys(file), lock, moment)
        write_durably(file, changed.to_json().encode(), mode=PRIVATE)
    return changed


def _minutes(moment: int) -> int:
    return (moment - FIRST_SECOND) // 60


class KeyLock:
    """The right to change one key file; remembers the largest generation that was ever opened for each sensor.

    The memory is in the lock file, so that a key file restored from a backup does not bring an old generation back. It
    has one line for each generation, is only ever appended to, and holds no secret.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._marks: dict[str, int] = {}
        for line in os.pread(handle, os.fstat(handle).st_size, 0).splitlines():
            match = _MARK.fullmatch(line)
            if match:
                sensor = match.group(1).decode()
                self._marks[sensor] = max(self._marks.get(sensor, -1), int(match.group(2)))

    def latest(self, sensor: str | None = None) -> int:
        """Return the largest generation that was opened for a sensor, or for any; -1 if none."""
        return max(self._marks.values(), default=-1) if sensor is None else self._marks.get(sensor, -1)

    def mark(self, sensor: str, generation: int) -> None:
        """Remember a generation durably, before it is used."""
        # the line starts fresh even after one that a power cut tore
        os.write(self._handle, f"\n{sensor} {generation}\n".encode())
        os.fsync(self._handle)
        self._marks[sensor] = max(self.latest(sensor), generation)


@contextmanager
def locked(path: Path) -> Iterator[KeyLock]:
    """Hold the lock of a key file, waiting for it if need be; it ends with the process, however that ends."""
    if sys.platform == "win32":
        raise KeyFileError(
            "keys can be changed on Linux or macOS only: this system has no lock that ends with its process."
        )
    target = path.resolve()
    lock_file = target.with_name(target.name + ".lock")
    handle = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, PRIVATE)
    with contextlib.closing(os.fdopen(handle, "rb", buffering=0)):
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield KeyLock(handle)


def _read_private(path: Path) -> dict[str, object]:
    """Return the JSON object in a file that only its owner can access. No error repeats any of the content."""

    def refusal(text: str, **values: object) -> KeyFileError:
        return KeyFileError(f"{path}: {text}", path=str(path), **values)

    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise refusal("not a plain file.")
            mode, content = stat.S_IMODE(status.st_mode), file.read(LARGEST_FILE + 1)
    except OSError as problem:
        raise refusal(f"{problem.strerror}. Create keys with: cloakwork keys new SITE", errno=problem.errno) from None
    if len(content) > LARGEST_FILE:
        raise refusal(f"larger than {LARGEST_FILE // 10**6} MB, so not a key file.", largest=LARGEST_FILE)
    parsed: dict[str, object] | None = None
    with contextlib.suppress(ValueError, RecursionError):
        parsed = json.loads(content.decode(), object_pairs_hook=unique_object)
    if parsed is not None and not (isinstance(parsed, dict) and parsed.keys() & {"masters", "generations"}):
        raise refusal("not a key file.")
    if os.name == "posix" and mode & 0o077:
        raise refusal(
            f"others can access this file (mode {mode:o}); only its owner may. Run: chmod 600 "
            f"{shlex.quote(str(path))}   If others may have read it, also run: cloakwork keys rotate",
            mode=mode,
        )
    if parsed is None:
        raise refusal("not valid JSON, or a name occurs twice. Restore the last whole copy from a backup.")
    return parsed
