"""From the information that readings hold to the least covariance of what is estimated from them."""

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray
from cloakwork.accuracy.slopes import Slopes

SINGULAR = 1e-12  # of the largest singular value, with all parameters scaled alike: below it is rounding
COUPLED = 1e-12  # a parameter with a larger part in a direction without information cannot be known
ALIKE = 1e-10  # 1 - correlation^2 of two parameters below which they cannot be told apart


def inverse_information(rows: FloatArray) -> FloatArray:
    """(J J')^-1 for J with one row a parameter, shape (q, m) to (q, q); infinite in directions without information.

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
    """Covariance of the position of a lone unit source, for each of k places on its own, shape (k, axes, axes)."""
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
    """Inverse of each 1 x 1 or 2 x 2 information; infinite where nothing is seen, 0 where there is no room to move."""
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
