"""Work in parts on a Dask cluster: the processes of this machine, or the workers of a scheduler on any machines.

Without Dask, this process does the parts one after the other.
"""

import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from platform import python_version
from typing import Any, Self

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork._extras import optional_parts
from cloakwork._files import write_durably
from cloakwork.errors import ClusterError, InputError

ANSWER_S = 10.0  # for a scheduler to answer, and for its first worker
ALONE_S = 60.0  # without any worker before the work is given up
AHEAD = 2  # parts that are sent ahead for each thread of a worker
_POLL_S = 1.0
_MARK = b"cloakwork"  # key of a Parquet file's metadata
_LIBRARIES = ("cloakwork", "numba", "numpy", "pyarrow", "scipy")


@dataclass(frozen=True, eq=False)
class PartOutcome:
    """The end of one part: its result, or why it failed."""

    name: str
    result: Any = None
    failure: str = ""


class Cluster:
    """Workers that run parts of some work. Use it as a context.

    Parameters
    ----------
    scheduler
        Address of a Dask scheduler, such as `tcp://10.0.0.5:8786`; by default a cluster of processes on this machine
        for as long as the context lasts.
    workers
        Processes of the cluster on this machine; by default one for each core.

    Notes
    -----
    A part must depend on its argument alone: then the result is the same on any number of workers. Linear algebra has
    one thread in each worker, because sums over several threads are rounded in another order. Every worker must have
    the same versions as this process, of Cloakwork down to its source; a part refuses to run on another.

    A part whose worker dies is run again elsewhere; after it has killed `allowed-failures` workers (a setting of
    Dask, 3) it counts as failed. The argument of a part travels with it, so no worker needs the files of this machine.
    """

    def __init__(self, scheduler: str | None = None, *, workers: int | None = None) -> None:
        self._scheduler, self._workers = scheduler, workers
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        dask, distributed = _engine()
        with ExitStack() as stack:
            # a part carries its data on purpose: data on a worker would be lost with it
            stack.enter_context(dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GiB"}))
            address: Any = self._scheduler
            if address is None:
                with _interrupts_spare_workers():
                    local = distributed.LocalCluster(
                        n_workers=self._workers,
                        threads_per_worker=1,
                        dashboard_address="127.0.0.1:0",
                        silence_logs="ERROR",
                    )
                address = stack.enter_context(local)
            self._client = stack.enter_context(self._connected(distributed, address))
            self._check_workers()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, work: Callable[[Any], Any], parts: Iterable[tuple[str, Any]]) -> Generator[PartOutcome]:
        """Run `work` on named parts and yield each outcome when it is there, in any order.

        `work` is a function of a module that workers can import. Parts are taken from the iterable as workers become
        free, so it may be longer than memory.
        """
        running: dict[Any, str] = {}
        source, alive = iter(parts), time.monotonic()
        while True:
            room = max(AHEAD * self._threads - len(running), 0 if running else 1)
            for name, part in islice(source, room):
                future = self._client.submit(_run_part, versions(), work, part, pure=False)
                running[future] = name
            if not running:
                return
            for future in self._finished(list(running)):
                yield _outcome(running.pop(future), future)
            if self._threads:
                alive = time.monotonic()
            elif time.monotonic() - alive > ALONE_S:
                raise ClusterError("all workers are gone: start workers, and run this again.", scheduler=self._name)

    @property
    def _name(self) -> str:
        return self._scheduler or "this machine"

    @property
    def _threads(self) -> int:
        """Threads of all workers."""
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            raise self._lost() from None

    def _connected(self, distributed: Any, address: Any) -> Any:
        try:
            return distributed.Client(address, timeout=ANSWER_S, set_as_default=False)
        except OSError:
            raise ClusterError(
                f"no Dask scheduler answers at {self._name}: check the address, or start one with `dask scheduler`.",
                scheduler=self._name,
            ) from None
        except ValueError as problem:
            raise InputError(
                f"scheduler {self._name}: this is no address ({problem}). Give one such as tcp://10.0.0.5:8786.",
                scheduler=self._name,
            ) from None

    def _check_workers(self) -> None:
        """Refuse a cluster without workers, or with workers of other versions."""
        try:
            self._client.wait_for_workers(1, timeout=ANSWER_S)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler at {self._name} has no worker: start some with `dask worker {self._name}`.",
                scheduler=self._name,
            ) from None
        for worker, found in self._client.run(versions, on_error="return").items():
            if isinstance(found, Exception):
                raise ClusterError(
                    f"the worker at {worker} cannot load Cloakwork ({found}): install it there.", worker=worker
                )
            _compare(worker, found, versions())

    def _finished(self, running: list[Any]) -> list[Any]:
        """Those that ended, after a short wait if none has."""
        _, distributed = _engine()
        try:
            with self._client.as_current():
                distributed.wait(running, timeout=_POLL_S, return_when="FIRST_COMPLETED")
        except TimeoutError:
            pass
        except distributed.client.FuturesCancelledError:
            raise self._lost() from None
        if self._client.status != "running":
            raise self._lost()
        return [future for future in running if future.done()]

    def _lost(self) -> ClusterError:
        return ClusterError(
            f"the scheduler at {self._name} is gone: start it again, and run this again.", scheduler=self._name
        )


@dataclass(frozen=True, eq=False)
class WorkPart:
    """One part of long work: its argument, a `digest` of all that its result depends on, and the share done with it."""

    name: str
    argument: Any
    digest: str
    share: float


@dataclass(eq=False)
class PartsDone:
    """What became of the parts of a run: their names, how many were `kept` from before, and the rows written."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    kept: int = 0
    rows: int = 0


def run_parts(
    work: Callable[[Any], Any],
    parts: Iterable[WorkPart],
    folder: Path,
    *,
    scheduler: str | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> PartsDone:
    """Run `work`, which returns an Arrow table, on parts, and write a Parquet file for each into a folder.

    A part that is in the folder with the same digest is not done again, so the same call resumes. The parts run on a
    Dask cluster of the scheduler or of this machine; without Dask, in this process.
    """
    with optional_parts():
        import pyarrow as pa  # noqa: PLC0415 - large
        import pyarrow.parquet as pq  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    run, sent, farthest = PartsDone(), dict[str, WorkPart](), 0.0

    def missing() -> Iterator[tuple[str, Any]]:
        for part in parts:
            file = folder / f"{part.name}.parquet"
            with suppress(pa.ArrowException, OSError):  # a damaged file is written again
                if (pq.read_schema(file).metadata or {}).get(_MARK) == part.digest.encode():
                    run.kept += 1
                    continue
            sent[part.name] = part
            yield part.name, part.argument

    with ExitStack() as stack:
        here = scheduler is None and find_spec("distributed") is None
        if here:
            stack.enter_context(threadpool_limits(1))  # as on a worker
        for outcome in (_run_here if here else stack.enter_context(Cluster(scheduler)).run)(work, missing()):
            part = sent.pop(outcome.name)  # in any order
            if outcome.failure:
                run.failed[part.name] = outcome.failure
            else:
                table, target = outcome.result.replace_schema_metadata({_MARK: part.digest}), pa.BufferOutputStream()
                pq.write_table(table, target, compression="zstd")
                write_durably(folder / f"{part.name}.parquet", target.getvalue().to_pybytes())
                run.done.append(part.name)
                run.rows += len(table)
            progress(farthest := max(farthest, part.share))
    return run


def _run_here(work: Callable[[Any], Any], parts: Iterable[tuple[str, Any]]) -> Iterator[PartOutcome]:
    for name, part in parts:
        try:
            outcome = PartOutcome(name, result=work(part))
        except ModuleNotFoundError:
            raise
        except Exception as problem:
            outcome = PartOutcome(name, failure=f"{type(problem).__name__}: {problem}")
        yield outcome


@contextmanager
def _interrupts_spare_workers() -> Iterator[None]:
    """Let processes started here ignore Ctrl-C, which reaches them too; the cluster ends them, without a traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change this
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@cache
def versions() -> dict[str, str]:
    """The versions that results depend on: of Python, the libraries that compute, and the source of this package."""
    digest, root = sha256(), Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    found = {name: version(name) for name in _LIBRARIES}
    return {"Python": python_version()} | found | {"source of cloakwork": digest.hexdigest()[:12]}


def _engine() -> tuple[Any, Any]:
    """Dask and its scheduler, which take seconds to load."""
    with optional_parts():
        import dask  # noqa: PLC0415
        import distributed  # noqa: PLC0415
    return dask, distributed


def _run_part(expected: dict[str, str], work: Callable[[Any], Any], part: Any) -> Any:
    """Run one part on a worker, which may have joined after the first check."""
    _compare("this address", versions(), expected)
    threadpool_limits(1)  # for good: a worker's threads share it
    return work(part)


def _compare(worker: str, found: dict[str, str], expected: dict[str, str]) -> None:
    """Refuse a worker with other versions."""
    differing = {name: (found.get(name, "none"), expected[name]) for name in expected}
    listed = [f"{name} {there} instead of {here}" for name, (there, here) in differing.items() if there != here]
    if listed:
        raise ClusterError(
            f"the worker at {worker} has {', '.join(listed)}: install the same versions on every worker.",
            worker=worker,
            versions=found,
        )


def _outcome(name: str, future: Any) -> PartOutcome:
    """The end of a part; raises errors of the cluster, which are not the part's fault."""
    try:
        return PartOutcome(name, result=future.result())
    except ClusterError:
        raise
    except ModuleNotFoundError as problem:
        raise ClusterError(f"a worker has no module {problem.name}: install it there.", module=problem.name) from None
    except Exception as problem:
        if type(problem).__name__ == "KilledWorker":
            return PartOutcome(name, failure="every worker that ran it died, perhaps for lack of memory")
        return PartOutcome(name, failure=f"{type(problem).__name__}: {problem}")
    finally:
        future.release()
