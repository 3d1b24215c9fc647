"""Privacy on most pairs of inputs, from a test of one pair."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from cloakwork.auditing.testers.lower_bounds import share_limit
from cloakwork.auditing.testers.outcome_pair import checked_confidence
from cloakwork.auditing.testers.query_plan import (
    CONFIDENCE,
    Answer,
    Mechanism,
    Promise,
    QueryPlan,
    Tester,
    least_count,
    votes,
)
from cloakwork.auditing.testers.unknown_pair import UnknownPair
from cloakwork.errors import InputError


@dataclass(frozen=True)
class ShareSize:
    """The size of a test of a share: pairs to draw, and how many of them may be bad."""

    pairs: int
    allowed: int


@dataclass(frozen=True)
class RandomPrivacy:
    """Tests that all but a share `gamma` of the pairs of neighbouring inputs are private.

    Parameters
    ----------
    tester
        A test of one pair, without information about it (one that knows a pair would need it for every pair).
    neighbours
        Called with rng, draws a pair of neighbouring inputs as they occur; the answer is about this distribution.
    gamma
        The share of pairs that may be bad, from 0.
    slack
        The gap in the share: a mechanism that is far from the claim on more than gamma + slack of the pairs is
        rejected. It is 2 alpha / lambda in the thesis.
    confidence
        Probability of a right answer on either side, above 1/2.

    Notes
    -----
    McMillan's Algorithm 3. Each pair is tested so often that a majority vote is wrong with a probability of at most
    slack/4. The thesis repeats log(2 lambda / alpha) times, which leaves far more; 18 ln(2 lambda / alpha) suffices by
    Hoeffding's inequality, and the exact binomial tail a little less. `UnknownPair` is given that confidence itself, at
    a fraction of the cost of a vote. A pair is then found bad with a probability of at most gamma + (1-gamma) slack/4,
    or at least (gamma + slack)(1 - slack/4), and the number of pairs is found from exact binomial tails: several times
    fewer than Bernstein's ln 3 (8 gamma + 28 slack/3) / (slack/2)^2.
    """

    tester: Tester
    neighbours: Callable[[np.random.Generator], tuple[Any, Any]] = field(repr=False)
    gamma: float
    slack: float
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)
        if not (0 <= self.gamma < 1 and self.slack > 0 and self.gamma + self.slack <= 1):
            raise InputError(
                f"gamma={self.gamma!r} with slack={self.slack!r}: give shares of pairs, gamma from 0 and slack above "
                "0, that sum to at most 1.",
                gamma=self.gamma,
                slack=self.slack,
            )

    @cached_property
    def each(self) -> Tester:
        """The test of one pair, made so sure that it is wrong with a probability of at most slack/4."""
        enough = 1 - self.slack / 4
        if self.tester.plan.confidence >= enough:
            return self.tester
        if isinstance(self.tester, UnknownPair):
            return replace(self.tester, confidence=enough)
        return Amplified(self.tester, confidence=enough)

    @cached_property
    def size(self) -> ShareSize:
        """Pairs to draw, and how many of them may be bad."""
        wrong = self.slack / 4
        low = self.gamma + (1 - self.gamma) * wrong
        return share_size(low, (self.gamma + self.slack) * (1 - wrong), 1 - self.confidence)

    @cached_property
    def plan(self) -> QueryPlan:
        """Cost and promise of the test; `per_input` is for each input of each pair."""
        one, pairs = self.each.plan, self.size.pairs
        return replace(
            one,
            tester=f"{self.tester.plan.tester}, on {pairs:,} random pairs",
            total=pairs * one.total,
            confidence=self.confidence,
            lower=self.tester.plan.lower,
            promise=Promise(
                f"on all but a share {self.gamma:g} of the pairs this holds: {one.promise.private}",
                f"on more than a share {self.gamma + self.slack:g} of the pairs this holds: {one.promise.far}",
                "It speaks of pairs drawn as they were drawn here.",
            ),
            why=f"{pairs:,} pairs, of which no test needs fewer than "
            f"{share_limit(gamma=self.gamma, slack=self.slack, confidence=self.confidence):,}. {one.why}",
        )

    def test(self, mechanism: Mechanism, rng: np.random.Generator) -> Answer:
        """Draw pairs and test each, until the answer is decided. The statistic is the number of pairs found bad."""
        each, size = self.each, self.size
        bad = good = queries = 0
        while bad <= size.allowed and good < size.pairs - size.allowed:
            answer = each.test(mechanism, rng, databases=self.neighbours(rng))
            queries += answer.queries
            bad, good = bad + (not answer.accepts), good + answer.accepts
        return Answer(
            accepts=bad <= size.allowed,
            statistic=float(bad),
            threshold=float(size.allowed),
            queries=queries,
            reason=f"{bad} of {bad + good} pairs were found bad; rejected above {size.allowed} of {size.pairs}.",
            guarantee=self.plan.guarantee,
        )


def share_size(low: float, high: float, failure: float) -> ShareSize:
    """A number of trials and a cut that tell a chance of at most `low` from one of at least `high`.

    Notes
    -----
    Exact binomial tails. The cut is the least that the low chance exceeds with at most `failure`; the number of trials
    is found by doubling and halving, so it suffices but need not be the very least.
    """

    def cut(trials: int) -> int:
        return int(stats.binom.ppf(1 - failure, trials, low))

    if not 0 <= low < high <= 1:
        raise InputError(f"low={low!r}, high={high!r}: give two chances, the first smaller.", low=low, high=high)
    trials = least_count(lambda trials: bool(stats.binom.cdf(cut(trials), trials, high) <= failure), tolerance=1 / 1000)
    return ShareSize(trials, cut(trials))


@dataclass(frozen=True)
class Amplified:
    """The same test several times, with fresh queries, and the majority of the answers.

    The testers here take a confidence themselves, which costs far less (the logarithm is added there and multiplies
    here); this is for tests that do not, but are right with a probability above 1/2.

    Notes
    -----
    The number of repetitions is odd and the smallest by the exact binomial tail, at most
    ln(1/failure) / (2 (c - 1/2)^2) for a test of confidence c by Hoeffding's inequality: 18 ln(1/failure) at 2/3.
    """

    tester: Tester
    confidence: float = 0.95

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)
        if not self.tester.plan.confidence > 0.5:
            raise InputError(
                f"The test is right with probability {self.tester.plan.confidence:g}: a majority helps above 1/2 only.",
                confidence=self.tester.plan.confidence,
            )

    @cached_property
    def repetitions(self) -> int:
        """Number of repetitions, if all are needed."""
        return votes(1 - self.tester.plan.confidence, 1 - self.confidence)

    @cached_property
    def plan(self) -> QueryPlan:
        """Cost and promise of all repetitions."""
        inner, k = self.tester.plan, self.repetitions
        return replace(
            inner,
            tester=f"{inner.tester}, majority of {k}",
            per_input=k * inner.per_input,
            at_most=k * inner.at_most,
            total=k * inner.total,
            confidence=self.confidence,
            why=f"{k} times {inner.per_input:,} on each input. {inner.why}",
        )

    def test(self, mechanism: Mechanism, rng: np.random.Generator, *, databases: tuple[Any, Any] = (0, 1)) -> Answer:
        """Repeat the test until the majority is decided. The statistic is the share of answers that reject."""
        answers: dict[bool, list[Answer]] = {True: [], False: []}
        while max(map(len, answers.values())) <= self.repetitions // 2:
            answer = self.tester.test(mechanism, rng, databases=databases)
            answers[answer.accepts].append(answer)
        accepts, rejections = len(answers[True]) > len(answers[False]), len(answers[False])
        made = answers[True] + answers[False]
        return Answer(
            accepts=accepts,
            statistic=rejections / len(made),
            threshold=0.5,
            queries=sum(answer.queries for answer in made),
            reason=f"{rejections} of {len(made)} tests rejected; for example: {answers[accepts][0].reason}",
            guarantee=self.plan.guarantee,
        )
