"""What tests of the collector as a process share: a strict broker, devices, and processes that can be killed."""

import atexit
import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from tests.broker import READER, Broker
from tests.collect.live_kit import site_file, values
from tests.parts import ROOT

from cloakwork.collect.place import Watched, watch
from cloakwork.collect.records import Reading, Role
from cloakwork.collect.store import open_store
from cloakwork.sensor.wire import topic, write_reading

SITE = """name = "hall"
sensors = 4
baseline = 20.0
[physics]
kind = "line"
places = 12
T = 0.01
[sources]
kind = "pulse"
max_count = 2
[privacy]
epsilon = 8.0
delta = 1e-3
alpha = 0.05
window = "1min"
readings_per_window = 30
"""
PASSWORDS = {READER: "battery", "s1": "horse", "s2": "staple", "s3": "correct", "s4": "hooves"}
AT_ONCE = 50  # messages before their acknowledgements are read
COMMAND = "from cloakwork.cli import main; main()"


def until(condition: Callable[[], object], seconds: float = 60.0, why: str = "waited in vain") -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, why
        time.sleep(0.02)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def strict_broker(folder: Path, site: str = "hall") -> Iterator[Broker]:
    """As an operator should have it: TLS, passwords, rules, and it keeps everything for a collector that is away."""
    broker = Broker(folder, tls=True, users=PASSWORDS, site=site)
    settings = folder / "mosquitto.conf"
    told = [line for line in settings.read_text().splitlines() if not line.startswith(("autosave", "log_type"))]
    told += ["log_type error", "max_queued_messages 100000000", "max_inflight_messages 1000", "set_tcp_nodelay true"]
    settings.write_text("\n".join([*told, ""]))
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


class Device:
    """Publishes with QoS 1 in the name of one sensor. As a real one does, it sends again what was not acknowledged."""

    def __init__(self, broker: Broker, sensor: str) -> None:
        self._broker = broker
        self._sensor = sensor
        self._link: ssl.SSLSocket | None = None
        self._context = ssl.create_default_context(cafile=str(broker.ca))

    def publish(self, readings: Iterable[Reading], seconds: float = 60.0) -> None:
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
        link.sendall(b"".join(_packet(*message, number + 1) for number, message in enumerate(part)))
        _receive(link, 4 * len(part))

    def _connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self._broker.port), timeout=20)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = self._context.wrap_socket(plain, server_hostname="localhost")
        texts = [f"device-{self._sensor}".encode(), self._sensor.encode(), PASSWORDS[self._sensor].encode()]
        body = b"\x00\x04MQTT\x04\xc2\x00\x00" + b"".join(struct.pack("!H", len(text)) + text for text in texts)
        link.sendall(bytes([0x10, len(body)]) + body)
        assert _receive(link, 4) == b"\x20\x02\x00\x00"
        self._link = link
        return link


def _packet(name: str, payload: bytes, number: int) -> bytes:
    body = struct.pack("!H", len(name)) + name.encode() + struct.pack("!H", number) + payload
    return struct.pack("!BBB", 0x32, len(body) & 127 | 128, len(body) >> 7) + body


def _receive(link: ssl.SSLSocket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = link.recv(size - len(found))
        if not part:
            raise ConnectionResetError
        found += part
    return found


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True, eq=False)
class Door:
    """The HTTP side of a collector, for whoever has a token."""

    port: int
    secret: str
    timeout: float = 30.0

    def ask(self, method: str, path: str, body: object = None, *, cookie: str | None = None) -> Answer:
        """One request, with the token or with a cookie; raises `OSError` or `HTTPException` where nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        try:
            known = {"Authorization": f"Bearer {self.secret}"} if cookie is None else {"Cookie": cookie}
            headers = {**known, "Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, told, json.loads(answer.read() or b"null"))
        finally:
            connection.close()

    def post(self, readings: Sequence[Reading]) -> Answer:
        return self.ask("POST", "/v1/readings", [as_json(row) for row in readings])

    def health(self, site: str = "hall") -> Any:
        """What the collector says of itself; None where nobody answers."""
        try:
            answer = self.ask("GET", f"/v1/sites/{site}/health")
        except (OSError, http.client.HTTPException):
            return None
        return answer.body if answer.status == 200 else None

    def insist(self, readings: Sequence[Reading], seconds: float = 60.0) -> None:
        """Post until it is acknowledged, as a device does."""
        end = time.monotonic() + seconds
        while True:
            with suppress(OSError, http.client.HTTPException):
                if self.post(readings).status == 200:
                    return
            assert time.monotonic() < end, "nothing is taken by HTTP"
            time.sleep(0.05)


def as_json(row: Reading) -> dict[str, object]:
    return {"v": 1, "site": row.site, "sensor": row.sensor, "seq": row.seq, "time": row.time, "value": row.value}


@cache
def nursery() -> "Nursery":
    """One for all tests, because it takes seconds to load everything."""
    made = Nursery(Path(tempfile.mkdtemp(prefix="cloakwork-nursery-")))
    atexit.register(made.close)
    return made


class Nursery:
    """Forks collectors; the clock of all of them can be set wrong."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clock = folder / "clock"
        self._clock.write_bytes(bytes(8))
        site = site_file(folder, SITE)
        command = [sys.executable, "-m", "tests.collect.nursery", str(site), str(self._clock)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
        )
        assert self._line() == "ready"

    def fork(self, words: Sequence[str], log: Path, store: str) -> int:
        """The number of a new process that runs `cloakwork` with these words."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"words": list(words), "log": str(log), "store": store}) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def set_clock(self, wrong_by_s: float) -> None:
        """From now on, the wall clock of every collector says so much more than the time."""
        with self._clock.open("r+b") as file:
            file.write(struct.pack("<q", round(1000 * wrong_by_s)))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the nursery has died"
        return line


class Collector:
    """A process that runs `cloakwork collect`, again and again if need be."""

    def __init__(self, nursery: Nursery, words: Sequence[str], log: Path, door: Door, store: str) -> None:
        self._nursery = nursery
        self._words = ["collect", *words]
        self._log = log
        self._store = store
        self.door = door
        self.number = 0

    def beside(self, name: str) -> "Collector":
        """Another one, with a name and a port of its own."""
        port = free_port()
        words = [f"127.0.0.1:{port}" if before == "--listen" else word for before, word in pairwise(self._words)]
        return Collector(
            self._nursery,
            [*words, "--name", name],
            self._log.with_name(f"log-{name}"),
            replace(self.door, port=port),
            self._store,
        )

    def start(self, *, fresh: bool = False) -> None:
        """Begin a life: forked, or `fresh`, as a person starts it."""
        assert not self.alive
        if fresh:
            with self._log.open("ab") as log:
                command = [sys.executable, "-c", COMMAND, *self._words]
                self._own = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "CLOAKWORK_STORE": self._store},
                )
            self.number = self._own.pid
        else:
            self.number = self._nursery.fork(self._words, self._log, self._store)

    @property
    def alive(self) -> bool:
        if self.number == 0:
            return False
        if "_own" in vars(self) and self._own.pid == self.number:
            return self._own.poll() is None
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return False
        return True

    @property
    def log(self) -> str:
        """All that it has said, in all lives."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""

    def kill(self, by: signal.Signals = signal.SIGKILL, seconds: float = 40.0) -> None:
        """End this life, and wait for the end."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.number, by)
            until(lambda: not self.alive, seconds, f"it does not end:\n{self.log}")
        self.number = 0

    def wait_ready(self, seconds: float = 60.0) -> Any:
        """Until it answers and has its broker; what it then says of itself."""
        told: list[Any] = [None]

        def ready() -> bool:
            assert self.alive, f"it has ended:\n{self.log}"
            told[0] = self.door.health()
            return told[0] is not None and told[0]["broker"]["state"] in {"ok", "none"}

        until(ready, seconds, "it does not get ready")
        return told[0]


@dataclass(frozen=True, eq=False)
class Ground:
    """All that a test of survival stands on: s4 sends by HTTP, the others through the broker."""

    url: str
    site: Path
    broker: Broker
    nursery: Nursery
    collector: Collector
    device: Door
    devices: dict[str, Device]

    @cached_property
    def watched(self) -> Watched:
        return watch(self.site)

    @cached_property
    def _said(self) -> list[dict[str, int]]:
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
            Reading("hall", name, number, when, self._said[number % 16][name], 0)
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
            return sorted(row[1:5] for row in store.iterate("hall"))

    def count(self, table: str = "readings") -> int:
        """How many rows a table has, read behind the store's back."""
        query = f"SELECT count(*) FROM {table}"  # noqa: S608
        if self.url.startswith("sqlite"):
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=20)) as file:
                return int(file.execute(query).fetchone()[0])
        with psycopg.connect(self.url) as server:
            found = server.execute(query.encode()).fetchone()
            assert found is not None
            return int(found[0])

    def expected(self, stop: int, *sensors: str) -> list[tuple[str, int, int, int]]:
        return sorted(row[1:5] for row in self.frames(0, stop, *sensors))

    def left(self) -> int:
        """Frames that have no result from all their sensors yet; 1000 stands for more."""
        with open_store(self.url) as store:
            return len(store.unsolved("hall", limit=1000)) + len(store.outgrown("hall", limit=1000))


@contextmanager
def ground(folder: Path, url: str, *words: str, sensors: Sequence[str] = ("s1", "s2", "s3")) -> Iterator[Ground]:
    """A collector that is not started yet, with everything around it."""
    with ExitStack() as stack:
        broker = stack.enter_context(strict_broker(folder / "broker"))
        site = site_file(folder, SITE)
        stack.callback(nursery().set_clock, 0)
        password = folder / "password"
        password.write_text(PASSWORDS[READER])
        with open_store(url) as store:
            operator = store.new_token(Role.OPERATOR).secret
            device = store.new_token(Role.DEVICE, "hall", "s4").secret
        port = free_port()
        reach = ["--broker", f"mqtts://{READER}@localhost:{broker.port}", "--password-file", str(password)]
        reach += ["--ca", str(broker.ca), "--listen", f"127.0.0.1:{port}"]
        collector = Collector(nursery(), [str(site), *reach, *words], folder / "log", Door(port, operator), url)
        stack.callback(collector.kill)
        devices = {name: Device(broker, name) for name in sensors}
        for one in devices.values():
            stack.callback(one.close)
        yield Ground(url, site, broker, nursery(), collector, Door(port, device), devices)


class Load:
    """Sends frames until told to stop: through the broker in one thread, by HTTP in another."""

    def __init__(self, ground: Ground, *, frames: int, every: float) -> None:
        self._ground = ground
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
            thread.join(120)
            assert not thread.is_alive(), "readings are not acknowledged"
        assert self.published == self.posted
        return self.published

    def _publish(self) -> None:
        while not self._ending.is_set():
            stop = self.published + self._frames
            self._ground.publish(self.published, stop)
            self.published = stop
            self._ending.wait(self._every)

    def _post(self) -> None:
        while not self._ending.is_set() or self.posted < self.published:
            stop = min(self.published, self.posted + 20)
            if stop > self.posted:
                self._ground.device.insist(self._ground.frames(self.posted, stop, "s4"), 120)
                self.posted = stop
            else:
                self._ending.wait(0.01)
