"""On MicroPython: the connection that Node holds, and the arguments from the test."""

import json
import random

import _datagrams  # type: ignore[import-not-found]  # made by link.mjs
import _link  # type: ignore[import-not-found]  # made by link.mjs

with open("/harness/args.json") as _file:  # noqa: PTH123 - MicroPython has no pathlib
    args = json.load(_file)
_device = open("/dev/link", "r+b")  # noqa: PTH123, SIM115 - open for as long as the program runs
_packets = open("/dev/datagrams", "r+b")  # noqa: PTH123, SIM115


def connect(host: str, port: int, tls: bool = False, ca: str | None = None) -> None:
    """Start to open a connection and drop an earlier one. `ca` is the text of a certificate."""
    _link.connect(host, port, tls, ca)


def state() -> str:
    """`opening`, `open` or `closed`. It changes only between two calls of step()."""
    return str(_link.state())


def is_open() -> bool:
    """Whether bytes can be written."""
    return state() == "open"


def reason() -> str:
    """Why the connection failed, or an empty text."""
    return str(_link.reason())


def write(data: bytes) -> None:
    """Send; raises OSError if no connection is open."""
    if data:
        _device.write(data)


def read() -> bytes:
    """The bytes that have arrived since the last call, also after the connection has closed."""
    return _device.read()


def close() -> None:
    """Close once everything written has been sent."""
    _link.close()


class Transport:
    """The connection in the form that a station takes."""

    def __init__(self, host: str, port: int, tls: bool = False, ca: str | None = None) -> None:
        self._where = host, port, tls, ca

    def start(self) -> None:
        connect(*self._where)

    def status(self) -> str:
        return state()

    def reason(self) -> str:
        return reason()

    def read(self) -> bytes:
        return read()

    def write(self, data: bytes) -> None:
        if is_open():
            write(data)

    def close(self) -> None:
        close()


class Datagrams:
    """Datagrams to a time server, in the form that a station takes."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self._where = host, port

    def open(self) -> None:
        _datagrams.open(*self._where)

    def send(self, data: bytes) -> None:
        _packets.write(data)

    def receive(self) -> bytes:
        return _packets.read(128)

    def close(self) -> None: ...


class Entropy:
    """Stands for the module `os` of a board, which has a random generator; this build has none."""

    @staticmethod
    def urandom(size: int) -> bytes:
        return bytes([random.getrandbits(8) for _ in range(size)])
