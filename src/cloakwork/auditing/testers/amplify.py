"""Any test, to any confidence: the majority of several."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cloakwork.auditing.testers.distances import checked_confidence
from cloakwork.auditing.testers.mechanism import Mechanism
from cloakwork.auditing.testers.plan import Answer, QueryPlan, Tester, votes
from cloakwork.errors import InputError


@dataclass(frozen=True)
class Amplified:
    """The same test several times, with fresh queries, and the majority of the answers.

    The testers here take a confidence themselves, which costs far less (the logarithm is added there and multiplies
    here); this is for tests that do not.

    Parameters
    ----------
    tester
        A test that is right with its own confidence, above 1/2.
    confidence
        Probability of a right answer to reach, below 1.

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
        """How often the test is made, if all are needed."""
        return votes(1 - self.tester.plan.confidence, 1 - self.confidence)

    @cached_property
    def plan(self) -> QueryPlan:
        """What all repetitions cost and promise."""
        inner, k = self.tester.plan, self.repetitions
        return QueryPlan(
            tester=f"{inner.tester}, majority of {k}",
            per_input=k * inner.per_input,
            at_most=k * inner.at_most,
            total=k * inner.total,
            confidence=self.confidence,
            alpha=inner.alpha,
            lower=inner.lower,
            promise=inner.promise,
            why=f"{k} times {inner.per_input:,} on each input. {inner.why}",
        )

    def test(self, mechanism: Mechanism, rng: np.random.Generator, *, databases: tuple[Any, Any] = (0, 1)) -> Answer:
        """Repeat the test until the majority is decided. The statistic is the share of answers that reject."""
        k, queries = self.repetitions, 0
        heard: dict[bool, list[Answer]] = {True: [], False: []}
        while max(map(len, heard.values())) <= k // 2:
            answer = self.tester.test(mechanism, rng, databases=databases)
            queries += answer.queries
            heard[answer.accepts].append(answer)
        accepts = len(heard[True]) > len(heard[False])
        made = len(heard[True]) + len(heard[False])
        return Answer(
            accepts=accepts,
            statistic=len(heard[False]) / made,
            threshold=0.5,
            queries=queries,
            reason=f"{len(heard[False])} of {made} tests rejected; for example: {heard[accepts][0].reason}",
            guarantee=self.tester.plan.promise.at(self.confidence),
        )
