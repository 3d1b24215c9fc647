"""The chain samples the posterior: against integrals over places and strengths on small problems."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from cloakwork._checks import FloatArray
from cloakwork._compile import compiled
from cloakwork.physics import FloorPlan, HeatLine, Rooms, Steady
from cloakwork.recovery import Problem
from cloakwork.recovery.jump_chain import Draws, run_chain, settle
from cloakwork.recovery.lattice import Lattice
from cloakwork.recovery.sampling import Prior
from cloakwork.recovery.source_strength import draw_strength, gain


@compiled
def call_gain(c: float, g: float, low: float, high: float) -> float:
    return gain(c, g, low, high)


@compiled
def call_draw(c: float, g: float, low: float, high: float, rng: np.random.Generator, into: FloatArray) -> None:
    for k in range(len(into)):
        into[k] = draw_strength(c, g, low, high, rng)


CASES = [
    (0.3, 2.0, 0.0, 1.0),
    (30.0, 25.0, 0.0, 1.0),
    (-40.0, 9.0, 0.0, 1.0),
    (90.0, 9.0, 0.2, 1.0),
    (1e3, 1e3, 0.0, 1.5),
]


@pytest.mark.parametrize(("c", "g", "low", "high"), CASES)
def test_what_a_source_of_unknown_strength_explains_is_an_integral(c: float, g: float, low: float, high: float) -> None:
    peak = min(max(c / g, low), high)
    top = peak * c - peak**2 * g / 2
    points = np.clip(peak + np.array([-8, -1, 0, 1, 8]) / math.sqrt(g), low, high)
    area = integrate.quad(lambda s: math.exp(s * c - s * s * g / 2 - top), low, high, points=points, epsabs=0)[0]
    assert call_gain(c, g, low, high) == pytest.approx(top + math.log(area / (high - low)), rel=1e-9)


@pytest.mark.parametrize(("c", "g", "low", "high"), CASES)
def test_strengths_follow_the_cut_normal_law(c: float, g: float, low: float, high: float) -> None:
    drawn = np.empty(20_000)
    call_draw(c, g, low, high, np.random.default_rng(1), drawn)
    middle, scale = c / g, 1 / math.sqrt(g)
    prior = stats.truncnorm((low - middle) / scale, (high - middle) / scale, loc=middle, scale=scale)
    assert drawn.min() >= low
    assert drawn.max() <= high
    assert stats.kstest(drawn, prior.cdf).pvalue > 1e-3


def small() -> tuple[Lattice, FloatArray]:
    """Six places that are told apart with some effort, and readings of two sources."""
    rooms = Rooms.from_walls((3, 2), cell=1.0, walls=[((1, 0), (1, 1))], doors=[])
    plan = FloorPlan(rooms, [(0.5, 0.5), (2.5, 0.5), (1.5, 1.5), (0.5, 1.5)], Steady(1.0))
    lattice = Lattice(Problem.with_noise(plan, 0.08), 1.0)
    rng = np.random.default_rng(4)
    return lattice, 0.6 * lattice.fine[0] + 0.7 * lattice.fine[4] + rng.standard_normal(lattice.fine.shape[1])


def sampled(lattice: Lattice, data: FloatArray, prior: Prior, number: int = 20_000) -> Draws:
    draws = Draws.empty(number, prior.max_sources)
    at, strength = np.zeros(prior.max_sources, dtype=np.int64), np.full(prior.max_sources, (prior.low + prior.high) / 2)
    terms = (prior.low, prior.high, prior.shared)
    rng = np.random.default_rng(2)
    run_chain(lattice.arrays, data, terms, prior.min_sources, (200, 2), rng, at, strength, prior.min_sources, draws)
    return draws


def integrated(lattice: Lattice, data: FloatArray, prior: Prior) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Counts, expected sources and expected strength at each place, by a fine sum over strengths."""
    grid = np.array([prior.low]) if prior.known else prior.low + (np.arange(60) + 0.5) / 60 * (prior.high - prior.low)
    n = len(lattice.fine)
    evidence, expected, strength = np.zeros(prior.max_sources + 1), np.zeros(n), np.zeros(n)
    for k in range(prior.min_sources, prior.max_sources + 1):
        choices = [(s,) * k for s in grid] if prior.shared and k else list(itertools.product(grid, repeat=k))
        strengths = np.array(choices).reshape(len(choices), k)
        for placed in itertools.product(range(n), repeat=k):
            columns = lattice.fine[np.array(placed, dtype=np.int64)]
            rest = data - strengths @ columns.reshape(k, len(data))
            weights = np.exp(-(rest**2).sum(axis=1) / 2) / len(strengths) / n**k
            evidence[k] += weights.sum()
            for i, place in enumerate(placed):
                expected[place] += weights.sum()
                strength[place] += weights @ strengths[:, i]
    total = evidence.sum()
    return evidence / total, expected / total, strength / total


PRIORS = {
    "known": Prior(0.7, 0.7, False, 0, 3),
    "free": Prior(0.0, 1.0, False, 0, 2),
    "free in between": Prior(0.3, 0.9, False, 1, 2),
    "common": Prior(0.0, 1.0, True, 0, 3),
}


@pytest.mark.parametrize("name", PRIORS)
def test_the_chain_samples_the_posterior(name: str) -> None:
    lattice, data = small()
    prior = PRIORS[name]
    draws = sampled(lattice, data, prior)
    counts, expected, strength = integrated(lattice, data, prior)
    seen = np.bincount(draws.counts, minlength=prior.max_sources + 1) / len(draws.counts)
    np.testing.assert_allclose(seen, counts, atol=0.02)
    present = draws.present
    placed = np.bincount(draws.at[present], minlength=len(expected)) / len(draws.counts)
    np.testing.assert_allclose(placed, expected, atol=0.03)
    weighed = np.bincount(draws.at[present], weights=draws.strength[present], minlength=len(expected))
    np.testing.assert_allclose(weighed / len(draws.counts), strength, atol=0.02)


def test_settled_draws_spread_over_the_candidates_between_places_as_the_likelihood_says() -> None:
    lattice = Lattice(Problem.with_noise(HeatLine(n=20, m=10, T=0.05), 0.6), 1.0)
    rng = np.random.default_rng(0)
    data = lattice.fine[52] + rng.standard_normal(lattice.fine.shape[1])
    draws = Draws.empty(20_000, 1)
    match = lattice.coarse @ data - (lattice.coarse**2).sum(axis=1) / 2
    weights = np.exp(match - match.max())
    draws.at[:, 0] = rng.choice(len(match), 20_000, p=weights / weights.sum())
    draws.counts[:] = 1
    settle(lattice.arrays, data, 1.0, 6, rng, draws)
    match = lattice.fine @ data - (lattice.fine**2).sum(axis=1) / 2
    exact = np.exp(match - match.max())
    exact /= exact.sum()
    seen = np.bincount(draws.at[:, 0], minlength=len(exact)) / len(draws.counts)
    assert np.abs(seen - exact).sum() / 2 < 0.03


@pytest.mark.parametrize("g", [1e-300, 1e-34, 1e-32, 1e-28, 1e-12, 1e-7])
@pytest.mark.parametrize("deviations", [-2.0, 0.3, 2.0])
def test_a_place_that_sensors_hardly_see_explains_next_to_nothing(g: float, deviations: float) -> None:
    c = deviations * math.sqrt(g)
    area = integrate.quad(lambda s: math.exp(s * c - s * s * g / 2), 0.5, 1.0, epsabs=0)[0]
    assert call_gain(c, g, 0.5, 1.0) == pytest.approx(math.log(area / 0.5), rel=1e-6, abs=1e-14)


@pytest.mark.parametrize("slope", [0.0, 3.0, -800.0])
def test_a_narrow_interval_is_averaged_along_a_line(slope: float) -> None:
    low, high, g = 0.5, 0.6, 1e-5
    c = slope / (high - low)
    top = max(s * c - s * s * g / 2 for s in (low, high))
    area = integrate.quad(lambda s: math.exp(s * c - s * s * g / 2 - top), low, high, epsabs=0, limit=200)[0]
    assert call_gain(c, g, low, high) == pytest.approx(top + math.log(area / (high - low)), rel=1e-6, abs=1e-9)
