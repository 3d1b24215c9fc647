"""The paper's mechanism, repaired: its scales, where it is not private, and what was wrong with it."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from cloakwork._checks import FloatArray
from cloakwork.series import Coefficients, SeriesCloak
from papers.paper_laplace import real_basis, repaired_delta
from tests.series.series_kit import CLAIM

H = np.array([1.0, 0.6, 0.3, 0.1, 0.0, 0.0, 0.05, 0.2])
X = np.array([[3.0, 0, 4, 1, 7, 0, 2, 5], [3.0, 1, 4, 1, 7, 0, 2, 5]])


def shifts_by_hand(h: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """R_ij / sqrt(gamma / |h^_i|), by the paper's formulas, with the basis by its definition."""
    n = len(h)
    times = np.arange(n)
    sizes = np.abs(np.fft.fft(h)) / math.sqrt(n)
    gamma = 2 * math.log(1 / delta) * sizes.sum() / (epsilon**2 * n)
    rows: list[FloatArray] = [np.full(n, math.sqrt(sizes[0] / gamma / n))]
    for k in range(1, (n + 1) // 2):
        root = math.sqrt(2 / n * sizes[k] / gamma)
        rows += [root * np.cos(2 * np.pi * k * times / n), root * np.sin(2 * np.pi * k * times / n)]
    if n % 2 == 0:
        rows.append(np.asarray((-1.0) ** times * math.sqrt(sizes[n // 2] / gamma / n)))
    return np.asarray(np.abs(rows))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 15])
def test_the_basis_is_orthonormal_and_that_of_fourier(n: int) -> None:
    basis, frequencies = real_basis(n)
    assert basis @ basis.T == pytest.approx(np.eye(n), abs=1e-14)
    for row, frequency in zip(basis, frequencies, strict=True):
        spectrum = np.abs(np.fft.fft(row)) ** 2
        assert spectrum[[frequency, -frequency]].sum() / (1 + (2 * frequency % n == 0)) == pytest.approx(n)


@pytest.mark.parametrize(("n", "times"), [(64, 1.9), (256, 3.3)])
def test_at_a_large_epsilon_the_papers_noise_is_not_private(n: int, times: float) -> None:
    """Delta is twice to three times the claim for x itself (h = 1); dp-accounting, which knows no Fourier, agrees."""
    found = repaired_delta(Coefficients([1.0]), n, 10.0, 0.01, circular=True)
    assert found / 0.01 == pytest.approx(times, abs=0.1)
    if n == 64:
        worst = 0.0
        for column in shifts_by_hand(np.eye(n)[0], 10.0, 0.01).T[: n // 2 + 1 : 8]:
            total = pld.identity(value_discretization_interval=2e-3)
            for shift in column[column > 1e-6]:
                total = total.compose(pld.from_laplace_mechanism(1 / shift, value_discretization_interval=2e-3))
            worst = max(worst, total.get_delta_for_epsilon(10.0))
        assert 0.01 < worst <= found
        assert found / worst < 1.05


def test_an_average_of_8_over_256_values_has_the_delta_that_the_pages_state() -> None:
    found = repaired_delta(Coefficients(np.ones(8) / 8), 256, 10.0, 0.01, circular=True)
    assert found == pytest.approx(0.027, abs=5e-4)


def printed(x: FloatArray, h: FloatArray, epsilon: float, delta: float, rng: np.random.Generator) -> FloatArray:
    """Algorithm 1 as it is printed, with F h for the misprinted F x: Laplace noise on complex coefficients."""
    n = len(x)
    spectrum = np.fft.fft(h) / math.sqrt(n)
    gamma = 2 * math.log(1 / delta) * np.abs(spectrum).sum() / (epsilon**2 * n)
    noisy = np.fft.fft(x) / math.sqrt(n) + rng.laplace(scale=np.sqrt(gamma / np.abs(spectrum)))
    return np.asarray(np.fft.ifft(math.sqrt(n) * spectrum * noisy) * math.sqrt(n))


def imaginary_parts(outputs: FloatArray, h: FloatArray) -> FloatArray:
    """Those of the noisy coefficients of x, from what is published."""
    return np.asarray((np.fft.fft(outputs) / np.fft.fft(h)).imag)


def test_the_printed_algorithm_gives_imaginary_parts_away(rng: np.random.Generator) -> None:
    parts = np.fft.fft(X, axis=1).imag
    assert np.abs(parts[0] - parts[1]).max() > 0.5
    for _ in range(100):
        for database in (0, 1):
            seen = imaginary_parts(printed(X[database], H, 1.0, 1e-6, rng), H)
            assert seen == pytest.approx(parts[database], abs=1e-9)  # and so neighbours are told apart with certainty


def test_ours_give_nothing_of_them_away() -> None:
    """The same attack, on 20,000 releases of either neighbour, is right in about every other case."""
    size = 20_000
    cloak = SeriesCloak(Coefficients(H), 8, **CLAIM, series=size, circular=True)
    parts = np.fft.fft(X, axis=1).imag
    right = 0
    for database in (0, 1):
        values = cloak.simulate(np.tile(X[database], (size, 1)), rng=np.random.default_rng(database)).values
        assert values.dtype == np.float64
        seen = imaginary_parts(values, H)
        guessed = np.linalg.norm(seen - parts[1], axis=1) < np.linalg.norm(seen - parts[0], axis=1)
        right += int((guessed == database).sum())
    assert 0.49 < right / (2 * size) <= 0.5 + cloak.noise.delta(0.0) / 2 + 0.01
