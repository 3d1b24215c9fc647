"""What no test of privacy goes below, with constants; the distance of random privacy, and votes among tests."""

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from cloakwork._checks import FloatArray
from cloakwork.auditing.query_plan import (
    CONFIDENCE,
    Pair,
)

GRID = 401
LEVEL = 2 * CONFIDENCE - 1  # the total variation that a test needs
DOWN = 1 - 1e-9
BLINDNESS = (
    "the proof of Theorem 10.7, n^(1-o(1)), fails; Liu and Oh (2019) prove the order n / log n for estimating delta"
)
"""What is known of tests without information that no bound of ours shows."""


def boundary_pair(n: int, epsilon: float) -> Pair:
    """A pair of pure privacy exactly epsilon whose least probability is as large as can be, the rest spread evenly."""
    e = math.exp(epsilon)
    return Pair(*(np.r_[p, np.full(n - 1, (1 - p) / (n - 1))] for p in (1 / (n - 1 + e), e * (1 / (n - 1 + e)))))


def approximate_limit(*, n: int, epsilon: float, delta: float, alpha: float) -> int:
    """Queries on each input without which no test tells (epsilon, delta) from (epsilon, delta + alpha).

    It holds for tests that are given a full description of the mechanism, hence for all others.

    Notes
    -----
    The larger of two bounds. Two pairs on two outcomes (`hard_pairs`) must be distinguished: with r queries on each
    input the total variation between the samples is at most sqrt(1 - BC^(2r)), BC the product of the two Bhattacharyya
    coefficients, and it must be at least 1/3.

    And after Paninski (2008): on N outcomes let Q_0 be s/N and Q_1 be s e^-epsilon / N, s = (1-delta) e^epsilon /
    (1+e^epsilon), one further outcome having probability delta under Q_0 alone; moving Q_1 by a share +-2 alpha/s of
    itself on random halves of neighbours raises delta by alpha, and r queries have
    4 TV^2 <= exp(r^2 t^2 / N) - 1 with t = 4 alpha^2 e^-epsilon / s.

    McMillan's Theorem 10.7 says max(n^(1-o(1)), 1/alpha^2) for tests without information, with no constant for the
    first. The pairs in its proof do not have the stated parameters. Liu and Oh (2019, arXiv 1905.10335) prove a bound
    of n / log n for estimating delta. Nothing here rests on either.
    """
    e = math.exp(epsilon)
    private, far = hard_pairs(epsilon=epsilon, delta=delta, alpha=alpha)
    apart = float(_apart(private.zero, far.zero) + _apart(private.one, far.one))
    bound = -math.log1p(-(LEVEL**2)) / (2 * apart)
    many, s = 2 * ((n - 2) // 2), (1 - delta) * e / (1 + e)
    if many and 2 * alpha <= s:
        bound = max(bound, math.sqrt(many * math.log1p(4 * LEVEL**2)) * s * e / (4 * alpha * alpha))
    return whole(bound)


def hard_pairs(*, epsilon: float, delta: float, alpha: float) -> tuple[Pair, Pair]:
    """Two pairs on two outcomes: one exactly (epsilon, delta)-private, one that needs delta + alpha.

    Notes
    -----
    P_0 = (p, 1-p), P_1 = (q, 1-q) with p = delta + e^epsilon q; p goes up and q down, in the shares that are hardest to
    notice, until p - e^epsilon q = delta + alpha. Of a grid over q, among those where the other direction holds too.
    """
    e = math.exp(epsilon)
    q = np.linspace(0, (1 - delta) / e, GRID)
    p = np.minimum(delta + e * q, 1)
    spread = np.maximum(p * (1 - p) + e * e * q * (1 - q), 1e-300)
    down = np.where(p * (1 - p) > 0, alpha * e * q * (1 - q) / spread, 0)
    up = alpha - e * down
    good = (p + up <= 1) & (down <= q) & ((1 - q) - e * (1 - p) <= delta)
    p, q, up, down = p[good], q[good], up[good], down[good]
    apart = _two_outcomes(p, p + up) + _two_outcomes(q, q - down)
    k = int(np.argmin(apart))
    return (
        Pair([p[k], 1 - p[k]], [q[k], 1 - q[k]]),
        Pair([p[k] + up[k], 1 - p[k] - up[k]], [q[k] - down[k], 1 - q[k] + down[k]]),
    )


def pure_limit(stated: Pair, *, epsilon: float, alpha: float) -> int:
    """Queries on each input without which no test that knows `stated` tells epsilon from epsilon + alpha.

    Notes
    -----
    For each outcome, the stated probabilities are moved apart, the less noticeable one further, until their ratio is
    e^(epsilon+alpha); the rest is scaled. The hardest outcome counts. About 0.5 / (beta alpha^2) for small alpha, beta
    the least probability (McMillan, Theorem 10.12, whose own pair is not epsilon-private).
    """
    total = epsilon + alpha
    seen = (stated.zero > 0) & (stated.one > 0)
    if not seen.any():
        return 1
    best = math.inf
    for p, q in ((stated.zero[seen], stated.one[seen]), (stated.one[seen], stated.zero[seen])):
        shift = np.maximum(total - np.log(p) + np.log(q), 0)
        up = np.minimum(shift * q / (p + q), -np.log(p) / 2)
        apart = _two_outcomes(p, p * np.exp(up)) + _two_outcomes(q, q * np.exp(up - shift))
        best = min(best, float(apart[apart > 0].min(initial=math.inf)))
    return whole(-math.log1p(-(LEVEL**2)) / (2 * best))


def share_limit(*, gamma: float, slack: float) -> int:
    """Pairs of inputs without which no test tells a share `gamma` of bad pairs from `gamma + slack`.

    Notes
    -----
    Even if one query shows whether a pair is bad. A number for the lambda/alpha of McMillan, Theorem 10.4.
    """
    apart = float(_two_outcomes(np.array([gamma]), np.array([gamma + slack]))[0])
    return whole(-math.log1p(-(LEVEL**2)) / (2 * apart))


def whole(bound: float) -> int:
    """The least whole number of queries that a bound leaves, rounded so that no error of arithmetic raises it."""
    return max(1, math.ceil(bound * DOWN))


def _two_outcomes(p: FloatArray, moved: FloatArray) -> FloatArray:
    return _apart(np.stack([p, 1 - p]), np.stack([moved, np.maximum(1 - moved, 0)]))


def _apart(p: FloatArray, moved: FloatArray) -> FloatArray:
    """Minus the logarithm of the Bhattacharyya coefficient between distributions on the outcomes of the first axis."""
    roots = np.sqrt(p) + np.sqrt(moved)
    gaps = ((p - moved) / np.where(roots > 0, roots, 1)) ** 2  # (sqrt p - sqrt moved)^2 without cancellation
    return np.asarray(-np.log1p(-np.minimum(gaps.sum(axis=0) / 2, 1 - 1e-16)))


def random_distance(excess: ArrayLike, weights: ArrayLike, *, gamma: float, scale: float) -> float:
    """The distance of a family of pairs from privacy on all but a share `gamma` of its pairs.

    `excess` is by how much each pair misses the claim (in epsilon, or in delta at the claimed epsilon): 0 if it holds,
    infinite if nothing helps. `weights` are how likely each pair is to be met; they sum to 1. A missed share is `scale`
    times worse than a missed parameter (lambda in the thesis).

    Notes
    -----
    min over x of max(x, scale (P(excess > x) - gamma)). McMillan's Table 9.2 prints a min in place of this max: then
    a claim with a huge epsilon and the same gamma is at distance 0 from everything, and nothing is ever far.

    Examples
    --------
    >>> random_distance([0.0, 0.5], [0.9, 0.1], gamma=0.05, scale=2.0)
    0.1
    """
    misses, chances = np.asarray(excess, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    allowed = np.concatenate([[0.0], misses[np.isfinite(misses)]])
    missed = np.array([chances[misses > x].sum() for x in allowed])
    share = np.where(missed > gamma + 1e-12, missed - gamma, 0.0)
    return round(float(np.maximum(allowed, scale * share).min()), 12)


def most_failures(repetitions: int, chance: float) -> float:
    """Probability that at least half of an odd number of tests go wrong, each with this chance."""
    return float(stats.binom.sf(repetitions // 2, repetitions, chance))


def votes(chance: float, failure: float) -> int:
    """The smallest odd number of tests whose majority goes wrong with at most `failure`, each with `chance` < 1/2.

    Notes
    -----
    Exact binomial tail. Hoeffding's inequality gives ln(1/failure) / (2 (1/2 - chance)^2), which is 18 ln(1/failure)
    at chance 1/3.
    """
    return next(number for number in itertools.count(1, 2) if most_failures(number, chance) <= failure)
