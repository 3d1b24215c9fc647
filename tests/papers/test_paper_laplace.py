"""The paper's mechanism, repaired: its scales, where it is not private, and what was wrong with it."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from cloakwork._checks import FloatArray
from cloakwork.series import Coefficients
from papers.paper_laplace import real_basis, repaired_delta


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
