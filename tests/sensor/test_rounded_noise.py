"""A sensor's noise floor from rounded readings: against SciPy, and against noise that is known."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from cloakwork.sensor.rounded_noise import DROP, RoundedNoise


def rounded(rng: np.random.Generator, sd: float, *, count: int = 200, drift: float = 0.0) -> list[float]:
    places = rng.uniform(-0.5, 0.5) + drift * np.linspace(0, 1, count)
    return [float(value) for value in np.round(places + sd * rng.standard_normal(count))]


def profile(steps: list[float], sd: float) -> float:
    """The largest log-likelihood of rounded normal readings with this noise, by SciPy."""
    values = np.array(steps) - np.mean(steps)
    rows = np.column_stack([np.ones(len(values) - 1), np.linspace(-0.5, 0.5, len(values) - 1), values[:-1]])

    def minus(weights: NDArray[np.float64]) -> float:
        away = values[1:] - rows @ weights
        return -float(np.sum(np.log(stats.norm.cdf((away + 0.5) / sd) - stats.norm.cdf((away - 0.5) / sd) + 1e-300)))

    start = np.linalg.lstsq(rows, values[1:], rcond=None)[0]
    return -float(optimize.minimize(minus, start, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-6}).fun)


@pytest.mark.parametrize(("sd", "drift"), [(0.4, 0.0), (0.64, 1.5), (2.0, 0.0)])
def test_the_estimate_and_its_interval_are_those_of_the_likelihood(
    sd: float, drift: float, rng: np.random.Generator
) -> None:
    steps = rounded(rng, sd, drift=drift)
    noise = RoundedNoise(steps)
    top = profile(steps, noise.sd)
    assert top >= max(profile(steps, noise.sd * factor) for factor in (0.97, 1.03)) - 1e-3
    assert profile(steps, noise.low) == pytest.approx(top - DROP, abs=0.1)
    assert profile(steps, noise.high) == pytest.approx(top - DROP, abs=0.1)


@pytest.mark.parametrize("sd", [0.5, 1.4])
def test_the_interval_holds_the_true_noise_and_excludes_four_fifths_and_six_fifths_of_it(
    sd: float, rng: np.random.Generator
) -> None:
    found = [RoundedNoise(rounded(rng, sd, count=300, drift=drift)) for drift in (0.0, 1.0) for _ in range(4)]
    assert sum(noise.low <= sd <= noise.high for noise in found) >= 6
    assert sum(noise.low > 0.8 * sd and noise.high < 1.25 * sd for noise in found) >= 6


def test_readings_on_two_values_show_no_noise_of_their_own(rng: np.random.Generator) -> None:
    """On a border any small noise, or none and a drift, gives two values; their variance looks like 0.41 steps."""
    tossed = [float(value) for value in rng.integers(0, 2, 200)]
    assert RoundedNoise(tossed).low == 0
    crossed = [0.0] * 90 + [1.0] * 110
    assert RoundedNoise(crossed).low == 0
