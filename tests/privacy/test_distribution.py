"""Laplace noise for single sensors: its calibration against dp-accounting, and its variance."""

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

import cloakwork as cw
from cloakwork.errors import CalibrationError
from tests.options import grouped

LINE = cw.HeatLine(n=20, m=5, T=0.01)


def cloak(epsilon: float, delta: float, readings: int = 1, noise: str = "laplace") -> cw.Cloak:
    return cw.Cloak(
        LINE, epsilon=epsilon, delta=delta, alpha=0.05, scope="sensor", noise=noise, readings_per_window=readings
    )


@pytest.mark.parametrize(("epsilon", "delta", "readings"), [(1.0, 1e-6, 20), (8.0, 1e-5, 20), (2.0, 1e-3, 60)])
def test_a_window_agrees_with_dp_accounting(epsilon: float, delta: float, readings: int) -> None:
    window = cloak(epsilon, delta, readings).profile
    assert isinstance(window, cw.LaplaceProfile)
    assert window.delta(epsilon) <= delta
    one = pld.from_laplace_mechanism(1 / window.shift, value_discretization_interval=1e-4)
    theirs = one.self_compose(readings).get_epsilon_for_delta(delta)
    assert theirs == pytest.approx(epsilon, rel=5e-3)
    budget = cw.Budget().cloak(cloak(epsilon, delta, readings))
    assert budget.epsilon(delta) == pytest.approx(theirs, rel=5e-3)
    with_choices = one.self_compose(readings).compose(
        pld.from_laplace_mechanism(2.0, value_discretization_interval=1e-4)
    )
    assert budget.choice(0.5).epsilon(delta) >= with_choices.get_epsilon_for_delta(delta) * (1 - 5e-3)


def test_a_budget_adds_a_year_of_laplace_readings() -> None:
    minute = cloak(0.05, 0.0, 1)
    for readings in (100, 525_600):
        profile = minute.compose(readings)
        ours = cw.Budget().cloak(minute, windows=readings)
        assert ours.epsilon(1e-6) == pytest.approx(profile.epsilon(1e-6), rel=0.03)
        assert ours.epsilon(0.0) == pytest.approx(readings * 0.05, rel=1e-6)
    every_sensor = cw.Budget().cloak(minute, readings=100 * 31_536_000)
    mean = 100 * 31_536_000 * (0.05 - 1 + np.exp(-0.05))
    assert mean < every_sensor.epsilon(1e-6) < 1.03 * mean, "a hundred sensors, each second"


def test_released_readings_have_laplace_noise_and_gaussian_is_noticed() -> None:
    pure = cloak(1.0, 0.0)
    drawn = pure.simulate(np.zeros((4000, 5)), rng=np.random.default_rng(5)).ravel()
    assert drawn.std() == pytest.approx(pure.sigma, rel=0.03)
    jitter = (np.random.default_rng(6).random(len(drawn)) - 0.5) * pure.step
    assert stats.kstest(drawn + jitter, stats.laplace(scale=pure.sigma / 2**0.5).cdf).pvalue > 1e-4
    assert stats.kstest(drawn + jitter, stats.norm(scale=pure.sigma).cdf).pvalue < 1e-12
    assert pure.release(np.full(5, 0.123), exact=True).shape == (5,)
    assert pure.spent == 1


@pytest.mark.parametrize(
    "options",
    [
        {"scope": "network"},
        {"noise_floor": 0.1, "resolution": 0.1},
        {"stay": cw.Stay(100, epsilon=1.0, delta=1e-6)},
        {"noise": "uniform"},
        {"delta": 1.0},
        {"noise": "laplace", "epsilon": 40.0, "delta": 1e-20},  # less than the error of the tables
        {"noise": "gaussian", "delta": 0.0},
    ],
)
def test_what_laplace_noise_cannot_do_is_refused(options: dict[str, object]) -> None:
    usual = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.05, "scope": "sensor", "noise": "laplace"}
    with pytest.raises(CalibrationError):
        cw.Cloak(LINE, **grouped(usual | options))
