"""Who sends more than the plan allows is found out, and nobody else is suspected."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.collect.intake import Intake
from cloakwork.collect.message_problems import WAITED_MS, BudgetCheck, BudgetRules, Quota, Reason
from cloakwork.collect.storage import PlanPeriod, Reading, ReadingStatus
from cloakwork.errors import StoreAwayError
from cloakwork.readings import ReadingScale
from cloakwork.sensor.keystream import COUNTER_BITS
from cloakwork.sensor.slots import Slots
from cloakwork.sensor.wire import write_reading
from cloakwork.site import Schedule, make_schedule
from tests.collect.fake_store import NOW, FakeStore, row
from tests.waiting import until

MINUTE = BudgetRules(window_ms=60_000, allowed=30, period_ms=2004, aligned=True, sensors=frozenset({"s1", "s2"}))
SCHEDULES = [
    make_schedule(window=60.0, allowed=30),
    make_schedule(window=3600.0, allowed=1),
    make_schedule(window=60.0, allowed=6, period=2.0),  # six, then a pause
    make_schedule(window=600.0, allowed=600, period=2.0),
]


def rules(schedule: Schedule, window_s: int) -> BudgetRules:
    return BudgetRules(1000 * window_s, schedule.allowed, schedule.period_ms, True)


def stamps(schedule: Schedule, count: int) -> list[int]:
    """What a device stamps that uses its budget as soon as it may."""
    slots, found, slot = Slots([], schedule.window_slots, schedule.allowed), list[int](), 0
    while len(found) < count:
        if slots.take(slot, 1):
            found.append(slot * schedule.period_ms)
        slot += 1
    return found


WINDOWS = list(zip(SCHEDULES, (60, 3600, 60, 600), strict=True))


@pytest.mark.parametrize(("schedule", "window"), WINDOWS)
def test_a_device_that_keeps_to_its_budget_is_never_over_it(schedule: Schedule, window: int) -> None:
    spent = BudgetCheck(rules(schedule, window))
    for k, stamp in enumerate(stamps(schedule, 2000)):
        assert not spent.add(k, stamp, stamp + 1000 + 700 * (k % 3)), "whatever the network does with its messages"


@pytest.mark.parametrize(("schedule", "window"), WINDOWS)
def test_a_backlog_that_comes_at_once_after_an_outage_is_as_it_should_be(schedule: Schedule, window: int) -> None:
    spent, made = BudgetCheck(rules(schedule, window)), stamps(schedule, 20_000)
    assert not any(spent.add(k, stamp, made[-1] + k // 100) for k, stamp in enumerate(made))


def test_a_clock_that_is_set_back_stamps_a_stretch_twice_and_that_is_no_fault() -> None:
    spent = BudgetCheck(MINUTE)
    for k in range(200):
        stamp = (k if k < 100 else k - 10) * MINUTE.period_ms
        assert not spent.add(k, stamp, k * MINUTE.period_ms + 1000)


@pytest.mark.parametrize(
    "made",
    [
        [k * 1002 for k in range(100)],  # twice as often
        list(range(100)),
        [5] * 100,
        [-k * 500 for k in range(100)],
    ],
)
def test_one_reading_more_than_allowed_in_a_window_is_over_budget(made: list[int]) -> None:
    spent = BudgetCheck(MINUTE)
    found = [spent.add(k, 10**12 + stamp, 10**12 + 400 * k) for k, stamp in enumerate(made)]
    assert not any(found[: MINUTE.allowed])
    assert all(found[MINUTE.allowed :])


@given(st.lists(st.integers(0, 9), min_size=170, max_size=300))
@settings(max_examples=50, deadline=None)
def test_the_readings_of_a_full_window_are_known_by_number_and_stamp(made: list[int]) -> None:
    spent = BudgetCheck(MINUTE)
    for seq, stamp in enumerate(made):
        assert not spent.has(seq, stamp)
        spent.add(seq, stamp, stamp)
    last = sorted(enumerate(made), key=lambda one: one[1])[-MINUTE.allowed :]
    assert all(spent.has(seq, stamp) and not spent.has(seq, stamp + 1) for seq, stamp in last)


def intake(fake_store: FakeStore, given: BudgetRules = MINUTE, plan: PlanPeriod | None = None) -> Intake:
    made = Intake(fake_store, {"flat": given}, on_new=lambda _: None, clock=lambda: NOW)
    made.start(None if plan is None else {"flat": plan})
    return made


def counted(fake_store: FakeStore) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for one in fake_store.stored_problems:
        found[one.sensor, one.reason] = found.get((one.sensor, one.reason), 0) + one.count
    return found


def slot(number: int) -> int:
    return (NOW // MINUTE.period_ms - number) * MINUTE.period_ms


def test_too_many_readings_are_stored_and_counted_as_over_budget() -> None:
    fake_store = FakeStore()
    harness = intake(fake_store)
    harness.submit([row(k, stamp=slot(0)) for k in range(40)])
    harness.submit([row(k, sensor="s2", stamp=slot(k)) for k in range(30)])
    harness.stop()
    assert len(fake_store.rows) == 70
    assert counted(fake_store)["s1", Reason.OVER] == 10
    assert ("s2", Reason.OVER) not in counted(fake_store)


@pytest.mark.parametrize("aligned", [True, False])
def test_a_stamp_between_the_slots_is_a_problem_where_sensors_measure_together(aligned: bool) -> None:
    fake_store = FakeStore()
    harness = intake(fake_store, replace(MINUTE, aligned=aligned))
    harness.submit([row(1, stamp=slot(1)), row(2, stamp=slot(0) + 1)])
    harness.stop()
    assert counted(fake_store).get(("s1", Reason.OFF_SLOT), 0) == aligned


def test_duplicates_that_come_while_the_store_fails_are_duplicates_and_no_fault_of_an_honest_device() -> None:
    fake_store = FakeStore()
    harness = intake(fake_store)
    sent = [row(k, stamp=slot(0)) for k in range(30)]
    harness.submit(sent)
    fake_store.failure = StoreAwayError("locked")
    done: list[int] = []
    for one in [*sent[25:], *sent[28:]]:
        payload = write_reading(one.seq, one.time, one.value)
        harness.offer("cloakwork/v1/flat/s1/reading", payload, lambda: done.append(1))
    until(lambda: not harness.state.storing)
    fake_store.failure = None
    until(lambda: len(done) == 7)
    harness.stop()
    assert counted(fake_store) == {("s1", Reason.DUPLICATE): 7}
    assert harness.state.stored == 30


def test_readings_whose_answer_was_lost_count_once() -> None:
    fake_store = FakeStore()
    harness = intake(fake_store)
    fake_store.answer_lost = True
    harness.submit([row(k, stamp=slot(0)) for k in [*range(31), 30]])
    harness.stop()
    assert counted(fake_store) == {("s1", Reason.OVER): 1, ("s1", Reason.DUPLICATE): 1}
    assert harness.state.stored == 31


def test_a_device_that_states_another_budget_than_the_plan_is_counted_and_one_for_audits_is_not() -> None:
    fake_store = FakeStore()
    harness = intake(fake_store)
    for sensor, state, allowed in (("s1", "online", 99), ("s2", "online", 30), ("s2", "bench", 0)):
        payload = f'{{"v":1,"state":"{state}","used":1,"allowed":{allowed}}}'.encode()
        harness.offer(f"cloakwork/v1/flat/{sensor}/status", payload, lambda: None)
    harness.stop()
    assert len(fake_store.stored_reports) == 3
    assert counted(fake_store) == {("s1", Reason.OTHER_BUDGET): 1}


def test_a_device_that_sent_before_the_plan_began_is_counted_until_it_is_provisioned_again() -> None:
    fake_store = FakeStore()
    plan = PlanPeriod(0, ReadingScale("new", "", {}, {}), {"s1": 400_000, "s2": 3})
    harness = intake(fake_store, plan=plan)
    for number, (sensor, generation) in enumerate((("s1", 400_000), ("s1", 400_007), ("s2", 3))):
        seq = (generation << COUNTER_BITS) + number
        harness.submit([Reading("flat", sensor, seq, NOW - 60_000 * (3 - number), 5, NOW)])
    harness.stop()
    found = {key: count for key, count in counted(fake_store).items() if key[1] == Reason.EARLIER_PLAN}
    assert found == {("s1", Reason.EARLIER_PLAN): 1}, "generations as small as those of simulations say nothing"


def test_above_its_quota_a_request_is_refused_whole_and_takes_nothing_from_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cloakwork.collect.intake.Quota", partial(Quota, outbox=5))
    fake_store = FakeStore()
    harness = intake(fake_store, replace(MINUTE, window_ms=WAITED_MS, allowed=1))
    assert harness.submit([row(k) for k in range(6)]) == [ReadingStatus.NEW] * 6
    for _ in range(10):
        assert harness.submit([row(1, sensor="s2"), row(7)]) == [ReadingStatus.REFUSED] * 2
    assert harness.submit([row(k, sensor="s2") for k in range(6)]) == [ReadingStatus.NEW] * 6
    harness.stop()
    assert len(fake_store.rows) == 12
    assert counted(fake_store)["s2", Reason.FLOOD] == 10
