"""What can be learnt at all with a given noise, in numbers and in plain words."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, rounded_down
from cloakwork.accuracy.information import covariances_of_one, radius_90
from cloakwork.accuracy.le_cam import two_point_limit
from cloakwork.accuracy.resolution import smallest_gaps
from cloakwork.accuracy.slopes import Method, Slopes, slopes_everywhere
from cloakwork.accuracy.whitening import Whitened, compare_places, refuse_one_place, sample_size, spread_places, whiten
from cloakwork.physics import Physics

NEGLIGIBLE = 0.01  # of a step: a smaller mean error is none at all


@dataclass(frozen=True)
class Limits:
    """The statistical limits of one model with one noise, in units of the space; typical is the median over places.

    Parameters
    ----------
    typical_std, worst_std
        Least standard deviation per axis (root mean square) of the position of a single unit source.
    typical_radius, worst_radius
        Circle that holds 90 % of errors of that size; `typical_radius_of_unknown` if the strength is not known.
    typical_resolution, worst_resolution
        Two unit sources closer than this are not told apart; `typical_resolution_of_unknown` without their strength.
    average_emd, worst_emd
        No method has a smaller mean earth mover distance, averaged over all places or at its worst place.
    extent, step
        How far the space reaches (nearly: from the place that is farthest from the first), and from place to place.
    method
        Where `std` and `radius` come from.
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
        """What the numbers mean, for people; `unit` is written behind each distance, such as "m"."""
        return (self._single(unit), self._pair(unit), self._floor(unit))

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _single(self, unit: str) -> str:
        if not self.typical_radius < self.extent / 2:
            return "With this noise a single source of unit strength cannot be located at a typical place."
        found = "can at best be found to within"
        if self.method is Method.TWO_POINTS:
            found = "is found by no method to within less than"
        worst = f"{_text(self.worst_radius, unit)} at the worst place"
        if not self.worst_radius < self.extent / 2:
            worst = "at the worst place not at all"
        return (
            f"With this noise a single source of unit strength {found} {_text(self.typical_radius, unit)} "
            f"nine times in ten at a typical place ({worst})."
        )

    def _pair(self, unit: str) -> str:
        if not self.typical_resolution < self.extent:
            return "Two unit sources cannot be told from both in the middle, however far apart they are."
        unknown = self.typical_resolution_of_unknown
        more = _text(unknown, unit) if unknown < self.extent else "however far apart"
        return (
            f"Two unit sources closer than {_text(self.typical_resolution, unit)} ({more}, if their strength is not "
            "known) cannot be told from both in the middle at a typical place: the best test errs one time in four."
        )

    def _floor(self, unit: str) -> str:
        if self.worst_emd < NEGLIGIBLE * self.step:
            return "No two places are mixed up: a single source that sits on one of the places can be found exactly."
        return (
            "A weaker bound that allows for any bias: no method can bring the mean distance (EMD) of a single source "
            f"below {_text(self.average_emd, unit)} over all places, or below {_text(self.worst_emd, unit)} at its "
            "worst place."
        )


def limits(physics: Physics, sigma: ArrayLike) -> Limits:
    """How well sources can be located with this noise, by any method.

    Parameters
    ----------
    sigma
        Standard deviation of the noise: one number, or one for each sensor (of a cloak: `cloak.sigma`).

    Notes
    -----
    The limits of `cramer_rao` for one unit source at each place, of `resolution`, and of `le_cam`. On large spaces the
    resolution is that of 500 places spread evenly, on graphs everything per place is that of up to 256 places.

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> found = limits(HeatLine(n=100, m=50, T=0.05), sigma=0.1476)
    >>> round(found.typical_radius, 3), round(found.typical_resolution, 2), round(found.average_emd, 4)
    (0.021, 0.12, 0.0041)
    >>> found.sentences("m")[2]  # doctest: +ELLIPSIS
    'A weaker bound ...: no method can bring the mean distance (EMD) of a single source below 0.0041 m over all ...'
    """
    whitened = whiten(physics, sigma)
    refuse_one_place(physics)
    slopes = slopes_everywhere(whitened)
    known, unknown = _Single.of(whitened, slopes, True), _Single.of(whitened, slopes, False)
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


@dataclass(frozen=True, eq=False)
class _Single:
    """Least spread of a single unit source at each of many places, each of shape (k,)."""

    std: FloatArray
    radius: FloatArray

    @classmethod
    def of(cls, whitened: Whitened, slopes: Slopes | None, strengths_known: bool) -> "_Single":
        if slopes is None:
            places = spread_places(len(whitened.space), sample_size(whitened))
            found = [compare_places(whitened, int(place), strengths_known=strengths_known) for place in places]
            return cls(np.array([one.std for one in found]), np.array([one.radius for one in found]))
        covariances = covariances_of_one(slopes, strengths_known=strengths_known)
        variances = np.diagonal(covariances, axis1=1, axis2=2)
        return cls(np.sqrt(variances.mean(axis=1)), radius_90(covariances))


def _extent(physics: Physics) -> float:
    distances = physics.space.distances(0)
    farthest = int(np.argmax(np.where(np.isfinite(distances), distances, -1.0)))
    reach = physics.space.distances(farthest)
    return float(reach[np.isfinite(reach)].max())


def _text(value: float, unit: str) -> str:
    """A lower limit in two digits, rounded down."""
    return f"{rounded_down(value, 2)} {unit}".rstrip()
