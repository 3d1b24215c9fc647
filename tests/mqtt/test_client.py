"""The client that stays connected: availability, retries and a clean stop, with a real broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloakwork.mqtt import BrokerAddress, BrokerState, Connection, MqttClient, MqttMessage, MqttSession
from cloakwork.mqtt.connection import Waker, make_client
from tests.broker import Broker, running_broker
from tests.waiting import until

TOPIC = "cloakwork/zones/one"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "broker") as running:
        yield running


class Listener:
    """A client that records the messages of one topic."""

    def __init__(self, broker: Broker) -> None:
        self.messages: list[MqttMessage] = []
        self.states: list[BrokerState] = []
        session = MqttSession(filters=[TOPIC], on_message=self._receive, on_state=self.states.append)
        self.client = MqttClient(BrokerAddress(broker.host, broker.port), session)

    def _receive(self, message: MqttMessage) -> None:
        message.acknowledge()
        self.messages.append(message)

    def payloads(self) -> list[bytes]:
        return [message.payload for message in self.messages]

    def __enter__(self) -> "Listener":
        self.client.start()
        until(lambda: self.client.state.connected)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.stop()


def test_a_connection_that_breaks_leaves_the_client_offline(broker: Broker) -> None:
    """Closed without a disconnect message, as by a crash: the broker publishes the last will, and keeps it."""
    waker = Waker()
    address, session = BrokerAddress(broker.host, broker.port), MqttSession(client_id="crashing", availability=TOPIC)
    connection = Connection(make_client(address, None, session), waker, session)
    with Listener(broker) as listener:
        connection.open(address)
        while not connection.granted:
            assert connection.step()
        until(lambda: listener.payloads() == [b"online"])
        connection.close()
        waker.close()
        until(lambda: listener.payloads() == [b"online", b"offline"])
    with Listener(broker) as later:
        until(lambda: [(message.payload, message.retained) for message in later.messages] == [(b"offline", True)])


def test_states_are_reported_and_a_stop_is_not_a_failure(broker: Broker) -> None:
    with Listener(broker) as listener:
        broker.kill()
        until(lambda: not listener.client.state.connected)
        broker.start()
        until(lambda: listener.client.state.connected)
    connected = [state.connected for state in listener.states]
    assert (connected[0], connected[-1], False in connected) == (True, True, True)
    assert (listener.client.state.connected, listener.client.state.reason) == (False, "stopped")
