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
from cloakwork.errors import InputError
from cloakwork.physics import Metric, Physics

MEAN_OF_NORMAL = math.sqrt(2 / math.pi)
NOTHING = 1e-9  # readings this close, in units of the noise, are equal


@dataclass(frozen=True, eq=False)
class CramerRao:
    """The least spread of unbiased estimates of the positions of k sources, in units of the space.

    `std` (k, axes) is the standard deviation along each axis: infinite if the readings hold no information, 0 between
    two walls. `covariance` (k axes, k axes) covers all positions, source by source. `expected_emd` is the mean earth
    mover distance at the limit, with the right strengths. With `Method.TWO_POINTS` (a graph, which has no derivatives)
    `std` is a bound on the distance after Hammersley, Chapman and Robbins, for each source with the others known.
    """

    std: FloatArray
    covariance: FloatArray
    expected_emd: float
    method: Method


def cramer_rao(
    physics: Physics,
    at: Sequence[object],
    sigma: ArrayLike,
    *,
    strengths: ArrayLike | None = None,
    strengths_known: bool = True,
) -> CramerRao:
    """Bound how exactly sources at given positions can be located from noisy readings.

    Parameters
    ----------
    at
        Positions as for `sources`: any on `HeatLine` and `HeatPlane`; elsewhere the nearest places.
    sigma
        Standard deviation of the noise: one number, or one per sensor.
    strengths
        Strength of each source; 1 by default.
    strengths_known
        Whether the method knows the strengths or must estimate them.

    Notes
    -----
    With J the derivative of the readings by all positions (and by unknown strengths), divided by sigma, every unbiased
    estimate has a covariance of at least (J'J)^-1. Maximum likelihood attains it for small noise. A biased method, or
    one that knows that sources are on a coarse grid, can do better.

    On a line, expected_emd = sum of strength share x std x sqrt(2/pi), the mean of a normal error; on a plane it is the
    mean length of the error, in rooms the mean walking distance sqrt(2/pi) (std_x + std_y). Errors in the strengths
    come on top.

    >>> from cloakwork.physics import HeatLine
    >>> limit = cramer_rao(HeatLine(n=100, m=50, T=0.05), [0.24, 0.76], sigma=0.1476)
    >>> limit.std.round(4).tolist(), round(limit.expected_emd, 4)
    ([[0.0139], [0.0137]], 0.011)
    """
    whitened = whiten(physics, sigma)
    check_positions(at)
    weights = _strengths(strengths, len(at))
    slopes = slopes_at(whitened, at)
    if slopes is None:
        places = physics.space.indices(at).tolist()
        pairs = zip(places, weights.tolist(), strict=True)
        std, moves = np.array([two_points(whitened, *pair, strengths_known=strengths_known) for pair in pairs]).T
        return CramerRao(std[:, None], np.diag(std**2), _weighted(moves, weights), Method.TWO_POINTS)
    k, axes = slopes.free.shape
    moves = (_seen(slopes) * weights[:, None, None]).reshape(k * axes, -1)
    parameters = moves if strengths_known else np.concatenate([moves, slopes.columns])
    free = slopes.free.ravel()
    covariance = np.where(np.outer(free, free), inverse_information(parameters)[: len(moves), : len(moves)], 0.0)
    blocks = covariance.reshape(k, axes, k, axes)[np.arange(k), :, np.arange(k), :]
    std = np.sqrt(covariance.diagonal()).reshape(k, axes)
    lengths = MEAN_OF_NORMAL * std.sum(axis=1) if physics.space.metric is Metric.PATH else mean_length(blocks)
    return CramerRao(std, covariance, _weighted(lengths, weights), slopes.method)


def std_of_one(slopes: Slopes) -> FloatArray:
    """Return the least standard deviation per axis (root mean square) of a lone unit source at each place, (k,)."""
    variances = np.diagonal(inverse_information(_seen(slopes)), axis1=1, axis2=2)
    return np.asarray(np.sqrt(np.where(slopes.free, variances, 0.0).mean(axis=1)))


def two_points(
    whitened: Whitened, place: int, strength: float = 1.0, *, strengths_known: bool = True
) -> tuple[float, float]:
    """Compare a place with all others: bounds on the standard deviation and on the mean of the distance from it.

    With separations s = ||(s_i M_i - s_j M_j) / sigma||, rounded up, the first is the largest d / sqrt(exp(s^2) - 1)
    over the other places (Hammersley, Chapman and Robbins: exp(s^2) - 1 is the chi-square divergence of two normal
    distributions), the second the largest d Phi(-s / 2) (Le Cam).
    """
    here, columns = whitened.columns[place], whitened.columns
    others = np.ones(len(columns))
    if not strengths_known:  # the strength at the other place is the one that is hardest to distinguish
        others = np.maximum(columns @ here, 0.0) / np.where(whitened.squares > 0, whitened.squares, 1.0)
    separations = np.linalg.norm(here - others[:, None] * columns, axis=1) + np.hypot(1, others) * whitened.error
    separations = strength * separations * (1 + 1e-12)
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


def _strengths(values: ArrayLike | None, k: int) -> FloatArray:
    try:
        strengths = np.ones(k) if values is None else np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        strengths = np.empty(0)
    if strengths.shape != (k,) or not (np.isfinite(strengths).all() and (strengths >= 0).all() and strengths.any()):
        raise InputError(
            f"strengths={values!r}: give a finite number, 0 or above, for each of the {k} sources, not all 0.",
            strengths=values,
        )
    return strengths


def _weighted(moves: FloatArray, strengths: FloatArray) -> float:
    """Return the mean move of the sources that are there, by strength; a source of strength 0 may move infinitely."""
    present = strengths > 0
    return float(moves[present] @ strengths[present] / strengths.sum())
