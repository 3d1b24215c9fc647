"""The papers' upper bound: constants from their definitions, the worst map that the proof allows, and simulation."""

import math
from itertools import pairwise
from typing import Any

import cvxpy
import numpy as np
import pytest
from numpy.typing import NDArray

from cloakwork.accuracy import emd
from cloakwork.errors import InputError
from cloakwork.physics import HeatLine, HeatPlane, sources
from cloakwork.recovery import BasisPursuit, recover
from papers.upper_bound import Constants, LineSetting, PapersBound, Peaks, papers_bound

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
    assert bound.constants is not None, str(bound)
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


@pytest.mark.parametrize(("T", "m", "x"), SETTINGS)
def test_the_second_constant_is_the_steepest_slope_that_is_used(T: float, m: int, x: float) -> None:
    """The printed one has sqrt T where T belongs, and is too small."""
    c = constants(papers_bound(HeatLine(n=1000, m=m, T=T), [x], 1e-6))
    near, found = np.linspace(0, math.sqrt(T / 2), 2001), c.C2
    assert found == pytest.approx(float((near / (2 * T) * g(near, T)).max()), rel=1e-6)
    assert found == pytest.approx(math.exp(-1 / 8) / (4 * math.sqrt(2 * math.pi) * T), rel=1e-12)
    printed = math.exp(-1 / (4 * m**2 * T)) / (2 * math.sqrt(4 * math.pi * T))
    used = np.concatenate([np.abs(side - x) for side in pairs_around(x, m, T)])
    steepest = float((used / (2 * T) * g(used, T)).max())
    assert steepest <= c.C2 * (1 + 1e-12)
    assert printed < steepest


@pytest.mark.parametrize(("T", "m", "x"), SETTINGS[:5])
def test_the_printed_constants_claim_too_much(T: float, m: int, x: float) -> None:
    """Lemmas 20 and 21 and the end of the proof print lower bounds that lie above the constants themselves."""
    c = constants(papers_bound(HeatLine(n=1000, m=m, T=T), [x], 1e-6))
    p, half = m * math.sqrt(T / 2), m * math.sqrt(T / 8)
    printed_1 = 17 * math.exp(-1 / 32) / 512 / m / T**3
    printed_3 = 7 * math.exp(-1 / 4) / (512 * math.sqrt(4 * math.pi) * T**3.5) * p * (p + 1) ** 2 / (6 * m**2)
    printed_5 = 3 * math.exp(-5 / 8) / (64 * math.pi * T**3) * half * (half + 1) / m
    assert printed_1 > 4 * c.C1
    assert printed_3 > 2 * c.C3
    assert printed_5 > c.C5


def test_the_second_derivative_of_the_kernel() -> None:
    T, z, h = 0.05, np.linspace(-0.5, 0.5, 41), 1e-4
    numerical = (g(z + h, T) - 2 * g(z, T) + g(z - h, T)) / h**2
    assert numerical == pytest.approx(-(1 - z**2 / (2 * T)) * g(z, T) / (2 * T), abs=1e-4)
    assert not np.allclose(numerical, -(1 - z**2 / (4 * T)) * g(z, T) / (2 * T), rtol=0.1)


def test_the_functions_of_the_proof_peak_at_the_source() -> None:
    setting = LineSetting.from_line(HeatLine(n=100, m=50, T=0.05), np.array([0.37]))
    peaks = Peaks(0.37, *setting.around(0.37), 0.05)
    z = np.linspace(0, 1, 100_001)
    assert z[peaks.values(z).argmax(axis=1)] == pytest.approx(np.full(7, 0.37), abs=1e-5)


@pytest.mark.parametrize("at", [[0.3], [0.25, 0.75], [0.2, 0.5, 0.8]])
def test_the_value_is_the_formula(at: list[float]) -> None:
    line, k, p = HeatLine(n=200, m=200, T=0.0004), len(at), 2
    bound = papers_bound(line, at, 1e-3)
    c = constants(bound)
    gap = min([b - a for a, b in pairwise(at)], default=math.inf)
    margin = (gap - math.sqrt(2 * line.T)) / 2
    disturbance = 2 * p * (k**2 - 1) * float(g(np.array(margin), line.T))
    assert c.pairs == p
    assert c.margin == pytest.approx(margin)
    total = c.C2 * (math.sqrt(200) * 2 * bound.radius + disturbance)
    assert total == pytest.approx(c.B, rel=1e-6)
    b = c.B / c.C4
    expected = math.sqrt(c.B / (c.C5 * k * (1 - b))) + k * b / (1 - b) + min(k, c.B / c.C3) / (k * (1 - b))
    assert bound.informative
    assert bound.value == pytest.approx(expected, rel=1e-6)


def test_sources_that_lie_differently_between_sensors_are_weighed() -> None:
    """Without it the sum over sources of what is missing times C4 could be negative."""
    line = HeatLine(n=1000, m=50, T=0.02)
    one, other = (constants(papers_bound(line, [x], 1e-6)) for x in (0.25, 0.76))
    both = constants(papers_bound(line, [0.25, 0.76], 1e-6))
    least = min(one.C4, other.C4)
    assert max(one.C4, other.C4) > 1.02 * least
    assert least == pytest.approx(both.C4, rel=1e-6)
    for name in ("C3", "C5"):
        parts = [least / single.C4 * getattr(single, name) for single in (one, other)]
        assert getattr(both, name) == pytest.approx(min(parts), rel=1e-6)


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


def test_with_the_printed_third_constant_some_maps_would_be_worse() -> None:
    line = HeatLine(n=200, m=100, T=0.005)
    bound = papers_bound(line, [0.5], 1e-3)
    c, p = constants(bound), 100 * math.sqrt(0.005 / 2)
    printed = 7 * math.exp(-1 / 4) / (512 * math.sqrt(4 * math.pi) * 0.005**3.5) * p * (p + 1) ** 2 / (6 * 100**2)
    assert worst_maps(line, [0.5], bound)["outside"] > c.B / printed


def test_the_printed_first_term_is_too_small_for_several_sources() -> None:
    """Each of k sources found a step off: the distance is one step, the printed 1/k sqrt(spread) is less."""
    k, step = 4, 0.01
    spread = k * step**2
    assert step > math.sqrt(spread) / k
    assert step <= math.sqrt(spread / k) * (1 + 1e-12)


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
    assert bound.informative
    noise = np.random.default_rng(9).normal(0, sigma, (60, line.sensors))
    found = recover(line.apply(true) + noise, line, sigma=sigma, estimator=BasisPursuit(radius=bound.radius))
    errors = np.array([emd(row, true, line.space) for row in found.map])
    assert (errors <= bound.value).mean() >= bound.probability - 0.1
    assert (errors[np.linalg.norm(noise, axis=1) <= bound.radius] <= bound.value).all()


def test_a_stretched_line_has_a_stretched_bound() -> None:
    short = papers_bound(HeatLine(n=100, m=50, T=0.05), [0.5], 1e-4)
    long = papers_bound(HeatLine(n=100, m=50, T=0.05 * 9, length=3.0, gain=6.0), [1.5], 2e-4)
    assert long.value == pytest.approx(3 * short.value, rel=1e-6)


def test_the_bound_falls_with_the_noise_and_ends_at_the_length_of_the_line(line: HeatLine) -> None:
    values = [papers_bound(line, [0.5], sigma) for sigma in (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-1)]
    assert [one.value for one in values] == sorted(one.value for one in values)
    assert values[0].value < 0.01
    assert values[-1].value == 1.0
    assert not values[-1].informative
    assert "vacuous" in str(values[-1])
    assert "at most 0.00" in str(values[0])


@pytest.mark.parametrize(
    ("line", "at", "failing", "why"),
    [
        (HeatLine(n=100, m=[0.1, 0.2, 0.4, 0.5, 0.9], T=0.2), [0.3], "sensors are evenly spaced", "differ"),
        (HeatLine(n=100, m=5, T=0.001), [0.5], "sensors are dense", "spacing 0.2"),
        (HeatLine(n=100, m=50, T=0.6), [0.5], "the heat has not spread", "1.1 of the length"),
        (HeatLine(n=100, m=50, T=0.05), [0.4, 0.6], "sources are more than sqrt", "0.2 of the length apart"),
        (HeatLine(n=100, m=50, T=0.05), [0.5, 0.5], "sources are more than sqrt", "0 of the length apart"),
        (HeatLine(n=100, m=50, T=0.05), [0.05], "on both sides of each source", "only 2, 7 needed"),
        (HeatLine(n=100, m=[0.5], T=0.05), [0.3], "sensors are dense", "spacing 1 of"),
    ],
)
def test_an_assumption_that_fails_is_named(line: HeatLine, at: list[float], failing: str, why: str) -> None:
    bound = papers_bound(line, at, 1e-6)
    assert bound.value == math.inf
    assert bound.constants is None
    failed = [one for one in bound.assumptions if not one.holds]
    assert any(failing in one.claim and why in one.why for one in failed)
    assert "does not apply" in str(bound)
    assert failing in str(bound)


def test_a_radius_below_the_noise_fails_unless_less_is_asked_for(line: HeatLine) -> None:
    paper = 1e-5 * math.sqrt(50)
    assert papers_bound(line, [0.5], 1e-5, radius=paper).value == math.inf
    half = papers_bound(line, [0.5], 1e-5, radius=paper, probability=0.5)
    assert half.informative
    assert half.probability == 0.5
    wide = papers_bound(line, [0.5], 1e-5, radius=1e-3)
    assert wide.value > papers_bound(line, [0.5], 1e-5).value
    assert all(one.holds and one.why for one in wide.assumptions)


def test_what_the_papers_do_not_cover_is_refused(line: HeatLine) -> None:
    plane = HeatPlane(n=(4, 4), m=(2, 2), T=0.1)
    usual: dict[str, Any] = {"physics": line, "at": [0.5], "sigma": 0.1}
    refused: list[dict[str, Any]] = [
        {"physics": plane},
        {"sigma": np.linspace(1, 2, 50)},
        {"sigma": float("nan")},
        {"probability": 1.5},
        {"radius": -1},
        {"at": []},
    ]
    for wrong in refused:
        with pytest.raises(InputError) as problem:
            papers_bound(**(usual | wrong))
        assert problem.value.values.keys() == wrong.keys()
