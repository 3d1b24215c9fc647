"""Basis pursuit's sources, moved off the places."""

import numpy as np
import pytest

from cloakwork.physics import HeatLine
from cloakwork.recovery import Problem, recover
from papers import Refined
from papers.gallery.points import PointModel, Points
from papers.gallery.refined import refine


def test_a_source_between_places_is_found_with_its_weight(line: HeatLine, rng: np.random.Generator) -> None:
    noisy = 0.8 * line.columns_at(np.array([[0.3047]]))[:, 0] + 0.01 * rng.normal(size=(20, 50))
    maps = recover(noisy, line, sigma=0.01, estimator=Refined()).map
    along = line.space.places[:, 0]
    np.testing.assert_allclose(maps @ along / maps.sum(axis=1), 0.3047, atol=0.005)
    np.testing.assert_allclose(maps.sum(axis=1), 0.8, atol=0.03)


def test_it_undoes_the_shrinkage_of_basis_pursuit(line: HeatLine, rng: np.random.Generator) -> None:
    noisy = line.columns_at(np.array([[0.25], [0.75]])) @ [0.8, 0.6] + 0.1 * rng.normal(size=(60, 50))
    shrunk = recover(noisy, line, sigma=0.1).map.sum(axis=1).mean()
    refined = recover(noisy, line, sigma=0.1, estimator=Refined()).map.sum(axis=1).mean()
    assert refined == pytest.approx(1.4, abs=0.05)
    assert abs(refined - 1.4) < abs(shrunk - 1.4)


def test_sources_that_the_readings_do_not_tell_apart_are_merged(line: HeatLine, rng: np.random.Generator) -> None:
    model = PointModel(Problem.with_noise(line, 0.1))
    data = model.data(line.columns_at(np.array([[0.4]])) @ [0.9] + 0.1 * rng.normal(size=50)[None])
    found = refine(model, data, [Points(np.array([[0.3, 0.42, 0.5]]), np.array([[0.3, 0.3, 0.3]]))])
    assert (found.weight > 0).sum() == 1
    assert found.at[found.weight > 0] == pytest.approx(0.4, abs=0.03)
