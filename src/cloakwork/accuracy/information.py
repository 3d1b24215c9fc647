"""From the information that readings hold to the least covariance of an estimate, and the size of such errors."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.accuracy.slopes import Slopes
from cloakwork.accuracy.whitening import SHARE

SINGULAR = 1e-12  # of the largest singular value, with equally scaled parameters: smaller ones are rounding
COUPLED = 1e-12  # a parameter with a larger share in a direction without information is unknown
ALIKE = 1e-10  # 1 - correlation^2 below which two parameters are indistinguishable


def inverse_information(rows: FloatArray) -> FloatArray:
    """(J J')^-1 for J with one row per parameter, (q, m) to (q, q); infinite in directions without information.

    >>> inverse_information(np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0]])).tolist()
    [[0.25, 0.0, 0.0], [0.0, inf, -inf], [0.0, -inf, inf]]
    """
    lengths = np.linalg.norm(rows, axis=1)
    scale = np.where(lengths > 0, lengths, 1.0)
    triangle = np.linalg.qr((rows / scale[:, None]).T, mode="r")
    _, values, basis = np.linalg.svd(triangle, full_matrices=True)
    values = np.concatenate([values, np.zeros(len(rows) - len(values))])
    seen = values > SINGULAR * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
    known, unknown = basis[seen] / values[seen, None], basis[~seen]
    unbounded = unknown.T @ unknown
    parts = np.sqrt(unbounded.diagonal())
    lost = (np.abs(unbounded) > 1e-6 * np.outer(parts, parts)) & np.logical_and.outer(parts > COUPLED, parts > COUPLED)
    inverse = np.where(lost, np.copysign(np.inf, unbounded), known.T @ known)
    return np.asarray(inverse / np.outer(scale, scale))


def covariances_of_one(slopes: Slopes, *, strengths_known: bool) -> FloatArray:
    """Least covariance of the position of a single unit source at each of k places, shape (k, axes, axes)."""
    information = np.einsum("akm,bkm->kab", slopes.along, slopes.along)
    squares = information.diagonal(axis1=1, axis2=2).copy()
    seen = squares > slopes.floor**2
    if not strengths_known:
        overlap = np.einsum("akm,km->ka", slopes.along, slopes.columns)
        strength = np.einsum("km,km->k", slopes.columns, slopes.columns)[:, None, None]
        explained = overlap[:, :, None] * overlap[:, None, :] / np.where(strength > 0, strength, 1.0)
        information = information - explained
        seen &= information.diagonal(axis1=1, axis2=2) > ALIKE * squares
    return _inverted(information, seen, slopes.free.T)


def _inverted(information: FloatArray, seen: NDArray[np.bool_], free: NDArray[np.bool_]) -> FloatArray:
    """Invert each 1 x 1 or 2 x 2 information: infinite where nothing is seen, 0 where a source cannot move."""
    diagonal = np.where(seen & free, information.diagonal(axis1=1, axis2=2), np.inf)
    variances = np.where(free, np.where(seen, 1 / diagonal, np.inf), 0.0)
    covariances = np.zeros_like(information)
    if variances.shape[1] == 2:
        a, b = diagonal.T
        c = np.where((seen & free).all(axis=1), information[:, 0, 1], 0.0)
        rest = 1 - c / a * (c / b)
        apart = rest > ALIKE
        safe = np.where(apart, rest, 1.0)
        variances = np.where(apart[:, None], variances / safe[:, None], np.inf)
        off = np.where(apart, -(c / a) / b / safe, np.copysign(np.inf, -c))
        covariances[:, 0, 1] = covariances[:, 1, 0] = off
    axes = np.arange(variances.shape[1])
    covariances[:, axes, axes] = variances
    return covariances


def radius_90(covariances: FloatArray) -> FloatArray:
    """Radius of the circle that holds 90 % of normal errors, (..., d, d) to (...), d = 1 or 2.

    >>> [round(float(radius_90(np.diag(variances))), 4) for variances in ([1.0], [1.0, 0.0], [1.0, 1.0])]
    [1.6449, 1.6449, 2.146]
    """
    longer, shorter = _axes_of_ellipse(covariances)
    share = np.divide(shorter, longer, out=np.zeros_like(longer), where=(longer > 0) & np.isfinite(longer))
    with np.errstate(invalid="ignore"):
        return np.asarray(longer * np.interp(share, *_radius_table()))


def mean_length(covariances: FloatArray) -> FloatArray:
    """Mean length of normal errors, (..., d, d) to (...), d = 1 or 2.

    sqrt(2/pi) a E(1 - b^2/a^2) for standard deviations a >= b along the axes of the ellipse, with E the complete
    elliptic integral: sqrt(2/pi) a for b = 0, sqrt(pi/2) a for b = a.

    >>> [round(float(mean_length(np.diag(variances))), 4) for variances in ([1.0], [1.0, 1.0])]
    [0.7979, 1.2533]
    """
    longer, shorter = _axes_of_ellipse(covariances)
    share = np.divide(shorter, longer, out=np.zeros_like(longer), where=(longer > 0) & np.isfinite(longer))
    return np.asarray(math.sqrt(2 / math.pi) * longer * special.ellipe(1 - share**2))


def _axes_of_ellipse(covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard deviations along the axes of the ellipse, the longer first; (infinite, 0) if a variance is infinite."""
    variances = np.diagonal(covariances, axis1=-2, axis2=-1)
    known = np.isfinite(variances).all(axis=-1)
    if variances.shape[-1] == 1:
        return np.sqrt(variances[..., 0]), np.zeros(variances.shape[:-1])
    a, b = (np.where(known, variances[..., k], 0.0) for k in range(2))
    c = np.where(known, covariances[..., 0, 1], 0.0)
    middle, spread = (a + b) / 2, np.hypot((a - b) / 2, c)
    longer = np.where(known, np.sqrt(middle + spread), np.inf)
    return longer, np.sqrt(np.maximum(middle - spread, 0.0))


@lru_cache(maxsize=1)
def _radius_table() -> tuple[FloatArray, FloatArray]:
    """The 90 % radius for standard deviations 1 and q, for q from 0 to 1.

    P(R <= r) is the integral of phi(r sin t) erf(r cos t / (q sqrt 2)) r cos t over |t| <= pi/2; bisection inverts it.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    sine, cosine = np.sin(nodes * np.pi / 2), np.cos(nodes * np.pi / 2)
    q = np.linspace(0, 1, 129)
    low, high = np.full(len(q), 1.0), np.full(len(q), 3.0)
    for _ in range(50):
        r = (low + high) / 2
        bell = np.exp(-((r[:, None] * sine) ** 2) / 2) / math.sqrt(2 * math.pi)
        across = special.erf(r[:, None] * cosine / (np.maximum(q, 1e-9)[:, None] * math.sqrt(2)))
        inside = (bell * across * r[:, None] * cosine) @ (weights * np.pi / 2)
        low, high = np.where(inside < SHARE, r, low), np.where(inside < SHARE, high, r)
    return q, (low + high) / 2
