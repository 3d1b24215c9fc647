"""The client against a real broker, with another library's client at the other end."""

import queue
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from paho.mqtt.client import Client, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion

from cloakwork.sensor.mqtt import Mqtt
from tests import micropython
from tests.broker import READER, Broker, running_broker
from tests.waiting import PATIENCE

USERS = {"s07": "a word", "s08": "another", READER: "all ears"}
READING = "cloakwork/v1/flat/s07/reading"
STATUS = "cloakwork/v1/flat/s07/status"
Event = tuple[Any, ...]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path, tls=True, users=USERS) as server:
        yield server


class Line:
    """The client on a real socket, driven as on a device."""

    def __init__(self, broker: Broker, link: Mqtt) -> None:
        self.link = link
        self._socket = socket.create_connection((broker.host, broker.port))
        if broker.ca is not None:
            self._socket = ssl.create_default_context(cafile=broker.ca).wrap_socket(
                self._socket, server_hostname=broker.host
            )
        self._socket.settimeout(0.02)
        self.seen: list[Event] = []
        link.connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def turn(self, *, tick: bool = True) -> bool:
        """Whether the other side is still connected."""
        try:
            self._socket.sendall(self.link.take())
            data = self._socket.recv(4096)
        except TimeoutError:
            data = None
        except OSError:
            return False
        self.link.feed(data or b"")
        if tick:
            self.link.tick(time.monotonic_ns() // 1_000_000)
        self.seen += self.link.events()
        return data != b""

    def until(self, kind: str) -> Event:
        """The next event of a kind."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            for at, event in enumerate(self.seen):
                if event[0] == kind:
                    return self.seen.pop(at)
            self.turn()
        pytest.fail(f"no {kind}, but {self.seen}")


def client(broker: Broker, name: str = "s07", **options: Any) -> Mqtt:
    return Mqtt(name, user=name if broker.users else None, password=broker.users.get(name), **options)


class Other:
    """A client of another library; `heard` holds (topic, payload, retain)."""

    def __init__(self, broker: Broker, *topics: str) -> None:
        self.heard: queue.Queue[tuple[str, bytes, bool]] = queue.Queue()
        ready: queue.Queue[object] = queue.Queue()
        self.client = Client(CallbackAPIVersion.VERSION2, "other", protocol=MQTTv311)
        self.client.on_message = lambda _c, _d, m: self.heard.put((m.topic, bytes(m.payload), m.retain))
        self.client.on_connect = lambda *_: ready.put("connected")
        self.client.on_subscribe = lambda *_: ready.put("subscribed")
        if broker.users:
            self.client.username_pw_set(READER, broker.users[READER])
        if broker.ca is not None:
            self.client.tls_set(str(broker.ca))
        self.client.connect(broker.host, broker.port)
        self.client.loop_start()
        ready.get(timeout=PATIENCE)
        for topic in topics:
            self.client.subscribe(topic, qos=1)
            ready.get(timeout=PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def next(self) -> tuple[str, bytes, bool]:
        return self.heard.get(timeout=PATIENCE)


def test_a_message_of_qos_1_is_acknowledged_and_heard(broker: Broker) -> None:
    with Other(broker, "cloakwork/#") as other, Line(broker, client(broker)) as line:
        line.until("connected")
        payloads = [bytes([0, 255]), b"", bytes(range(256)) * 400]
        numbers = [line.link.publish(READING, payload) for payload in payloads]
        assert [line.until("published") for _ in payloads] == [("published", number) for number in numbers]
        assert [other.next() for _ in payloads] == [(READING, payload, False) for payload in payloads]


@pytest.mark.parametrize("goodbye", [False, True])
def test_the_will_is_published_when_the_link_is_cut_and_not_after_a_disconnect(broker: Broker, goodbye: bool) -> None:
    with Other(broker, "cloakwork/#") as other:
        with Line(broker, client(broker, will=(STATUS, b"offline"))) as line:
            line.until("connected")
            if goodbye:
                line.link.disconnect()
                line.turn()
        with Line(broker, client(broker)) as line:
            line.until("connected")
            line.link.publish(READING, b"after")
            line.until("published")
        expected = (
            [(READING, b"after", False)] if goodbye else [(STATUS, b"offline", False), (READING, b"after", False)]
        )
        assert [other.next() for _ in expected] == expected


def test_on_micropython_the_same_client_publishes_over_tls(broker: Broker, tmp_path: Path) -> None:
    micropython.copy_sensor(tmp_path / "device")
    assert broker.ca is not None
    args = {"host": broker.host, "port": broker.port, "ca": broker.ca.read_text(encoding="utf-8")}
    args |= {"user": "s07", "password": USERS["s07"], "topic": READING, "count": 20}
    with Other(broker, "cloakwork/#") as other:
        done = micropython.run(micropython.PROGRAMS / "publish.py", folder=tmp_path / "device", args=args)
        assert done.stderr == ""
        assert done.stdout.splitlines() == ["connected", *(f"published {number + 1}" for number in range(20))]
        assert [other.next() for _ in range(20)] == [(READING, b"\x00\xff %d" % number, False) for number in range(20)]


def test_on_micropython_a_broker_with_an_unknown_authority_is_refused(broker: Broker, tmp_path: Path) -> None:
    micropython.copy_sensor(tmp_path / "device")
    args = {"host": broker.host, "port": broker.port, "ca": None}
    args |= {"user": "s07", "password": USERS["s07"], "topic": READING, "count": 1}
    done = micropython.run(micropython.PROGRAMS / "publish.py", folder=tmp_path / "device", args=args)
    assert done.stdout in {"closed SELF_SIGNED_CERT_IN_CHAIN\n", "closed UNABLE_TO_VERIFY_LEAF_SIGNATURE\n"}
