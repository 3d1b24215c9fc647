"""What a tester promises before it samples, and what it says after."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import stats

from cloakwork._checks import rounded_down
from cloakwork.auditing.testers.mechanism import Mechanism

CONFIDENCE = 2 / 3
RARELY = 1e-6


@dataclass(frozen=True)
class Promise:
    """What must be accepted and what must be rejected, as halves of a sentence, and what neither covers."""

    private: str
    far: str
    caveat: str = ""

    def at(self, confidence: float) -> str:
        """The guarantee in words, for a probability of a right answer."""
        text = (
            f"With probability at least {rounded_down(confidence)} it accepts if {self.private}, and with "
            "probability at least "
            f"{rounded_down(confidence)} it rejects if {self.far}. In between it may say either."
        )
        return f"{text} {self.caveat}".rstrip()


@dataclass(frozen=True)
class QueryPlan:
    """What a test costs and what its answer will mean, known before the first query.

    Parameters
    ----------
    tester
        Which test this is, in words.
    per_input
        Queries on each of the two inputs; where the number is drawn (Poisson), its mean.
    at_most
        Queries on each input that are exceeded with a probability below 1e-6; equal to `per_input` if it is fixed.
    total
        Queries in all.
    confidence
        Probability of a right answer, on a private pair and on one that is `alpha` away alike.
    alpha
        The gap between what must be accepted and what must be rejected (the proximity parameter of McMillan,
        Definition 9.1).
    lower
        No test whatever with this confidence and this gap does with fewer queries on each input.
    promise
        What must be accepted and what must be rejected; `guarantee` says it in words.
    why
        Where the number of queries comes from.
    """

    tester: str
    per_input: int
    at_most: int
    total: int
    confidence: float
    alpha: float
    lower: int
    promise: Promise
    why: str

    @property
    def guarantee(self) -> str:
        """What an answer will mean."""
        return self.promise.at(self.confidence)

    def __str__(self) -> str:
        return (
            f"{self.tester}: {self.per_input:,} queries on each input, {self.total:,} in all "
            f"(no test needs fewer than {self.lower:,} on each).\n{self.guarantee}\n{self.why}"
        )


@dataclass(frozen=True)
class Answer:
    """What a test said.

    Parameters
    ----------
    accepts
        True: nothing spoke against the claim. It is never a proof: see `guarantee`.
    statistic, threshold
        The test rejects when the first is above the second.
    queries
        Made in all, on both inputs together.
    reason
        What decided, in words.
    guarantee
        What the answer means.
    """

    accepts: bool
    statistic: float
    threshold: float
    queries: int
    reason: str
    guarantee: str

    def __str__(self) -> str:
        return f"{'accepts' if self.accepts else 'rejects'} after {self.queries:,} queries: {self.reason}"


class Tester(Protocol):
    """Any test of two inputs: a plan, and an answer."""

    @property
    def plan(self) -> QueryPlan: ...

    def test(
        self,
        mechanism: Mechanism,
        rng: np.random.Generator,
        *,
        databases: tuple[Any, Any] = (0, 1),  # noqa: PT028 (no test of ours)
    ) -> Answer: ...


def seldom_above(mean: float) -> int:
    """A number that a Poisson draw of this mean exceeds with a probability below 1e-6."""
    if mean > 1e9:
        return int(np.ceil(mean + 5 * np.sqrt(mean) + 5))
    return int(stats.poisson.isf(RARELY / 2, mean))


def smallest(suffices: Callable[[float], bool], start: float = 1.0) -> float:
    """The smallest number, to within one part in 10^9 upwards, from which `suffices` holds; it must be monotone."""
    low, high = 0.0, start
    while not suffices(high):
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


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
    low, high = -1, 0
    while most_failures(2 * high + 1, chance) > failure:
        low, high = high, max(2 * high, 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if most_failures(2 * middle + 1, chance) <= failure else (middle, high)
    return 2 * high + 1
