"""How well the places of sources can be known: the information that the readings hold."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray
from cloakwork.accuracy.information import inverse_information, mean_length, radius_90
from cloakwork.accuracy.slopes import Method, Slopes, slopes_at
from cloakwork.accuracy.whitening import PlaceComparison, Whitened, compare_places, whiten
from cloakwork.errors import InputError
from cloakwork.physics import Metric, Physics

MEAN_OF_NORMAL = math.sqrt(2 / math.pi)


@dataclass(frozen=True, eq=False)
class CramerRao:
    """The least spread with which unbiased methods locate k given sources, in units of the space.

    Parameters
    ----------
    std
        Standard deviation of each source's position along each axis, shape (k, axes). Infinite where the readings do
        not hold the information, 0 where walls on both sides leave no room to move.
    covariance
        Of all positions together, source by source, shape (k axes, k axes). An infinite entry is the limit of
        information that fades to none.
    radius
        Circle around each true position that holds 90 % of normal errors of this size, shape (k,).
    expected_emd
        Mean earth mover distance of a method that reaches the limit with the strengths right.
    method
        Where the numbers come from. `Method.TWO_POINTS` means that derivatives have no meaning (a graph): `std` is then
        a Hammersley-Chapman-Robbins bound on the distance, `radius` and `expected_emd` are two-point bounds.
    """

    std: FloatArray
    covariance: FloatArray
    radius: FloatArray
    expected_emd: float
    method: Method
    strengths_known: bool

    @property
    def per_axis(self) -> FloatArray:
        """Root mean square over the axes of the standard deviation of each source, shape (k,)."""
        return np.asarray(np.sqrt((self.std**2).mean(axis=1)))


def cramer_rao(
    physics: Physics,
    at: Sequence[object],
    sigma: ArrayLike,
    *,
    strengths: ArrayLike | None = None,
    strengths_known: bool = True,
) -> CramerRao:
    """How exactly sources at the given places can be located from noisy readings.

    Parameters
    ----------
    at
        Positions as for `sources`; on `HeatLine` and `HeatPlane` anywhere, elsewhere the nearest place counts.
    sigma
        Standard deviation of the noise: one number, or one for each sensor.
    strengths
        Strength of each source; 1 when left out.
    strengths_known
        Whether the method knows the strengths, or has to find them too.

    Notes
    -----
    With J the derivative of the readings by all positions (and strengths, if unknown), divided by sigma, every unbiased
    estimate has covariance at least (J'J)^-1. Maximum likelihood reaches it when the noise is small. A method with a
    bias, or one that knows that sources sit on a coarse grid, can do better.

    On a line expected_emd = sum of strength share x std x sqrt(2/pi), the mean of a normal error; as the crow flies it
    is the mean length of the error, in rooms the mean walking distance sqrt(2/pi) (std_x + std_y). Errors in the
    strengths come on top.

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> limit = cramer_rao(HeatLine(n=100, m=50, T=0.05), [0.24, 0.76], sigma=0.1476)
    >>> limit.std.round(4).tolist(), round(limit.expected_emd, 4)
    ([[0.0139], [0.0137]], 0.011)
    """
    whitened = whiten(physics, sigma)
    if isinstance(at, str) or not isinstance(at, Sequence | np.ndarray):
        raise InputError(f"at={at!r}: give a list of positions, such as [{at!r}].", at=at)
    if not len(at):
        raise InputError("at is empty: give the position of at least one source.", at=at)
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


def _strengths(given: ArrayLike | None, k: int) -> FloatArray:
    if given is None:
        return np.ones(k)
    try:
        strengths = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        strengths = np.empty(0)
    if strengths.shape != (k,) or not (np.isfinite(strengths).all() and (strengths >= 0).all() and strengths.any()):
        raise InputError(
            f"strengths={given!r}: give a finite number of 0 or above for each of the {k} sources, not all 0.",
            strengths=given,
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
    """Mean distance of normal errors with these covariances, shape (k,)."""
    if metric is Metric.PATH:
        return np.asarray(MEAN_OF_NORMAL * np.sqrt(np.diagonal(blocks, axis1=1, axis2=2)).sum(axis=1))
    return mean_length(blocks)


def _shared(moves: FloatArray, strengths: FloatArray) -> float:
    present = strengths > 0
    return float(moves[present] @ strengths[present] / strengths.sum())


def _from_two_points(
    whitened: Whitened, at: Sequence[object], strengths: FloatArray, strengths_known: bool
) -> CramerRao:
    """Each source on its own, the others known: less to find out, so still a lower bound."""
    found: list[PlaceComparison] = []
    for position, strength in zip(at, strengths.tolist(), strict=True):
        place = whitened.space.index(position)
        found.append(compare_places(whitened, place, strength=strength, strengths_known=strengths_known))
    std = np.array([[one.std] for one in found])
    radius = np.array([one.radius for one in found])
    moves = np.array([one.mean_error for one in found])
    return CramerRao(
        std, np.diag(std[:, 0] ** 2), radius, _shared(moves, strengths), Method.TWO_POINTS, strengths_known
    )
