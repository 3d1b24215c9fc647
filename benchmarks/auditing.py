"""The practical auditor against its goals: false alarms, catches, reports until a violation, and time."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.mechanisms import Case, boundary_cases, broken_cases, gaussian, gaussian_sigma, laplace
from cloakwork.auditing import Audit, Verdict, audit

AUDITS = 200
FALSE_ALARM_REPORTS = 20_000
CATCHES = 5
MEDIANS = 25
PLANNED = ((1e-2, 0.5, 620), (1e-2, 0.7, 3_800), (1e-2, 0.9, 62_000), (1e-3, 0.5, 2_200), (1e-3, 0.7, 19_000))
PLANNED_FAR = ((1e-5, 0.5, 20_000),)
MOST = 500_000
SECONDS = 10.0


@dataclass(frozen=True)
class Job:
    """One audit of a named case, or of Gaussian noise that is `scale` of what delta asks for."""

    group: str
    name: str
    seed: int
    reports: int
    delta: float = 0.0
    scale: float = 0.0


def work(job: Job) -> Audit:
    """Do one audit; mechanisms are looked up here, since functions made on the fly do not travel between processes."""
    case = _case(job)
    with threadpool_limits(1):
        return audit(
            case.mechanism,
            epsilon=case.epsilon,
            delta=case.delta,
            reports=job.reports,
            rng=np.random.default_rng(job.seed),
        )


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    table = Table(title="The practical auditor at confidence 0.95")
    for name in ("what", "case", "found", "goal", ""):
        table.add_column(name, justify="left" if name in {"what", "case"} else "right")
    met = True
    with ProcessPoolExecutor() as pool:
        for rows in (_false_alarms, _catches, _medians):
            for row in rows(pool):
                met &= row[-1]
                table.add_row(*row[:-1], "met" if row[-1] else "MISSED")
    row = _speed()
    table.add_row(*row[:-1], "met" if row[-1] else "MISSED")
    return table, met and row[-1]


def _false_alarms(pool: ProcessPoolExecutor) -> Iterable[Any]:
    for case in boundary_cases():
        jobs = [Job("honest", case.name, seed, FALSE_ALARM_REPORTS) for seed in range(AUDITS)]
        found = list(pool.map(work, jobs, chunksize=5))
        alarms = sum(result.verdict is Verdict.VIOLATION for result in found)
        withheld = sum(result.verdict is Verdict.WITHHELD for result in found)
        yield (
            "false alarms",
            f"{case.name}, {AUDITS} audits of {FALSE_ALARM_REPORTS:,}",
            f"{alarms} (withheld {withheld})",
            f"{AUDITS // 20} (0)",
            alarms <= AUDITS // 20 and not withheld,
        )


def _catches(pool: ProcessPoolExecutor) -> Iterable[Any]:
    for case in broken_cases():
        found = list(pool.map(work, [Job("broken", case.name, seed, MOST) for seed in range(CATCHES)]))
        caught = [result.reports_used for result in found if result.verdict is Verdict.VIOLATION]
        yield (
            "found after, most of 5",
            case.name,
            f"{max(caught):,}" if len(caught) == CATCHES else f"{CATCHES - len(caught)} missed",
            f"{MOST:,}",
            len(caught) == CATCHES,
        )


def _medians(pool: ProcessPoolExecutor) -> Iterable[Any]:
    for delta, scale, planned in (*PLANNED, *PLANNED_FAR):
        jobs = [Job("gaussian", "", seed, MOST, delta, scale) for seed in range(MEDIANS)]
        median = float(np.median([result.reports_used for result in pool.map(work, jobs)]))
        yield (
            "median reports",
            f"Gaussian, claim (1, {delta:g}), {scale:g} of the noise",
            f"{median:,.0f}",
            f"{3 * planned:,}",
            median <= 3 * planned,
        )


def _speed() -> Any:
    start = time.perf_counter()
    result = audit(laplace(1.0), epsilon=1.0, reports=MOST, rng=np.random.default_rng(1))
    seconds = time.perf_counter() - start
    return ("time", f"{result.reports_used:,} numbers", f"{seconds:.1f} s", f"{SECONDS:g} s", seconds < SECONDS)


def _case(job: Job) -> Case:
    if job.group == "gaussian":
        return Case("", gaussian(job.scale * gaussian_sigma(1.0, job.delta)), 1.0, job.delta)
    cases: Callable[[], list[Case]] = boundary_cases if job.group == "honest" else broken_cases
    return next(case for case in cases() if case.name == job.name)
