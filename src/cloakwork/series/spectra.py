"""The papers' spectral shape of a filter."""

import math

import numpy as np

from cloakwork.series.strategies import Task, multiplicity


def spectral_shape(task: Task) -> float:
    """specLB(h) = max over K of K^2 |h^_(K)|^2 / (N log2(N)^2), with the unitary coefficients from large to small.

    Notes
    -----
    The mean squared error of any private convolution is at least this times a constant that nobody knows, for small
    epsilon and delta (Fawaz, Muthukrishnan and Nikolov, Theorem 2): a shape to compare filters by, never a bound.
    """
    n = task.period
    if n == 1:
        return float(task.magnitude[0] ** 2)
    sizes = np.sort(np.repeat(task.magnitude, multiplicity(n).astype(int)))[::-1]
    places = np.arange(1, n + 1)
    return float((places**2 * sizes**2 / n).max() / (n * math.log2(n) ** 2))
