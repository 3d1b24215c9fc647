"""Approximate privacy with a full, untrusted description of the mechanism."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray, positive
from cloakwork.auditing.testers.lower_bounds import approximate_limit, checked_gap, pure_limit
from cloakwork.auditing.testers.outcome_pair import LEAST_GAP, Pair, checked_confidence, checked_epsilon
from cloakwork.auditing.testers.query_plan import (
    CONFIDENCE,
    Answer,
    Mechanism,
    Promise,
    QueryPlan,
    count_outcomes,
    seldom_above,
    smallest,
)
from cloakwork.errors import InputError

FLOORS = np.geomspace(1e-3, 4, 60)


@dataclass(frozen=True)
class IdentitySize:
    """Settings of an identity test: mean number of answers, share of the floor, threshold."""

    size: float
    floor: float
    threshold: float


@dataclass(frozen=True)
class KnownPair:
    """Tests an (epsilon, delta) claim on two inputs when the maker states both distributions.

    The description is not trusted: a mechanism that is private but not as described may be rejected.

    Parameters
    ----------
    stated
        The two distributions that the maker states.
    epsilon, delta
        The claim.
    alpha
        The gap: a mechanism that needs more than delta + alpha at this epsilon is rejected.
    confidence
        Probability of a right answer on either side, above 1/2. For very high ones `Amplified` is cheaper.

    Notes
    -----
    McMillan's Algorithm 5: check the stated pair itself, which costs no query; then test on each input that the
    mechanism is as stated, at total variation a = alpha / (1 + e^epsilon), which is enough by Lemma 10.6 (the
    Proposition 10.10 is stated at alpha and proved at (1 + e^epsilon) alpha). An outcome that is stated impossible and
    seen is rejected at once.

    The identity test is the chi-square statistic T = sum_i ((X_i - m q_i)^2 - X_i) / (m w_i) of Poisson(m p_i) counts,
    with w_i = (q_i + kappa/n) / (1 + kappa) so that rare outcomes cannot swamp it. E T = m sum_i (p_i - q_i)^2 / w_i >=
    4 m TV(p, q)^2 and Var T = sum_i (2 p_i^2 + 4 m p_i (p_i - q_i)^2) / w_i^2, at most 2 n (1+kappa)^2 if p = q. m is
    the least at which Cantelli's inequality allows a threshold for both sides, over a grid of kappa. It is about
    c sqrt(n) / a^2: the only cost here that is sublinear in n. The thesis prints no constant;
    3 sqrt(n) / a^2 with the threshold 2 m a^2 was worked out at n = 256, where it is more than this.
    """

    stated: Pair = field(repr=False)
    epsilon: float
    delta: float = 0.0
    alpha: float = 0.1
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon)
        checked_gap(self.delta, self.alpha)
        checked_confidence(self.confidence)

    @property
    def distance(self) -> float:
        """Total variation at which the mechanism must be distinguished from its description."""
        return self.alpha / (1 + math.exp(self.epsilon))

    @cached_property
    def setting(self) -> IdentitySize:
        """Settings of the identity test of each input."""
        return identity_size(self.stated.n, self.distance, self.confidence)

    @cached_property
    def plan(self) -> QueryPlan:
        """Cost and promise of the test; no queries if the stated pair itself breaks the claim."""
        honest = self.stated_is_private
        size = self.setting.size if honest else 0.0
        return QueryPlan(
            tester="approximate privacy, full information",
            per_input=math.ceil(size),
            at_most=seldom_above(size) if honest else 0,
            total=2 * math.ceil(size),
            confidence=self.confidence,
            alpha=self.alpha,
            lower=approximate_limit(
                n=self.stated.n, epsilon=self.epsilon, delta=self.delta, alpha=self.alpha, confidence=self.confidence
            )
            if honest
            else 0,
            promise=self._promise,
            why="The number grows with the square root of the number of outcomes and with (1 + e^epsilon)^2/alpha^2: "
            "checking a description is cheaper than making one."
            if honest
            else self._broken,
        )

    @property
    def stated_is_private(self) -> bool:
        """Whether the stated pair has the claimed delta, before any query."""
        return self.stated.is_private(self.epsilon, self.delta)

    def test(self, mechanism: Mechanism, rng: np.random.Generator, *, databases: tuple[Any, Any] = (0, 1)) -> Answer:
        """Query the mechanism on the two inputs and test whether it is as stated and the claim stands."""
        if not self.stated_is_private:
            found = self.stated.delta(self.epsilon)
            return Answer(False, found, self.delta, 0, self._broken, self.plan.guarantee)
        setting = self.setting
        asked = [int(rng.poisson(min(setting.size, 1e18))) for _ in databases]
        statistics = []
        for k, (database, size) in enumerate(zip(databases, asked, strict=True)):
            counts = count_outcomes(mechanism, database, size, self.stated.n, rng)
            statistics.append(identity_statistic(counts, self.stated.of(k), setting))
        worst = int(np.argmax(statistics))
        statistic, threshold, name = statistics[worst], setting.threshold, ("first", "second")[worst]
        says = "is not as stated" if statistic > threshold else "is as stated as far as can be seen"
        reason = f"the {name} input {says}: chi-square statistic {statistic:.4g}, rejected above {threshold:.4g}."
        if math.isinf(statistic):
            reason = f"on the {name} input an outcome was seen that the description says cannot occur."
        return Answer(
            accepts=statistic <= threshold,
            statistic=statistic,
            threshold=threshold,
            queries=sum(asked),
            reason=reason,
            guarantee=self.plan.guarantee,
        )

    @property
    def _broken(self) -> str:
        return (
            f"The stated pair itself has delta {self.stated.delta(self.epsilon):.4g} at epsilon {self.epsilon:g}, "
            f"above the claimed {self.delta:g}: no query is needed."
        )

    @property
    def _promise(self) -> Promise:
        return Promise(
            f"the mechanism is as stated and ({self.epsilon:g}, {self.delta:g})-private on these two inputs",
            f"it needs a delta above {self.delta + self.alpha:g} at epsilon {self.epsilon:g}",
        )


def identity_size(n: int, distance: float, confidence: float) -> IdentitySize:
    """The least mean number of answers that tells q from everything at total variation `distance`, and how.

    Notes
    -----
    One of two inputs may fail on its own, so a right description must pass with a failure of (1 - confidence)/2 each;
    a wrong one must fail on one input alone.
    """
    failure = 1 - confidence
    quiet = (1 + FLOORS) * np.sqrt(2 * n * (2 / failure - 1))
    size = smallest(lambda size: _separates(size, n, distance, failure, quiet).any(), start=1 / distance**2)
    best = int(np.argmax(_separates(size, n, distance, failure, quiet)))
    return IdentitySize(size, float(FLOORS[best]), float(quiet[best]))


def identity_statistic(counts: IntArray, q: FloatArray, setting: IdentitySize) -> float:
    """T of the counts against q; infinite if an outcome of probability 0 was seen."""
    if counts[q == 0].any():
        return math.inf
    weights = (q + setting.floor / len(q)) / (1 + setting.floor)
    gaps = (counts - setting.size * q) ** 2 - counts
    return float((gaps / weights).sum()) / setting.size


def _separates(m: float, n: int, distance: float, failure: float, threshold: FloatArray) -> Any:
    """Whether T is above the threshold at total variation `distance`, for each floor, but for the allowed failures."""
    one = 1 + FLOORS
    c = 4 * distance**2
    far = c * one * n / FLOORS  # the largest possible sum of ((p - q) / w)^2
    variance = 2 * (np.sqrt(n) * one + np.sqrt(far)) ** 2 + 4 * m * c * (one + np.sqrt(far))
    return m * c - threshold >= np.sqrt(variance * (1 / failure - 1))


@dataclass(frozen=True)
class KnownPure:
    """Tests an epsilon claim with delta = 0 on two inputs when the maker states both distributions.

    Parameters
    ----------
    stated
        The two distributions that the maker states.
    epsilon
        The claim.
    alpha
        The gap: a mechanism whose epsilon is above epsilon + alpha is rejected.
    confidence
        Probability of a right answer on either side, above 1/2.

    Notes
    -----
    McMillan's Algorithm 6, corrected: frequencies stand where counts are printed; 0/0 is no ratio, and an outcome that
    is stated impossible and seen is rejected at once; the number of queries has 1/beta, beta the least stated
    probability above 0, where 1/beta^2 is printed; and the exponents in the proof of Theorem 10.11 add to 12 alpha, not
    to 10 alpha. Here the stated pair is checked itself, at no query, so that only the fit to the description remains:
    if P_0(i) / P_1(i) > e^(epsilon + alpha) then P_0(i) > e^(alpha/2) Q_0(i) or P_1(i) < e^(-alpha/2) Q_1(i).
    All frequencies must lie within e^(+-c) of the stated ones. With h(x) = x ln x - x + 1 (Chernoff) and
    f = 1 - confidence,

        r beta h(e^-c) >= ln(4 n / f),   r beta e^(-alpha/2) h(e^(alpha/2 - c)) >= ln(1 / f)

    suffice, and c is chosen where both are equal. With c = alpha/4 and the thesis' constants corrected this is at
    most 3 ln(12 n) / ((1 - e^-c)^2 beta), and the gap is 4 c rather than 12 c.

    Where an outcome has stated probability 0 on both inputs, a leak through it may be too rare to be seen: rarer than
    about ln(1/f) / r by this test, than `unnoticed_mass` by any test. The guarantee says so.

    Examples
    --------
    >>> import numpy as np
    >>> coin = Pair([0.75, 0.25], [0.25, 0.75])
    >>> tester = KnownPure(coin, epsilon=1.1, alpha=0.5)
    >>> tester.plan.per_input
    1173
    >>> tester.test(coin, np.random.default_rng(0)).accepts
    True
    """

    stated: Pair = field(repr=False)
    epsilon: float
    alpha: float = 0.5
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon)
        if positive("alpha", self.alpha) < LEAST_GAP:
            raise InputError(f"alpha={self.alpha!r}: give a gap from {LEAST_GAP:g}.", alpha=self.alpha)
        checked_confidence(self.confidence)

    @property
    def least(self) -> float:
        """beta, the least stated probability above 0."""
        both = np.concatenate([self.stated.zero, self.stated.one])
        return float(both[both > 0].min())

    @cached_property
    def band(self) -> float:
        """c: frequencies within a factor e^c of the stated ones pass."""
        low, high = 0.0, self.alpha / 2
        while high - low > 1e-12 * high:
            c = (low + high) / 2
            low, high = (c, high) if self._needed_if_honest(c) > self._needed_if_far(c) else (low, c)
        return (low + high) / 2

    @cached_property
    def queries(self) -> int:
        """r, the number of queries on each input; none if the stated pair itself breaks the claim."""
        if not self.stated.is_private(self.epsilon):
            return 0
        c = self.band
        return math.ceil(max(self._needed_if_honest(c), self._needed_if_far(c)) / self.least)

    @cached_property
    def plan(self) -> QueryPlan:
        """Cost and promise of the test."""
        r = self.queries
        return QueryPlan(
            tester="pure privacy, full information",
            per_input=r,
            at_most=r,
            total=2 * r,
            confidence=self.confidence,
            alpha=self.alpha,
            lower=pure_limit(self.stated, epsilon=self.epsilon, alpha=self.alpha, confidence=self.confidence)
            if r
            else 0,
            promise=self._promise(r),
            why=f"The number grows with 1/beta, the least stated probability being {self.least:.3g}, and with "
            "1/alpha^2: the rarest outcome must be seen often."
            if r
            else self._broken,
        )

    def test(self, mechanism: Mechanism, rng: np.random.Generator, *, databases: tuple[Any, Any] = (0, 1)) -> Answer:
        """Query the mechanism on the two inputs and test whether it is as stated and the claim stands."""
        r, c = self.queries, self.band
        if not r:
            found = self.stated.epsilon
            return Answer(False, found, self.epsilon, 0, self._broken, self.plan.guarantee)
        counts = [count_outcomes(mechanism, database, r, self.stated.n, rng) for database in databases]
        worst = max(misfit(x, self.stated.of(k)) for k, x in enumerate(counts))
        outside = any(x[self.stated.of(k) == 0].any() for k, x in enumerate(counts))
        return Answer(
            accepts=worst <= c,
            statistic=worst,
            threshold=c,
            queries=2 * r,
            reason="an outcome was seen that the description says cannot occur."
            if outside
            else f"the worst frequency is off by a factor {np.exp(worst):.4g}; rejected above {math.exp(c):.4g}.",
            guarantee=self.plan.guarantee,
        )

    @property
    def _broken(self) -> str:
        return (
            f"The stated pair itself has epsilon {self.stated.epsilon:.4g}, above the claimed {self.epsilon:g}: "
            "no query is needed."
        )

    def _promise(self, r: int) -> Promise:
        caveat = ""
        if r and not self.stated.zero.all():
            rare = -math.expm1(math.log(1 - self.confidence) / r)
            caveat = f"Not covered: leaks through outcomes stated impossible that are rarer than about {rare:.2g}."
        return Promise(
            f"the mechanism is as stated and {self.epsilon:g}-private on these two inputs",
            f"its epsilon is above {self.epsilon + self.alpha:g}",
            caveat,
        )

    def _needed_if_honest(self, c: float) -> float:
        return _divide(math.log(4 * self.stated.n / (1 - self.confidence)), _h(-c))

    def _needed_if_far(self, c: float) -> float:
        half = self.alpha / 2
        rate = min(math.exp(half) * _h(c - half), math.exp(-half) * _h(half - c))
        return _divide(-math.log(1 - self.confidence), rate)


def misfit(counts: IntArray, q: FloatArray) -> float:
    """The largest |ln(frequency / q_i)|; infinite if one is 0 and the other is not, nothing where both are."""
    if ((counts > 0) != (q > 0)).any():
        return math.inf
    seen = q > 0
    return float(np.abs(np.log(counts[seen] / counts.sum()) - np.log(q[seen])).max())


def _h(exponent: float) -> float:
    """h(x) = x ln x - x + 1 at x = e^exponent; the exponents met are small, where the plain form cancels."""
    if abs(exponent) < 1e-3:
        return exponent**2 * (0.5 + exponent / 3 + exponent**2 / 8)
    return math.exp(exponent) * exponent - math.expm1(exponent)


def _divide(x: float, y: float) -> float:
    return x / y if y > 0 else math.inf
