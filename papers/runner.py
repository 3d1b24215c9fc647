"""Runs many experiments, in this process or on a cluster, and none twice."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cloakwork.errors import CloakworkError, InputError
from cloakwork.parallel import PartOutcome, WorkPart, part_outcomes
from papers.experiment import Experiment
from papers.experiments import find
from papers.result import Result
from papers.store import digests, library_versions, processor, readable, valid, write

Progress = Callable[[str, float], None]
"""Called with the name of an experiment and the part of it that is done, from 0 to 1."""


@dataclass(frozen=True)
class Done:
    """A result of `run_all`, and whether it was already in the folder."""

    result: Result
    kept: bool


def run_all(
    experiments: Sequence[Experiment],
    folder: Path,
    *,
    quick: bool,
    seed: int,
    jobs: int,
    progress: Progress,
    scheduler: str | None = None,
) -> Iterator[Done]:
    """Run experiments, `jobs` at a time or on the cluster of a scheduler, long ones first; yield each result when done.

    Valid results in the folder are not run again, so that an interrupted run continues. A quick run never replaces a
    full one. A failure does not stop the other experiments; it is raised at the end.
    """
    _refuse_folder(experiments, folder, quick=quick)
    folder.mkdir(parents=True, exist_ok=True)
    waiting = []
    for one in sorted(experiments, key=lambda one: -one.minutes):
        kept = valid(one, folder, quick=quick, seed=seed)
        if kept is None:
            waiting.append(one)
        else:
            progress(one.name, 1.0)
            yield Done(kept, kept=True)
    if not waiting or (scheduler is None and min(jobs, len(waiting)) < 2):
        outcomes = _in_turn(waiting, quick, seed, progress)
    else:
        parts = [WorkPart(one.name, (one.name, quick, seed)) for one in waiting]
        outcomes = part_outcomes(run_named, parts, scheduler=scheduler, workers=jobs)
    failures = []
    for outcome in outcomes:
        progress(outcome.part.name, 1.0)
        if outcome.failure:
            failures.append(f"{outcome.part.name} failed: {outcome.failure}")
        else:
            write(outcome.result, folder)
            yield Done(outcome.result, kept=False)
    if failures:
        raise CloakworkError("; ".join(failures))


def _refuse_folder(experiments: Sequence[Experiment], folder: Path, *, quick: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give a folder.", folder=str(folder))
    found = readable([one.name for one in experiments], folder) if quick else {}
    full = [name for name, result in found.items() if not result.quick]
    if full:
        raise InputError(
            f"{folder} has full results of {', '.join(full)}, which a quick run would replace: give another folder.",
            folder=str(folder),
            full=full,
        )


def _in_turn(waiting: Sequence[Experiment], quick: bool, seed: int, progress: Progress) -> Iterator[PartOutcome]:
    for one in waiting:
        part = WorkPart(one.name, one)
        try:
            outcome = PartOutcome(part, _run(one, quick, seed, partial(_pass_on, progress, one.name)))
        except Exception as problem:
            if len(waiting) == 1:
                raise
            outcome = PartOutcome(part, failure=f"{type(problem).__name__}: {problem}")
        yield outcome


def run_named(part: tuple[str, bool, int]) -> Result:
    """Run one experiment on a worker, which keeps no file of it."""
    name, quick, seed = part
    return _run(find(name), quick, seed, lambda *_: None)


def _run(experiment: Experiment, quick: bool, seed: int, progress: Callable[[int, int], None]) -> Result:
    began, data = time.perf_counter(), digests(experiment)
    signature = tuple(experiment.probe(seed).values())
    result = experiment.run(quick=quick, seed=seed, progress=progress)
    return replace(
        result,
        signature=signature,
        processor=processor(),
        libraries=library_versions(),
        data=data,
        seconds=time.perf_counter() - began,
    )


def _pass_on(progress: Progress, name: str, done: int, total: int) -> None:
    progress(name, done / max(total, 1))
