"""The largest cross term of two block models over all couplings: a semidefinite bound, and branch and bound."""

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, permutations
from typing import final

import numpy as np
from scipy.optimize import linprog

from cloakwork._checks import FloatArray, IntArray
from cloakwork.contacts.blocks import Blocks

STEPS, STALL, CHECKED_EVERY = 1_500, 100, 10
PATIENCE = 10  # times as many steps where a part cannot be split
LEAST_PROGRESS = 0.02  # of the way to the goal, below which steps end
MOST_PERMUTED = 8  # groups whose permutations are all tried
CUT_SIZE = 0.3  # of the largest entry of a cut: the steps converge best if products are of similar size
FLAT = 1e-12  # of a curvature, or of a share, that does not matter


@final
@dataclass(frozen=True, eq=False)
class Relaxation:
    """A bound on the cross term of couplings p that are 0 outside `cells` and have cuts @ p >= 0.

    `used` are cells that are not 0. Where the steps ended: `near` is about p p' with its products with cuts.
    """

    most: float
    cells: IntArray
    used: frozenset[int]
    cuts: FloatArray
    near: FloatArray
    price: FloatArray
    pace: float

    def coupling(self, one: Blocks, two: Blocks) -> FloatArray:
        """A coupling near the best of the relaxation."""
        entries = np.zeros(one.k * two.k)
        entries[self.cells] = self.near[: len(self.cells), : len(self.cells)].sum(axis=1)
        return _near_coupling(entries.reshape(one.k, two.k), one, two)


def relax(one: Blocks, two: Blocks, goal: float) -> Relaxation:
    """Bound the cross term of every coupling by a semidefinite program, until the bound is as low as the goal.

    With C = A x B the cross term is p' C p. For every symmetric L and entries p of a coupling, which sum to 1 and are
    in the range of V, p' C p = p' L p + p' (C - L) p <= max L + largest eigenvalue of V' (C - L) V (at least 0) times
    max p. The method of multipliers finds a good L: its two sets are V X V' with X >= 0, and W >= 0 of sum 1. Cuts
    G p >= 0 extend p; L is then at most 0 beyond the entries of p itself.
    """
    entries = np.outer(one.shares, two.shares).ravel()
    size = len(entries)
    near, price, cuts = np.outer(entries, entries), np.zeros((size, size)), np.empty((0, size))
    start = Relaxation(math.inf, np.arange(size), frozenset(), cuts, near, price, 0.3 * size)
    return _improved(start, one, two, goal, STEPS)


def branch(
    root: Relaxation,
    one: Blocks,
    two: Blocks,
    cross: float,
    *,
    climb: Callable[[FloatArray], float],
    goal: Callable[[float], float],
    most_parts: int,
) -> tuple[float, float]:
    """Split the couplings by their supports until bound and best coupling meet; returns the two.

    A best coupling of least support is enough: on its support, the cross term bends down in every direction that keeps
    the margins. A set of cells where it does not is never all used, so one of them is 0: each part takes another as the
    first. A part without such a set is a concave program, for which the relaxation is tight. Groups that may change
    places have an order first, so that only one of many equal couplings is left.
    """
    supports, numbers, parts, closed = _Supports(one, two), count(), 0, -math.inf
    cuts = _symmetry_cuts(one, two)
    first = _improved(_with_cuts(root, cuts), one, two, goal(cross), STEPS) if cuts else root
    heap = [(-min(root.most, first.most), next(numbers), first)]
    while heap and -heap[0][0] > goal(cross) and parts < most_parts:
        bound, _, node = heapq.heappop(heap)
        needless = supports.needless_among(node)
        for start in supports.parts(node, needless) if needless else (node,):
            part = _improved(start, one, two, goal(cross), STEPS if needless else PATIENCE * STEPS)
            cross = max(cross, climb(part.coupling(one, two)))
            most, parts = min(-bound, part.most), parts + 1
            if most <= goal(cross) or not needless:
                closed = max(closed, most)
            else:
                heapq.heappush(heap, (-most, next(numbers), part))
    return max(closed, -heap[0][0] if heap else cross), cross


class _Supports:
    """Which sets of cells a best coupling of two models need not use together."""

    def __init__(self, one: Blocks, two: Blocks) -> None:
        self.form, self.margins = np.kron(one.matrix, two.matrix), margins(one, two)
        self.shares = np.concatenate([one.shares, two.shares])
        self._known: dict[frozenset[int], bool] = {}

    def needless(self, cells: frozenset[int]) -> bool:
        """Whether the cross term is flat or bends up in some direction on these cells."""
        if cells not in self._known:
            places = np.array(sorted(cells), dtype=np.int64)
            _, sizes, vectors = np.linalg.svd(self.margins[:, places])
            moves = vectors[int((sizes > 1e-9).sum()) :].T
            bends = np.linalg.eigvalsh(moves.T @ self.form[np.ix_(places, places)] @ moves)
            self._known[cells] = bool(bends.size and bends[-1] >= -FLAT)
        return self._known[cells]

    def needless_among(self, node: Relaxation) -> list[int]:
        """A least set that cannot all be used beside those in use, of cells as large as possible; empty if none."""
        sizes = node.near[: len(node.cells), : len(node.cells)].sum(axis=1)
        ordered = [cell for cell in node.cells[np.argsort(-sizes, kind="stable")].tolist() if cell not in node.used]
        for number in range(1, len(ordered) + 1):
            if self.needless(node.used.union(ordered[:number])):
                chosen = ordered[:number]
                for cell in ordered[: number - 1][::-1]:
                    rest = [other for other in chosen if other != cell]
                    chosen = rest if self.needless(node.used.union(rest)) else chosen
                return chosen
        return []

    def parts(self, node: Relaxation, chosen: list[int]) -> Iterator[Relaxation]:
        """The couplings for which each of these cells is the first that is 0, and what follows from those in use."""
        used = node.used
        for cell in chosen:
            follow = {other for other in node.cells.tolist() if other not in used and self.needless(used | {other})}
            part = _without(node, follow | {cell}, used)
            if linprog(np.zeros(len(part.cells)), A_eq=self.margins[:, part.cells], b_eq=self.shares).status == 0:
                yield part
            used = used | {cell}


def margins(one: Blocks, two: Blocks) -> FloatArray:
    """The sums of rows, then of columns, as a matrix on the entries of a coupling."""
    return np.concatenate([np.kron(np.eye(one.k), np.ones(two.k)), np.kron(np.ones(one.k), np.eye(two.k))])


def _symmetry_cuts(one: Blocks, two: Blocks) -> list[FloatArray]:
    """Order the groups of the model with more symmetries by a score, a weighted sum of their cells."""
    symmetries = [_symmetries(one), _symmetries(two)]
    side = int(len(symmetries[1]) > len(symmetries[0]))
    other = (two, one)[side]
    weights = CUT_SIZE * 0.5 ** np.argsort(np.argsort(-other.shares, kind="stable"))
    cuts = []
    for first, second in _orders(symmetries[side]):
        cut = np.zeros(((one, two)[side].k, other.k))
        cut[first], cut[second] = weights, -weights
        cuts.append((cut.T if side else cut).ravel())
    return cuts


def _symmetries(blocks: Blocks) -> IntArray:
    """All permutations of the groups that keep the model; of more than 8 groups, only the one that moves nothing."""
    if blocks.k > MOST_PERMUTED:
        return np.arange(blocks.k)[None]
    group = np.array(list(permutations(range(blocks.k))))
    group = group[(blocks.shares[group] == blocks.shares).all(axis=1)]
    return np.asarray(group[(blocks.matrix[group[:, :, None], group[:, None, :]] == blocks.matrix).all(axis=(1, 2))])


def _orders(group: IntArray) -> list[tuple[int, int]]:
    """Pairs of groups whose first may have the larger score: the largest of its orbit, given the groups before.

    These are the inequalities of the table of Schreier and Sims, less those that follow from others.
    """
    pairs = set[tuple[int, int]]()
    for place in range(group.shape[1]):
        pairs |= {(place, other) for other in group[:, place].tolist() if other != place}
        group = group[group[:, place] == place]
    return sorted(pairs - {(a, d) for a, b in pairs for c, d in pairs if b == c})


def _with_cuts(node: Relaxation, cuts: list[FloatArray]) -> Relaxation:
    """The same place with more cuts, as a start."""
    added = np.array(cuts).reshape(-1, len(node.cells))
    extend = np.vstack([np.eye(len(node.cells)), added])
    price = np.zeros((len(extend), len(extend)))
    price[: len(node.cells), : len(node.cells)] = node.price
    return replace(node, cuts=added, near=np.maximum(extend @ node.near @ extend.T, 0.0), price=price)


def _without(node: Relaxation, zeros: set[int], used: frozenset[int]) -> Relaxation:
    """The same place with some cells 0, as a start."""
    kept = ~np.isin(node.cells, list(zeros))
    places = np.flatnonzero(np.concatenate([kept, np.ones(len(node.cuts), dtype=bool)]))
    near, price = (values[np.ix_(places, places)] for values in (node.near, node.price))
    return replace(node, cells=node.cells[kept], used=used, cuts=node.cuts[:, kept], near=near, price=price)


def _improved(start: Relaxation, one: Blocks, two: Blocks, goal: float, steps: int) -> Relaxation:
    cuts, cells = start.cuts, len(start.cells)
    form, span = np.zeros_like(start.near), _span(one, two, start.cells, cuts)
    form[:cells, :cells] = np.kron(one.matrix, two.matrix)[np.ix_(start.cells, start.cells)]
    scale = float(form.max()) or 1.0
    largest = float(np.minimum.outer(one.shares, two.shares).max() + (np.abs(cuts).max(axis=1) ** 2).sum())
    near, price, pace, most, earlier = start.near, start.price, start.pace, math.inf, math.inf
    for step in range(1, steps + 1):
        sizes, vectors = np.linalg.eigh(span.T @ (near - price + form / (scale * pace)) @ span)
        vectors = span @ (vectors * np.sqrt(np.maximum(sizes, 0.0)))
        inside = vectors @ vectors.T
        last, ahead = near, 1.6 * inside - 0.6 * near + price
        near = np.maximum(ahead, 0.0)
        near[:cells, :cells] = _on_simplex(ahead[:cells, :cells])
        price = ahead - near
        if step % CHECKED_EVERY:
            continue
        limit = scale * pace * (price + price.T) / 2
        limit[cells:], limit[:, cells:] = np.minimum(limit[cells:], 0.0), np.minimum(limit[:, cells:], 0.0)
        rest = float(np.linalg.eigvalsh(span.T @ (form - limit) @ span)[-1])
        most = min(most, float(limit[:cells, :cells].max()) + max(0.0, rest) * largest)
        stalled = steps == STEPS and step % STALL == 0 and earlier - most < LEAST_PROGRESS * (most - goal)
        if stalled or most <= goal:
            break
        earlier = most if step % STALL == 0 else earlier
        ratio = float(np.linalg.norm(inside - near)) / max(float(np.linalg.norm(near - last)), 1e-300)
        change = 1.5 if ratio > 5 else 1 / 1.5 if ratio < 0.2 else 1.0
        pace, price = pace * change, price / change
    return replace(start, most=most, near=near, price=price, pace=pace)


def _span(one: Blocks, two: Blocks, cells: IntArray, cuts: FloatArray) -> FloatArray:
    """An orthonormal basis of the entries of couplings on these cells, with their values at the cuts."""
    homogeneous = margins(one, two)[:, cells] - np.concatenate([one.shares, two.shares])[:, None]
    _, sizes, vectors = np.linalg.svd(homogeneous)
    basis = vectors[int((sizes > 1e-10).sum()) :].T
    return np.asarray(np.linalg.qr(np.vstack([basis, cuts @ basis]))[0])


def _on_simplex(values: FloatArray) -> FloatArray:
    """The nearest array with entries of 0 or above and sum 1."""
    ordered = np.sort(values, axis=None)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(ordered > excess)[-1]], 0.0))


def _near_coupling(weights: FloatArray, one: Blocks, two: Blocks) -> FloatArray:
    """A coupling near these weights: shrink rows and columns that are too large, and spread what is missing."""
    weights = weights * np.minimum(1.0, one.shares / np.maximum(weights.sum(axis=1), 1e-300))[:, None]
    weights = weights * np.minimum(1.0, two.shares / np.maximum(weights.sum(axis=0), 1e-300))
    rows, columns = (np.maximum(x, 0.0) for x in (one.shares - weights.sum(axis=1), two.shares - weights.sum(axis=0)))
    return np.asarray(weights + np.outer(rows, columns) / max(rows.sum(), 1e-12))
