"""Key files on disk: private, written whole or not at all, and changed by one process at a time.

Each time a device is provisioned, a generation is opened for it, with a random key. Whoever has `keys.json` can unveil
every reading of the site; whoever has the export of one sensor can unveil that sensor's.
"""

import contextlib
import json
import os
import shlex
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cloakwork._files import unique_object, write_durably
from cloakwork.errors import KeyFileError
from cloakwork.keys.key_ring import DeviceKind, Generation, KeyRing, require_name
from cloakwork.sensor import keystream

if sys.platform != "win32":
    import fcntl

FIRST_SECOND = 1_767_225_600  # 2026-01-01 UTC, in Unix seconds; generations count minutes from here
LARGEST_FILE = 64_000_000
PRIVATE = 0o600


def new_keys(site_name: str) -> KeyRing:
    """Return the keys of a site that has no device yet."""
    return KeyRing(require_name("site", site_name), {})


def save_keys(keys: KeyRing, path: str | Path) -> None:
    """Write a new key file or export, readable by its owner alone; refuses to replace a file."""
    file = Path(path)
    with contextlib.nullcontext() if keys.exported else _locked(file):
        if os.path.lexists(file):
            raise KeyFileError(f"{file} exists already: give another name, or move it away.", path=str(file))
        _write(file, keys)


def load_keys(path: str | Path, *, exported: bool = False) -> KeyRing:
    """Read and check a key file; refuses a file that others can access, or that is damaged.

    With `exported`, it may also be the export of one sensor.
    """
    content = _read_private(Path(path))
    try:
        keys = KeyRing.of(content)
    except KeyFileError as problem:
        raise KeyFileError(f"{path}: {problem}", path=str(path), **problem.values) from None
    if keys.exported and not exported:
        raise KeyFileError(
            f"{path}: this file has the keys of one sensor. Give the site's own key file.",
            path=str(path),
            sensor=keys.sensors[0],
        )
    return keys


def open_generation(
    path: str | Path,
    sensor: str,
    plan_digest: str,
    kind: DeviceKind | str,
    now: float | None = None,
    *,
    site: str | None = None,
) -> Generation:
    """Open a generation with a key that no other device has; it is on disk before this returns.

    Refuses the keys of another site than `site`, if that is given.

    Notes
    -----
    The number is the minutes from 2026-01-01 UTC to `now` (Unix seconds), or larger: above every generation of the
    sensor in the file. A copy of the file may open the same number, but never with the same key of 256 random bits.
    """
    if kind not in list(DeviceKind):
        raise KeyFileError(f"kind={kind!r}: give reading or bench.", key="kind", kind=kind)
    with _changing(path, now) as (keys, moment):
        if site is not None and site != keys.site:
            raise KeyFileError(
                f"{path}: these are keys of {keys.site}, not of {site}.", path=str(path), site=keys.site, expected=site
            )
        before = keys.devices.get(sensor, ())
        number = max([(moment - FIRST_SECOND) // 60, *(known.number + 1 for known in before)])
        if number > keystream.LARGEST_GENERATION:
            raise KeyFileError(
                f"no generation is left for sensor {sensor}. Check the clock of this machine.",
                sensor=sensor,
                now=moment,
            )
        key = os.urandom(keystream.KEY_BYTES)
        generation = Generation(number, plan_digest, DeviceKind(kind), moment, None, key)
        _write(Path(path), replace(keys, devices=keys.devices | {sensor: (*before, generation)}))
    return generation


def revoke(path: str | Path, sensor: str, now: float | None = None) -> KeyRing:
    """Mark all generations of a sensor as revoked now; later readings of them are not unveiled."""
    with _changing(path, now) as (keys, moment):
        marked = tuple(
            known if known.revoked is not None else replace(known, revoked=moment) for known in keys.generations(sensor)
        )
        changed = replace(keys, devices=keys.devices | {sensor: marked})
        _write(Path(path), changed)
    return changed


@contextmanager
def _changing(path: str | Path, now: float | None) -> Iterator[tuple[KeyRing, int]]:
    """The keys in a file and the time, for as long as no other process can change the file."""
    moment = int(time.time() if now is None else now)
    if moment < FIRST_SECOND:
        raise KeyFileError("the clock of this machine is before 2026, so it is wrong. Set it first.", now=moment)
    load_keys(path)  # refuse a wrong file before a lock file appears beside it
    with _locked(Path(path)):
        yield load_keys(path), moment


def _write(file: Path, keys: KeyRing) -> None:
    """Write keys that can be read again: wrong ones are refused while the old file is still there."""
    content = keys.as_dict()
    KeyRing.of(content)
    write_durably(file, (json.dumps(content, indent=1) + "\n").encode(), mode=PRIVATE)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a key file, waiting for it if need be; it ends with the process, however that ends."""
    if sys.platform == "win32":
        raise KeyFileError(
            "keys can be changed on Linux or macOS only: this system has no lock that ends with its process."
        )
    target = path.resolve()
    lock_file = target.with_name(target.name + ".lock")
    handle = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
    with contextlib.closing(os.fdopen(handle, "rb", buffering=0)):
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


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
    if parsed is not None and not (isinstance(parsed, dict) and "devices" in parsed):
        raise refusal("not a key file, or one of another version.")
    if os.name == "posix" and mode & 0o077:
        raise refusal(
            f"others can access this file (mode {mode:o}); only its owner may. Run: chmod 600 "
            f"{shlex.quote(str(path))}   If others may have read it, also provision every device again.",
            mode=mode,
        )
    if parsed is None:
        raise refusal("not a key file, or a damaged one. Give another, or restore the last whole copy from a backup.")
    return parsed
