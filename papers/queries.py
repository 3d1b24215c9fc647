"""How many queries a test of privacy needs, found by simulated tests of growing size on hard pairs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.auditing import KnownPair, Pair

Sampler = Callable[[float, int, np.random.Generator], FloatArray]
"""Called with (size, runs, rng): the statistic of `runs` tests with `size` queries on each input."""

RIGHT = 2 / 3
NEVER = 1e9  # replaces an infinite statistic
_PRECISION = 1.01  # factor to which a size is found


@dataclass(frozen=True)
class Contest:
    """A statistic on pairs that must be accepted and on pairs that must be rejected."""

    private: tuple[Sampler, ...]
    far: tuple[Sampler, ...]

    def apart(self, size: float, runs: int, rng: np.random.Generator) -> bool:
        """Whether one threshold is right two times in three on every pair; it may depend on the size."""
        highest = max(float(np.quantile(sample(size, runs, rng), RIGHT)) for sample in self.private)
        lowest = min(float(np.quantile(sample(size, runs, rng), 1 - RIGHT)) for sample in self.far)
        return highest < lowest

    def needed(self, runs: int, rng: np.random.Generator, *, start: float = 10.0) -> float:
        """The least size that separates the pairs, by doubling and bisection."""
        low, high = start, 2 * start
        while not self.apart(high, runs, rng):
            low, high = high, 2 * high
        while high > _PRECISION * low:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.apart(middle, runs, rng) else (middle, high)
        return math.sqrt(low * high)


def unknown_contest(n: int, epsilon: float, delta: float, alpha: float) -> Contest:
    """Algorithm 4, both directions: private pairs on which its estimate is high, far ones on which it is low."""
    private = (brink(n, epsilon, delta), halves(n, epsilon, delta))
    far = (lonely(n, delta + alpha), halves(n, epsilon, delta, moved=alpha / (1 + math.exp(epsilon))))
    return Contest(*(tuple(_estimates(pair, epsilon) for pair in pairs) for pairs in (private, far)))


def known_contest(n: int, epsilon: float, delta: float, alpha: float) -> Contest:
    """Algorithm 5: the stated pair, and the pairs alpha away from the claim that are hardest to tell from it."""
    stated = halves(n, epsilon, delta)
    _, floor, _ = KnownPair(stated, epsilon, delta, alpha, RIGHT).setting
    far = (
        halves(n, epsilon, delta, moved=alpha / (1 + math.exp(epsilon))),
        Pair(stated.zero, _tilted(stated.one, -alpha * math.exp(-epsilon))),
        Pair(_tilted(stated.zero, alpha), stated.one),
    )
    return Contest((_chi_squares(stated, stated, floor),), tuple(_chi_squares(pair, stated, floor) for pair in far))


def pure_contest(stated: Pair, alpha: float) -> Contest:
    """Algorithm 6: the stated pair, and pairs that have epsilon + alpha because of their first outcome."""
    far = tuple(strained(stated, alpha, share) for share in (0.0, 0.5, 1.0))
    return Contest((_misfits(stated, stated),), tuple(_misfits(pair, stated) for pair in far))


def halves(n: int, epsilon: float, delta: float, *, moved: float = 0.0) -> Pair:
    """Half of the outcomes together on the boundary of the claim, with probability `moved` shifted on both inputs.

    It needs delta + (1 + e^epsilon) moved at epsilon, with the least change of each distribution.
    """
    zero, one = 0.5 + moved, (0.5 - delta) * math.exp(-epsilon) - moved
    first = n // 2
    return Pair(*(np.r_[np.full(first, s / first), np.full(n - first, (1 - s) / (n - first))] for s in (zero, one)))


def brink(n: int, epsilon: float, delta: float) -> Pair:
    """One outcome of probability delta that only input 0 has; half of the others exactly on the boundary.

    The estimate of Algorithm 4 is biased upward on it: each outcome on the boundary adds its positive deviations.
    """
    rest, e = n - 1, math.exp(epsilon)
    first = rest // 2
    share = (1 - delta) * e / (1 + e)
    zero = np.r_[delta, np.full(first, share / first), np.full(rest - first, (1 - share - delta) / (rest - first))]
    one = np.r_[0.0, np.full(first, share / e / first), np.full(rest - first, (1 - share / e) / (rest - first))]
    return Pair(zero, one)


def seldom(n: int, epsilon: float, beta: float) -> Pair:
    """A pair of pure privacy exactly epsilon, half of whose outcomes have a probability near beta, at most 1/(2n).

    The first has beta on input 0 and e^epsilon beta on input 1.
    """
    rare = n // 2
    made = []
    for first in (beta, beta * math.exp(epsilon)):
        left = 1 - first - (rare - 1) * beta
        made.append(np.r_[first, np.full(rare - 1, beta), np.full(n - rare, left / (n - rare))])
    return Pair(*made)


def lonely(n: int, delta: float) -> Pair:
    """One outcome of probability delta that only input 0 has; all others are nearly as likely on both inputs.

    The estimate of Algorithm 4 is nearly unbiased on it: no other outcome is near the boundary.
    """
    return Pair(np.r_[delta, np.full(n - 1, (1 - delta) / (n - 1))], np.r_[0.0, np.full(n - 1, 1 / (n - 1))])


def strained(stated: Pair, alpha: float, share: float) -> Pair:
    """Make the first outcome e^alpha more telling: a share of that less likely on input 0, the rest likelier on 1."""
    return Pair(_scaled(stated.zero, math.exp(-alpha * share)), _scaled(stated.one, math.exp(alpha * (1 - share))))


def shuffled(pair: Pair, rng: np.random.Generator) -> Pair:
    """The same pair with its outcomes in random order."""
    order = rng.permutation(pair.n)
    return Pair(pair.zero[order], pair.one[order])


def estimates(x: IntArray, y: IntArray, size: float, epsilon: float) -> FloatArray:
    """The larger of the two estimates of delta by Algorithm 4, for counts of shape (runs, n)."""
    factor = math.exp(epsilon)
    forward, backward = (np.maximum(a - factor * b, 0.0).sum(axis=1) for a, b in ((x, y), (y, x)))
    return np.asarray(np.maximum(forward, backward) / size)


def _estimates(pair: Pair, epsilon: float) -> Sampler:
    def sample(size: float, runs: int, rng: np.random.Generator) -> FloatArray:
        x, y = (rng.poisson(size * p, (runs, pair.n)) for p in (pair.zero, pair.one))
        return estimates(x, y, size, epsilon)

    return sample


def _chi_squares(pair: Pair, stated: Pair, floor: float) -> Sampler:
    def sample(size: float, runs: int, rng: np.random.Generator) -> FloatArray:
        found = []
        for p, q in ((pair.zero, stated.zero), (pair.one, stated.one)):
            counts = rng.poisson(size * p, (runs, pair.n))
            weights = (q + floor / pair.n) / (1 + floor)
            found.append((((counts - size * q) ** 2 - counts) / weights).sum(axis=1) / size)
        return np.asarray(np.maximum(*found))

    return sample


def _misfits(pair: Pair, stated: Pair) -> Sampler:
    def sample(size: float, runs: int, rng: np.random.Generator) -> FloatArray:
        queries = max(round(size), 1)
        found = []
        for p, q in ((pair.zero, stated.zero), (pair.one, stated.one)):
            counts = rng.multinomial(queries, p, size=runs)
            with np.errstate(divide="ignore"):
                found.append(np.abs(np.log(counts / queries) - np.log(q)).max(axis=1))
        return np.asarray(np.minimum(np.maximum(*found), NEVER))

    return sample


def _tilted(p: FloatArray, moved: float) -> FloatArray:
    """Move probability from the second half of the outcomes to the first, evenly within each."""
    first = len(p) // 2
    return np.asarray(p + np.r_[np.full(first, moved / first), np.full(len(p) - first, -moved / (len(p) - first))])


def _scaled(p: FloatArray, factor: float) -> FloatArray:
    """Multiply the first probability by a factor, and scale the others to a total of 1."""
    first = p[0] * factor
    return np.asarray(np.r_[first, p[1:] * (1 - first) / (1 - p[0])])


def spread(sizes: Sequence[FloatArray]) -> float:
    """The relative standard deviation of one search, pooled over several, each of shape (repetitions,)."""
    return float(np.sqrt(np.mean([np.log(one).var(ddof=1) for one in sizes])))
