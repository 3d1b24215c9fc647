"""Live recovery on a real store."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloakwork.collect.desk import Desk
from cloakwork.collect.live import Live
from cloakwork.collect.place import Watched
from cloakwork.collect.records import Result
from cloakwork.collect.solve import Solver, failed
from cloakwork.collect.store import Store, StoreAwayError
from cloakwork.readings import Frame
from tests.collect.live_kit import LINE, LONG, MANY, WAIT, give, make, moment, readings, running, values, wait_for


def test_a_complete_frame_is_recovered_saved_and_told(watched: Watched, shelf: Store) -> None:
    with running(shelf, watched, wait=LONG) as (live, told):
        assert live.lag("corridor").lag_ms is None
        give(shelf, live, readings(watched, 0))
        wait_for(lambda: told)
        assert live.settle(LONG)
        lag = live.lag("corridor")
    [result] = told
    assert shelf.latest("corridor") == result
    assert (result.time, result.sensors, failed(result)) == (moment(watched, 0), 12, False)
    assert (lag.solved, lag.failed, lag.waiting, lag.open, lag.reason) == (1, 0, 0, 0, "")
    assert lag.delay_ms == result.solved - result.time
    assert lag.lag_ms is not None
    assert lag.lag_ms >= lag.delay_ms
    assert lag.per_second == pytest.approx(1 / 60)


@pytest.mark.parametrize("text", [LINE, MANY], ids=["PointSources", "BasisPursuit"])
def test_a_live_result_is_that_of_the_frame_alone(text: str, tmp_path: Path, shelf: Store) -> None:
    watched = make(tmp_path, text)
    rows = readings(watched, 0, values(watched, 0.3, 0.8, seed=5))
    [alone] = Solver(watched).solve([watched.frame(rows[0].time, {row.sensor: row.value for row in rows})])
    with running(shelf, watched) as (live, told):
        give(shelf, live, rows)
        wait_for(lambda: told)
    assert replace(told[0], solved=0, took_ms=0) == replace(alone, solved=0, took_ms=0)


def test_missing_sensors_are_waited_for_and_then_done_without(watched: Watched, shelf: Store) -> None:
    with running(shelf, watched) as (live, told):
        with live._changed:  # noqa: SLF001 - nothing is taken meanwhile, however slow this machine is
            give(shelf, live, readings(watched, 0, without=["s02", "s11"]))
            assert live.lag("corridor").open == 1
        wait_for(lambda: told)
    assert (told[0].sensors, told[0].expected) == (10, 12)


def test_a_frame_that_is_completed_late_is_recovered_once_more(watched: Watched, shelf: Store) -> None:
    rows = readings(watched, 0)
    with running(shelf, watched) as (live, told):
        give(shelf, live, rows[:9])
        wait_for(lambda: told)
        give(shelf, live, rows[9:11])
        time.sleep(2 * WAIT)
        assert len(told) == 1
        give(shelf, live, rows[11:])
        wait_for(lambda: len(told) == 2)
        assert live.settle(LONG)
    assert [result.sensors for result in told] == [9, 12]
    saved = shelf.result("corridor", rows[0].time)
    assert saved == told[1]


def test_late_readings_of_a_frame_that_stays_incomplete_are_used_in_time(watched: Watched, shelf: Store) -> None:
    rows = readings(watched, 0)
    with running(shelf, watched, look=0.3) as (live, told):
        give(shelf, live, rows[:7])
        wait_for(lambda: told)
        for start, end in ((7, 9), (9, 11)):
            give(shelf, live, rows[start:end])
            wait_for(lambda end=end: told[-1].sensors == end)  # type: ignore[misc]
        wait_for(lambda: shelf.outgrown("corridor") == [])
    assert list(dict.fromkeys(result.sensors for result in told)) == [7, 9, 11]


def test_what_was_left_before_a_restart_is_recovered(watched: Watched, shelf: Store) -> None:
    for number in range(12):
        shelf.add_readings(readings(watched, number, without=["s03"] if number == 4 else []))
    with running(shelf, watched) as (live, told):
        wait_for(lambda: len(told) == 12)
        assert live.settle(LONG)
        assert not live.lag("corridor").more
    assert told[0].time == moment(watched, 11)
    assert shelf.unsolved("corridor") == []
    assert {result.time: result.sensors for result in told}[moment(watched, 4)] == 11
    with running(shelf, watched) as (live, again):
        assert live.settle(LONG)
    assert again == []


def test_more_than_the_backlog_holds_is_fetched_from_the_store(watched: Watched, shelf: Store) -> None:
    with running(shelf, watched, backlog=3) as (live, told):
        for number in range(20):
            give(shelf, live, readings(watched, number))
            assert live.lag("corridor").waiting <= 3
        wait_for(lambda: len({result.time for result in told}) == 20)
    assert shelf.unsolved("corridor") == []


def test_frames_that_grew_are_not_taken_for_given_up_when_there_was_no_room_for_them(
    watched: Watched, shelf: Store
) -> None:
    late = ["s03"]
    with running(shelf, watched) as (live, told):
        for number in (0, 1):
            give(shelf, live, readings(watched, number, without=late))
        wait_for(lambda: len(told) == 2)
    shelf.add_readings([row for number in (0, 1) for row in readings(watched, number) if row.sensor in late])
    for number in range(2, 7):
        shelf.add_readings(readings(watched, number))
    assert (len(shelf.unsolved("corridor")), len(shelf.outgrown("corridor"))) == (5, 2)
    with running(shelf, watched, backlog=5) as (_, again):
        wait_for(lambda: len(again) == 7)
    assert shelf.unsolved("corridor") + shelf.outgrown("corridor") == []


class Held:
    """A solver whose every call waits until it may go on: `calls` are the site and the times of each."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self.go_on = threading.Semaphore(0)

    def wait_for_call(self, number: int) -> None:
        """Until it is held in this call; the first is 1."""
        wait_for(lambda: len(self.calls) == number)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    found, solve, count = Held(), Solver.solve, Desk.count

    def held_solve(self: Solver, frames: Sequence[Frame], *, keep: bool = True) -> list[Result]:
        found.calls.append((self.watched.name, [frame.time for frame in frames]))
        assert found.go_on.acquire(timeout=LONG)
        return solve(self, frames, keep=keep)

    def counted(self: Desk, results: Sequence[Result], _: float, *rest: Any) -> None:
        count(self, results, 0.1 * len(results), *rest)  # not as long as the test held it: batches depend on that

    monkeypatch.setattr(Solver, "solve", held_solve)
    monkeypatch.setattr(Desk, "count", counted)
    return found


def test_when_frames_come_faster_than_they_are_solved_the_newest_win(
    watched: Watched, shelf: Store, held: Held
) -> None:
    with running(shelf, watched) as (live, told):
        for number in range(24):
            give(shelf, live, readings(watched, number))
            if number % 4 == 0:
                if number > 0:
                    held.go_on.release()
                held.wait_for_call(number // 4 + 1)
        held.go_on.release(100)
        wait_for(lambda: len(told) == 24)
    calls = [times for _, times in held.calls]
    newest = [[moment(watched, number)] for number in (0, 4, 8, 12, 16, 20, 23)]
    assert calls[: len(newest)] == newest, "while new ones come, the newest is solved, alone"
    left = [when for call in calls[len(newest) :] for when in call]
    assert len(calls) - len(newest) < len(left), "the others are solved in batches"
    assert max(calls[len(newest)]) == max(left), "the newer ones first"
    assert shelf.unsolved("corridor") == []


def test_each_site_has_its_turn(tmp_path: Path, shelf: Store, held: Held) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    busy, calm = make(folders[0]), make(folders[1], LINE.replace("corridor", "hall"))
    with running(shelf, busy, calm) as (live, told):
        for number in range(30):
            give(shelf, live, readings(busy, number))
            if number == 0:
                held.wait_for_call(1)
            if number == 10:
                give(shelf, live, readings(calm, 0))
        held.go_on.release(2)
        held.wait_for_call(3)
        assert [site for site, _ in held.calls] == ["corridor", "hall", "corridor"]
        wait_for(lambda: any(result.site == "hall" for result in told))
        assert len(told) == 2
        assert live.lag("hall").solved == 1
        held.go_on.release(100)
        wait_for(lambda: len(told) == 31)


def test_a_frame_that_fails_is_recorded_and_stops_nothing(
    watched: Watched, shelf: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usual = Watched.frame

    def spoilt(self: Watched, when: int, said: dict[str, int]) -> Frame:
        made = usual(self, when, said)
        return replace(made, steps=made.steps[:3]) if when == moment(self, 1) else made

    monkeypatch.setattr(Watched, "frame", spoilt)
    with running(shelf, watched) as (live, told), caplog.at_level(logging.CRITICAL):
        for number in range(3):
            give(shelf, live, readings(watched, number))
        wait_for(lambda: live.lag("corridor").solved == 3)
        assert live.settle(LONG)
        assert live.lag("corridor").failed == 1
    assert {result.time for result in told} == {moment(watched, 0), moment(watched, 2)}
    bad = shelf.result("corridor", moment(watched, 1))
    assert bad is not None
    assert bad.status.startswith("failed: the solver raised")
    assert shelf.unsolved("corridor") == []


def test_a_listener_that_fails_stops_nothing(watched: Watched, shelf: Store, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Result] = []

    def broken(_: Result) -> None:
        raise RuntimeError

    live = Live(shelf, {watched.name: watched}, on_result=[broken], wait=WAIT)
    live.listen(heard.append)
    live.start()
    assert live.settle(LONG)
    with caplog.at_level(logging.CRITICAL):
        for number in range(2):
            give(shelf, live, readings(watched, number))
        wait_for(lambda: len(heard) == 2)
        assert live.stop()


class Moody:
    """A store that can be away."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away = False
        self.tried = 0

    def __getattr__(self, name: str) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            if self.away and name in {"frames", "save_results", "unsolved", "outgrown"}:
                self.tried += 1
                raise StoreAwayError("the disk is on holiday")
            done: object = getattr(self._store, name)(*args, **kwargs)
            return done

        return call


def test_a_store_that_is_away_is_waited_for(watched: Watched, shelf: Store) -> None:
    moody = Moody(shelf)
    told: list[Result] = []
    live = Live(moody, {watched.name: watched}, on_result=[told.append], wait=WAIT)  # type: ignore[arg-type]
    live.start()
    try:
        assert live.settle(LONG)
        moody.away = True
        give(shelf, live, readings(watched, 0))
        wait_for(lambda: moody.tried > 2)
        assert live.lag("corridor").reason == "the disk is on holiday"
        assert told == []
        moody.away = False
        wait_for(lambda: told)
        wait_for(lambda: live.lag("corridor").reason == "")
    finally:
        assert live.stop()


def test_a_stop_is_clean_and_the_rest_waits_in_the_store(watched: Watched, shelf: Store, held: Held) -> None:
    with running(shelf, watched) as (live, told):
        for number in range(30):
            give(shelf, live, readings(watched, number))
        held.go_on.release()
        held.wait_for_call(2)
        ending = threading.Thread(target=live.stop)
        ending.start()
        wait_for(live._stopping.is_set)  # noqa: SLF001 - before the frame at hand is done
        held.go_on.release()
        ending.join(LONG)
        assert not [thread for thread in threading.enumerate() if thread.name == "cloakwork live"]
        assert len(held.calls) == 2, "it ended after the frame at hand"
        number = len(told)
        assert number < 30
        assert len(shelf.unsolved("corridor")) == 30 - number
        assert live.stop()
        held.go_on.release(100)
        live.start()
        wait_for(lambda: len(told) == 30)
    assert shelf.unsolved("corridor") == []


def test_young_frames_in_the_store_are_left_to_whoever_collects_them(watched: Watched, shelf: Store) -> None:
    """At a restart, or with several collectors: the readings of a moment may still be on their way to another one."""
    now = time.time_ns() // 1_000_000
    period = watched.schedule.period_ms
    when = now // period * period
    rows = [row._replace(time=when) for row in readings(watched, 0)[:6]]
    shelf.add_readings(rows)
    clock = [when + 100]
    told: list[Result] = []
    live = Live(shelf, {watched.name: watched}, on_result=[told.append], wait=WAIT, clock=lambda: clock[0])
    live.start()
    try:
        assert live.settle(LONG)
        time.sleep(4 * WAIT)
        assert told == []
        clock[0] += 5_000
        wait_for(lambda: told)
    finally:
        assert live.stop()
    assert told[0].sensors == 6


def test_what_cannot_be_recovered_is_not_tried_for_ever(
    watched: Watched, shelf: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A defect of ours, in whatever part: the thread lives on, and what comes later is recovered."""
    usual, tried = Solver.solve, []

    def solve(self: Solver, frames: Sequence[Frame], *, keep: bool = True) -> list[Result]:
        if moment(watched, 0) in [frame.time for frame in frames]:
            tried.append(time.monotonic())
            raise AssertionError
        return usual(self, frames, keep=keep)

    monkeypatch.setattr(Solver, "solve", solve)
    shelf.add_readings(readings(watched, 0))
    with caplog.at_level(logging.CRITICAL), running(shelf, watched, look=0.1) as (live, told):
        time.sleep(1.0)
        assert len(tried) == 1
        give(shelf, live, readings(watched, 1))
        wait_for(lambda: told)
    assert [result.time for result in told] == [moment(watched, 1)]


def test_times_that_lie_ahead_do_not_hide_what_was_left(watched: Watched, shelf: Store) -> None:
    one = readings(watched, 0)
    ahead = time.time_ns() // 1_000_000 + 3_600_000
    shelf.add_readings([one[0]._replace(seq=100 + k, time=ahead + k) for k in range(5)])
    shelf.add_readings(one)
    with running(shelf, watched, backlog=5) as (_, told):
        wait_for(lambda: told)
    assert [result.time for result in told] == [one[0].time]
