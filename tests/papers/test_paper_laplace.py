"""The paper's mechanism, repaired: its scales, where it is not private, and what was wrong with it."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork._checks import FloatArray
from cloakwork.series import Coefficients
from papers.paper_laplace import laplace_delta, quick_delta, real_basis, repaired_delta


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


def closed(a: float, epsilon: float) -> float:
    """Delta of one number that moves by a scales."""
    return -math.expm1((epsilon - a) / 2) if epsilon < a else 0.0


@settings(max_examples=80, deadline=None)
@given(a=st.floats(1e-4, 60), share=st.floats(0, 1.2))
def test_one_number_has_the_closed_form_rounded_up(a: float, share: float) -> None:
    exact = closed(a, share * a)
    assert exact <= laplace_delta(np.array([a]), share * a) <= min(1.0, exact * 1.02 + 1e-9)
    assert exact <= quick_delta(np.array([a]), share * a)


@pytest.mark.parametrize(
    ("shifts", "epsilon"),
    [((1.0, 1.0), 1.0), ((2.0, 0.5), 0.3), ((0.3, 0.2), 0.4), ((4.0, 4.0), 7.5), ((1.0, 3.0), 0.0)],
)
def test_two_numbers_have_the_integral_over_the_plane(shifts: tuple[float, float], epsilon: float) -> None:
    """delta = E over the first number of the closed form for the second, at what is left of epsilon; by mpmath."""
    a, b = (mpmath.mpf(shift) for shift in shifts)

    def second(left: mpmath.mpf) -> mpmath.mpf:
        if left >= b:
            return mpmath.mpf(0)
        if left <= -b:
            return 1 - mpmath.exp(left)
        return 1 - mpmath.exp((left - b) / 2)

    def within(loss: mpmath.mpf) -> mpmath.mpf:
        return mpmath.exp(-(a - loss) / 2) / 4 * second(epsilon - loss)

    kinks = sorted({-a, *(edge for edge in (epsilon - b, epsilon + b) if -a < edge < a), a})
    exact = second(epsilon - a) / 2 + mpmath.exp(-a) / 2 * second(epsilon + a) + mpmath.quad(within, kinks)
    found = laplace_delta(np.array(shifts), epsilon)
    assert exact <= found <= exact * 1.02


@pytest.mark.parametrize("n", [3, 12, 40])
@pytest.mark.parametrize("claim", [(10.0, 0.01), (2.0, 1e-3), (1.0, 1e-6)])
def test_many_numbers_agree_with_dp_accounting(n: int, claim: tuple[float, float]) -> None:
    """Whose upper estimate is within its own grid of ours, and whose lower one is below."""
    epsilon, delta = claim
    rng = np.random.default_rng(n)
    shifts = np.abs(rng.normal(size=n))
    shifts *= 1.7 * epsilon / math.sqrt(2 * math.log(1 / delta)) / np.linalg.norm(shifts)
    ends = []
    for pessimistic in (True, False):
        total = pld.identity(value_discretization_interval=1e-4 * epsilon, pessimistic_estimate=pessimistic)
        for shift in shifts:
            total = total.compose(
                pld.from_laplace_mechanism(
                    1 / shift, value_discretization_interval=1e-4 * epsilon, pessimistic_estimate=pessimistic
                )
            )
        ends.append(total.get_delta_for_epsilon(epsilon))
    found = laplace_delta(shifts, epsilon)
    assert ends[1] <= found <= ends[0] * 1.02 + 1e-12


def test_losses_that_never_exceed_epsilon_have_delta_zero() -> None:
    assert laplace_delta(np.array([0.5, 0.5]), 1.0 + 1e-9) == 0.0
    assert laplace_delta(np.array([0.5, 0.5]), 0.999) > 0


def test_a_bound_that_no_float_holds_is_1() -> None:
    assert quick_delta(np.full(5, 400.0), 0.0) == 1.0
    assert laplace_delta(np.full(5, 400.0), 700.0) == 1.0
