"""Shared noise: the same guarantee by brute force, a certificate, whole numbers, and recovery that knows the law."""

import math
from typing import Any

import cvxpy
import mpmath
import numpy as np
import pytest

import cloakwork as cw
from cloakwork.errors import CalibrationError
from cloakwork.physics import Family, Matrix, Nuisance, Physics, Space, Timing, Tolerance, whitener
from cloakwork.privacy import Cloak, SharedNoise, mean_variance
from cloakwork.privacy.shared_design import WARY, SharedSearch
from cloakwork.privacy.variance import Moves, precision

ROOMS = cw.Rooms.from_walls((3, 2), cell=0.5, walls=[((1.5, 0), (1.5, 2))], doors=[((1.5, 0.5), (1.5, 1.5))])
SENSORS = [(0.6, 0.6), (1.2, 1.7), (2.4, 1.1), (1.6, 0.9), (0.3, 1.8), (2.9, 0.2)]
FLAT = cw.FloorPlan(ROOMS, SENSORS, cw.Steady(0.8), footprint=0.3)
ROW = Matrix(np.array([[1.0, 0.4, 0.1, 0.0], [0.1, 0.5, 1.0, 0.3], [0.0, 0.2, 0.6, 1.0]]), Space.line(4))
CLAIM: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "alpha": 0.3, "readings_per_window": 4}


def shared(model: Physics = FLAT, **changed: Any) -> Cloak:
    return Cloak(model, **(CLAIM | {"design": "shared", "designed_for": 1} | changed))


def moves(model: Physics) -> Any:
    i, j = model.space.pairs.T
    return (model.matrix[:, i] - model.matrix[:, j]) / model.space.lengths


@pytest.mark.parametrize(
    ("model", "changed"),
    [
        (FLAT, {}),
        (FLAT, {"designed_for": 3, "resolution": 0.01}),
        (FLAT, {"tolerance": Tolerance(gain=0.05, diffusion=0.1)}),
        (ROW, {"step": 0.002}),
    ],
)
def test_brute_force_neighbours_never_exceed_the_claim(
    model: Physics, changed: dict[str, Any], rng: np.random.Generator
) -> None:
    """All neighbours, with gains and roundings as bad as declared, by the covariance that the whole numbers have."""
    cloak = shared(model, **changed)
    inverse = np.linalg.inv(cloak.covariance)
    tolerance = changed.get("tolerance", Tolerance())
    factors = (1 - tolerance.diffusion, 1.0, 1 + tolerance.diffusion)
    spreads = [model.with_spread(f) for f in factors] if tolerance.diffusion else [model]
    worst = 0.0
    for member in spreads:
        shifts = cloak.alpha * moves(member)
        for _ in range(200):
            gains = 1 + tolerance.gain * rng.choice([-1, 1], size=(cloak.physics.sensors, 1))
            rounding = cloak.roundings[:, None] * rng.choice([-1, 1], size=shifts.shape)
            shifted = gains * shifts + rounding
            worst = max(worst, float(np.sqrt(np.einsum("ie,ij,je->e", shifted, inverse, shifted).max())))
    assert worst <= cloak.frame_mu <= cloak.allowance.mu
    assert worst >= (0.5 if tolerance.gain else 0.8) * cloak.allowance.mu, "and some neighbours come close"


def test_noise_that_only_hides_the_evaluated_models_does_not_pass_for_those_between() -> None:
    """A covariance that is large along the moves of every evaluated model, and small where those between them go."""
    model, tolerance = cw.HeatLine(n=2, m=30, T=0.003), Tolerance(diffusion=0.97)
    evaluated = np.concatenate([moves(member) for member in Family(model, tolerance).members], axis=1)
    covariance = np.eye(30) * (evaluated**2).sum(axis=0).max() + 2000.0**2 * evaluated @ evaluated.T
    cloak = Cloak(model, epsilon=2.0, delta=1e-5, alpha=0.05, covariance=covariance, tolerance=tolerance)
    between = np.concatenate([moves(model.with_spread(float(k))) for k in np.geomspace(0.03, 1.97, 101)], axis=1)
    whitened = np.linalg.solve(np.linalg.cholesky(cloak.covariance), cloak.alpha * between)
    rounding = np.linalg.norm(cloak.roundings / cloak.sigmas)
    assert np.sqrt((whitened**2).sum(axis=0)).max() + rounding <= cloak.frame_mu


@pytest.mark.parametrize("sources", [1, 2])
def test_the_certificate_encloses_the_optimum_of_another_solver(sources: int) -> None:
    rows, several = moves(FLAT).T / 2.0, Moves.of(FLAT).of_several(sources)
    found = SharedSearch(several, rows).run()
    cp: Any = cvxpy
    P = cp.Variable(2 * rows.shape[1:], PSD=True)
    means = [
        share * cp.matrix_frac(np.eye(len(known)), slopes @ P @ slopes.T + known)
        for share, slopes, known in zip(several.shares, several.slopes, several.known, strict=True)
    ]
    bounds = [row @ P @ row + WARY * (row**2) @ cp.diag(P) <= 1 for row in rows]
    best = cp.Problem(cp.Minimize(cp.sum(means)), bounds).solve(solver="SCS", eps=1e-7)
    assert found.bound <= best * (1 + 1e-5)
    assert best <= found.value * (1 + 1e-5)
    assert found.value - found.bound <= 0.05 * found.value


def test_the_report_states_the_gap_and_shared_noise_beats_independent_noise() -> None:
    one, three = shared().design_report, shared(designed_for=3).design_report
    independent = Cloak(FLAT, **CLAIM, design="least-error").design_report
    assert 0 <= (one.gap or math.inf) < 0.05
    assert 0 <= (three.gap or math.inf) < 0.08
    assert one.variance < three.variance < independent.variance
    assert one.variance < 0.75 * independent.variance
    several = Moves.of(FLAT).of_several(3)
    of_one = several.mean(precision(shared().claimed_sigmas / 2))
    assert (three.scene_variance or math.inf) < of_one, "which the design for three is better at"


def test_whole_numbers_have_the_law_of_a_gaussian() -> None:
    """The density of columns @ d + own noise, summed with mpmath, against that of the Gaussian of their covariance."""
    noise = SharedNoise(np.array([[20], [-13]]), 9.0)
    own = np.array([55.0, 50.0])
    assert noise.is_smooth(own)
    assert not noise.is_smooth(own / 2)

    def uneven(own: Any) -> float:
        """The largest relative change of the density over that of the Gaussian."""
        inverse = mpmath.matrix((np.diag(own**2) + 81 * noise.columns @ noise.columns.T).tolist()) ** -1
        ratios = []
        for x in ([0, 0], [3.5, 8.25], [10.0, 6.5], [-40.0, 31.0], [120.0, -78.0]):
            column, total = mpmath.matrix(x), mpmath.mpf(0)
            for d in range(-150, 151):
                rests = [(column[k] - int(noise.columns[k, 0]) * d) / mpmath.mpf(own[k]) for k in range(2)]
                total += mpmath.exp(-(mpmath.mpf(d * d) / 81 + rests[0] ** 2 + rests[1] ** 2) / 2)
            ratios.append(total * mpmath.exp((column.T * inverse * column)[0] / 2))
        return float(max(abs(ratio / ratios[0] - 1) for ratio in ratios))

    with mpmath.workdps(50):
        assert uneven(own) <= 4 * 1.03e-34
        assert uneven(own / 4) > 1e-12, "less own noise would let the steps show"


def test_the_noise_has_the_stated_covariance() -> None:
    cloak = shared()
    frames = 4000
    sent = cloak.simulate(np.zeros((frames, 6)), rng=np.random.default_rng(5))
    assert (sent == cloak.to_steps(sent) * cloak.steps).all(), "whole steps"
    white = np.linalg.solve(np.linalg.cholesky(cloak.covariance), sent.T)
    product = white @ white.T / frames
    error = 5 * math.sqrt(2 / frames)
    assert np.abs(product - np.eye(6)).max() < error
    assert error < 0.2, "so that 0.8 and 1.2 times the noise fail"
    assert cloak.release(np.full(6, 0.1234567), exact=True).shape == (6,)
    assert cloak.spent == 1


def test_a_covariance_that_is_given_is_used_and_checked() -> None:
    designed = shared()
    given = Cloak(FLAT, **CLAIM, covariance=1.001 * designed.covariance)
    assert np.allclose(given.covariance, 1.001 * designed.covariance, rtol=1e-2, atol=1e-3 * designed.covariance.max())
    assert given.design is None
    with pytest.raises(CalibrationError) as little:
        Cloak(FLAT, **CLAIM, covariance=0.5 * designed.covariance)
    assert little.value.values["factor"] == pytest.approx(math.sqrt(2), rel=1e-2)
    indefinite = designed.covariance - 2 * np.linalg.eigvalsh(designed.covariance)[0] * np.eye(6)
    with pytest.raises(CalibrationError) as negative:
        Cloak(FLAT, **CLAIM, covariance=indefinite)
    assert negative.value.values["least"] == pytest.approx(np.linalg.eigvalsh(indefinite)[0])
    for wrong in (np.eye(5), np.full((6, 6), np.nan), np.triu(designed.covariance)):
        with pytest.raises(CalibrationError):
            Cloak(FLAT, **CLAIM, covariance=wrong)


@pytest.mark.parametrize(
    "changed",
    [
        {"scope": "sensor"},
        {"timing": Timing(0.1, 1.5)},
        {"tolerance": Tolerance(position=0.1)},
        {"resolution": 0.01, "own_noise": 0.01},
        {"stay": cw.Stay(64, 12.0, 1e-5)},
        {"sigma": 1.0},
        {"designed_for": 0},
    ],
)
def test_what_shared_noise_does_not_cover_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(CalibrationError):
        shared(**changed)


def _drift(W: Any) -> Nuisance:
    """The drift of all sensors by 0.5, as whitened readings have it."""
    return Nuisance(W @ np.ones((3, 1)), np.array([0.5]), np.array([6 * 3600.0]))


def test_recovery_tracking_and_limits_know_the_covariance() -> None:
    """Readings of a shared cloak are worth exactly what whitened readings with independent noise are."""
    cloak = shared(ROW)
    W = whitener(cloak.sigmas, cloak.shared.factor(cloak.steps)) if cloak.shared else np.eye(3)
    plain = Matrix(W @ ROW.matrix, ROW.space)
    true = ROW.apply(cw.sources(ROW, [0.75]))
    sent = cloak.simulate(np.tile(true, (5, 1)), rng=np.random.default_rng(3))
    points = cw.PointSources(1.0, most=2)
    ours, theirs = cw.recover(sent, cloak, estimator=points), cw.recover(sent @ W.T, plain, sigma=1.0, estimator=points)
    assert np.allclose(ours.map, theirs.map, atol=1e-3)
    trackers = cw.Tracker(cloak, most=2, seed=1), cw.Tracker(plain, sigma=1.0, most=2, seed=1)
    for k, frame in enumerate(sent):
        one, other = trackers[0].step(frame, 60.0 * k), trackers[1].step(W @ frame, 60.0 * k)
    assert np.allclose(one.counts, other.counts, atol=0.05)
    gone = trackers[0].step(np.where(np.arange(3) == 1, np.nan, sent[0]), 600.0)
    assert gone.counts.sum() == pytest.approx(1.0)
    drifts = cw.Tracker(cloak, most=2, drift=cw.Drift(all=0.5)), cw.Tracker(plain, sigma=1.0, most=2, drift=_drift(W))
    for k, frame in enumerate(sent):
        one, other = drifts[0].step(frame + 0.5, 60.0 * k), drifts[1].step(W @ (frame + 0.5), 60.0 * k)
    assert np.allclose(one.counts, other.counts, atol=0.05)
    root = cloak.claimed_sigmas
    assert mean_variance(ROW, root) == pytest.approx(mean_variance(plain, 1.0))
    assert cw.bayes_risk(ROW, root).right_place == pytest.approx(cw.bayes_risk(plain, 1.0).right_place, abs=1e-9)


def test_the_explanation_says_what_the_drawing_process_knows() -> None:
    told = " ".join(shared().explain().not_hidden)
    assert "process that draws the noise" in told
    assert "gains" in told
