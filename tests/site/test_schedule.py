"""When a device reads: never more readings in any window than the claim covers, and how often that is."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.errors import SiteError
from cloakwork.site import Schedule, clock_ms, make_schedule
from cloakwork.site.schedule import CLOCK_RATE


def chosen(schedule: Schedule, wishes: list[bool]) -> list[int]:
    """The slots that are used where a device would like to use those that `wishes` marks, and the budget allows it."""
    used: list[int] = []
    for slot, wish in enumerate(wishes):
        recent = sum(1 for before in used if before > slot - schedule.window_slots)
        if wish and recent < schedule.allowed:
            used.append(slot)
    return used


@settings(max_examples=120, deadline=None)
@given(
    window=st.floats(0.005, 5000.0),
    allowed=st.integers(1, 12),
    period=st.none() | st.floats(0.01, 2000.0),
    wishes=st.lists(st.booleans() | st.just(True), min_size=1, max_size=80),
    data=st.data(),
)
def test_no_window_ever_holds_more_readings_than_are_allowed(
    window: float, allowed: int, period: float | None, wishes: list[bool], data: st.DataObject
) -> None:
    schedule = make_schedule(window=window, allowed=allowed, period=period)
    lowest, highest = -schedule.clock_ms, schedule.late_ms + schedule.clock_ms
    when = st.sampled_from([lowest, highest]) | st.integers(lowest, highest)
    slots = [slot * schedule.period_ms for slot in chosen(schedule, wishes)]
    sensors = [[slot + data.draw(when) for slot in slots] for _ in range(2)]
    for first, after in itertools.product(sensors, repeat=2):
        assert all(b - a >= 1000 * window for a, b in zip(first, after[allowed:], strict=False))


def test_even_readings_could_not_be_a_millisecond_closer() -> None:
    exact = make_schedule(window=60.0, allowed=6)
    fast = clock_ms(60.0)
    assert fast - 1 >= 60_000 * (1 + CLOCK_RATE)  # by a clock that goes too fast, a minute
    assert exact.allowed * exact.period_ms - 1000 * exact.spread >= fast
    assert exact.allowed * (exact.period_ms - 1) - 1000 * exact.spread < fast
    assert not replace(exact, period_ms=exact.period_ms - 1).covers(60.0)


@pytest.mark.parametrize(
    "schedule",
    [
        make_schedule(window=0.1, allowed=3, clock=0.002),
        make_schedule(window=0.1, allowed=2, period=0.02, clock=0.001),
        make_schedule(window=0.07, allowed=1, period=0.01, clock=0.001),
        make_schedule(window=0.1, allowed=9, period=0.03),
    ],
    ids=repr,
)
def test_the_most_readings_in_a_time_is_what_trying_all_choices_finds(schedule: Schedule) -> None:
    slots = 10
    closest = dict.fromkeys(range(1, slots + 1), math.inf)  # the least time from the first of n readings to the last
    for wishes in itertools.product([False, True], repeat=slots):
        used = [slot for slot, wish in enumerate(wishes) if wish]
        if used != chosen(schedule, list(wishes)):
            continue
        for (i, first), (j, last) in itertools.combinations_with_replacement(enumerate(used), 2):
            apart = (last - first) * schedule.period_ms - (round(1000 * schedule.spread) if j > i else 0)
            closest[j - i + 1] = min(closest[j - i + 1], apart)
    lengths = [length for length in range(1, 12 * schedule.period_ms, 7) if schedule.slots_in(length) <= slots]
    assert len(lengths) > 10
    for length in lengths:
        assert schedule.most(length) == max(n for n, apart in closest.items() if apart < length)


@settings(deadline=None)
@given(st.floats(0.005, 1e6), st.integers(1, 10_000), st.none() | st.floats(0.01, 1e6))
def test_a_schedule_keeps_its_own_rules(window: float, allowed: int, period: float | None) -> None:
    schedule = make_schedule(window=window, allowed=allowed, period=period)
    assert schedule.covers(window)
    assert schedule.allowed == allowed
    assert 1 <= schedule.late_ms <= min(200, max(1, schedule.period_ms // 10))
    assert schedule.late_ms < schedule.offset_ms <= schedule.period_ms // 2
    assert 1 <= schedule.block <= max(1, min(64, allowed // 4))
    if period is None:
        assert not schedule.pauses
        assert schedule.period_ms <= max(10, (1.11 * 1000 * window + 3 + 2 * schedule.clock_ms) / allowed + 1)
    else:
        assert abs(schedule.period_ms - 1000 * period) <= 0.5


def test_a_minute_in_an_hour_is_a_little_more_than_a_minute() -> None:
    assert make_schedule(window=3600.0, allowed=60) == Schedule(60_018, 1_000, 60, 60, 1, 200, 50)
    assert make_schedule(window=3600.0, allowed=3600) == Schedule(1_001, 1_000 // 2, 3600, 3600, 10, 100, 50)


@pytest.mark.parametrize(
    "changes",
    [
        {"period_ms": 0},
        {"period_ms": 10.0},
        {"allowed": True},
        {"window_slots": 2**60},
        {"offset_ms": 1},
        {"late_ms": 50},
        {"clock_ms": 0},
    ],
)
def test_a_schedule_that_cannot_be_is_refused(changes: dict[str, int]) -> None:
    good = {"period_ms": 100, "offset_ms": 50, "window_slots": 5, "allowed": 5}
    good |= {"block": 1, "late_ms": 10, "clock_ms": 5}
    with pytest.raises(SiteError) as caught:
        Schedule(**good | changes)
    assert changes.items() <= caught.value.values.items()
