"""The noise floor before the hardware rounds: what is sent, exactly, against the Gaussian that the claim uses."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

import cloakwork as cw
from cloakwork._checks import FloatArray
from cloakwork.privacy.gaussian import Profile
from cloakwork.privacy.noise_floor import NoiseFloor, quantile_speed
from tests.options import grouped

EPSILONS = np.concatenate([-np.geomspace(1e-3, 8, 12), [0.0], np.geomspace(1e-3, 8, 12)])


def between(low: FloatArray, high: FloatArray) -> FloatArray:
    """P(low < N < high) of a standard normal N, precise in both tails."""
    flip = low > 0
    return np.asarray(special.ndtr(np.where(flip, -low, high)) - special.ndtr(np.where(flip, -high, low)))


def rounded(x: float, sd: float, at: NDArray[np.int64]) -> FloatArray:
    """The law of round(x + N(0, sd^2)) at whole numbers."""
    if not sd:
        return np.where(np.rint(x) == at, 1.0, 0.0)
    low, high = (np.asarray((at + half - x) / sd, dtype=np.float64) for half in (-0.5, 0.5))
    return between(low, high)


def sent(x: float, own: float, sigma: float, parts: int = 1) -> FloatArray:
    """The law of what is sent, in parts of a step of the hardware, which reads in steps of 1."""
    hardware = np.arange(-20, 22)
    noise = np.arange(-parts * math.ceil(12 * sigma), parts * math.ceil(12 * sigma) + 1)
    spread = np.zeros(parts * (len(hardware) - 1) + 1)
    spread[::parts] = rounded(x, own, hardware)
    return np.convolve(spread, rounded(0.0, parts * sigma, noise))


def delta(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def mu_of(shift: float, own: float, sigma: float) -> float:
    """The mu that is claimed for readings `shift` apart."""
    one = np.ones(1)
    return shift / float(NoiseFloor(own * one, one).charged(sigma * one, one).noise[0])


def gaussian(mu: float, epsilon: float) -> float:
    """The delta of a Gaussian mechanism at any epsilon, negative ones too."""
    if epsilon >= 0:
        return Profile(mu).delta(epsilon)
    return 1 - math.exp(epsilon) + math.exp(epsilon) * Profile(mu).delta(-epsilon)


@pytest.mark.parametrize(("own", "sigma"), [(0.25, 3.0), (0.4, 1.0), (0.5, 2.0), (0.64, 5.0), (1.0, 0.6), (2.0, 1.5)])
def test_the_exact_law_is_within_the_claim_at_every_offset(own: float, sigma: float) -> None:
    for shift in (0.003, 0.3, 1.0, 2.4):
        mu = mu_of(shift, own, sigma)
        claimed = [gaussian(mu, epsilon) for epsilon in EPSILONS]
        for offset in np.linspace(0, 1, 13):
            p, q = sent(offset, own, sigma, 4), sent(offset + shift, own, sigma, 4)
            for epsilon, allowed in zip(EPSILONS, claimed, strict=True):
                assert max(delta(p, q, epsilon), delta(q, p, epsilon)) <= allowed + 1e-13


@pytest.mark.parametrize(("own", "sigma"), [(0.4, 0.8), (0.75, 0.7), (0.75, 1.4)])
def test_a_mean_of_values_is_within_the_claim(own: float, sigma: float) -> None:
    shift, count = 0.6, 4
    mu = mu_of(shift, own, sigma)
    for offset in np.linspace(0, 1, 7):
        laws = []
        for x in (offset, offset + shift):
            total = one = rounded(x, own, np.arange(-12, 14))
            for _ in range(count - 1):
                total = np.convolve(total, one)
            noise = np.arange(-math.ceil(12 * count * sigma), math.ceil(12 * count * sigma) + 1)
            laws.append(np.convolve(total, rounded(0.0, count * sigma, noise)))  # in quarters of a step
        for epsilon in EPSILONS:
            assert (
                max(delta(laws[0], laws[1], epsilon), delta(laws[1], laws[0], epsilon)) <= gaussian(mu, epsilon) + 1e-13
            )


@pytest.mark.parametrize(("own", "shift", "ratio"), [(0.0, 0.05, 399), (0.25, 0.05, 2.5), (0.5, 0.05, 1.02)])
def test_the_worst_offset_has_the_divergence_of_other_sums(own: float, shift: float, ratio: float) -> None:
    """Twice the divergence over that of exact readings, at sigma = 5 steps: computed for the design, by other code."""
    worst = 0.0
    for offset in np.linspace(0, 1, 101):
        p, q = sent(offset, own, 5.0), sent(offset + shift, own, 5.0)
        kept = (p > 1e-300) & (q > 1e-300)
        worst = max(worst, 2 * float((p[kept] * np.log(p[kept] / q[kept])).sum()))
    assert worst / (shift**2 / (25 + own**2)) == pytest.approx(ratio, rel=0.01)
    if own:
        assert math.sqrt(worst) <= mu_of(shift, own, 5.0)


@pytest.mark.parametrize(("own", "variance"), [(0.25, 0.3), (0.5, 0.2), (0.5, 4.0), (0.64, 1.0), (1.0, 0.5)])
def test_quantiles_move_no_faster_than_the_bound(own: float, variance: float) -> None:
    """The speed of a quantile is the flow of probability over its density, here from sums over the steps."""
    steps, sd, z = np.arange(-30, 31), math.sqrt(variance), np.linspace(-10, 10, 401)
    worst = clipped = 0.0
    for x in np.linspace(-3, 3, 61):
        jumps = np.exp(-(((steps + 0.5 - x) / own) ** 2) / 2) / (own * math.sqrt(2 * math.pi))
        flow = jumps * between((z[:, None] - steps - 1) / sd, (z[:, None] - steps) / sd)
        bells = np.exp(-(((z[:, None] - steps) / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi))
        law = rounded(x, own, steps)
        density = bells @ law
        worst = max(worst, float((flow.sum(axis=1) / density)[density > 1e-250].max()))
        end = steps == 0  # a converter whose range ends at 0
        density = bells @ np.where(steps < 0, law, 0.0) + bells[:, end][:, 0] * special.ndtr((x + 0.5) / own)
        clipped = max(clipped, float((flow[:, steps < 0].sum(axis=1) / density)[density > 1e-250].max()))
    bound = quantile_speed(own, variance)
    assert worst <= bound <= 1 + 1.1 * (worst - 1)
    assert clipped <= bound


def test_the_bound_never_grows_with_more_noise() -> None:
    for variance in (0.2, 1.0, 30.0):
        speeds = [quantile_speed(own, variance) for own in (0.25, 0.3, 0.5, 0.8, 1.2)]
        assert all(a >= b for a, b in pairwise(speeds))
    speeds = [quantile_speed(0.5, variance) for variance in (0.1, 0.3, 1.0, 10.0, 1000.0)]
    assert all(a >= b for a, b in pairwise(speeds))
    assert quantile_speed(0.5, 1e4) == pytest.approx(1 + 2 * math.exp(-(math.pi**2) / 2), rel=1e-3)


def flat_line(**options: object) -> cw.Cloak:
    line = cw.HeatLine(n=50, m=20, T=0.05)
    return cw.Cloak(line, epsilon=1.0, delta=1e-6, alpha=0.01, **grouped({"resolution": 0.0625} | options))


@pytest.mark.parametrize("scope", ["network", "sensor"])
@pytest.mark.parametrize("design", ["equal", "least-error"])
def test_noise_floor_makes_the_step_cheaper_and_never_dearer(scope: str, design: str) -> None:
    sigmas = [
        float(
            np.log(flat_line(noise_floor=0.0625 * own, scope=scope, design=design, readings_per_window=9).sigmas).mean()
        )
        for own in (0.0, 0.1, 0.22, 0.3, 0.5, 0.64, 1.0, 3.0)
    ]
    assert all(a >= b - 1e-6 for a, b in pairwise(sigmas))
    today = flat_line(scope=scope, design=design, readings_per_window=9)
    assert sigmas[0] == pytest.approx(float(np.log(today.sigmas).mean()), abs=1e-6)
    for own in (0.5, 0.64, 1.0):
        cloak = flat_line(noise_floor=0.0625 * own, scope=scope, design=design, readings_per_window=9)
        assert cloak.rests_on_noise_floor
        assert cloak.resolution_cost < 0.03
        assert cloak.frame_mu <= cloak.allowance.mu


def test_noise_floor_never_replaces_noise_of_the_device() -> None:
    for own in (0.3, 30.0):
        noisy = flat_line(noise_floor=own)
        assert noisy.sigma >= noisy.sensitivity / noisy.allowance.mu
        assert (noisy.claimed_sigmas == noisy.sigmas).all()
        assert noisy.total_sigmas == pytest.approx(np.hypot(noisy.sigmas, own))


def test_each_sensor_may_have_hardware_of_its_own() -> None:
    own = np.where(np.arange(20) < 10, 0.04, 0.0)
    cloak = flat_line(noise_floor=own)
    assert flat_line(noise_floor=0.04).sigma < cloak.sigma < flat_line().sigma
    assert (cloak.steps[:10] < cloak.steps[10:]).all()
