"""From the information that readings hold to the least covariance of an estimate, and the size of such errors."""

import math

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray

SINGULAR = 1e-12  # of the largest singular value, with equally scaled parameters: smaller ones are rounding
COUPLED = 1e-12  # a parameter with a larger share in a direction without information is unknown


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
