"""Live recovery on a real store."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.site_worker import RecoveryState, SiteWorker
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Result, Store
from cloakwork.collect.storage.results import ResultTable
from cloakwork.errors import StoreAwayError
from cloakwork.readings import Frame, ReadingScale
from tests.collect.small_sites import LONG, MANY, give, make, moment, readings, running
from tests.waiting import until


def test_a_complete_frame_is_recovered_saved_and_published(watched: CollectedSite, sqlite_store: Store) -> None:
    with running(sqlite_store, watched, wait=LONG) as (live, told):
        assert live.state("corridor").lag_ms is None
        give(sqlite_store, live, readings(watched, 0))
        until(lambda: told)
        assert live.settle(LONG)
        lag = live.state("corridor")
    [result] = told
    assert sqlite_store.results.latest("corridor") == result
    assert (result.time, result.sensors, result.failed) == (moment(watched, 0), 12, False)
    assert (lag.solved, lag.failed, lag.waiting, lag.open, lag.reason) == (1, 0, 0, 0, "")
    assert lag.delay_ms == result.solved - result.time
    assert lag.lag_ms is not None
    assert lag.lag_ms >= lag.delay_ms
    assert lag.per_second == pytest.approx(1 / 60)


def test_frames_that_wait_from_before_a_new_plan_are_not_recovered_with_its_noise(
    watched: CollectedSite, sqlite_store: Store
) -> None:
    scale = ReadingScale.of(watched.plan, watched.site.unit)
    for number, plan in enumerate(("0123456789ab", watched.plan.id)):
        sqlite_store.plans.begin("corridor", replace(scale, plan=plan), moment(watched, number))
        rows = readings(watched, number)
        sqlite_store.readings.add([row._replace(received=row.time + 1) for row in rows])
    with running(sqlite_store, watched):
        until(lambda: not sqlite_store.frames.waiting("corridor"))
    found = sqlite_store.results.at("corridor", [moment(watched, number) for number in range(2)])
    assert {result.time: result.failed for result in found} == {moment(watched, 0): True, moment(watched, 1): False}


def test_what_the_store_could_not_take_is_saved_later_and_computed_once(
    watched: CollectedSite, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve, save, calls, refusals = Solver.solve, ResultTable.save, list[int](), iter(range(3))

    def counted(self: Solver, frames: Sequence[Frame]) -> list[Result]:
        calls.append(len(frames))
        return solve(self, frames)

    def full(self: ResultTable, *rest: Any, **options: Any) -> list[Result]:
        if next(refusals, None) is not None:
            raise StoreAwayError("the disk is full")
        return save(self, *rest, **options)

    monkeypatch.setattr(Solver, "solve", counted)
    monkeypatch.setattr(ResultTable, "save", full)
    with running(sqlite_store, watched) as (live, told):
        give(sqlite_store, live, readings(watched, 0))
        until(lambda: told)
    assert (calls, next(refusals, None)) == ([1], None)


class Held:
    """A solver whose every call waits until it may go on: `calls` are the site and the times of each."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self.go_on = threading.Semaphore(0)

    def wait_for_call(self, number: int) -> None:
        """Until it is held in this call; the first is 1."""
        until(lambda: len(self.calls) == number)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    found, solve, count = Held(), Solver.solve, SiteWorker._count  # noqa: SLF001

    def held_solve(self: Solver, frames: Sequence[Frame]) -> list[Result]:
        found.calls.append((self.site.name, [frame.time for frame in frames]))
        assert found.go_on.acquire(timeout=LONG)
        return solve(self, frames)

    def counted(self: SiteWorker, results: Sequence[Result], frames: int, _: float, *rest: Any) -> None:
        count(self, results, frames, 0.1 * frames, *rest)  # not as long as the test held it: batches depend on that

    monkeypatch.setattr(Solver, "solve", held_solve)
    monkeypatch.setattr(SiteWorker, "_count", counted)
    return found


def test_where_sources_are_not_followed_the_newest_win_when_frames_come_faster_than_they_are_solved(
    tmp_path: Path, sqlite_store: Store, held: Held
) -> None:
    watched = make(tmp_path, MANY)
    with running(sqlite_store, watched) as (live, told):
        for number in range(24):
            give(sqlite_store, live, readings(watched, number))
            if number % 4 == 0:
                if number > 0:
                    held.go_on.release()
                held.wait_for_call(number // 4 + 1)
        held.go_on.release(100)
        until(lambda: len(told) == 24)
    calls = [times for _, times in held.calls]
    newest = [[moment(watched, number)] for number in (0, 4, 8, 12, 16, 20, 23)]
    assert calls[: len(newest)] == newest, "while new ones come, the newest is solved, alone"
    left = [when for call in calls[len(newest) :] for when in call]
    assert len(calls) - len(newest) < len(left), "the others are solved in batches"
    assert max(calls[len(newest)]) == max(left), "the newer ones first"
    assert sqlite_store.frames.waiting("many") == []


def test_a_defect_of_ours_fails_the_frames_at_hand_and_stops_no_other(
    watched: CollectedSite, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usual = Solver.solve

    def solve(self: Solver, frames: Sequence[Frame]) -> list[Result]:
        assert moment(watched, 0) not in [frame.time for frame in frames]
        return usual(self, frames)

    monkeypatch.setattr(Solver, "solve", solve)
    sqlite_store.readings.add(readings(watched, 0))
    with caplog.at_level(logging.CRITICAL), running(sqlite_store, watched) as (live, told):
        until(lambda: not sqlite_store.frames.waiting("corridor"))
        give(sqlite_store, live, readings(watched, 1))
        until(lambda: told)
    assert [result.time for result in told] == [moment(watched, 1)]
    bad = sqlite_store.results.get("corridor", moment(watched, 0))
    assert bad is not None
    assert bad.status == "failed: the solver raised AssertionError"


def test_a_defect_between_two_turns_does_not_end_recovery(
    watched: CollectedSite, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = iter([RuntimeError("a defect")])

    def lead() -> bool:
        for failure in failures:
            raise failure
        return True

    monkeypatch.setattr(sqlite_store, "lead", lead)
    with caplog.at_level(logging.CRITICAL), running(sqlite_store, watched) as (live, told):
        give(sqlite_store, live, readings(watched, 0))
        until(lambda: told)
    assert next(failures, None) is None


def test_a_frame_that_loses_readings_while_it_is_solved_is_solved_again_at_once(
    watched: CollectedSite, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, lags = Solver.solve, list[RecoveryState]()

    def solve(self: Solver, frames: Sequence[Frame]) -> list[Result]:
        found = usual(self, frames)
        lags.append(live.state("corridor"))
        if len(lags) == 1:
            store.erase("corridor", "s03")
        return found

    monkeypatch.setattr(Solver, "solve", solve)
    with running(store, watched) as (live, told):
        give(store, live, readings(watched, 0))
        until(lambda: told)
        assert live.settle(LONG)
        assert live.state("corridor").solved == 1
    assert [result.sensors for result in told] == [11]
    assert [(lag.solved, lag.lag_ms) for lag in lags] == [(0, None), (0, None)]
    assert store.results.latest("corridor") == told[0]
