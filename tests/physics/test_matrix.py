"""Any matrix as a model."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from cloakwork.errors import PhysicsError
from cloakwork.physics import Matrix, Metric, Space


def all_pairs(places: NDArray[np.float64]) -> Space:
    i, j = np.triu_indices(len(places), k=1)
    lengths = np.linalg.norm(places[i] - places[j], axis=1)
    return Space(places, np.stack([i, j], axis=1), lengths, Metric.PLANE)


@settings(max_examples=25, deadline=None)
@given(arrays(np.float64, (3, 5), elements=st.floats(-100, 100)))
def test_slopes_are_the_largest_over_neighbours(values: NDArray[np.float64]) -> None:
    model = Matrix(values, Space.line(5, length=2.0))
    steps = np.abs(np.diff(values, axis=1)) / 0.4
    joint = float(np.linalg.norm(steps, axis=0).max())
    assert joint <= model.moves().steepest().value <= joint * (1 + 1e-9) + 1e-300
    assert model.moves().each == pytest.approx(steps.max(axis=1), rel=1e-9)
    assert (model.moves().each >= steps.max(axis=1)).all()


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
