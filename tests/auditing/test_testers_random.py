"""Votes and shares: any confidence from any test, and privacy on most pairs."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cloakwork.auditing.testers import (
    Amplified,
    Answer,
    Mechanism,
    Promise,
    QueryPlan,
    RandomPrivacy,
    UnknownPair,
    share_limit,
)
from cloakwork.auditing.testers.query_plan import votes
from cloakwork.auditing.testers.random_privacy import share_size
from cloakwork.errors import InputError
from tests.auditing.tester_kit import ONE_WAY, halves


@dataclass(frozen=True)
class Erring:
    """A test that looks at its inputs ("bad" is bad) and errs exactly as often as it may."""

    confidence: float = 2 / 3

    @property
    def plan(self) -> QueryPlan:
        return QueryPlan("erring", 10, 10, 20, self.confidence, 0.1, 1, Promise("it is good", "it is bad"), "Because.")

    def test(self, mechanism: Mechanism, rng: np.random.Generator, *, databases: tuple[Any, Any] = (0, 1)) -> Answer:
        assert mechanism is nothing
        right = bool(rng.random() < self.confidence)
        return Answer(right == (databases[0] != "bad"), 0.0, 0.0, 20, "seen", "")


def nothing(database: object, size: int, rng: np.random.Generator) -> list[int]:
    raise AssertionError


@pytest.mark.parametrize("chance", [1 / 3, 0.1, 0.45])
@pytest.mark.parametrize("failure", [0.3, 0.05, 1e-3, 1e-8])
def test_votes_are_the_least_odd_number_that_do(chance: float, failure: float) -> None:
    k = votes(chance, failure)

    def wrong(n: int) -> float:
        return sum(math.comb(n, j) * chance**j * (1 - chance) ** (n - j) for j in range(n // 2 + 1, n + 1))

    assert k % 2 == 1
    if k < 400:
        assert wrong(k) <= failure
        assert k == 1 or wrong(k - 2) > failure
    assert k <= math.ceil(math.log(1 / failure) / (2 * (0.5 - chance) ** 2)) + 1


def test_printed_repetitions_are_far_too_few() -> None:
    share = 0.01  # alpha / lambda
    printed = math.ceil(math.log(2 / share))
    assert stats.binom.sf(printed // 2, printed, 1 / 3) > 10 * share / 2
    assert votes(1 / 3, share / 2) <= 18 * math.log(2 / share)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_a_majority_reaches_its_confidence(confidence: float) -> None:
    rng = np.random.default_rng(0)
    tester = Amplified(Erring(), confidence)
    good = [tester.test(nothing, rng) for _ in range(1500)]
    bad = [tester.test(nothing, rng, databases=("bad", "bad")) for _ in range(1500)]
    assert np.mean([answer.accepts for answer in good]) >= confidence - 0.02
    assert np.mean([not answer.accepts for answer in bad]) >= confidence - 0.02
    # votes are no more than needed, so neither is the confidence
    assert np.mean([answer.accepts for answer in good]) < confidence + 0.06
    assert max(answer.queries for answer in good) <= tester.plan.total
    assert np.mean([answer.queries for answer in good]) < 0.9 * tester.plan.total


def test_a_majority_of_real_tests() -> None:
    rng = np.random.default_rng(0)
    tester = Amplified(UnknownPair(2, 1.0, 0.05, 0.15), 0.99)
    assert tester.plan.per_input == tester.repetitions * UnknownPair(2, 1.0, 0.05, 0.15).plan.per_input
    assert "probability at least 0.99" in tester.plan.guarantee
    assert tester.test(halves(2, 1.0, 0.05), rng).accepts
    answer = tester.test(ONE_WAY, rng)
    assert not answer.accepts
    assert "tests rejected; for example: delta at epsilon 1 looks like 0." in answer.reason


def test_a_guess_cannot_be_amplified() -> None:
    with pytest.raises(InputError, match="1/2"):
        Amplified(Erring(0.5))
    with pytest.raises(InputError, match="confidence=1"):
        Amplified(Erring(), 1.0)


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.2), (0.05, 0.1), (0.3, 0.5), (0.0025, 0.01)])
@pytest.mark.parametrize("failure", [1 / 3, 0.05])
def test_the_number_of_pairs_tells_the_two_shares_apart(low: float, high: float, failure: float) -> None:
    size = share_size(low, high, failure)
    assert stats.binom.sf(size.allowed, size.pairs, low) <= failure
    assert stats.binom.cdf(size.allowed, size.pairs, high) <= failure


@pytest.mark.parametrize(("gamma", "slack"), [(0.0, 0.1), (0.1, 0.05), (0.02, 0.02), (0.3, 0.5)])
def test_fewer_pairs_than_bernstein_and_more_than_anyone_needs(gamma: float, slack: float) -> None:
    tester = RandomPrivacy(Erring(), lambda _: ("good", "good"), gamma, slack)
    half = slack / 2
    bernstein = math.log(3) * (8 * gamma + 56 * half / 3) / half**2
    assert tester.size.pairs < bernstein / 3
    assert share_limit(gamma=gamma, slack=slack) < tester.size.pairs
    size, wrong = tester.size, slack / 4
    assert stats.binom.sf(size.allowed, size.pairs, gamma + (1 - gamma) * wrong) <= 1 / 3
    assert stats.binom.cdf(size.allowed, size.pairs, (gamma + slack) * (1 - wrong)) <= 1 / 3
    assert tester.plan.total == tester.size.pairs * tester.each.plan.total


@pytest.mark.parametrize(("gamma", "slack"), [(0.0, 0.2), (0.1, 0.15)])
def test_shares_on_the_boundary_are_accepted_and_at_the_distance_rejected(gamma: float, slack: float) -> None:
    rng = np.random.default_rng(2)

    def share(bad: float) -> float:
        tester = RandomPrivacy(
            Erring(), lambda rng: ("bad", "bad") if rng.random() < bad else ("good", "good"), gamma, slack
        )
        said = [tester.test(nothing, rng) for _ in range(150)]
        assert max(answer.queries for answer in said) <= tester.plan.total
        return float(np.mean([answer.accepts for answer in said]))

    assert share(gamma) >= 2 / 3 - 0.05
    assert share(gamma + slack) <= 1 / 3 + 0.05


def test_a_real_family_with_a_real_test() -> None:
    rng = np.random.default_rng(5)
    p, q = ONE_WAY.zero, ONE_WAY.one

    class Family:
        """People 0..9; the last is treated apart from the others."""

        def __init__(self, apart: int) -> None:
            self.apart = apart

        def __call__(self, *asked: Any) -> Any:
            raise AssertionError(asked)

        def counts(self, database: int, size: int, rng: np.random.Generator) -> Any:
            return rng.multinomial(size, q if database >= 10 - self.apart else p)

    tester = RandomPrivacy(UnknownPair(2, 1.0, 0.02, 0.15), lambda rng: (0, int(rng.integers(1, 10))), 0.15, 0.3)
    assert [tester.test(Family(0), rng).accepts for _ in range(5)] == [True] * 5
    assert sum(tester.test(Family(1), rng).accepts for _ in range(30)) >= 20  # 1 of 9 pairs is bad: allowed
    assert sum(tester.test(Family(5), rng).accepts for _ in range(30)) <= 10  # 5 of 9
    assert "on all but a share 0.15 of the pairs" in tester.plan.guarantee


@pytest.mark.parametrize(("gamma", "slack"), [(-0.1, 0.1), (0.1, 0.0), (0.8, 0.3), (math.nan, 0.1)])
def test_impossible_shares_are_refused(gamma: float, slack: float) -> None:
    with pytest.raises(InputError, match="shares"):
        RandomPrivacy(UnknownPair(2, 1.0), lambda _: (0, 1), gamma, slack)


def test_a_test_that_can_be_surer_is_made_surer_instead() -> None:
    tester = RandomPrivacy(UnknownPair(16, 1.0, 0.05), lambda _: (0, 1), 0.05, 0.04)
    assert tester.each == UnknownPair(16, 1.0, 0.05, confidence=0.99)
    assert tester.each.plan.total < 0.1 * Amplified(UnknownPair(16, 1.0, 0.05), 0.99).plan.total


def test_a_confident_test_is_not_voted_on() -> None:
    sure = Erring(0.999)
    assert RandomPrivacy(sure, lambda _: (0, 1), 0.1, 0.1).each is sure
    assert isinstance(RandomPrivacy(Erring(), lambda _: (0, 1), 0.1, 0.1).each, Amplified)
