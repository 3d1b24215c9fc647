"""Point sources on a line, and the descent to the nearest best fit."""

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.physics import HeatLine, heat_kernel
from cloakwork.recovery import Problem
from papers.gallery.descent import Strength, descend
from papers.gallery.points import PointModel, Points

FREE = Strength(0.0, 1.0)


@pytest.fixture
def model(line: HeatLine) -> PointModel:
    return PointModel(Problem.with_noise(line, 0.15))


def readings_of(line: HeatLine, at: list[float], weights: list[float]) -> FloatArray:
    return np.asarray(line.columns_at(np.array(at)[:, None]) @ np.array(weights))[None]


def test_slopes_are_the_derivative_of_the_kernel(line: HeatLine, model: PointModel) -> None:
    at = np.array([0.0312, 0.5, 0.99])
    offsets = at[:, None] - line.sensor_positions[:, 0]
    exact = -offsets / (2 * line.T) * heat_kernel(offsets, line.T)
    np.testing.assert_allclose(model.slopes(at) @ model.problem.range.basis.T * 0.15, exact, atol=1e-5)


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
