"""The quota of a device: what keeps to the plan always fits, whenever and however often it arrives."""

import random

import pytest

from cloakwork.collect.message_problems import OUTBOX, WAITED_MS, BudgetRules, DeviceQuota
from cloakwork.collect.storage import Reading
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


def quota(window_s: int, schedule: Schedule, outbox: int = OUTBOX) -> DeviceQuota:
    rules = BudgetRules(1000 * window_s, schedule.allowed, schedule.period_ms, aligned=False)
    return DeviceQuota({"hall": rules}, outbox=outbox)


def test_the_outbox_is_that_of_a_device() -> None:
    assert OUTBOX == agent.KEPT


@pytest.mark.parametrize(("window", "schedule"), PLANS)
def test_a_device_that_was_away_for_weeks_delivers_everything_and_goes_on(window: int, schedule: Schedule) -> None:
    """All at once, in any order, even without an outbox to spare; then each reading as it is made."""
    made = stamps(schedule, 8_000)
    away = [when for when in made if when < WAITED_MS]
    rows = [Reading("hall", "s1", k, NOW - away[-1] + when, 5, NOW) for k, when in enumerate(away)]
    random.Random(4).shuffle(rows)
    keeper = quota(window, schedule, outbox=0)
    assert keeper.admit(rows)
    spare = quota(window, schedule, outbox=1)
    assert all(spare.admit([Reading("hall", "s1", k, 0, 5, NOW + when)]) for k, when in enumerate(made))


def test_a_device_has_a_month_and_an_outbox_and_then_the_rate_of_its_plan() -> None:
    window, schedule = PLANS[0]
    keeper = quota(window, schedule, outbox=500)
    most = 500 + 31 * 24 * schedule.allowed
    rows = [Reading("hall", "s1", k, k % 3, 5, NOW) for k in range(most + 1)]
    assert not keeper.admit(rows), "all or none"
    assert keeper.admit(rows[:most])
    assert not keeper.admit(rows[most:])
    assert keeper.admit([rows[0]._replace(sensor="s2")]), "another sensor has its own"
    keeper.release(rows[0])
    assert keeper.admit(rows[most:]), "one that was stored before does not count"
    later = [rows[-1]._replace(received=NOW + 3_600_000)] * (schedule.allowed + 1)
    assert not keeper.admit(later)
    assert keeper.admit(later[:-1])
