"""The precision with which sources can be located: the information in the readings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.accuracy.slopes import Method, Slopes, slopes_at
from cloakwork.accuracy.whitening import Whitened, check_positions, whiten
from cloakwork.physics import Metric, Physics

MEAN_OF_NORMAL = math.sqrt(2 / math.pi)
NOTHING = 1e-9  # readings this close, in units of the noise, are equal
SINGULAR = 1e-12  # of the largest singular value, with equally scaled parameters: smaller ones are rounding
COUPLED = 1e-12  # a parameter with a larger share in a direction without information is unknown


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


def inverse_information(rows: FloatArray) -> FloatArray:
    """Return (J J')^-1 for J with one row per parameter, (..., q, m) to (..., q, q); infinite without information.

    >>> inverse_information(np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])).tolist()
    [[0.25, 0.0, 0.0], [0.0, inf, -inf], [0.0, -inf, inf]]
    """
    lengths = np.linalg.norm(rows, axis=-1)
    scale = np.where(lengths > 0, lengths, 1.0)
    triangle = np.linalg.qr(np.swapaxes(rows / scale[..., None], -1, -2), mode="r")
    _, found, basis = np.linalg.svd(triangle, full_matrices=True)
    values = np.zeros(lengths.shape)
    values[..., : found.shape[-1]] = found
    seen = values > SINGULAR * np.maximum(values.max(axis=-1, keepdims=True), np.finfo(float).tiny)
    known = basis * np.where(seen, 1 / np.where(seen, values, 1.0), 0.0)[..., None]
    unknown = basis * ~seen[..., None]
    unbounded = np.swapaxes(unknown, -1, -2) @ unknown
    parts = np.sqrt(np.diagonal(unbounded, axis1=-2, axis2=-1))
    pairs = parts[..., None] * parts[..., None, :]
    coupled = np.asarray(np.minimum(parts[..., None], parts[..., None, :]) > COUPLED)
    lost = (np.abs(unbounded) > 1e-6 * pairs) & coupled
    inverse = np.where(lost, np.copysign(np.inf, unbounded), np.swapaxes(known, -1, -2) @ known)
    return np.asarray(inverse / (scale[..., None] * scale[..., None, :]))


def mean_length(covariances: FloatArray) -> FloatArray:
    """Return the mean length of normal errors, (..., d, d) to (...), d = 1 or 2.

    sqrt(2/pi) a E(1 - b^2/a^2) for standard deviations a >= b along the axes of the ellipse, with E the complete
    elliptic integral: sqrt(2/pi) a for b = 0, sqrt(pi/2) a for b = a.

    >>> [round(float(mean_length(np.diag(variances))), 4) for variances in ([1.0], [1.0, 1.0])]
    [0.7979, 1.2533]
    """
    known = np.asarray(np.isfinite(covariances).all(axis=(-1, -2)))
    variances = np.linalg.eigvalsh(np.where(known[..., None, None], covariances, 0.0))
    longer = np.where(known, np.sqrt(np.maximum(variances[..., -1], 0.0)), np.inf)
    shorter = np.maximum(variances[..., 0], 0.0) if variances.shape[-1] > 1 else np.zeros(longer.shape)
    share = np.divide(shorter, longer**2, out=np.zeros_like(longer), where=(longer > 0) & known)
    return np.asarray(math.sqrt(2 / math.pi) * longer * special.ellipe(1 - share))
