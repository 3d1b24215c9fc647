"""Tests of a privacy claim that are right with a known probability on either side, at a cost known in advance.

McMillan's thesis, chapters 9 and 10, with corrections. `alpha` is always the gap between the mechanisms that a test
must accept and those that it must reject; in between it may do either.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from cloakwork._checks import FloatArray, IntArray, count, positive
from cloakwork.auditing.query_plan import (
    CONFIDENCE,
    Answer,
    Mechanism,
    Pair,
    QueryPlan,
    checked_confidence,
    checked_epsilon,
    checked_gap,
    count_outcomes,
    largest_ratio,
    positive_parts,
    unnoticed_mass,
)
from cloakwork.errors import InputError, UnverifiableError

_FLOORS = np.geomspace(1e-3, 4, 60)


@dataclass(frozen=True)
class UnknownPair:
    """Tests an (epsilon, delta) claim on two inputs when nothing is known but the n possible outcomes.

    A mechanism that needs more than delta + alpha at this epsilon is rejected.

    Notes
    -----
    McMillan's Algorithm 4. Counts X_i, Y_i of two independent Poisson(lambda) numbers of answers are independent
    Poisson, and z = sum_i max(0, X_i - e^epsilon Y_i) / lambda estimates delta_epsilon. Corrected: the sums run over
    the n outcomes, the two numbers of answers are drawn separately, and both directions are tested.

    With v = (1 + e^(2 epsilon)) / lambda: E z <= delta_epsilon + sqrt(n v) / 2 and Var z <= v; one answer more moves z
    by at most b. So z leaves its mean by t = b L / 3 + sqrt((b L / 3)^2 + 2 v L), L = ln(1/f), with probability at most
    f (Bernstein's inequality from Wu's logarithmic Sobolev inequality), and by sqrt(v (1/f - 1)) (Cantelli). lambda is
    the least at which the upward error, t at f/2 (two directions) and the downward t fit into alpha.

    >>> UnknownPair(n=2, epsilon=1.0, delta=0.05, alpha=0.1).plan.per_input
    13531
    """

    n: int
    epsilon: float
    delta: float = 0.0
    alpha: float = 0.1
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        _check(self.epsilon, self.confidence, self.delta, self.alpha)
        count("n", self.n, minimum=2)

    @cached_property
    def mean_queries(self) -> float:
        """lambda, the mean number of queries on each input."""
        return _smallest(lambda size: self.alpha >= sum(self._errors(size)), start=1 / self.alpha)

    @cached_property
    def plan(self) -> QueryPlan:
        """Cost and promise of the test."""
        return _approximate_plan(self, math.ceil(self.mean_queries))

    def test(self, mechanism: Mechanism, rng: np.random.Generator, databases: tuple[Any, Any] = (0, 1)) -> Answer:
        """Query the mechanism on the two inputs and test whether the claim stands."""
        size = self.mean_queries
        counts, queries = _poisson_counts(mechanism, databases, size, self.n, rng)
        seen = max(positive_parts(counts[0], counts[1], self.epsilon)) / size
        threshold = self.delta + self.alpha - self._errors(size)[1]
        return Answer(seen <= threshold, seen, threshold, queries)

    def _errors(self, size: float) -> tuple[float, float]:
        """Return the upward error of the estimates in both directions, and the downward error."""
        e, failure = math.exp(self.epsilon), 1 - self.confidence
        spread = (1 + e * e) / size
        above = math.sqrt(self.n * spread) / 2 + _deviation(spread, 1 / size, failure / 2)
        return above, _deviation(spread, e / size, failure)


@dataclass(frozen=True)
class KnownPair:
    """Tests an (epsilon, delta) claim on two inputs when the maker states both distributions, which are not trusted.

    A mechanism that needs more than delta + alpha at this epsilon is rejected; a private one that is not as `stated`
    may be.

    Notes
    -----
    McMillan's Algorithm 5: check the stated pair itself, without queries; then test on each input that the mechanism is
    as stated, at total variation a = alpha / (1 + e^epsilon), which is enough by Lemma 10.6 (Proposition 10.10 is
    stated at alpha and proved at (1 + e^epsilon) alpha).

    The identity test is T = sum_i ((X_i - m q_i)^2 - X_i) / (m w_i) of Poisson(m p_i) counts, with
    w_i = (q_i + kappa/n) / (1 + kappa) so that rare outcomes cannot swamp it. E T >= 4 m TV(p, q)^2 and
    Var T = sum_i (2 p_i^2 + 4 m p_i (p_i - q_i)^2) / w_i^2, at most 2 n (1+kappa)^2 if p = q. m is the least at which
    Cantelli's inequality allows a threshold for both sides, over a grid of kappa: about c sqrt(n) / a^2.
    """

    stated: Pair = field(repr=False)
    epsilon: float
    delta: float = 0.0
    alpha: float = 0.1
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        _check(self.epsilon, self.confidence, self.delta, self.alpha)

    @cached_property
    def setting(self) -> tuple[float, float, float]:
        """Mean number of answers m, share kappa of the floor, and threshold of the identity test of each input."""
        n, distance, failure = self.stated.n, self.alpha / (1 + math.exp(self.epsilon)), 1 - self.confidence
        # one of two inputs may fail on its own, so a right description must pass with failure / 2 each
        quiet = (1 + _FLOORS) * np.sqrt(2 * n * (2 / failure - 1))
        size = _smallest(lambda m: _separates(m, n, distance, failure, quiet).any(), start=1 / distance**2)
        best = int(np.argmax(_separates(size, n, distance, failure, quiet)))
        return size, float(_FLOORS[best]), float(quiet[best])

    @cached_property
    def plan(self) -> QueryPlan:
        """Cost and promise of the test; no queries if the stated pair itself breaks the claim."""
        size = math.ceil(self.setting[0]) if self.stated.is_private(self.epsilon, self.delta) else 0
        return _approximate_plan(self, size, stated=" as stated and")

    def test(self, mechanism: Mechanism, rng: np.random.Generator, databases: tuple[Any, Any] = (0, 1)) -> Answer:
        """Query the mechanism on the two inputs and test whether it is as stated and the claim stands."""
        if not self.plan.total:
            return Answer(False, self.stated.delta(self.epsilon), self.delta, 0)
        size, floor, threshold = self.setting
        counts, queries = _poisson_counts(mechanism, databases, size, self.stated.n, rng)
        stated = (self.stated.zero, self.stated.one)
        worst = max(_identity(x, q, size, floor) for x, q in zip(counts, stated, strict=True))
        return Answer(worst <= threshold, worst, threshold, queries)


@dataclass(frozen=True)
class KnownPure:
    """Tests an epsilon claim with delta = 0 on two inputs when the maker states both distributions.

    A mechanism whose epsilon is above epsilon + alpha is rejected.

    Notes
    -----
    McMillan's Algorithm 6, corrected: frequencies stand where counts are printed, 0/0 is no ratio, an outcome that is
    stated impossible and seen is rejected at once, and the number of queries has 1/beta, beta the least stated
    probability above 0, where 1/beta^2 is printed. The stated pair is checked itself, without queries; if
    P_0(i) / P_1(i) > e^(epsilon + alpha) then P_0(i) > e^(alpha/2) Q_0(i) or P_1(i) < e^(-alpha/2) Q_1(i). All
    frequencies must lie within e^(+-c) of the stated ones. With h(x) = x ln x - x + 1 (Chernoff), f = 1 - confidence,

        r beta h(e^-c) >= ln(4 n / f),   r beta e^(-alpha/2) h(e^(alpha/2 - c)) >= ln(1 / f)

    suffice, and c is chosen where both are equal. A leak through an outcome that is stated impossible may be too rare
    to be seen: rarer than about ln(1/f) / r.

    >>> coin = Pair([0.75, 0.25], [0.25, 0.75])
    >>> KnownPure(coin, epsilon=1.1, alpha=0.5).plan.per_input
    1173
    """

    stated: Pair = field(repr=False)
    epsilon: float
    alpha: float = 0.5
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        _check(self.epsilon, self.confidence)
        positive("alpha", self.alpha)

    @cached_property
    def band(self) -> float:
        """c: frequencies within a factor e^c of the stated ones pass."""
        return _smallest(
            lambda c: self._needed(c)[0] <= self._needed(c)[1], start=self.alpha / 4, highest=self.alpha / 2
        )

    @cached_property
    def plan(self) -> QueryPlan:
        """Cost and promise of the test; no queries if the stated pair itself breaks the claim."""
        both = np.concatenate([self.stated.zero, self.stated.one])
        least = float(both[both > 0].min())
        r = math.ceil(max(self._needed(self.band)) / least) if self.stated.is_private(self.epsilon) else 0
        return QueryPlan(
            r,
            2 * r,
            self.confidence,
            f"the mechanism is as stated and {self.epsilon:g}-private on these two inputs",
            f"its epsilon is above {self.epsilon + self.alpha:g}",
        )

    def test(self, mechanism: Mechanism, rng: np.random.Generator, databases: tuple[Any, Any] = (0, 1)) -> Answer:
        """Query the mechanism on the two inputs and test whether it is as stated and the claim stands."""
        r, c = self.plan.per_input, self.band
        if not r:
            return Answer(False, self.stated.epsilon, self.epsilon, 0)
        counts = [count_outcomes(mechanism, database, r, self.stated.n, rng) for database in databases]
        stated = (self.stated.zero, self.stated.one)
        worst = max(largest_ratio(x / r, q) for x, q in zip(counts, stated, strict=True))
        return Answer(worst <= c, worst, c, 2 * r)

    def _needed(self, c: float) -> tuple[float, float]:
        """Return r beta as an honest mechanism and as a far one need it."""
        half, failure = self.alpha / 2, 1 - self.confidence
        rate = min(math.exp(half) * _h(c - half), math.exp(-half) * _h(half - c))
        honest, far = _h(-c), rate
        logs = math.log(4 * self.stated.n / failure), -math.log(failure)
        return logs[0] / honest if honest > 0 else math.inf, logs[1] / far if far > 0 else math.inf


@dataclass(frozen=True)
class RandomPrivacy:
    """Tests that all but a share `gamma` of the pairs of neighbouring inputs are private, with a test of one pair.

    `neighbours` draws a pair of inputs with rng; the answer is about this distribution. A mechanism that is far from
    the claim on more than gamma + slack of the pairs is rejected (slack is 2 alpha / lambda in the thesis).

    Notes
    -----
    McMillan's Algorithm 3, without its majority votes: `tester` itself is given a failure of slack/4. A pair is then
    found bad with a probability of at most gamma + (1-gamma) slack/4, or at least (gamma + slack)(1 - slack/4), and the
    number of pairs is found from exact binomial tails.
    """

    tester: UnknownPair
    neighbours: Callable[[np.random.Generator], tuple[Any, Any]] = field(repr=False)
    gamma: float
    slack: float
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)
        if not (0 <= self.gamma < 1 and self.slack > 0 and self.gamma + self.slack <= 1):
            raise InputError(
                f"gamma={self.gamma!r} with slack={self.slack!r}: give shares of pairs, gamma from 0, slack above 0.",
                gamma=self.gamma,
                slack=self.slack,
            )

    @cached_property
    def each(self) -> UnknownPair:
        """The test of one pair, which errs with a probability of at most slack/4."""
        return replace(self.tester, confidence=max(self.tester.confidence, 1 - self.slack / 4))

    @cached_property
    def size(self) -> tuple[int, int]:
        """Pairs to draw, and how many of them may be bad."""
        wrong, failure = self.slack / 4, 1 - self.confidence
        low, high = self.gamma + (1 - self.gamma) * wrong, (self.gamma + self.slack) * (1 - wrong)

        def allowed(pairs: int) -> int:
            return int(stats.binom.ppf(1 - failure, pairs, low))

        pairs = math.ceil(_smallest(lambda k: stats.binom.cdf(allowed(math.ceil(k)), math.ceil(k), high) <= failure))
        return pairs, allowed(pairs)

    @cached_property
    def plan(self) -> QueryPlan:
        """Cost and promise of the test; `per_input` is for each input of each pair."""
        one, pairs = self.each.plan, self.size[0]
        return replace(
            one,
            total=pairs * one.total,
            confidence=self.confidence,
            accepts_if=f"on all but a share {self.gamma:g} of the pairs {one.accepts_if}",
            rejects_if=f"on more than a share {self.gamma + self.slack:g} of the pairs {one.rejects_if}",
        )

    def test(self, mechanism: Mechanism, rng: np.random.Generator) -> Answer:
        """Draw pairs and test each, until the answer is decided. The statistic is the number of bad pairs."""
        (pairs, allowed), bad, good, queries = self.size, 0, 0, 0
        while bad <= allowed and good < pairs - allowed:
            answer = self.each.test(mechanism, rng, self.neighbours(rng))
            queries, bad, good = queries + answer.queries, bad + (not answer.accepts), good + answer.accepts
        return Answer(bad <= allowed, float(bad), float(allowed), queries)


def plan_queries(*, n: int, epsilon: float, delta: float, alpha: float, confidence: float = CONFIDENCE) -> QueryPlan:
    """Return the cost of testing a claim on two inputs of a mechanism of which only its `n` outcomes are known.

    A pure claim raises UnverifiableError (McMillan, Theorem 10.5): no number of queries would do.

    >>> print(plan_queries(n=16, epsilon=1.0, delta=0.01, alpha=0.05).per_input)
    94541
    """
    if delta == 0:
        raise UnverifiableError(
            f"epsilon={epsilon:g} with delta=0 and no description of the mechanism: no number of queries can verify "
            "it. A mechanism that shows its input outright, but rarely enough, passes every test: with a million "
            f"queries on each input, anything rarer than {unnoticed_mass(1_000_000):.1g}. Test a claim with delta "
            "above 0, or use `KnownPure` with the stated distributions.",
            epsilon=epsilon,
        )
    return UnknownPair(n, epsilon, delta, alpha, confidence).plan


def _approximate_plan(test: UnknownPair | KnownPair, size: int, *, stated: str = "") -> QueryPlan:
    return QueryPlan(
        per_input=size,
        total=2 * size,
        confidence=test.confidence,
        accepts_if=f"the mechanism is{stated} ({test.epsilon:g}, {test.delta:g})-private on these two inputs",
        rejects_if=f"it needs a delta above {test.delta + test.alpha:g} at epsilon {test.epsilon:g}",
    )


def _poisson_counts(
    mechanism: Mechanism, databases: tuple[Any, Any], mean: float, n: int, rng: np.random.Generator
) -> tuple[list[IntArray], int]:
    sizes = [int(rng.poisson(min(mean, 1e18))) for _ in databases]
    counts = [count_outcomes(mechanism, d, size, n, rng) for d, size in zip(databases, sizes, strict=True)]
    return counts, sum(sizes)


def _identity(counts: IntArray, q: FloatArray, size: float, floor: float) -> float:
    if counts[q == 0].any():
        return math.inf
    weights = (q + floor / len(q)) / (1 + floor)
    return float((((counts - size * q) ** 2 - counts) / weights).sum()) / size


def _separates(m: float, n: int, distance: float, failure: float, threshold: FloatArray) -> Any:
    """Return whether T is above the threshold at total variation `distance`, for each floor."""
    one, c = 1 + _FLOORS, 4 * distance**2
    far = c * one * n / _FLOORS  # the largest possible sum of ((p - q) / w)^2
    variance = 2 * (np.sqrt(n) * one + np.sqrt(far)) ** 2 + 4 * m * c * (one + np.sqrt(far))
    return m * c - threshold >= np.sqrt(variance * (1 / failure - 1))


def _deviation(variance: float, step: float, failure: float) -> float:
    """Return the deviation that a sum exceeds with a probability of at most `failure`; one term moves it by `step`."""
    part = -step * math.log(failure) / 3
    bernstein = part + math.sqrt(part * part - 2 * variance * math.log(failure))
    return min(math.sqrt(variance * (1 / failure - 1)), bernstein)


def _h(exponent: float) -> float:
    """Return h(x) = x ln x - x + 1 at x = e^exponent; small exponents need a series."""
    if abs(exponent) < 1e-3:
        return exponent**2 * (0.5 + exponent / 3 + exponent**2 / 8)
    return math.exp(exponent) * exponent - math.expm1(exponent)


def _smallest(suffices: Callable[[float], Any], start: float = 1.0, highest: float = math.inf) -> float:
    """Return the smallest number, to within one part in 10^9, from which `suffices` holds; it must be monotone."""
    low, high = 0.0, start
    while high < highest and not suffices(high):
        low, high = high, min(2 * high, highest)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _check(epsilon: float, confidence: float, delta: float = 0.0, alpha: float = 0.5) -> None:
    checked_epsilon(epsilon)
    checked_confidence(confidence)
    checked_gap(delta, alpha)
