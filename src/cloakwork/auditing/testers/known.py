"""Approximate privacy with a full, untrusted description of the mechanism."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.auditing.testers.distances import Pair, checked_confidence, checked_epsilon
from cloakwork.auditing.testers.limits import approximate_limit, checked_gap
from cloakwork.auditing.testers.mechanism import Mechanism, tally
from cloakwork.auditing.testers.plan import CONFIDENCE, Answer, Promise, QueryPlan, seldom_above

FLOORS = np.geomspace(1e-3, 4, 60)


@dataclass(frozen=True)
class IdentitySize:
    """How an identity test is set: mean number of answers, share of the floor, threshold."""

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
        """Total variation at which the mechanism must be told from its description."""
        return self.alpha / (1 + math.exp(self.epsilon))

    @cached_property
    def setting(self) -> IdentitySize:
        """How the identity test of each input is set."""
        return identity_size(self.stated.n, self.distance, self.confidence)

    @cached_property
    def plan(self) -> QueryPlan:
        """What the test costs and promises; no queries if the stated pair itself breaks the claim."""
        honest = self.stated_is_private
        size = self.setting.size if honest else 0.0
        return QueryPlan(
            tester="approximate privacy, full information",
            per_input=math.ceil(size),
            at_most=seldom_above(size) if honest else 0,
            total=2 * math.ceil(size),
            confidence=self.confidence,
            alpha=self.alpha,
            lower=self._lower() if honest else 0,
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
        """Query the mechanism on the two inputs and say whether it is as stated, and the claim stands."""
        if not self.stated_is_private:
            found = self.stated.delta(self.epsilon)
            return Answer(False, found, self.delta, 0, self._broken, self._promise.at(self.confidence))
        setting = self.setting
        asked = [int(rng.poisson(min(setting.size, 1e18))) for _ in databases]
        statistics = []
        for k, (database, size) in enumerate(zip(databases, asked, strict=True)):
            counts = tally(mechanism, database, size, self.stated.n, rng)
            statistics.append(identity_statistic(counts, self.stated.of(k), setting))
        worst = int(np.argmax(statistics))
        return Answer(
            accepts=statistics[worst] <= setting.threshold,
            statistic=statistics[worst],
            threshold=setting.threshold,
            queries=sum(asked),
            reason=_reason(statistics[worst], setting.threshold, worst),
            guarantee=self._promise.at(self.confidence),
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

    def _lower(self) -> int:
        return approximate_limit(
            n=self.stated.n, epsilon=self.epsilon, delta=self.delta, alpha=self.alpha, confidence=self.confidence
        )


def identity_size(n: int, distance: float, confidence: float) -> IdentitySize:
    """The least mean number of answers that tells q from everything at total variation `distance`, and how.

    Notes
    -----
    One of two inputs may fail on its own, so a right description must pass with a failure of (1 - confidence)/2 each;
    a wrong one must fail on one input alone.
    """
    failure = 1 - confidence
    one = 1 + FLOORS
    quiet = one * np.sqrt(2 * n * (2 / failure - 1))
    high = np.full(len(FLOORS), 1 / distance**2)
    while not (good := _separates(high, n, distance, failure, quiet)).all():
        high = np.where(good, high, 2 * high)
    low = np.zeros(len(FLOORS))
    for _ in range(60):
        middle = (low + high) / 2
        good = _separates(middle, n, distance, failure, quiet)
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    best = int(np.argmin(high))
    return IdentitySize(float(high[best]), float(FLOORS[best]), float(quiet[best]))


def identity_statistic(counts: IntArray, q: FloatArray, setting: IdentitySize) -> float:
    """T of the counts against q; infinite if an outcome of probability 0 was seen."""
    if counts[q == 0].any():
        return math.inf
    weights = (q + setting.floor / len(q)) / (1 + setting.floor)
    gaps = (counts - setting.size * q) ** 2 - counts
    return float((gaps / weights).sum()) / setting.size


def _separates(m: FloatArray, n: int, distance: float, failure: float, threshold: FloatArray) -> Any:
    """Whether T is above the threshold at total variation `distance`, for each floor, but for the allowed failures."""
    one = 1 + FLOORS
    c = 4 * distance**2
    far = c * one * n / FLOORS  # the largest possible sum of ((p - q) / w)^2
    variance = 2 * (np.sqrt(n) * one + np.sqrt(far)) ** 2 + 4 * m * c * (one + np.sqrt(far))
    return m * c - threshold >= np.sqrt(variance * (1 / failure - 1))


def _reason(statistic: float, threshold: float, worst: int) -> str:
    name = ("first", "second")[worst]
    if math.isinf(statistic):
        return f"on the {name} input an outcome was seen that the description says cannot occur."
    says = "is not as stated" if statistic > threshold else "is as stated as far as can be seen"
    return f"the {name} input {says}: chi-square statistic {statistic:.4g}, rejected above {threshold:.4g}."
