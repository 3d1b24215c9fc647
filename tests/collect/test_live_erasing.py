"""Live recovery while others erase readings, recover the same frames, or change the site."""

from collections.abc import Sequence

import pytest

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.site_worker import RecoveryState
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Result, Store
from cloakwork.readings import Frame
from tests.collect.small_sites import LONG, give, moment, readings, running
from tests.waiting import until


def test_results_of_readings_erased_meanwhile_are_not_published(
    watched: CollectedSite, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Solver.solve

    def solve(self: Solver, frames: Sequence[Frame]) -> list[Result]:
        found = usual(self, frames)
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
