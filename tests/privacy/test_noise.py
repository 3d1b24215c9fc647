"""Released noise: its law, its randomness, and no leak through floating point."""

import math

import numpy as np
import pytest
from scipy import special, stats

from cloakwork.physics import HeatLine
from cloakwork.privacy import Cloak, noise_table
from cloakwork.privacy.sampler import (
    WordSource,
    noise_from_words,
    noise_of_frames,
    private_words,
    simulated_words,
)

DRAWS = 100_000
SUMS = [300.0, 3017.0, 9000.0, 200_000.0, 2.0**24]  # noise of two to five levels


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


def drawn(ratio: float, words: WordSource, count: int = DRAWS) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    table = noise_table(ratio)
    levels = len(table.levels)
    return noise_from_words(table, words(count * levels).reshape(count, levels, 2))


@pytest.mark.parametrize("ratio", [3.3, 9000.0])
def test_private_draws_have_the_exact_law(ratio: float) -> None:
    assert p_value(drawn(ratio, private_words), ratio) > 1e-6


@pytest.mark.parametrize("ratio", [0.6, 3.3, 129.0, *SUMS])
def test_simulated_draws_have_the_exact_law(ratio: float, rng: np.random.Generator) -> None:
    assert p_value(drawn(ratio, simulated_words(rng)), ratio) > 1e-6


@pytest.mark.parametrize("ratio", [3.3, 129.0, *SUMS[:-1]])
@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_a_scale_20_percent_off_is_noticed(ratio: float, factor: float, rng: np.random.Generator) -> None:
    assert p_value(drawn(ratio * factor, simulated_words(rng)), ratio) < 1e-12


def test_no_two_calls_share_noise() -> None:
    assert not np.array_equal(private_words(64), private_words(64))
    assert len(np.unique(private_words(100_000)[:, 0])) == 100_000


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
        assert np.array_equal(whole * cloak.step, values)


def test_frames_together_have_the_noise_of_frames_one_by_one() -> None:
    """Sensors with one, two and three levels, and more frames than are drawn at a time."""
    tables = [noise_table(ratio) for ratio in (40.0, 300.0, 40.0, 9000.0, 300.0)]
    assert [len(table.levels) for table in tables] == [1, 2, 1, 3, 2]
    count = 8000
    together = noise_of_frames(tables, count, simulated_words(np.random.default_rng(5)))
    words = simulated_words(np.random.default_rng(5))(count * 9).reshape(count, 9, 2)
    for sensor, (first, last) in enumerate(((0, 1), (1, 3), (3, 4), (4, 7), (7, 9))):
        assert np.array_equal(together[:, sensor], noise_from_words(tables[sensor], words[:, first:last]))
    rng = np.random.default_rng(5)
    single = [noise_of_frames(tables, 1, simulated_words(rng))[0] for _ in range(20)]
    assert np.array_equal(single, together[:20])
    assert noise_of_frames(tables, 0, private_words).shape == (0, 5)


@pytest.mark.parametrize("shape", [(10, 2), (10, 1, 2), (10, 3, 2), (10, 2, 3)])
def test_words_for_another_table_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="words"):
        noise_from_words(noise_table(300.0), np.zeros(shape, dtype=np.uint64))
