"""The papers' upper bound: constants from their definitions, the worst map that the proof allows, and simulation."""

import math
from typing import Any

import cvxpy
import numpy as np
import pytest
from numpy.typing import NDArray

from cloakwork.accuracy import emd
from cloakwork.physics import HeatLine, sources
from cloakwork.recovery import BasisPursuit, recover
from papers.upper_bound import LIKELY, Constants, PapersBound, papers_bound

Floats = NDArray[np.float64]
modelling: Any = cvxpy  # has no types
SETTINGS = [
    (0.05, 50, 0.5),
    (0.05, 50, 0.33),
    (0.01, 200, 0.501),
    (0.005, 100, 0.505),
    (0.0005, 100, 0.501),
    (0.2, 50, 0.5),
]


def g(x: Floats, T: float) -> Floats:
    return np.asarray(np.exp(-(x**2) / (4 * T)) / np.sqrt(4 * np.pi * T))


def constants(bound: PapersBound) -> Constants:
    assert bound.constants is not None, bound.failed
    return bound.constants


def pairs_around(x: float, m: int, T: float) -> tuple[Floats, Floats]:
    sensors, p = np.arange(1, m + 1) / m, int(m * math.sqrt(T / 2))
    before, after = sensors[sensors < x - 1e-9], sensors[sensors > x + 1e-9]
    return before[-p:], after[:p]


def weight(z: Floats, x: float, left: float, right: float, T: float) -> Floats:
    def slope(u: float) -> float:
        return float(-u / (2 * T) * g(np.array(u), T))

    return np.asarray(-slope(right - x) * g(z - left, T) - slope(x - left) * g(right - z, T))


def numerically(x: float, T: float, m: int, n: int) -> tuple[float, float, float, float]:
    """C1, C3, C4, C5 by plain numerical differentiation, not rounded."""
    left, right = pairs_around(x, m, T)
    places = np.arange(1, n + 1) / n
    outside = places[np.abs(places - x) >= math.sqrt(T / 2)]
    falls, total, bends = np.zeros(len(outside)), 0.0, []
    for s1, s2 in zip(left.tolist(), right.tolist(), strict=True):
        h = 1e-3 * math.sqrt(T)
        z = np.linspace(s2 - math.sqrt(2 * T), s1 + math.sqrt(2 * T), 4001)
        second = (weight(z + h, x, s1, s2, T) - 2 * weight(z, x, s1, s2, T) + weight(z - h, x, s1, s2, T)) / h**2
        bends.append(float(-second.max() / 2))
        top = float(weight(np.array([x]), x, s1, s2, T)[0])
        total += top
        falls += top - weight(outside, x, s1, s2, T)
    return min(bends), float(falls.min()), total, sum(bends)


@pytest.mark.parametrize(("T", "m", "x"), SETTINGS)
def test_constants_are_those_of_their_definitions_rounded_down(T: float, m: int, x: float) -> None:
    c = constants(papers_bound(HeatLine(n=1000, m=m, T=T), [x], 1e-6))
    for found, expected in zip((c.C1, c.C3, c.C4, c.C5), numerically(x, T, m, 1000), strict=True):
        assert found <= expected * (1 + 1e-5)
        assert found == pytest.approx(expected, rel=0.01)
    near = np.linspace(0, math.sqrt(T / 2), 2001)  # the second is the steepest slope that is used
    assert pytest.approx(float((near / (2 * T) * g(near, T)).max()), rel=1e-6) == c.C2


def worst_maps(line: HeatLine, at: list[float], bound: PapersBound) -> dict[str, float]:
    """The largest of each quantity over all maps that the proof allows: in the box, no heavier than the truth, and with
    readings within the radius and the noise of the true ones."""
    true, x, k = sources(line, at), line.space.places[:, 0], len(at)
    offsets = np.abs(x[:, None] - x[np.flatnonzero(true)]).min(axis=1)
    outside = offsets >= math.sqrt(line.T / 2)
    f = modelling.Variable(line.places)
    misfit = modelling.norm(line.range().reduced @ (f - true))
    allowed = [f >= 0, f <= 1, modelling.sum(f) <= k, misfit <= 2 * bound.radius]
    goals = {
        "outside": outside.astype(float),
        "spread": np.where(outside, 0.0, offsets**2),
        "missing": -np.ones(line.places),
        "distance": offsets,
    }
    problems = {name: modelling.Problem(modelling.Maximize(goal @ f), allowed) for name, goal in goals.items()}
    found = {name: float(problem.solve(solver="CLARABEL")) for name, problem in problems.items()}
    return found | {"missing": k + found["missing"]}


@pytest.mark.parametrize(
    ("line", "at", "sigma"),
    [
        (HeatLine(n=100, m=50, T=0.05), [0.5], 1e-4),
        (HeatLine(n=100, m=50, T=0.05), [0.33], 1e-3),
        (HeatLine(n=200, m=100, T=0.005), [0.5], 1e-3),
        (HeatLine(n=200, m=200, T=0.002), [0.25, 0.75], 1e-2),
        (HeatLine(n=200, m=200, T=0.0005), [0.2, 0.503, 0.8], 1e-2),
    ],
)
def test_no_map_that_the_proof_allows_is_worse(line: HeatLine, at: list[float], sigma: float) -> None:
    bound = papers_bound(line, at, sigma)
    c, k, worst = constants(bound), len(at), worst_maps(line, at, bound)
    assert worst["outside"] <= min(k, c.B / c.C3)
    assert worst["spread"] <= c.B / c.C5
    assert worst["missing"] <= k * c.B / c.C4
    assert worst["distance"] / k <= bound.value
    if k == 1:
        assert worst["outside"] > 0.1 * c.B / c.C3  # the proof is not far from what it allows


@pytest.mark.parametrize(
    ("line", "at"),
    [
        (HeatLine(n=100, m=50, T=0.05), [0.5]),
        (HeatLine(n=100, m=50, T=0.2, length=2.0, gain=3.0), [0.66]),
        (HeatLine(n=200, m=200, T=0.002), [0.25, 0.75]),
    ],
)
@pytest.mark.parametrize("sigma", [1e-5, 1e-3])
def test_basis_pursuit_stays_within_the_bound(line: HeatLine, at: list[float], sigma: float) -> None:
    bound, true = papers_bound(line, at, sigma), sources(line, at)
    assert bound.value < line.length
    noise = np.random.default_rng(9).normal(0, sigma, (60, line.sensors))
    found = recover(line.apply(true) + noise, line, sigma=sigma, estimator=BasisPursuit(radius=bound.radius))
    errors = np.array([emd(row, true, line.space) for row in found.map])
    assert (errors <= bound.value).mean() >= LIKELY - 0.1
    assert (errors[np.linalg.norm(noise, axis=1) <= bound.radius] <= bound.value).all()


@pytest.mark.parametrize(
    ("line", "at", "failing"),
    [
        (HeatLine(n=100, m=[0.1, 0.2, 0.4, 0.5, 0.9], T=0.2), [0.3], "sensors are evenly spaced"),
        (HeatLine(n=100, m=5, T=0.001), [0.5], "sensors are dense"),
        (HeatLine(n=100, m=50, T=0.6), [0.5], "the heat has not spread"),
        (HeatLine(n=100, m=50, T=0.05), [0.4, 0.6], "sources are more than sqrt"),
        (HeatLine(n=100, m=50, T=0.05), [0.5, 0.5], "sources are more than sqrt"),
        (HeatLine(n=100, m=50, T=0.05), [0.05], "on both sides of each source"),
        (HeatLine(n=100, m=[0.5], T=0.05), [0.3], "sensors are dense"),
    ],
)
def test_an_assumption_that_fails_is_named(line: HeatLine, at: list[float], failing: str) -> None:
    bound = papers_bound(line, at, 1e-6)
    assert (bound.value, bound.constants) == (math.inf, None)
    assert any(failing in one for one in bound.failed)
