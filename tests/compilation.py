"""Shares the work of compiling inner loops between the workers of a test run, where no cache has them yet."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import cloakwork
from cloakwork.accuracy import emd
from cloakwork.physics import HeatLine, Space
from cloakwork.recovery import BasisPursuit, PointSources, Tracker, recover


@cache  # the first answer counts: a worker may have begun to compile when another is started
def needs_compiling() -> bool:
    """Whether no run has compiled the loops of this tree yet."""
    return not any((Path(cloakwork.__file__).parent / "recovery").rglob("*.nbi"))


def compile_together(config: pytest.Config) -> None:
    """Let the first two workers compile half of the loops each: all would compile the same otherwise.

    No test starts before every worker has collected all tests, so none finds the cache incomplete. The other workers
    collect meanwhile, and leave the rewritten test files in the cache for these two.
    """
    worker = getattr(config, "workerinput", {})
    if worker.get("needs_compiling") and worker["workercount"] >= len(_SHARES):
        for share in _SHARES[int(worker["workerid"].removeprefix("gw")) :][:1]:
            share()


def _compile_posterior() -> None:
    for strength in (1.0, (0.0, 1.0)):
        recover(np.ones(5), HeatLine(n=10, m=5, T=0.05), sigma=0.1, estimator=PointSources(strength))


def _compile_pursuit() -> None:
    recover(np.ones(5), HeatLine(n=10, m=5, T=0.05), sigma=0.1, estimator=BasisPursuit())
    tracker = Tracker(HeatLine(n=10, m=5, T=0.05), sigma=0.1, most=2, lag=1)
    for seconds in range(3):
        tracker.step(np.ones(5), seconds)
    emd(np.eye(3)[0], np.eye(3)[1], Space.path([(0, 1), (1, 2)]))


_SHARES = (_compile_posterior, _compile_pursuit)

if __name__ == "__main__":
    for share in _SHARES:
        share()
