"""The gateway agent: runs a provisioned folder on a computer and reads its sensor from a program or a file."""

import logging
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any, Protocol

from cloakwork.errors import InputError, ReadingError
from cloakwork.mqtt import BrokerAddress, sensor_discovery
from cloakwork.sensor.board import UNSTATED, read_config, station
from cloakwork.sensor.errors import SensorError, StateError
from cloakwork.sensor.link import Link
from cloakwork.sensor.store import Folder

KEPT = 100_000  # messages that are kept while the broker is away
LONGEST_NUMBER = 64  # characters
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
log = logging.getLogger(__name__)


class ReadingSource(Protocol):
    """Takes readings, each an exact fraction in the site's unit."""

    def read(self) -> tuple[int, int]:
        """Return numerator and denominator of one reading; raise an error if there is none."""


@dataclass(frozen=True)
class CommandReading:
    """Runs a program that prints one number, without a shell and for at most `timeout` seconds."""

    command: str
    timeout: float

    def read(self) -> tuple[int, int]:
        done = subprocess.run(  # noqa: S603 - the owner of the device names the program
            shlex.split(self.command), capture_output=True, timeout=self.timeout, check=True, stdin=subprocess.DEVNULL
        )
        return as_fraction(done.stdout)


@dataclass(frozen=True)
class FileReading:
    """Reads a file that holds one number, such as those that Linux offers for its sensors."""

    path: Path

    def read(self) -> tuple[int, int]:
        with self.path.open("rb") as file:
            return as_fraction(file.read(LONGEST_NUMBER + 16))


@dataclass(frozen=True)
class ConstantReading:
    """Returns the same simulated reading every time, for trials: any clock is good enough for it."""

    value: float

    def read(self) -> tuple[int, int]:
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
    """Runs one device: `folder` is a provisioned folder, `source` measures, `broker` replaces the folder's broker."""

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
                self._source.read,
                transport=BackgroundLink(broker),
                simulated=isinstance(self._source, ConstantReading),
                note=self._note,
                kept=KEPT,
                extra=(sensor_discovery(config),) if self._home_assistant else (),
                login=(broker.user, broker.password),
            )
            try:
                while not stopped():
                    time.sleep(device.step() / 1000)
            finally:
                device.stop()
        except SensorError as problem:
            raise InputError(f"{self.folder}: {problem}", path=str(self.folder)) from None


def _folder_broker(config: dict[str, Any], folder: Path) -> BrokerAddress:
    broker = config["broker"]
    authority = None if broker["ca"] is None else folder / broker["ca"]
    return BrokerAddress(broker["host"], broker["port"], broker["tls"], broker["user"], broker["password"], authority)
