"""Frames as they become ready, and the backlog."""

import pytest

from cloakwork.collect.open_frames import MAX_OPENED, REMEMBERED, OpenFrames, enough_agree
from cloakwork.collect.site_queue import Backlog


def ready(frames: OpenFrames, now: float) -> list[int]:
    return list(frames.take(now))


def test_a_frame_is_ready_when_all_have_reported() -> None:
    frames = OpenFrames(3, wait=5.0, period=10.0)
    for sensor in (2, 0, 0):
        frames.add(100, sensor, 0.0)
        assert ready(frames, 1.0) == []
    frames.add(100, 1, 1.0)
    assert (len(frames), frames.next_due()) == (0, 0.0)
    assert frames.take(1.0) == {100: True}
    assert ready(frames, 99.0) == []


def test_a_frame_is_ready_when_it_has_waited_long_enough_since_its_first_reading() -> None:
    frames = OpenFrames(4, wait=5.0, period=10.0)
    frames.add(100, 0, 1.0)
    frames.add(200, 0, 2.0)
    frames.add(200, 1, 6.5)
    assert (frames.next_due(), frames.waits(100), frames.waits(300)) == (6.0, True, False)
    assert frames.take(5.9) == {}
    assert frames.take(6.0) == {100: False}
    assert frames.take(7.0) == {200: True}
    assert frames.next_due() is None


def test_a_frame_that_is_completed_late_is_ready_exactly_once_more() -> None:
    frames = OpenFrames(3, wait=1.0, period=10.0)
    frames.add(100, 0, 0.0)
    assert ready(frames, 1.0) == [100]
    frames.add(100, 1, 2.0)
    assert ready(frames, 50.0) == []
    frames.add(100, 2, 60.0)
    assert ready(frames, 60.0) == [100]
    for sensor in range(3):
        frames.add(100, sensor, 61.0)
    assert ready(frames, 99.0) == []


@pytest.mark.parametrize(
    ("sensors", "share", "counts"),
    [(1, 1, True), (2, 1, False), (2, 2, True), (5, 2, False), (5, 3, True), (6, 3, True)],
)
def test_a_time_off_the_slots_makes_a_frame_only_if_half_of_the_sensors_share_it(
    sensors: int, share: int, counts: bool
) -> None:
    frames = OpenFrames(sensors, wait=1.0, period=10.0, slot_ms=100)
    for sensor in range(share):
        frames.add(101, sensor, 0.0)
    frames.add(200, 0, 0.0)
    assert sorted(ready(frames, 1.0)) == ([101, 200] if counts else [200])
    assert enough_agree(share, sensors) is counts


def test_one_of_two_sensors_cannot_make_a_time_ahead_count() -> None:
    frames = OpenFrames(2, wait=1.0, period=10.0)
    frames.add(100, 0, 0.0, ahead=3600.0)
    assert ready(frames, 10.0) == []


def test_readings_of_an_unset_clock_make_no_frame() -> None:
    frames = OpenFrames(1, wait=1.0, period=10.0)
    frames.add(0, 0, 0.0)
    assert ready(frames, 9.0) == []


def test_a_frame_that_lies_ahead_waits_until_it_has_come_or_most_sensors_say_so() -> None:
    frames = OpenFrames(4, wait=1.0, period=10.0)
    frames.add(100, 0, 0.0, ahead=3600.0)
    assert ready(frames, 3600.9) == []
    assert ready(frames, 3601.0) == [100]
    frames.add(200, 0, 4000.0, ahead=3600.0)
    frames.add(200, 1, 4000.5, ahead=3600.0)
    assert frames.take(4001.5) == {200: True}


HOUR = 3600.0


def test_frames_that_lay_ahead_of_a_clock_that_was_behind_are_ready_once_it_is_set_right() -> None:
    frames = OpenFrames(12, wait=0.5, period=1.0, slot_ms=1000)
    for second in range(1, 401):  # few of the sensors: they cannot say that the collector's clock is wrong
        for sensor in range(5):
            frames.add(1000 * second, sensor, float(second), ahead=12 * HOUR)
        assert ready(frames, second + 0.9) == []
    stuck = len(frames)
    frames.add(401_000, 11, 401.0, ahead=-0.2)
    assert len(frames) == stuck + 1
    assert len(ready(frames, 401.5)) == stuck + 1
    for second in range(402, 802):
        for sensor in range(5):
            frames.add(1000 * second, sensor, float(second), ahead=-0.2)
        assert ready(frames, second + 0.5) == [1000 * second]
    assert frames.next_due() is None


def test_a_frame_that_still_lies_ahead_when_the_clock_is_set_waits_for_the_rest() -> None:
    frames = OpenFrames(4, wait=1.0, period=10.0)
    frames.add(7_200_000, 0, 0.0, ahead=2 * HOUR)
    frames.add(3_610_000, 1, 10.0, ahead=0.0)  # an hour later by the wall, ten seconds by the other clock
    assert ready(frames, 3600.9) == [3_610_000]
    assert ready(frames, 3601.0) == [7_200_000]


@pytest.mark.parametrize("jump", [-12 * HOUR, -0.9, 0.0, 0.9])
def test_a_clock_that_is_set_back_or_hardly_at_all_changes_nothing_for_those_that_wait(jump: float) -> None:
    frames = OpenFrames(4, wait=1.0, period=10.0)
    frames.add(10_000, 0, 10.0)
    frames.add(3_610_000, 1, 10.0, ahead=HOUR)
    for _ in range(5):
        frames.add(10_000, 0, 10.5, ahead=-0.5 - jump)
    assert ready(frames, 10.9) == []
    assert ready(frames, 11.0) == [10_000]
    assert ready(frames, 10.9 + HOUR) == []
    assert ready(frames, 11.0 + HOUR) == [3_610_000]


def test_one_sensor_cannot_push_out_the_frames_of_the_others() -> None:
    frames = OpenFrames(2, wait=1.0, period=10.0)
    frames.add(5, 1, 0.0)
    for when in range(1000, 1000 + 10 * MAX_OPENED):
        frames.add(when, 0, 0.0)
    assert len(frames) == MAX_OPENED + 1
    frames.add(5, 0, 0.5)
    assert ready(frames, 0.5) == [5]
    assert len(ready(frames, 1.0)) == MAX_OPENED
    frames.add(999_999, 0, 2.0)
    assert len(frames) == 1


def test_only_so_many_frames_are_remembered() -> None:
    frames = OpenFrames(1, wait=1.0, period=10.0)
    for when in range(1, REMEMBERED + 100):
        frames.add(when, 0, 0.0)
    assert len(ready(frames, 0.0)) == REMEMBERED + 99
    frames.add(REMEMBERED, 0, 0.0)
    assert ready(frames, 9.0) == []
    frames.add(1, 0, 0.0)
    assert ready(frames, 9.0) == [1]


def test_the_newest_comes_alone_and_the_rest_in_batches() -> None:
    backlog = Backlog(10)
    backlog.add(dict.fromkeys((3, 9, 1, 7, 5), True))
    assert backlog.take(newest=6, size=2) == [9]
    assert backlog.take(newest=9, size=2) == [5, 7]
    assert backlog.take(newest=9, size=9) == [1, 3]
    assert backlog.take(newest=9, size=9) == []


def test_the_backlog_is_bounded_and_lets_the_oldest_and_the_emptiest_go() -> None:
    backlog = Backlog(3)
    backlog.add({50: False, 9: True, 8: True})
    full = backlog.overflowed
    backlog.add({10: True, 7: True})
    assert (full, backlog.overflowed) == (False, True)
    assert backlog.take(newest=99, size=9) == [8, 9, 10]
