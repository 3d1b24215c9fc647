"""Bounds on the distance of block models: how many meet, the largest gap, and how long the slowest takes."""

import time
from collections.abc import Iterator

import numpy as np
from rich.table import Table

from cloakwork._checks import FloatArray
from cloakwork.contacts import Blocks, block_distance

EXACT = 4  # groups up to which all distances are exact
RANDOM = {EXACT: 20, 5: 40, 6: 40, 8: 20}  # groups, and pairs of models
SYMMETRIC = (EXACT, 5, 6, 8)


def run() -> tuple[Table, bool]:
    """The table, and whether all distances of up to four groups are exact."""
    table = Table(title="Bounds on the distance of pairs of block models")
    for name in ("models", "groups", "exact", "largest gap", "slowest, s of one core"):
        table.add_column(name, justify="left" if name == "models" else "right")
    done = []
    for kind, groups, pairs in (
        *(("random", k, [random_pair(k, seed) for seed in range(number)]) for k, number in RANDOM.items()),
        *(("symmetric", k, list(symmetric_pairs(k))) for k in SYMMETRIC),
    ):
        gaps, times, exact = [], [], 0
        for one, two in pairs:
            start = time.process_time()
            found = block_distance(one, two)
            times.append(time.process_time() - start)
            gaps.append(0.0 if found.exact else 1 - found.lower / found.upper)
            exact += found.exact
        done.append(groups > EXACT or exact == len(pairs))
        table.add_row(kind, f"{groups}", f"{exact} of {len(pairs)}", f"{100 * max(gaps):.2f} %", f"{max(times):.0f}")
    return table, all(done)


def random_pair(k: int, seed: int) -> tuple[Blocks, Blocks]:
    """Two random models: densities uniform, or 0 and 1; shares equal, or random."""
    rng = np.random.default_rng([k, seed])
    pair = []
    for _ in range(2):
        matrix = rng.random((k, k)) if seed % 4 < 2 else rng.integers(0, 2, (k, k)).astype(np.float64)
        shares = rng.random(k) + 0.05 if seed % 2 else None
        pair.append(Blocks(np.triu(matrix) + np.triu(matrix, 1).T, shares=shares))
    return pair[0], pair[1]


def symmetric_pairs(k: int) -> Iterator[tuple[Blocks, Blocks]]:
    """Models whose groups may change places, many against shares in proportion to 1 to k."""
    shares, steps = np.arange(1.0, k + 1), np.arange(k)
    ring = np.isin(np.subtract.outer(steps, steps) % k, (1, k - 1)).astype(np.float64)
    checkers = np.add.outer(steps, steps) % 2.0
    chain = np.exp(-np.abs(np.subtract.outer(steps, steps)) / 2)
    same = Blocks(np.eye(k))

    def planted(within: float, between: float) -> FloatArray:
        return np.asarray(between + (within - between) * np.eye(k))

    for matrix in (np.eye(k), chain, planted(0.6, 0.2)):
        yield same, Blocks(matrix, shares=shares)
    for matrix in (ring, checkers, 1 - np.eye(k)):
        yield Blocks(matrix), Blocks(np.eye(k), shares=shares)
    for matrix in (ring, 1 - np.eye(k)):
        yield Blocks(matrix), same
    yield same, Blocks(np.eye(k - 1))
    yield Blocks(np.eye(k), shares=shares), Blocks(np.eye(k - 1))
    yield Blocks(ring), Blocks(ring, shares=shares)
    for matrix in (ring, checkers):
        yield Blocks(checkers, shares=shares), Blocks(matrix)
    yield Blocks(planted(0.8, 0.1)), Blocks(planted(0.1, 0.8), shares=shares)
    yield Blocks(planted(0.1, 0.8)), Blocks(planted(0.2, 0.9), shares=shares)
    yield Blocks(planted(0.8, 0.1), shares=shares), Blocks(planted(0.7, 0.05), shares=shares**2)
