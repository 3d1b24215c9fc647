"""The quota of a device: what keeps to the plan always fits, whenever and however often it arrives."""

import pytest

from cloakwork.collect.message_problems import OUTBOX, WAITED_MS, BudgetRules, Quota
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


def quota(window_s: int, schedule: Schedule, outbox: int = OUTBOX) -> Quota:
    rules = BudgetRules(1000 * window_s, schedule.allowed, schedule.period_ms, aligned=False)
    return Quota(rules, outbox=outbox)


def test_the_outbox_is_that_of_a_device() -> None:
    assert OUTBOX == agent.KEPT


@pytest.mark.parametrize(("window", "schedule"), PLANS)
def test_a_device_that_was_away_for_weeks_delivers_everything_and_goes_on(window: int, schedule: Schedule) -> None:
    """All at once, even without an outbox to spare; then each reading as it is made."""
    made = stamps(schedule, 8_000)
    keeper, spare = quota(window, schedule, outbox=0), quota(window, schedule, outbox=1)
    assert all(keeper.take(NOW) for when in made if when < WAITED_MS)
    assert all(spare.take(NOW + when) for when in made)


def test_a_device_has_a_month_and_an_outbox_and_then_the_rate_of_its_plan() -> None:
    window, schedule = PLANS[0]
    keeper = quota(window, schedule, outbox=500)
    assert all(keeper.take(NOW) for _ in range(500 + 31 * 24 * schedule.allowed))
    assert not keeper.take(NOW)
    keeper.give_back()
    assert keeper.take(NOW), "one that was stored before does not count"
    hour = [keeper.take(NOW + 3_600_000) for _ in range(schedule.allowed + 1)]
    assert hour == [True] * schedule.allowed + [False]
