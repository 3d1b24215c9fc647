"""The exact privacy of Laplace noise, against closed forms, integrals by mpmath, and dp-accounting."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.laplace_losses import laplace_delta, quick_delta


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
