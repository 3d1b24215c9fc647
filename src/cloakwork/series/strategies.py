"""Strategies: the filters with whole coefficients that are released in place of a series.

A series of whole numbers x is released as w * x + noise, where the strategy w is a public filter of whole numbers:
exact arithmetic, an exact sensitivity ||w||_2 per unit, and noise that is independent from entry to entry. All answers
follow from that release alone, so floating point in them does not affect privacy.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import fft, signal

from cloakwork._checks import FloatArray, IntArray, frozen
from cloakwork.errors import InputError
from cloakwork.series.convolution import convolve_whole, inverse, product, wrapped
from cloakwork.series.filters import Taps

_NEGLIGIBLE = 1e-13  # of the largest coefficient: the rounding error of a Fourier transform
_FEWEST_BITS, _MOST_BITS = 10, 30  # of the norm of a strategy
_ROUNDING_COST = 1e-3  # bits are added until whole coefficients cost less than this


@dataclass(frozen=True, eq=False)
class Task:
    """The outputs to publish of a series of `n` values: one output series for each of the `taps`.

    If `circular`, the first value follows the last; otherwise the series is 0 before its start and after its end.
    """

    n: int
    taps: tuple[Taps, ...]
    circular: bool = False

    @cached_property
    def period(self) -> int:
        """A length at which circular outputs of the padded series equal the linear ones."""
        if self.circular:
            return self.n
        ahead = max(max(-taps.first, 0) for taps in self.taps)
        back = max(max(taps.first + len(taps.values) - 1, 0) for taps in self.taps)
        return int(fft.next_fast_len(self.n + min(ahead, self.n - 1) + min(back, self.n - 1), real=True))

    @cached_property
    def spectra(self) -> FloatArray:
        """The Fourier coefficients of each filter on the padded circle, shape (filters, period // 2 + 1), complex."""
        kernels = np.zeros((len(self.taps), self.period))
        for kernel, taps in zip(kernels, self.taps, strict=True):
            lags = taps.first + np.arange(len(taps.values))
            met = np.full(len(lags), True) if self.circular else np.abs(lags) < self.n
            np.add.at(kernel, lags[met] % self.period, taps.values[met])
        return np.asarray(fft.rfft(kernels, axis=1))

    @cached_property
    def magnitude(self) -> FloatArray:
        """The weight of each frequency, shape (period // 2 + 1,): the norm of its coefficients in all filters."""
        size = np.sqrt((np.abs(self.spectra) ** 2).sum(axis=0))
        size[size <= _NEGLIGIBLE * size.max()] = 0.0
        return np.asarray(size)

    @cached_property
    def scales(self) -> FloatArray:
        """Factors of the outputs, shape (filters, n); not 1 only near the ends of averages."""
        if self.circular:
            return np.ones((len(self.taps), self.n))
        return np.stack([taps.scale(self.n) for taps in self.taps])


class Strategy(Protocol):
    """A filter of whole numbers to release, and the way from the release to the outputs."""

    @property
    def weights(self) -> IntArray:
        """The coefficients of the filter."""

    @property
    def length(self) -> int:
        """Number of entries released for each series."""

    @property
    def variances(self) -> FloatArray:
        """Variance of each output for noise of variance 1, shape (filters, n)."""

    @property
    def ideal(self) -> float:
        """The mean of variances times ||weights||^2 for coefficients of unlimited precision."""

    def applied(self, steps: IntArray) -> IntArray:
        """The filtered series without noise, shape (k, n) in, (k, length) out."""

    def outputs(self, released: FloatArray) -> FloatArray:
        """All outputs, shape (k, length) in, (filters, k, n) out."""


def norm_above(weights: IntArray) -> float:
    """||weights||_2, rounded up: how far one unit moves the release."""
    small = float((weights.astype(np.float64) ** 2).sum()) < 2.0**62
    square = int(weights @ weights) if small else sum(int(weight) ** 2 for weight in weights)
    return float(np.nextafter(float(math.isqrt(square << 64) + 1) * 2.0**-32, np.inf))


def rounding_cost(strategy: Strategy) -> float:
    """The increase of the mean squared error due to whole coefficients, as a fraction."""
    return float(strategy.variances.mean()) * norm_above(strategy.weights) ** 2 / strategy.ideal - 1.0


def ideal_cost(task: Task) -> float:
    """The mean over all outputs of variance times ||weights||^2 for the best weights on a circle, unrounded."""
    used = task.magnitude > 0
    twice = multiplicity(task.period)[used]
    mean = float((task.magnitude[used] * twice).sum()) / task.period
    each = (np.abs(task.spectra[:, used]) ** 2 / task.magnitude[used] * twice).sum(axis=1) / task.period
    return float((each * (task.scales**2).mean(axis=1)).mean()) * mean


def spectral_shape(task: Task) -> float:
    """specLB(h) = max over K of K^2 |h^_(K)|^2 / (N log2(N)^2), with the unitary coefficients from large to small.

    Notes
    -----
    The mean squared error of any private convolution is at least this times an unknown constant, for small epsilon and
    delta (Fawaz, Muthukrishnan and Nikolov, Theorem 2): it serves to compare filters, never as a bound.
    """
    n = task.period
    if n == 1:
        return float(task.magnitude[0] ** 2)
    sizes = np.sort(np.repeat(task.magnitude, multiplicity(n).astype(int)))[::-1]
    places = np.arange(1, n + 1)
    return float((places**2 * sizes**2 / n).max() / (n * math.log2(n) ** 2))


def finest(root: FloatArray, make: Callable[[IntArray], Strategy]) -> Strategy:
    """The strategy with coefficients proportional to `root`, rounded to as few bits as cost next to nothing."""
    norm = float(np.linalg.norm(root))
    if not (np.isfinite(norm) and norm > 0):
        raise InputError("this filter has no such strategy: its coefficients are out of bounds. Use Fourier().")
    for bits in range(_FEWEST_BITS, _MOST_BITS + 1, 2):
        strategy = make(np.rint(root * (2.0**bits / norm)).astype(np.int64))
        cost = rounding_cost(strategy)
        if cost <= _ROUNDING_COST:
            break
    if not np.isfinite(cost):
        raise InputError("this filter has no such strategy that whole numbers can hold. Use Fourier().")
    return strategy


@dataclass(frozen=True, eq=False)
class CircularStrategy:
    """A strategy on a circle; the series is padded to its length.

    Notes
    -----
    With spectra H_f of the filters and W of the weights, output f has the spectrum H_f / W times that of the release,
    hence the variance (1/N) sum |H_f / W|^2 for noise of variance 1. Frequencies that no filter uses are left out.
    """

    task: Task
    weights: IntArray
    variances: FloatArray = field(init=False)
    _gains: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        spectrum = fft.rfft(self.weights.astype(np.float64))
        used = (self.task.magnitude > 0) & (spectrum != 0)
        if (used != (self.task.magnitude > 0)).any():
            used[:] = False
        gains = np.zeros_like(self.task.spectra)
        np.divide(self.task.spectra, spectrum, out=gains, where=used)
        twice = multiplicity(self.task.period)
        each = (np.abs(gains) ** 2 * twice).sum(axis=1) / self.task.period if used.any() else np.inf
        object.__setattr__(self, "_gains", gains)
        object.__setattr__(self, "weights", frozen(self.weights))
        object.__setattr__(self, "variances", frozen(np.reshape(each, (-1, 1)) * self.task.scales**2))

    @property
    def length(self) -> int:
        return self.task.period

    @property
    def ideal(self) -> float:
        return ideal_cost(self.task)

    def applied(self, steps: IntArray) -> IntArray:
        return wrapped(convolve_whole(self.weights, steps), self.task.period)

    def outputs(self, released: FloatArray) -> FloatArray:
        spectra = fft.rfft(released, axis=-1)
        outputs = fft.irfft(self._gains[:, None, :] * spectra, self.task.period, axis=-1)
        return np.asarray(outputs[..., : self.task.n] * self.task.scales[:, None, :])


@dataclass(frozen=True, eq=False)
class CausalStrategy:
    """A causal strategy for one causal filter: it can be released as data arrives."""

    task: Task
    weights: IntArray
    ideal: float
    variances: FloatArray = field(init=False)
    _answer: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        taps = self.task.taps[0]
        answer = np.full(self.task.n, np.nan)
        if self.weights[0]:
            answer = product(taps.values, inverse(self.weights.astype(np.float64), self.task.n), self.task.n)
        each = np.cumsum(answer**2)
        object.__setattr__(self, "_answer", frozen(answer))
        object.__setattr__(self, "weights", frozen(self.weights))
        object.__setattr__(self, "variances", frozen((each * self.task.scales[0] ** 2)[None, :]))

    @property
    def length(self) -> int:
        return self.task.n

    def applied(self, steps: IntArray) -> IntArray:
        return convolve_whole(self.weights, steps)[..., : self.task.n]

    def outputs(self, released: FloatArray) -> FloatArray:
        outputs = signal.fftconvolve(released, self._answer[None], axes=1)[:, : self.task.n]
        return np.asarray(outputs * self.task.scales[0])[None]


def multiplicity(period: int) -> FloatArray:
    """The number of the `period` frequencies that each of the `period // 2 + 1` stored ones represents."""
    twice = np.full(period // 2 + 1, 2.0)
    twice[0] = 1.0
    if period % 2 == 0:
        twice[-1] = 1.0
    return twice
