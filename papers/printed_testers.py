"""Two tests of McMillan's thesis as they are printed, on pairs that show what is wrong with them."""

import math
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.auditing.testers import KnownPure, Pair, UnknownPair

EPSILON, DELTA, ALPHA = 1.0, 0.05, 0.1
ONE_WAY = Pair([0.1, 0.9], [0.1 * math.e + 0.21, 0.79 - 0.1 * math.e])
"""Private from the first input to the second, and far from it the other way."""
COIN = Pair([0.75, 0.25], [0.25, 0.75])


@dataclass(frozen=True)
class Mistakes:
    """How often tests accept, of `runs`, as printed and as they are here.

    `one_way` is a pair that needs `one_way_delta` in one direction alone and must be rejected; `honest` is a device
    that is private and exactly as stated, and must be accepted.
    """

    runs: int
    one_way_delta: float
    one_way_printed: float
    one_way_here: float
    honest_printed: float
    honest_here: float


def mistakes(runs: int, rng: np.random.Generator) -> Mistakes:
    """Make all four tests `runs` times."""
    unknown = UnknownPair(2, EPSILON, DELTA, ALPHA)
    known = KnownPure(COIN, COIN.epsilon, 0.5)
    return Mistakes(
        runs=runs,
        one_way_delta=ONE_WAY.delta(EPSILON),
        one_way_printed=sum(printed_unknown(ONE_WAY, rng) for _ in range(runs)) / runs,
        one_way_here=sum(unknown.test(ONE_WAY, rng).accepts for _ in range(runs)) / runs,
        honest_printed=sum(printed_pure(COIN, COIN, 0.05, rng) for _ in range(runs)) / runs,
        honest_here=sum(known.test(COIN, rng).accepts for _ in range(runs)) / runs,
    )


def printed_unknown(pair: Pair, rng: np.random.Generator) -> bool:
    """Algorithm 4 as printed, at half the gap, as its proximity parameter is twice its alpha: one direction alone."""
    half = ALPHA / 2
    size = int(rng.poisson(max(4 * pair.n, 12) * (1 + math.exp(2 * EPSILON)) / half**2))
    x, y = (pair.counts(database, size, rng) for database in (0, 1))
    return bool(np.maximum(x - math.exp(EPSILON) * y, 0.0).sum() / size < DELTA + half)


def printed_pure(pair: Pair, stated: Pair, alpha: float, rng: np.random.Generator) -> bool:
    """Algorithm 6 as printed: counts are compared with probabilities."""
    beta = float(min(stated.zero.min(), stated.one.min()))
    size = int(rng.poisson(math.log(pair.n) / (alpha**2 * beta**2)))
    x, y = (pair.counts(database, size, rng) for database in (0, 1))
    if float(np.abs(np.log(x) - np.log(y)).max()) > stated.epsilon + 2 * alpha:
        return False
    return all(_within(counts, stated.of(k), alpha) for k, counts in enumerate((x, y)))


def _within(counts: IntArray, q: np.ndarray[tuple[int, ...], np.dtype[np.float64]], alpha: float) -> bool:
    return bool((np.abs(np.log(counts / q)) <= alpha).all())
