"""Point sources on a line, and the descent to the nearest best fit."""

import networkx as nx
import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.physics import Graph, HeatLine, Matrix, Physics, Space, heat_kernel
from cloakwork.recovery import Problem
from papers.gallery.descent import Strength, descend
from papers.gallery.points import PointModel, Points

FREE = Strength(0.0, 1.0)


@pytest.fixture
def model(line: HeatLine) -> PointModel:
    return PointModel(Problem.with_noise(line, 0.15))


def readings_of(line: HeatLine, at: list[float], weights: list[float]) -> FloatArray:
    return np.asarray(line.columns_at(np.array(at)[:, None]) @ np.array(weights))[None]


def test_columns_are_those_of_the_physics_in_units_of_the_noise(line: HeatLine, model: PointModel) -> None:
    at = np.array([[0.1234], [0.777]])
    back = model.columns(at[:, 0]) @ model.problem.range.basis.T * 0.15
    np.testing.assert_allclose(back, line.columns_at(at).T, atol=1e-8)


def test_slopes_are_the_derivative_of_the_kernel(line: HeatLine, model: PointModel) -> None:
    at = np.array([0.0312, 0.5, 0.99])
    offsets = at[:, None] - line.sensor_positions[:, 0]
    exact = -offsets / (2 * line.T) * heat_kernel(offsets, line.T)
    np.testing.assert_allclose(model.slopes(at) @ model.problem.range.basis.T * 0.15, exact, atol=1e-5)


def test_sensors_with_different_noise_are_divided_by_their_own(line: HeatLine) -> None:
    sigma = np.linspace(0.1, 0.3, 50)
    model = PointModel(Problem.with_noise(line, sigma))
    seen = model.data(readings_of(line, [0.345], [0.7]))
    np.testing.assert_allclose(model.left(seen, Points(np.array([[0.345]]), np.array([[0.7]]))), 0, atol=1e-8)


def test_a_map_keeps_the_weight_and_the_mean_position(line: HeatLine, model: PointModel) -> None:
    points = Points(np.array([[0.0133, 1.0, 0.5], [0.01, 0.4567, 0.9]]), np.array([[0.2, 1.0, 0.0], [0.5, 0.6, 0.7]]))
    maps = model.on_places(points)
    np.testing.assert_allclose(maps.sum(axis=1), points.weight.sum(axis=1))
    np.testing.assert_allclose(maps @ line.space.places[:, 0], (points.at * points.weight).sum(axis=1))
    assert (maps > 0).sum(axis=1).tolist() == [3, 4]


@pytest.mark.parametrize(
    "physics",
    [
        Graph(nx.path_graph(5), tau=1.0),
        Matrix(np.eye(4), Space.line(4)),
        HeatLine(n=1, m=3, T=0.05),
    ],
    ids=["graph", "matrix", "one place"],
)
def test_physics_without_positions_on_a_line_is_refused(physics: Physics) -> None:
    with pytest.raises(InputError, match=r"moves sources along a line.*PointSources"):
        PointModel(Problem.with_noise(physics, 0.1))


def test_descent_from_nearby_ends_at_the_truth(line: HeatLine, model: PointModel) -> None:
    data = model.data(readings_of(line, [0.234, 0.781], [0.9, 0.4]))
    found = descend(model, data, Points(np.array([[0.3, 0.7]]), np.array([[0.5, 0.5]])), FREE)
    np.testing.assert_allclose(found.at, [[0.234, 0.781]], atol=1e-4)
    np.testing.assert_allclose(found.weight, [[0.9, 0.4]], atol=1e-4)


def test_descent_never_climbs_and_ends_where_no_allowed_move_helps(
    line: HeatLine, model: PointModel, rng: np.random.Generator
) -> None:
    noisy = rng.normal(size=(40, 50)) * 0.15 + readings_of(line, [0.3, 0.8], [1.0, 0.3])
    data = model.data(noisy)
    start = Points(rng.uniform(0.02, 0.98, (40, 2)), rng.uniform(0.1, 0.9, (40, 2)))
    found = descend(model, data, start, FREE)
    least = model.misfit(data, found)
    assert (least <= model.misfit(data, start)).all()
    assert (found.weight >= 0).all()
    assert (found.weight <= 1).all()
    assert (found.at >= 0.01).all()
    assert (found.at <= 1).all()
    for _ in range(50):
        at = np.clip(found.at + rng.normal(size=found.at.shape) * 1e-4, 0.01, 1)
        weight = np.clip(found.weight + rng.normal(size=found.at.shape) * 1e-3, 0, 1)
        assert (model.misfit(data, Points(at, weight)) > least - 1e-6).all()


def test_known_weights_stay(line: HeatLine, model: PointModel) -> None:
    data = model.data(readings_of(line, [0.4], [1.0]))
    found = descend(model, data, Points(np.array([[0.2]]), np.array([[1.0]])), Strength(1.0, 1.0))
    assert found.weight.tolist() == [[1.0]]
    np.testing.assert_allclose(found.at, [[0.4]], atol=1e-5)


def test_sets_of_points_are_put_together() -> None:
    points = Points(np.array([[0.6, 0.2, 0.3]]), np.array([[0.5, 0.3, 0.9]]))
    assert points.ordered().at.tolist() == [[0.2, 0.3, 0.6]]
    assert points.ordered().weight.tolist() == [[0.3, 0.9, 0.5]]
    merged = points.ordered().merged(0)
    np.testing.assert_allclose(merged.at, [[0.275, 0.6]])
    np.testing.assert_allclose(merged.weight, [[1.0, 0.5]])
    assert points.without(1).at.tolist() == [[0.6, 0.3]]
    assert points.padded(4).weight.tolist() == [[0.5, 0.3, 0.9, 0.0]]
    assert Points.none(2, 3).merged(1).at.shape == (2, 2)
