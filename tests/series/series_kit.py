"""What tests of series share: filters, their dense matrices by definition, and strategies as dense matrices."""

from collections.abc import Callable
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
from cloakwork.series.strategies import Strategy, Task


class Claimed(TypedDict):
    """A claim, as arguments."""

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


def task_of(filters: Filter | list[Filter], n: int, *, circular: bool = False) -> Task:
    several = filters if isinstance(filters, list) else [filters]
    return Task(n, tuple(one.taps(n) for one in several), circular)


def released_matrix(strategy: Strategy, n: int) -> IntArray:
    """What is released, as a matrix of whole numbers, shape (length, n)."""
    return np.stack([strategy.applied(row[None])[0] for row in np.eye(n, dtype=np.int64)], axis=1)


def answer_matrix(strategy: Strategy) -> FloatArray:
    """How outputs follow from what is released, shape (filters, n, length)."""
    return np.swapaxes(strategy.outputs(np.eye(strategy.length)), 1, 2)


def looped(weight: Callable[[int], float], n: int, *, averaging: bool = False) -> FloatArray:
    """The matrix of y_t = sum over s of weight(t - s) x_s, entry by entry; averages divide by the weights there are."""
    matrix = np.array([[weight(t - s) for s in range(n)] for t in range(n)])
    if averaging:
        whole = sum(weight(lag) for lag in range(-3 * n - 300, 3 * n + 301))
        matrix *= whole / matrix.sum(axis=1, keepdims=True)
    return matrix


def circulant(h: FloatArray, n: int) -> FloatArray:
    """The matrix of y_i = sum over j of h_j x_{i - j mod n}, entry by entry."""
    matrix = np.zeros((n, n))
    for i in range(n):
        for j, value in enumerate(h):
            matrix[i, (i - j) % n] += value
    return matrix
