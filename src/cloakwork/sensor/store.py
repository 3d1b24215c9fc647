"""Durable files: data is on the storage when a call returns."""

import os
import sys

from cloakwork.sensor.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import BufferedReader, BufferedWriter


class Folder:
    """The files of one folder, written durably."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self, name: str) -> bytes | None:
        """The content of a file, or None if there is no such file."""
        try:
            with open(self._named(name), "rb") as file:
                return file.read()
        except OSError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Overwrite a file. A power cut during the call may leave it damaged."""
        self._put(name, data, "wb")

    def append(self, name: str, data: bytes) -> None:
        """Add to the end of a file."""
        self._put(name, data, "ab")

    def replace(self, name: str, data: bytes) -> None:
        """Replace a file atomically."""
        self._put(name + ".new", data, "wb")
        os.rename(self._named(name + ".new"), self._named(name))

    def table(self, name: str) -> "BufferedReader":
        """Open a file for look-ups."""
        return open(self._named(name), "rb")

    def lock(self) -> "BufferedWriter | None":
        """Lock the folder until the result is closed: two processes with one counter would use noise twice."""
        try:
            import fcntl  # noqa: PLC0415 - boards do not have it, and run one program only
        except ImportError:
            if sys.implementation.name == "cpython":
                raise StateError("this system cannot lock files, so two processes could use noise twice.") from None
            return None
        file = open(self._named("lock"), "wb")  # noqa: SIM115 - stays open as long as the lock is held
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise StateError("another process already runs this device. Stop it first.") from None
        return file

    def _named(self, name: str) -> str:
        return self.path + "/" + name

    def _put(self, name: str, data: bytes, mode: str) -> None:
        with open(self._named(name), mode) as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)
            file.write(data)
            file.flush()
            if hasattr(os, "fsync"):
                os.fsync(file.fileno())
        if not hasattr(os, "fsync") and hasattr(os, "sync"):
            os.sync()
