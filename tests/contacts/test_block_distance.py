"""The distance of block models: brute force, two other solvers, and closed forms."""

import math
from typing import Any

import cvxpy
import numpy as np
import ot
import pytest

import cloakwork as cw
from cloakwork.contacts import BlockDistance


def two_by_two(first: cw.Blocks, second: cw.Blocks) -> float:
    """The distance of two models with two groups each, by trying all couplings on a fine grid."""
    s, t = first.shares[0], second.shares[0]
    least = math.inf
    for a in np.linspace(max(0.0, s + t - 1), min(s, t), 4_001):
        coupling = np.array([[a, s - a], [t - a, 1 - s - t + a]])
        gap = (first.matrix[:, None, :, None] - second.matrix[None, :, None, :]) ** 2
        least = min(least, float(np.einsum("ik,jl,ikjl->", coupling, coupling, gap)))
    return math.sqrt(max(least, 0.0))


def best_descent(one: cw.Blocks, two: cw.Blocks, rng: np.random.Generator, starts: int) -> float:
    """The least distance that an independent solver finds from corners of the couplings and from their middle."""
    found = []
    for start in range(starts):
        corner = ot.emd(one.shares, two.shares, rng.random((one.k, two.k)))
        first = (corner + np.outer(one.shares, two.shares)) / 2 if start % 2 else corner
        shapes = one.matrix, two.matrix, one.shares, two.shares
        found.append(ot.gromov.gromov_wasserstein2(*shapes, "square_loss", G0=first, max_iter=200))
    return math.sqrt(max(0.0, min(found)))


def random_blocks(k: int, rng: np.random.Generator, *, equal: bool, binary: bool = False) -> cw.Blocks:
    matrix = np.triu(rng.integers(0, 2, (k, k)).astype(float) if binary else rng.random((k, k)))
    return cw.Blocks(matrix + np.triu(matrix, 1).T, shares=None if equal else rng.uniform(0.05, 1.0, k))


def encloses(bounds: BlockDistance, distance: float, slack: float = 1e-9) -> bool:
    return bounds.lower - slack <= distance <= bounds.upper + slack


def test_the_distance_is_that_of_the_best_coupling() -> None:
    swapped, same = cw.Blocks([[0, 1], [1, 0]]), cw.Blocks(np.eye(2))
    a, b = cw.Blocks([[1, 0, 1], [0, 1, 0], [1, 0, 1]]), cw.Blocks([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    closed = [(swapped, same, math.sqrt(0.5)), (a, b, 0.0), (a, cw.Blocks(np.eye(2), shares=[2, 1]), 0.0)]
    for k in (2, 4):
        matrix = np.full((k, k), 0.001) + 0.049 * np.eye(k)
        closed.append((cw.Blocks(matrix), cw.Blocks([[float(matrix.mean())]]), 0.049 * math.sqrt(k - 1) / k))
    for one, two, distance in closed:
        bounds = cw.block_distance(one, two)
        assert bounds.exact
        assert encloses(bounds, distance)
    rng = np.random.default_rng(6)
    for _ in range(4):
        one, two = (random_blocks(2, rng, equal=False) for _ in range(2))
        assert cw.block_distance(one, two).upper == pytest.approx(two_by_two(one, two), abs=1e-6)


@pytest.mark.parametrize("seed", [58, 82, 135, 235, 240])
def test_different_models_are_apart(seed: int) -> None:
    """Searches that follow a rise of -1e-16, which is rounding, leave the couplings and find a distance of 0."""
    rng = np.random.default_rng(seed)
    k, l = rng.integers(1, 5, 2).tolist()  # noqa: E741
    one, two = (random_blocks(groups, rng, equal=seed % 3 == 0, binary=seed % 2 == 0) for groups in (k, l))
    bounds = cw.block_distance(one, two)
    assert bounds.exact
    assert bounds.upper > abs(one.density - two.density)  # no coupling changes the mean difference
    assert bounds.lower <= best_descent(one, two, rng, 60) <= bounds.upper + 1e-6


@pytest.mark.parametrize(("k", "skipped", "tight"), [(3, 6, False), (5, 0, True)])
def test_the_distance_is_between_those_of_two_independent_solvers(k: int, skipped: int, tight: bool) -> None:
    """Below it is a semidefinite program, which need not be tight, and above it the best of many descents."""
    rng = np.random.default_rng(3)
    drawn = []
    for _ in range(skipped + 2):
        matrix = np.triu(rng.random((k, k)))
        drawn.append(cw.Blocks(matrix + np.triu(matrix, 1).T))
    *_, one, two = drawn
    found = cw.block_distance(one, two)
    program: Any = cvxpy
    lifted = program.Variable((k * k, k * k), PSD=True)
    entries = program.sum(lifted, axis=1)
    sums = np.vstack([np.kron(np.eye(k), np.ones(k)), np.kron(np.ones(k), np.eye(k))])
    fits = [lifted >= 0, sums @ lifted == program.outer(np.full(2 * k, 1 / k), entries), sums @ entries == 1 / k]
    cross = program.Maximize(program.sum(program.multiply(np.kron(one.matrix, two.matrix), lifted)))
    below = sum((b.matrix**2).mean() for b in (one, two)) - 2 * program.Problem(cross, fits).solve(solver="CLARABEL")
    assert found.exact
    assert math.sqrt(below) - 1e-6 <= found.upper <= best_descent(one, two, rng, 8) + 1e-6
    assert (found.upper - math.sqrt(below) < 1e-5) is tight


def test_bounds_of_models_with_many_symmetries_enclose_the_distance() -> None:
    """Rooms of whole eighths each take whole groups: the sum of squares of a coupling is at most its largest entry."""
    bounds = cw.block_distance(cw.Blocks(np.eye(8)), cw.Blocks(np.eye(4), shares=[1, 1, 2, 4]))
    assert encloses(bounds, math.sqrt(1 / 8 + 22 / 64 - 2 / 8))
    assert bounds.lower > 0.6 * bounds.upper
