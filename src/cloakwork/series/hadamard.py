"""Walsh coefficients: whole numbers that are released once, each with its own noise."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray, count, frozen
from cloakwork.errors import CalibrationError
from cloakwork.privacy import Immutable, Ledger, WordSource, check_claim
from cloakwork.series.release_noise import GaussianNoise, ReleaseClaim, odds_text, percent_text
from cloakwork.series.strategies import Strategy, finest


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


class CoefficientsCloak(Immutable):
    """Releases Walsh coefficients once, with the least noise for what each is worth; all must be worth something."""

    def __init__(self, worth: FloatArray, *, epsilon: float, delta: float, contribution: int, owner: str) -> None:
        check_claim(epsilon, delta)
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.contribution = count("contribution", contribution, error=CalibrationError)
        self.strategy: Strategy = finest(worth**0.25, lambda weights: WalshStrategy(worth, np.maximum(weights, 1)))
        claim = ReleaseClaim(self.epsilon, self.delta, self.contribution)
        self.noise = GaussianNoise.meeting(self.strategy, claim)
        self._ledger = Ledger(
            1,
            unit="release",
            owner=owner,
            remedy="Each release costs its own budget; to experiment, use simulate(..., rng=...).",
        )

    @property
    def coefficients(self) -> int:
        """Number of Walsh coefficients that are released."""
        return self.strategy.length

    @property
    def coefficient_variances(self) -> FloatArray:
        """Variance of each coefficient, shape (coefficients,)."""
        return np.asarray(self.noise.variance / self.strategy.weights.astype(np.float64) ** 2)

    @property
    def expected_mse(self) -> float:
        """Mean squared error over all outputs, including the cost of rounding."""
        return float(self.strategy.variances.mean()) * self.noise.variance

    @property
    def ideal_mse(self) -> float:
        """The mean squared error with unrounded weights and noise."""
        return self.strategy.ideal * self.noise.ideal * self.contribution**2

    @property
    def rounding_cost(self) -> float:
        """The increase of the mean squared error due to whole weights and noise, as a fraction."""
        return self.expected_mse / self.ideal_mse - 1

    def _estimates(self, coefficients: IntArray, words: WordSource) -> FloatArray:
        """The coefficients with their noise, same shape."""
        exact = self.strategy.applied(coefficients)
        return np.asarray(self.strategy.outputs((exact + self.noise.draw(exact.size, words)).astype(np.float64))[0])

    def _hidden(self, outputs: str) -> tuple[str, ...]:
        rows = "one row is" if self.contribution == 1 else f"up to {self.contribution} rows are"
        odds = odds_text(self.epsilon, self.delta)
        return (f"Someone who sees {outputs} can hardly tell whether {rows} present: {odds}.",)

    def _not_hidden(self, public: str) -> tuple[str, ...]:
        rows = "one row" if self.contribution == 1 else f"{self.contribution} rows"
        return (
            f"{public} A person with k times {rows} is hidden with k mu only.",
            "Publishing other tables of the same rows adds up: each release spends its own (epsilon, delta).",
        )

    @property
    def _rounding(self) -> str:
        return f"Whole numbers cost {percent_text(self.rounding_cost)} of the mean squared error."
