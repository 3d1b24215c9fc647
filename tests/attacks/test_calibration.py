"""Attack: the noise is a little too small for the claim, or a stated sum of windows is."""

import itertools
import math

import mpmath as mp

import cloakwork as cw
from cloakwork.privacy import Profile, largest_mu
from tests.attacks.conftest import Attack

EPSILONS = (1.0, 0.1, 8.0, 1e-3, 1e-6, 0.5, 3.0, 30.0, 200.0, 700.0)
DELTAS = (1e-6, 1e-2, 1e-12, 0.3, 1e-30, 1e-100, 1e-250, 0.999, 1e-9)


def true_delta(epsilon: float, mu: object) -> mp.mpf:
    """Balle and Wang, Theorem 8, in the working precision."""
    exact, ratio = mp.mpf(epsilon), mp.mpf(mu)
    first, second = ratio / 2 - exact / ratio, -ratio / 2 - exact / ratio
    return mp.ncdf(first) - mp.exp(exact) * mp.ncdf(second)


def test_largest_mu_meets_delta(attack: Attack) -> None:
    """The delta of calibrated noise with 80 digits, at extreme (epsilon, delta).

    Claim: `largest_mu` is never above the mu at which delta(epsilon) equals delta, and `Profile.delta` and
    `Profile.epsilon` never state less than what is true of that mu.
    """
    some = attack.size(3, len(EPSILONS))
    with mp.workdps(80):
        for epsilon, delta in itertools.product(EPSILONS[:some], DELTAS[:some]):
            mu = largest_mu(epsilon, delta)
            attack.compare(float(true_delta(epsilon, mu) / mp.mpf(delta)), 1.0)
            profile = Profile(mu)
            for other in (epsilon / 2, 1.1 * epsilon):
                stated = profile.delta(other)
                attack.compare(float(true_delta(other, mu) / mp.mpf(stated)) if stated > 0 else 0.0, 1.0)
            attack.compare(float(true_delta(max(profile.epsilon(delta), 1e-300), mu) / mp.mpf(delta)), 1.0)


def test_windows_add_up_to_what_is_stated(attack: Attack) -> None:
    """The delta of k windows of k' frames together, with 80 digits.

    Claim: a cloak for k' frames meets (epsilon, delta) with all of them, and `profile.compose(k)` states an epsilon
    that k windows meet at delta; Gaussian releases add their squares of mu.
    """
    line = cw.HeatLine(n=20, m=5, T=0.05)
    epsilons, deltas = (1.0, 0.1, 4.0, 12.0), (1e-6, 1e-3, 1e-12, 1e-20)
    with mp.workdps(80):
        for epsilon, delta, frames in itertools.product(
            epsilons[: attack.size(1, 4)], deltas[: attack.size(2, 4)], (1, 3, 60, 86_400)
        ):
            cloak = cw.Cloak(line, epsilon=epsilon, delta=delta, alpha=0.01, readings_per_window=frames)
            window = mp.mpf(cloak.frame_mu) * mp.sqrt(frames)
            attack.compare(float(true_delta(epsilon, window) / mp.mpf(delta)), 1.0)
            for windows in (2, 24, 8_760):
                stated = cloak.profile.compose(windows).epsilon(delta)
                assert math.isfinite(stated)
                attack.compare(float(true_delta(stated, window * mp.sqrt(windows)) / mp.mpf(delta)), 1.0)
