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
    Over couplings P of the groups, P >= 0 with their shares s and t as margins,

        delta_2^2 = min sum_ijkl P_ik P_jl (W_ij - V_kl)^2

    (McMillan, (4.1)). The upper bound is the best of several local searches, which include all permutations of up to 8
    groups of equal size. The lower bound is the larger of two: Lemma 4.4, which permutes rows and columns of up to 8
    such groups separately, and a bound by eigenvalues. S^-1/2 P T^-1/2 is a contraction that maps sqrt(t) to sqrt(s),
    so beside these directions the cross term is at most the sum of products of sorted eigenvalues of equal sign.
    Groups whose shares are whole eighths, or coarser parts, are first split into equal ones. For two groups each, the
    search is complete and the distance exact.

    >>> found = block_distance(Blocks([[0, 1], [1, 0]]), Blocks([[1, 0], [0, 1]]))
    >>> found.exact, round(found.upper, 4)
    (True, 0.7071)
    """
    for name, blocks in (("first", first), ("second", second)):
        instance_of(name, blocks, Blocks, "the densities of groups as Blocks")
    segment = min(first.k, second.k) == 1 or first.k == second.k == 2  # of all couplings, which the search covers
    parts = None if segment else _equal_parts(first.shares, second.shares)
    one, two = (first, second) if parts is None else (_split(first, parts), _split(second, parts))
    squares = sum(float(blocks.shares @ blocks.matrix**2 @ blocks.shares) for blocks in (one, two))
    degrees = np.outer(one.matrix @ one.shares, two.matrix @ two.shares)
    starts = [_cheapest(-degrees, one, two)]
    lower = max(0.0, squares - 2 * _most_cross(one, two, float((starts[0] * degrees).sum())))
    if parts is not None:
        separate, common = permuted_apart(one.matrix, two.matrix)
        lower, starts = max(lower, separate), [*starts, common]
    rng = np.random.default_rng(0)
    random, steps = MANY if _alike(one, two) else FEW
    starts += [_cheapest(rng.standard_normal(degrees.shape), one, two) for _ in range(random)]
    starts += [(start + np.outer(one.shares, two.shares)) / 2 for start in starts]
    upper = max(0.0, squares - 2 * max(_climb(one, two, start, steps) for start in starts))
    return BlockDistance(math.sqrt(upper if segment else min(lower, upper)), math.sqrt(upper))


def _equal_parts(*shares: FloatArray) -> int | None:
    """The least number of equal parts that make up all groups of both; None if there are too many."""
    for parts in range(1, MOST_PERMUTED + 1):
        if all(abs(part - max(1, round(part))) < 1e-12 for share in shares for part in (share * parts).tolist()):
            return parts
    return None


def _split(blocks: Blocks, parts: int) -> Blocks:
    copies = np.repeat(np.arange(blocks.k), np.rint(blocks.shares * parts).astype(int))
    return Blocks(blocks.matrix[np.ix_(copies, copies)])


def _alike(one: Blocks, two: Blocks) -> bool:
    return one.k == two.k and bool(np.ptp(one.shares) == np.ptp(two.shares) == 0)


def _cheapest(cost: FloatArray, one: Blocks, two: Blocks) -> FloatArray:
    """The coupling with the least total cost."""
    if _alike(one, two):
        coupling = np.zeros(cost.shape)
        coupling[linear_sum_assignment(cost)] = 1 / one.k
        return coupling
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
