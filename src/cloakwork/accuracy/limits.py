"""The limits of locating a lone source with a given noise, in numbers and in plain English."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, rounded_down, rounded_up
from cloakwork.accuracy.bayes_risk import risk_of
from cloakwork.accuracy.cramer_rao import std_of_one, two_points
from cloakwork.accuracy.slopes import Method, slopes_at
from cloakwork.accuracy.whitening import Whitened, refuse_one_place, spread_places, whiten
from cloakwork.physics import Drift, Physics

SAMPLE = 500  # places of a large floor
COMPARED = 40_000_000  # numbers read for comparing places of a graph with all others


@dataclass(frozen=True)
class Limits:
    """The statistical limits of a model with its noise, in units of the space.

    These hold for every method, for a lone unit source that is equally likely at each of `places` places: none has a
    mean earth mover distance below `average_emd`, and none names the right place with a probability above
    `right_place`.

    These hold for unbiased methods only: `typical_std` and `worst_std` are the median and the largest over places of
    the least standard deviation per axis (root mean square) of the position of a lone unit source, and `method` is how
    they are computed.
    """

    average_emd: float
    right_place: float
    places: int
    typical_std: float
    worst_std: float
    method: Method

    def __str__(self) -> str:
        axis = "" if self.method is Method.TWO_POINTS else " along each axis"
        return (
            f"If a lone source of unit strength is equally likely at each of {self.places:,} places, no method has a "
            f"mean distance (EMD) below {rounded_down(self.average_emd, 2)}, and none names the right place in more "
            f"than {rounded_up(100 * self.right_place, 3)} % of cases.\n"
            f"For unbiased methods only, the standard deviation{axis} is at least {rounded_down(self.typical_std, 2)} "
            f"at a typical place and {rounded_down(self.worst_std, 2)} at the worst. A method that knows the extent of "
            "the space can do better."
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
        right_place=risk.right_place,
        places=physics.places,
        typical_std=float(np.median(std)),
        worst_std=float(std.max()),
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
