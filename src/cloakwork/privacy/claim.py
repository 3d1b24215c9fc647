"""The claim: what is hidden, from whom, and how far one frame may therefore shift."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from cloakwork._checks import FloatArray, count, member_of, positive
from cloakwork.errors import CalibrationError
from cloakwork.privacy.gaussian import check_claim, largest_mu
from cloakwork.privacy.noise_table import DEVICE_TABLES


class Scope(StrEnum):
    """Against whom a source is hidden."""

    NETWORK = "network"
    """Someone who sees the readings of all sensors."""
    SENSOR = "sensor"
    """Someone who sees the readings of one sensor only."""


@dataclass(frozen=True)
class Claim:
    """A unit source may move by up to `alpha`, and `readings` frames together stay (epsilon, delta)-indistinguishable.

    >>> round(Claim(epsilon=1.0, delta=1e-6, alpha=0.01).frame_mu(sensors=50), 4)
    0.2367
    """

    epsilon: float
    delta: float
    alpha: float
    readings: int = 1
    scope: Scope = Scope.NETWORK

    def __post_init__(self) -> None:
        check_claim(self.epsilon, self.delta, pure=True)
        positive("alpha", self.alpha, error=CalibrationError)
        count("readings_per_window", self.readings, error=CalibrationError)
        object.__setattr__(self, "scope", member_of("scope", self.scope, Scope, error=CalibrationError))

    def frame_mu(self, sensors: int, *, doubt: float = 0.0) -> float:
        """Return how far one frame may shift, in standard deviations of Gaussian noise; rounded down.

        `doubt` is the probability that the sensitivity is understated. k frames compose to mu sqrt(k).
        """
        draws = self.readings * self.seen(sensors)
        return allowed_mu(self.epsilon, self.delta, draws=draws, doubt=doubt) / math.sqrt(self.readings)

    def seen(self, sensors: int) -> int:
        """Return of how many of the sensors one observer has the readings."""
        return sensors if self.scope is Scope.NETWORK else 1

    def joint(self, shifts: FloatArray) -> float:
        """Return how far the shifts of the sensors (m,) move what one observer sees, in any direction."""
        return math.sqrt(float((shifts**2).sum())) if self.scope is Scope.NETWORK else float(shifts.max())


def allowed_mu(
    epsilon: float, delta: float, *, draws: int, error: float = DEVICE_TABLES.error, doubt: float = 0.0
) -> float:
    """Return the largest mu that meets (epsilon, delta) with `draws` draws from noise tables, rounded down.

    Notes
    -----
    Each draw deviates from its distribution by at most `error`, which takes (1 + e^epsilon) times as much off delta.
    The `doubt`, a probability that the sensitivity is understated, takes itself off delta.
    """
    check_claim(epsilon, delta)
    log_loss = math.log(error * draws) + np.logaddexp(0.0, epsilon)
    left = delta - math.exp(min(float(log_loss), 0.0)) - doubt
    if left <= 0:
        source = "noise table" if doubt < delta else f"sketch of the network, {doubt:g},"
        raise CalibrationError(
            f"epsilon={epsilon:g} with delta={delta:g}: the error of the {source} exceeds delta. "
            "Use a smaller epsilon or a larger delta.",
            epsilon=epsilon,
            delta=delta,
        )
    return largest_mu(epsilon, left)
