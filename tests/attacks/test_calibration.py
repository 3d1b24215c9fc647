"""Attack: the noise is a little too small for the claim."""

import mpmath as mp

import cloakwork as cw
from tests.attacks.conftest import Attack


def test_calibrated_noise_meets_delta(attack: Attack) -> None:
    """The delta of the calibrated noise, computed with 50 digits.

    Claim: the smallest sigma that `Cloak` picks gives at most the claimed delta for epsilon.
    """
    line = cw.HeatLine(n=40, m=20, T=0.05)
    with mp.workdps(50):
        for epsilon in (0.1, 1.0, 4.0, 8.0)[: attack.size(2, 4)]:
            for delta in (1e-3, 1e-6, 1e-9):
                mu = mp.mpf(cw.Cloak(line, epsilon=epsilon, delta=delta, alpha=0.01).frame_mu)
                true = mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
                attack.compare(float(true), delta)
