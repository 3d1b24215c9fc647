"""What no test of privacy can do, shown exactly on small cases; the distance of random privacy, and votes."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from cloakwork.auditing import Pair, unnoticed_mass
from papers.query_limits import (
    approximate_limit,
    boundary_pair,
    hard_pairs,
    pure_limit,
    random_distance,
    votes,
)
from tests.auditing.tester_kit import Floats


def samples(pair: Pair, r: int) -> Floats:
    """The distribution of the counts of the first of two outcomes, r answers on each input."""
    k = np.arange(r + 1)
    return np.outer(*(stats.binom.pmf(k, r, p[0]) for p in (pair.zero, pair.one)))


def apart(first: Pair, second: Pair, r: int) -> float:
    """Total variation between r answers on each input of two mechanisms with two outcomes."""
    return float(np.abs(samples(first, r) - samples(second, r)).sum()) / 2


@pytest.mark.parametrize(("epsilon", "delta", "alpha"), [(1.0, 0.05, 0.1), (0.0, 0.1, 0.15), (2.0, 0.01, 0.3)])
def test_below_the_limit_no_test_is_right_often_enough(epsilon: float, delta: float, alpha: float) -> None:
    private, far = hard_pairs(epsilon=epsilon, delta=delta, alpha=alpha)
    limit = approximate_limit(n=2, epsilon=epsilon, delta=delta, alpha=alpha)
    assert limit > 5
    assert apart(private, far, limit - 1) < 1 / 3
    assert apart(private, far, 8 * limit) > 1 / 3  # not idle


def test_the_limit_grows_with_the_outcomes_as_paninski_says() -> None:
    epsilon, delta, alpha = 1.0, 0.05, 0.01
    e, s = math.e, 0.95 * math.e / (1 + math.e)
    for n in (1000, 4001):
        many = 2 * ((n - 2) // 2)
        bound = math.sqrt(many * math.log(13 / 9)) / (s / e * (2 * alpha / s) ** 2)
        assert approximate_limit(n=n, epsilon=epsilon, delta=delta, alpha=alpha) == math.ceil(bound)


def test_paninskis_mixture_is_as_close_as_the_limit_says_and_as_far_from_private() -> None:
    # four outcomes: a pair of neighbours with a random sign, one that input 0 alone has, and the rest
    epsilon, delta, alpha = 0.4, 0.1, 0.15
    e = math.exp(epsilon)
    s = (1 - delta) * e / (1 + e)
    tilt = 2 * alpha / s
    zero = np.array([s / 2, s / 2, delta, 1 - s - delta])
    one = np.array([s / e / 2, s / e / 2, 0, 1 - s / e])
    assert Pair(zero, one).delta(epsilon) == pytest.approx(delta)
    signs = [one * [1 + z * tilt, 1 - z * tilt, 1, 1] for z in (1, -1)]
    for far in signs:
        assert Pair(zero, far).delta(epsilon) == pytest.approx(delta + alpha)
    r = math.ceil(math.sqrt(2 * math.log(13 / 9)) * s * e / (4 * alpha**2)) - 1
    assert r > 5
    total = 0.0
    for x, y in product(range(r + 1), repeat=2):
        if x + y <= r:
            counts = [x, y, r - x - y]
            mixed = sum(stats.multinomial.pmf(counts, r, far[[0, 1, 3]]) for far in signs) / 2
            total += abs(mixed - stats.multinomial.pmf(counts, r, one[[0, 1, 3]])) / 2
    assert total < 1 / 3


@pytest.mark.parametrize(("epsilon", "alpha", "beta"), [(1.0, 0.3, None), (0.2, 0.5, 0.1), (1.0, 3.0, 0.004)])
def test_below_the_pure_limit_some_violator_passes(epsilon: float, alpha: float, beta: float | None) -> None:
    zero = boundary_pair(2, epsilon).zero[0] if beta is None else beta
    one = math.exp(epsilon) * zero
    stated = Pair([zero, 1 - zero], [one, 1 - one])
    limit = pure_limit(stated, epsilon=epsilon, alpha=alpha)
    least = 1.0
    for up in np.linspace(0, alpha, 41):
        p, q = stated.one[0] * math.exp(up), stated.zero[0] * math.exp(up - alpha)
        if p < 1:
            far = Pair([q, 1 - q], [p, 1 - p])
            assert far.epsilon >= epsilon + alpha - 1e-9
            least = min(least, apart(stated, far, limit - 1))
    assert limit > 5
    assert least < 1 / 3


@pytest.mark.parametrize("queries", [1, 10, 1000])
def test_a_leak_just_rare_enough_stays_unseen_too_often(queries: int) -> None:
    mass = unnoticed_mass(queries)
    assert 1 - (1 - mass) ** queries == pytest.approx(1 / 3)
    assert unnoticed_mass(queries, confidence=0.95) > mass


def by_grid(excess: list[float], weights: list[float], gamma: float, scale: float) -> float:
    best = math.inf
    for x in np.linspace(0, 3, 3001):
        share = sum(w for e, w in zip(excess, weights, strict=True) if e > x + 1e-12)
        best = min(best, max(float(x), scale * max(share - gamma, 0)))
    return best


def test_the_random_distance_is_the_best_trade_of_the_two() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        excess = rng.integers(0, 3000, 6) / 1000
        weights = rng.dirichlet(np.ones(6))
        gamma, scale = float(rng.uniform(0, 0.5)), float(rng.uniform(0.1, 5))
        expected = by_grid(excess.tolist(), weights.tolist(), gamma, scale)
        assert random_distance(excess, weights, gamma=gamma, scale=scale) == pytest.approx(expected, abs=1e-9)


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
