"""The two-point limit: never above the truth, as large as brute force finds, and beaten by no method."""

import importlib
import math
from collections.abc import Callable
from itertools import pairwise

import mpmath
import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from cloakwork.accuracy import le_cam
from cloakwork.physics import FloorPlan, Graph, HeatLine, HeatPlane, Matrix, Physics, Pulse, Rooms, Space, Steady

Floats = NDArray[np.float64]


def town() -> Graph:
    graph = nx.connected_watts_strogatz_graph(40, 4, 0.3, seed=1)
    rng = np.random.default_rng(1)
    for u, v in graph.edges:
        graph.edges[u, v]["length"] = float(rng.uniform(0.1, 3.0))
    return Graph(graph, tau=0.4, sensors=list(range(0, 40, 3)))


def flat() -> FloorPlan:
    rooms = Rooms.from_walls((6, 4), cell=0.4, walls=[((2, 0), (2, 4))], doors=[((2, 1.2), (2, 2.0))])
    return FloorPlan(rooms, [(0.5, 0.6), (1.4, 3.2), (3.3, 0.5), (5.1, 3.0), (3.0, 2.5)], Pulse(length=1.0))


MODELS: dict[str, Callable[[], Physics]] = {
    "line": lambda: HeatLine(n=60, m=9, T=0.01),
    "plane": lambda: HeatPlane(n=(11, 9), m=(3, 2), T=0.05, size=(1.0, 3.0)),
    "rooms": flat,
    "graph": town,
}


@pytest.fixture(params=MODELS, name="physics")
def _physics(request: pytest.FixtureRequest) -> Physics:
    return MODELS[str(request.param)]()


def brute_force(physics: Physics, sigma: Floats) -> float:
    M, worst = physics.matrix / sigma[:, None], 0.0
    for i in range(physics.places):
        distances = physics.space.distances(i)
        apart = np.linalg.norm(M - M[:, [i]], axis=0)
        errors = [d * 0.5 * math.erfc(a / math.sqrt(8)) for d, a in zip(distances, apart, strict=True)]
        worst = max(worst, *errors)
    return worst


@pytest.mark.parametrize("noise", [0.03, 0.3, 3.0])
def test_small_spaces_have_the_largest_of_all_pairs(physics: Physics, noise: float) -> None:
    sigma = noise * np.linspace(0.5, 2.0, physics.sensors)
    expected = brute_force(physics, sigma)
    found = le_cam(physics, sigma)
    if isinstance(physics, HeatPlane) and found.pair[0] == found.pair[1]:
        assert found.value >= expected  # sources may be anywhere, so closer pairs count too
    else:
        assert found.value == pytest.approx(expected, rel=1e-6)
        assert found.distance == pytest.approx(physics.space.distances(found.pair[0])[found.pair[1]])
    assert found.average <= found.value


@pytest.mark.parametrize("noise", [0.03, 0.3, 3.0])
def test_a_search_finds_nearly_the_same(physics: Physics, noise: float, monkeypatch: pytest.MonkeyPatch) -> None:
    sigma = noise * np.linspace(0.5, 2.0, physics.sensors)
    exact = le_cam(physics, sigma)
    module = importlib.import_module("cloakwork.accuracy.le_cam")
    monkeypatch.setattr(module, "ALL_PAIRS", 0)
    monkeypatch.setattr(module, "STARTS", 12)
    searched = le_cam(physics, sigma)
    assert 0.95 * exact.value <= searched.value <= exact.value * (1 + 1e-9)


def test_the_bound_is_rounded_down(line: HeatLine) -> None:
    found = le_cam(line, 0.2)
    i, j = found.pair
    with mpmath.workdps(40):
        T, n, m = mpmath.mpf("0.05"), 100, 50

        def g(place: int, sensor: int) -> mpmath.mpf:
            u = mpmath.mpf(place + 1) / n - mpmath.mpf(sensor) / m
            return mpmath.exp(-u * u / (4 * T)) / mpmath.sqrt(4 * mpmath.pi * T)

        apart = mpmath.sqrt(sum((g(i, s) - g(j, s)) ** 2 for s in range(1, m + 1))) / mpmath.mpf(0.2)
        exact = mpmath.mpf(abs(i - j)) / n * mpmath.ncdf(-apart / 2)
        assert mpmath.mpf(found.value) <= exact
        assert float(exact) == pytest.approx(found.value, rel=1e-9)


@pytest.mark.parametrize("separation", [0.3, 1.0, 3.0])
def test_between_two_places_the_best_method_has_exactly_this_error(separation: float) -> None:
    """Choosing the likelier of two places is best; its mean distance to the truth is the bound."""
    model = Matrix(np.array([[0.0, separation]]), Space.path([[0, 1]], [5.0]))
    found = le_cam(model, 1.0)
    readings = np.random.default_rng(4).normal(0, 1, 400_000)  # the source is at the first place
    simulated = 5.0 * (readings > separation / 2).mean()
    assert simulated == pytest.approx(found.value, rel=0.02)
    assert found.average == pytest.approx(found.value, rel=1e-9)


def posterior_median_errors(physics: Physics, sigma: float, runs: int) -> Floats:
    """Mean distance at each place of the line, for the method that is best on average over all places."""
    rng = np.random.default_rng(6)
    x = physics.space.places[:, 0]
    risks = []
    for place in range(physics.places):
        readings = physics.matrix[:, place] + rng.normal(0, sigma, (runs, physics.sensors))
        logs = (readings @ physics.matrix - (physics.matrix**2).sum(axis=0) / 2) / sigma**2
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        cumulative = np.cumsum(posterior, axis=1) / posterior.sum(axis=1, keepdims=True)
        risks.append(np.abs(x[(cumulative < 0.5).sum(axis=1)] - x[place]).mean())
    return np.array(risks)


@pytest.mark.parametrize("sigma", [0.05, 0.3, 2.0, 20.0])
def test_no_method_beats_it(sigma: float) -> None:
    line = HeatLine(n=40, m=12, T=0.02)
    risks, found = posterior_median_errors(line, sigma, 800), le_cam(line, sigma)
    assert found.average <= risks.mean() * 1.02
    assert found.value <= risks.max() * 1.02
    assert found.average >= 0.25 * risks.mean()  # and it is not far below what the best method reaches


def test_an_average_over_a_graph_is_not_beaten_either() -> None:
    graph, sigma = town(), 0.3
    rng = np.random.default_rng(7)
    distances = np.stack([graph.space.distances(k) for k in range(graph.places)])
    risks = []
    for place in range(graph.places):
        readings = graph.matrix[:, place] + rng.normal(0, sigma, (400, graph.sensors))
        logs = (readings @ graph.matrix - (graph.matrix**2).sum(axis=0) / 2) / sigma**2
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        best = np.argmin(posterior @ distances, axis=1)
        risks.append(distances[place, best].mean())
    found = le_cam(graph, sigma)
    assert 0.05 * np.mean(risks) < found.average <= np.mean(risks)
    assert found.value <= max(risks)


def test_sources_anywhere_have_a_limit_at_any_noise() -> None:
    """On the grid the limit vanishes when no two places are mixed up; anywhere it shrinks with the noise."""
    grid, anywhere = (HeatLine(n=100, m=50, T=0.05, placement=where) for where in ("grid", "anywhere"))
    assert le_cam(grid, 1e-3).value == 0.0
    assert le_cam(grid, 1e-3).pair != (0, 0)
    small, smaller = le_cam(anywhere, 1e-3), le_cam(anywhere, 1e-4)
    assert small.value == pytest.approx(10 * smaller.value, rel=1e-3)
    assert small.average == pytest.approx(10 * smaller.average, rel=1e-3)
    assert le_cam(anywhere, 0.1).value >= le_cam(grid, 0.1).value
    peak = anywhere.joint_slope().value  # d Phi(-s d / 2) is at most 0.34 / s
    assert small.average >= 0.33 * 1e-3 / peak


def test_more_noise_is_never_better(physics: Physics) -> None:
    values = [le_cam(physics, sigma) for sigma in (0.01, 0.1, 1.0, 10.0, 1e4)]
    assert all(a.value <= b.value for a, b in pairwise(values))
    reach = max(physics.space.distances(k).max() for k in range(physics.places))
    assert values[-1].value == pytest.approx(reach / 2, rel=0.01)  # nothing but guessing between two ends


def test_places_that_no_path_connects_are_not_compared() -> None:
    plan = FloorPlan(
        Rooms.from_walls((4, 1), cell=0.5, walls=[((2, 0), (2, 1))], doors=[((2, 0), (2, 0.5))]),
        [(0.7, 0.2), (3.2, 0.7)],
        Steady(reach=1.0),
    ).with_doors_shut([0])
    assert 0 < le_cam(plan, 100.0).value < 2
