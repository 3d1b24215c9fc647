"""One connection to a broker, without a broker: what is acknowledged, when, and on which connection."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import paho.mqtt.client as paho
import pytest

from cloakwork.mqtt import Connection, MqttMessage, MqttSession
from cloakwork.mqtt.connection import Waker
from tests.waiting import PATIENCE


class FakeClient:
    """A client that records acknowledgements."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.acknowledged: list[int] = []
        self.reads = 0
        self.on_message: Any = None

    def socket(self) -> socket.socket:
        return self.link

    def ack(self, number: int, _: int) -> None:
        self.acknowledged.append(number)

    def want_write(self) -> bool:
        return False

    def loop_read(self) -> None:
        self.reads += 1

    def loop_misc(self) -> None:
        """Nothing to do."""

    def deliver(self, number: int, *, topic: bytes = b"cloakwork/v1/flat/s1/reading", qos: int = 1) -> None:
        message = paho.MQTTMessage(number, topic)
        message.payload, message.qos = b"", qos
        self.on_message(self, None, message)


class Line:
    """Connections, one after the other, over one socket to one receiver."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.waker = Waker()
        self.room = True
        self.messages: list[MqttMessage] = []
        self.connections: list[Connection] = []

    def connect(self) -> tuple[Connection, FakeClient]:
        client: Any = FakeClient(self.ours)
        session = MqttSession(on_message=self.messages.append, has_room=lambda: self.room)
        connection = Connection(client, self.waker, session)
        self.connections.append(connection)
        return connection, client

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        self.waker.close()
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.close()


def test_an_acknowledgement_does_not_outlive_its_connection(line: Line) -> None:
    """The next connection may use the same number for another reading, which the broker would then forget."""
    first, before = line.connect()
    before.deliver(1)
    first.step(reading=False)
    second, after = line.connect()
    after.deliver(1)
    line.messages[0].acknowledge()
    second.step(reading=False)
    assert (before.acknowledged, after.acknowledged) == ([], [])
    line.messages[1].acknowledge()
    second.step(reading=False)
    assert (before.acknowledged, after.acknowledged) == ([], [1])


def test_acknowledgements_go_out_in_the_order_of_the_messages(line: Line) -> None:
    connection, client = line.connect()
    for number in (7, 8, 9):
        client.deliver(number)
    line.messages[1].acknowledge()
    connection.step(reading=False)
    assert client.acknowledged == []
    line.messages[0].acknowledge()
    connection.step(reading=False)
    assert client.acknowledged == [7, 8]


def test_a_topic_that_is_not_text_is_delivered_as_an_empty_one(line: Line) -> None:
    _, client = line.connect()
    client.deliver(1, topic=b"\xff\xfe")
    assert [message.topic for message in line.messages] == [""]


def test_nothing_is_read_for_a_full_receiver(line: Line) -> None:
    connection, client = line.connect()
    line.theirs.send(b"something")
    line.room = False
    connection.step()
    assert client.reads == 0
    line.room = True
    connection.step()
    assert client.reads == 1


def test_an_acknowledgement_wakes_the_connection(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloakwork.mqtt.connection.IDLE", 3600.0)
    connection, client = line.connect()
    client.deliver(1)
    worker = threading.Thread(target=connection.step, daemon=True)
    worker.start()
    line.messages[0].acknowledge()
    worker.join(PATIENCE)
    assert client.acknowledged == [1]
