"""Batch work by the array libraries that are there: posteriors of many frames, and maps spread over large networks.

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
NODES, TAU, ERROR = 1_000_000, 1.0, 1e-10
MAPS = 16

Row = tuple[str, str, float, float, bool]


def run() -> tuple[Any, bool]:
    """The table, and whether all libraries give the same numbers, and a GPU enough of them."""
    table = import_module("rich.table").Table(title=f"Frames and maps a second by array library, {time.strftime('%F')}")
    for column in ("task", "library", "a second", "difference to NumPy"):
        table.add_column(column, justify="right")
    good = True
    for task, name, speed, difference, met in rows():
        table.add_row(task, name, f"{speed:,.3g}" if speed < 1e3 else f"{speed:,.0f}", f"{difference:.0e}")
        good &= met
    return table, good


def rows() -> Iterator[Row]:
    """Task, library, frames or maps a second, the largest difference from NumPy, and whether the goal is met."""
    yield from _posteriors()
    yield from _networks("grid", _streets())
    yield from _networks("hubs", _hubs())


def _posteriors() -> Iterator[Row]:
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


def _networks(network: str, pairs: Any) -> Iterator[Row]:
    """Heat over a network from `MAPS` maps at once, by the Chebyshev sum of `Graph.batch_apply`; one map by CPUs."""
    array_sum = import_module("cloakwork.physics.array_sum")
    *csr, coefficients = _doubled(pairs)
    maps = np.zeros((NODES, MAPS))
    maps[np.random.default_rng(1).integers(0, NODES, MAPS), np.arange(MAPS)] = 1.0
    truth = np.zeros(0)
    for name, to, back, wait in libraries():
        columns = to(maps if "GPU" in name else maps[:, :1].copy())
        matrix = array_sum.sparse_like(*csr, columns)
        work = partial(array_sum.chebyshev_sum, matrix, coefficients, columns)
        seconds, result = _timed(work, wait, ROUNDS if "GPU" in name else 1)
        first = back(result)[:, 0]
        truth = truth if len(truth) else first
        difference = float(np.abs(first - truth).max())
        task = f"{network}, {NODES:,} nodes, {len(coefficients)} terms"
        yield task, name, columns.shape[1] / seconds, difference, difference <= CLOSE


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


def _streets() -> Any:
    """Edges of a square grid."""
    side = int(np.sqrt(NODES))
    k = np.arange(side * side).reshape(side, side)
    return np.concatenate([np.stack([a.ravel(), b.ravel()]) for a, b in ((k[:, :-1], k[:, 1:]), (k[:-1], k[1:]))], 1)


def _hubs() -> Any:
    """Edges of a network with hubs: five of each node, to the older ones in proportion to about their degree."""
    young = np.repeat(np.arange(1, NODES), 5)
    old = (young * np.random.default_rng(2).random(len(young)) ** 2).astype(np.int64)
    keys = np.unique(old * NODES + young)
    return np.stack([keys // NODES, keys % NODES])


def _doubled(pairs: Any) -> tuple[Any, ...]:
    """2 (1 - 2 L / bound) by rows, and the coefficients of its Chebyshev sum; as in `NetworkKernel`, by NumPy alone."""
    rows, near = np.concatenate([pairs, pairs[::-1], np.arange(NODES)[None].repeat(2, 0)], axis=1)
    degrees = np.bincount(pairs.ravel(), minlength=NODES).astype(float)
    beyond = np.bincount(rows, weights=degrees[near], minlength=NODES) - degrees
    bound = float((degrees + beyond / degrees).max()) * (1 + 1e-12)
    values = np.where(rows == near, 2 - 4 * degrees[rows] / bound, 4 / bound)
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate([[0], np.cumsum(degrees.astype(np.int64) + 1)])
    c, points = TAU * bound / 2, 4096
    angles = np.pi * (np.arange(points) + 0.5) / points
    function = np.exp(c * (np.cos(angles) - 1)) * 2 / points
    terms = np.array([function @ np.cos(k * angles) for k in range(int(12 * np.sqrt(c) + 60))])
    terms[0] /= 2
    tail = np.cumsum(terms[::-1])[::-1]
    kept = terms[: int(np.argmax(tail < ERROR))]
    return starts.astype(np.int32), near[order].astype(np.int32), values[order], kept


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
    for package in ("cloakwork", "cloakwork.physics", "cloakwork.recovery"):  # without imports that need more packages
        stub: Any = ModuleType(package)
        stub.__path__ = [str(Path(__file__).parents[1].joinpath("src", *package.split(".")))]
        sys.modules[package] = stub
    print(time.strftime("%F"))
    for task, library, speed, difference, met in rows():
        verdict = "met" if met else "MISSED"
        print(f"{task:45} {library:32} {speed:14,.2f}/s   difference {difference:.0e}   {verdict}", flush=True)
