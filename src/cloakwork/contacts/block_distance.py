"""Bounds on how far apart two block models are, whatever the names of their groups."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog

from cloakwork._checks import FloatArray, instance_of
from cloakwork.contacts.blocks import Blocks

MAX_EXACT, MAX_RELAXED = 16, 100  # pairs of groups whose supports are all tried, and with a semidefinite bound
STARTS, STEPS = 12, 40  # of local searches
RELAXATION_STEPS, STALL, CHECKED_EVERY = 1_500, 100, 10
MIN_GAIN = 1e-13
MIN_PROGRESS = 0.02  # of the way to the goal in `STALL` steps, below which the relaxation ends
STRICT, LOOSE = 1e-13, 1e-9  # error of a coupling that counts as one, and of one that may be near one
CLOSE = 1e-5  # bounds whose relative difference is below this meet
ROUNDING = 1e-15  # of a squared distance, for each group


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
        """Whether the bounds meet, to one part in 100,000 or to 1e-6."""
        return self.upper - self.lower <= max(CLOSE * self.upper, 1e-6)


def block_distance(first: Blocks, second: Blocks) -> BlockDistance:
    """Bound the distance delta_2 of two block models: the least root-mean-square difference over all matches of people.

    Notes
    -----
    The square is the least of sum_ijkl P_ik P_jl (W_ij - V_kl)^2 over couplings P of the groups (McMillan, (4.1)), so
    it takes the largest cross term sum_ijkl P_ik P_jl W_ij V_kl: a quadratic program that is not convex. Local searches
    (Frank and Wolfe) give the upper bound. The lower bound is the best of
    - eigenvalues: S^-1/2 P T^-1/2 is a contraction that maps sqrt(t) to sqrt(s), for the shares s and t, so beside
      these directions the cross term is at most the sum of products of sorted eigenvalues of equal sign;
    - for up to 100 pairs of groups, the semidefinite relaxation: p p', for the entries p of P, becomes any positive
      semidefinite matrix with entries of 0 or above and these margins. For random models it usually meets the upper
      bound; for models with many symmetries it is up to a third below;
    - for up to 16 pairs of groups, such as four and four, all supports: a best P of least support is the only
      stationary coupling on its support. This distance is exact.

    >>> found = block_distance(Blocks([[0, 1], [1, 0]]), Blocks([[1, 0], [0, 1]]))
    >>> found.exact, round(found.upper, 4)
    (True, 0.7071)
    """
    for name, blocks in (("first", first), ("second", second)):
        instance_of(name, blocks, Blocks, "the densities of groups as Blocks")
    couplings, pairs = _Couplings(first, second), first.k * second.k
    squares = sum(float(blocks.shares @ blocks.matrix**2 @ blocks.shares) for blocks in (first, second))
    found, most = max(map(couplings.climb, couplings.starts())), couplings.most_by_eigenvalues()
    if pairs <= MAX_RELAXED:
        bound, near = couplings.relax(found)
        most, found = min(most, bound), max(found, couplings.climb(near))
    slack = ROUNDING * (first.k + second.k)
    if pairs <= MAX_EXACT and not _distance(squares, most, found, slack).exact:
        most, found = couplings.best_of_supports(found)
    return _distance(squares, most, found, slack)


def _distance(squares: float, most: float, found: float, slack: float) -> BlockDistance:
    """Return the bounds on the distance by those on the cross term, rounded outward."""
    lower, upper = squares - 2 * most - slack, squares - 2 * found + slack
    return BlockDistance(math.sqrt(max(0.0, min(lower, upper))), math.sqrt(max(0.0, upper)))


class _Couplings:
    """The couplings of two models, and their cross term: `form` (k l, k l) as a quadratic form of the entries."""

    def __init__(self, one: Blocks, two: Blocks) -> None:
        self.one, self.two, self.shape = one, two, (one.k, two.k)
        self.form = np.kron(one.matrix, two.matrix)
        self.sums = np.vstack([np.kron(np.eye(one.k), np.ones(two.k)), np.kron(np.ones(one.k), np.eye(two.k))])
        self.shares = np.concatenate([one.shares, two.shares])
        self.alike = one.k == two.k and bool(np.ptp(one.shares) == np.ptp(two.shares) == 0)

    def cheapest(self, cost: FloatArray) -> FloatArray:
        """Return the coupling (k, l) with the least total cost."""
        if self.alike:
            coupling = np.zeros(self.shape)
            coupling[linear_sum_assignment(cost)] = 1 / len(cost)
            return coupling
        found = linprog(cost.ravel(), A_eq=self.sums, b_eq=self.shares)
        return self.near(np.maximum(np.asarray(found.x), 0.0).reshape(self.shape))

    def starts(self) -> Iterator[FloatArray]:
        """Yield couplings to search from: one that matches the degrees, and random ones, at corners and inside."""
        degrees = np.outer(self.one.matrix @ self.one.shares, self.two.matrix @ self.two.shares)
        noise = np.random.default_rng(0).standard_normal((STARTS, *self.shape))
        for corner in map(self.cheapest, (-degrees, *noise)):
            yield corner
            yield (corner + np.outer(self.one.shares, self.two.shares)) / 2

    def climb(self, coupling: FloatArray) -> float:
        """Return a local maximum of the cross term, by the best steps to the best corners."""
        a, b = self.one.matrix, self.two.matrix
        for _ in range(STEPS):
            slope = a @ coupling @ b
            step = self.cheapest(-slope) - coupling
            rise, bend = 2 * float((step * slope).sum()), float((step * (a @ step @ b)).sum())
            length = min(1.0, -rise / (2 * bend)) if bend < 0 else 1.0
            if rise < MIN_GAIN or rise * length + bend * length**2 < MIN_GAIN:
                break  # a rise below 0 is rounding, and its length would be negative and large
            coupling = coupling + length * step
        value = float((coupling * (a @ coupling @ b)).sum())
        polished, error = self.stationary(np.flatnonzero(coupling > 1e-6))
        return max(value, polished) if error <= STRICT else value

    def stationary(self, support: NDArray[np.intp]) -> tuple[float, float]:
        """Return the cross term of the stationary point on a support, and how far the point is off a coupling."""
        form, sums = self.form[np.ix_(support, support)], self.sums[:, support]
        system = np.block([[form, sums.T], [sums, np.zeros((len(sums), len(sums)))]])
        target = np.concatenate([np.zeros(len(form)), self.shares])
        found = np.linalg.lstsq(system, target)[0][: len(form)]
        return float(found @ form @ found), max(float(-found.min()), float(np.abs(sums @ found - self.shares).max()))

    def best_of_supports(self, found: float) -> tuple[float, float]:
        """Return an upper bound on the cross term and the largest that was found, by all stationary couplings.

        A coupling that can move both ways in a direction in which the cross term is convex is not needed, so supports
        with the four or six cells of such a direction are excluded.
        """
        k, l = self.shape  # noqa: E741
        supports = (np.arange(1, 2 ** (k * l))[:, None] >> np.arange(k * l) & 1).astype(bool).reshape(-1, k, l)
        for axis in (1, 2):
            supports = supports[np.all(supports.any(axis=axis), axis=1)]
        for size in (2, 3):
            for rows, columns in product(combinations(range(k), size), permutations(range(l), size)):
                direction = np.zeros((k, l))
                direction[rows, columns], direction[rows, np.roll(columns, 1)] = 1.0, -1.0
                if (direction * (self.one.matrix @ direction @ self.two.matrix)).sum() >= 0:
                    supports = supports[~supports[:, direction != 0].all(axis=1)]
        values, errors = np.array([self.stationary(np.flatnonzero(support)) for support in supports]).T
        found = max(found, float(values[errors <= STRICT].max(initial=found)))
        return max(found, float(values[errors <= LOOSE].max(initial=found))), found

    def most_by_eigenvalues(self) -> float:
        """Return an upper bound on the cross term of every coupling."""
        degrees = np.outer(self.one.matrix @ self.one.shares, self.two.matrix @ self.two.shares)
        bound = 2 * float((self.cheapest(-degrees) * degrees).sum()) - self.one.density * self.two.density
        beside = []
        for blocks in (self.one, self.two):
            root = np.sqrt(blocks.shares)
            away = np.eye(blocks.k) - np.outer(root, root)
            beside.append(np.linalg.eigvalsh(away @ (root[:, None] * blocks.matrix * root) @ away))
        for sign in (1, -1):
            first, second = (np.sort(np.maximum(sign * values, 0.0))[::-1] for values in beside)
            least = min(len(first), len(second))
            bound += float(first[:least] @ second[:least])
        return bound

    def relax(self, goal: float) -> tuple[float, FloatArray]:
        """Return an upper bound on the cross term by a semidefinite program, and a coupling near its optimum.

        The cross term is p' C p. For every symmetric L and entries p of a coupling, which sum to 1 and are in the
        range of V, p' C p = p' L p + p' (C - L) p <= max L + max p times the largest eigenvalue of V' (C - L) V (at
        least 0). The method of multipliers finds a good L: its two sets are V X V' with X >= 0, and W >= 0 of sum 1.
        It ends when the bound reaches the goal.
        """
        homogeneous = self.sums - self.shares[:, None]
        _, sizes, vectors = np.linalg.svd(homogeneous)
        span = vectors[int((sizes > 1e-10).sum()) :].T
        entries = np.outer(self.one.shares, self.two.shares).ravel()
        largest = float(np.minimum.outer(self.one.shares, self.two.shares).max())
        near, price = np.outer(entries, entries), np.zeros(self.form.shape)
        scale, pace, best, earlier = float(self.form.max()) or 1.0, 0.3 * len(entries), math.inf, math.inf
        for step in range(1, RELAXATION_STEPS + 1):
            values, vectors = np.linalg.eigh(span.T @ (near - price + self.form / (scale * pace)) @ span)
            vectors = span @ (vectors * np.sqrt(np.maximum(values, 0.0)))
            inside, last = vectors @ vectors.T, near
            ahead = 1.6 * inside - 0.6 * near + price
            near = _on_simplex(ahead)
            price = ahead - near
            if step % CHECKED_EVERY:
                continue
            limit = scale * pace * (price + price.T) / 2
            rest = float(np.linalg.eigvalsh(span.T @ (self.form - limit) @ span)[-1])
            best = min(best, float(limit.max()) + max(0.0, rest) * largest)
            if best <= goal * (1 + CLOSE / 10):
                break
            if step % STALL == 0:
                if earlier - best < MIN_PROGRESS * (best - goal):
                    break
                earlier = best
            ratio = float(np.linalg.norm(inside - near)) / max(float(np.linalg.norm(near - last)), 1e-300)
            change = 1.5 if ratio > 5 else 1 / 1.5 if ratio < 0.2 else 1.0
            pace, price = pace * change, price / change
        return best, self.near(near.sum(axis=1).reshape(self.shape))

    def near(self, weights: FloatArray) -> FloatArray:
        """Return a coupling near these weights: shrink what is too large, and spread what is missing."""
        s, t = self.one.shares, self.two.shares
        weights = weights * np.minimum(1.0, s / np.maximum(weights.sum(axis=1), 1e-300))[:, None]
        weights = weights * np.minimum(1.0, t / np.maximum(weights.sum(axis=0), 1e-300))
        rows, columns = np.maximum(s - weights.sum(axis=1), 0.0), np.maximum(t - weights.sum(axis=0), 0.0)
        return np.asarray(weights + np.outer(rows, columns) / max(rows.sum(), 1e-12))


def _on_simplex(values: FloatArray) -> FloatArray:
    """Return the nearest array with entries of 0 or above and sum 1."""
    ordered = np.sort(values, axis=None)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(ordered > excess)[-1]], 0.0))
