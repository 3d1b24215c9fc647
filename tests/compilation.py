"""Shares the work of compiling inner loops between the workers of a test run, where no cache has them yet.

`python -m tests.compilation` compiles them all.
"""

import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import cloakwork
from cloakwork.accuracy import emd
from cloakwork.physics import HeatLine, Space
from cloakwork.recovery import BasisPursuit, PointSources, Tracker, recover

PATIENCE = 300.0  # seconds; a worker that waits longer compiles by itself


@cache  # the first answer counts: a worker may have begun to compile when another is started
def shared_folder() -> TemporaryDirectory[str] | None:
    """A folder for all workers of a run, made by the process that starts them; None if everything is compiled."""
    cached = any((Path(cloakwork.__file__).parent / "recovery").rglob("*.nbi"))
    return None if cached else TemporaryDirectory(prefix="cloakwork-tests-")


def compile_together(config: pytest.Config) -> None:
    """Let two workers compile half of the loops each, while the others wait: all would compile the same otherwise."""
    worker = getattr(config, "workerinput", {})
    if "shared_folder" not in worker or worker["workercount"] < len(_SHARES):
        return
    folder = Path(worker["shared_folder"])
    number = int(worker["workerid"].removeprefix("gw"))
    if number < len(_SHARES):
        _SHARES[number]()
        (folder / str(number)).touch()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and len(list(folder.iterdir())) < len(_SHARES):
        time.sleep(0.1)


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
