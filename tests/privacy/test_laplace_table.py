"""Rounded Laplace noise: its tables against mpmath, its levels added up, its draws against SciPy."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import CalibrationError
from cloakwork.privacy import NoiseTable, noise_of_frames, simulated_words
from cloakwork.privacy.laplace import LARGEST_SCALE, laplace_table


def numbers(raw: bytes) -> list[int]:
    return [int.from_bytes(raw[k : k + 16], "big") for k in range(0, len(raw), 16)]


def draws_of(table: NoiseTable, count: int, seed: int = 7) -> IntArray:
    words = simulated_words(np.random.default_rng(seed))
    return noise_of_frames([table], count, words)[:, 0]


def law(table: NoiseTable) -> FloatArray:
    """P(K = k) for k = 0, 1, ...: from the cut points of all levels, summed up."""
    total = np.array([1.0])
    for level in table.levels:
        cuts = np.array([cut / 2**127 for cut in numbers(level.cuts)] + [1.0])
        sizes = np.diff(cuts, prepend=0.0)
        one = np.zeros(2 * level.factor * level.count + 1)
        middle = level.factor * level.count
        for k, size in enumerate(sizes):
            one[middle + k * level.factor] += size / 2
            one[middle - k * level.factor] += size / 2
        total = np.convolve(total, one)
    return np.asarray(total[len(total) // 2 :])


@pytest.mark.parametrize("scale", [0.05, 0.7, 3.0, 41.5, 64.0])
def test_cut_points_of_one_table_are_exact_to_the_last_of_127_bits(scale: float) -> None:
    [level] = laplace_table(scale).levels
    found = numbers(level.cuts)
    with mpmath.workprec(300):
        for j in {0, 1, len(found) // 3, len(found) - 1}:
            exact = 1 - mpmath.exp(-(mpmath.mpf(j) + 0.5) / mpmath.mpf(scale))
            assert abs(min(exact * 2**127, 2**127 - 1) - found[j]) <= mpmath.mpf("0.5000001")
        assert mpmath.exp(-(mpmath.mpf(len(found)) + 0.5) / mpmath.mpf(scale)) < mpmath.mpf(2) ** -130


@pytest.mark.parametrize("scale", [65.0, 1e6, 2.0**33 + 0.5, 2.0**45 + 12345.0, LARGEST_SCALE])
def test_cut_points_of_all_levels_are_exact_to_the_last_of_127_bits(scale: float) -> None:
    *coarser, fine = laplace_table(scale).levels
    with mpmath.workprec(500):
        base, s = 4096, mpmath.mpf(scale)

        def below(y: mpmath.mpf) -> mpmath.mpf:
            """P(T1 - T2 <= y), y >= 0, by integrating over T2: T exponential and below the base."""
            whole = 1 - mpmath.exp(-base / s)
            sure = (mpmath.exp(-(base - y) / s) - mpmath.exp(-base / s)) / whole  # T2 > base - y
            rest = base - y
            mixed = (1 - mpmath.exp(-rest / s)) - mpmath.exp(-y / s) * (1 - mpmath.exp(-2 * rest / s)) / 2
            return sure + mixed / whole**2

        cuts = numbers(fine.cuts)
        for j in (0, 1, 1000, 4094, 4095):
            exact = min((2 * below(mpmath.mpf(j) + 0.5) - 1) * 2**127, 2**127 - 1)
            assert abs(exact - cuts[j]) <= mpmath.mpf("0.5000001")
        for level in coarser[1:]:
            ratio = mpmath.exp(-mpmath.mpf(level.factor) / s)
            height = (1 - ratio) / (1 - ratio**base)
            cuts, exact, power = numbers(level.cuts), mpmath.mpf(0), mpmath.mpf(1)
            end = ratio ** (2 * base)
            for j in range(base):  # sums of geometric numbers below the base, term by term
                term = height**2 * (power - end / power) / (1 - ratio**2)
                exact += term if j == 0 else 2 * term
                power *= ratio
                if j in (0, 1, 2500, 4095):
                    goal = min(exact * 2**127, 2**127 - 1)
                    assert abs(goal - cuts[j]) <= mpmath.mpf("0.5000001")
        ratio = mpmath.exp(-mpmath.mpf(coarser[0].factor) / s)
        for j in (0, 1, coarser[0].count - 1):
            goal = min((1 - 2 * ratio ** (j + 1) / (1 + ratio)) * 2**127, 2**127 - 1)
            assert abs(goal - numbers(coarser[0].cuts)[j]) <= mpmath.mpf("0.5000001")


@pytest.mark.parametrize(("scale", "base"), [(65.0, 8), (200.0, 16), (70.5, 2), (1000.0, 30), (500.0, 4096)])
def test_levels_add_up_to_rounded_laplace_noise(scale: float, base: int) -> None:
    """All levels convolved, against P(K = k) = the Laplace mass of (k - 1/2, k + 1/2)."""
    table = laplace_table(scale, base=base)
    assert len(table.levels) >= 2
    found = law(table)
    places = np.arange(min(len(found), int(20 * scale)))
    edges = np.concatenate([[-0.5], places + 0.5])
    assert found[: len(places)] == pytest.approx(np.diff(stats.laplace.cdf(edges, scale=scale)), rel=1e-9)


@pytest.mark.parametrize("scale", [3.3, 64.0, 900.0, 1e7, 2.0**35])
def test_draws_have_the_laplace_law_and_20_percent_off_is_noticed(scale: float) -> None:
    draws = draws_of(laplace_table(scale), 100_000)
    quantiles = np.linspace(0, 1, 41)[1:-1]

    def p_value(claimed: float) -> float:
        edges = np.unique(np.floor(stats.laplace.ppf(quantiles, scale=claimed))) + 0.5
        expected = np.diff(stats.laplace.cdf(np.concatenate([[-np.inf], edges, [np.inf]]), scale=claimed)) * len(draws)
        counts = np.bincount(np.searchsorted(edges, draws), minlength=len(expected))
        return float(stats.chisquare(counts, expected).pvalue)

    assert p_value(scale) > 1e-4
    assert p_value(0.8 * scale) < 1e-12
    assert p_value(1.2 * scale) < 1e-12
    assert abs(int((draws > 0).sum()) - int((draws < 0).sum())) < 5 * math.sqrt(len(draws))


@pytest.mark.parametrize("scale", [0, -1.0, math.nan, math.inf, 2 * LARGEST_SCALE])
def test_a_scale_without_a_table_is_refused(scale: float) -> None:
    with pytest.raises(CalibrationError, match=r"scale=|4\.5e\+15"):
        laplace_table(scale)
