"""A real test device, heard through a real broker."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from cloakwork.auditing import DeviceListener, DeviceSource, Recording
from cloakwork.errors import BrokerError, InputError, ReadingError
from cloakwork.mqtt import BrokerAddress
from cloakwork.sensor.wire import write_reading
from tests.broker import Broker, running_broker
from tests.waiting import PATIENCE


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "broker") as running:
        yield running


def reached(broker: Broker) -> BrokerAddress:
    return BrokerAddress(broker.host, broker.port)


@contextmanager
def publisher(broker: Broker) -> Iterator[Any]:
    """Speaks in the name of the device: call it with the parts of a reading, or with a payload."""
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.connect(broker.host, broker.port)
    client.loop_start()

    def publish(seq: int, stamp: int, value: int, *, payload: bytes | None = None, retain: bool = False) -> None:
        sent = write_reading(seq, stamp, value) if payload is None else payload
        client.publish("cloakwork/v1/hall-bench/s2/bench", sent, qos=1, retain=retain).wait_for_publish(60)

    try:
        yield publish
    finally:
        client.disconnect()
        client.loop_stop()


def test_two_values_under_one_number_and_garbage_stop_the_audit(broker: Broker, tmp_path: Path) -> None:
    with (
        publisher(broker) as publish,
        DeviceListener(reached(broker), site="hall", sensor="s2", patience=60.0) as device,
    ):
        with Recording(device, tmp_path / "one.csv") as setup:
            publish(3, 0, 33)
            publish(3, 0, 34)
            with pytest.raises(ReadingError, match="number 3 has two values"):
                setup.take(5)
        with Recording(device, tmp_path / "two.csv") as setup:
            publish(0, 0, 0, payload=b"<script>")
            with pytest.raises(ReadingError, match="wire form"):
                setup.take(5)
    assert (tmp_path / "one.csv").read_text(encoding="utf-8") == "time,sensor,seq,steps\n0,s2,3,33\n"


def test_noise_that_is_used_again_in_the_second_set_up_stops_the_audit(broker: Broker, tmp_path: Path) -> None:
    with (
        publisher(broker) as publish,
        DeviceListener(reached(broker), site="hall", sensor="s2", patience=60.0) as device,
    ):
        with Recording(device, tmp_path / "one.csv") as setup:
            for seq in (1, 2, 3):
                publish(seq, 0, 10 + seq)
            setup.take(3)
        with Recording(device, tmp_path / "two.csv") as setup:
            publish(4, 0, 70)
            publish(2, 0, 62)  # the same noise on another reading
            with pytest.raises(ReadingError, match="number 2 has two values"):
                setup.take(3)


def test_a_broker_that_goes_is_waited_for_and_nothing_is_lost(broker: Broker, tmp_path: Path) -> None:
    said: list[str] = []
    with (
        DeviceListener(reached(broker), site="hall", sensor="s2", patience=30.0, note=said.append) as device,
        Recording(device, tmp_path / "one.csv") as setup,
    ):
        with publisher(broker) as publish:
            publish(1, 0, 11)
            assert setup.take(1).tolist() == [11]
        broker.kill()
        broker.start()
        taken: list[int] = []
        thread = threading.Thread(target=lambda: taken.extend(setup.take(1).tolist()))
        thread.start()
        with publisher(broker) as publish:
            for seq in range(2, 200):  # until it is back
                publish(seq, 0, 10 + seq)
                thread.join(0.1)
                if not thread.is_alive():
                    break
        thread.join(PATIENCE)
    assert setup.values[0] == 11
    assert len(setup.values) == 2
    assert said == ["the broker is away: waiting for it", "the broker is back"]


def test_a_broker_that_cannot_be_reached_is_refused() -> None:
    with pytest.raises(BrokerError, match="cannot be reached"):
        DeviceListener(BrokerAddress("localhost", 1), site="hall", sensor="s2").__enter__()


def test_an_interrupted_recording_goes_on_after_its_last_whole_line(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "one.csv"
    file.write_text("time,sensor,seq,steps\n0,s2,1,11\n0,s2,2,12\n0,s2,3,", encoding="utf-8")
    with DeviceListener(reached(broker), site="hall", sensor="s2") as device, publisher(broker) as publish:
        with Recording(device, file) as one:
            for number in (2, 3, 4):
                publish(number, 0, 10 + number)
            one.take(2)
            assert (one.values, one.missing) == ([11, 12, 13, 14], 0), "number 2 was recorded before"
        assert file.read_text(encoding="utf-8").count("\n") == 5
        with Recording(device, file) as again:
            source = DeviceSource(np.arange(4), again)
            assert source(1, 4, np.random.default_rng(0)).tolist() == [11, 12, 13, 14], "none is waited for"
        for text in ("", "mine\n", "time,sensor,seq,steps\n0,s1,1,11\n", "time,sensor,seq,steps\n0,s2,1\n"):
            file.write_text(text, encoding="utf-8")
            with pytest.raises(InputError, match="no recording of s2"):
                Recording(device, file)
