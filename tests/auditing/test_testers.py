"""The testers of the thesis: right on the boundary of a claim and at the stated distance from it."""

import math
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
    unnoticed_mass,
)
from cloakwork.auditing.query_plan import _CHUNK, count_outcomes, largest_ratio
from cloakwork.auditing.testers import _FLOORS, _identity
from cloakwork.errors import InputError, UnverifiableError
from papers.query_limits import hard_pairs
from papers.query_table import boundary_pair
from tests.auditing.tester_kit import ONE_WAY, Floats, accepted, crooked, halves, single, turned

RNG = np.random.default_rng(0)
CLAIMS = [(1.0, 0.05, 0.1), (0.0, 0.1, 0.2), (2.0, 0.01, 0.3)]
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


def test_a_violator_of_one_direction_is_rejected_whichever_it_is() -> None:
    rng = np.random.default_rng(7)
    for pair in (ONE_WAY, turned(ONE_WAY)):
        assert accepted(UnknownPair(2, 1.0, 0.05, 0.15), pair, rng, 60) == 0


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


def test_the_plan_says_what_is_spent_and_promised() -> None:
    tester = UnknownPair(16, 1.0, 0.05, 0.1)
    plan, answer = tester.plan, tester.test(halves(16, 1.0, 0.05), np.random.default_rng(1))
    assert plan.total == 2 * plan.per_input
    assert answer.queries == pytest.approx(plan.total, rel=0.05)
    assert "accepts if the mechanism is (1, 0.05)-private" in plan.guarantee
    assert "needs a delta above 0.15 at epsilon 1" in plan.guarantee
    assert f"{plan.per_input:,} queries on each input" in str(plan)


@pytest.mark.parametrize(
    ("n", "epsilon", "delta", "alpha", "confidence", "message"),
    [
        (1, 1.0, 0.1, 0.1, 0.9, "n=1"),
        (2, -1.0, 0.1, 0.1, 0.9, "epsilon=-1.0"),
        (2, 1.0, 0.5, 0.5, 0.9, "their sum is below 1"),
        (2, 1.0, 0.1, 0.0, 0.9, "alpha=0.0"),
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


def moments(p: Floats, q: Floats, m: float, floor: float) -> tuple[float, float]:
    """Mean and variance of the statistic, outcome by outcome, over the Poisson distribution itself."""
    mean = variance = 0.0
    for a, b in zip(p, q, strict=True):
        x = np.arange(int(stats.poisson.isf(1e-14, m * a)) + 30)
        chance = stats.poisson.pmf(x, m * a)
        value = ((x - m * b) ** 2 - x) / (m * (b + floor / len(p)) / (1 + floor))
        first = float(chance @ value)
        mean, variance = mean + first, variance + float(chance @ value**2) - first**2
    return mean, variance


def test_the_statistic_has_the_moments_that_size_it() -> None:
    rng = np.random.default_rng(3)
    m = 70.0
    for floor in (0.05, 0.5, 2.0):
        for _ in range(10):
            n = int(rng.integers(2, 9))
            p, q = rng.dirichlet(np.full(n, 0.5)), rng.dirichlet(np.full(n, 0.5))
            w = (q + floor / n) / (1 + floor)
            mean, variance = moments(p, q, m, floor)
            c = float(((p - q) ** 2 / w).sum())
            assert mean == pytest.approx(m * c)
            assert mean >= m * np.abs(p - q).sum() ** 2 * (1 - 1e-9)
            far = c * (1 + floor) * n / floor
            bound = 2 * (math.sqrt(n) * (1 + floor) + math.sqrt(far)) ** 2 + 4 * m * c * (1 + floor + math.sqrt(far))
            assert variance <= bound
            assert moments(q, q, m, floor)[1] <= 2 * n * (1 + floor) ** 2 * (1 + 1e-9)
        x = rng.poisson(m * p)
        by_hand = sum(((a - m * b) ** 2 - a) / (m * v) for a, b, v in zip(x, q, w, strict=True))
        assert _identity(x, q, m, floor) == pytest.approx(by_hand)


def test_the_size_is_the_least_that_the_moments_allow() -> None:
    n, a = 64, 0.05
    size, floor, threshold = KnownPair(halves(n, 0.0, 0.1), 0.0, 0.1, 2 * a).setting
    one, c = 1 + floor, 4 * a * a
    far = c * one * n / floor
    variance = 2 * (math.sqrt(n) * one + math.sqrt(far)) ** 2 + 4 * size * c * (one + math.sqrt(far))
    assert threshold == pytest.approx(one * math.sqrt(2 * n * 5))
    assert size * c - threshold == pytest.approx(math.sqrt(2 * variance))
    assert _FLOORS[0] < floor < _FLOORS[-1]


def test_a_stated_pair_that_breaks_the_claim_costs_no_query() -> None:
    for tester, found in (
        (KnownPair(ONE_WAY, 1.0, 0.1), "delta 0.21"),
        (KnownPair(turned(ONE_WAY), 1.0, 0.1), "delta 0.21"),
        (KnownPure(staircase(4, 1.2), 1.0), "epsilon 1.2"),
        (KnownPure(Pair([0.5, 0.5], [1.0, 0.0]), 1.0), "epsilon inf"),
    ):
        answer = tester.test(never, RNG)
        assert (answer.accepts, answer.queries, tester.plan.total) == (False, 0, 0)
        assert f"stated pair itself has {found}" in answer.reason


def test_probability_where_the_description_has_none_is_rejected_at_once() -> None:
    stated, leaking = Pair([0.5, 0.5, 0.0], [0.5, 0.5, 0.0]), Pair([0.49, 0.49, 0.02], [0.5, 0.5, 0.0])
    for tester in (KnownPair(stated, 1.0, 0.05), KnownPure(stated, 0.3, 0.4)):
        assert accepted(tester, stated, RNG, 60) >= 0.8
        answer = tester.test(leaking, RNG)
        assert (answer.accepts, answer.statistic) == (False, math.inf)


def test_a_private_mechanism_that_is_not_as_stated_on_either_input_may_be_rejected() -> None:
    stated, wrong = halves(16, 1.0, 0.05), halves(16, 1.0, 0.4)
    tester = KnownPair(stated, 1.0, 0.05)
    assert single(16, 1.0, 0.05).is_private(1.0, 0.05)
    for mechanism in (single(16, 1.0, 0.05), Pair(stated.zero, wrong.one), Pair(wrong.one, stated.one)):
        assert not tester.test(mechanism, RNG).accepts


def test_a_higher_confidence_is_met() -> None:
    rng = np.random.default_rng(1)
    stated = halves(32, 1.0, 0.05)
    tester = KnownPair(stated, 1.0, 0.05, confidence=0.95)
    assert tester.plan.per_input < 6 * KnownPair(stated, 1.0, 0.05).plan.per_input
    assert accepted(tester, stated, rng, 150) >= 0.95
    assert accepted(tester, halves(32, 1.0, 0.05, moved=0.1 / (1 + math.e)), rng, 150) <= 0.05


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


def test_a_leak_as_rare_as_the_caveat_says_is_caught_as_often_as_promised_and_a_rarer_one_is_not() -> None:
    rng = np.random.default_rng(1)
    stated = Pair([0.5, 0.5, 0.0], [0.5, 0.5, 0.0])
    tester = KnownPure(stated, 0.3, 0.4, confidence=0.9)
    rare = -math.log(0.1) / tester.plan.per_input
    assert f"rarer than {rare:.2g} are not covered" in tester.plan.why

    def leaking(mass: float) -> Pair:
        return Pair([0.5 - mass / 2, 0.5 - mass / 2, mass], [0.5, 0.5, 0.0])

    assert accepted(tester, leaking(rare), rng, 400) <= 0.15
    unseen = unnoticed_mass(tester.plan.per_input, confidence=0.9)
    assert unseen < rare
    assert accepted(tester, leaking(unseen / 20), rng, 400) >= 0.85


@pytest.mark.parametrize(("alpha", "confidence"), [(0.3, 2 / 3), (1.5, 0.9), (6.0, 0.99)])
def test_exact_tails_keep_the_promise(alpha: float, confidence: float) -> None:
    stated = staircase(5, 0.8)
    tester = KnownPure(stated, 0.8, alpha, confidence)
    r, c = tester.plan.per_input, tester.band
    wrong = 0.0
    for q in np.concatenate([stated.zero, stated.one]):
        wrong += stats.binom.cdf(math.ceil(r * q * math.exp(-c)) - 1, r, q) + stats.binom.sf(r * q * math.exp(c), r, q)
    assert wrong <= 1 - confidence
    for q in np.concatenate([stated.zero, stated.one]):
        low, high = q * math.exp(-alpha / 2), q * math.exp(alpha / 2)
        band = (math.ceil(r * q * math.exp(-c)) - 1, math.floor(r * q * math.exp(c)))
        for p in (low, high):
            if p < 1:
                assert stats.binom.cdf(band[1], r, p) - stats.binom.cdf(band[0], r, p) <= 1 - confidence


def test_small_gaps_lose_no_digits() -> None:
    stated = staircase(3, 1.0)
    sizes = [KnownPure(stated, 1.0, alpha).plan.per_input * alpha**2 for alpha in (4e-3, 4e-4, 4e-6)]
    assert sizes[0] == pytest.approx(sizes[2], rel=0.01)
    assert sizes[1] == pytest.approx(sizes[2], rel=0.001)


def test_the_misfit_is_the_worst_ratio_of_frequencies() -> None:
    assert largest_ratio(np.array([0.3, 0.7]), np.array([0.5, 0.5])) == pytest.approx(math.log(5 / 3))
    assert largest_ratio(np.array([0.7, 0.3, 0.0]), np.array([0.5, 0.5, 0.0])) == pytest.approx(math.log(5 / 3))
    assert largest_ratio(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == math.inf
    assert largest_ratio(np.array([0.99, 0.01]), np.array([1.0, 0.0])) == math.inf


@pytest.mark.parametrize(("gamma", "slack"), [(0.0, 0.1), (0.1, 0.05), (0.02, 0.02), (0.3, 0.5)])
@pytest.mark.parametrize("confidence", [2 / 3, 0.95])
def test_the_number_of_pairs_tells_the_two_shares_apart(gamma: float, slack: float, confidence: float) -> None:
    tester = RandomPrivacy(UnknownPair(2, 1.0), lambda _: (0, 1), gamma, slack, confidence)
    (pairs, allowed), wrong = tester.size, slack / 4
    assert stats.binom.sf(allowed, pairs, gamma + (1 - gamma) * wrong) <= 1 - confidence
    assert stats.binom.cdf(allowed, pairs, (gamma + slack) * (1 - wrong)) <= 1 - confidence
    assert tester.each.confidence == max(2 / 3, 1 - wrong)
    assert tester.plan.total == pairs * tester.each.plan.total


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


@pytest.mark.parametrize(
    "returned", [[0, 1, 2], [0, -1, 1], [0, 1], [[0, 1, 1]], [0.0, 1.0, 0.5], ["a", "b", "a"]], ids=str
)
def test_wrong_outcomes_are_refused(returned: Any) -> None:
    with pytest.raises(InputError, match="return 3 whole numbers from 0 to 1"):
        count_outcomes(lambda *_: returned, 0, 3, 2, RNG)


def test_answers_are_asked_for_in_parts_and_all_are_counted() -> None:
    sizes = []

    def mechanism(database: int, size: int, rng: np.random.Generator) -> Any:
        sizes.append(size)
        return np.full(size, database, dtype=int)

    assert count_outcomes(mechanism, 1, 2 * _CHUNK + 5, 3, RNG).tolist() == [0, 2 * _CHUNK + 5, 0]
    assert sizes == [_CHUNK, _CHUNK, 5]
    with pytest.raises(InputError, match="cannot be made"):
        UnknownPair(2, 100.0).test(mechanism, RNG)


def test_bins_cover_all_outputs_and_nan_has_its_own() -> None:
    given = np.array([-np.inf, -1.0, 0.0, 0.5, 1.0, np.inf, np.nan])
    assert np.asarray(binned(lambda *_: given, [0.0, 1.0])(0, 7, RNG)).tolist() == [0, 0, 1, 1, 2, 2, 3]
    with pytest.raises(InputError, match="rising"):
        binned(lambda *_: given, [1.0, 0.0])


def test_pure_privacy_without_information_is_refused_in_words() -> None:
    with pytest.raises(UnverifiableError, match="4e-07") as caught:
        plan_queries(n=16, epsilon=1.0, delta=0.0, alpha=0.1)
    assert caught.value.values == {"epsilon": 1.0}


@pytest.mark.parametrize("alpha", [0.0, -1.0])
def test_pure_privacy_needs_a_distance_above_zero(alpha: float) -> None:
    with pytest.raises(InputError, match="above 0"):
        KnownPure(halves(2, 1.0, 0.0), epsilon=1.0, alpha=alpha)


def test_the_cheapest_test_is_planned() -> None:
    few, many = halves(8, 0.0, 0.05), halves(256, 0.0, 0.05)
    assert plan_queries(n=8, epsilon=1.0, delta=0.05, alpha=0.1) == UnknownPair(8, 1.0, 0.05, 0.1).plan
    assert plan_queries(stated=many, epsilon=0.0, delta=0.05, alpha=0.3) == KnownPair(many, 0.0, 0.05, 0.3).plan
    assert plan_queries(stated=few, epsilon=0.0, delta=0.05, alpha=0.5) == UnknownPair(8, 0.0, 0.05, 0.5).plan
    assert plan_queries(stated=ONE_WAY, epsilon=2.0, delta=0.0, alpha=0.2) == KnownPure(ONE_WAY, 2.0, 0.2).plan
    assert plan_queries(stated=ONE_WAY, epsilon=1.0, delta=0.1, alpha=0.2).total == 0


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


def test_epsilon_ignores_what_neither_has_and_is_infinite_for_what_one_has() -> None:
    assert Pair([0.5, 0.5, 0.0], [0.25, 0.75, 0.0]).epsilon == pytest.approx(math.log(2))
    assert Pair([0.5, 0.5, 0.0], [0.5, 0.4, 0.1]).epsilon == math.inf
    assert Pair([0.5, 0.4, 0.1], [0.5, 0.5, 0.0]).epsilon == math.inf
    assert Pair([1.0, 0.0], [1.0, 0.0]).epsilon == 0


def test_a_boundary_claim_holds_and_the_least_less_does_not() -> None:
    epsilon = math.log(3)
    coin = Pair([0.75, 0.25], [0.25, 0.75])
    assert coin.is_private(epsilon)
    assert not coin.is_private(epsilon - 1e-9)
    assert halves(8, 1.0, 0.05).is_private(1.0, 0.05)
    assert not halves(8, 1.0, 0.05).is_private(1.0, 0.05 - 1e-9)


@pytest.mark.parametrize(
    ("zero", "one"),
    [
        ([0.5, 0.6], [0.5, 0.5]),
        ([0.5, 0.5], [0.5, 0.5, 0.0]),
        ([1.0], [1.0]),
        ([1.5, -0.5], [0.5, 0.5]),
        ([0.5, math.nan], [0.5, 0.5]),
    ],
)
def test_what_is_no_pair_of_distributions_is_refused(zero: list[float], one: list[float]) -> None:
    with pytest.raises(InputError, match="zero"):
        Pair(zero, one)
