"""Lower bounds on the queries of any test, with their constants, and leaks that no test notices."""

import math
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, count
from cloakwork.auditing.testers.outcome_pair import (
    LEAST_GAP,
    Pair,
    checked_confidence,
    checked_epsilon,
    checked_outcomes,
)
from cloakwork.auditing.testers.query_plan import CONFIDENCE
from cloakwork.errors import InputError

GRID = 401
DOWN = 1 - 1e-9


@dataclass(frozen=True)
class HardPairs:
    """A private pair and one that is `alpha` away, as hard to tell apart as we can make them."""

    private: Pair
    far: Pair


def approximate_limit(*, n: int, epsilon: float, delta: float, alpha: float, confidence: float = CONFIDENCE) -> int:
    """Queries on each input without which no test tells (epsilon, delta) from (epsilon, delta + alpha).

    It holds for tests that are given a full description of the mechanism, hence for all others.

    Notes
    -----
    The larger of two bounds. Two pairs on two outcomes (`hard_pairs`) must be distinguished: with r queries on each
    input the total variation between the samples is at most sqrt(1 - BC^(2r)), BC the product of the two Bhattacharyya
    coefficients, and it must be at least 2 confidence - 1.

    And after Paninski (2008): on N outcomes let Q_0 be s/N and Q_1 be s e^-epsilon / N, s = (1-delta) e^epsilon /
    (1+e^epsilon), one further outcome having probability delta under Q_0 alone; moving Q_1 by a share +-2 alpha/s of
    itself on random halves of neighbours raises delta by alpha, and r queries have
    4 TV^2 <= exp(r^2 t^2 / N) - 1 with t = 4 alpha^2 e^-epsilon / s.

    McMillan's Theorem 10.7 says max(n^(1-o(1)), 1/alpha^2) for tests without information, with no constant for the
    first; the pairs in its proof do not have the stated parameters, so nothing here rests on them.
    """
    e, a = math.exp(checked_epsilon(epsilon)), checked_gap(delta, alpha)
    level = 2 * checked_confidence(confidence) - 1
    pairs = hard_pairs(epsilon=epsilon, delta=delta, alpha=a)
    apart = sum(float(_apart(pairs.private.of(k), pairs.far.of(k))) for k in (0, 1))
    bound = -math.log1p(-(level**2)) / (2 * apart)
    many, s = 2 * ((checked_outcomes(n) - 2) // 2), (1 - delta) * e / (1 + e)
    if many and 2 * a <= s:
        bound = max(bound, math.sqrt(many * math.log1p(4 * level**2)) * s * e / (4 * a * a))
    return whole(bound)


def hard_pairs(*, epsilon: float, delta: float, alpha: float) -> HardPairs:
    """Two pairs on two outcomes: one exactly (epsilon, delta)-private, one that needs delta + alpha.

    Notes
    -----
    P_0 = (p, 1-p), P_1 = (q, 1-q) with p = delta + e^epsilon q; p goes up and q down, in the shares that are hardest to
    notice, until p - e^epsilon q = delta + alpha. Of a grid over q, among those where the other direction holds too.
    """
    e = math.exp(checked_epsilon(epsilon))
    q = np.linspace(0, (1 - delta) / e, GRID)
    p = np.minimum(delta + e * q, 1)
    spread = np.maximum(p * (1 - p) + e * e * q * (1 - q), 1e-300)
    down = np.where(p * (1 - p) > 0, alpha * e * q * (1 - q) / spread, 0)
    up = alpha - e * down
    good = (p + up <= 1) & (down <= q) & ((1 - q) - e * (1 - p) <= delta)
    p, q, up, down = p[good], q[good], up[good], down[good]
    apart = _two_outcomes(p, p + up) + _two_outcomes(q, q - down)
    k = int(np.argmin(apart))
    return HardPairs(
        Pair([p[k], 1 - p[k]], [q[k], 1 - q[k]]),
        Pair([p[k] + up[k], 1 - p[k] - up[k]], [q[k] - down[k], 1 - q[k] + down[k]]),
    )


def pure_limit(stated: Pair, *, epsilon: float, alpha: float, confidence: float = CONFIDENCE) -> int:
    """Queries on each input without which no test that knows `stated` tells epsilon from epsilon + alpha.

    Notes
    -----
    For each outcome, the stated probabilities are moved apart, the less noticeable one further, until their ratio is
    e^(epsilon+alpha); the rest is scaled. The hardest outcome counts. About 0.5 / (beta alpha^2) for small alpha, beta
    the least probability (McMillan, Theorem 10.12, whose own pair is not epsilon-private).
    """
    total = checked_epsilon(epsilon) + alpha
    level = 2 * checked_confidence(confidence) - 1
    seen = (stated.zero > 0) & (stated.one > 0)
    if not seen.any():
        return 1
    best = math.inf
    for p, q in ((stated.zero[seen], stated.one[seen]), (stated.one[seen], stated.zero[seen])):
        shift = np.maximum(total - np.log(p) + np.log(q), 0)
        up = np.minimum(shift * q / (p + q), -np.log(p) / 2)
        apart = _two_outcomes(p, p * np.exp(up)) + _two_outcomes(q, q * np.exp(up - shift))
        best = min(best, float(apart[apart > 0].min(initial=math.inf)))
    return whole(-math.log1p(-(level**2)) / (2 * best))


def share_limit(*, gamma: float, slack: float, confidence: float = CONFIDENCE) -> int:
    """Pairs of inputs without which no test tells a share `gamma` of bad pairs from `gamma + slack`.

    Notes
    -----
    Even if one query shows whether a pair is bad. A number for the lambda/alpha of McMillan, Theorem 10.4.
    """
    level = 2 * checked_confidence(confidence) - 1
    apart = float(_two_outcomes(np.array([gamma]), np.array([gamma + slack]))[0])
    return whole(-math.log1p(-(level**2)) / (2 * apart))


def unnoticed_mass(queries: int, *, confidence: float = CONFIDENCE) -> float:
    """The probability of a total leak that still passes any test, after so many queries on the input that leaks.

    A mechanism that shows its input outright with this probability has an infinite epsilon. No test that accepts
    honest mechanisms with the given confidence rejects it with that confidence: why pure privacy cannot be verified
    without knowing the mechanism.

    Notes
    -----
    1 - (2 - 2 confidence)^(1/queries): until the leak is seen the two samples are the same (McMillan, Proposition 10.9
    and Theorem 10.5; the pair in the proof of the latter is not used).

    Examples
    --------
    >>> print(f"{unnoticed_mass(1_000_000):.2g}")
    4.1e-07
    """
    share = 2 - 2 * checked_confidence(confidence)
    return -math.expm1(math.log(share) / count("queries", queries))


def checked_gap(delta: float, alpha: float) -> float:
    """`alpha` as a float, refused unless 0 <= delta < delta + alpha < 1: delta never exceeds 1."""
    if not (0 <= delta < 1 and LEAST_GAP <= alpha < 1 and delta + alpha < 1):
        raise InputError(
            f"delta={delta!r} with alpha={alpha!r}: give delta from 0 and alpha from {LEAST_GAP:g} so that their sum "
            "is below 1 (no mechanism has a delta above 1).",
            delta=delta,
            alpha=alpha,
        )
    return float(alpha)


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
