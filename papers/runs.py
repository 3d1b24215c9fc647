"""Many experiments, one after the other or several at once, and none twice."""

import json
import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from cloakwork.errors import CloakworkError, InputError
from papers.experiment import Experiment
from papers.origin import Origin, origin_of
from papers.pieces import Pieces
from papers.records import Record, is_done, read, readable, write
from papers.registry import find

Progress = Callable[[str, float], None]
"""Told the name of an experiment and the part of it that is done, from 0 to 1."""
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_TOLD_EVERY = 0.2  # seconds


def run_all(
    experiments: Sequence[Experiment], folder: Path, *, quick: bool, seed: int, jobs: int, progress: Progress
) -> Iterator[Record]:
    """Run experiments, `jobs` at a time, and yield each when it is done; several have a process each.

    What the folder has already, of this size and seed, by this code and from this data, is not run again: a run that
    was interrupted goes on where it was, within the longest experiments as well. A quick run does not replace a full
    one. Long experiments are begun first. One that fails does not stop the others; it is said in the end.
    """
    _refuse_folder(experiments, folder, quick=quick)
    folder.mkdir(parents=True, exist_ok=True)
    done = [one for one in experiments if is_done(one, folder, quick=quick, seed=seed)]
    for one in done:
        progress(one.name, 1.0)
        yield replace(read(one.name, folder), kept=True)
    waiting = sorted((one for one in experiments if one not in done), key=lambda one: -one.minutes)
    if min(jobs, len(waiting)) > 1:
        for name in _side_by_side(waiting, folder, quick=quick, seed=seed, jobs=jobs, progress=progress):
            yield read(name, folder)
    elif len(waiting) > 1:
        yield from _in_turn(waiting, folder, quick=quick, seed=seed, progress=progress)
    else:
        for one in waiting:
            yield run_one(one, folder, quick=quick, seed=seed, progress=partial(_pass_on, progress, one.name))


def _refuse_folder(experiments: Sequence[Experiment], folder: Path, *, quick: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give a folder.", folder=str(folder))
    found = readable([one.name for one in experiments], folder) if quick else {}
    full = [name for name, record in found.items() if not record.result.quick]
    if full:
        raise InputError(
            f"{folder} has {', '.join(full)} at full size, which a quick run would replace: give another folder.",
            folder=str(folder),
        )


def _in_turn(
    waiting: Sequence[Experiment], folder: Path, *, quick: bool, seed: int, progress: Progress
) -> Iterator[Record]:
    failed: list[str] = []
    for one in waiting:
        try:
            record = run_one(one, folder, quick=quick, seed=seed, progress=partial(_pass_on, progress, one.name))
        except Exception as error:
            failed.append(_failure(one.name, error))
        else:
            yield record
    _say(failed)


def _failure(name: str, error: Exception) -> str:
    return f"{name} failed: {type(error).__name__}: {error}"


def _say(failed: Sequence[str]) -> None:
    if failed:
        raise CloakworkError("; ".join(failed))


def _pass_on(progress: Progress, name: str, done: int, total: int) -> None:
    progress(name, done / max(total, 1))


@dataclass(frozen=True, eq=False)
class _Job:
    name: str
    process: Any
    ear: Connection


def _side_by_side(
    waiting: list[Experiment], folder: Path, *, quick: bool, seed: int, jobs: int, progress: Progress
) -> Iterator[str]:
    context = multiprocessing.get_context("spawn")
    running: list[_Job] = []
    failed: list[str] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0).name
                ear, mouth = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(name, str(folder), quick, seed, mouth), daemon=True)
                with _one_thread():
                    process.start()
                mouth.close()
                running.append(_Job(name, process, ear))
            for job in [job for job in running if job.ear in wait([one.ear for one in running])]:
                said = _heard(job, progress)
                if said is not None:
                    running.remove(job)
                    if said:
                        failed.append(said)
                    else:
                        yield job.name
    finally:
        for job in running:
            job.process.terminate()
    _say(failed)


def _heard(job: _Job, progress: Progress) -> str | None:
    """Pass on what a job says; when it has ended what went wrong, or nothing, and None while it goes on."""
    try:
        said = job.ear.recv()
    except EOFError:
        job.process.join()
        return f"{job.name} ended without a result (exit status {job.process.exitcode})."
    if isinstance(said, float):
        progress(job.name, said)
        return None
    job.process.join()
    if not said:
        progress(job.name, 1.0)
    return str(said)


def _work(name: str, folder: str, quick: bool, seed: int, mouth: Connection) -> None:
    last = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > _TOLD_EVERY:
            last = time.monotonic()
            mouth.send(done / max(total, 1))

    try:
        run_one(find(name), Path(folder), quick=quick, seed=seed, progress=tell)
        mouth.send("")
    except Exception as error:
        mouth.send(_failure(name, error))


def run_one(
    experiment: Experiment, folder: Path, *, quick: bool, seed: int, progress: Callable[[int, int], None]
) -> Record:
    """Run one experiment here, and write its result and picture to a folder; pieces of it are kept there meanwhile."""
    began, origin = time.perf_counter(), origin_of(experiment)
    kept = folder / f".{experiment.name}.pieces" / f"{_digest(origin)}-{'quick' if quick else 'full'}-{seed}"
    if isinstance(experiment.work, Pieces):
        experiment = replace(experiment, work=experiment.work.kept_in(kept))
    result = experiment.run(quick=quick, seed=seed, progress=progress)
    record = Record(result, origin, time.perf_counter() - began)
    write(record, folder)
    _tidy(kept, _digest(origin))
    return record


def _digest(origin: Origin) -> str:
    return sha256(json.dumps(asdict(origin), sort_keys=True).encode()).hexdigest()[:16]


def _tidy(done: Path, digest: str) -> None:
    """Remove the pieces of what is done, and those of other code, which nobody can go on from."""
    for path in done.parent.glob("*"):
        if path == done or not path.name.startswith(digest):
            shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        done.parent.rmdir()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes side by side get a thread each: libraries read this when they are loaded."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
