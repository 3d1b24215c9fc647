"""The budget of a device: never more than allowed in any window."""

from hypothesis import given
from hypothesis import strategies as st

from cloakwork.sensor.slots import MAX_RUNS, Slots


def spent(used: list[int], window: int) -> int:
    return max((sum(first <= slot < first + window for slot in used) for first in used), default=0)


@given(
    gaps=st.lists(st.integers(1, 12), max_size=120),
    window=st.integers(1, 40),
    allowed=st.integers(1, 12),
    most=st.integers(1, 5),
)
def test_no_stretch_of_window_slots_holds_more_than_allowed(
    gaps: list[int], window: int, allowed: int, most: int
) -> None:
    slots = Slots([], window, allowed)
    used: list[int] = []
    slot = 0
    for gap in gaps:
        slot += gap
        taken = slots.take(slot, most) if slot > slots.last else 0
        used += range(slot, slot + taken)
        slots = Slots(slots.runs, window, allowed)  # as after a start from the storage
    assert spent(used, window) <= allowed
    assert len(slots.runs) <= MAX_RUNS


@given(gaps=st.lists(st.integers(1, 12), min_size=1, max_size=60), window=st.integers(1, 40), allowed=st.integers(1, 9))
def test_the_budget_is_used_in_full_while_there_are_few_runs(gaps: list[int], window: int, allowed: int) -> None:
    slots = Slots([], window, allowed)
    used: list[int] = []
    slot = 0
    for gap in gaps:
        slot += gap
        room = sum(slot - window < one for one in used) < allowed
        assert slots.take(slot, 1) == room or len(slots.runs) == MAX_RUNS
        used += [slot] if slots.last == slot else []
