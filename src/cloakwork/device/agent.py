"""The gateway agent: runs a provisioned folder on a computer and reads its sensor from a program or a file."""

import logging
import re
import shlex
import stat
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from cloakwork.errors import InputError, ReadingError
from cloakwork.mqtt import BrokerAddress, device_discovery
from cloakwork.sensor.board import UNSTATED, read_config, station
from cloakwork.sensor.device import Device
from cloakwork.sensor.errors import SensorError, StateError
from cloakwork.sensor.link import Link
from cloakwork.sensor.store import Folder

if TYPE_CHECKING:
    from cloakwork.sensor.measuring import Measured

NTP_PORT = 123
KEPT = 100_000  # messages that are kept while the broker is away
LONGEST_NUMBER = 64  # characters
MEASURED_WHEN_READ = "/sys", "/proc"
LOOK_AGAIN_S = 0.002
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
log = logging.getLogger(__name__)


class ReadingSource(Protocol):
    """Takes readings, each an exact fraction in the site's unit."""

    def read(self) -> "Measured":
        """Return numerator and denominator of one reading; raise an error if there is none."""


@dataclass(frozen=True)
class CommandReading:
    """Runs a program that prints one number, without a shell and for at most `timeout` seconds."""

    command: str
    timeout: float

    def read(self) -> "Measured":
        done = subprocess.run(  # noqa: S603 - the owner of the device names the program
            shlex.split(self.command), capture_output=True, timeout=self.timeout, check=True, stdin=subprocess.DEVNULL
        )
        return as_fraction(done.stdout)


@dataclass(frozen=True)
class FileReading:
    """Reads a file that holds one number, such as those that Linux offers for its sensors."""

    path: Path

    def read(self) -> "Measured":
        with self.path.open("rb") as file:
            return as_fraction(file.read(LONGEST_NUMBER + 16))

    def written_within(self, milliseconds: int) -> bool:
        """Whether the file was written in the last so many milliseconds, or the system measures when it is read."""
        found = self.path.stat()
        if not stat.S_ISREG(found.st_mode) or any(map(self.path.resolve().is_relative_to, MEASURED_WHEN_READ)):
            return True
        return 0 <= time.time_ns() - found.st_mtime_ns <= milliseconds * 1_000_000


@dataclass(frozen=True)
class ConstantReading:
    """Returns the same simulated reading every time, for trials: any clock is good enough for it."""

    value: float

    def read(self) -> "Measured":
        return self.value.as_integer_ratio()


def as_fraction(text: bytes) -> tuple[int, int]:
    r"""Parse a text that holds one decimal number, exactly; an error never repeats the text.

    >>> as_fraction(b"21.25\n")
    (85, 4)
    """
    try:
        number = text.decode("ascii").strip()
    except UnicodeDecodeError:
        number = ""
    if len(number) > LONGEST_NUMBER or not _NUMBER.fullmatch(number):
        raise ReadingError("the source returned something other than one decimal number.")
    return Fraction(number).as_integer_ratio()


class BackgroundLink(Link):
    """The device's own link, connecting in a thread, so that a silent broker makes the device miss no slot."""

    def __init__(self, broker: BrokerAddress) -> None:
        authority = None if broker.authority is None else str(broker.authority)
        super().__init__(broker.host, broker.port, broker.tls, authority)
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin to connect."""
        if self._thread is None:
            self._thread = Thread(target=super().start, daemon=True, name="cloakwork link")
            self._thread.start()

    def status(self) -> str:
        """Return `opening` while the connection is being made, then `open` or `closed`."""
        if self._thread is not None:
            if self._thread.is_alive():
                return "opening"
            self._thread = None
        return super().status()

    def close(self) -> None:
        """Close, after an attempt under way has ended."""
        if self._thread is not None:
            self._thread.join()
        super().close()


class Agent:
    """Runs one device: `folder` is a provisioned folder, `source` measures.

    `broker` replaces that of the folder.
    """

    def __init__(
        self,
        folder: Path,
        source: ReadingSource,
        *,
        broker: BrokerAddress | None = None,
        home_assistant: bool = False,
        note: Callable[[str], None] = log.info,
    ) -> None:
        self.folder = folder
        self._source = source
        self._broker = broker
        self._home_assistant = home_assistant
        self._note = note
        self._together: Device | None = None  # the device, if all sensors of its site measure together
        self._old = False

    def run(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Measure, cloak and send until `stopped` returns True. Only one process at a time may use a folder."""
        try:
            store = Folder(str(self.folder))
            config: dict[str, Any] = read_config(store)
            if config["resolution"] is None and not isinstance(self._source, ConstantReading):
                raise StateError(UNSTATED)
            broker = self._broker or _folder_broker(config, self.folder)
            device = station(
                store,
                self._read,
                transport=BackgroundLink(broker),
                simulated=isinstance(self._source, ConstantReading),
                note=self._note,
                kept=KEPT,
                extra=tuple(device_discovery(config)) if self._home_assistant else (),
                login=(broker.user, broker.password),
            )
            self._together = device.device if config["together"] and config["kind"] == "reading" else None
            try:
                while not stopped():
                    time.sleep(device.step() / 1000)
            finally:
                device.stop()
        except SensorError as problem:
            raise InputError(f"{self.folder}: {problem}", path=str(self.folder)) from None

    def _read(self) -> "Measured":
        """Measure. Where sensors measure together, a file must be written in this slot: the device waits for that."""
        if self._together is not None and isinstance(self._source, FileReading):
            self._await_file(self._source, self._together)
        return self._source.read()

    def _await_file(self, source: FileReading, device: Device) -> None:
        while not source.written_within(age := device.clock.now() % device.period):
            if age >= device.late:
                if not self._old:
                    self._note("the file was not written in time: its value is older than the slot, so it is not used")
                self._old = True
                raise ReadingError("the value in the file is older than the slot.")
            time.sleep(LOOK_AGAIN_S)
        self._old = False


def parse_time_server(address: str) -> dict[str, Any]:
    """Host and port of a time server, given as `host` or `host:port`."""
    parts = urlsplit(f"//{address}")
    try:
        port = NTP_PORT if parts.port is None else parts.port
    except ValueError:
        port = 0
    if not parts.hostname or not port or parts.netloc != address or "@" in address or address.endswith(":"):
        raise InputError(f"time server {address!r}: give host or host:port.", address=address)
    return {"host": parts.hostname, "port": port}


def _folder_broker(config: dict[str, Any], folder: Path) -> BrokerAddress:
    broker = config["broker"]
    authority = None if broker["ca"] is None else folder / broker["ca"]
    return BrokerAddress(broker["host"], broker["port"], broker["tls"], broker["user"], broker["password"], authority)
