"""Fitted parameters with their confidence, and the tolerance that covers them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import special

from cloakwork._checks import rounded_up
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan, Tolerance
from cloakwork.site import Site

CONFIDENCE = 0.9  # of the intervals that people read
COVERED = 0.95  # probability with which all parameters are within the tolerance together
ROUNDS = 20  # of raising the gain until the noise is enough
WIDEST = 0.25  # relative half width of an interval above which the data cannot tell


def deviations(level: float, parameters: int = 1, freedom: float = math.inf) -> float:
    """Standard deviations within which so many normal variables lie together with probability `level`, or more.

    The standard deviations are themselves estimated with so many degrees of `freedom` (Student, 1908).
    """
    return float(special.stdtrit(freedom, 1 - (1 - level) / 2 / parameters))


@dataclass(frozen=True)
class Fitted:
    """An estimate; the interval from `low` to `high` holds the truth with probability 0.9.

    `min` to `max` is wider: all parameters of a fit are within theirs together with probability 0.95.
    """

    value: float
    low: float
    high: float
    min: float
    max: float

    @classmethod
    def of(
        cls,
        estimate: float,
        error: float,
        parameters: int,
        freedom: float = math.inf,
        *,
        back: Callable[[float], float] = float,
    ) -> "Fitted":
        """From an estimate and its standard error; `back` leads from it to the parameter, as `math.exp` from a log."""
        near, far = deviations(CONFIDENCE, 1, freedom) * error, deviations(COVERED, parameters, freedom) * error
        return cls(*(back(estimate + shift) for shift in (0.0, -near, near, -far, far)))

    @property
    def known(self) -> bool:
        """Whether the interval is narrow enough to use."""
        return self.high - self.low <= 2 * WIDEST * self.value

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.3g} to {self.high:.3g})"


def rounded(value: float) -> float:
    """The value as it is written into a site file, to four digits."""
    return float(f"{value:.4g}")


def written_strength(site: Site, found: Fitted) -> float:
    """The strength of the site with the fitted values: the fitted one, or the most of a range that holds it."""
    stated = site.spec.sources.strength
    if not isinstance(stated, tuple):
        return rounded(found.value)
    if found.value > stated[1]:
        raise InputError(
            f"the fitted strength is {found}, and the site states {stated[0]:g} to {stated[1]:g}: the claim would not "
            f"hide this source. State strength = [{stated[0]:g}, {rounded(found.max):g}] or more under [sources].",
            strength=found,
            stated=stated,
        )
    return stated[1]


def covering(site: Site, *, reach: Fitted, gains: Sequence[float], footprint: Fitted, strength: float) -> Tolerance:
    """The tolerance of a site with the fitted values that covers the confidence region; never less than the stated one.

    `gains` are the largest and smallest gains of any sensor in the region, relative to the written `strength`.

    Notes
    -----
    A tolerance has no entry for the footprint. So the noise of the site as it would be written is held against the
    models with the footprint at both ends of its interval, with all reaches and gains of the region, in the scope of
    the claim; the gain grows until this noise is enough for them.
    """
    stated, declared = rounded(reach.value), site.tolerance
    diffusion = max((reach.max / stated) ** 2 - 1, 1 - (reach.min / stated) ** 2)
    if not _upwards(diffusion) < 1:
        raise InputError(
            f"the readings leave the reach open from {reach.min:.3g} to {reach.max:.3g} m, which is more than a "
            "tolerance can cover. Read longer, or walk at more spots, some near each sensor and some far from it.",
            reach=reach,
        )
    region = replace(
        declared, diffusion=max(declared.diffusion, _upwards(diffusion)), gain=max(abs(factor - 1) for factor in gains)
    )
    tolerance = replace(region, gain=max(declared.gain, _upwards(region.gain)))
    spec, changes = site.spec, dict[str, Any]()
    if not isinstance(spec.sources.strength, tuple):
        changes["sources"] = spec.sources.model_copy(update={"strength": strength})
    for _ in range(ROUNDS):
        errors = spec.physics.tolerance.model_copy(update={"diffusion": tolerance.diffusion, "gain": tolerance.gain})
        physics = {"reach": stated, "footprint": rounded(footprint.value), "tolerance": errors}
        changes["physics"] = spec.physics.model_copy(update=physics)
        excess = _excess(site, changes, region, footprint)
        if excess <= 1:
            return tolerance
        tolerance = replace(tolerance, gain=_upwards((1 + tolerance.gain) * excess - 1))
    raise InputError(
        f"the readings leave the footprint open from {footprint.min:.3g} to {footprint.max:.3g} m, which no "
        "tolerance covers. Stand at more spots near sensors, or longer.",
        footprint=footprint,
    )


def _excess(site: Site, changes: dict[str, Any], region: Tolerance, footprint: Fitted) -> float:
    """Return the mu of a frame over that of the claim, for the changed site with any model in the region.

    The footprint is taken at its ends and its estimate.
    """
    cloak, worst = replace(site, spec=site.spec.model_copy(update=changes)).cloak(), 0.0
    errors = replace(cloak.family.tolerance, diffusion=region.diffusion, gain=region.gain)
    for side in (footprint.min, rounded(footprint.value), footprint.max):
        physics = replace(cast(FloorPlan, cloak.physics), footprint=side)
        family = replace(cloak.family, physics=physics, tolerance=errors)
        worst = max(worst, replace(cloak.allowance, family=family).frame_mu(cloak.sigmas))
    return worst / cloak.frame_mu


def _upwards(value: float) -> float:
    return float(rounded_up(float(np.nextafter(value, np.inf)), 3))
