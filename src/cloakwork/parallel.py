"""Long work in parts: in processes of this machine, or on the workers of a Dask scheduler on any machines."""

import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from itertools import islice
from multiprocessing import active_children, get_context
from pathlib import Path
from platform import python_version
from typing import Any

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork._extras import optional_parts
from cloakwork._files import write_durably
from cloakwork.errors import ClusterError, InputError

ANSWER_S = 10.0  # for a scheduler to answer, and for its first worker
ALONE_S = 60.0  # without any worker before the work is given up
AHEAD = 2  # parts that are sent ahead for each worker
_POLL_S = 1.0
_MARK = b"cloakwork"  # key of a Parquet file's metadata
_LIBRARIES = ("cloakwork", "numba", "numpy", "pyarrow", "scipy")


@dataclass(frozen=True, eq=False)
class WorkPart:
    """One part of long work: its argument, a `digest` of all that its result depends on, and the share done with it."""

    name: str
    argument: Any
    digest: str = ""
    share: float = 0.0


@dataclass(frozen=True, eq=False)
class PartOutcome:
    """The end of one part: its result, or why it failed."""

    part: WorkPart
    result: Any = None
    failure: str = ""


def part_outcomes(
    work: Callable[[Any], Any],
    parts: Iterable[WorkPart],
    *,
    scheduler: str | None = None,
    workers: int | None = None,
) -> Generator[PartOutcome]:
    """Run `work` on the argument of each part and yield each outcome when it is there, in any order.

    Parameters
    ----------
    work
        A function of a module that workers can import.
    parts
        They are taken from the iterable as workers become free, so it may be longer than memory.
    scheduler
        Address of a Dask scheduler, such as `tcp://10.0.0.5:8786`; by default this machine does the work.
    workers
        Processes on this machine; by default one for each core, and a single one is this process.

    Notes
    -----
    A part must depend on its argument alone: then the result is the same on any number of workers. Linear algebra has
    one thread, because sums over several threads are rounded in another order. Every worker must have the same versions
    as this process, of Cloakwork down to its source; a part refuses to run on another.

    A part whose Dask worker dies is run again elsewhere; after it has killed `allowed-failures` workers (a setting of
    Dask, 3) it counts as failed. The argument of a part travels with it, so no worker needs the files of this machine.
    """
    number = workers or os.cpu_count() or 1
    if scheduler is None and number == 1:
        for part in parts:
            yield _outcome(part, partial(_run_part, versions(), work, part.argument))
        return
    running: dict[Future[Any], WorkPart] = {}
    source, alive = iter(parts), time.monotonic()
    with _processes(number) if scheduler is None else _cluster(scheduler) as (executor, count_workers):
        while True:
            ready = count_workers()
            for part in islice(source, max(AHEAD * ready - len(running), 0 if running else 1)):
                running[executor.submit(_run_part, versions(), work, part.argument)] = part
            if not running:
                return
            for future in wait(running, timeout=_POLL_S, return_when=FIRST_COMPLETED).done:
                yield _outcome(running.pop(future), future.result)
            if ready:
                alive = time.monotonic()
            elif time.monotonic() - alive > ALONE_S:
                raise ClusterError("all workers are gone: start workers, and run this again.", scheduler=scheduler)


@contextmanager
def _processes(number: int) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """Processes of this machine, which leave Ctrl-C to this one."""
    before = set(active_children())
    pool = ProcessPoolExecutor(number, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN))
    try:
        yield pool, lambda: number
    except BrokenProcessPool:
        raise ClusterError(
            "a process of this machine died, perhaps for lack of memory: run this again, with fewer programs beside it."
        ) from None
    finally:
        for process in set(active_children()) - before:
            process.terminate()  # nobody waits for what it still does
        pool.shutdown(cancel_futures=True)


@contextmanager
def _cluster(scheduler: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """The workers of a Dask scheduler, and a function that counts their threads."""
    with optional_parts():
        import dask  # noqa: PLC0415 - it takes seconds to load
        import distributed  # noqa: PLC0415

    def threads() -> int:
        try:
            return sum(client.nthreads().values())
        except OSError:
            raise _lost(scheduler) from None

    connect: Any = distributed.Client
    try:
        client = connect(scheduler, timeout=ANSWER_S, set_as_default=False)
    except OSError:
        raise ClusterError(
            f"no Dask scheduler answers at {scheduler}: check the address, or start one with `dask scheduler`.",
            scheduler=scheduler,
        ) from None
    except ValueError as problem:
        raise InputError(
            f"scheduler {scheduler}: this is no address ({problem}). Give one such as tcp://10.0.0.5:8786.",
            scheduler=scheduler,
        ) from None
    # a part carries its data on purpose: data on a worker would be lost with it
    with client, dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GiB"}):
        try:
            client.wait_for_workers(1, timeout=ANSWER_S)
        except TimeoutError:
            raise ClusterError(
                f"the scheduler at {scheduler} has no worker: start some with `dask worker {scheduler}`.",
                scheduler=scheduler,
            ) from None
        executor = client.get_executor(pure=False)
        try:
            yield executor, threads
        except CancelledError:
            raise _lost(scheduler) from None
        finally:
            executor.shutdown(wait=False)


def _lost(scheduler: str) -> ClusterError:
    return ClusterError(
        f"the scheduler at {scheduler} is gone: start it again, and run this again.", scheduler=scheduler
    )


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

    A part that is in the folder with the same digest is not done again, so the same call resumes.
    """
    with optional_parts():
        import pyarrow as pa  # noqa: PLC0415 - large
        import pyarrow.parquet as pq  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    run, farthest = PartsDone(), 0.0

    def missing() -> Iterator[WorkPart]:
        for part in parts:
            file = folder / f"{part.name}.parquet"
            with suppress(pa.ArrowException, OSError):  # a damaged file is written again
                if (pq.read_schema(file).metadata or {}).get(_MARK) == part.digest.encode():
                    run.kept += 1
                    continue
            yield part

    for outcome in part_outcomes(work, missing(), scheduler=scheduler):
        part = outcome.part
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


@cache
def versions() -> dict[str, str]:
    """The versions that results depend on: of Python, the libraries that compute, and the source of this package."""
    digest, root = sha256(), Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    found = {name: version(name) for name in _LIBRARIES}
    return {"Python": python_version()} | found | {"source of cloakwork": digest.hexdigest()[:12]}


def _run_part(expected: dict[str, str], work: Callable[[Any], Any], part: Any) -> Any:
    """Run one part on a worker; refuses to on one that has other versions."""
    here = versions()
    differing = [
        f"{name} {here[name]} instead of {wanted}" for name, wanted in expected.items() if here[name] != wanted
    ]
    if differing:
        raise ClusterError(
            f"a worker has {', '.join(differing)}: install the same versions on every worker.", versions=here
        )
    with threadpool_limits(1):
        return work(part)


def _outcome(part: WorkPart, result: Callable[[], Any]) -> PartOutcome:
    """The end of a part; raises errors of the workers, which are not the part's fault."""
    try:
        return PartOutcome(part, result=result())
    except (ClusterError, CancelledError, BrokenProcessPool):
        raise
    except ModuleNotFoundError as problem:
        raise ClusterError(f"a worker has no module {problem.name}: install it there.", module=problem.name) from None
    except Exception as problem:
        return PartOutcome(part, failure=f"{type(problem).__name__}: {problem}")
