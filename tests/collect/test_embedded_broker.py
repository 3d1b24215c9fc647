"""The small broker inside the collector."""

import asyncio
from queue import Queue
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from cloakwork.collect import embedded_broker
from cloakwork.collect.embedded_broker import EmbeddedBroker
from tests.waiting import PATIENCE


class Client:
    """Someone at the broker, and what they were told."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.told: Queue[str] = Queue()
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.on_connect = lambda *_: self.told.put("connected")
        self._client.on_disconnect = lambda *_: self.told.put("thrown out")
        self._client.on_subscribe = lambda *_: self.told.put("subscribed")
        self._client.connect(broker.broker.host, broker.port)
        self._client.loop_start()
        assert self.told.get(timeout=PATIENCE) == "connected"

    def subscribe(self, topic: str) -> str:
        self._client.subscribe(topic, 1)
        return self.told.get(timeout=PATIENCE)

    def leave(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def test_a_client_that_connects_while_others_subscribe_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As all devices of the demonstration do on a busy machine; who is thrown out comes back after a while only."""
    name = "_publish_retained_messages_for_subscription"
    usual = getattr(embedded_broker._Broker, name)  # noqa: SLF001

    async def slow(*args: Any) -> None:
        await asyncio.sleep(0.3)
        await usual(*args)

    monkeypatch.setattr(embedded_broker._Broker, name, slow)  # noqa: SLF001
    broker = EmbeddedBroker()
    broker.start()
    try:
        first = Client(broker)
        assert [first.subscribe(topic) for topic in ("a", "b")] == ["subscribed"] * 2
        second = Client(broker)  # is told, topic by topic, what the broker keeps
        assert first.subscribe("c") == "subscribed"
        assert second.subscribe("d") == "subscribed"
        for client in (first, second):
            client.leave()
    finally:
        broker.stop()
