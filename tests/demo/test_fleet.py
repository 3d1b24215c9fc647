"""The devices of the demonstration, at a real broker."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np

from cloakwork.collect.embedded_broker import EmbeddedBroker
from cloakwork.collect.intake import Intake
from cloakwork.collect.service import make_subscriber
from cloakwork.demo import SimulatedFlat
from cloakwork.demo.fleet import MAX_BEHIND_S, Fleet, SimulatedClock
from cloakwork.sensor.wire import parse_topic, read_reading, read_status
from cloakwork.site import Plan, freeze
from papers.followed_people import staying
from tests.demo.small import small_flat
from tests.waiting import until

FRAMES = 4
BEGAN = 1_794_812_400_000
SLOW_S = 0.004


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


@contextmanager
def heard_from(
    folder: Path, measure: Callable[[int], float], clock: SimulatedClock, states: Sequence[str] = ("online",)
) -> Iterator[tuple[Listener, Plan]]:
    """What a subscriber hears from the devices of the small flat."""
    site, heard, ready, broker = small_flat(), Listener(), threading.Event(), EmbeddedBroker()
    ready.set()
    plan = freeze(site, site.cloak())
    broker.start()
    subscriber = make_subscriber(broker.broker, cast(Intake, heard), sites=["small"])
    fleet = Fleet([(plan, measure)], folder / "devices", broker=broker.broker, clock=clock, unit=site.unit)
    try:
        subscriber.start()
        fleet.start(ready)
        yield heard, plan
        until(lambda: set(heard.states.values()) == set(states))
        fleet.stop()
        until(lambda: list(heard.states.values()) == ["offline"] * site.physics.sensors)
    finally:
        fleet.stop()
        subscriber.stop()
        broker.stop()
    assert [thread.name for thread in threading.enumerate() if "devices" in thread.name] == []


def test_a_subscriber_sees_noisy_readings_of_all_devices_at_the_same_moments(tmp_path: Path) -> None:
    """Measuring takes longer than a slot allows by a clock that runs sixty times faster: nothing becomes late."""
    site, clock = small_flat(), SimulatedClock(BEGAN, speed=60.0)
    world, sensors = SimulatedFlat(site, staying([(1.0, 1.0)]), BEGAN, clock), site.physics.sensors
    assert 60 * sensors * SLOW_S > site.schedule.late_ms / 1000

    def slowly(row: int) -> float:
        time.sleep(SLOW_S)
        return world.reading(row)

    began = time.monotonic()
    with heard_from(tmp_path, slowly, clock) as (heard, plan):
        until(lambda: heard.whole(sensors) >= FRAMES)
    assert (clock() - BEGAN) / 1000 <= 60 * (time.monotonic() - began + MAX_BEHIND_S)
    steps = np.array([sensor.step for sensor in plan.sensors])
    sigmas = np.array([sensor.sigma for sensor in plan.sensors])
    true = np.array([world.reading(row) for row in range(sensors)])
    times = sorted(heard.readings)
    assert {len(heard.readings[when]) for when in times[:FRAMES]} == {sensors}, "no device misses a slot"
    assert {after - before for before, after in pairwise(times)} == {site.period_ms}
    assert all(when % site.period_ms == 0 for when in times)
    frames = [frame for frame in heard.readings.values() if len(frame) == sensors]
    noise = np.array([[frame[name] for name in site.sensor_ids] for frame in frames]) * steps - true
    assert (np.abs(noise) > steps / 2).mean() > 0.9
    assert (np.abs(noise / sigmas) < 6).all()
