"""A broker as an operator should have it, a collector in this process, and readings that tell themselves apart."""

import socket
import sqlite3
import struct
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cloakwork.collect.intake import Intake
from cloakwork.collect.message_problems import Reason
from cloakwork.collect.service import make_subscriber
from cloakwork.collect.storage import Reading, Store, open_store
from cloakwork.mqtt import BrokerAddress
from cloakwork.sensor.wire import write_reading
from tests.broker import Broker
from tests.collect.fake_store import lenient
from tests.waiting import PATIENCE

SENSORS = [f"s{k:02d}" for k in range(20)]
WATCHED = {"flat": lenient(*SENSORS)}
NOW = time.time_ns() // 1_000_000 + 3_600_000  # a little ahead: when its turn comes, nothing of it is late
Message = tuple[str, bytes]


def reading(number: int) -> Message:
    """The reading with this number; its value tells it from all others."""
    seq, sensor = divmod(number, len(SENSORS))
    return f"cloakwork/v1/flat/{SENSORS[sensor]}/reading", write_reading(seq, NOW + seq, 3 * number)


def publish(broker: Broker, messages: Iterable[Message], *, retain: bool = False) -> None:
    """Publish with QoS 1, a hundred at a time; returns when the broker has them all."""
    with socket.create_connection(("127.0.0.1", broker.port), timeout=PATIENCE) as link, link.makefile("rb") as answers:
        link.sendall(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01p")
        assert answers.read(4) == b"\x20\x02\x00\x00"
        rest = list(messages)
        while rest:
            part, rest = rest[:100], rest[100:]
            link.sendall(b"".join(packet(*message, k + 1, retain=retain) for k, message in enumerate(part)))
            assert len(answers.read(4 * len(part))) == 4 * len(part)


def packet(topic: str, payload: bytes, number: int, *, retain: bool = False) -> bytes:
    """A message with QoS 1."""
    body = struct.pack("!H", len(topic)) + topic.encode() + struct.pack("!H", number) + payload
    return struct.pack("!BBB", 0x33 if retain else 0x32, len(body) & 127 | 128, len(body) >> 7) + body


class Collector:
    """Broker to store, in this process; two may share a store."""

    def __init__(self, broker: Broker | BrokerAddress, path: Path, *, capacity: int = 10_000, **options: Any) -> None:
        self.store: Store = open_store(str(path), wait_s=0.3)
        self.new: list[Reading] = []
        self.intake = Intake(self.store, WATCHED, on_new=self.new.extend, capacity=capacity)
        reached = broker if isinstance(broker, BrokerAddress) else BrokerAddress(broker.host, broker.port)
        self.subscriber = make_subscriber(reached, self.intake, **options)

    def __enter__(self) -> "Collector":
        self.intake.start()
        self.subscriber.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.subscriber.stop()
        self.intake.stop()
        self.store.close()

    def connected(self) -> bool:
        return self.subscriber.state.connected

    def counted(self, reason: Reason) -> int:
        return self.intake.state.problems.get(reason.value, 0)


def stored(path: Path) -> dict[int, int]:
    """How often each number is in the store, read behind the store's back."""
    link = sqlite3.connect(path, timeout=60)
    try:
        rows = link.execute("SELECT sensor, seq, value FROM readings").fetchall()
    finally:
        link.close()
    found: dict[int, int] = {}
    for sensor, seq, value in rows:
        assert value == 3 * (seq * len(SENSORS) + SENSORS.index(sensor))
        found[value // 3] = found.get(value // 3, 0) + 1
    return found


def count(path: Path) -> int:
    link = sqlite3.connect(path, timeout=60)
    try:
        return int(link.execute("SELECT count(*) FROM readings").fetchone()[0])
    finally:
        link.close()
