"""What no test of privacy can do, shown exactly on small cases; the distance of random privacy, and votes."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from cloakwork.auditing import KnownPair, KnownPure, Pair, UnknownPair, unnoticed_mass
from cloakwork.errors import InputError
from papers.query_limits import (
    approximate_limit,
    hard_pairs,
    pure_limit,
    random_distance,
    share_limit,
    votes,
)
from papers.query_table import boundary_pair, cost_table
from tests.auditing.tester_kit import Floats


def samples(pair: Pair, r: int) -> Floats:
    """The distribution of the counts of the first of two outcomes, r answers on each input."""
    k = np.arange(r + 1)
    return np.outer(*(stats.binom.pmf(k, r, p[0]) for p in (pair.zero, pair.one)))


def apart(first: Pair, second: Pair, r: int) -> float:
    """Total variation between r answers on each input of two mechanisms with two outcomes."""
    return float(np.abs(samples(first, r) - samples(second, r)).sum()) / 2


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize(("delta", "alpha"), [(0.05, 0.1), (0.0, 0.05), (0.3, 0.3), (1e-6, 1e-3)])
def test_the_hard_pairs_have_their_parameters(epsilon: float, delta: float, alpha: float) -> None:
    pairs = hard_pairs(epsilon=epsilon, delta=delta, alpha=alpha)
    assert pairs.private.delta(epsilon) == pytest.approx(delta, abs=1e-12)
    assert pairs.far.delta(epsilon) == pytest.approx(delta + alpha, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "delta", "alpha"), [(1.0, 0.05, 0.1), (0.0, 0.1, 0.15), (2.0, 0.01, 0.3)])
@pytest.mark.parametrize("confidence", [2 / 3, 0.9])
def test_below_the_limit_no_test_is_right_often_enough(
    epsilon: float, delta: float, alpha: float, confidence: float
) -> None:
    pairs = hard_pairs(epsilon=epsilon, delta=delta, alpha=alpha)
    limit = approximate_limit(n=2, epsilon=epsilon, delta=delta, alpha=alpha, confidence=confidence)
    assert limit > 5
    assert apart(pairs.private, pairs.far, limit - 1) < 2 * confidence - 1
    assert apart(pairs.private, pairs.far, 8 * limit) > 2 * confidence - 1  # not idle


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
    stated = boundary_pair(2, epsilon, beta)
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


def test_the_pure_limit_grows_with_the_rarest_outcome_and_the_gap() -> None:
    def limit(beta: float, alpha: float) -> int:
        return pure_limit(boundary_pair(4, 0.5, beta), epsilon=0.5, alpha=alpha)

    assert limit(1e-4, 0.1) / limit(1e-3, 0.1) == pytest.approx(10, rel=0.01)
    assert limit(1e-3, 0.01) / limit(1e-3, 0.1) == pytest.approx(100, rel=0.1)
    assert pure_limit(Pair([1.0, 0.0], [0.0, 1.0]), epsilon=1.0, alpha=0.1) == 1


def test_below_the_limit_of_shares_no_test_tells_them_apart() -> None:
    for gamma, slack in ((0.0, 0.05), (0.1, 0.1)):
        pairs = share_limit(gamma=gamma, slack=slack)
        k = np.arange(pairs)
        few, more = (stats.binom.pmf(k, pairs - 1, chance) for chance in (gamma, gamma + slack))
        assert np.abs(few - more).sum() / 2 < 1 / 3


@pytest.mark.parametrize("queries", [1, 10, 1000])
def test_a_leak_just_rare_enough_stays_unseen_too_often(queries: int) -> None:
    mass = unnoticed_mass(queries)
    assert 1 - (1 - mass) ** queries == pytest.approx(1 / 3)
    assert unnoticed_mass(queries, confidence=0.95) > mass


@pytest.mark.parametrize(("epsilon", "alpha"), [(0.0, 1e-12), (300.0, 1e-12), (300.0, 0.5), (40.0, 0.9)])
def test_hopeless_costs_are_still_numbers(epsilon: float, alpha: float) -> None:
    uniform = Pair(np.full(4, 0.25), np.full(4, 0.25))
    least = approximate_limit(n=4, epsilon=epsilon, delta=1e-13, alpha=alpha)
    assert 1 <= least <= UnknownPair(4, epsilon, 1e-13, alpha).plan.per_input
    assert 1 <= least <= KnownPair(uniform, epsilon, 1e-13, alpha).plan.per_input
    assert 1 <= pure_limit(uniform, epsilon=epsilon, alpha=alpha) <= KnownPure(uniform, epsilon, alpha).plan.per_input


@pytest.mark.parametrize("n", [2, 16, 256])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_table_has_what_is_used_between_what_is_printed_and_what_is_needed(n: int, epsilon: float) -> None:
    table = cost_table(n=n, epsilon=epsilon, delta=0.05, alpha=0.1)
    rows = {(row.privacy, row.information): row for row in table.rows}
    assert rows["pure", "no information"].here == rows["pure", "no information"].lower == math.inf
    assert rows["approximate", "full information"].printed is None
    for row in table.rows[1:]:
        assert 1 <= row.lower < row.here
    assert rows["approximate", "no information"].here < rows["approximate", "no information"].corrected
    assert rows["pure", "full information"].here < rows["pure", "full information"].corrected
    assert str(table).count("\n") == 5
    assert "none" in str(table)


def test_the_table_prints_the_thesis_numbers_at_the_same_gap() -> None:
    table = cost_table(n=100, epsilon=1.0, delta=0.05, alpha=0.2, beta=0.005)
    rows = {(row.privacy, row.information): row for row in table.rows}
    unit = (1 + math.exp(2)) / 0.1**2
    assert rows["approximate", "no information"].printed == pytest.approx(400 * unit)
    assert rows["approximate", "no information"].corrected == pytest.approx(100 * unit)
    assert rows["pure", "full information"].printed == pytest.approx(math.log(100) / (0.02**2 * 0.005**2))
    with pytest.raises(InputError, match="delta above 0"):
        cost_table(n=4, epsilon=1.0, delta=0.0, alpha=0.1)
    with pytest.raises(InputError, match=r"beta=0\.5"):
        cost_table(n=4, epsilon=1.0, delta=0.05, alpha=0.1, beta=0.5)


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


def test_the_random_distance_is_not_nothing_as_printed() -> None:
    assert random_distance([math.inf, 0.0], [0.5, 0.5], gamma=0.1, scale=1.0) == pytest.approx(0.4)
    assert random_distance([math.inf, 0.0], [0.5, 0.5], gamma=0.5, scale=1.0) == 0
    with pytest.raises(InputError, match="excess"):
        random_distance([-1.0], [1.0], gamma=0.1, scale=1.0)
    with pytest.raises(InputError, match="gamma=2"):
        random_distance([1.0], [1.0], gamma=2, scale=1.0)


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
