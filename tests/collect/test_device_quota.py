"""The quota of a device: what keeps to the plan always fits, whenever and however often it arrives."""

import random

import pytest

from cloakwork.collect.device_quota import DAY_MS, HOUR_MS, OUTBOX, DeviceQuota
from cloakwork.collect.message_problems import BudgetRules
from cloakwork.collect.storage import Reading, ReadingStatus, Store
from cloakwork.device import agent
from cloakwork.site import Schedule, make_schedule
from tests.collect.test_budget import stamps

NOW = 1_794_731_949_000
PLANS = [
    (3600, make_schedule(window=3600.0, allowed=60)),
    (60, make_schedule(window=60.0, allowed=30)),
    (7200, make_schedule(window=7200.0, allowed=6, period=20.0)),  # six, then a pause
    (7 * 86_400, make_schedule(window=7 * 86_400.0, allowed=40)),
]


def quota(store: Store, window_s: int, schedule: Schedule, outbox: int = OUTBOX) -> DeviceQuota:
    rules = BudgetRules(1000 * window_s, schedule.allowed, schedule.period_ms, aligned=False)
    return DeviceQuota(store, {"hall": rules}, outbox=outbox)


def test_the_outbox_is_that_of_a_device() -> None:
    assert OUTBOX == agent.KEPT


@pytest.mark.parametrize(("window", "schedule"), PLANS)
def test_a_device_that_was_away_for_weeks_delivers_everything(
    sqlite_store: Store, window: int, schedule: Schedule
) -> None:
    """All at once, in any order, some of it twice, and the collector starts again in the middle."""
    made = [when for when in stamps(schedule, 8_000) if when < 14 * DAY_MS]
    rows = [Reading("hall", "s1", k, NOW - made[-1] - 5000 + when, 5, NOW) for k, when in enumerate(made)]
    random.Random(4).shuffle(rows)
    for part in (rows[:3000], rows[2000:5000], rows[5000:]):
        keeper = quota(sqlite_store, window, schedule)
        for row in part:
            assert keeper.admit([row])
        for row, status in zip(part, sqlite_store.readings.add(part), strict=True):
            if status is ReadingStatus.AGAIN:
                keeper.release(row)
            else:
                assert not keeper.floods(row)


def test_readings_whose_clock_was_not_set_fit_as_far_as_an_outbox_holds_them(sqlite_store: Store) -> None:
    window, schedule = PLANS[0]
    keeper = quota(sqlite_store, window, schedule, outbox=500)
    assert all(keeper.admit([Reading("hall", "s1", k, 0, 5, NOW)]) for k in range(500))


def test_a_full_hour_takes_no_more_until_readings_are_erased(store: Store) -> None:
    window, schedule = PLANS[0]
    start = NOW - NOW % HOUR_MS - 5 * HOUR_MS
    rows = [Reading("hall", "s1", k, start + k, 5, NOW) for k in range(200)]
    keeper = quota(store, window, schedule)
    admitted = [row for row in rows if keeper.admit([row])]
    assert len(admitted) == 2 * schedule.allowed
    assert keeper.admit([rows[0]._replace(sensor="s2")]), "another sensor has its own"
    assert keeper.admit([rows[0]._replace(time=start + HOUR_MS)]), "and so has another hour"
    store.readings.add(admitted)
    assert not quota(store, window, schedule).admit([rows[-1]]), "after a restart, too"
    store.erase("hall", sensor="s1")
    assert not keeper.admit([rows[-1]])
    assert keeper.admit([rows[-1]._replace(received=NOW + 60_000)])


def test_a_list_is_admitted_as_a_whole_or_not_at_all(sqlite_store: Store) -> None:
    window, schedule = PLANS[0]
    keeper = quota(sqlite_store, window, schedule)
    start = NOW - NOW % HOUR_MS
    rows = [Reading("hall", "s1", k, start + k, 5, NOW) for k in range(121)]
    assert not keeper.admit(rows)
    assert keeper.admit(rows[:120])
    assert not keeper.admit(rows[120:])


def test_more_than_an_outbox_at_once_is_a_flood(sqlite_store: Store) -> None:
    window, schedule = PLANS[0]
    keeper = quota(sqlite_store, window, schedule, outbox=100)
    sqlite_store.readings.add([Reading("hall", "s2", 1, NOW - HOUR_MS, 5, NOW)])  # it was away for an hour
    floods = [keeper.floods(Reading("hall", "s1", k, NOW - k * 60_000, 5, NOW)) for k in range(200)]
    assert floods == [False] * 160 + [True] * 40
    assert not keeper.floods(Reading("hall", "s1", 200, NOW, 5, NOW + 61_000))
