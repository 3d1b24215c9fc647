"""The variance of a place against plain loops, closed forms and the Cramer-Rao limit of another module."""

import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from cloakwork.accuracy import cramer_rao
from cloakwork.errors import InputError
from cloakwork.physics import (
    Drift,
    FloorPlan,
    Graph,
    Heat,
    HeatLine,
    HeatPlane,
    Matrix,
    Metric,
    Physics,
    Rooms,
    Space,
    Steady,
)
from cloakwork.privacy import place_variances
from cloakwork.privacy.variance import LocationError, extent

ROOMS = Rooms.from_walls((3, 2), cell=0.5, walls=[((1.5, 0), (1.5, 2))], doors=[((1.5, 0.5), (1.5, 1.5))])
SENSORS = [(0.6, 0.6), (1.2, 1.7), (2.4, 1.1), (1.6, 0.9), (0.2, 1.8)]
PLAN = FloorPlan(ROOMS, SENSORS, Steady(0.8), footprint=0.3)
SIGMA = np.array([0.3, 0.5, 0.2, 0.4, 0.7])


@pytest.mark.parametrize(
    "model",
    [PLAN, HeatLine(n=12, m=5, T=0.02), HeatPlane(n=(4, 3), m=(3, 2), T=0.03)],
    ids=["rooms", "line", "plane"],
)
def test_without_prior_knowledge_it_is_the_cramer_rao_limit(model: Physics) -> None:
    sigma = np.linspace(0.2, 0.5, model.sensors)
    at = [tuple(p) if len(p) > 1 else float(p[0]) for p in model.space.places]
    limit = [math.sqrt((cramer_rao(model, [where], sigma).std[0] ** 2).mean()) for where in at]
    deviations = np.sqrt(place_variances(model, sigma, known_within=math.inf))
    assert deviations == pytest.approx(limit, rel=1e-6)


def test_the_default_prior_is_the_diagonal_of_the_space() -> None:
    diagonal = math.hypot(2.5, 1.5)
    assert extent(PLAN.space) == pytest.approx(diagonal)
    assert place_variances(PLAN, SIGMA) == pytest.approx(place_variances(PLAN, SIGMA, known_within=diagonal))
    assert place_variances(PLAN, 1e9).mean() == pytest.approx(diagonal**2, rel=1e-6)
    assert (place_variances(PLAN, SIGMA) < place_variances(PLAN, SIGMA, known_within=math.inf)).all()


def test_a_place_that_no_sensor_sees_is_as_unknown_as_before() -> None:
    line = HeatLine(n=200, m=[0.1], T=1e-5)
    far = place_variances(line, 0.1)[-1]
    assert far == pytest.approx(extent(line.space) ** 2, rel=1e-9)
    assert place_variances(line, 0.1, known_within=math.inf)[-1] == math.inf


def test_without_coordinates_moves_to_neighbours_count() -> None:
    graph = Graph(nx.path_graph(4), tau=0.5, sensors=[0, 3])
    M, reach = graph.matrix, extent(graph.space)
    assert reach == 3
    information = [float(((M[:, k] - M[:, k + 1]) ** 2).sum()) / 0.1**2 + reach**-2 for k in range(3)]
    a, b, c = (1 / value for value in information)
    assert place_variances(graph, 0.1) == pytest.approx([a, (a + b) / 2, (b + c) / 2, c], rel=1e-9)


def test_scattered_places_have_the_slope_of_a_plane_through_their_neighbours() -> None:
    points = np.random.default_rng(2).random((15, 2))
    i, j = np.triu_indices(15, 1)
    space = Space(points, np.stack([i, j], axis=1), np.linalg.norm(points[i] - points[j], axis=1), Metric.PLANE)
    slopes = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]])
    model = Matrix(slopes @ points.T, space)
    expected = np.trace(np.linalg.inv(slopes.T @ slopes / 0.2**2)) / 2
    assert place_variances(model, 0.2, known_within=math.inf) == pytest.approx(np.full(15, expected), rel=1e-9)


def test_offsets_that_drift_are_noise_that_sensors_share() -> None:
    drift = Drift(sensor=0.1, room=0.3, all=0.5, heat=[Heat((0.3, 0.3), 0.8)])
    factor = drift.on(PLAN).factor
    inverse, moves = np.linalg.inv(np.diag(SIGMA**2) + factor @ factor.T), LocationError.of(PLAN)
    information = moves.known + moves.slopes @ inverse @ np.swapaxes(moves.slopes, 1, 2)
    expected = moves.members @ np.trace(np.linalg.inv(information), axis1=1, axis2=2)
    found = place_variances(PLAN, SIGMA, drift=drift)
    assert found == pytest.approx(expected, rel=1e-9)
    assert (found > place_variances(PLAN, SIGMA)).all()
    faint = place_variances(PLAN, SIGMA, drift=Drift(all=1e-9))
    assert faint == pytest.approx(place_variances(PLAN, SIGMA), rel=1e-9)


def test_moves_of_some_sensors_are_those_of_all_with_no_weight_for_the_others(rng: np.random.Generator) -> None:
    moves, some, scale = LocationError.of(PLAN, drift=Drift(all=0.5)), np.array([0, 2, 3]), 1 + rng.random(3)
    weights = np.zeros(5)
    weights[some] = scale * (1 + rng.random(3))
    assert moves.of_sensors(some, scale).mean(weights[some] / scale) == pytest.approx(moves.mean(weights), rel=1e-9)


@pytest.mark.parametrize("drift", [None, Drift(sensor=0.2, all=0.7)])
@pytest.mark.parametrize("name", ["rooms", "graph"])
def test_derivatives_agree_with_differences(name: str, drift: Drift | None, rng: np.random.Generator) -> None:
    model = PLAN if name == "rooms" else Graph(nx.cycle_graph(6), tau=0.5)
    moves = LocationError.of(model, drift=drift)
    weights = 1 + rng.random(model.sensors)
    curve = moves.curve(weights)
    assert curve.value == pytest.approx(place_variances(model, weights**-0.5, drift=drift).mean())
    assert curve.gradient == pytest.approx(moves.gradient(weights), rel=1e-9)
    for k in range(model.sensors):
        step = 1e-5 * np.eye(model.sensors)[k]
        after, before = moves.curve(weights + step), moves.curve(weights - step)
        assert (after.value - before.value) / 2e-5 == pytest.approx(curve.gradient[k], rel=1e-6)
        assert (after.gradient - before.gradient) / 2e-5 == pytest.approx(curve.hessian[k], rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(
    ("sigma", "known_within", "name"),
    [
        ([1.0, 2.0], None, "sigma"),
        (0.0, None, "sigma"),
        (1.0, 0.0, "known_within"),
        (1.0, math.nan, "known_within"),
    ],
)
def test_bad_arguments_are_refused(sigma: object, known_within: float | None, name: str) -> None:
    with pytest.raises(InputError, match=name):
        place_variances(PLAN, sigma, known_within=known_within)  # type: ignore[arg-type]


def test_the_variance_on_a_large_floor_is_that_of_all_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = Rooms.from_walls((10, 5), cell=0.5, walls=[((5, 0), (5, 5))], doors=[((5, 2), (5, 3))])
    dense = FloorPlan(rooms, [(x, y) for x in np.arange(0.6, 10, 1.25) for y in np.arange(0.5, 5)], Steady(1.0))
    every = LocationError.of(dense)
    monkeypatch.setattr("cloakwork.physics.floorplan.MAX_DENSE", 0)
    few = LocationError.of(replace(dense))
    weights = np.random.default_rng(0).uniform(1, 9, dense.sensors)
    assert few.mean(weights) == pytest.approx(every.mean(weights), rel=1e-4)
    assert few.gradient(weights) == pytest.approx(every.gradient(weights), rel=1e-3)
    seen = np.arange(0, dense.sensors, 2)
    assert few.of_sensors(seen, 2.0).mean(weights[seen]) == pytest.approx(
        every.of_sensors(seen, 2.0).mean(weights[seen]), rel=1e-3
    )
    assert few.thinned(10**9).curve(weights).value == pytest.approx(every.mean(weights), rel=1e-4)
