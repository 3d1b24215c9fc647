"""Walsh coefficients: whole numbers themselves, so that each can go out with its own noise."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray, frozen
from cloakwork.privacy import WordSource
from cloakwork.series.noise import Claim, GaussianNoise
from cloakwork.series.strategies import Strategy, finest


def transformed(values: NDArray[Any]) -> NDArray[Any]:
    """The Walsh-Hadamard transform along the last axis, of a length 2^d: sum over b of (-1)^{T.b} values[b].

    Twice the transform is 2^d times the values. Exact for whole numbers.

    >>> transformed(np.array([3, 1, 0, 2])).tolist()
    [6, 0, 2, 4]
    """
    found = np.array(values)
    size = found.shape[-1]
    half = 1
    while half < size:
        pairs = found.reshape(*found.shape[:-1], size // (2 * half), 2, half)
        first, second = pairs[..., 0, :].copy(), pairs[..., 1, :]
        pairs[..., 0, :] += second
        pairs[..., 1, :] = first - second
        half *= 2
    return found


@dataclass(frozen=True, eq=False)
class WalshStrategy:
    """A whole weight for each coefficient: weight times coefficient is released.

    `worth` says what a unit of variance in each coefficient adds to the mean squared error of what is wanted.

    Notes
    -----
    A row, or a count, enters each coefficient as +1 or -1, so that one unit moves the release by ||a||_2 exactly. At
    noise ||a|| / mu the mean squared error is (sum a_T^2) (sum worth_T / a_T^2) / mu^2, which by Cauchy and Schwarz is
    least, (sum sqrt worth_T)^2 / mu^2, for a_T^2 proportional to sqrt worth_T.
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


@dataclass(frozen=True, eq=False)
class CoefficientRelease:
    """Coefficients with the least noise for what they are worth, and what that costs."""

    strategy: Strategy
    noise: GaussianNoise
    units: int

    @classmethod
    def meeting(cls, worth: FloatArray, claim: Claim) -> "CoefficientRelease":
        """The best release for a claim; all coefficients must be worth something."""
        strategy = finest(worth**0.25, lambda weights: WalshStrategy(worth, np.maximum(weights, 1)))
        return cls(strategy, GaussianNoise.meeting(strategy, claim), claim.units)

    @property
    def variances(self) -> FloatArray:
        """Variance of each coefficient, shape (length,)."""
        return np.asarray(self.noise.variance / self.strategy.weights.astype(np.float64) ** 2)

    @property
    def expected_mse(self) -> float:
        """Mean squared error of what is wanted, with the cost of rounding."""
        return float(self.strategy.variances.mean()) * self.noise.variance

    @property
    def ideal_mse(self) -> float:
        """What weights and noise of any precision would reach."""
        return self.strategy.ideal * self.noise.ideal * self.units**2

    def estimates(self, coefficients: IntArray, words: WordSource) -> FloatArray:
        """The coefficients with their noise, shape (length,) in and out."""
        exact = self.strategy.applied(coefficients)
        return np.asarray(self.strategy.outputs((exact + self.noise.draw(exact.size, words)).astype(np.float64))[0])
