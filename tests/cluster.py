"""A Dask scheduler and workers as processes, and work for them that a test can hold up."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.waiting import until


class Processes:
    """A scheduler and its workers."""

    def __init__(self, folder: Path) -> None:
        self.address, self._folder = f"tcp://127.0.0.1:{free_port()}", folder
        self._running: list[subprocess.Popen[bytes]] = []
        port = self.address.rpartition(":")[2]
        self._start("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")

    def add_worker(self, **environment: str) -> subprocess.Popen[bytes]:
        return self._start("worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", **environment)

    def _start(self, role: str, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{role}", *words]
        log = (self._folder / f"{role}-{len(self._running)}.log").open("wb")
        root = str(Path(__file__).parent.parent)  # so that workers can load `tests` and `papers`
        paths = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), root])
        settings = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", **environment}
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder, env=settings)
        log.close()
        self._running.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self._running):
            process.kill()
            process.wait()


@contextmanager
def cluster_processes(folder: Path, workers: int) -> Iterator[Processes]:
    processes = Processes(folder)
    try:
        for _ in range(workers):
            processes.add_worker()
        until(lambda: all("Registered to:" in log.read_text() for log in folder.glob("worker-*.log")))
        yield processes
    finally:
        processes.stop()


def held_up(part: tuple[Path, int]) -> tuple[int, int]:
    """Wait for a file; leave a note of the process that waits. Returns the square and that process."""
    folder, number = part
    (folder / f"{number}.{os.getpid()}").touch()
    until((folder / "go").exists)
    if number == 13:
        raise ValueError("13 is not for squares")
    return number * number, os.getpid()


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
