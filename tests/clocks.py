"""Clocks for tests: a time server (SNTP, from the text of RFC 4330), the same in virtual time, and boards there."""

import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from benchmarks.timing import Recorder
from cloakwork.privacy import noise_table
from cloakwork.sensor.device import Device
from cloakwork.sensor.outbox import Outbox
from cloakwork.sensor.sntp import NetworkTime
from cloakwork.sensor.station import Station
from cloakwork.sensor.wire import read_reading
from tests.devices import KEY, config, first_state
from tests.keystreams import keyed_noise

EPOCH = 2_208_988_800  # seconds from 1900 to 1970
Answer = Callable[[bytes, int], bytes | None]


def answer(
    request: bytes,
    received: int,
    *,
    answered: int | None = None,
    leap: int = 0,
    mode: int = 4,
    stratum: int = 2,
    root_delay: float = 0.0,
    root_dispersion: float = 0.0,
    originate: bytes | None = None,
) -> bytes:
    """The answer to a request; times are Unix microseconds, root delay and dispersion seconds."""
    fields = leap << 6 | 4 << 3 | mode, stratum, 6, -20, round(root_delay * 65536), round(root_dispersion * 65536), 0
    stamps = [struct.pack("!Q", 0), request[40:48] if originate is None else originate]
    stamps += [stamp(received), stamp(received if answered is None else answered)]
    return struct.pack("!BBBbiII", *fields) + b"".join(stamps)


def stamp(microseconds: int) -> bytes:
    """A time stamp: seconds since 1900 in 32 bits, which wrap, and a fraction."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return struct.pack("!II", (seconds + EPOCH) % 2**32, rest * 2**32 // 1_000_000)


@contextmanager
def running_time_server(respond: Answer = answer, *, elsewhere: bool = False) -> Iterator[int]:
    """A time server on a port of its own; `respond` gets a request and the Unix microseconds of its arrival.

    With `elsewhere` the answers come from another port.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, socket.socket(server.family, server.type) as other:
        server.bind(("127.0.0.1", 0))
        server.settimeout(0.05)
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                try:
                    request, client = server.recvfrom(1024)
                except TimeoutError:
                    continue
                data = respond(request, time.time_ns() // 1000)
                if data is not None:
                    (other if elsewhere else server).sendto(data, client)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            stop.set()
            thread.join()


class World:
    """Virtual true time in microseconds, with a server that knows it and a network that delays."""

    def __init__(self, start: int = 1_900_000_000_000_000) -> None:
        self.now = start
        self.stalled = 0  # microseconds for which all oscillators stood still

    def ticks(self, *, rate: float = 0.0, start: int = 0) -> Callable[[], int]:
        """The milliseconds that an oscillator counts which is fast by `rate`."""
        begin = self.now - self.stalled
        return lambda: start + int((self.now - self.stalled - begin) * (1 + rate)) // 1000


class VirtualServer:
    """A time server seen through a network: `delays` gives the microseconds there and back, or None if lost."""

    host = "time.example"

    def __init__(
        self, world: World, delays: Callable[[], tuple[int, int] | None], *, respond: Answer = answer, wrong: int = 0
    ) -> None:
        self.wrong = wrong  # microseconds by which the server's clock is fast
        self.respond = respond
        self.delays = delays
        self.asked: list[int] = []
        self._world = world
        self._coming: list[tuple[int, bytes]] = []

    def open(self) -> None:
        self._coming = []

    def close(self) -> None: ...

    def send(self, data: bytes) -> None:
        self.asked.append(self._world.now)
        delay = self.delays()
        reply = None if delay is None else self.respond(data, self._world.now + delay[0] + self.wrong)
        if delay is not None and reply is not None:
            self._coming.append((self._world.now + sum(delay), reply))

    def receive(self) -> bytes:
        here = [item for item in self._coming if item[0] <= self._world.now]
        if not here:
            return b""
        self._coming.remove(min(here))
        return min(here)[1]


class Memory:
    """Storage that costs no time."""

    path = ""

    def __init__(self, device_config: dict[str, Any]) -> None:
        self._files = first_state(device_config)

    def read(self, name: str) -> bytes | None:
        return self._files.get(name)

    def write(self, name: str, data: bytes) -> None:
        self._files[name] = data

    replace = write

    def append(self, name: str, data: bytes) -> None:
        self._files[name] = self._files.get(name, b"") + data

    def lock(self) -> None:
        return None

    def table(self, _: str) -> BytesIO:
        return BytesIO(noise_table(2.5).cuts)


@dataclass(frozen=True)
class Measurement:
    """When a reading was taken, in true microseconds, and the time of its frame in milliseconds."""

    began: int
    ended: int
    frame: int


class VirtualBoard:
    """A device in virtual time; measuring takes `takes` microseconds, and the program is late by up to `jitter`."""

    def __init__(
        self,
        world: World,
        server: VirtualServer | None,
        *,
        schedule: dict[str, int],
        rate: float = 0.0,
        takes: Callable[[], int] = lambda: 5000,
        jitter: int = 3000,
        unix: Callable[[], int] = lambda: 0,
        seed: int = 0,
    ) -> None:
        self.config = config(schedule=schedule)
        self.line = Recorder()
        self.notes: list[str] = []
        self._world, self._takes, self._jitter = world, takes, jitter
        self._rng = random.Random(seed)
        self._taken: list[tuple[int, int]] = []
        store: Any = Memory(self.config)
        ticks = world.ticks(rate=rate, start=self._rng.randrange(10**6))
        device = Device(self.config, store, ticks)
        allowed = self.config["schedule"]["clock_ms"]
        self.time = None if server is None else NetworkTime(server, allowed, self.notes.append, ticks=ticks)
        self.station = Station(
            device, Outbox(store, 64), self.line, self._read, unix=unix, network_time=self.time, note=self.notes.append
        )

    def run(self, seconds: float) -> None:
        end = self._world.now + round(1e6 * seconds)
        while self._world.now < end:
            wait = self.station.step()
            self._world.now += 1000 * wait + self._rng.randrange(100, self._jitter)

    def measurements(self) -> list[Measurement]:
        """Those that were sent: a late reading is replaced by a constant."""
        stamps = [read_reading(payload) for payload in self.line.payloads]
        names = self.config["site"], self.config["sensor"]
        noise = keyed_noise(noise_table(2.5), KEY, *names, [seq for seq, _, _ in stamps])
        found = zip(self._taken, stamps, noise, strict=False)
        return [Measurement(*taken, frame) for taken, (_, frame, value), drawn in found if value - drawn == 85]

    def _read(self) -> tuple[int, int]:
        began = self._world.now
        self._world.now += self._takes()
        self._taken.append((began, self._world.now))
        return 85, 4
