"""Calibration against published values, mpmath and dp-accounting."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import privacy_loss_distribution as pld

from cloakwork.errors import CalibrationError
from cloakwork.privacy import Profile, largest_mu

CHECKS = {(1, 0.1): 1.085878, (4, 0.1): 0.485541, (10, 0.01): 0.350097, (1, 1e-6): 4.224679, (0.1, 1e-8): 45.93737}


def exact_delta(epsilon: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize(("claim", "printed"), CHECKS.items())
def test_exact_sigma_has_the_published_value_rounded_up(claim: tuple[float, float], printed: float) -> None:
    sigma = 1 / largest_mu(*claim)
    assert sigma <= printed
    assert sigma == pytest.approx(printed, rel=3e-6)


def test_composition_agrees_with_dp_accounting() -> None:
    event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(4.224679), 24)
    theirs = pld.from_gaussian_mechanism(4.224679, value_discretization_interval=1e-3).self_compose(24)
    assert event.count == 24
    ours = Profile(1 / 4.224679).compose(24).epsilon(1e-6)
    assert ours == pytest.approx(theirs.get_epsilon_for_delta(1e-6), rel=2e-3)


def test_epsilon_and_delta_are_inverse_to_each_other() -> None:
    profile = Profile(0.7)
    for delta in (1e-9, 1e-5, 1e-2):
        assert profile.delta(profile.epsilon(delta)) == pytest.approx(delta, rel=1e-6)
    assert profile.epsilon(0.9) == 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epsilon", value) for value in (0, -1, math.nan, math.inf, True)),
        *(("delta", value) for value in (0, 1, -1e-9, math.nan, "x")),
    ],
)
def test_a_meaningless_claim_is_refused(name: str, value: Any) -> None:
    with pytest.raises(CalibrationError) as refused:
        largest_mu(**{"epsilon": 1.0, "delta": 0.1, name: value})
    assert refused.value.values == {name: value}


def test_a_discrete_gaussian_of_the_same_sigma_would_not_meet_delta() -> None:
    # why the noise is a rounded Gaussian and not a discrete one: sensitivity of one step, (1, 0.1)
    sigma = 1 / largest_mu(1, 0.1)
    k = np.arange(-60, 61)
    discrete = np.exp(-(k**2) / (2 * sigma**2))
    discrete /= discrete.sum()
    moved = np.roll(discrete, 1)
    delta = np.maximum(discrete - math.e * moved, 0).sum()
    assert delta / 0.1 == pytest.approx(1.10, abs=0.01)
