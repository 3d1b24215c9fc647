"""The testers of the thesis: right on the boundary of a claim and at the stated distance from it."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cloakwork.auditing import (
    KnownPair,
    KnownPure,
    Pair,
    RandomPrivacy,
    UnknownPair,
    binned,
    plan_queries,
)
from cloakwork.auditing.query_plan import count_outcomes
from cloakwork.errors import CloakworkError
from papers.query_limits import boundary_pair
from tests.auditing.tester_kit import ONE_WAY, Floats, accepted, crooked, halves, single, turned

RNG = np.random.default_rng(0)
CASES = [(2, 1.0, 0.05, 0.1), (3, 0.0, 0.1, 0.2), (16, 2.0, 0.01, 0.3), (256, 1.0, 0.05, 0.1)]


def never(database: int, size: int, rng: np.random.Generator) -> list[int]:
    raise AssertionError


@pytest.mark.parametrize(("n", "epsilon", "delta", "alpha"), CASES)
def test_without_information_the_boundary_is_accepted_and_the_distance_rejected(
    n: int, epsilon: float, delta: float, alpha: float
) -> None:
    rng = np.random.default_rng(n)
    tester = UnknownPair(n, epsilon, delta, alpha)
    for make in (halves, single):
        for turn in (turned, lambda pair: pair):
            assert accepted(tester, turn(make(n, epsilon, delta)), rng, 40) >= 0.8
            assert accepted(tester, turn(make(n, epsilon, delta + alpha)), rng, 40) <= 0.2
    assert accepted(tester, crooked(n, epsilon, delta, rng), rng, 40) >= 0.8


@pytest.mark.parametrize(("n", "epsilon", "delta", "alpha"), CASES)
def test_the_stated_pair_is_accepted_and_the_nearest_violator_rejected(
    n: int, epsilon: float, delta: float, alpha: float
) -> None:
    rng = np.random.default_rng(n)
    stated = halves(n, epsilon, delta)
    far = halves(n, epsilon, delta, moved=alpha / (1 + math.exp(epsilon)))
    assert far.delta(epsilon) == pytest.approx(delta + alpha)
    for turn in (turned, lambda pair: pair):
        tester = KnownPair(turn(stated), epsilon, delta, alpha)
        assert accepted(tester, turn(stated), rng, 60) >= 0.8
        assert accepted(tester, turn(far), rng, 60) <= 0.2


def test_a_stated_pair_that_breaks_the_claim_costs_no_query() -> None:
    for tester, found in (
        (KnownPair(ONE_WAY, 1.0, 0.1), 0.21),
        (KnownPair(turned(ONE_WAY), 1.0, 0.1), 0.21),
        (KnownPure(staircase(4, 1.2), 1.0), 1.2),
        (KnownPure(Pair([0.5, 0.5], [1.0, 0.0]), 1.0), math.inf),
    ):
        answer = tester.test(never, RNG)
        assert (answer.accepts, answer.queries, tester.plan.total) == (False, 0, 0)
        assert answer.statistic == pytest.approx(found)


def test_probability_where_the_description_has_none_is_rejected_at_once() -> None:
    stated, leaking = Pair([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]), Pair([0.49, 0.49, 0.02], [0.5, 0.5, 0.0])
    for tester in (KnownPair(stated, 1.0, 0.05), KnownPure(stated, 0.3, 0.4)):
        assert accepted(tester, stated, RNG, 60) >= 0.8
        answer = tester.test(leaking, RNG)
        assert (answer.accepts, answer.statistic) == (False, math.inf)


def moved(pair: Pair, outcome: int, up: float, down: float) -> Pair:
    """The pair with one outcome e^up more likely on input 0 and e^down less on input 1, the rest scaled."""

    def move(p: Floats, factor: float) -> Floats:
        changed: Floats = p * (1 - p[outcome] * factor) / (1 - p[outcome])
        changed[outcome] = p[outcome] * factor
        return changed

    return Pair(move(pair.zero, math.exp(up)), move(pair.one, math.exp(-down)))


def staircase(n: int, epsilon: float, steep: float = 3.0) -> Pair:
    """Half of the outcomes a factor e^epsilon likelier on input 0, the others less likely; probabilities uneven."""
    weights = np.linspace(1, steep, n)
    first = np.arange(n) % 2 == 0
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    zero, one = (
        np.where(first, s * weights / weights[first].sum(), (1 - s) * weights / weights[~first].sum())
        for s in (share, 1 - share)
    )
    return Pair(zero, one)


@pytest.mark.parametrize(("n", "epsilon", "alpha"), [(2, 1.0, 0.2), (3, 0.1, 0.5), (16, 2.0, 2.0), (256, 1.0, 0.5)])
def test_with_pure_privacy_the_boundary_is_accepted_and_the_distance_rejected(
    n: int, epsilon: float, alpha: float
) -> None:
    rng = np.random.default_rng([n, int(10 * epsilon)])
    for stated in (staircase(n, epsilon), staircase(n, epsilon, 5.0), turned(boundary_pair(n, epsilon))):
        assert stated.epsilon == pytest.approx(epsilon)
        tester = KnownPure(stated, epsilon, alpha)
        assert accepted(tester, stated, rng, 40) >= 0.8
        outcome = int(np.argmax(stated.zero / stated.one))
        for share in (0.0, 0.5, 1.0):
            if stated.zero[outcome] * math.exp(alpha * share) < 1:
                far = moved(stated, outcome, alpha * share, alpha * (1 - share))
                assert far.epsilon >= epsilon + alpha - 1e-12
                assert accepted(tester, far, rng, 40) <= 0.2


@pytest.mark.parametrize(("gamma", "slack"), [(0.0, 0.1), (0.1, 0.05), (0.02, 0.02), (0.3, 0.5)])
@pytest.mark.parametrize("confidence", [2 / 3, 0.95])
def test_the_number_of_pairs_tells_the_two_shares_apart(gamma: float, slack: float, confidence: float) -> None:
    tester = RandomPrivacy(UnknownPair(2, 1.0), lambda _: (0, 1), gamma, slack, confidence)
    (pairs, allowed), wrong = tester.size, slack / 4
    assert stats.binom.sf(allowed, pairs, gamma + (1 - gamma) * wrong) <= 1 - confidence
    assert stats.binom.cdf(allowed, pairs, (gamma + slack) * (1 - wrong)) <= 1 - confidence
    assert tester.each.confidence == max(2 / 3, 1 - wrong)
    assert tester.plan.total == pairs * tester.each.plan.total


def by_events(p: list[float], q: list[float], epsilon: float) -> float:
    """The largest P(E) - e^epsilon Q(E) over all events."""
    return max(
        sum(e * (a - math.exp(epsilon) * b) for e, a, b in zip(event, p, q, strict=True))
        for event in product((0, 1), repeat=len(p))
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_delta_is_the_largest_gap_over_all_events(n: int, epsilon: float) -> None:
    rng = np.random.default_rng(n)
    p, q = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 0.3))
    deltas = Pair(p, q).deltas(epsilon)
    assert deltas[0] == pytest.approx(by_events(p.tolist(), q.tolist(), epsilon), abs=1e-12)
    assert deltas[1] == pytest.approx(by_events(q.tolist(), p.tolist(), epsilon), abs=1e-12)
    assert Pair(p, q).delta(epsilon) == max(deltas)


def test_a_boundary_claim_holds_and_the_least_less_does_not() -> None:
    epsilon = math.log(3)
    coin = Pair([0.75, 0.25], [0.25, 0.75])
    assert coin.is_private(epsilon)
    assert not coin.is_private(epsilon - 1e-9)
    assert halves(8, 1.0, 0.05).is_private(1.0, 0.05)
    assert not halves(8, 1.0, 0.05).is_private(1.0, 0.05 - 1e-9)


def impossible() -> list[tuple[Callable[[], object], str]]:
    coin = halves(2, 1.0, 0.0)

    def outcomes(returned: Any) -> Callable[[], object]:
        return lambda: count_outcomes(lambda *_: returned, 0, 3, 2, RNG)

    return [
        (lambda: UnknownPair(1, 1.0, 0.1, 0.1), "n=1"),
        (lambda: UnknownPair(2, -1.0, 0.1, 0.1), "epsilon=-1.0"),
        (lambda: UnknownPair(2, 1.0, 0.5, 0.5), "their sum is below 1"),
        (lambda: UnknownPair(2, 1.0, 0.1, 0.0), "alpha=0.0"),
        (lambda: UnknownPair(2, 1.0, 0.1, 0.1, 0.5), "above 1/2 and below 1"),
        (lambda: KnownPure(coin, epsilon=1.0, alpha=0.0), "above 0"),
        (lambda: RandomPrivacy(UnknownPair(2, 1.0), lambda _: (0, 1), 0.1, 0.0), "shares"),
        (lambda: RandomPrivacy(UnknownPair(2, 1.0), lambda _: (0, 1), 0.8, 0.3), "shares"),
        (lambda: plan_queries(n=16, epsilon=1.0, delta=0.0, alpha=0.1), "4e-07"),
        (lambda: binned(lambda *_: [], [1.0, 0.0]), "rising"),
        *((outcomes(wrong), "from 0 to 1") for wrong in ([0, 1, 2], [0, -1, 1], [0, 1], [0.0, 1.0, 0.5], ["a"] * 3)),
        *((lambda p=p: Pair(p, [0.5, 0.5]), "zero") for p in ([0.5, 0.6], [1.0], [1.5, -0.5], [0.5, math.nan])),
    ]


@pytest.mark.parametrize(("made", "message"), impossible())
def test_what_cannot_be_tested_is_refused(made: Callable[[], object], message: str) -> None:
    with pytest.raises(CloakworkError, match=message):
        made()
