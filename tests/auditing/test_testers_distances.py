"""How private a pair is: against all events by brute force, both directions, zeros and the random distance."""

import math
from itertools import product

import numpy as np
import pytest

from cloakwork.auditing.testers import Pair, random_distance
from cloakwork.errors import InputError
from tests.auditing.tester_kit import ONE_WAY, crooked, halves, single


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
    assert deltas.forward == pytest.approx(by_events(p.tolist(), q.tolist(), epsilon), abs=1e-12)
    assert deltas.backward == pytest.approx(by_events(q.tolist(), p.tolist(), epsilon), abs=1e-12)
    assert Pair(p, q).delta(epsilon) == max(deltas.forward, deltas.backward)


def test_a_pair_may_be_private_one_way_only() -> None:
    deltas = ONE_WAY.deltas(1.0)
    assert deltas.forward == 0
    assert deltas.backward == pytest.approx(0.21)
    assert not ONE_WAY.is_private(1.0, 0.2)
    assert ONE_WAY.is_private(1.0, 0.21)


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


@pytest.mark.parametrize("n", [2, 3, 8, 256])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.0, 0.1), (2.0, 0.01)])
def test_our_own_boundary_pairs_are_on_the_boundary(n: int, epsilon: float, delta: float) -> None:
    for pair in (
        halves(n, epsilon, delta),
        single(n, epsilon, delta),
        crooked(n, epsilon, delta, np.random.default_rng(n)),
    ):
        assert pair.delta(epsilon) == pytest.approx(delta, abs=1e-12)


def test_a_pair_draws_what_it_states() -> None:
    rng = np.random.default_rng(0)
    pair = Pair([0.2, 0.3, 0.5], [0.0, 0.9, 0.1])
    for database in (0, 1):
        drawn = np.bincount(pair(database, 40_000, rng), minlength=3) / 40_000
        counted = pair.counts(database, 40_000, rng) / 40_000
        assert np.abs(drawn - pair.of(database)).max() < 0.015
        assert np.abs(counted - pair.of(database)).max() < 0.015


@pytest.mark.parametrize(
    ("zero", "one", "message"),
    [
        ([0.5, 0.6], [0.5, 0.5], r"zero sums to 1\.1: probabilities must sum to 1"),
        ([0.5, 0.5], [0.5, 0.5, 0.0], "zero has 2 outcomes and one has 3"),
        ([1.0], [1.0], "at least 2 probabilities"),
        ([1.5, -0.5], [0.5, 0.5], "0 or above"),
        ([0.5, math.nan], [0.5, 0.5], "finite"),
        (["a", "b"], [0.5, 0.5], "give a list of probabilities"),
    ],
)
def test_what_is_no_distribution_is_refused(zero: list[float], one: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Pair(zero, one)


def test_other_inputs_and_hopeless_claims_are_refused() -> None:
    with pytest.raises(InputError, match="database=2"):
        ONE_WAY.of(2)
    with pytest.raises(InputError, match="promises nothing"):
        ONE_WAY.delta(1000.0)
    with pytest.raises(InputError, match="epsilon=-1"):
        ONE_WAY.delta(-1.0)


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
