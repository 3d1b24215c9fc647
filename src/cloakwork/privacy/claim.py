"""The claim: what is hidden, from whom, how far one frame may therefore shift, and what the claim assumes."""

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, count, instance_of, member_of, positive
from cloakwork.errors import CalibrationError
from cloakwork.physics import AT_ONCE, Drift, Family, Nuisance, Physics, Timing, Tolerance
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


@dataclass(frozen=True, eq=False)
class Assumptions:
    """What a cloak assumes.

    Parameters
    ----------
    tolerance
        How wrong the model may be; the claim then holds over the whole declared set.
    timing
        How far apart in time the sensors of a frame measure and how fast sources move, for scope `network`. By default
        all sensors measure at the same instant.
    drift
        How readings wander without any source, or what is unknown of it where a tracker learns it (`Nuisance.learnt`):
        `least-error` locates sources best in spite of it, at the same claim.
    map_error
        How far readings stray from the model beyond their noise: a standard deviation in the unit of the readings, one
        number or one per sensor. Recovery counts it as noise; the guarantee and the noise do not depend on it.

    >>> Assumptions(tolerance=Tolerance(gain=0.05)).tolerance.gain
    0.05
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    timing: Timing = AT_ONCE
    drift: Drift | Nuisance | None = None
    map_error: ArrayLike = 0.0

    def __post_init__(self) -> None:
        instance_of("tolerance", self.tolerance, Tolerance, "an object such as Tolerance(gain=0.05)")
        instance_of("timing", self.timing, Timing, "an object such as Timing(spread=0.3, speed=1.5)")
        if not isinstance(self.drift, Drift | Nuisance | None):
            raise CalibrationError(f"drift={self.drift!r}: give an object such as Drift(room=1.0).", drift=self.drift)

    def family(self, physics: Physics, readings: int) -> Family:
        """Return the models that the guarantee covers.

        Several frames may see one pulse at different times after its emission, so they cover all later times.
        """
        later = self.tolerance.later or (physics.pulse and readings > 1)
        return Family(physics, replace(self.tolerance, later=later), self.timing)
