"""Sums of claims: against closed forms, brute force over all outcomes, and dp-accounting."""

import itertools
import math

import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

import cloakwork as cw
from cloakwork.errors import CalibrationError

LINE = cw.HeatLine(n=20, m=5, T=0.01)
CLOAK = cw.Cloak(LINE, epsilon=1.0, delta=1e-6, alpha=0.05, readings_per_window=4)
FLIP = cw.Flip(epsilon=2.0, delta=1e-5, readings_per_window=60)


def truth(each: float) -> float:
    return 1 / (1 + math.exp(-each))


def test_parts_alone_have_their_own_claim() -> None:
    assert cw.Budget().cloak(CLOAK, windows=24).epsilon(1e-6) == pytest.approx(
        CLOAK.profile.compose(24).epsilon(1e-6), rel=1e-6
    )
    assert cw.Budget().flip(FLIP).epsilon(1e-5) == pytest.approx(2.0, rel=1e-6)
    assert cw.Budget().choice(0.5, times=3).epsilon(0.0) == pytest.approx(1.5)
    assert cw.Budget().claim(1.0, 1e-6).delta(1.0) == pytest.approx(1e-6, rel=1e-6)
    assert cw.Budget().delta(0.0) == 0.0


def test_releases_with_gaussian_noise_add_up_exactly() -> None:
    mu = cw.SeriesCloak(cw.RunningSum(), 64, epsilon=1.0, delta=1e-6).noise.mu
    three = cw.Budget().gaussian(mu, times=3)
    assert three.epsilon(1e-6) == pytest.approx(cw.Profile(math.sqrt(3) * mu).epsilon(1e-6), rel=1e-6)
    assert cw.Budget().gaussian(mu).epsilon(1e-6) == pytest.approx(1.0, rel=1e-6)
    claimed = cw.Budget().claim(1.0, 1e-6, times=3).cloak(CLOAK)
    assert three.cloak(CLOAK).epsilon(1e-5) < claimed.epsilon(1e-5)


def test_unequal_bits_are_never_below_brute_force_and_hardly_above() -> None:
    each = [0.3, 0.3, 0.7, 1.1]
    budget = cw.Budget().choice(0.3, times=2).choice(0.7).choice(1.1)
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        exact = 0.0
        for signs in itertools.product((1, -1), repeat=4):
            chance = math.prod(truth(sign * one) for sign, one in zip(signs, each, strict=True))
            loss = sum(sign * one for sign, one in zip(signs, each, strict=True))
            exact += chance * max(0.0, 1 - math.exp(epsilon - loss))
        assert exact <= budget.delta(epsilon) <= exact + 1e-3


def test_a_day_of_everything_agrees_with_dp_accounting() -> None:
    budget = cw.Budget().cloak(CLOAK, windows=6).flip(FLIP, windows=6).choice(0.5, times=3)
    gaussian = pld.from_gaussian_mechanism(1 / CLOAK.profile.mu, value_discretization_interval=1e-3)
    bit = pld.from_randomized_response(2 * (1 - truth(FLIP.epsilon_per_reading)), 2, value_discretization_interval=1e-4)
    choice = pld.from_randomized_response(2 * (1 - truth(0.5)), 2, value_discretization_interval=1e-3)
    bits = bit.self_compose(360)
    theirs = gaussian.self_compose(6)
    assert theirs.get_epsilon_for_delta(1e-5) == pytest.approx(
        cw.Budget().cloak(CLOAK, windows=6).epsilon(1e-5), rel=2e-2
    )
    assert bits.get_epsilon_for_delta(1e-5) == pytest.approx(cw.Budget().flip(FLIP, windows=6).epsilon(1e-5), rel=2e-2)
    fine = pld.from_randomized_response(
        2 * (1 - truth(FLIP.epsilon_per_reading)), 2, value_discretization_interval=1e-3
    )
    together = theirs.compose(fine.self_compose(360)).compose(choice.self_compose(3))
    ours = budget.epsilon(1e-5)
    assert ours <= together.get_epsilon_for_delta(1e-5) <= 1.1 * ours, "theirs rounds each of 360 losses up"
    assert ours > max(cw.Budget().flip(FLIP, windows=6).epsilon(1e-5), 2.0)


def test_more_of_it_never_costs_less_and_is_said() -> None:
    day = cw.Budget().cloak(CLOAK, windows=2).flip(FLIP)
    assert day.epsilon(1e-5) < day.compose(7).epsilon(1e-5) < day.compose(365).epsilon(1e-5)
    assert "365" in day.explain(1e-5)


def test_millions_of_reports_approach_the_gaussian_limit_from_above() -> None:
    many = cw.Budget().choice(0.001, times=4_000_000)
    limit = cw.Profile(2.0).epsilon(1e-6)
    assert limit * (1 - 1e-6) <= many.epsilon(1e-6) <= limit * 1.001
    both = many.cloak(CLOAK, readings=4)
    assert both.epsilon(1e-6) == pytest.approx(cw.Profile(math.hypot(2.0, CLOAK.profile.mu)).epsilon(1e-6), rel=2e-3)


def test_tiny_deltas_are_not_lost_in_rounding() -> None:
    assert cw.Budget().claim(0.001, 1e-17, times=100_000).delta(200.0) == pytest.approx(1e-12, rel=1e-6)
    gaussian = cw.Budget().cloak(CLOAK)
    for delta in (1e-15, 1e-30):
        assert gaussian.epsilon(delta) >= CLOAK.profile.epsilon(delta) * (1 - 1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: cw.Budget().cloak(CLOAK).epsilon(0.0),
        lambda: cw.Budget().claim(1.0, 1e-3).epsilon(1e-6),
        lambda: cw.Budget().claim(1.0, 1e-17).epsilon(0.0),
        lambda: cw.Budget().claim(1.0, 1.5),
        lambda: cw.Budget().choice(-1.0),
        lambda: cw.Budget().delta(-1.0),
        lambda: cw.Budget().flip(FLIP).compose(10**11),
    ],
)
def test_what_cannot_be_added_is_refused(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(CalibrationError):
        wrong()
