"""Mechanisms: how the noise is shared among the frequencies, or the moments, of a series."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import fft

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.series.noise import Claim, GaussianNoise, Noise
from cloakwork.series.power import inverse, product, square_root
from cloakwork.series.strategies import CausalStrategy, CircularStrategy, Strategy, Task, finest

_FLOOR = 1e-6  # of the mean: frequencies that are worth less are released as if worth this much
_LONG = 1 << 16


class Mechanism(Protocol):
    """Anything that chooses a strategy for a task."""

    def strategy(self, task: Task) -> Strategy:
        """What to release; refused with an `InputError` where this mechanism does not serve the task."""

    def noise(self, strategy: Strategy, claim: Claim) -> Noise:
        """The noise with which the strategy meets the claim."""


@dataclass(frozen=True)
class Fourier:
    """Noise of variance in inverse proportion to what each frequency is worth: the best of all on a circle.

    Notes
    -----
    With unnormalised Fourier coefficients H_i of the filter, weights of spectrum W_i = sqrt |H_i| have the norm
    ||w||^2 = (1/N) sum |H_i|, and answers from them the variance (1/N) sum |H_i|^2 / |W_i|^2, so that mean squared
    error at noise sigma = ||w|| / mu is ((1/N) sum |H_i|)^2 / mu^2: by Cauchy and Schwarz no other W does better. In
    the unitary coefficients h^ of Fawaz, Muthukrishnan and Nikolov this is ||h^||_1^2 / (N mu^2).
    """

    def strategy(self, task: Task) -> Strategy:
        magnitude = task.magnitude
        root = np.sqrt(np.where(magnitude > 0, np.maximum(magnitude, _FLOOR * magnitude.mean()), 0.0))
        return finest(fft.irfft(root, task.period), lambda weights: CircularStrategy(task, weights))

    def noise(self, strategy: Strategy, claim: Claim) -> Noise:
        return GaussianNoise.meeting(strategy, claim)


@dataclass(frozen=True)
class SquareRoot:
    """Releases the square root of the filter, which looks back only: the one to use as data arrives.

    Notes
    -----
    The lower triangular Toeplitz matrix A of the filter is C C, with C that of the square root of its power series.
    C x is released with noise ||c|| / mu, and the output is C times that. (Henzinger, Upadhyay and Upadhyay; with
    running sums, Fichtenberger, Henzinger and Upadhyay.)
    """

    def strategy(self, task: Task) -> Strategy:
        values = causal_values(task)
        root = square_root(values, task.n)
        ideal = _cost(root, product(values, inverse(root, task.n), task.n), task)
        return finest(root, lambda weights: CausalStrategy(task, weights, ideal))

    def noise(self, strategy: Strategy, claim: Claim) -> Noise:
        return GaussianNoise.meeting(strategy, claim)


@dataclass(frozen=True)
class Least:
    """Whichever of `Fourier` and `SquareRoot` has the smaller error; that depends on the filter alone, not on data.

    For long series, where the two differ by 3 % at the most, `Fourier`, which is quicker to work out.
    """

    def strategy(self, task: Task) -> Strategy:
        first = Fourier().strategy(task)
        if task.n > _LONG:
            return first
        try:
            second = SquareRoot().strategy(task)
        except InputError:
            return first
        return min(first, second, key=lambda one: one.ideal)

    def noise(self, strategy: Strategy, claim: Claim) -> Noise:
        return GaussianNoise.meeting(strategy, claim)


def causal_values(task: Task) -> FloatArray:
    """The coefficients of a task that can be worked out looking back only."""
    if task.circular or len(task.taps) != 1:
        raise InputError("SquareRoot() serves one filter without wrapping around: use Fourier() for others.")
    taps = task.taps[0]
    if taps.first != 0 or taps.values[0] <= 0:
        raise InputError(
            "SquareRoot() serves filters that look back and have a first coefficient above 0: use Fourier() for others."
        )
    return taps.values


def _cost(root: FloatArray, answer: FloatArray, task: Task) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        each = np.cumsum(answer**2) * task.scales[0] ** 2
        cost = float(each.mean() * (root**2).sum())
    return cost if np.isfinite(cost) else np.inf
