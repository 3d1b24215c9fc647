"""The limits of locating a lone source with a given noise, in numbers and in plain English."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, rounded_down, rounded_up
from cloakwork.accuracy.bayes_risk import risk_of
from cloakwork.accuracy.cramer_rao import std_of_one, two_points
from cloakwork.accuracy.slopes import Method, slopes_at
from cloakwork.accuracy.whitening import Whitened, longest_path, refuse_one_place, spread_places, whiten
from cloakwork.physics import Drift, Physics

SAMPLE = 500  # places of a large floor
COMPARED = 40_000_000  # numbers read for comparing places of a graph with all others
NEGLIGIBLE = 0.01  # of a step: a smaller mean error counts as none


@dataclass(frozen=True)
class Limits:
    """The statistical limits of a model with its noise, in units of the space.

    These hold for every method, for a lone unit source that is equally likely at each of `places` places: none has a
    mean earth mover distance below `average_emd` or a root mean square below `average_rms`, and none names the right
    place with a probability above `right_place`.

    These hold for unbiased methods only: `typical_std` and `worst_std` are the median and the largest over places of
    the least standard deviation per axis (root mean square) of the position of a lone unit source, and `method` is how
    they are computed. `extent` is about the diameter of the space, `step` the distance between neighbours.
    """

    average_emd: float
    average_rms: float
    right_place: float
    places: int
    typical_std: float
    worst_std: float
    extent: float
    step: float
    method: Method

    def sentences(self, unit: str = "") -> tuple[str, str]:
        """Return the numbers in plain English; `unit`, such as "m", follows each distance."""
        return self._every_method(unit), self._unbiased(unit)

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _every_method(self, unit: str) -> str:
        if self.average_emd < NEGLIGIBLE * self.step:
            return "Places are hardly ever confused: a lone source at one of the places can be located exactly."
        return (
            f"If a lone source of unit strength is equally likely at each of {self.places:,} places, no method has a "
            f"mean distance (EMD) below {_text(self.average_emd, unit)}, and none names the right place in more than "
            f"{rounded_up(100 * self.right_place, 3)} % of cases."
        )

    def _unbiased(self, unit: str) -> str:
        graph = self.method is Method.TWO_POINTS
        bound, axis = ("Hammersley-Chapman-Robbins", "") if graph else ("Cramer-Rao", " along each axis")
        better = "A method that knows the extent of the space can do better."
        if not self.typical_std < self.extent / 2:
            return f"No unbiased method locates a lone source at a typical place ({bound}). {better}"
        worst = f"{_text(self.worst_std, unit)} at the worst place"
        if not self.worst_std < self.extent / 2:
            worst = "at the worst place it is larger than the space"
        return (
            f"For unbiased methods only, the {bound} bound is a standard deviation of {_text(self.typical_std, unit)}"
            f"{axis} at a typical place ({worst}). {better}"
        )


def limits(physics: Physics, sigma: ArrayLike, *, drift: Drift | None = None) -> Limits:
    """Compute how well any method can locate a lone source with this noise.

    `sigma` is the standard deviation of the noise: one number, or one per sensor (of a cloak: `cloak.sigma`).
    With `drift`, of which nothing else is known, the offsets of the readings are noise that the sensors share.

    Notes
    -----
    The limits of `bayes_risk`, and of `cramer_rao` for one unit source at each place; on graphs at up to 256 places.

    >>> from cloakwork.physics import HeatLine
    >>> limit = limits(HeatLine(n=100, m=50, T=0.05), sigma=0.1476)
    >>> round(limit.average_emd, 4), round(limit.typical_std, 3)
    (0.0094, 0.013)
    """
    whitened = whiten(physics, sigma, drift)
    refuse_one_place(physics)
    std, method = _stds(whitened, None)
    risk = risk_of(whitened)
    return Limits(
        average_emd=risk.mean_distance,
        average_rms=risk.rms_distance,
        right_place=risk.right_place,
        places=physics.places,
        typical_std=float(np.median(std)),
        worst_std=float(std.max()),
        extent=longest_path(physics.space),
        step=float(np.median(physics.space.lengths)),
        method=method,
    )


def typical_std(physics: Physics, sigma: ArrayLike) -> float:
    """Return the `typical_std` of `limits` without the rest, which takes longer; of 500 places on a large floor."""
    some = None if physics.explicit else physics.space.places[spread_places(physics.places, SAMPLE)].tolist()
    return float(np.median(_stds(whiten(physics, sigma), some)[0]))


def _stds(whitened: Whitened, at: list[object] | None) -> tuple[FloatArray, Method]:
    """Return the least standard deviation of a lone unit source at each of many places, and how it is computed."""
    slopes = slopes_at(whitened, at)
    if slopes is not None:
        return std_of_one(slopes), slopes.method
    most = int(np.clip(COMPARED // whitened.columns.size, 12, 256))
    places = spread_places(len(whitened.columns), most).tolist()
    return np.array([two_points(whitened, place)[0] for place in places]), Method.TWO_POINTS


def _text(value: float, unit: str) -> str:
    """Return a lower limit in two digits, rounded down."""
    return f"{rounded_down(value, 2)} {unit}".rstrip()
