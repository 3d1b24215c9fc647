"""An agent that works in a thread, and a foreign client that hears what it publishes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from cloakwork.device import Agent, ReadingSource
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress
from cloakwork.privacy import noise_table
from cloakwork.sensor.wire import read_reading, read_status
from tests.broker import Broker
from tests.devices import KEY
from tests.keystreams import keyed_noise
from tests.waiting import PATIENCE

RATIO = 40.0
QUICK = {"period_ms": 50, "offset_ms": 25, "late_ms": 20, "window_slots": 4, "allowed": 4, "block": 1, "clock_ms": 5000}


class Subscriber:
    """A foreign client that subscribes to everything of the site."""

    def __init__(self, broker: Broker, user: str | None = None, password: str | None = None) -> None:
        self.messages: list[tuple[str, bytes, bool]] = []
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        if user is not None:
            self._client.username_pw_set(user, password)
        if broker.ca is not None:
            self._client.tls_set(str(broker.ca))
        self._client.on_message = lambda _, __, m: self.messages.append((m.topic, bytes(m.payload), m.retain))
        self._client.on_connect = lambda client, *_: client.subscribe([("cloakwork/#", 1), ("homeassistant/#", 1)])
        self._client.connect(broker.host, broker.port)
        self._client.loop_start()

    def of(self, kind: str) -> list[bytes]:
        return [payload for topic, payload, _ in self.messages if topic.endswith(f"/{kind}")]

    def readings(self) -> dict[int, int]:
        """Values by sequence number; a number with two values fails the test."""
        found: dict[int, int] = {}
        for payload in self.of("reading"):
            seq, _, value = read_reading(payload)
            assert found.setdefault(seq, value) == value
        return found

    def goodbyes(self) -> int:
        """How often a device has published that it stops: everything that it sent before has arrived."""
        live = [payload for topic, payload, retained in self.messages if topic.endswith("/status") and not retained]
        return [read_status(payload)[0] for payload in live].count("offline")

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def listening(broker: Broker, *login: str) -> Iterator[Subscriber]:
    subscriber = Subscriber(broker, *login)
    try:
        yield subscriber
    finally:
        subscriber.close()


@contextmanager
def working(folder: Path, broker: Broker, source: ReadingSource, **options: Any) -> Iterator[list[str]]:
    """An agent in a thread; yields its notes."""
    notes: list[str] = []
    stop = threading.Event()
    reached = options.pop("reached", BrokerAddress(broker.host, broker.port))
    agent = Agent(folder, source, broker=reached, note=notes.append, **options)

    def work() -> None:
        try:
            agent.run(stop.is_set)
        except InputError as problem:
            notes.append(f"stopped: {problem}")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield notes
    finally:
        stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def unveiled(readings: dict[int, int], told: dict[str, Any]) -> list[int]:
    seqs = sorted(readings)
    drawn = keyed_noise(noise_table(RATIO), KEY, told["site"], told["sensor"], seqs)
    return [readings[seq] - int(noise) for seq, noise in zip(seqs, drawn, strict=True)]


def exactly(readings: dict[int, int], told: dict[str, Any], steps: int) -> bool:
    """Whether every reading is the true one, or the constant for when the machine was too busy to measure in time."""
    found = unveiled(readings, told)
    return steps in found and set(found) <= {steps, told["fallback"]}
