"""Approximate privacy with a description: the description is checked, then the mechanism against it."""

import math

import numpy as np
import pytest
from scipy import stats

from cloakwork.auditing.testers import KnownPair, Pair
from cloakwork.auditing.testers.stated_pair import FLOORS, IdentitySize, identity_size, identity_statistic
from tests.auditing.tester_kit import ONE_WAY, Floats, accepted, halves, single, turned

CLAIMS = [(1.0, 0.05, 0.1), (0.0, 0.1, 0.2), (2.0, 0.01, 0.3)]


@pytest.mark.parametrize("n", [2, 3, 16, 256])
@pytest.mark.parametrize(("epsilon", "delta", "alpha"), CLAIMS)
def test_the_stated_pair_is_accepted_and_the_nearest_violator_rejected(
    n: int, epsilon: float, delta: float, alpha: float
) -> None:
    rng = np.random.default_rng([n, int(10 * epsilon)])
    stated = halves(n, epsilon, delta)
    tester = KnownPair(stated, epsilon, delta, alpha)
    far = halves(n, epsilon, delta, moved=tester.distance)
    assert far.delta(epsilon) == pytest.approx(delta + alpha)
    assert accepted(tester, stated, rng) >= 0.8
    assert accepted(tester, far, rng) <= 0.2
    backwards = KnownPair(turned(stated), epsilon, delta, alpha)
    assert accepted(backwards, turned(stated), rng, 60) >= 0.8
    assert accepted(backwards, turned(far), rng, 60) <= 0.2


@pytest.mark.parametrize("n", [2, 8, 256])
@pytest.mark.parametrize("distance", [0.3, 0.05])
def test_each_input_alone_is_told_from_its_description(n: int, distance: float) -> None:
    rng = np.random.default_rng(n)
    setting = identity_size(n, distance, 2 / 3)
    tilt = np.where(np.arange(n) % 2, 1.0, -1.0)
    uniform = np.full(n, 1 / n)
    uneven = np.r_[np.full(n - 1, 1e-5), 1 - 1e-5 * (n - 1)]
    to_rare = uneven + distance * np.r_[np.full(n - 1, 1 / (n - 1)), -1]
    cases = [(uniform, uniform * (1 + 2 * distance * tilt)), (uneven, to_rare)]
    for q, p in cases:
        assert 0.5 * np.abs(p - q).sum() == pytest.approx(distance)
        honest = [identity_statistic(rng.poisson(setting.size * q), q, setting) for _ in range(300)]
        wrong = [identity_statistic(rng.poisson(setting.size * p), q, setting) for _ in range(300)]
        assert np.mean(np.array(honest) > setting.threshold) <= 1 / 6
        assert np.mean(np.array(wrong) <= setting.threshold) <= 1 / 3


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
        assert identity_statistic(x, q, IdentitySize(m, floor, 0.0)) == pytest.approx(by_hand)


def test_the_size_is_the_least_that_the_moments_allow() -> None:
    n, a = 64, 0.05
    setting = identity_size(n, a, 2 / 3)
    one, c = 1 + setting.floor, 4 * a * a
    far = c * one * n / setting.floor
    variance = 2 * (math.sqrt(n) * one + math.sqrt(far)) ** 2 + 4 * setting.size * c * (one + math.sqrt(far))
    assert setting.threshold == pytest.approx(one * math.sqrt(2 * n * 5))
    assert setting.size * c - setting.threshold == pytest.approx(math.sqrt(2 * variance))
    assert FLOORS[0] < setting.floor < FLOORS[-1]


def test_the_cost_grows_with_the_square_root_of_the_outcomes() -> None:
    sizes = [identity_size(n, 0.001, 2 / 3).size for n in (10_000, 1_000_000)]
    assert sizes[1] / sizes[0] == pytest.approx(10, rel=0.05)
    assert identity_size(256, 0.027, 2 / 3).size < 3 * math.sqrt(256) / 0.027**2


def test_a_stated_pair_that_breaks_the_claim_costs_no_query() -> None:
    def never(database: int, size: int, rng: np.random.Generator) -> list[int]:
        raise AssertionError

    for stated in (ONE_WAY, turned(ONE_WAY)):
        tester = KnownPair(stated, 1.0, 0.1)
        answer = tester.test(never, np.random.default_rng(0))
        assert not answer.accepts
        assert answer.queries == tester.plan.total == 0
        assert "stated pair itself has delta 0.21" in answer.reason
        assert "no query is needed" in tester.plan.why


def test_mass_where_the_description_has_none_is_rejected_at_once() -> None:
    stated = Pair([0.5, 0.5, 0.0], [0.5, 0.5, 0.0])
    tester = KnownPair(stated, 1.0, 0.05)
    rng = np.random.default_rng(0)
    assert accepted(tester, stated, rng, 60) >= 0.8
    leaking = Pair([0.5, 0.499, 0.001], [0.5, 0.5, 0.0])
    answer = tester.test(leaking, rng)
    assert not answer.accepts
    assert answer.statistic == math.inf
    assert "says cannot occur" in answer.reason


def test_a_private_mechanism_that_is_not_as_stated_may_be_rejected() -> None:
    tester = KnownPair(halves(16, 1.0, 0.05), 1.0, 0.05)
    other = single(16, 1.0, 0.05)
    assert other.is_private(1.0, 0.05)
    answer = tester.test(other, np.random.default_rng(0))
    assert not answer.accepts
    assert "is not as stated" in answer.reason


def test_a_higher_confidence_is_met() -> None:
    rng = np.random.default_rng(1)
    stated = halves(32, 1.0, 0.05)
    tester = KnownPair(stated, 1.0, 0.05, confidence=0.95)
    assert tester.plan.per_input < 6 * KnownPair(stated, 1.0, 0.05).plan.per_input
    assert accepted(tester, stated, rng, 300) >= 0.95
    assert accepted(tester, halves(32, 1.0, 0.05, moved=tester.distance), rng, 300) <= 0.05


def test_one_input_that_is_not_as_stated_is_enough() -> None:
    stated, wrong = halves(16, 1.0, 0.05), halves(16, 1.0, 0.4)
    tester = KnownPair(stated, 1.0, 0.05)
    rng = np.random.default_rng(0)
    for mechanism, name in ((Pair(stated.zero, wrong.one), "second"), (Pair(wrong.one, stated.one), "first")):
        answer = tester.test(mechanism, rng)
        assert not answer.accepts
        assert f"the {name} input is not as stated" in answer.reason
