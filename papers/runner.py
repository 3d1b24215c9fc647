"""Runs many experiments, on this machine or on a cluster, and none twice."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cloakwork.errors import CloakworkError, InputError
from cloakwork.parallel import WorkPart, part_outcomes
from papers.experiment import Experiment
from papers.experiments import find
from papers.result import Result
from papers.store import digests, library_versions, processor, readable, valid, write


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
    scheduler: str | None = None,
) -> Iterator[Done]:
    """Run experiments, `jobs` at a time or on the cluster of a scheduler, long ones first; yield each result when done.

    Valid results in the folder are drawn again and not run again, so that an interrupted run continues. A quick run
    never replaces a full one. A failure does not stop the other experiments; it is raised at the end.
    """
    _refuse_folder(experiments, folder, quick=quick)
    folder.mkdir(parents=True, exist_ok=True)
    waiting = []
    for one in sorted(experiments, key=lambda one: -one.minutes):
        kept = valid(one, folder, quick=quick, seed=seed)
        if kept is None:
            waiting.append(WorkPart(one.name, (one.name, quick, seed)))
        else:
            write(kept, folder)
            yield Done(kept, kept=True)
    failures = []
    for outcome in part_outcomes(run_named, waiting, scheduler=scheduler, workers=min(jobs, max(len(waiting), 1))):
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


def run_named(part: tuple[str, bool, int]) -> Result:
    """Run one experiment on a worker, which keeps no file of it."""
    name, quick, seed = part
    experiment, began = find(name), time.perf_counter()
    signature = tuple(experiment.probe(seed).values())
    return replace(
        experiment.run(quick=quick, seed=seed),
        signature=signature,
        processor=processor(),
        libraries=library_versions(),
        data=digests(experiment),
        seconds=time.perf_counter() - began,
    )
