"""The stages of the tracker, each alone."""

import numpy as np
import pytest

import cloakwork as cw
from cloakwork.recovery import Observer
from cloakwork.recovery.goodness_of_fit import Misfit, draw_checked
from cloakwork.recovery.recover import resolve_problem
from cloakwork.recovery.tracking.alignment import Aligner, Centres
from cloakwork.recovery.tracking.belief import predicted
from cloakwork.recovery.tracking.motion import MotionModel

LINE = cw.HeatLine(n=12, m=8, T=0.002)


def test_observe_gives_the_log_likelihood_of_each_cell(rng: np.random.Generator) -> None:
    sigma, readings = 0.3, rng.standard_normal(8)
    observer = Observer(resolve_problem(LINE, sigma), 1.0)
    scores = observer.observe(readings, frozenset({2})).scores
    counted = np.arange(8) != 2
    rest = readings[counted, None] - observer.columns.T[counted]
    direct = ((readings[counted] ** 2).sum() - (rest**2).sum(axis=0)) / (2 * sigma**2)
    assert scores.readings[0] - scores.squares / 2 == pytest.approx(direct, abs=1e-3)


@pytest.mark.parametrize("motion", [cw.Motion(), cw.Motion.still(), cw.Motion(entrances=(0.0,))])
def test_predict_keeps_all_probability(motion: cw.Motion, rng: np.random.Generator) -> None:
    distances = np.abs(np.subtract.outer(np.arange(6), np.arange(6))).astype(np.float32)
    model = MotionModel(motion, distances, 1.0, None if motion.entrances is None else distances[0])
    beliefs = rng.dirichlet(np.ones(13), size=4).astype(np.float32)
    assert predicted(model.over(60.0), beliefs).sum(axis=1) == pytest.approx(np.ones(4), abs=1e-6)


def test_check_sets_the_sensor_aside_that_no_source_explains() -> None:
    calls: list[tuple[frozenset[int], float]] = []

    def draw(excluded: frozenset[int], inflation: float) -> tuple[int, Misfit]:
        calls.append((excluded, inflation))
        rest = np.full(20, 0.5)
        rest[7] = 0.0 if 7 in excluded else 9.0
        return len(calls), Misfit(rest, rest, 20, 1.0, 5)

    first, used, fit = draw_checked(draw, frozenset({3}), frozenset({4}), remedies=1)
    assert (first, used) == (1, 2)
    assert calls == [(frozenset({3, 4}), 1.0), (frozenset({3, 4, 7}), 1.0)]
    assert fit.set_aside == (4, 7)
    assert fit.p_value > 0.1


def test_check_widens_the_noise_where_no_sensor_stands_out() -> None:
    def draw(_: frozenset[int], inflation: float) -> tuple[float, Misfit]:
        rest = np.full(20, 2.5 / inflation)
        return inflation, Misfit(rest, rest, 20, 1.0, 5)

    first, used, fit = draw_checked(draw, frozenset(), remedies=1)
    assert (first, used, fit.set_aside) == (1.0, fit.inflation, ())
    assert 2.5 <= fit.inflation <= 2.5 * 2**0.25
    assert fit.p_value < 1e-6, "the fit is that with the noise as it is"


def test_associate_finds_each_source_by_its_place() -> None:
    aligner = Aligner(np.abs(np.subtract.outer(np.arange(10), np.arange(10))).astype(np.float32))
    cells = np.array([[2, 8, -1], [8, -1, 3], [-1, 1, 8]])
    order = aligner.match(Centres(np.array([8, 2, -1]), np.array([1.0, 1.0, 0.0])), cells)
    assert np.take_along_axis(cells, order, axis=1).tolist() == [[8, 2, -1], [8, 3, -1], [8, 1, -1]]
