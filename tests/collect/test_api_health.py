"""Health: one device can neither hide others nor distort their figures."""

import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloakwork.collect.api.api_metrics import reason_code
from cloakwork.collect.attack import AttackCache
from cloakwork.collect.message_problems import CANNOT_MEASURE, Reason
from cloakwork.collect.storage import DeviceReport, ProblemCount, Reading, unix_ms
from cloakwork.sensor.wire import write_status
from tests.collect.api_kit import NOW, Bench, bench, result, watched
from tests.collect.fake_store import ALLOWED
from tests.waiting import until

PERIOD = watched().schedule.period_ms
FAR = 4_102_444_800_000  # in the year 2100


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path) as running:
        yield running


def ask(made: Bench, path: str = "health") -> Any:
    answer = made.client.get(f"/v1/sites/hall/{path}", headers=made.bearer("analyst"))
    assert answer.status_code == 200, answer.text
    return answer.json()


def sensors(made: Bench) -> dict[str, Any]:
    return {one["id"]: one for one in ask(made)["sensors"]}


def from_now() -> Callable[[int], int]:
    """Gives the beginning of the slot so many before this one, the same as long as the test lasts."""
    here = unix_ms() // PERIOD
    return lambda number: (here - number) * PERIOD


def reading(sensor: str, seq: int, when: int, *, received: int | None = None) -> Reading:
    return Reading("hall", sensor, seq, when, 5, unix_ms() if received is None else received)


def report(
    sensor: str, used: int, *, state: str = "online", allowed: int = 30, received: int | None = None
) -> DeviceReport:
    return DeviceReport("hall", sensor, state, used, allowed, unix_ms() if received is None else received)


def test_the_higher_of_the_reported_and_the_stored_count_is_used(made: Bench) -> None:
    slot = from_now()
    made.store.reports.add([report("s1", 1), report("s2", 9)])
    made.store.readings.add([reading(name, k, slot(k)) for name in ("s1", "s2") for k in range(1, 6)])
    told = sensors(made)
    assert (told["s1"]["used"], told["s2"]["used"], told["s3"]["used"]) == (5, 9, None)
    assert told["s1"]["broken"] == []


@pytest.mark.parametrize("reason", CANNOT_MEASURE.values())
def test_a_device_that_cannot_measure_is_a_problem_of_its_sensor(made: Bench, reason: Reason) -> None:
    state = reason_code(reason)
    made.intake.offer("cloakwork/v1/hall/s1/status", write_status(state, 3, ALLOWED), lambda: None)
    until(lambda: any(one["sensor"] == "s1" for one in ask(made)["problems"]))
    [problem] = ask(made)["problems"]
    assert (problem["sensor"], problem["code"], problem["breaks_claim"]) == ("s1", state, False)
    assert sensors(made)["s1"]["state"] == state
    assert sensors(made)["s2"]["state"] is None


@pytest.mark.parametrize(("state", "age"), [("offline", 0), ("online", 61_000)])
def test_a_last_will_or_an_old_report_does_not_count_for_this_window(made: Bench, state: str, age: int) -> None:
    slot = from_now()
    made.store.reports.add([report("s1", 20, state=state, received=unix_ms() - age)])
    assert sensors(made)["s1"]["used"] is None
    made.store.readings.add([reading("s1", 1, slot(1))])
    assert sensors(made)["s1"]["used"] == 1, "a reading does not make an old report young"


def test_more_readings_than_allowed_are_over_budget_whatever_the_device_reports(made: Bench) -> None:
    made.store.reports.add([report("s1", 0)])
    made.store.readings.add([reading("s1", k, unix_ms() - 50_000 + 100 * k) for k in range(31)])
    told = sensors(made)["s1"]
    assert told["used"] == 31
    assert [one["reason"] for one in told["broken"]] == [Reason.OVER]


def test_reasons_that_break_the_claim_stay_with_their_sensor(made: Bench) -> None:
    rows = [ProblemCount("hall", "s2", reason.value, 3, NOW - 5) for reason in Reason]
    made.store.problems.add(rows)
    told = sensors(made)
    breaking = (Reason.OVER, Reason.OTHER_BUDGET, Reason.EARLIER_PLAN, Reason.OFF_SLOT)
    assert told["s2"]["broken"] == [
        {"reason": reason.value, "last": NOW - 5, "code": reason_code(reason)} for reason in breaking
    ]
    assert told["s1"]["broken"] == []


def test_times_far_ahead_hide_no_sensor(made: Bench) -> None:
    slot = from_now()
    made.store.readings.add([reading(name, k, slot(k)) for name in ("s2", "s3") for k in range(1, 4)])
    made.store.readings.add([reading("s1", k, FAR // PERIOD * PERIOD + k * PERIOD) for k in range(70)])
    told = sensors(made)
    assert (told["s2"]["missing"], told["s2"]["frames"]) == (0, 3)
    assert told["s1"]["missing"] == 3
    assert told["s2"]["last_reading"] == slot(1)
    assert told["s1"]["last_reading"] is None


def test_a_report_that_the_broker_has_kept_does_not_count_as_seen(made: Bench) -> None:
    """After a start the broker sends the last report of each device, which may be of last week."""
    slot = from_now()
    made.store.readings.add([reading("s1", 1, slot(500)), reading("s2", 1, slot(0))])
    made.store.readings.add([reading("s3", k, slot(k)) for k in range(100)])  # more frames than are looked at
    made.store.reports.add([DeviceReport("hall", name, "offline", 3, 30, unix_ms()) for name in ("s1", "s4")])
    told = sensors(made)
    assert told["s1"]["last_seen"] == told["s1"]["last_reading"] == slot(500)
    assert told["s2"]["last_seen"] == slot(0)
    assert told["s4"]["last_reading"] is None
    assert told["s4"]["last_seen"] is not None


def test_the_alarms_of_one_sensor_hide_no_other_alarms(made: Bench) -> None:
    slot = from_now()
    made.store.readings.add([reading("s2", 1, slot(2))])
    made.store.readings.add([reading("s2", 1, slot(1))])
    for value in (slot(2), slot(1)):
        made.store.readings.add([reading("s1", k, value, received=NOW + 10**6) for k in range(300)])
    alarms = ask(made)["alarms"]
    assert {one["sensor"] for one in alarms} == {"s1", "s2"}
    assert len(alarms) == 4


def test_failures_hide_no_result(made: Bench) -> None:
    slot = from_now()
    good, times = slot(2), [slot(1) + k for k in range(1, 30)]
    made.store.readings.add([reading("s2", 1, good), *(reading("s1", k, when) for k, when in enumerate(times))])
    made.store.results.save([result(good)])
    bad = [replace(result(when), status="failed: stamped", map=None, sources=(), counts=None) for when in times]
    made.store.results.save(bad)
    assert ask(made, "latest")["time"] == good
    assert [one["time"] for one in ask(made, "results")["items"]] == [good]
    assert len(made.store.results.at("hall", [good, *times])) == 30


def test_an_attack_from_erased_readings_is_not_kept(made: Bench) -> None:
    slot = from_now()
    made.store.readings.add([reading(name, 1, slot(1)) for name in ("s1", "s2", "s3", "s4")])
    attacks = AttackCache(made.store)
    before = attacks.attack_until(watched(), slot(1))
    assert before is not None
    assert attacks.attack_until(watched(), slot(1)) is before
    memory = weakref.ref(before)
    made.store.erase("hall", "s1")
    made.store.readings.add([reading("s1", 2, slot(1))])
    after = attacks.attack_until(watched(), slot(1))
    assert after is not before
    assert after is attacks.attack_until(watched(), slot(1))
    del before
    assert memory() is None
