"""Pure privacy with a description: frequencies within a band, zeros handled, rare leaks owned up to."""

import math

import numpy as np
import pytest
from scipy import stats

from cloakwork.auditing.testers import KnownPure, Pair, unnoticed_mass
from cloakwork.auditing.testers.stated_pair import misfit
from cloakwork.errors import InputError
from papers.query_table import boundary_pair
from tests.auditing.tester_kit import Floats, accepted, turned


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


@pytest.mark.parametrize("n", [2, 3, 16, 256])
@pytest.mark.parametrize(("epsilon", "alpha"), [(1.0, 0.2), (0.1, 0.5), (2.0, 2.0)])
def test_the_boundary_is_accepted_and_the_distance_rejected(n: int, epsilon: float, alpha: float) -> None:
    rng = np.random.default_rng([n, int(10 * epsilon)])
    for stated in (staircase(n, epsilon), staircase(n, epsilon, 5.0), turned(boundary_pair(n, epsilon))):
        assert stated.epsilon == pytest.approx(epsilon)
        tester = KnownPure(stated, epsilon, alpha)
        assert accepted(tester, stated, rng, 100) >= 0.8
        outcome = int(np.argmax(stated.zero / stated.one))
        for share in (0.0, 0.5, 1.0):
            if stated.zero[outcome] * math.exp(alpha * share) < 1:
                far = moved(stated, outcome, alpha * share, alpha * (1 - share))
                assert far.epsilon >= epsilon + alpha - 1e-12
                assert accepted(tester, far, rng, 60) <= 0.2


def test_a_likelihood_that_vanishes_on_one_input_is_rejected() -> None:
    stated = staircase(4, 1.0)
    gone = Pair(stated.zero, np.r_[0.0, stated.one[1:] / stated.one[1:].sum()])
    answer = KnownPure(stated, 1.0).test(gone, np.random.default_rng(0))
    assert not answer.accepts
    assert answer.statistic == math.inf


def test_two_zeros_say_nothing_and_mass_there_is_rejected() -> None:
    rng = np.random.default_rng(0)
    stated = Pair([0.5, 0.5, 0.0], [0.4, 0.6, 0.0])
    tester = KnownPure(stated, 0.3, 0.4)
    assert accepted(tester, stated, rng, 100) >= 0.8
    leaking = Pair([0.49, 0.49, 0.02], [0.4, 0.6, 0.0])
    answer = tester.test(leaking, rng)
    assert not answer.accepts
    assert "says cannot occur" in answer.reason
    assert "Not covered: leaks through outcomes stated impossible" in tester.plan.guarantee
    assert "Not covered" not in KnownPure(staircase(3, 1.0), 1.0).plan.guarantee


def test_a_leak_as_rare_as_the_caveat_says_is_caught_as_often_as_promised_and_a_rarer_one_is_not() -> None:
    rng = np.random.default_rng(1)
    stated = Pair([0.5, 0.5, 0.0], [0.5, 0.5, 0.0])
    tester = KnownPure(stated, 0.3, 0.4, confidence=0.9)
    rare = -math.expm1(math.log(0.1) / tester.queries)
    assert f"{rare:.2g}" in tester.plan.guarantee

    def leaking(mass: float) -> Pair:
        return Pair([0.5 - mass / 2, 0.5 - mass / 2, mass], [0.5, 0.5, 0.0])

    assert accepted(tester, leaking(rare), rng, 400) <= 0.15
    unseen = unnoticed_mass(tester.queries, confidence=0.9)
    assert unseen < rare
    assert accepted(tester, leaking(unseen / 20), rng, 400) >= 0.85


def test_a_stated_pair_that_breaks_the_claim_costs_no_query() -> None:
    def never(database: int, size: int, rng: np.random.Generator) -> list[int]:
        raise AssertionError

    for stated in (staircase(4, 1.2), Pair([0.5, 0.5], [1.0, 0.0])):
        tester = KnownPure(stated, 1.0)
        answer = tester.test(never, np.random.default_rng(0))
        assert not answer.accepts
        assert answer.queries == tester.plan.total == tester.plan.lower == 0
        assert "no query is needed" in answer.reason


@pytest.mark.parametrize("n", [2, 20, 256])
@pytest.mark.parametrize("alpha", [0.05, 0.4, 1.0])
def test_the_size_is_below_what_is_known_to_suffice(n: int, alpha: float) -> None:
    tester = KnownPure(staircase(n, 1.0), 1.0, alpha)
    enough = 3 * math.log(12 * n) / ((1 - math.exp(-alpha / 4)) ** 2 * tester.least)
    assert alpha / 4 < tester.band < alpha / 2
    assert tester.queries < 0.75 * enough


@pytest.mark.parametrize(("alpha", "confidence"), [(0.3, 2 / 3), (1.5, 0.9), (6.0, 0.99)])
def test_exact_tails_keep_the_promise(alpha: float, confidence: float) -> None:
    stated = staircase(5, 0.8)
    tester = KnownPure(stated, 0.8, alpha, confidence)
    r, c = tester.queries, tester.band
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
    sizes = [KnownPure(stated, 1.0, alpha).queries * alpha**2 for alpha in (4e-3, 4e-4, 4e-6)]
    assert sizes[0] == pytest.approx(sizes[2], rel=0.01)
    assert sizes[1] == pytest.approx(sizes[2], rel=0.001)


def test_the_misfit_is_the_worst_ratio_of_frequencies() -> None:
    assert misfit(np.array([30, 70]), np.array([0.5, 0.5])) == pytest.approx(math.log(5 / 3))
    assert misfit(np.array([70, 30, 0]), np.array([0.5, 0.5, 0.0])) == pytest.approx(math.log(5 / 3))
    assert misfit(np.array([100, 0]), np.array([0.5, 0.5])) == math.inf
    assert misfit(np.array([99, 1]), np.array([1.0, 0.0])) == math.inf


def test_a_gap_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="alpha=0"):
        KnownPure(staircase(3, 1.0), 1.0, 0)
    with pytest.raises(InputError, match="from 1e-12"):
        KnownPure(staircase(3, 1.0), 1.0, 1e-200)
