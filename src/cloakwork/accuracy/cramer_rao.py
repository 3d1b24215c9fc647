"""The precision with which sources can be located: the information in the readings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.accuracy.information import inverse_information, mean_length
from cloakwork.accuracy.slopes import Method, Slopes, slopes_at
from cloakwork.accuracy.whitening import Whitened, check_positions, whiten
from cloakwork.physics import Metric, Physics

MEAN_OF_NORMAL = math.sqrt(2 / math.pi)
NOTHING = 1e-9  # readings this close, in units of the noise, are equal


@dataclass(frozen=True, eq=False)
class CramerRao:
    """The least spread of unbiased estimates of the positions of k sources, in units of the space.

    `std` (k, axes) is the standard deviation along each axis: infinite if the readings hold no information, 0 between
    two walls. `covariance` (k axes, k axes) covers all positions, source by source. `expected_emd` is the mean earth
    mover distance at the limit. With `Method.TWO_POINTS` (a graph, which has no derivatives)
    `std` is a bound on the distance after Hammersley, Chapman and Robbins, for each source with the others known.
    """

    std: FloatArray
    covariance: FloatArray
    expected_emd: float
    method: Method


def cramer_rao(physics: Physics, at: Sequence[object], sigma: ArrayLike) -> CramerRao:
    """Bound how exactly unit sources at given positions can be located from noisy readings.

    Parameters
    ----------
    at
        Positions as for `sources`: any on `HeatLine` and `HeatPlane`; elsewhere the nearest places.
    sigma
        Standard deviation of the noise: one number, or one per sensor.

    Notes
    -----
    With J the derivative of the readings by all positions, divided by sigma, every unbiased estimate has a covariance
    of at least (J'J)^-1. Maximum likelihood attains it for small noise. A biased method, or one that knows that sources
    are on a coarse grid, can do better.

    On a line, expected_emd is the mean std times sqrt(2/pi), the mean of a normal error; on a plane it is the mean
    length of the error, in rooms the mean walking distance sqrt(2/pi) (std_x + std_y).

    >>> from cloakwork.physics import HeatLine
    >>> limit = cramer_rao(HeatLine(n=100, m=50, T=0.05), [0.24, 0.76], sigma=0.1476)
    >>> limit.std.round(4).tolist(), round(limit.expected_emd, 4)
    ([[0.0139], [0.0137]], 0.011)
    """
    whitened = whiten(physics, sigma)
    check_positions(at)
    slopes = slopes_at(whitened, at)
    if slopes is None:
        places = physics.space.indices(at).tolist()
        std, moves = np.array([two_points(whitened, place) for place in places]).T
        return CramerRao(std[:, None], np.diag(std**2), float(moves.mean()), Method.TWO_POINTS)
    k, axes = slopes.free.shape
    free = slopes.free.ravel()
    inverse = inverse_information(_seen(slopes).reshape(k * axes, -1))
    covariance = np.where(np.outer(free, free), inverse, 0.0)
    blocks = covariance.reshape(k, axes, k, axes)[np.arange(k), :, np.arange(k), :]
    std = np.sqrt(covariance.diagonal()).reshape(k, axes)
    lengths = MEAN_OF_NORMAL * std.sum(axis=1) if physics.space.metric is Metric.PATH else mean_length(blocks)
    return CramerRao(std, covariance, float(lengths.mean()), slopes.method)


def std_of_one(slopes: Slopes) -> FloatArray:
    """Return the least standard deviation per axis (root mean square) of a lone unit source at each place, (k,)."""
    variances = np.diagonal(inverse_information(_seen(slopes)), axis1=1, axis2=2)
    return np.asarray(np.sqrt(np.where(slopes.free, variances, 0.0).mean(axis=1)))


def two_points(whitened: Whitened, place: int) -> tuple[float, float]:
    """Compare a place with all others: bounds on the standard deviation and on the mean of the distance from it.

    With separations s = ||(M_i - M_j) / sigma||, rounded up, the first is the largest d / sqrt(exp(s^2) - 1) over the
    other places (Hammersley, Chapman and Robbins: exp(s^2) - 1 is the chi-square divergence of two normal
    distributions), the second the largest d Phi(-s / 2) (Le Cam).
    """
    columns = whitened.columns
    separations = np.linalg.norm(columns[place] - columns, axis=1) + math.sqrt(2) * whitened.error
    separations = separations * (1 + 1e-12)
    distances = whitened.physics.space.distances(place)
    reached = np.isfinite(distances) & (distances > 0)
    distances, separations = distances[reached], separations[reached]
    with np.errstate(over="ignore", divide="ignore"):
        std = distances / np.sqrt(np.expm1(np.where(separations > NOTHING, separations, 0.0) ** 2))
    mean = distances * special.ndtr(-separations / 2)
    return float(std.max(initial=0.0)), float(mean.max(initial=0.0))


def _seen(slopes: Slopes) -> FloatArray:
    """Return the slopes that are no rounding error, of the axes along which a source can move, shape (k, axes, m)."""
    seen = np.linalg.norm(slopes.along, axis=2) > slopes.floor
    return np.where((seen & slopes.free)[..., None], slopes.along, 0.0)
