"""Mechanisms: how the noise is shared among the frequencies, or the moments, of a series."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import fft

from cloakwork.errors import InputError
from cloakwork.series.causal import SquareRoot
from cloakwork.series.given import said
from cloakwork.series.noise import Claim, GaussianNoise, Noise
from cloakwork.series.strategies import CircularStrategy, Strategy, Task, finest

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


def mechanism_of(given: Any) -> Mechanism:
    """The mechanism that was given, the best for each task where none was; refused where it is something else."""
    if given is None:
        return Least()
    has_all = callable(getattr(given, "strategy", None)) and callable(getattr(given, "noise", None))
    if isinstance(given, type) or not has_all:
        raise InputError(
            f"mechanism={said(given)}: give a mechanism, an object such as cloakwork.Fourier() or "
            "cloakwork.PaperLaplace(), or leave it out."
        )
    found: Mechanism = given
    return found
