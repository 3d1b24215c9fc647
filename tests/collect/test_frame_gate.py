"""Which of the frames that wait in the store are ready."""

from math import inf

import pytest

from cloakwork.collect.site_worker import FrameGate
from cloakwork.collect.storage import FrameState


def frame(time: int, readings: int, recovered: int = 0) -> FrameState:
    return FrameState(time, readings, recovered)


def ready(gate: FrameGate, now: float, *waiting: FrameState) -> list[int]:
    return [one.time for one in gate.ready(waiting, now)]


def test_a_complete_frame_is_ready_at_once_and_another_when_it_has_waited() -> None:
    gate = FrameGate(3, 5.0)
    assert ready(gate, 1.0, frame(200, 3), frame(100, 1)) == [200]
    assert gate.next_due == 6.0
    assert ready(gate, 5.9, frame(100, 2)) == []
    assert ready(gate, 6.0, frame(100, 2), frame(300, 1)) == [100]
    assert gate.next_due == 11.0
    assert ready(gate, 7.0) == []
    assert gate.next_due == inf


def test_a_frame_that_grows_after_it_was_recovered_waits_for_more_late_readings() -> None:
    gate = FrameGate(3, 5.0)
    assert ready(gate, 1.0, frame(100, 3, 2)) == []
    assert ready(gate, 6.0, frame(100, 3, 2)) == [100]
    assert ready(gate, 7.0) == []
    assert ready(gate, 8.0, frame(100, 4, 3)) == [], "whoever sends one reading after another causes few recoveries"


@pytest.mark.parametrize(("readings", "waits"), [(1, False), (2, True)])
def test_where_sources_are_followed_no_frame_passes_one_that_many_have_reported(readings: int, waits: bool) -> None:
    """One sensor alone, perhaps with a wrong clock, does not hold up the others."""
    gate = FrameGate(3, 5.0, shared=2)
    assert ready(gate, 1.0, frame(200, 3), frame(100, readings)) == ([] if waits else [200])
    assert ready(gate, 6.0, frame(200, 3), frame(100, readings)) == [100, 200]
