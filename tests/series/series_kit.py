"""What tests of series share: filters, their dense matrices by definition, and what a strategy releases."""

from typing import TypedDict

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.series import (
    Coefficients,
    Decay,
    Filter,
    MovingAverage,
    PowerDecay,
    RunningSum,
    Seasonal,
    Trend,
    WindowSum,
)
from cloakwork.series.strategies import Strategy


class Claimed(TypedDict):
    """A guarantee, as arguments."""

    epsilon: float
    delta: float


CLAIM: Claimed = {"epsilon": 1.0, "delta": 1e-6}
TEN: dict[str, Filter] = {
    "running sum": RunningSum(),
    "window": WindowSum(7),
    "average": MovingAverage(5),
    "decay": Decay(0.9),
    "power": PowerDecay(0.5),
    "trend": Trend(12),
    "seasonal": Seasonal(7, 3),
    "difference": Coefficients([1.0, -1.0]),
    "looking ahead": Coefficients([0.25, 0.5, 0.25], first=-1),
    "any": Coefficients([0.3, -1.2, 0.0, 2.5, 0.7, -0.1]),
}


def dense(filter_: Filter, n: int) -> FloatArray:
    """The filter as a matrix, entry by entry; averages divide by the weights inside the series."""
    cut = filter_.cut(n)
    matrix = np.zeros((n, n))
    for t in range(n):
        for k, value in enumerate(cut.values.tolist()):
            if 0 <= t - cut.first - k < n:
                matrix[t, t - cut.first - k] += value
        if cut.averaging:
            matrix[t] /= matrix[t].sum()
    return matrix


def circulant(h: FloatArray, n: int) -> FloatArray:
    """The matrix of y_i = sum over j of h_j x_{i - j mod n}, entry by entry."""
    matrix = np.zeros((n, n))
    for i in range(n):
        for j, value in enumerate(h):
            matrix[i, (i - j) % n] += value
    return matrix


def released_matrix(strategy: Strategy, n: int) -> IntArray:
    """What is released, as a matrix of whole numbers, shape (length, n)."""
    return strategy.apply(np.eye(n, dtype=np.int64)).T
