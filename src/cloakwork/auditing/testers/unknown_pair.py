"""Approximate privacy with no information about the mechanism."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.auditing.testers.lower_bounds import approximate_limit, checked_gap
from cloakwork.auditing.testers.outcome_pair import Deltas, checked_confidence, checked_epsilon, checked_outcomes
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


@dataclass(frozen=True)
class UnknownPair:
    """Tests an (epsilon, delta) claim on two inputs when nothing is known but the n possible outcomes.

    Parameters
    ----------
    n
        Number of outcomes, 2 or above.
    epsilon, delta
        The claim. With delta = 0 a delta of up to `alpha` still passes: pure privacy itself cannot be verified.
    alpha
        The gap: a mechanism that needs more than delta + alpha at this epsilon is rejected.
    confidence
        Probability of a right answer on either side, above 1/2.

    Notes
    -----
    McMillan's Algorithm 4. Counts X_i, Y_i of two independent Poisson(lambda) numbers of answers are independent
    Poisson, and z = sum_i max(0, X_i - e^epsilon Y_i) / lambda is an estimate of delta_epsilon that is never too small
    on average. Corrected: the sums run over the n outcomes; the two numbers of answers are drawn apart and divided by
    lambda; both directions are tested (one direction accepts violators of the other every time).

    The size. With v = (1 + e^(2 epsilon)) / lambda: E z <= delta_epsilon + sqrt(n v) / 2, since E max(0, Z) <=
    (mu + sqrt(mu^2 + s^2)) / 2; Var z <= v; and one answer more moves z by at most 1/lambda up and e^epsilon / lambda
    down, so that with L = ln(1/f) and b that step, z leaves its mean by t with a probability of at most f for
    t = b L / 3 + sqrt((b L / 3)^2 + 2 v L) (Bernstein's inequality from Wu's logarithmic Sobolev inequality for Poisson
    points), or for t = sqrt(v (1/f - 1)) (Cantelli). lambda is the least at which the upward error and t at f/2 (two
    directions) and the downward t at f fit into alpha, f = 1 - confidence. The thesis has alpha/2 for our alpha,
    prints 4 n (1 + e^(2 epsilon)) / (alpha/2)^2 and proves that number with (1 + e^(2 epsilon))^2;
    max(n, 24) (1 + e^(2 epsilon)) / (alpha/2)^2 suffices with its threshold in the middle and Chebyshev's inequality.

    Examples
    --------
    >>> import numpy as np
    >>> from cloakwork.auditing.testers import Pair
    >>> tester = UnknownPair(n=2, epsilon=1.0, delta=0.05, alpha=0.1)
    >>> tester.plan.per_input
    13531
    >>> leaky = Pair([0.1, 0.9], [0.48, 0.52])  # private one way, delta 0.21 the other way
    >>> tester.test(leaky, np.random.default_rng(0)).accepts
    False
    """

    n: int
    epsilon: float
    delta: float = 0.0
    alpha: float = 0.1
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        checked_outcomes(self.n)
        checked_epsilon(self.epsilon)
        checked_gap(self.delta, self.alpha)
        checked_confidence(self.confidence)

    @cached_property
    def mean_queries(self) -> float:
        """lambda, the mean number of queries on each input."""
        return smallest(lambda size: self.alpha >= sum(self._errors(size)), start=1 / self.alpha)

    @cached_property
    def plan(self) -> QueryPlan:
        """Cost and promise of the test."""
        size = self.mean_queries
        return QueryPlan(
            tester="approximate privacy, no information",
            per_input=math.ceil(size),
            at_most=seldom_above(size),
            total=2 * math.ceil(size),
            confidence=self.confidence,
            alpha=self.alpha,
            lower=approximate_limit(
                n=self.n, epsilon=self.epsilon, delta=self.delta, alpha=self.alpha, confidence=self.confidence
            ),
            promise=self._promise,
            why=f"The number grows with the {self.n} outcomes, with e^(2 epsilon) and with 1/alpha^2; any test without "
            "information needs nearly as many as there are outcomes (McMillan, Theorem 10.7).",
        )

    def test(self, mechanism: Mechanism, rng: np.random.Generator, *, databases: tuple[Any, Any] = (0, 1)) -> Answer:
        """Query the mechanism on the two neighbouring inputs and test whether the claim stands."""
        size = self.mean_queries
        asked = [int(rng.poisson(min(size, 1e18))) for _ in databases]
        x, y = (count_outcomes(mechanism, d, r, self.n, rng) for d, r in zip(databases, asked, strict=True))
        seen = self.estimate(x, y, size)
        threshold = self.delta + self.alpha - self._errors(size)[1]
        towards = "second" if seen.backward > seen.forward else "first"
        return Answer(
            accepts=seen.largest <= threshold,
            statistic=seen.largest,
            threshold=threshold,
            queries=sum(asked),
            reason=f"delta at epsilon {self.epsilon:g} looks like {seen.largest:.4g}, "
            f"from the {towards} input to the other; rejected above {threshold:.4g}.",
            guarantee=self.plan.guarantee,
        )

    def estimate(self, x: IntArray, y: IntArray, size: float) -> Deltas:
        """Delta at epsilon in each direction, from the counts on each input and the mean number of queries."""
        factor = math.exp(self.epsilon)
        forward = float(np.maximum(x - factor * y, 0).sum()) / size
        backward = float(np.maximum(y - factor * x, 0).sum()) / size
        return Deltas(forward, backward)

    @property
    def _promise(self) -> Promise:
        return Promise(
            f"the mechanism is ({self.epsilon:g}, {self.delta:g})-private on these two inputs",
            f"it needs a delta above {self.delta + self.alpha:g} at epsilon {self.epsilon:g}",
        )

    def _errors(self, size: float) -> tuple[float, float]:
        """Upward error of the estimates, both directions, and downward error, except for the allowed failures."""
        spread, failure = (1 + math.exp(2 * self.epsilon)) / size, 1 - self.confidence
        above = math.sqrt(self.n * spread) / 2 + _deviation(spread, 1 / size, failure / 2)
        return above, _deviation(spread, math.exp(self.epsilon) / size, failure)


def _deviation(variance: float, step: float, failure: float) -> float:
    """The deviation of a sum from its mean that has a probability of at most `failure`; one term moves it by `step`."""
    logarithm = -math.log(failure)
    part = step * logarithm / 3
    return min(math.sqrt(variance * (1 / failure - 1)), part + math.sqrt(part * part + 2 * variance * logarithm))
