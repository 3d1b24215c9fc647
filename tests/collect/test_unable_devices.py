"""Devices that say they cannot measure: recovery sets their constants aside, live and from the store."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from cloakwork.collect.collected_site import StoredFrames, unable_sensors
from cloakwork.collect.intake import Intake
from cloakwork.collect.storage import DeviceReport, Result, Store
from cloakwork.sensor.measuring import BLOCK
from cloakwork.sensor.wire import topic, write_reading, write_status
from tests.collect.small_sites import FLAT, flat_site, moment, readings, running, values
from tests.waiting import until

SITE = flat_site(FLAT + "speed = 0\n", 30.0)
AT = (1.25, 1.25)
PERIOD = SITE.schedule.period_ms
ALLOWED = SITE.budget_rules.allowed
TOLD = values(SITE, AT, seed=1)
BROKEN = sorted(TOLD, key=lambda name: -TOLD[name])[:3]  # those that a person warms most


@contextmanager
def collector(store: Store, clock: list[int]) -> Iterator[Intake]:
    """The collector's way from a message of the broker to a result."""
    with running(store, SITE) as (live, _):
        intake = Intake(store, {SITE.name: SITE.budget_rules}, on_new=live.on_new, clock=lambda: clock[0])
        intake.start()
        yield intake
        until(lambda: not store.frames.waiting(SITE.name))
        intake.stop()


def send(intake: Intake, store: Store, clock: list[int], number: int, state: str) -> Result:
    """One frame in which some devices report a state and send the baseline, and its result."""
    clock[0] = moment(SITE, number)
    if state:
        for name in BROKEN:
            intake.offer(topic(SITE.name, name, "status"), write_status(state, ALLOWED, ALLOWED), lambda: None)
    told = values(SITE, AT, seed=number) | {name: values(SITE, seed=number)[name] for name in BROKEN}
    for name, value in told.items():
        intake.offer(topic(SITE.name, name, "reading"), write_reading(number + 1, clock[0], value), lambda: None)
    until(lambda: store.results.get(SITE.name, clock[0]))
    found = store.results.get(SITE.name, clock[0])
    assert found is not None
    return found


@pytest.mark.parametrize("state", ["failing", "invalid", "slow"])
def test_constants_of_a_device_that_cannot_measure_do_not_move_the_map(sqlite_store: Store, state: str) -> None:
    clock = [0]
    with collector(sqlite_store, clock) as intake:
        results = [send(intake, sqlite_store, clock, number, "" if number else state) for number in range(3)]
    assert [result.set_aside for result in results] == [tuple(sorted(BROKEN))] * 3
    assert [result.sensors for result in results] == [12] * 3
    assert sqlite_store.frames.waiting(SITE.name) == []
    [source] = results[-1].sources
    assert max(abs(a - b) for a, b in zip(source.at, AT, strict=True)) <= 0.5


def test_a_report_covers_the_sixteen_readings_before_it_and_a_restart_keeps_to_it(sqlite_store: Store) -> None:
    states = [(0, "online"), (20, "failing"), (25, "offline"), (40, "online"), (90, "slow")]
    for number, state in states:
        row = DeviceReport(SITE.name, "s03", state, 1, ALLOWED, moment(SITE, number))
        sqlite_store.reports.add([row])
    times = [moment(SITE, number) for number in range(60)]
    unable = unable_sensors(sqlite_store, SITE.name, times, PERIOD)
    assert [time for time in times if unable[time] == {"s03"}] == times[20 - BLOCK : 40 - BLOCK]
    assert all(unable[time] <= {"s03"} for time in times)
    sqlite_store.readings.add([row for number in range(60) for row in readings(SITE, number, TOLD)])
    frames = SITE.frames(sqlite_store, times)
    assert [frame.aside for frame in frames] == [(2,) if unable[time] else () for time in times]
    assert all(a.time < b.time for a, b in pairwise(frames))


def test_frames_of_devices_that_all_cannot_measure_fail_with_a_reason(sqlite_store: Store) -> None:
    for name in SITE.ids:
        sqlite_store.reports.add([DeviceReport(SITE.name, name, "failing", 1, ALLOWED, moment(SITE, 0))])
    clock = [0]
    with collector(sqlite_store, clock) as intake:
        failed = send(intake, sqlite_store, clock, 1, "")
    assert failed.failed
    assert "cannot measure" in failed.status
    assert list(StoredFrames(sqlite_store, SITE.site, plan=SITE.plan.id)) == []
