"""A real test device, heard through a real broker."""

import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from cloakwork.auditing import DeviceListener, DeviceSource, Recording, Verdict, audit
from cloakwork.device import Agent, ConstantReading, provision
from cloakwork.errors import BrokerError, InputError, ReadingError
from cloakwork.mqtt import BrokerAddress
from cloakwork.sensor.keystream import sequence
from cloakwork.sensor.wire import write_reading
from cloakwork.site import Plan, Site
from tests.broker import READER, Broker, running_broker
from tests.waiting import PATIENCE, until


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


def wait_heard(device: DeviceListener, count: int) -> None:
    """Until so many messages have come that nobody has looked at: their time to come does not count."""
    heard = device._heard  # noqa: SLF001 - from outside it cannot be seen
    until(lambda: heard.qsize() >= count, "what was published was not heard")


@contextmanager
def at_work(folder: Path, value: float, broker: Broker) -> Iterator[None]:
    stopping = threading.Event()
    agent = Agent(folder, ConstantReading(value), broker=reached(broker))
    thread = threading.Thread(target=agent.run, args=(stopping.is_set,))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_real_device_is_recorded_as_it_speaks(site: Site, plan: Plan, broker: Broker, tmp_path: Path) -> None:
    provision(plan, "s2", tmp_path / "s2", broker=reached(broker), keys=None, bench=True)
    with (
        at_work(tmp_path / "s2", 20.0, broker),
        DeviceListener(reached(broker), site="hall", sensor="s2", patience=20.0) as device,
        Recording(device, tmp_path / "zero.csv") as setup,
    ):
        done: list[int] = []
        values = setup.take(40, done.append)
        more = setup.take(5)
    assert (len(values), len(more), done) == (40, 5, list(range(1, 41)))
    rows = (tmp_path / "zero.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "time,sensor,seq,steps"
    assert [int(row.split(",")[3]) for row in rows[1:]] == [*values, *more]
    assert len({row.split(",")[2] for row in rows[1:]}) == 45
    planned = plan.sensor("s2")
    assert abs(values.mean() * planned.step - 20.0) < 6 * planned.sigma / math.sqrt(40)


def test_old_and_repeated_readings_are_dropped(broker: Broker, tmp_path: Path) -> None:
    clock = 1_000_000
    with publisher(broker) as publish:
        publish(1, clock + 5, 11, retain=True)  # what the broker kept from the set-up before
        with (
            DeviceListener(reached(broker), site="hall", sensor="s2", patience=60.0, clock=lambda: clock) as device,
            Recording(device, tmp_path / "one.csv") as setup,
        ):
            for seq, stamp, value in (
                (2, clock - 1, 22),
                (3, clock, 33),
                (3, clock, 33),
                (4, 0, 44),
                (5, clock + 9, 55),
            ):
                publish(seq, stamp, value)
            assert setup.take(3).tolist() == [33, 44, 55]
            assert setup.path.read_text(encoding="utf-8").endswith(f"{clock + 9},s2,5,55\n")  # at once, not at the end


def test_readings_before_the_set_up_has_settled_are_dropped(broker: Broker, tmp_path: Path) -> None:
    now = [1_000_000]
    with (
        publisher(broker) as publish,
        DeviceListener(reached(broker), site="hall", sensor="s2", patience=60.0, clock=lambda: now[0]) as device,
        Recording(device, tmp_path / "one.csv", settle=2.0) as setup,
    ):
        publish(1, 0, 11)
        publish(9, 0, 0)  # confirmed only after the first has gone out
        wait_heard(device, 2)  # before the clock goes on
        now[0] += 2000
        publish(2, 0, 22)
        assert setup.take(1).tolist() == [22]


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


def test_readings_of_the_first_set_up_are_not_taken_for_the_second(broker: Broker, tmp_path: Path) -> None:
    with (
        publisher(broker) as publish,
        DeviceListener(reached(broker), site="hall", sensor="s2", patience=0.5) as device,
    ):
        with Recording(device, tmp_path / "one.csv") as setup:
            publish(1, 0, 11)
            wait_heard(device, 1)
            setup.take(1)
        with Recording(device, tmp_path / "two.csv") as setup:
            publish(1, 0, 11)
            publish(1, 0, 11)
            wait_heard(device, 2)
            with pytest.raises(BrokerError, match="no new reading"):
                setup.take(1)
            publish(2, 0, 12)
            wait_heard(device, 1)
            assert setup.take(1).tolist() == [12]


def test_numbers_that_never_came_are_counted_within_a_provisioning(broker: Broker, tmp_path: Path) -> None:
    with (
        publisher(broker) as publish,
        DeviceListener(reached(broker), site="hall", sensor="s2", patience=60.0) as device,
        Recording(device, tmp_path / "one.csv") as setup,
    ):
        again = sequence(1, 0)
        for seq in (5, 6, 9, 8, again, again + 3):
            publish(seq, 0, seq % 100)
        setup.take(6)
        assert setup.missing == 1 + 2


def test_how_often_a_device_reads_is_seen_from_its_stamps(broker: Broker, tmp_path: Path) -> None:
    with (
        publisher(broker) as publish,
        DeviceListener(reached(broker), site="hall", sensor="s2", patience=0.3) as device,
    ):
        # slots that stay empty may cost a number, or not
        for readings in (((1, 5000), (1, 5000), (2, 5250), (3, 6000)), ((11, 7000), (13, 7500), (15, 8000))):
            for seq, stamp in readings:
                publish(seq, stamp, 7)
            wait_heard(device, len(readings))
            assert device.pace() == 0.25
        for seq in (24, 25, 26):
            publish(seq, 0, 7)
        wait_heard(device, 3)
        assert device.pace() is None  # it has no clock
        publish(27, 0, 7)
        wait_heard(device, 1)
        with pytest.raises(BrokerError, match="no new reading"):
            device.pace()


def test_a_hurried_device_is_seen_to_be_one(plan: Plan, broker: Broker, tmp_path: Path) -> None:
    provision(plan, "s2", tmp_path / "s2", broker=reached(broker), keys=None, bench=True, period=0.08)
    with at_work(tmp_path / "s2", 20.0, broker), DeviceListener(reached(broker), site="hall", sensor="s2") as device:
        until(
            lambda: device.pace() == pytest.approx(0.08, abs=0.008)
        )  # a busy device leaves slots empty, but not for ever


def test_a_device_that_is_silent_or_behind_is_named(broker: Broker, tmp_path: Path) -> None:
    with (
        publisher(broker) as publish,
        DeviceListener(reached(broker), site="hall", sensor="s2", patience=0.5) as device,
    ):
        with (
            Recording(device, tmp_path / "one.csv") as setup,
            pytest.raises(BrokerError, match="no new reading on"),
        ):
            setup.take(1)
        assert not (tmp_path / "one.csv").exists()
        with Recording(device, tmp_path / "two.csv") as setup:
            publish(1, 1000, 5)
            wait_heard(device, 1)
            with pytest.raises(BrokerError, match="clock"):
                setup.take(1)


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


def test_a_broker_that_does_not_come_back_is_given_up_and_the_file_stays(broker: Broker, tmp_path: Path) -> None:
    with (
        DeviceListener(reached(broker), site="hall", sensor="s2", patience=1.0) as device,
        Recording(device, tmp_path / "one.csv") as setup,
    ):
        with publisher(broker) as publish:
            publish(1, 0, 11)
            wait_heard(device, 1)
            setup.take(1)
        broker.kill()
        with pytest.raises(BrokerError, match="away"):
            setup.take(1)
    assert "0,s2,1,11" in (tmp_path / "one.csv").read_text(encoding="utf-8")


def test_brokers_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match="cannot be reached"):
        DeviceListener(BrokerAddress("localhost", 1), site="hall", sensor="s2").__enter__()
    users = {"s2": "right", READER: "battery"}
    with running_broker(tmp_path / "tls", tls=True, users=users, site="hall-bench") as broker:
        wrong = BrokerAddress(broker.host, broker.port, True, READER, "wrong", broker.ca)
        with pytest.raises(BrokerError, match="refuses"):
            DeviceListener(wrong, site="hall", sensor="s2").__enter__()
        untrusted = BrokerAddress(broker.host, broker.port, True, READER, "battery", None)
        with pytest.raises(BrokerError, match="is not trusted"):
            DeviceListener(untrusted, site="hall", sensor="s2").__enter__()
        with pytest.raises(InputError, match="PEM form"):
            DeviceListener(
                BrokerAddress(broker.host, broker.port, True, None, None, tmp_path / "no.pem"), site="hall", sensor="s2"
            )
        right = BrokerAddress(broker.host, broker.port, True, READER, "battery", broker.ca)
        with DeviceListener(right, site="hall", sensor="s2") as device:
            assert device.topic == "cloakwork/v1/hall-bench/s2/bench"


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


def test_the_second_set_up_is_taken_only_as_far_as_the_audit_needs() -> None:
    class Live:
        def __init__(self) -> None:
            self.values: list[int] = []

        def take(self, size: int, _: object) -> None:
            self.values += rng.integers(500, 600, size).tolist()

    rng = np.random.default_rng(1)
    live = Live()
    source = DeviceSource(rng.integers(0, 100, 5000), live)  # type: ignore[arg-type]
    found = audit(source, epsilon=0.5, reports=5000)
    assert found.verdict is Verdict.VIOLATION
    assert len(live.values) == found.reports_used < 2000
    assert json.dumps(found.to_json())
