"""Any matrix as a model."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cloakwork.errors import PhysicsError
from cloakwork.physics import Matrix, Metric, Space


def all_pairs(places: NDArray[np.float64]) -> Space:
    i, j = np.triu_indices(len(places), k=1)
    lengths = np.linalg.norm(places[i] - places[j], axis=1)
    return Space(places, np.stack([i, j], axis=1), lengths, Metric.PLANE)


def test_over_a_plane_all_pairs_bound_every_move() -> None:
    rng = np.random.default_rng(2)
    places = rng.uniform(size=(7, 2))
    values = rng.normal(size=(4, 7))
    slope = Matrix(values, all_pairs(places)).moves().steepest().value
    for i in range(7):
        for j in range(i):
            moved = np.linalg.norm(values[:, i] - values[:, j]) / np.linalg.norm(places[i] - places[j])
            assert moved <= slope


def test_over_a_plane_too_few_pairs_are_refused() -> None:
    space = Space(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[0, 1], [1, 2]]), np.ones(2), Metric.PLANE)
    model = Matrix(np.eye(3), space)
    for slopes in (model.moves, model.steps):
        with pytest.raises(PhysicsError, match="all pairs"):
            slopes()
    assert model.apply([1.0, 0.0, 0.0]).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "values",
    [
        np.ones(3),
        np.ones((0, 3)),
        np.ones((3, 0)),
        np.ones((2, 4)),
        np.array([[1.0, np.nan, 0.0]]),
        np.array([[1.0, np.inf, 0.0]]),
    ],
)
def test_impossible_matrices_are_refused(values: Any) -> None:
    with pytest.raises(PhysicsError) as problem:
        Matrix(values, Space.line(3))
    assert problem.value.values.keys() & {"shape", "values"}


def test_unconnected_places_are_refused_where_a_slope_is_asked_for() -> None:
    with pytest.raises(PhysicsError, match="unconnected"):
        Matrix(np.array([[0.0, 0.0, 1.0, 5.0]]), Space.path([(0, 1), (1, 2)], places=4)).moves().steepest()
