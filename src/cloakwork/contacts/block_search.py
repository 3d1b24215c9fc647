"""The largest cross term of two block models over all couplings: a semidefinite bound, and branch and bound."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import final

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.contacts.blocks import Blocks

STEPS, STALL, CHECKED_EVERY = 1_500, 100, 10
LEAST_PROGRESS = 0.02  # of the way to the goal, below which steps end


@final
@dataclass(frozen=True, eq=False)
class Relaxation:
    """A bound on the cross term of the couplings p with cuts @ p >= 0, and where its steps ended."""

    most: float
    cuts: FloatArray
    near: FloatArray  # of p p' and its products with cuts
    price: FloatArray
    pace: float
    limit: FloatArray

    @property
    def entries(self) -> FloatArray:
        """About the entries p of a best coupling."""
        cells = self.cuts.shape[1]
        return np.asarray(self.near[:cells, :cells].sum(axis=1))


def relax(one: Blocks, two: Blocks, goal: float) -> Relaxation:
    """Bound the cross term of every coupling by a semidefinite program, until the bound is as low as the goal.

    With C = A x B the cross term is p' C p. For every symmetric L and entries p of a coupling, which sum to 1 and are
    in the range of V, p' C p = p' L p + p' (C - L) p <= max L + largest eigenvalue of V' (C - L) V (at least 0) times
    max p. The method of multipliers finds a good L: its two sets are V X V' with X >= 0, and W >= 0 of sum 1. Cuts
    G p >= 0 extend p; L is then at most 0 beyond the entries of p itself.
    """
    entries = np.outer(one.shares, two.shares).ravel()
    size = len(entries)
    start = Relaxation(
        math.inf, np.empty((0, size)), np.outer(entries, entries), np.zeros((size, size)), 0.3 * size, np.empty(0)
    )
    return _improved(start, one, two, goal)


def branch(
    root: Relaxation,
    one: Blocks,
    two: Blocks,
    cross: float,
    *,
    climb: Callable[[FloatArray], float],
    goal: Callable[[float], float],
    splits: int,
) -> tuple[float, float]:
    """Split the couplings where the relaxation is worst until bound and best coupling meet; returns the two.

    A relaxation mixes couplings that use either of two cells a and b, so one half has p_a/p_b above its mean, the
    other below (as in simplicial partitions for copositive programs, Bundfuss and Duer).
    """
    numbers, closed = count(), -math.inf
    heap = [(-root.most, next(numbers), root)]
    for _ in range(splits):
        if not heap or -heap[0][0] <= goal(cross):
            break
        bound, _, node = heapq.heappop(heap)
        cut = _cut(node)
        for side in (cut, -cut):
            part = _improved(_with_cut(node, side), one, two, goal(cross))
            cross = max(cross, climb(near_coupling(part.entries.reshape(one.k, two.k), one, two)))
            most = min(-bound, part.most)
            if most <= goal(cross):
                closed = max(closed, most)
            else:
                heapq.heappush(heap, (-most, next(numbers), part))
    return max(closed, -heap[0][0] if heap else cross), cross


def _cut(node: Relaxation) -> FloatArray:
    """The split at the pair of cells that loses most: likely apart, and never together in the relaxation."""
    entries = node.entries
    cells = len(entries)
    limit = node.limit[:cells, :cells]
    loss = np.outer(entries, entries) * (limit.max() - limit)
    first, second = np.unravel_index(loss.argmax(), loss.shape)
    cut = np.zeros(cells)
    if first == second or min(entries[first], entries[second]) <= 0:
        cut[first] = 1.0
        return cut - entries[first]
    cut[first], cut[second] = entries[second], -entries[first]
    return cut / max(entries[first], entries[second])


def _with_cut(node: Relaxation, cut: FloatArray) -> Relaxation:
    """The same place with one more cut, as a start."""
    cells, size = len(cut), len(node.near)
    near, price = np.zeros((size + 1, size + 1)), np.zeros((size + 1, size + 1))
    near[:size, :size], price[:size, :size] = node.near, node.price
    near[size, :size] = near[:size, size] = np.maximum(cut @ node.near[:cells], 0.0)
    near[size, size] = max(float(cut @ node.near[:cells, :cells] @ cut), 0.0)
    return Relaxation(math.inf, np.vstack([node.cuts, cut]), near, price, node.pace, node.limit)


def _improved(start: Relaxation, one: Blocks, two: Blocks, goal: float) -> Relaxation:
    cuts, cells = start.cuts, one.k * two.k
    form, span = np.zeros_like(start.near), _span(one, two, cuts)
    form[:cells, :cells] = np.kron(one.matrix, two.matrix)
    scale = float(form.max()) or 1.0
    largest = float(np.minimum.outer(one.shares, two.shares).max() + (np.abs(cuts).max(axis=1) ** 2).sum())
    near, price, pace, limit, most, earlier = start.near, start.price, start.pace, start.limit, math.inf, math.inf
    for step in range(1, STEPS + 1):
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
        stalled = step % STALL == 0 and earlier - most < LEAST_PROGRESS * (most - goal)
        if stalled or most <= goal:
            break
        earlier = most if step % STALL == 0 else earlier
        ratio = float(np.linalg.norm(inside - near)) / max(float(np.linalg.norm(near - last)), 1e-300)
        change = 1.5 if ratio > 5 else 1 / 1.5 if ratio < 0.2 else 1.0
        pace, price = pace * change, price / change
    return Relaxation(most, cuts, near, price, pace, limit)


def _span(one: Blocks, two: Blocks, cuts: FloatArray) -> FloatArray:
    """An orthonormal basis of the entries of couplings, with their values at the cuts."""
    aside = np.kron(*(np.linalg.svd(np.ones((1, blocks.k)))[2][1:].T for blocks in (one, two)))
    basis = np.column_stack([np.outer(one.shares, two.shares).ravel(), aside])
    return np.asarray(np.linalg.qr(np.vstack([basis, cuts @ basis]))[0])


def _on_simplex(values: FloatArray) -> FloatArray:
    """The nearest array with entries of 0 or above and sum 1."""
    ordered = np.sort(values, axis=None)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(ordered) + 1)
    return np.asarray(np.maximum(values - excess[np.flatnonzero(ordered > excess)[-1]], 0.0))


def near_coupling(weights: FloatArray, one: Blocks, two: Blocks) -> FloatArray:
    """A coupling near these weights: shrink rows and columns that are too large, and spread what is missing."""
    weights = weights * np.minimum(1.0, one.shares / np.maximum(weights.sum(axis=1), 1e-300))[:, None]
    weights = weights * np.minimum(1.0, two.shares / np.maximum(weights.sum(axis=0), 1e-300))
    rows, columns = (np.maximum(x, 0.0) for x in (one.shares - weights.sum(axis=1), two.shares - weights.sum(axis=0)))
    return np.asarray(weights + np.outer(rows, columns) / max(rows.sum(), 1e-12))
