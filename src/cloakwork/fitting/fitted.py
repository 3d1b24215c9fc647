"""Fitted parameters with their confidence, and the tolerance that covers them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, rounded_up
from cloakwork.physics import Family, FloorPlan, Steady, Tolerance
from cloakwork.site import Site

LEVEL = 0.9  # of the intervals that people read
COVERED = 0.95  # probability with which all parameters are within the tolerance together
WIDEST = 0.25  # relative half width of an interval above which the data cannot tell


def deviations(level: float, parameters: int = 1) -> float:
    """Standard deviations within which so many normal variables lie together with probability `level`, or more."""
    return float(special.ndtri(1 - (1 - level) / 2 / parameters))


@dataclass(frozen=True)
class Fitted:
    """An estimate; the interval from `low` to `high` holds the truth with probability 0.9.

    `least` to `most` is wider: all parameters of a fit are within theirs together with probability 0.95.
    """

    value: float
    low: float
    high: float
    least: float
    most: float

    @classmethod
    def of_log(cls, log: float, error: float, parameters: int) -> "Fitted":
        """From the logarithm of the parameter and its standard error."""
        near, far = deviations(LEVEL) * error, deviations(COVERED, parameters) * error
        return cls(*(math.exp(log + shift) for shift in (0.0, -near, near, -far, far)))

    @classmethod
    def of_square(cls, square: float, error: float, parameters: int) -> "Fitted":
        """From the square of the parameter and its standard error."""
        near, far = deviations(LEVEL) * error, deviations(COVERED, parameters) * error
        return cls(*(math.sqrt(max(square + shift, 0.0)) for shift in (0.0, -near, near, -far, far)))

    @property
    def told(self) -> bool:
        """Whether the data tell the parameter at all."""
        return self.high - self.low <= 2 * WIDEST * self.value

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.3g} to {self.high:.3g})"


def rounded(value: float) -> float:
    """The value as it is written into a site file, to four digits."""
    return float(f"{value:.4g}")


def covering(
    site: Site, *, reach: Fitted, gains: Sequence[float], footprint: Fitted | None, strength: float
) -> Tolerance:
    """The tolerance of a site with the fitted values that covers all models within the confidence region.

    `gains` are the largest and smallest gains of any sensor in the region, relative to the written `strength`.

    Notes
    -----
    A tolerance has no entry for the footprint. So the slope of the readings at both ends of its interval is compared
    with that at its estimate, in units of the noise that the site would have, and the gain covers the excess.
    """
    stated = rounded(reach.value)
    diffusion = max((reach.most / stated) ** 2 - 1, 1 - (reach.least / stated) ** 2)
    gain = max(abs(factor - 1) for factor in gains)
    tolerance = replace(site.tolerance, diffusion=min(diffusion, 0.99), gain=gain)
    if footprint is not None and isinstance(site.physics, FloorPlan):
        plan = replace(site.physics, regime=Steady(stated), gain=strength, footprint=rounded(footprint.value))
        ends = [replace(plan, footprint=end) for end in (footprint.least, footprint.most)]
        noise = site.cloak().sigmas
        at, *around = (_slope(site, model, tolerance, noise) for model in (plan, *ends))
        gain = (1 + gain) * max(1.0, *(slope / at for slope in around)) - 1
    return replace(tolerance, diffusion=_upwards(tolerance.diffusion), gain=_upwards(gain))


def _slope(site: Site, model: FloorPlan, tolerance: Tolerance, noise: FloatArray) -> float:
    return Family(model, tolerance, site.timing).frame_slope(1 / noise)


def _upwards(value: float) -> float:
    return float(rounded_up(float(np.nextafter(value, np.inf)), 3))
