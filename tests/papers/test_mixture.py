"""EM for the Gaussian mixture."""

import numpy as np
import pytest

from cloakwork._checks import FloatArray
from cloakwork.physics import HeatLine
from cloakwork.recovery import Problem, recover
from papers import Mixture
from papers.gallery.descent import Strength
from papers.gallery.mixture import expect_and_maximise
from papers.gallery.points import PointModel, Points

SIGMA = 1e-4


def readings_of(line: HeatLine, at: list[float], weights: list[float]) -> FloatArray:
    return np.asarray(line.columns_at(np.array(at)[:, None]) @ np.array(weights))


def spots(line: HeatLine, found: FloatArray) -> list[tuple[float, float]]:
    """Mean position and total of each run of neighbouring weights."""
    held = np.flatnonzero(found)
    runs = np.split(held, np.flatnonzero(np.diff(held) > 1) + 1)
    along = line.space.places[:, 0]
    return [(float(found[run] @ along[run] / found[run].sum()), float(found[run].sum())) for run in runs]


@pytest.mark.parametrize(
    ("at", "weights"),
    [([0.3047], [0.6]), ([0.2513, 0.7777], [1.0, 0.5]), ([0.12, 0.5021, 0.95], [0.8, 0.4, 0.9])],
    ids=["one", "two", "three"],
)
def test_with_little_noise_the_sources_and_their_number_are_found(
    line: HeatLine, rng: np.random.Generator, at: list[float], weights: list[float]
) -> None:
    noisy = readings_of(line, at, weights) + SIGMA * rng.normal(size=50)
    found = spots(line, recover(noisy, line, sigma=SIGMA, estimator=Mixture()).map)
    np.testing.assert_allclose([spot[0] for spot in found], at, atol=0.01)
    np.testing.assert_allclose([spot[1] for spot in found], weights, atol=0.05)


def test_every_round_of_em_lowers_the_misfit(line: HeatLine, rng: np.random.Generator) -> None:
    model = PointModel(Problem.with_noise(line, 0.15))
    data = model.data(readings_of(line, [0.3, 0.5], [1.0, 0.3]) + 0.15 * rng.normal(size=(30, 50)))
    points = Points(rng.uniform(0.05, 0.95, (30, 3)), rng.uniform(0.2, 0.8, (30, 3)))
    misfits = [model.misfit(data, points)]
    for _ in range(20):
        points = expect_and_maximise(model, data, points, Strength(0.0, 1.0), rounds=1)
        misfits.append(model.misfit(data, points))
    assert (np.diff(misfits, axis=0) <= 1e-6).all()
    assert (misfits[-1] < misfits[0]).all()
