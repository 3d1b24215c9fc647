"""Runs many experiments, one after the other or in parallel, and none twice."""

import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cloakwork.errors import CloakworkError, InputError
from cloakwork.parallel import Cluster
from papers.experiment import Experiment
from papers.experiments import find
from papers.store import Record, digests, is_done, library_versions, processor, read, readable, write

Progress = Callable[[str, float], None]
"""Called with the name of an experiment and the part of it that is done, from 0 to 1."""
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_REPORT_EVERY = 0.2  # seconds


@dataclass(frozen=True)
class Order:
    """Where to run and how: the folder of the results, the size and the seed."""

    folder: Path
    quick: bool
    seed: int

    def run(self, experiment: Experiment, progress: Callable[[int, int], None]) -> Record:
        """Run one experiment in this process and write its result and picture.

        Finished parts of a long experiment stay in a hidden folder until the result is written, so that an interrupted
        run continues. The name of that folder changes with the signature and the data: parts are never mixed.
        """
        began, data = time.perf_counter(), digests(experiment)
        signature = tuple(experiment.probe(self.seed).values())
        digest = sha256(repr((signature, data)).encode()).hexdigest()[:16]
        parts = self.folder / f".{experiment.name}.pieces" / f"{digest}-{'quick' if self.quick else 'full'}-{self.seed}"
        result = experiment.run(quick=self.quick, seed=self.seed, progress=progress, folder=parts)
        record = Record(result, signature, processor(), library_versions(), data, time.perf_counter() - began)
        write(record, self.folder)
        shutil.rmtree(parts, ignore_errors=True)
        with suppress(OSError):
            parts.parent.rmdir()
        return record


def run_all(
    experiments: Sequence[Experiment],
    folder: Path,
    *,
    quick: bool,
    seed: int,
    jobs: int,
    progress: Progress,
    scheduler: str | None = None,
) -> Iterator[Record]:
    """Run experiments, `jobs` at a time or on the cluster of a scheduler, long ones first; yield each record when done.

    Valid results in the folder are not run again, so that an interrupted run continues. A quick run never replaces a
    full one. A failure does not stop the other experiments; it is raised at the end.
    """
    _refuse_folder(experiments, folder, quick=quick)
    folder.mkdir(parents=True, exist_ok=True)
    done = [one for one in experiments if is_done(one, folder, quick=quick, seed=seed)]
    for one in done:
        progress(one.name, 1.0)
        yield replace(read(one.name, folder), kept=True)
    waiting = sorted((one for one in experiments if one not in done), key=lambda one: -one.minutes)
    run = _in_parallel if min(jobs, len(waiting)) > 1 else _in_turn
    failures: list[str] = []
    order = Order(folder, quick, seed)
    if scheduler is None:
        yield from run(waiting, order, jobs, progress, failures)
    elif waiting:
        yield from _on_cluster(waiting, order, scheduler, progress, failures)
    if failures:
        raise CloakworkError("; ".join(failures))


def _refuse_folder(experiments: Sequence[Experiment], folder: Path, *, quick: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give a folder.", folder=str(folder))
    records = readable([one.name for one in experiments], folder) if quick else {}
    full = [name for name, record in records.items() if not record.result.quick]
    if full:
        raise InputError(
            f"{folder} has full results of {', '.join(full)}, which a quick run would replace: give another folder.",
            folder=str(folder),
            full=full,
        )


def _in_turn(
    waiting: list[Experiment], order: Order, jobs: int, progress: Progress, failures: list[str]
) -> Iterator[Record]:
    del jobs
    for experiment in waiting:
        try:
            record = order.run(experiment, partial(_pass_on, progress, experiment.name))
        except Exception as error:
            if len(waiting) == 1:
                raise
            failures.append(_failure(experiment.name, error))
        else:
            yield record


def _on_cluster(
    waiting: list[Experiment], order: Order, scheduler: str, progress: Progress, failures: list[str]
) -> Iterator[Record]:
    """Run each experiment on a worker; an interrupted one starts again, because its parts stay on the worker."""
    with Cluster(scheduler) as cluster:
        for outcome in cluster.run(run_away, ((one.name, (one.name, order.quick, order.seed)) for one in waiting)):
            progress(outcome.name, 1.0)
            if outcome.failure:
                failures.append(f"{outcome.name} failed: {outcome.failure}")
            else:
                write(outcome.result, order.folder)
                yield outcome.result


def run_away(part: tuple[str, bool, int]) -> Record:
    """Run one experiment on a worker, which keeps no file of it."""
    name, quick, seed = part
    with TemporaryDirectory() as folder:
        return Order(Path(folder), quick, seed).run(find(name), lambda *_: None)


def _pass_on(progress: Progress, name: str, done: int, total: int) -> None:
    progress(name, done / max(total, 1))


def _failure(name: str, error: Exception) -> str:
    return f"{name} failed: {type(error).__name__}: {error}"


@dataclass(frozen=True, eq=False)
class _Job:
    name: str
    process: Any
    messages: Connection


def _in_parallel(
    waiting: list[Experiment], order: Order, jobs: int, progress: Progress, failures: list[str]
) -> Iterator[Record]:
    """Run each experiment in a process of its own."""
    running: list[_Job] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_start(waiting.pop(0).name, order))
            ready = wait([job.messages for job in running])
            for job in [job for job in running if job.messages in ready]:
                message = _receive(job)
                if isinstance(message, float):
                    progress(job.name, message)
                    continue
                running.remove(job)
                job.process.join()
                if message:
                    failures.append(str(message))
                else:
                    progress(job.name, 1.0)
                    yield read(job.name, order.folder)
    finally:
        for job in running:
            job.process.terminate()


def _start(name: str, order: Order) -> _Job:
    context = multiprocessing.get_context("spawn")
    messages, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(name, order, sender), daemon=True)
    with _one_thread():
        process.start()
    sender.close()
    return _Job(name, process, messages)


def _receive(job: _Job) -> float | str:
    """Wait for what a job sends: the part that is done, or at the end why it failed ("" if it did not)."""
    try:
        message: float | str = job.messages.recv()
    except EOFError:
        job.process.join()
        return f"{job.name} ended without a result (exit status {job.process.exitcode})."
    return message


def _work(name: str, order: Order, sender: Connection) -> None:
    last = 0.0

    def report(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > _REPORT_EVERY:
            last = time.monotonic()
            sender.send(done / max(total, 1))

    try:
        order.run(find(name), report)
        sender.send("")
    except Exception as error:
        sender.send(_failure(name, error))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Give processes that run in parallel one thread each; libraries read these variables when they load."""
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
