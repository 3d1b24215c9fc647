"""Walsh coefficients, and the whole weights with which they are released."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray, frozen


def transformed(values: NDArray[Any]) -> NDArray[Any]:
    """The Walsh-Hadamard transform along the last axis, of a length 2^d: sum over b of (-1)^{T.b} values[b].

    Twice the transform is 2^d times the values. Exact for whole numbers.

    >>> transformed(np.array([3, 1, 0, 2])).tolist()
    [6, 0, 2, 4]
    """
    result = np.array(values)
    size = result.shape[-1]
    half = 1
    while half < size:
        pairs = result.reshape(*result.shape[:-1], size // (2 * half), 2, half)
        first, second = pairs[..., 0, :].copy(), pairs[..., 1, :]
        pairs[..., 0, :] += second
        pairs[..., 1, :] = first - second
        half *= 2
    return result


@dataclass(frozen=True, eq=False)
class WalshStrategy:
    """A whole weight for each coefficient: weight times coefficient is released.

    `worth` is what a unit of variance in each coefficient adds to the mean squared error of the outputs.

    Notes
    -----
    A row, or a count, enters each coefficient as +1 or -1, so one unit moves the release by exactly ||a||_2. At noise
    ||a|| / mu the mean squared error is (sum a_T^2) (sum worth_T / a_T^2) / mu^2. By Cauchy and Schwarz its minimum is
    (sum sqrt worth_T)^2 / mu^2, for a_T^2 proportional to sqrt worth_T.
    """

    worth: FloatArray
    weights: IntArray
    variances: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        mean = float((self.worth / self.weights.astype(np.float64) ** 2).sum())
        object.__setattr__(self, "variances", np.array([[mean]]))
        object.__setattr__(self, "weights", frozen(self.weights))

    @property
    def length(self) -> int:
        return len(self.weights)

    @property
    def ideal(self) -> float:
        return float(np.sqrt(self.worth).sum()) ** 2

    def applied(self, steps: IntArray) -> IntArray:
        return steps * self.weights

    def outputs(self, released: FloatArray) -> FloatArray:
        return np.asarray(released / self.weights)[None]
