"""The privacy of Laplace noise on the readings of one sensor."""

import math
from dataclasses import dataclass, replace

from cloakwork._checks import not_negative
from cloakwork.errors import CalibrationError
from cloakwork.privacy.gaussian import checked_delta, turning_point
from cloakwork.privacy.losses import laplace_losses

_ULP = 2.0**-52


@dataclass(frozen=True)
class LaplaceProfile:
    """All (epsilon, delta) of readings with Laplace noise, each of which moves by up to `shift` scales of the noise.

    >>> LaplaceProfile(0.5).compose(4).epsilon(0.0)
    2.0
    """

    shift: float
    readings: int = 1

    def delta(self, epsilon: float) -> float:
        """Return the least delta at `epsilon` (0 or above), rounded up; for several readings by about 1 %."""
        not_negative("epsilon", epsilon, error=CalibrationError)
        if self.readings == 1:
            return min(1.0, max(0.0, -math.expm1((epsilon - self.shift) / 2)) * (1 + 4 * _ULP))
        return laplace_losses(self.shift, self.readings).delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at `delta`, rounded up; the sum of all shifts at a delta of 0."""
        if checked_delta(delta) == 0:
            return self.readings * self.shift
        if self.readings == 1:
            return max(0.0, self.shift + 2 * math.log1p(-delta)) * (1 + 4 * _ULP) + 4 * _ULP * self.shift
        return laplace_losses(self.shift, self.readings).epsilon(delta)

    def compose(self, k: int) -> "LaplaceProfile":
        """Return the profile of `k` times as many readings."""
        return replace(self, readings=k * self.readings)

    @property
    def mu(self) -> float:
        """How far all readings move together, in standard deviations of their noise: for accuracy, not for privacy."""
        return self.shift * math.sqrt(self.readings / 2)

    @property
    def best_test_accuracy(self) -> float:
        """How often the best test between two neighbours is right, at most."""
        return (1 + self.delta(0.0)) / 2


def largest_shift(epsilon: float, delta: float, *, readings: int) -> float:
    """Return the largest shift of each of so many readings, in scales of Laplace noise, that meets (epsilon, delta).

    It is rounded down. At a delta of 0 it is epsilon / readings.

    >>> round(largest_shift(1.0, 0.1, readings=1), 4), round(20 * largest_shift(1.0, 1e-6, readings=20), 3)
    (1.2107, 1.151)
    """
    low = epsilon / readings * (1 - 2 * _ULP)
    if delta <= 0:
        return low
    if readings == 1:
        return (epsilon - 2 * math.log1p(-delta)) * (1 - 4 * _ULP)
    met = (low, epsilon)
    return turning_point(lambda shift: LaplaceProfile(shift, readings).delta(epsilon) <= delta, *met, within=1e-9)[0]
