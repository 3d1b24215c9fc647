"""The precision with which sources can be located: the information in the readings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray
from cloakwork.accuracy.information import inverse_information, mean_length, radius_90
from cloakwork.accuracy.slopes import Method, Slopes, slopes_at
from cloakwork.accuracy.whitening import Whitened, check_positions, compare_places, whiten
from cloakwork.errors import InputError
from cloakwork.physics import Metric, Physics

MEAN_OF_NORMAL = math.sqrt(2 / math.pi)


@dataclass(frozen=True, eq=False)
class CramerRao:
    """The least spread of unbiased estimates of the positions of k sources, in units of the space.

    `std` (k, axes) is the standard deviation along each axis: infinite if the readings hold no information, 0 between
    two walls. `covariance` (k axes, k axes) covers all positions, source by source. `radius` (k,) is the circle around
    each position that holds 90 % of normal errors. `expected_emd` is the mean earth mover distance at the limit, with
    the right strengths. With `Method.TWO_POINTS` (a graph, which has no derivatives) `std` is a bound on the distance
    after Hammersley, Chapman and Robbins, and `radius` and `expected_emd` are two-point bounds.
    """

    std: FloatArray
    covariance: FloatArray
    radius: FloatArray
    expected_emd: float
    method: Method
    strengths_known: bool


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
        return _from_two_points(whitened, at, weights, strengths_known)
    covariance = _joint_covariance(slopes, weights, strengths_known)
    k, axes = len(at), len(slopes.along)
    std = np.sqrt(covariance.diagonal()).reshape(k, axes)
    blocks = covariance.reshape(k, axes, k, axes)[np.arange(k), :, np.arange(k), :]
    moves = _mean_moves(blocks, physics.space.metric)
    return CramerRao(std, covariance, radius_90(blocks), _shared(moves, weights), slopes.method, strengths_known)


def _strengths(values: ArrayLike | None, k: int) -> FloatArray:
    if values is None:
        return np.ones(k)
    try:
        strengths = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        strengths = np.empty(0)
    if strengths.shape != (k,) or not (np.isfinite(strengths).all() and (strengths >= 0).all() and strengths.any()):
        raise InputError(
            f"strengths={values!r}: give a finite number, 0 or above, for each of the {k} sources, not all 0.",
            strengths=values,
        )
    return strengths


def _joint_covariance(slopes: Slopes, strengths: FloatArray, strengths_known: bool) -> FloatArray:
    moves = (slopes.along * strengths[:, None]).transpose(1, 0, 2).reshape(-1, slopes.columns.shape[1])
    moves[np.linalg.norm(moves, axis=1) <= np.repeat(strengths, len(slopes.along)) * slopes.floor] = 0.0
    free = slopes.free.T.ravel()
    parameters = moves[free] if strengths_known else np.concatenate([moves[free], slopes.columns])
    count = int(free.sum())
    covariance = np.zeros((len(free), len(free)))
    covariance[np.ix_(free, free)] = inverse_information(parameters)[:count, :count]
    return covariance


def _mean_moves(blocks: FloatArray, metric: Metric) -> FloatArray:
    """Mean distance of normal errors with the given covariances, shape (k,)."""
    if metric is Metric.PATH:
        return np.asarray(MEAN_OF_NORMAL * np.sqrt(np.diagonal(blocks, axis1=1, axis2=2)).sum(axis=1))
    return mean_length(blocks)


def _shared(moves: FloatArray, strengths: FloatArray) -> float:
    present = strengths > 0
    return float(moves[present] @ strengths[present] / strengths.sum())


def _from_two_points(
    whitened: Whitened, at: Sequence[object], strengths: FloatArray, strengths_known: bool
) -> CramerRao:
    """Bound each source on its own with the others known: an easier problem, so still a lower bound."""
    comparisons = [
        compare_places(whitened, int(place), strength=strength, strengths_known=strengths_known)
        for place, strength in zip(whitened.space.indices(at), strengths.tolist(), strict=True)
    ]
    std = np.array([[comparison.std] for comparison in comparisons])
    radius = np.array([comparison.radius for comparison in comparisons])
    moves = np.array([comparison.mean_error for comparison in comparisons])
    return CramerRao(
        std, np.diag(std[:, 0] ** 2), radius, _shared(moves, strengths), Method.TWO_POINTS, strengths_known
    )
