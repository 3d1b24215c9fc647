"""One connection to a broker, without a broker: what is acknowledged, when, and on which connection."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import paho.mqtt.client as paho
import pytest

from cloakwork.collect.connection import Bell, Connection


class Paper:
    """A client that keeps what it is told to acknowledge."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.acknowledged: list[int] = []
        self.read = 0
        self.on_message: Any = None

    def socket(self) -> socket.socket:
        return self.link

    def ack(self, number: int, _: int) -> None:
        self.acknowledged.append(number)

    def want_write(self) -> bool:
        return False

    def loop_read(self) -> None:
        self.read += 1

    def loop_misc(self) -> None:
        """Nothing to do."""

    def deliver(self, number: int, *, topic: bytes = b"cloakwork/v1/flat/s1/reading", qos: int = 1) -> None:
        found = paho.MQTTMessage(number, topic)
        found.payload, found.qos = b"", qos
        self.on_message(self, None, found)


class Slow:
    """An intake that is done when the test says so."""

    def __init__(self) -> None:
        self.has_room = True
        self.topics: list[str] = []
        self.done: list[Callable[[], None]] = []

    def offer(self, topic: str, _: bytes, done: Callable[[], None]) -> None:
        self.topics.append(topic)
        self.done.append(done)


class Line:
    """Connections, one after the other, over one socket to one intake."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.bell = Bell()
        self.intake = Slow()
        self.made: list[Connection] = []

    def connect(self) -> tuple[Connection, Paper]:
        client: Any = Paper(self.ours)
        intake: Any = self.intake
        self.made.append(Connection(client, intake, self.bell, []))
        return self.made[-1], client

    def close(self) -> None:
        for connection in self.made:
            connection.close()
        self.bell.close()
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def line() -> Iterator[Line]:
    found = Line()
    yield found
    found.close()


def test_an_acknowledgement_does_not_outlive_its_connection(line: Line) -> None:
    """The next connection may use the same number for another reading, which the broker would then forget."""
    first, before = line.connect()
    before.deliver(1)
    first.step(reading=False)
    second, after = line.connect()
    after.deliver(1)
    line.intake.done[0]()
    second.step(reading=False)
    assert (before.acknowledged, after.acknowledged) == ([], [])
    line.intake.done[1]()
    second.step(reading=False)
    assert (before.acknowledged, after.acknowledged) == ([], [1])


def test_acknowledgements_go_out_in_the_order_of_the_messages(line: Line) -> None:
    connection, client = line.connect()
    for number in (7, 8, 9):
        client.deliver(number)
    line.intake.done[1]()
    connection.step(reading=False)
    assert client.acknowledged == []
    line.intake.done[0]()
    connection.step(reading=False)
    assert client.acknowledged == [7, 8]


def test_what_needs_no_acknowledgement_gets_none(line: Line) -> None:
    connection, client = line.connect()
    client.deliver(0, qos=0)
    line.intake.done[0]()
    connection.step(reading=False)
    assert client.acknowledged == []


def test_a_topic_that_is_no_text_is_left_to_the_intake(line: Line) -> None:
    _, client = line.connect()
    client.deliver(1, topic=b"\xff\xfe")
    assert line.intake.topics == [""]


def test_nothing_is_read_for_a_full_intake(line: Line) -> None:
    connection, client = line.connect()
    line.theirs.send(b"something")
    line.intake.has_room = False
    connection.step()
    assert client.read == 0
    line.intake.has_room = True
    connection.step()
    assert client.read == 1


def test_who_is_done_wakes_the_connection(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloakwork.collect.connection.IDLE", 3600.0)
    connection, client = line.connect()
    client.deliver(1)
    worker = threading.Thread(target=connection.step, daemon=True)
    worker.start()
    line.intake.done[0]()
    worker.join(10)
    assert client.acknowledged == [1]


def test_rings_that_nobody_hears_do_not_stop_the_one_who_rings(line: Line) -> None:
    for _ in range(100_000):
        line.bell.ring()
    line.bell.hush()
    connection, client = line.connect()
    client.deliver(1)
    line.intake.done[0]()
    connection.step()
    assert client.acknowledged == [1]
