"""Shares the work of compiling inner loops between the workers of a test run, where no cache has them yet."""

from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import cloakwork
from cloakwork._compile import avoid_gathers
from cloakwork.accuracy import emd
from cloakwork.physics import FloorPlan, HeatLine, Rooms, Space, Steady, floorplan
from cloakwork.recovery import BasisPursuit, FloorTracker, PointSources, Tracker, recover
from cloakwork.series import Bins, RunningSum, Stream, tally


@cache  # the first answer counts: a worker may have begun to compile when another is started
def needs_compiling() -> bool:
    """Whether no run has compiled the loops of this tree, or none since the solvers were changed."""
    solvers = Path(cloakwork.__file__).parent / "recovery"
    compiled = max((path.stat().st_mtime for path in solvers.rglob("*.nbi")), default=0.0)
    return any(path.stat().st_mtime > compiled for path in solvers.glob("*.py"))


def compile_together(config: pytest.Config) -> None:
    """Let each worker compile a part of the loops: all would compile the same otherwise.

    No test starts before every worker has collected all tests, so none finds the cache incomplete.
    """
    worker = getattr(config, "workerinput", {})
    if worker.get("needs_compiling"):
        for share in _SHARES[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
            share()


def _compile_posterior() -> None:
    for strength in (1.0, (0.0, 1.0)):
        recover(np.ones(5), HeatLine(n=10, m=5, T=0.05), sigma=0.1, estimator=PointSources(strength))


def _compile_floor() -> None:
    with patch.object(floorplan, "MAX_DENSE", 0):  # the loops of large floors
        floor = FloorPlan(Rooms.from_walls((4, 2), cell=0.5), [(0.5, 0.5), (1.5, 1.5), (3.5, 0.5)], Steady(reach=1.0))
        tracker = FloorTracker(floor, sigma=0.1, max_sources=2)
        for seconds in (0.0, 10.0):
            tracker.step(np.ones(3), seconds)


def _compile_pursuit() -> None:
    recover(np.ones(5), HeatLine(n=10, m=5, T=0.05), sigma=0.1, estimator=BasisPursuit())
    tally([0], Bins(0, 1, 1), persons=["a"], most_per_person=1)
    Stream(RunningSum(), 4, epsilon=1.0, delta=1e-6).push(1)
    tracker = Tracker(HeatLine(n=10, m=5, T=0.05), sigma=0.1, max_sources=2, lag=1)
    for seconds in range(3):
        tracker.step(np.ones(5), seconds)
    emd(np.eye(3)[0], np.eye(3)[1], Space.path([(0, 1), (1, 2)]))


_SHARES = (_compile_posterior, _compile_pursuit, _compile_floor)

if __name__ == "__main__":
    avoid_gathers()
    for share in _SHARES:
        share()
