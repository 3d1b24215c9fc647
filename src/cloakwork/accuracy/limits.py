"""The limits of locating sources with a given noise, in numbers and in plain English."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, rounded_down, rounded_up
from cloakwork.accuracy.bayes_risk import risk_of
from cloakwork.accuracy.information import covariances_of_one, radius_90
from cloakwork.accuracy.le_cam import two_point_limit
from cloakwork.accuracy.resolution import smallest_gaps
from cloakwork.accuracy.slopes import Method, Slopes, slopes_at
from cloakwork.accuracy.whitening import (
    Whitened,
    compare_places,
    longest_path,
    refuse_one_place,
    sample_size,
    spread_places,
    whiten,
)
from cloakwork.physics import Drift, Physics

SAMPLE = 500  # places of a large floor
NEGLIGIBLE = 0.01  # of a step: a smaller mean error counts as none


@dataclass(frozen=True)
class Limits:
    """The statistical limits of a model with its noise, in units of the space; "typical" is the median over places.

    These hold for every method, for a lone unit source that is equally likely at each of `places` places: none has a
    mean earth mover distance below `average_emd` or a root mean square below `average_rms`, and none names the right
    place with a probability above `right_place`. At its worst place no method has a mean distance below `worst_emd`.
    Two unit sources closer than `resolution` are indistinguishable.

    These hold for unbiased methods only: `std` is the least standard deviation per axis (root mean square) of the
    position of a lone unit source, `radius` the circle that holds 90 % of such errors if they are normal, and `method`
    the origin of both. Values `of_unknown` hold if the strengths are unknown. `extent` is about the diameter of the
    space, `step` the distance between neighbours.
    """

    average_emd: float
    average_rms: float
    worst_emd: float
    right_place: float
    places: int
    typical_resolution: float
    worst_resolution: float
    typical_resolution_of_unknown: float
    typical_std: float
    worst_std: float
    typical_radius: float
    worst_radius: float
    typical_radius_of_unknown: float
    extent: float
    step: float
    method: Method

    def sentences(self, unit: str = "") -> tuple[str, ...]:
        """The numbers in plain English; `unit`, such as "m", follows each distance."""
        return (self._every_method(unit), self._pair(unit), self._unbiased(unit))

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _every_method(self, unit: str) -> str:
        if self.worst_emd < NEGLIGIBLE * self.step:
            return "No two places are confused: a lone source at one of the places can be located exactly."
        worst = ""
        if self.worst_emd > self.average_emd:
            worst = f" At its worst place no method has a mean distance below {_text(self.worst_emd, unit)}."
        return (
            f"If a lone source of unit strength is equally likely at each of {self.places:,} places, no method has a "
            f"mean distance (EMD) below {_text(self.average_emd, unit)}, and none names the right place in more than "
            f"{rounded_up(100 * self.right_place, 3)} % of cases.{worst}"
        )

    def _pair(self, unit: str) -> str:
        if not self.typical_resolution < self.extent:
            return "Two unit sources cannot be distinguished from both in the middle, at any distance."
        unknown = self.typical_resolution_of_unknown
        more = _text(unknown, unit) if unknown < self.extent else "any distance"
        return (
            f"Two unit sources closer than {_text(self.typical_resolution, unit)} ({more}, if their strength is "
            "unknown) cannot be distinguished from both in the middle at a typical place: the best test errs one time "
            "in four."
        )

    def _unbiased(self, unit: str) -> str:
        graph = self.method is Method.TWO_POINTS
        bound, axis = ("Hammersley-Chapman-Robbins", "") if graph else ("Cramer-Rao", " along each axis")
        if not self.typical_std < self.extent / 2:
            return (
                f"No unbiased method locates a lone source at a typical place ({bound}). A method that knows the "
                "extent of the space can do better."
            )
        worst = f"{_text(self.worst_std, unit)} at the worst place"
        if not self.worst_std < self.extent / 2:
            worst = "at the worst place it is larger than the space"
        return (
            f"For unbiased methods only, the {bound} bound is a standard deviation of {_text(self.typical_std, unit)}"
            f"{axis} at a typical place ({worst}). A method that knows the extent of the space can do better."
        )


def limits(physics: Physics, sigma: ArrayLike, *, drift: Drift | None = None) -> Limits:
    """Compute how well any method can locate sources with this noise.

    `sigma` is the standard deviation of the noise: one number, or one per sensor (of a cloak: `cloak.sigma`).
    With `drift`, of which nothing else is known, the offsets of the readings are noise that the sensors share.

    Notes
    -----
    The limits of `bayes_risk` and `le_cam`, of `resolution`, and of `cramer_rao` for one unit source at each place. On
    large spaces the resolution covers 500 evenly spread places; on graphs all values per place cover up to 256 places.

    >>> from cloakwork.physics import HeatLine
    >>> limit = limits(HeatLine(n=100, m=50, T=0.05), sigma=0.1476)
    >>> round(limit.average_emd, 4), round(limit.typical_resolution, 2), round(limit.typical_std, 3)
    (0.0094, 0.12, 0.013)
    """
    whitened = whiten(physics, sigma, drift)
    refuse_one_place(physics)
    slopes = slopes_at(whitened)
    known, unknown = (_single_source(whitened, slopes, strengths_known=known) for known in (True, False))
    gaps = smallest_gaps(whitened, strengths_known=True)
    gaps_of_unknown = smallest_gaps(whitened, gaps.places, strengths_known=False)
    risk, pairs = risk_of(whitened), two_point_limit(whitened, slopes)
    average = max(risk.mean_distance, pairs.average)
    return Limits(
        average_emd=average,
        average_rms=max(risk.rms_distance, average),
        worst_emd=max(pairs.value, average),
        right_place=risk.right_place,
        places=physics.places,
        typical_resolution=gaps.typical,
        worst_resolution=gaps.worst,
        typical_resolution_of_unknown=gaps_of_unknown.typical,
        typical_std=float(np.median(known.std)),
        worst_std=float(known.std.max()),
        typical_radius=float(np.median(known.radius)),
        worst_radius=float(known.radius.max()),
        typical_radius_of_unknown=float(np.median(unknown.radius)),
        extent=longest_path(physics.space),
        step=float(np.median(physics.space.lengths)),
        method=Method.TWO_POINTS if slopes is None else slopes.method,
    )


def typical_std(physics: Physics, sigma: ArrayLike) -> float:
    """The `typical_std` of `limits`, without the rest, which takes longer; on a large floor that of 500 places."""
    whitened = whiten(physics, sigma, None)
    some = None if physics.explicit else physics.space.places[spread_places(physics.places, SAMPLE)].tolist()
    return float(np.median(_single_source(whitened, slopes_at(whitened, some), strengths_known=True).std))


class _Spread(NamedTuple):
    std: FloatArray
    radius: FloatArray


def _single_source(whitened: Whitened, slopes: Slopes | None, *, strengths_known: bool) -> _Spread:
    """Least spread of a single unit source at each of many places, each of shape (k,)."""
    if slopes is None:
        places = spread_places(len(whitened.space), sample_size(whitened)).tolist()
        comparisons = [compare_places(whitened, place, strengths_known=strengths_known) for place in places]
        return _Spread(np.array([pair.std for pair in comparisons]), np.array([pair.radius for pair in comparisons]))
    covariances = covariances_of_one(slopes, strengths_known=strengths_known)
    variances = np.diagonal(covariances, axis1=1, axis2=2)
    return _Spread(np.sqrt(variances.mean(axis=1)), radius_90(covariances))


def _text(value: float, unit: str) -> str:
    """A lower limit in two digits, rounded down."""
    return f"{rounded_down(value, 2)} {unit}".rstrip()
