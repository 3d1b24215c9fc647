"""Recovery speed per frame in a batch, against solvers of single frames."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import spgl1
from rich.table import Table

from benchmarks.rivals import Answer, Clarabel, cvxpy_pursuit
from cloakwork._checks import FloatArray
from cloakwork.physics import HeatLine, sources
from cloakwork.recovery import BasisPursuit, Status, recover

SETTINGS = ((100, 50, 0.05, 500), (500, 100, 0.05, None), (1000, 500, 0.01, 2000))
SIGMA = 0.1
BATCH = 4096
PATIENCE = 60.0


@dataclass(frozen=True)
class Timing:
    """Seconds per frame, and the largest relative difference of the objective from ours."""

    seconds: float
    difference: float


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    table = Table(title="Recovery, milliseconds per frame (ratio to ours; relative difference of the objective)")
    for name in ("setting", "ours", "Clarabel", "Clarabel, projected", "CVXPY", "SPGL1", "goal"):
        table.add_column(name, justify="left" if name == "setting" else "right")
    good = True
    for n, m, T, goal in SETTINGS:
        row, met = _setting(n, m, T, goal)
        good &= met
        table.add_row(*row)
    return table, good


def _setting(n: int, m: int, T: float, goal: int | None) -> tuple[list[str], bool]:
    line = HeatLine(n=n, m=m, T=T)
    rng = np.random.default_rng(1)
    # new sources in every frame, so a frame is no help for the next
    scenes = np.stack([sources(line, list(rng.uniform(0.02, 1.0, size=2))) for _ in range(BATCH)])
    readings = line.apply(scenes) + SIGMA * rng.standard_normal((BATCH, m))
    radius = 1.05 * SIGMA * np.sqrt(m)
    estimator = BasisPursuit(radius=float(radius))
    recover(readings[:2], line, sigma=SIGMA, estimator=estimator)
    best = min(_timed(lambda: recover(readings, line, sigma=SIGMA, estimator=estimator)) for _ in range(3)) / BATCH
    ours = recover(readings, line, sigma=SIGMA, estimator=estimator)
    frames = [k for k in range(BATCH) if ours.status[k] is Status.SOLVED]
    truth = ours.map.sum(axis=1)
    spectrum = line.range()
    inside = readings @ spectrum.basis
    rivals: list[tuple[Callable[[int], Answer], int]] = [
        (lambda k: Clarabel(line.matrix).solve(readings[k], float(radius)), 3 if n > 500 else 12),
        (lambda k: Clarabel(spectrum.reduced).solve(inside[k], float(ours.radius[k])), 12),
        (lambda k: cvxpy_pursuit(line.matrix, readings[k], float(radius)), 2 if n > 500 else 5),
        (lambda k: _spgl1(line.matrix, readings[k], float(radius)), 1),
    ]
    timings = [_rival(solve, frames[:count], truth) for solve, count in rivals]
    cells = [f"n={n}, m={m}, T={T}", f"{1000 * best:.4f}", *(_cell(timing, best) for timing in timings)]
    ratio = timings[0].seconds / best
    cells.append("-" if goal is None else f"{goal}x: {'met' if ratio >= goal else 'MISSED'}")
    return cells, goal is None or ratio >= goal


def _rival(solve: Callable[[int], Answer], frames: list[int], truth: FloatArray) -> Timing:
    seconds, worst = [], 0.0
    for k in frames:
        start = time.perf_counter()
        try:
            with time_limit(PATIENCE):
                answer = solve(k)
        except TimeoutError:
            return Timing(float("inf"), float("nan"))
        seconds.append(time.perf_counter() - start)
        worst = max(worst, abs(answer.objective - truth[k]) / truth[k] if answer.solved else float("inf"))
    return Timing(float(np.median(seconds)), worst)


def _spgl1(matrix: FloatArray, readings: FloatArray, radius: float) -> Answer:
    """SPGL1 has no upper bound on f; it solves the same problem if no place reaches 1."""
    f, _, _, info = spgl1.spg_bpdn(matrix, readings, radius, iter_lim=10_000_000, opt_tol=1e-6, bp_tol=1e-6)
    return Answer(info["stat"] in {1, 4}, float(np.abs(f).sum()), f)


def _cell(timing: Timing, best: float) -> str:
    if not np.isfinite(timing.seconds):
        return f"not reached in {PATIENCE:.0f} s"
    accuracy = "not solved" if not np.isfinite(timing.difference) else f"{timing.difference:.0e}"
    return f"{1000 * timing.seconds:.2f} ({timing.seconds / best:,.0f}x; {accuracy})"


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the main thread after `seconds`."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
