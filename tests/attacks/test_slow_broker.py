"""Attack: a few clients occupy the embedded broker with connections that never say who they are."""

import socket
import struct

import pytest

from cloakwork.collect import embedded_broker
from cloakwork.collect.embedded_broker import EmbeddedBroker
from tests.attacks.conftest import Attack
from tests.waiting import PATIENCE

ANSWER_S = 20.0
ACCEPTED = b"\x20\x02\x00\x00"


def hello(name: str) -> bytes:
    """The packet with which a client says who it is."""
    body = b"\x00\x04MQTT\x04\x02\x00\x3c" + struct.pack("!H", len(name)) + name.encode()
    return bytes([0x10, len(body)]) + body


def test_the_embedded_broker_ends_connections_that_say_nothing(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients stop in the middle of a packet, before and after they are accepted, and keep the connection.

    Claim: the broker ends each of them after a while.
    """
    monkeypatch.setattr(embedded_broker, "CONNECT_S", 0.3)
    monkeypatch.setattr(embedded_broker, "SILENT_S", 0.3)
    broker = EmbeddedBroker()
    broker.start()
    try:
        for said in (b"", hello("a")[:5], hello("b") + b"\x30\x20\x00", hello("c") + b"\x82", hello("d")):
            with socket.create_connection(("127.0.0.1", broker.port), timeout=PATIENCE) as link:
                link.sendall(said)
                attack.expect(ends(link))
    finally:
        broker.stop()


def ends(link: socket.socket) -> bool:
    try:
        while link.recv(100):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True
