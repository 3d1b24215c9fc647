"""Approximate privacy without information: right on the boundary, right at the distance, both directions."""

import math

import numpy as np
import pytest
from scipy import stats

from cloakwork.auditing.testers import Pair, UnknownPair, hard_pairs
from cloakwork.errors import InputError
from tests.auditing.tester_kit import ONE_WAY, accepted, answers, crooked, halves, single, turned

CLAIMS = [(1.0, 0.05, 0.1), (0.0, 0.1, 0.2), (2.0, 0.01, 0.3)]


@pytest.mark.parametrize("n", [2, 3, 16, 256])
@pytest.mark.parametrize(("epsilon", "delta", "alpha"), CLAIMS)
def test_the_boundary_is_accepted_and_the_distance_rejected(n: int, epsilon: float, delta: float, alpha: float) -> None:
    rng = np.random.default_rng([n, int(10 * epsilon)])
    tester = UnknownPair(n, epsilon, delta, alpha)
    for make in (halves, single):
        for turn in (turned, lambda pair: pair):
            assert accepted(tester, turn(make(n, epsilon, delta)), rng, 60) >= 0.8
            assert accepted(tester, turn(make(n, epsilon, delta + alpha)), rng, 60) <= 0.2


@pytest.mark.parametrize("n", [2, 10, 100])
def test_random_pairs_are_told_apart_too(n: int) -> None:
    rng = np.random.default_rng(n)
    tester = UnknownPair(n, 0.7, 0.03, 0.15)
    for _ in range(4):
        assert accepted(tester, crooked(n, 0.7, 0.03, rng), rng, 40) >= 0.8
        assert accepted(tester, crooked(n, 0.7, 0.18, rng), rng, 40) <= 0.2


def test_a_violator_of_one_direction_is_rejected_whichever_it_is() -> None:
    rng = np.random.default_rng(7)
    tester = UnknownPair(2, 1.0, 0.05, 0.15)
    for pair in (ONE_WAY, turned(ONE_WAY)):
        said = answers(tester, pair, 100, rng)
        assert not any(answer.accepts for answer in said)
    x, y = (ONE_WAY.counts(k, 40_000, rng) for k in (0, 1))
    seen = tester.estimate(x, y, 40_000)
    assert seen.forward == 0
    assert seen.backward == pytest.approx(0.21, abs=0.03)


def exactly_accepted(tester: UnknownPair, pair: Pair) -> float:
    """Probability of accepting, by summing over all counts of two outcomes."""
    size = tester.mean_queries
    threshold = tester.test(pair, np.random.default_rng(0)).threshold
    factor, parts = math.exp(tester.epsilon), []
    for p, q in zip(pair.zero, pair.one, strict=True):
        most = int(stats.poisson.isf(1e-9, size)) + 1
        x, y = np.meshgrid(np.arange(most), np.arange(most))
        chance = stats.poisson.pmf(x, size * p) * stats.poisson.pmf(y, size * q)
        keep = chance > 1e-9
        parts.append((chance[keep], np.maximum(x - factor * y, 0)[keep], np.maximum(y - factor * x, 0)[keep]))
    (c1, f1, b1), (c2, f2, b2) = parts
    total = 0.0
    for c, f, b in zip(c1, f1, b1, strict=True):
        total += float(c * c2[(np.maximum(f + f2, b + b2) <= threshold * size)].sum())
    return total


@pytest.mark.parametrize("confidence", [2 / 3, 0.9])
def test_simulation_agrees_with_the_sum_over_all_counts(confidence: float) -> None:
    rng = np.random.default_rng(2)
    tester = UnknownPair(2, 0.2, 0.05, 0.85, confidence)
    pairs = hard_pairs(epsilon=0.2, delta=0.05, alpha=0.85)
    middle = Pair([0.85, 0.15], [0.3, 0.7])
    for pair in (pairs.private, pairs.far, middle):
        exact = exactly_accepted(tester, pair)
        assert accepted(tester, pair, rng, 2000) == pytest.approx(exact, abs=0.04)
    assert exactly_accepted(tester, pairs.private) >= confidence
    assert exactly_accepted(tester, pairs.far) <= 1 - confidence
    assert 0.03 < exactly_accepted(tester, middle) < 0.97


@pytest.mark.parametrize("n", [2, 24, 300])
@pytest.mark.parametrize(("epsilon", "delta", "alpha"), CLAIMS)
def test_the_size_is_below_what_is_known_to_suffice_and_no_larger_than_needed(
    n: int, epsilon: float, delta: float, alpha: float
) -> None:
    tester = UnknownPair(n, epsilon, delta, alpha)
    size = tester.mean_queries
    assert size <= max(n, 24) * (1 + math.exp(2 * epsilon)) / (alpha / 2) ** 2
    spread = (1 + math.exp(2 * epsilon)) / size
    # Cantelli and Bernstein at 1/6 and 1/3, and half a standard deviation of each outcome
    up = [
        math.sqrt(5 * spread),
        math.log(6) / size / 3 + math.sqrt((math.log(6) / size / 3) ** 2 + 2 * spread * math.log(6)),
    ]
    assert alpha == pytest.approx(math.sqrt(n * spread) / 2 + min(up) + math.sqrt(2 * spread), rel=1e-6)


def test_the_size_at_high_confidence_has_bernsteins_steps() -> None:
    tester = UnknownPair(4, 1.5, 0.05, 0.4, 0.9999)
    size = tester.mean_queries
    spread = (1 + math.exp(3)) / size

    def leaves(step: float, failure: float) -> float:
        """t with t^2 / (2 (variance + step t / 3)) = ln(1/failure)."""
        logarithm = math.log(1 / failure)
        return float(np.roots([1, -2 * step * logarithm / 3, -2 * spread * logarithm]).max())

    needed = math.sqrt(4 * spread) / 2 + leaves(1 / size, 5e-5) + leaves(math.exp(1.5) / size, 1e-4)
    assert needed == pytest.approx(0.4, rel=1e-6)


def test_the_estimate_is_never_below_on_average_and_within_the_bound_above() -> None:
    rng = np.random.default_rng(11)
    n, epsilon, delta, size = 64, 1.0, 0.1, 3000.0
    tester, pair = UnknownPair(n, epsilon, delta), halves(n, epsilon, delta)
    seen = [
        tester.estimate(rng.poisson(size * pair.zero), rng.poisson(size * pair.one), size).forward for _ in range(2000)
    ]
    spread = (1 + math.exp(2 * epsilon)) / size
    assert delta < np.mean(seen) < delta + math.sqrt(n * spread) / 2
    assert np.var(seen) < spread


def test_confidence_is_added_not_multiplied() -> None:
    base, sure = UnknownPair(256, 1.0, 0.05), UnknownPair(256, 1.0, 0.05, confidence=0.999)
    assert base.mean_queries < sure.mean_queries < 2.5 * base.mean_queries
    rng = np.random.default_rng(4)
    assert accepted(sure, halves(256, 1.0, 0.05), rng) == 1
    assert accepted(sure, halves(256, 1.0, 0.15), rng) == 0


def test_the_plan_says_what_is_spent_and_promised() -> None:
    tester = UnknownPair(16, 1.0, 0.05, 0.1)
    plan, answer = tester.plan, tester.test(halves(16, 1.0, 0.05), np.random.default_rng(1))
    assert plan.lower < plan.per_input < plan.at_most
    assert plan.total == 2 * plan.per_input
    assert answer.queries == pytest.approx(plan.total, rel=0.05)
    assert "accepts if the mechanism is (1, 0.05)-private" in plan.guarantee
    assert "needs a delta above 0.15 at epsilon 1" in plan.guarantee
    assert answer.guarantee == plan.guarantee
    assert f"{plan.per_input:,} queries on each input" in str(plan)


@pytest.mark.parametrize(
    ("n", "epsilon", "delta", "alpha", "confidence", "message"),
    [
        (1, 1.0, 0.1, 0.1, 0.9, "n=1: give the number of outcomes"),
        (2, -1.0, 0.1, 0.1, 0.9, "epsilon=-1.0"),
        (2, 1.0, 0.5, 0.5, 0.9, "no mechanism has a delta above 1"),
        (2, 1.0, 0.1, 0.0, 0.9, "alpha from 1e-12"),
        (2, 1.0, -0.1, 0.1, 0.9, "delta=-0.1"),
        (2, 1.0, 0.1, 0.1, 0.5, "above 1/2 and below 1"),
        (2, 1.0, 0.1, 0.1, 1.0, "above 1/2 and below 1"),
    ],
)
def test_what_cannot_be_tested_is_refused(
    n: int, epsilon: float, delta: float, alpha: float, confidence: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        UnknownPair(n, epsilon, delta, alpha, confidence)
