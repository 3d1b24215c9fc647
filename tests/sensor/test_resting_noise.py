"""A sensor's noise floor from rounded readings: against noise that is known."""

import numpy as np
import pytest

from cloakwork.sensor.resting_noise import RestingNoise


def rounded(rng: np.random.Generator, sd: float, *, drift: float) -> list[float]:
    places = rng.uniform(-0.5, 0.5) + drift * np.linspace(0, 1, 300)
    return [float(value) for value in np.round(places + sd * rng.standard_normal(300))]


@pytest.mark.parametrize("sd", [0.5, 1.4])
def test_the_interval_holds_the_true_noise_and_excludes_seven_tenths_and_five_quarters_of_it(
    sd: float, rng: np.random.Generator
) -> None:
    found = [RestingNoise(rounded(rng, sd, drift=drift)) for drift in (0.0, 1.0) for _ in range(20)]
    assert sum(noise.low <= sd for noise in found) >= 38
    assert sum(noise.high >= sd for noise in found) >= 30  # the smallest part of a spectrum is taken, which is lower
    assert sum(noise.low > 0.7 * sd and noise.high < 1.25 * sd for noise in found) >= 30


def test_readings_on_two_values_show_no_noise_of_their_own(rng: np.random.Generator) -> None:
    """On a border any small noise, or none and a drift, gives two values; their variance looks like 0.41 steps."""
    tossed = [float(value) for value in rng.integers(0, 2, 200)]
    assert RestingNoise(tossed).low == 0
    crossed = [0.0] * 90 + [1.0] * 110
    assert RestingNoise(crossed).low == 0
