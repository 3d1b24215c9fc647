"""A collector deployed for a test: a strict broker, devices, and a process that can be killed."""

import socket
import sqlite3
import ssl
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import psycopg

from cloakwork.collect.collected_site import CollectedSite, load_collected_site
from cloakwork.collect.storage import Reading, Role, open_store
from cloakwork.sensor.wire import topic, write_reading
from tests.broker import READER, Broker, running_broker
from tests.collect.collector_process import SITE, Collector, ForkServer, HttpClient, fork_server
from tests.collect.small_sites import site_file, values
from tests.collect.subscriber_kit import packet
from tests.ports import free_port
from tests.waiting import PATIENCE

PASSWORDS = {READER: "battery", "s1": "horse", "s2": "staple", "s3": "correct", "s4": "hooves"}
AHEAD = 80  # frames that a load sends before their results
AT_ONCE = 50  # messages before their acknowledgements are read


class Device:
    """Publishes with QoS 1 as one sensor and, like a real device, repeats what was not acknowledged."""

    def __init__(self, broker: Broker, sensor: str) -> None:
        self._broker = broker
        self._sensor = sensor
        self._link: ssl.SSLSocket | None = None
        self._context = ssl.create_default_context(cafile=str(broker.ca))

    def publish(self, readings: Iterable[Reading], seconds: float = PATIENCE) -> None:
        """Returns when the broker has them all."""
        rest = [(topic(row.site, row.sensor, "reading"), write_reading(*row[2:5])) for row in readings]
        end = time.monotonic() + seconds
        while rest:
            part = rest[:AT_ONCE]
            try:
                self._send(part)
                rest = rest[AT_ONCE:]
            except OSError:
                self.close()
                assert time.monotonic() < end, "the broker takes nothing"
                time.sleep(0.1)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _send(self, part: Sequence[tuple[str, bytes]]) -> None:
        link = self._link or self._connect()
        link.sendall(b"".join(packet(*message, number + 1) for number, message in enumerate(part)))
        _receive(link, 4 * len(part))

    def _connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self._broker.port), timeout=PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = self._context.wrap_socket(plain, server_hostname="localhost")
        texts = [f"device-{self._sensor}".encode(), self._sensor.encode(), PASSWORDS[self._sensor].encode()]
        body = b"\x00\x04MQTT\x04\xc2\x00\x00" + b"".join(struct.pack("!H", len(text)) + text for text in texts)
        link.sendall(bytes([0x10, len(body)]) + body)
        assert _receive(link, 4) == b"\x20\x02\x00\x00"
        self._link = link
        return link


def _receive(link: ssl.SSLSocket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = link.recv(size - len(found))
        if not part:
            raise ConnectionResetError
        found += part
    return found


@dataclass(frozen=True, eq=False)
class Deployment:
    """The parts of a deployment: s4 sends by HTTP, the others through the broker."""

    url: str
    site: Path
    broker: Broker
    fork_server: ForkServer
    collector: Collector
    device: HttpClient
    devices: dict[str, Device]

    @cached_property
    def watched(self) -> CollectedSite:
        watched = load_collected_site(self.site)
        assert isinstance(watched, CollectedSite)
        return watched

    @cached_property
    def _values(self) -> list[dict[str, int]]:
        return [values(self.watched, 0.3, seed=seed) for seed in range(16)]

    @cached_property
    def first(self) -> int:
        """The number of the first frame, two days ago: so many can be sent at once that are all of the past."""
        return int(time.time() * 1000) // self.watched.schedule.period_ms - 100_000

    def frames(self, start: int, stop: int, *sensors: str) -> list[Reading]:
        """The readings of some frames, of all sensors or of some; always the same for a number."""
        names = sensors or self.watched.ids
        period = self.watched.schedule.period_ms
        times = [(number, (self.first + number) * period) for number in range(start, stop)]
        return [
            Reading("hall", name, number, when, self._values[number % 16][name], 0)
            for number, when in times
            for name in names
        ]

    def publish(self, start: int, stop: int) -> None:
        """Frames of the sensors that use the broker."""
        for name, device in self.devices.items():
            device.publish(self.frames(start, stop, name))

    def stored(self) -> list[tuple[str, int, int, int]]:
        """Every row that the store has: sensor, seq, time, value."""
        with open_store(self.url) as store:
            return sorted(row[1:5] for row in store.readings.iterate("hall"))

    def count(self, table: str = "readings") -> int:
        """Count the rows of a table, without the store's own code."""
        query = f"SELECT count(*) FROM {table}"  # noqa: S608
        if self.url.startswith("sqlite"):
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=60)) as file:
                return int(file.execute(query).fetchone()[0])
        with psycopg.connect(self.url) as server:
            found = server.execute(query.encode()).fetchone()
            assert found is not None
            return int(found[0])

    def expected(self, stop: int, *sensors: str) -> list[tuple[str, int, int, int]]:
        return sorted(row[1:5] for row in self.frames(0, stop, *sensors))

    def left(self) -> int:
        """Frames that wait for a result from all their readings; 1000 stands for more."""
        with open_store(self.url) as store:
            return len(store.frames.waiting("hall", limit=1000))


@contextmanager
def deployment(
    folder: Path, url: str, *words: str, sensors: Sequence[str] = ("s1", "s2", "s3")
) -> Iterator[Deployment]:
    """A collector that is not started yet, with everything around it."""
    with ExitStack() as stack:
        broker = stack.enter_context(
            running_broker(folder / "broker", tls=True, users=PASSWORDS, site="hall", quiet=True)
        )
        site = site_file(folder, SITE)
        stack.callback(fork_server().set_clock, 0)
        password = folder / "password"
        password.write_text(PASSWORDS[READER])
        with open_store(url) as store:
            operator = store.tokens.create(Role.OPERATOR).secret
            device = store.tokens.create(Role.DEVICE, "hall", "s4").secret
        port = free_port()
        reach = ["--broker", f"mqtts://{READER}@localhost:{broker.port}", "--password-file", str(password)]
        reach += ["--ca", str(broker.ca), "--listen", f"127.0.0.1:{port}"]
        collector = Collector(
            fork_server(), [str(site), *reach, *words], folder / "log", HttpClient(port, operator), url
        )
        stack.callback(collector.kill)
        devices = {name: Device(broker, name) for name in sensors}
        for one in devices.values():
            stack.callback(one.close)
        yield Deployment(url, site, broker, fork_server(), collector, HttpClient(port, device), devices)


class Load:
    """Sends frames until stopped: through the broker in one thread, by HTTP in another.

    On a busy machine it stays AHEAD frames ahead of the results at most, so that a test does not grow with its load.
    """

    def __init__(self, deployment: Deployment, *, frames: int, every: float) -> None:
        self._deployment = deployment
        self._frames = frames
        self._every = every
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._publish, self._post)]
        self.published = self.posted = 0

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> int:
        """Returns how many frames were sent; all readings of theirs are acknowledged."""
        self._ending.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "readings are not acknowledged"
        assert self.published == self.posted
        return self.published

    def _publish(self) -> None:
        while not self._ending.is_set():
            if self.published < self._deployment.count("results") + AHEAD:
                stop = self.published + self._frames
                self._deployment.publish(self.published, stop)
                self.published = stop
            self._ending.wait(self._every)

    def _post(self) -> None:
        while self._threads[0].is_alive() or self.posted < self.published:
            stop = min(self.published, self.posted + 20)
            if stop > self.posted:
                self._deployment.device.insist(self._deployment.frames(self.posted, stop, "s4"))
                self.posted = stop
            else:
                self._ending.wait(0.01)
