"""What is really released: its law, its randomness, and what floating point gives away (nothing)."""

import math

import numpy as np
import pytest
from scipy import special, stats

from cloakwork.physics import HeatLine, Matrix, Space
from cloakwork.privacy import Cloak, noise_table
from cloakwork.privacy.sampler import noise, private_words, simulated_words

DRAWS = 200_000


def p_value(draws: np.ndarray[tuple[int], np.dtype[np.int64]], ratio: float) -> float:
    """Chi-square test of integer draws against the law of round(N(0, ratio^2)), in about 60 cells."""
    width = max(1, math.ceil(ratio * 8 / 60))
    edges = np.arange(-30, 31) * width + 0.5
    cdf = special.ndtr(np.concatenate([[-np.inf], edges, [np.inf]]) / ratio)
    expected = np.diff(cdf) * len(draws)
    counts = np.bincount(np.searchsorted(edges, draws), minlength=len(expected))
    keep = expected > 8
    expected = np.append(expected[keep], expected[~keep].sum())
    observed = np.append(counts[keep], counts[~keep].sum())
    positive = expected > 0
    statistic = ((observed - expected)[positive] ** 2 / expected[positive]).sum()
    return float(stats.chi2.sf(statistic, positive.sum() - 1))


@pytest.mark.parametrize("ratio", [0.6, 3.3, 129.0, 3017.0])
def test_private_draws_have_the_exact_law(ratio: float) -> None:
    assert p_value(noise(noise_table(ratio), private_words(DRAWS)), ratio) > 1e-6


@pytest.mark.parametrize("ratio", [3.3, 129.0, 3017.0])
@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_a_scale_20_percent_off_is_noticed(ratio: float, factor: float, rng: np.random.Generator) -> None:
    draws = noise(noise_table(ratio * factor), simulated_words(DRAWS, rng))
    assert p_value(draws, ratio) < 1e-12


def test_no_two_calls_share_noise() -> None:
    assert not np.array_equal(private_words(64), private_words(64))
    assert len(np.unique(private_words(100_000)[:, 0])) == 100_000


def test_signs_and_magnitudes_are_balanced(rng: np.random.Generator) -> None:
    draws = noise(noise_table(50.0), simulated_words(DRAWS, rng))
    assert abs(int((draws > 0).sum()) - int((draws < 0).sum())) < 5 * math.sqrt(DRAWS)


def test_release_has_the_stated_sigma_on_every_sensor(line: HeatLine) -> None:
    sigma = np.linspace(3.0, 9.0, 50)
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, sigma=sigma)
    noisy = cloak.simulate(np.zeros((20_000, 50)), rng=np.random.default_rng(3))
    assert noisy.std(axis=0) == pytest.approx(sigma, rel=0.03)
    for sensor in (0, 24, 49):
        ratio = sigma[sensor] / cloak.steps[sensor]
        assert p_value(cloak.to_steps(noisy)[:, sensor], float(ratio)) > 1e-6


def test_released_values_are_whole_steps_whatever_the_reading(line: HeatLine, rng: np.random.Generator) -> None:
    cloak = Cloak(line, epsilon=1, delta=1e-6, alpha=0.01, readings_per_window=2000)
    readings = rng.normal(size=(1000, 50)) * 10.0 ** rng.integers(-12, 2, size=(1000, 50))
    for values in (cloak.release(readings), cloak.simulate(readings, rng=rng)):
        whole = cloak.to_steps(values)
        assert np.array_equal(whole * cloak.resolution, values)


def test_low_bits_give_nothing_away() -> None:
    """For two readings a move apart, the set of values that can be released is the same.

    With floating-point noise a quarter or more of the releases prove which of the two it was. Here a release is
    k + noise in whole steps, so every integer in reach of one is in reach of the other.
    """
    model = Matrix(np.eye(2), Space.line(2, length=2.0))
    cloak = Cloak(model, epsilon=1, delta=0.1, alpha=1.0, readings_per_window=200_000, resolution=1.0)
    at_zero = cloak.to_steps(cloak.release(np.zeros((100_000, 2))))[:, 0]
    at_one = cloak.to_steps(cloak.release(np.full((100_000, 2), 1.0)))[:, 0]
    common = np.arange(-int(cloak.sigma), int(cloak.sigma))
    assert np.isin(common, at_zero).all()
    assert np.isin(common, at_one).all()

    normal = np.random.default_rng(0).normal(scale=1.085878, size=100_000)  # for one reading, (1, 0.1)
    naive = 0.0 + normal
    reachable_from_one = 1.0 + (naive - 1.0) == naive
    assert 0.2 < (~reachable_from_one).mean() < 0.45  # the attack works on naive noise, so this test can fail


def test_the_half_table_of_the_first_example_has_the_known_size(line: HeatLine) -> None:
    cloak = Cloak(line, epsilon=1.0, delta=1e-6, alpha=0.01)
    entries = len(noise_table(float(cloak.sigma / cloak.resolution)).cuts) / 16
    assert entries * 12 * 12 / 13.5 == pytest.approx(434_000, rel=0.01)  # in 96-bit words, to 12 standard deviations


def test_rounded_noise_meets_delta_exactly_at_coarse_steps() -> None:
    """Sum over all outputs of max(0, p - e^eps q) for neighbours, from the table itself, in both directions."""
    for step in (0.05, 0.5, 2.0):
        model = Matrix(np.array([[1.0, 0.0]]), Space.path([[0, 1]]))
        cloak = Cloak(model, epsilon=1, delta=0.1, alpha=1.0, resolution=step)
        ratio = cloak.sigma / cloak.resolution
        reach = int(14 * ratio) + 10
        edges = np.arange(-reach, reach + 1) + 0.5
        for shift in (math.floor(1 / step), math.ceil(1 / step)):
            p = np.diff(special.ndtr(edges / ratio))
            q = np.diff(special.ndtr((edges - shift) / ratio))
            assert max(np.maximum(p - math.e * q, 0).sum(), np.maximum(q - math.e * p, 0).sum()) <= 0.1
