"""Offsets that drift are integrated out: against dense Gaussian laws."""

from itertools import product

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import multivariate_normal

import cloakwork as cw
from cloakwork._checks import FloatArray
from cloakwork.errors import InputError, PhysicsError
from cloakwork.physics import Drift, FloorPlan, Heat, HeatLine, Rooms, Steady, sources
from cloakwork.recovery import PointSources, Problem, recover

SIGMA = np.array([0.2, 0.3, 0.2, 0.25, 0.3, 0.2, 0.4, 0.2])
ROOMS = Rooms.from_walls((4, 2), cell=0.5, walls=[((2, 0), (2, 2))], doors=[((2, 0.5), (2, 1.5))])
SENSORS = [(x, y) for x in (0.3, 1.3, 2.6, 3.6) for y in (0.3, 1.6)]
FLAT = FloorPlan(ROOMS, SENSORS, Steady(reach=0.8), gain=1.5)
DRIFT = Drift(sensor=0.1, room=0.5, all=2.0, over=600.0, heat=[Heat((3.9, 0.1), 4.0, over=300.0)])


def covariance(drift: Drift) -> FloatArray:
    """The covariance of the offsets of one frame, written out."""
    both = drift.sensor**2 * np.eye(8) + drift.all**2
    both[:4, :4] += drift.room**2
    both[4:, 4:] += drift.room**2
    for heat in drift.heat:
        column = FLAT.matrix @ sources(FLAT, [heat.at])
        both += (heat.strength / 2) ** 2 * np.outer(column, column)
    return both


def simulated(seed: int, place: int = 5) -> FloatArray:
    rng = np.random.default_rng(seed)
    noise = rng.multivariate_normal(np.zeros(8), covariance(DRIFT) + np.diag(SIGMA**2))
    return np.asarray(FLAT.matrix[:, place] + noise)


def test_a_frame_has_the_posterior_of_the_joint_covariance() -> None:
    readings = simulated(0)
    law = multivariate_normal(np.zeros(8), covariance(DRIFT) + np.diag(SIGMA**2))
    empty, one = law.pdf(readings), law.pdf(readings - FLAT.matrix.T).mean()
    found = recover(readings, FLAT, sigma=SIGMA, drift=DRIFT, estimator=PointSources(1.0, max_sources=1))
    np.testing.assert_allclose(found.counts, [empty / (empty + one), one / (empty + one)], rtol=1e-6)
    without = recover(readings, FLAT, sigma=SIGMA, estimator=PointSources(1.0, max_sources=1))
    assert abs(without.counts - found.counts).max() > 0.1


def test_a_sensor_that_does_not_count_is_integrated_out() -> None:
    problem = Problem.with_noise(FLAT, SIGMA, drift=DRIFT).without([2])
    kept = np.delete(np.arange(8), 2)
    exact = np.linalg.inv((covariance(DRIFT) + np.diag(SIGMA**2))[np.ix_(kept, kept)])
    whitener = problem.weights
    assert whitener is not None
    np.testing.assert_allclose((whitener.T @ whitener)[np.ix_(kept, kept)], exact, rtol=1e-9, atol=1e-12)
    assert not (whitener.T @ whitener)[2].any()


def test_a_broken_sensor_is_set_aside_though_all_have_an_offset() -> None:
    readings = FLAT.matrix[:, 5] + 3.0
    readings[1] -= 8.0
    found = recover(readings, FLAT, sigma=SIGMA, drift=DRIFT, estimator=PointSources(1.0, max_sources=2))
    assert found.fit.set_aside == (1,)


def test_scores_are_residuals_given_the_other_sensors() -> None:
    whole = covariance(DRIFT) + np.diag(SIGMA**2)
    problem, rest = Problem.with_noise(FLAT, SIGMA, drift=DRIFT), simulated(1)
    expected = []
    for sensor in range(8):
        others = np.delete(np.arange(8), sensor)
        weights = np.linalg.solve(whole[np.ix_(others, others)], whole[others, sensor])
        spread = np.sqrt(whole[sensor, sensor] - whole[sensor, others] @ weights)
        expected.append((rest[sensor] - weights @ rest[others]) / spread)
    np.testing.assert_allclose(problem.scores(problem.whiten(rest)), expected, rtol=1e-8)


def test_a_drift_that_makes_no_sense_is_refused() -> None:
    line = HeatLine(n=10, m=5, T=0.05)
    with pytest.raises(InputError) as caught:
        Drift(sensor=-0.1)
    assert caught.value.values == {"sensor": -0.1}
    with pytest.raises(InputError, match="above 0 seconds"):
        Drift(over=0.0)
    with pytest.raises(PhysicsError) as refused:
        recover(np.zeros(5), line, sigma=1.0, drift=Drift(room=1.0))
    assert refused.value.values["room"] == 1.0
    with pytest.raises(PhysicsError) as outside:
        Drift(heat=[Heat((9.0, 0.1), 4.0)]).on(FLAT)
    assert outside.value.values["heat"] == 0
    with pytest.raises(InputError):
        recover(np.zeros(5), line, sigma=1.0, drift=1.0)  # type: ignore[arg-type]


def test_learnt_offsets_have_the_covariance_of_a_long_filter() -> None:
    offsets, known = DRIFT.on(FLAT), np.eye(12)
    fade = np.exp(-120.0 / offsets.over)
    for _ in range(400):
        before = fade[:, None] * known * fade + np.diag(1 - fade**2)
        seen = np.diag(SIGMA**2) + offsets.factor @ before @ offsets.factor.T
        known = before - before @ offsets.factor.T @ np.linalg.solve(seen, offsets.factor @ before)
    left = offsets.learnt(SIGMA, 120.0).factor
    np.testing.assert_allclose(left @ left.T, offsets.factor @ before @ offsets.factor.T, atol=1e-9)


TIMES = [0.0, 60.0, 200.0]
LINE = cw.HeatLine(n=4, m=3, T=0.02)
WANDERING = Drift(sensor=0.5, all=2.0, over=300.0, heat=[Heat(0.75, 3.0, over=100.0)])


def exact(
    readings: FloatArray, model: HeatLine | FloorPlan, sigma: float, motion: cw.Motion, drift: Drift
) -> tuple[FloatArray, FloatArray]:
    """The probability of each state (sits at each place, absent) at each time, given the readings up to it, and all.

    All paths of one source that never moves are weighed by the joint covariance of all readings.
    """
    columns = np.append(model.matrix, np.zeros((3, 1)), axis=1)
    offsets = [(np.eye(3) * drift.sensor**2 + drift.all**2, drift.over)]
    for heat in drift.heat:
        warm = columns[:, model.space.index(heat.at)]
        offsets.append(((heat.strength / 2) ** 2 * np.outer(warm, warm), heat.over))
    apart = np.abs(np.subtract.outer(TIMES, TIMES))
    whole = sum(np.kron(np.exp(-apart / over), part) for part, over in offsets) + sigma**2 * np.eye(9)
    rates = np.array(
        [[-1 / motion.mean_present_s, 1 / motion.mean_present_s], [1 / motion.mean_absent_s, -1 / motion.mean_absent_s]]
    )
    filtered, smoothed = np.zeros((3, 5)), np.zeros((3, 5))
    for path in product(range(5), repeat=3):
        chance = 1 / 2 if path[0] == 4 else 1 / 8
        for t in (1, 2):
            (stay, leave), (appear, away) = expm((TIMES[t] - TIMES[t - 1]) * rates)
            before, now = path[t - 1], path[t]
            if before == 4:
                chance *= away if now == 4 else appear / 4
            else:
                chance *= leave if now == 4 else stay * (now == before)
        rest = (readings - columns[:, list(path)].T).ravel()
        for t in range(3):
            size = 3 * (t + 1)
            law = multivariate_normal(np.zeros(size), whole[:size, :size])
            filtered[t, path[t]] += chance * law.pdf(rest[:size])
            if t == 2:
                for before in range(3):
                    smoothed[before, path[before]] += chance * law.pdf(rest)
    return filtered / filtered.sum(axis=1, keepdims=True), smoothed / smoothed.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", [0, 1])
def test_tracks_have_the_posterior_of_the_joint_covariance_over_time(seed: int) -> None:
    rng, sigma, motion = np.random.default_rng(seed), 1.5, cw.Motion.still(mean_present_s=400.0, mean_absent_s=300.0)
    readings = 1.5 * rng.standard_normal((3, 3)) + 2.0 + LINE.matrix[:, 1]
    filtered, smoothed = exact(readings, LINE, sigma, motion, WANDERING)
    live, past = [], []
    for run in range(12):
        tracker = cw.Tracker(LINE, motion=motion, max_sources=1, sigma=sigma, seed=run, drift=WANDERING)
        live.append([tracker.step(row, time).intensity for row, time in zip(readings, TIMES, strict=True)])
        whole = cw.track(
            readings, LINE, times=TIMES, motion=motion, max_sources=1, sigma=sigma, seed=run, drift=WANDERING
        ).moments
        past.append([moment.intensity for moment in whole])
    without = cw.Tracker(LINE, motion=motion, max_sources=1, sigma=sigma)
    ignored = [without.step(row, time).intensity for row, time in zip(readings, TIMES, strict=True)]
    np.testing.assert_allclose(np.mean(live, axis=0), filtered[:, :4], atol=0.03)
    np.testing.assert_allclose(np.mean(past, axis=0), smoothed[:, :4], atol=0.03)
    assert np.abs(np.array(ignored) - filtered[:, :4]).max() > 0.2


def test_a_source_is_found_among_offsets_far_larger_than_the_noise() -> None:
    rng, sigma, motion = np.random.default_rng(0), 0.4, cw.Motion.still(mean_present_s=400.0, mean_absent_s=300.0)
    square = Rooms.from_walls((2, 2), cell=1.0, walls=[], doors=[])
    room = FloorPlan(square, [(0.3, 0.3), (1.4, 0.7), (1.7, 1.6)], Steady(reach=0.8), gain=8.0)
    drift = Drift(sensor=3 * sigma, over=600.0)
    readings = room.matrix[:, 1] + drift.on(room).simulate(TIMES, rng) + sigma * rng.standard_normal((3, 3))
    filtered, _ = exact(readings, room, sigma, motion, drift)
    live = []
    for run in range(12):
        tracker = cw.Tracker(room, motion=motion, max_sources=1, sigma=sigma, seed=run, drift=drift)
        live.append([tracker.step(row, time).intensity for row, time in zip(readings, TIMES, strict=True)])
    np.testing.assert_allclose(np.mean(live, axis=0), filtered[:, :4], atol=0.03)
    assert filtered[2].argmax() == 1
