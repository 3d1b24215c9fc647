"""Files that hold secrets: for their owner alone, whole or not there, and changed by one process at a time."""

import contextlib
import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cloakwork.errors import KeyFileError

if sys.platform != "win32":
    import fcntl

LARGEST_FILE = 64_000_000
PRIVATE = 0o600
_MARK = re.compile(rb"([A-Za-z0-9_-]{1,64}) ([0-9]{1,8})")


def read_private(path: Path) -> dict[str, object]:
    """The JSON object in a file; refused when anyone but its owner can get at it."""
    try:
        with path.open("rb") as file:
            told = os.fstat(file.fileno())
            if not stat.S_ISREG(told.st_mode):
                raise KeyFileError(f"{path}: not a plain file.")
            _refuse_shared(path, stat.S_IMODE(told.st_mode))
            content = file.read(LARGEST_FILE + 1)
    except OSError as problem:
        raise KeyFileError(
            f"{path}: {problem.strerror}. Make keys with: cloakwork keys new SITE --out {path}"
        ) from None
    if len(content) > LARGEST_FILE:
        raise KeyFileError(f"{path}: larger than {LARGEST_FILE // 10**6} MB; this is no file of keys.")
    return _parsed(path, content)


def _parsed(path: Path, content: bytes) -> dict[str, object]:
    """No message repeats what was read: a parser's own complaint may hold a piece of a key."""
    try:
        found = json.loads(content.decode(), object_pairs_hook=_once)
    except KeyFileError as problem:
        raise KeyFileError(f"{path}: {problem}") from None
    except (ValueError, RecursionError):
        raise KeyFileError(f"{path}: not valid JSON. Take the last whole copy from a backup.") from None
    if not isinstance(found, dict):
        raise KeyFileError(f"{path}: not a JSON object; this is no file of keys.")
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise KeyFileError("a name stands twice in one object. Take the last whole copy from a backup.")
    return dict(pairs)


def _refuse_shared(path: Path, mode: int) -> None:
    if os.name == "posix" and mode & 0o077:
        raise KeyFileError(
            f"{path}: others can get at this file (mode {mode:o}); only its owner may. Run: chmod 600 "
            f"{shlex.quote(str(path))}   If others may have read it, also run: cloakwork keys rotate",
            path=str(path),
            mode=mode,
        )


def write_private(path: Path, text: str, *, new: bool = False) -> None:
    """Put a file in place as a whole, for its owner alone, durably; `new` refuses to write over anything.

    When it returns, the file survives a power cut: the bytes are on the disk before the name points to them, and the
    name before the caller goes on.
    """
    if new and os.path.lexists(path):
        raise KeyFileError(f"{path} is there already: give another name, or move it away.", path=str(path))
    target = path.resolve()
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)  # what a power cut left behind
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Lock:
    """The right to change one file of keys; remembers the largest generation that was ever opened for each sensor.

    The memory stands in the lock's own file, so that a file of keys that comes back from a backup does not bring an
    old generation back with it. It is one line for each generation, only ever added to, and holds no secret.
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
        """The largest generation that was opened for a sensor, or for any; -1 if none."""
        return max(self._marks.values(), default=-1) if sensor is None else self._marks.get(sensor, -1)

    def mark(self, sensor: str, generation: int) -> None:
        """Remember a generation, durably, before anyone uses it."""
        # a line of its own even after one that a power cut tore
        os.write(self._handle, f"\n{sensor} {generation}\n".encode())
        os.fsync(self._handle)
        self._marks[sensor] = max(self.latest(sensor), generation)


@contextmanager
def locked(path: Path) -> Iterator[Lock]:
    """Hold the lock of a file of keys; waits for whoever has it. It ends with the process, however that ends."""
    if sys.platform == "win32":
        raise KeyFileError(
            "keys are changed on Linux or macOS only: this system has no lock that ends with its process."
        )
    target = path.resolve()
    place = target.with_name(target.name + ".lock")
    handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, PRIVATE)
    with contextlib.closing(os.fdopen(handle, "rb", buffering=0)):
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield Lock(handle)
