"""Pairs exactly on the boundary of a claim, pairs exactly at a stated distance, and how often a test accepts them."""

import math

import numpy as np
from numpy.typing import NDArray

from cloakwork.auditing import KnownPair, KnownPure, Pair, UnknownPair

Floats = NDArray[np.float64]
ONE_WAY = Pair([0.1, 0.9], [0.1 * math.e + 0.21, 0.79 - 0.1 * math.e])  # delta 0 forward, 0.21 backward, at epsilon 1


def halves(n: int, epsilon: float, delta: float, *, moved: float = 0.0) -> Pair:
    """All of the first half of the outcomes on the boundary of (epsilon, delta), then both inputs moved by `moved`.

    Moving needs delta + (1 + e^epsilon) moved, with the least change of each distribution that does.
    """
    zero, one = 0.5 + moved, (0.5 - delta) * math.exp(-epsilon) - moved
    first = n // 2
    return Pair(*(np.r_[np.full(first, s / first), np.full(n - first, (1 - s) / (n - first))] for s in (zero, one)))


def single(n: int, epsilon: float, delta: float) -> Pair:
    """One outcome that input 0 alone has, of probability delta; on the rest ratios on both sides of the boundary."""
    rest = n - 1
    share = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    first = max(1, rest // 2)
    if rest == 1:
        return Pair([delta, 1 - delta], [0.0, 1.0])
    zero = np.r_[delta, np.full(first, share / first), np.full(rest - first, (1 - share - delta) / (rest - first))]
    low = share * math.exp(-epsilon)
    one = np.r_[0.0, np.full(first, low / first), np.full(rest - first, (1 - low) / (rest - first))]
    return Pair(zero, one)


def crooked(n: int, epsilon: float, delta: float, rng: np.random.Generator) -> Pair:
    """A random pair, mixed with its own first half until its larger delta is as asked."""
    low, high = 0.0, 1.0
    p, q = rng.dirichlet(np.full(n, 0.5)), rng.dirichlet(np.full(n, 0.5))
    while Pair(p, q).delta(epsilon) < delta + 0.02:
        p, q = rng.dirichlet(np.full(n, 0.1)), rng.dirichlet(np.full(n, 0.1))
    for _ in range(60):
        t = (low + high) / 2
        low, high = (t, high) if Pair(p, (1 - t) * p + t * q).delta(epsilon) <= delta else (low, t)
    return Pair(p, (1 - low) * p + low * q)


def turned(pair: Pair) -> Pair:
    """The same with the inputs exchanged."""
    return Pair(pair.one, pair.zero)


def accepted(
    tester: UnknownPair | KnownPair | KnownPure, mechanism: Pair, rng: np.random.Generator, trials: int = 200
) -> float:
    """The share of tests that accept."""
    return sum(tester.test(mechanism, rng).accepts for _ in range(trials)) / trials
