"""The limits of locating sources with a given noise, in numbers and in plain English."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, rounded_down
from cloakwork.accuracy.information import covariances_of_one, radius_90
from cloakwork.accuracy.le_cam import two_point_limit
from cloakwork.accuracy.resolution import smallest_gaps
from cloakwork.accuracy.slopes import Method, Slopes, slopes_at
from cloakwork.accuracy.whitening import Whitened, compare_places, refuse_one_place, sample_size, spread_places, whiten
from cloakwork.physics import Physics

NEGLIGIBLE = 0.01  # of a step: a smaller mean error counts as none


@dataclass(frozen=True)
class Limits:
    """The statistical limits of a model with its noise, in units of the space; "typical" is the median over places.

    `std` is the least standard deviation per axis (root mean square) of the position of a single unit source, `radius`
    the circle that holds 90 % of such errors. Two unit sources closer than `resolution` are indistinguishable. Values
    `of_unknown` hold if the strengths are unknown. No method has a mean earth mover distance below `average_emd` over
    all places, or below `worst_emd` at its worst place. `extent` is about the diameter of the space, `step` the
    distance between neighbours, and `method` the origin of `std` and `radius`.
    """

    typical_std: float
    worst_std: float
    typical_radius: float
    worst_radius: float
    typical_radius_of_unknown: float
    typical_resolution: float
    worst_resolution: float
    typical_resolution_of_unknown: float
    average_emd: float
    worst_emd: float
    extent: float
    step: float
    method: Method

    def sentences(self, unit: str = "") -> tuple[str, ...]:
        """The numbers in plain English; `unit`, such as "m", follows each distance."""
        return (self._single(unit), self._pair(unit), self._floor(unit))

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _single(self, unit: str) -> str:
        if not self.typical_radius < self.extent / 2:
            return "With this noise a single source of unit strength cannot be located at a typical place."
        located = "can at best be located to within"
        if self.method is Method.TWO_POINTS:
            located = "cannot be located by any method to within less than"
        worst = f"{_text(self.worst_radius, unit)} at the worst place"
        if not self.worst_radius < self.extent / 2:
            worst = "at the worst place not at all"
        return (
            f"With this noise a single source of unit strength {located} {_text(self.typical_radius, unit)} "
            f"nine times in ten at a typical place ({worst})."
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

    def _floor(self, unit: str) -> str:
        if self.worst_emd < NEGLIGIBLE * self.step:
            return "No two places are confused: a single source at one of the places can be located exactly."
        return (
            "A weaker bound that allows for any bias: no method has a mean distance (EMD) to a single source below "
            f"{_text(self.average_emd, unit)} over all places, or below {_text(self.worst_emd, unit)} at its worst "
            "place."
        )


def limits(physics: Physics, sigma: ArrayLike) -> Limits:
    """Compute how well any method can locate sources with this noise.

    `sigma` is the standard deviation of the noise: one number, or one per sensor (of a cloak: `cloak.sigma`).

    Notes
    -----
    The limits of `cramer_rao` for one unit source at each place, of `resolution` and of `le_cam`. On large spaces the
    resolution covers 500 evenly spread places; on graphs all values per place cover up to 256 places.

    >>> from cloakwork.physics import HeatLine
    >>> limit = limits(HeatLine(n=100, m=50, T=0.05), sigma=0.1476)
    >>> round(limit.typical_radius, 3), round(limit.typical_resolution, 2), round(limit.average_emd, 4)
    (0.021, 0.12, 0.0041)
    """
    whitened = whiten(physics, sigma)
    refuse_one_place(physics)
    slopes = slopes_at(whitened)
    known, unknown = (_single_source(whitened, slopes, strengths_known=known) for known in (True, False))
    gaps = smallest_gaps(whitened, strengths_known=True)
    gaps_of_unknown = smallest_gaps(whitened, gaps.places, strengths_known=False)
    floor = two_point_limit(whitened, slopes)
    return Limits(
        typical_std=float(np.median(known.std)),
        worst_std=float(known.std.max()),
        typical_radius=float(np.median(known.radius)),
        worst_radius=float(known.radius.max()),
        typical_radius_of_unknown=float(np.median(unknown.radius)),
        typical_resolution=gaps.typical,
        worst_resolution=gaps.worst,
        typical_resolution_of_unknown=gaps_of_unknown.typical,
        average_emd=floor.average,
        worst_emd=floor.value,
        extent=_extent(physics),
        step=float(np.median(physics.space.lengths)),
        method=Method.TWO_POINTS if slopes is None else slopes.method,
    )


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


def _extent(physics: Physics) -> float:
    distances = physics.space.distances(0)
    farthest = int(np.argmax(np.where(np.isfinite(distances), distances, -1.0)))
    reach = physics.space.distances(farthest)
    return float(reach[np.isfinite(reach)].max())


def _text(value: float, unit: str) -> str:
    """A lower limit in two digits, rounded down."""
    return f"{rounded_down(value, 2)} {unit}".rstrip()
