"""Live recovery while others erase readings, recover the same frames, or change the site."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.site_queue import RecoveryState
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Result, Store
from cloakwork.readings import Frame
from tests.collect.small_sites import LINE, LONG, give, make, moment, readings, running
from tests.waiting import until


def test_results_of_readings_erased_meanwhile_are_not_published(
    watched: CollectedSite, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Solver.solve

    def solve(self: Solver, frames: Sequence[Frame], **options: Any) -> list[Result]:
        found = usual(self, frames, **options)
        sqlite_store.erase("corridor", until=moment(watched, 1))
        return found

    monkeypatch.setattr(Solver, "solve", solve)
    with running(sqlite_store, watched) as (live, told):
        give(sqlite_store, live, readings(watched, 0))
        assert live.settle(LONG)
        assert (live.state("corridor").solved, live.state("corridor").lag_ms) == (0, None)
        give(sqlite_store, live, readings(watched, 1))
        until(lambda: told)
        assert live.settle(LONG)
    assert [result.time for result in told] == [moment(watched, 1)]


def test_while_old_readings_are_erased_new_results_are_kept(
    watched: CollectedSite, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, old = Solver.solve, itertools.count()

    def solve(self: Solver, frames: Sequence[Frame], **options: Any) -> list[Result]:
        if (number := next(old)) < 3:
            store.readings.add(readings(watched, number))
            assert store.erase("corridor", until=moment(watched, number + 1)).readings == 12
        return usual(self, frames, **options)

    monkeypatch.setattr(Solver, "solve", solve)
    with running(store, watched) as (live, told):
        for count in (1, 2, 3):
            give(store, live, readings(watched, 100 + count))
            until(lambda count=count: moment(watched, 100 + count) in {each.time for each in told})  # type: ignore[misc]
    # those that followed the erased frames when they were erased are to be recovered again
    assert set(store.frames.unsolved("corridor")) <= {moment(watched, 101), moment(watched, 102)}


def test_a_frame_that_loses_readings_while_it_is_solved_is_solved_again_at_once(
    watched: CollectedSite, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, lags = Solver.solve, list[RecoveryState]()

    def solve(self: Solver, frames: Sequence[Frame], **options: Any) -> list[Result]:
        found = usual(self, frames, **options)
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


def test_a_result_is_not_repeated_when_another_collector_saved_one_from_more_sensors(
    watched: CollectedSite, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, calls, rows = Solver.solve, list[int](), readings(watched, 0)
    [alone] = Solver(watched).solve([watched.frame(rows[0].time, {row.sensor: row.value for row in rows})])
    better = replace(alone, labels=1)  # it follows sources, too

    def solve(self: Solver, frames: Sequence[Frame], **options: Any) -> list[Result]:
        calls.append(len(frames))
        sqlite_store.readings.add(rows)
        sqlite_store.results.save([better])
        return usual(self, frames, **options)

    monkeypatch.setattr(Solver, "solve", solve)
    with running(sqlite_store, watched) as (live, told):
        give(sqlite_store, live, rows[:9])
        until(lambda: calls)
        assert live.settle(LONG)
        assert live.state("corridor").solved == 0
    assert (calls, told) == ([1], [])
    assert sqlite_store.results.latest("corridor") == better


def test_outgrown_frames_of_a_site_that_lost_sensors_are_not_retried_forever(
    watched: CollectedSite, tmp_path: Path, sqlite_store: Store
) -> None:
    folder = tmp_path / "less"
    folder.mkdir()
    less = make(folder, LINE.replace("sensors = 12", "sensors = 10"))
    late = less.ids[0]
    for number in range(4):
        sqlite_store.readings.add(readings(watched, number, without=[late]))
    with running(sqlite_store, watched) as (_, told):
        until(lambda: len(told) == 4)
    sqlite_store.readings.add([row for number in range(4) for row in readings(watched, number) if row.sensor == late])
    assert len(sqlite_store.frames.outgrown("corridor")) == 4
    with running(sqlite_store, less, check=0.1) as (_, again):
        until(lambda: sqlite_store.frames.outgrown("corridor") == [])
    assert again == []
    assert {result.sensors for result in sqlite_store.results.page("corridor").items} == {11}
