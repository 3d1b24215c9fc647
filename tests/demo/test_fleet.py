"""The devices of the demonstration, at a real broker."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from cloakwork.collect.embedded_broker import EmbeddedBroker
from cloakwork.collect.intake import Intake
from cloakwork.collect.subscriber import make_subscriber
from cloakwork.demo import SimulatedFlat, staying
from cloakwork.demo.fleet import Fleet
from cloakwork.demo.simulated_flat import unix_ms
from cloakwork.sensor.wire import parse_topic, read_reading, read_status
from cloakwork.site import freeze
from tests.demo.small import small_flat
from tests.waiting import until

FRAMES = 4


class Listener:
    """Takes the place of an intake, and keeps what it hears."""

    has_room = True

    def __init__(self) -> None:
        self.readings: dict[int, dict[str, int]] = {}
        self.states: dict[str, str] = {}

    def offer(self, topic: str, payload: bytes, done: Callable[[], None]) -> None:
        _, sensor, kind = parse_topic(topic)
        if kind == "status":
            self.states[sensor] = read_status(payload)[0]
        else:
            _, when, value = read_reading(payload)
            self.readings.setdefault(when, {})[sensor] = value
        done()

    def whole(self, sensors: int) -> int:
        return sum(len(frame) == sensors for frame in list(self.readings.values()))


def test_a_subscriber_sees_noisy_readings_of_all_devices_at_the_same_moments(tmp_path: Path) -> None:
    site = small_flat()
    plan, sensors = freeze(site, site.cloak()), site.physics.sensors
    world, heard = SimulatedFlat(site, staying([(1.0, 1.0)]), unix_ms()), Listener()
    broker = EmbeddedBroker()
    broker.start()
    subscriber = make_subscriber(broker.broker, cast(Intake, heard), sites=["small"])
    fleet = Fleet(plan, tmp_path / "devices", broker=broker.broker, measure=world.reading, unit=site.unit)
    try:
        subscriber.start()
        fleet.start()
        until(lambda: heard.whole(sensors) >= FRAMES)
        assert set(heard.states.values()) == {"online"}
        fleet.stop()
        until(lambda: list(heard.states.values()) == ["offline"] * sensors)
    finally:
        fleet.stop()
        subscriber.stop()
        broker.stop()
    steps = np.array([sensor.step for sensor in plan.sensors])
    sigmas = np.array([sensor.sigma for sensor in plan.sensors])
    true = np.array([world.reading(row) for row in range(sensors)])
    frames = [frame for frame in heard.readings.values() if len(frame) == sensors]
    noise = np.array([[frame[name] for name in site.sensor_ids] for frame in frames]) * steps - true
    assert all(when % site.period_ms == 0 for when in heard.readings)
    assert (np.abs(noise) > steps / 2).mean() > 0.9
    assert (np.abs(noise / sigmas) < 6).all()
    assert [thread.name for thread in threading.enumerate() if "devices" in thread.name] == []


def _broken(row: int) -> float:
    if row == 0:
        raise OSError("no such sensor")
    return 21.0


def test_a_device_that_cannot_measure_sends_like_the_others(tmp_path: Path) -> None:
    site = small_flat()
    plan, heard, broker = freeze(site, site.cloak()), Listener(), EmbeddedBroker()
    broker.start()
    subscriber = make_subscriber(broker.broker, cast(Intake, heard), sites=["small"])
    fleet = Fleet(plan, tmp_path / "devices", broker=broker.broker, measure=_broken)
    try:
        subscriber.start()
        fleet.start()
        until(lambda: heard.whole(6) >= 2)
    finally:
        fleet.stop()
        subscriber.stop()
        broker.stop()
