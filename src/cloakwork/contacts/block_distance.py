"""How far apart two block models are, whatever the names of their groups."""

import math
from dataclasses import dataclass
from itertools import permutations
from typing import final

import numpy as np
from scipy.optimize import linear_sum_assignment, linprog

from cloakwork._checks import FloatArray, instance_of
from cloakwork.contacts.blocks import Blocks

MOST_PERMUTED = 8  # groups of equal size whose permutations are all tried
MANY, FEW = (12, 200), (3, 30)  # starts and steps of the search by assignments, and by slower linear programs
MEET = 1e-12  # squared distances that differ by less are equal


@final
@dataclass(frozen=True)
class BlockDistance:
    """A lower and an upper bound on the distance of two block models."""

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """Whether the bounds meet, up to rounding: both are then the distance."""
        return self.upper**2 - self.lower**2 <= MEET


def block_distance(first: Blocks, second: Blocks) -> BlockDistance:
    """Bound the distance delta_2 of two block models: the least root-mean-square difference over all matches of people.

    Notes
    -----
    The least of sum_ijkl P_ik P_jl (W_ij - V_kl)^2 over couplings P of the groups, squared (McMillan, (4.1)). Local
    searches give the upper bound. The lower bound is the larger of Lemma 4.4, which permutes rows and columns of up to
    8 groups of equal size separately, and of one by eigenvalues: S^-1/2 P T^-1/2 is a contraction that maps sqrt(t) to
    sqrt(s), for the shares s and t, so beside these directions the cross term is at most the sum of products of sorted
    eigenvalues of equal sign. With two groups each, the search is complete and the distance exact.

    >>> found = block_distance(Blocks([[0, 1], [1, 0]]), Blocks([[1, 0], [0, 1]]))
    >>> found.exact, round(found.upper, 4)
    (True, 0.7071)
    """
    for name, blocks in (("first", first), ("second", second)):
        instance_of(name, blocks, Blocks, "the densities of groups as Blocks")
    squares = sum(float(blocks.shares @ blocks.matrix**2 @ blocks.shares) for blocks in (first, second))
    degrees = np.outer(first.matrix @ first.shares, second.matrix @ second.shares)
    starts = [_cheapest(-degrees, first, second)]
    lower = max(0.0, squares - 2 * _most_cross(first, second, float((starts[0] * degrees).sum())))
    if _alike(first, second) and first.k <= MOST_PERMUTED:
        separate, common = permuted_apart(first.matrix, second.matrix)
        lower, starts = max(lower, separate), [*starts, common]
    rng, (random, steps) = np.random.default_rng(0), MANY if _alike(first, second) else FEW
    starts += [_cheapest(rng.standard_normal(degrees.shape), first, second) for _ in range(random)]
    starts += [(start + np.outer(first.shares, second.shares)) / 2 for start in starts]
    upper = max(0.0, squares - 2 * max(_climb(first, second, start, steps) for start in starts))
    complete = min(first.k, second.k) == 1 or first.k == second.k == 2  # couplings are a segment, and both ends starts
    return BlockDistance(math.sqrt(upper if complete else min(lower, upper)), math.sqrt(upper))


def _alike(one: Blocks, two: Blocks) -> bool:
    return one.k == two.k and bool(np.ptp(one.shares) == np.ptp(two.shares) == 0)


def _cheapest(cost: FloatArray, one: Blocks, two: Blocks) -> FloatArray:
    """The coupling with the least total cost."""
    if _alike(one, two):
        coupling = np.zeros(cost.shape)
        coupling[linear_sum_assignment(cost)] = 1 / one.k
        return coupling
    if cost.shape == (2, 2):  # the ends of a segment
        s, t = one.shares[0], two.shares[0]
        corner = min(s, t) if np.trace(cost) < cost.sum() / 2 else max(0.0, s + t - 1)
        return np.array([[corner, s - corner], [t - corner, 1 - s - t + corner]])
    margins = np.concatenate([np.kron(np.eye(one.k), np.ones(two.k)), np.kron(np.ones(one.k), np.eye(two.k))])
    found = linprog(cost.ravel(), A_eq=margins, b_eq=np.concatenate([one.shares, two.shares]))
    return np.asarray(found.x).reshape(cost.shape)


def _climb(one: Blocks, two: Blocks, coupling: FloatArray, steps: int) -> float:
    """Increase the cross term to a local maximum, by the best steps to the best corners (Frank and Wolfe)."""
    value = float((coupling * (one.matrix @ coupling @ two.matrix)).sum())
    for _ in range(steps):
        slope = one.matrix @ coupling @ two.matrix
        step = _cheapest(-slope, one, two) - coupling
        rise, bend = 2 * float((step * slope).sum()), float((step * (one.matrix @ step @ two.matrix)).sum())
        length = min(1.0, -rise / (2 * bend)) if bend < 0 else 1.0
        gain = rise * length + bend * length**2
        if gain < MEET / 10:
            break
        coupling, value = coupling + length * step, value + gain
    return value


def permuted_apart(a: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
    """Lemma 4.4, the least squared distance with rows and columns permuted separately; and the best common order."""
    k, least, best, common = len(a), math.inf, math.inf, np.arange(len(a))
    squares = (a**2).sum(axis=0)[:, None] + (b**2).sum(axis=0)
    for rows in permutations(range(k)):
        order = np.array(rows)
        cost = squares - 2 * a[order].T @ b
        least = min(least, float(cost[linear_sum_assignment(cost)].sum()))
        together = float(cost[order, np.arange(k)].sum())
        if together < best:
            best, common = together, order
    return least / k**2, np.eye(k)[common].T / k


def _most_cross(one: Blocks, two: Blocks, degrees: float) -> float:
    """An upper bound on the cross term of every coupling, from the largest product of degrees and from eigenvalues."""
    beside = []
    for blocks in (one, two):
        root = np.sqrt(blocks.shares)
        away = np.eye(blocks.k) - np.outer(root, root)
        beside.append(np.linalg.eigvalsh(away @ (root[:, None] * blocks.matrix * root) @ away))
    bound = 2 * degrees - one.density * two.density
    for sign in (1, -1):
        sorted_sizes = (sorted(np.maximum(sign * values, 0.0).tolist(), reverse=True) for values in beside)
        bound += sum(x * y for x, y in zip(*sorted_sizes, strict=False))
    return bound
