"""How far apart two block models are, whatever the names of their groups."""

import math
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog

from cloakwork._checks import FloatArray, count, instance_of
from cloakwork.contacts.block_search import MOST_PERMUTED, branch, margins, relax
from cloakwork.contacts.block_structure import most_by_columns, most_of_equal_rows, most_of_planted
from cloakwork.contacts.blocks import Blocks

MOST_CELLS = 64  # pairs of groups for which the distance is exact
MOST_SUPPORTED = 16  # pairs of groups whose sets are all tried
MANY, FEW = (4, 100), (2, 30)  # starts and steps of the search by assignments, and by slower linear programs
LEAST_GAIN = 1e-13
CLOSE, CLOSEST = 1e-5, 1e-7  # bounds that differ by less, of the distance or in all, meet


@final
@dataclass(frozen=True)
class BlockDistance:
    """A lower and an upper bound on the distance of two block models.

    >>> BlockDistance(lower=0.69, upper=0.71).exact, BlockDistance(lower=0.7, upper=0.7).exact
    (False, True)
    """

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """Whether the bounds meet, to one part in 100,000 or to 1e-7: both are then the distance."""
        return self.upper - self.lower <= max(CLOSE * self.upper, CLOSEST)


def block_distance(first: Blocks, second: Blocks, *, parts: int = 500) -> BlockDistance:
    """Bound the distance delta_2 of two block models: the least root-mean-square difference over all matches of people.

    Parameters
    ----------
    first, second
        The models.
    parts
        How many parts of the couplings are searched at most; each takes seconds where both models have
        eight groups. With fewer, the bounds are ready sooner and may not meet.

    Notes
    -----
    The least of sum_ijkl P_ik P_jl (W_ij - V_kl)^2 over couplings P of the groups, squared (McMillan, (4.1)): a
    quadratic program that is not convex. Local searches give the upper bound. The lower bound is the largest of
    - Lemma 4.4, which permutes the rows and columns of up to 8 groups of equal size separately, all of them tried;
    - one by eigenvalues: S^-1/2 P T^-1/2 is a contraction that maps sqrt(t) to sqrt(s), for the shares s and t, so
      beside these directions the cross term is at most the sum of products of sorted eigenvalues of equal sign;
    - where a model has one density between groups, one for each of its groups alone, by the best mixture of the others;
    - for up to 64 pairs of groups, the semidefinite relaxation: p p', p the entries of P, becomes any positive
      semidefinite matrix with entries of 0 or above and these margins. It mostly meets the upper bound.
    Where it does not, the couplings are split by which of their entries are 0, with a relaxation for each part, until
    the bounds meet (branch and bound). Models with up to eight groups each so have an exact distance, unless the parts
    do not suffice; `exact` then says so. Some need no parts: where both models have one density between groups, or the
    groups of one are all alike and the cross term is convex, all trees of groups are tried; and with up to 16 pairs of
    groups all supports, because a best P of least support is the only stationary coupling on its support.

    >>> found = block_distance(Blocks([[0, 1], [1, 0]]), Blocks([[1, 0], [0, 1]]))
    >>> found.exact, round(found.upper, 4)
    (True, 0.7071)
    """
    for name, blocks in (("first", first), ("second", second)):
        instance_of(name, blocks, Blocks, "the densities of groups as Blocks")
    count("parts", parts, least=0)
    squares = sum(float(blocks.shares @ blocks.matrix**2 @ blocks.shares) for blocks in (first, second))
    degrees = np.outer(first.matrix @ first.shares, second.matrix @ second.shares)
    rng, (random, steps) = np.random.default_rng(0), MANY if _alike(first, second) else FEW
    starts = [_cheapest(cost, first, second) for cost in (-degrees, *rng.standard_normal((random, *degrees.shape)))]
    lower = squares - 2 * _most_by_eigenvalues(first, second, float((starts[0] * degrees).sum()))
    starts += [(start + np.outer(first.shares, second.shares)) / 2 for start in starts]
    cross = max(_climb(first, second, start, steps) for start in starts)
    found = _bounds(squares, lower, cross)
    if not found.exact and degrees.size <= MOST_CELLS:
        found = _searched(first, second, squares, lower, cross, steps, parts)
    return found


def _searched(
    one: Blocks, two: Blocks, squares: float, lower: float, cross: float, steps: int, parts: int
) -> BlockDistance:
    """Bounds by a relaxation, then by permutations, then by a search of supports or of parts of the couplings."""
    rng = np.random.default_rng(1)

    def climb(coupling: FloatArray) -> float:
        anywhere = _cheapest(rng.standard_normal(coupling.shape), one, two)  # the relaxation may mix best couplings
        return max(_climb(one, two, start, steps) for start in (coupling, anywhere))

    def goal(cross: float) -> float:
        upper = math.sqrt(max(0.0, squares - 2 * cross))
        gap = 0.99 * max(CLOSE * upper, CLOSEST)  # so that rounding does not undo `exact`
        return (squares - max(0.0, upper - gap) ** 2) / 2

    root = relax(one, two, goal(cross))
    lower = max(lower, squares - 2 * min(root.most, most_by_columns(one, two)))
    cross = max(cross, climb(root.coupling(one, two)))
    if not _bounds(squares, lower, cross).exact and _alike(one, two) and one.k <= MOST_PERMUTED:
        separate, common = permuted_apart(one.matrix, two.matrix)
        lower, cross = max(lower, separate), max(cross, climb(common))
    if _bounds(squares, lower, cross).exact:
        return _bounds(squares, lower, cross)
    if one.k * two.k <= MOST_SUPPORTED:
        cross = max(cross, _best_of_supports(one, two))
        return _bounds(squares, squares - 2 * cross, cross)
    for most_of_trees in (most_of_planted, most_of_equal_rows):
        known = most_of_trees(one, two)
        if known is not None:
            return _bounds(squares, squares - 2 * known, known)
    most, cross = branch(root, one, two, cross, climb=climb, goal=goal, most_parts=parts)
    return _bounds(squares, max(lower, squares - 2 * most), cross)


def _bounds(squares: float, lower: float, cross: float) -> BlockDistance:
    upper = math.sqrt(max(0.0, squares - 2 * cross))
    return BlockDistance(min(math.sqrt(max(0.0, lower)), upper), upper)


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
    found = linprog(cost.ravel(), A_eq=margins(one, two), b_eq=np.concatenate([one.shares, two.shares]))
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
        if gain < LEAST_GAIN:
            break
        coupling, value = coupling + length * step, value + gain
    settled = _stationary(_system(one, two), np.concatenate([one.shares, two.shares]), coupling.ravel() > 1e-6)
    return max(value, settled)


def _stationary(system: FloatArray, shares: FloatArray, support: NDArray[np.bool_]) -> float:
    """The cross term of the stationary coupling that is 0 outside the support, or minus infinity if there is none."""
    cells, margins = np.flatnonzero(support), np.arange(len(support), len(system))
    part = system[np.ix_(used := np.concatenate([cells, margins]), used)]
    target = np.concatenate([np.zeros(len(cells)), shares])
    found = np.linalg.lstsq(part, target)[0][: len(cells)]
    if found.min() < -1e-13 or np.abs(part[len(cells) :, : len(cells)] @ found - shares).max() > 1e-13:
        return -math.inf
    return float(found @ part[: len(cells), : len(cells)] @ found)


def _system(one: Blocks, two: Blocks) -> FloatArray:
    """The conditions of a stationary coupling: the cross term as a form of its entries, bordered by its margins."""
    sums = margins(one, two)
    return np.block([[np.kron(one.matrix, two.matrix), sums.T], [sums, np.zeros((len(sums), len(sums)))]])


def _best_of_supports(one: Blocks, two: Blocks) -> float:
    """The largest cross term of all stationary couplings.

    A coupling that can move both ways in a direction in which the cross term is convex is not needed, so supports with
    the four or six cells of such a direction are left out.
    """
    cells = one.k * two.k
    supports = (np.arange(1, 2**cells)[:, None] >> np.arange(cells) & 1).astype(bool).reshape(-1, one.k, two.k)
    for axis in (1, 2):
        supports = supports[np.all(supports.any(axis=axis), axis=1)]
    for size in (2, 3):
        for rows, columns in product(combinations(range(one.k), size), permutations(range(two.k), size)):
            direction = np.zeros((one.k, two.k))
            direction[rows, columns], direction[rows, np.roll(columns, 1)] = 1.0, -1.0
            if (direction * (one.matrix @ direction @ two.matrix)).sum() >= 0:
                supports = supports[~supports[:, direction != 0].all(axis=1)]
    system, shares = _system(one, two), np.concatenate([one.shares, two.shares])
    return max(_stationary(system, shares, support.ravel()) for support in supports)


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


def _most_by_eigenvalues(one: Blocks, two: Blocks, degrees: float) -> float:
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
