"""Noisy recovery in places, sensors, time and noise."""

import pytest

from cloakwork.accuracy import cramer_rao
from cloakwork.physics import HeatLine
from papers import Result
from papers.experiments.noisy_recovery import AXES, RANGES, Noisy, bound_of_papers, late_limit
from papers.trials import Place
from papers.upper_bound import papers_bound
from tests.papers.kit import probed


@pytest.fixture(scope="module")
def result() -> Result:
    return probed("noisy-recovery")


@pytest.fixture(scope="module")
def finding(result: Result) -> Noisy:
    assert isinstance(result.finding, Noisy)
    return result.finding


def test_settings_are_those_of_the_caption() -> None:
    usual = [axis.setting(axis.values[2]) for axis in AXES]
    assert [(one.n, one.m, one.T, one.sigma) for one in usual] == [
        (50, 50, 0.5, 0.1),
        (100, 50, 0.5, 0.1),
        (100, 50, 0.02, 0.2),
        (100, 50, 0.05, 0.1),
    ]
    assert all(one.at == (0.5,) and one.count == 1 for one in usual)


def test_limits_have_their_exponents(finding: Noisy) -> None:
    sweeps = {name: finding.of(Place.ANYWHERE, name, *ends) for name, ends in RANGES.items()}
    limits = {name: sweep.bound_slope().value for name, sweep in sweeps.items() if len(sweep.points) > 1}
    assert limits["n"] == pytest.approx(0.0, abs=0.01)
    assert limits["m"] == pytest.approx(-0.5, abs=0.01)
    assert limits["sigma"] == pytest.approx(1.0, abs=0.01)
    assert 0.7 < limits["T"] < 0.9


def test_late_the_limit_grows_like_the_power_three_halves_where_a_guess_is_better() -> None:
    late = late_limit()
    assert late.slope.near(1.5, allowed=0.02)
    assert late.first == cramer_rao(HeatLine(n=100, m=50, T=2.0), [0.5], 0.2).expected_emd
    assert late.guess == pytest.approx(0.25)
    assert late.guess < late.first < late.last


def test_the_bound_of_the_papers_is_followed_to_where_it_says_nothing() -> None:
    bound = bound_of_papers()
    line = HeatLine(n=100, m=50, T=0.05)
    assert papers_bound(line, [0.5], 0.99 * bound.reach).value < 0.25
    assert papers_bound(line, [0.5], 1.01 * bound.reach).value >= 0.25
    assert bound.noise.near(0.5, allowed=0.03)
    assert bound.time.value < 0.3
