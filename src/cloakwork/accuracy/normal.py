"""Two facts about normal errors in one or two dimensions: their 90 % radius and their mean length."""

import math
from functools import lru_cache

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray

SHARE = 0.9
ONE_SIDED = float(special.ndtri((1 + SHARE) / 2))  # 1.645: the 90 % radius of one standard normal number


def radius_90(covariances: FloatArray) -> FloatArray:
    """Radius of the circle around the truth that holds 90 % of normal errors, shape (...) from (..., d, d), d = 1 or 2.

    Infinite where a variance is.

    >>> [round(float(radius_90(np.diag(variances))), 4) for variances in ([1.0], [1.0, 0.0], [1.0, 1.0])]
    [1.6449, 1.6449, 2.146]
    """
    longer, shorter = _axes_of_ellipse(covariances)
    share = np.divide(shorter, longer, out=np.zeros_like(longer), where=(longer > 0) & np.isfinite(longer))
    with np.errstate(invalid="ignore"):
        return np.asarray(longer * np.interp(share, *_radius_table()))


def mean_length(covariances: FloatArray) -> FloatArray:
    """Mean length of normal errors, shape (...) from (..., d, d), d = 1 or 2.

    Notes
    -----
    sqrt(2/pi) a E(1 - b^2/a^2) for standard deviations a >= b along the axes of the ellipse, with E the complete
    elliptic integral: sqrt(2/pi) a where b = 0, sqrt(pi/2) a where b = a.

    >>> [round(float(mean_length(np.diag(variances))), 4) for variances in ([1.0], [1.0, 1.0])]
    [0.7979, 1.2533]
    """
    longer, shorter = _axes_of_ellipse(covariances)
    share = np.divide(shorter, longer, out=np.zeros_like(longer), where=(longer > 0) & np.isfinite(longer))
    return np.asarray(math.sqrt(2 / math.pi) * longer * special.ellipe(1 - share**2))


def _axes_of_ellipse(covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard deviations along the two axes of the ellipse, the longer first; (infinite, 0) if a variance is."""
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
    """90 % radius for standard deviations 1 and q, for q from 0 to 1.

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
