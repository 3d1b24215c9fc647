"""Block models in the laboratory: fitted to people, random, and sets that stay apart (McMillan, section 5)."""

import math
from itertools import permutations
from typing import Any

import numpy as np
from scipy import special
from scipy.optimize import linear_sum_assignment
from scipy.sparse.linalg import eigsh

from cloakwork._checks import FloatArray, IntArray
from cloakwork.contacts import Blocks, communities
from cloakwork.privacy import Flip


def fitted(true: Blocks, n: int, rng: np.random.Generator) -> tuple[Blocks, Blocks]:
    """The model of n people by first groups, and by least squares from them.

    The first of two groups are the signs of an eigenvector, those of more our own.
    """
    flip, drawn = Flip(epsilon=40.0, readings_per_window=1), true.sample(n, rng=rng)
    table = drawn.met.toarray().astype(float)
    centred = table - table.mean() * (1 - np.eye(n))
    if true.k == 2:
        first = (eigsh(centred, k=1, which="LA", v0=np.ones(n))[1][:, 0] > 0).astype(np.int64)
    else:
        first = communities(drawn.met, k=true.k, flip=flip, false_alarms=1.0).labels
    groups = (first, least_squares(table, first))
    known = [(labels, communities(drawn.met, labels=labels, flip=flip).densities) for labels in groups]
    one, two = (Blocks(np.clip(densities, 0.0, 1.0), shares=np.bincount(labels)) for labels, densities in known)
    return one, two


def least_squares(table: Any, labels: IntArray) -> IntArray:
    """Move each person to the group whose densities fit their row best, until no one moves."""
    for _ in range(20):
        member = np.eye(labels.max() + 1)[labels]
        sums, sizes = table @ member, member.sum(axis=0)
        means = (member.T @ sums) / np.maximum(np.outer(sizes, sizes) - np.diag(sizes), 1)
        better = (-2 * sums @ means.T + (sizes - member) @ (means**2).T).argmin(axis=1)
        if (better == labels).all() or len(np.unique(better)) < member.shape[1]:
            break
        labels = better
    return labels


def permuted_apart(a: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
    """Return the least squared distance with rows and columns permuted apart (Lemma 4.4), and the best common order."""
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


def random_binary(k: int, rng: np.random.Generator) -> FloatArray:
    """Densities of 0 and 1, each with probability 1/2."""
    upper = np.triu(rng.integers(0, 2, (k, k)))
    return np.asarray(upper + np.triu(upper, 1).T, dtype=np.float64)


def packing(candidates: int, rng: np.random.Generator) -> tuple[int, int]:
    """Keep random 4 x 4 binary matrices that stay k^2/6 entries from those before, under separate permutations."""
    kept: list[FloatArray] = []
    for _ in range(candidates):
        new = random_binary(4, rng)
        if all(permuted_apart(new, old)[0] >= 1 / 6 for old in kept):
            kept.append(new)
    return len(kept), candidates


def union_bound(k: int, radius: float = 1 / 6) -> float:
    """Logarithm of (k!)^2 times the bound of (5.6), for a distance of radius k^2."""
    free = k * (k - 1) / 2
    return float(2 * special.gammaln(k + 1) - 2 * (free / 2 - radius * k**2) ** 2 / free)


def fano_constant(k: int) -> float:
    """The best constant of Theorem 5.4 by its proof, for rho to 0: Fano's lemma with D <= n^2/2 (p - q)^2/q."""
    c = np.linspace(0.002, 0.4, 200)
    spread, best = 2 * c**2 * k**2 / (0.5 - c) + math.log(2), 0.0
    for radius in np.linspace(0.005, 0.2, 40):
        size = -union_bound(k, float(radius)) / 2  # logarithm of the number of matrices
        best = max(best, float((c * math.sqrt(radius) * (1 - spread / size)).max()) if size > 0 else 0.0)
    return best
