"""How large a shift an (epsilon, delta) claim allows once the error of the noise tables is paid for."""

import math

import numpy as np

from cloakwork.errors import CalibrationError
from cloakwork.privacy.gaussian import Calibration, check_claim, largest_mu, paper_mu
from cloakwork.privacy.noise_table import DEVICE_TABLES


def allowed_mu(
    epsilon: float,
    delta: float,
    *,
    draws: int,
    error: float = DEVICE_TABLES.error,
    calibration: Calibration = Calibration.EXACT,
) -> float:
    """The largest mu that meets (epsilon, delta) with `draws` draws from noise tables, rounded down.

    Notes
    -----
    Each draw is off from its law by at most `error`, which costs (1 + e^epsilon) times as much of delta.
    """
    check_claim(epsilon, delta)
    log_loss = math.log(error * draws) + np.logaddexp(0.0, epsilon)
    left = delta - math.exp(min(float(log_loss), 0.0))
    if left <= 0:
        raise CalibrationError(
            f"epsilon={epsilon:g} with delta={delta:g}: the error of the noise table exceeds delta. "
            "Use a smaller epsilon or a larger delta.",
            epsilon=epsilon,
            delta=delta,
        )
    return largest_mu(epsilon, left) if calibration is Calibration.EXACT else paper_mu(epsilon, left)
