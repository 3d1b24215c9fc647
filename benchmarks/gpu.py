"""Posteriors of many frames by the array libraries that are there.

On a machine with a GPU but without Cloakwork's own packages: python3 benchmarks/gpu.py (NumPy, SciPy, and PyTorch or
CuPy).
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

N, M, T, SIGMA = 100, 50, 0.05, 0.3
FRAMES = 1_000_000
GOAL = 1e6  # frames a second on an H200
CLOSE = 1e-9
ROUNDS = 5

Row = tuple[str, str, float, float, bool]


def run() -> tuple[Any, bool]:
    """The table, and whether all libraries give the same numbers, and a GPU enough of them."""
    table = import_module("rich.table").Table(title=f"Frames a second by array library, {time.strftime('%F')}")
    for column in ("task", "library", "a second", "difference to NumPy"):
        table.add_column(column, justify="right")
    good = True
    for task, name, speed, difference, met in rows():
        table.add_row(task, name, f"{speed:,.3g}" if speed < 1e3 else f"{speed:,.0f}", f"{difference:.0e}")
        good &= met
    return table, good


def rows() -> Iterator[Row]:
    """Task, library, frames a second, the largest difference from NumPy, and whether the goal is met."""
    batch_posterior = import_module("cloakwork.recovery.batch_posterior").batch_posterior
    places, sensors = (np.arange(1, N + 1) / N), (np.arange(1, M + 1) / M)
    matrix = np.exp(-((sensors[:, None] - places) ** 2) / (4 * T)) / np.sqrt(4 * np.pi * T)
    rng = np.random.default_rng(1)
    small = rng.standard_normal((1_000, M)) * SIGMA + matrix[:, rng.integers(0, N, 1_000)].T
    truth = batch_posterior(small, matrix, SIGMA)
    for name, to, back, wait in libraries():
        columns = to(matrix)
        ours = batch_posterior(to(small), columns, SIGMA)
        pairs = ((ours.counts, truth.counts), (ours.intensity, truth.intensity))
        difference = max(float(np.abs(back(a) - b).max()) for a, b in pairs)
        size = FRAMES if "GPU" in name else FRAMES // 20
        readings = to(np.resize(small, (size, M)))
        speed = size / _timed(partial(batch_posterior, readings, columns, SIGMA), wait, ROUNDS)[0]
        met = difference <= CLOSE and ("GPU" not in name or speed >= GOAL)
        yield f"posterior, up to 2 sources, n = {N}, m = {M}", name, speed, difference, met


def _timed(work: Callable[[], Any], wait: Callable[[], object], rounds: int) -> tuple[float, Any]:
    """The shortest time of several rounds, and the result."""
    best, result = np.inf, None
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        result = work()
        wait()
        best = min(best, time.perf_counter() - start)
    return best, result


def libraries() -> list[tuple[str, Callable[[Any], Any], Callable[[Any], Any], Callable[[], object]]]:
    """Name, how an array becomes one of the library and back, and how to wait for the device."""
    found: list[Any] = [("NumPy", np.asarray, np.asarray, lambda: None)]
    try:
        torch: Any = import_module("torch")
    except ImportError:
        torch = None
    if torch is not None:
        found.append(("PyTorch", torch.tensor, lambda x: x.numpy(), lambda: None))
        if torch.cuda.is_available():
            name = f"PyTorch, GPU: {torch.cuda.get_device_name()}"
            found.append((name, lambda x: torch.tensor(x).cuda(), lambda x: x.cpu().numpy(), torch.cuda.synchronize))
    try:
        cupy: Any = import_module("cupy")
        if not cupy.is_available():  # installed on a machine without a GPU
            return found
    except ImportError:
        return found
    found.append(("CuPy, GPU", cupy.asarray, cupy.asnumpy, cupy.cuda.Device().synchronize))
    return found


if __name__ == "__main__":
    for package in ("cloakwork", "cloakwork.recovery"):  # without imports that need more packages
        stub: Any = ModuleType(package)
        stub.__path__ = [str(Path(__file__).parents[1].joinpath("src", *package.split(".")))]
        sys.modules[package] = stub
    print(time.strftime("%F"))
    for task, library, speed, difference, met in rows():
        verdict = "met" if met else "MISSED"
        print(f"{task:45} {library:32} {speed:14,.2f}/s   difference {difference:.0e}   {verdict}", flush=True)
