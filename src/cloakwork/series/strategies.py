"""Strategies: the filter of whole numbers that is released in place of a series.

A series of whole numbers x is released as w * x + noise, where the strategy w is a public filter of whole numbers:
exact arithmetic, an exact sensitivity, and noise that is independent from entry to entry. All outputs follow from that
release alone, so floating point in them does not affect privacy.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import fft
from scipy.linalg import toeplitz

from cloakwork._checks import FloatArray, IntArray, count, describe_argument, read_only
from cloakwork.errors import InputError
from cloakwork.series.convolution import convolve_whole, inverse, product, square_root, wrapped
from cloakwork.series.filters import Filter

MechanismName = Literal["least", "fourier", "square-root"]
"""`fourier` is the best on a circle, `square-root` works as data arrives, `least` takes the one with less error."""

_NEGLIGIBLE = 1e-13  # of the largest Fourier coefficient: the rounding error of a transform
_FLOOR = 1e-6  # of the mean magnitude: frequencies of lower weight are released with this one
_BITS = range(10, 31, 2)  # of the norm of a strategy
_ROUNDING_COST = 1e-3  # bits are added until whole coefficients cost less than this
_LONG = 1 << 16  # where both mechanisms differ by at most 3 % and Fourier is quicker
_FINENESS, _FEWEST_POINTS, _MAX_POINTS = 64, 1 << 12, 1 << 22  # of grids on the unit circle
_SMALLEST_SIZE = 1e-9  # of the largest magnitude; smaller ones are raised to it
_GAIN, _LONGEST_LEVEL = 1 << 10, 1 << 12  # of the first value; values of a series whose columns are made equally long
_LEVEL_ENOUGH = 0.99  # of the mean squared norm of columns: the error falls by about what is missing
_BLOCK = 64  # columns at a time
_RISES = (0.25, 0.5, 0.75, 1.0)  # logarithms of what the last coefficient of a root that is cut off is multiplied by


@dataclass(frozen=True)
class Contribution:
    """How much one protected event or person may change, in steps of the values.

    `total` bounds the sum over all bins and series. With `per_bin`, no bin changes by more than that, and bins that
    change are at least `separation` bins from each other, in whatever series they are.

    >>> from cloakwork.series import RunningSum, SeriesCloak
    >>> half_a_day_apart = Contribution(3, per_bin=1, separation=12)
    >>> most = (Contribution(3), half_a_day_apart)
    >>> cloaks = [SeriesCloak(RunningSum(), 72, epsilon=1.0, delta=1e-6, contribution=each) for each in most]
    >>> round((cloaks[1].expected_mse / cloaks[0].expected_mse) ** 0.5, 2)
    0.68
    """

    total: int
    per_bin: int | None = None
    separation: int = 1

    def __post_init__(self) -> None:
        count("total", self.total)
        count("separation", self.separation)
        if self.per_bin is not None:
            count("per_bin", self.per_bin)


@dataclass(frozen=True, eq=False)
class Strategy:
    """Whole weights w, and the kernels that turn the release r = w * x + noise into the outputs.

    Parameters
    ----------
    weights
        w, shape (up to length,).
    kernels
        g, shape (filters, length): output f is g_f * r, times `scales`.
    scales
        Shape (filters, n): 1, except near the ends of averages.
    circular
        Whether both convolutions are circular, with the period `length`. Otherwise they are causal: entry t of the
        release depends on values up to time t alone.
    gains
        Whole factors, shape (n,): value j counts `gains[j]` times in the release w * (gains x), and moves it at most as
        far as value 0 does. Outputs are then g_f * ((1 / w) * r / gains). None: all are 1.
    """

    weights: IntArray
    kernels: FloatArray
    scales: FloatArray
    circular: bool
    gains: IntArray | None = None

    @property
    def n(self) -> int:
        """The number of values of each series."""
        return int(self.scales.shape[1])

    @property
    def length(self) -> int:
        """The number of entries that are released for each series."""
        return int(self.kernels.shape[1])

    @cached_property
    def variances(self) -> FloatArray:
        """The variance of each output for noise of variance 1, shape (filters, n)."""
        squares = self.kernels**2
        if self.gains is None:
            sums = squares.sum(axis=1, keepdims=True) if self.circular else np.cumsum(squares, axis=1)
            return read_only(np.asarray(sums * self.scales**2))
        sums, columns = np.zeros_like(squares), toeplitz(self._inverse, np.zeros(self.n)).T
        for start in range(0, self.n, _BLOCK):
            sums += (self._convolved(self.kernels, columns[start : start + _BLOCK] / self.gains) ** 2).sum(axis=1)
        return read_only(np.asarray(sums * self.scales**2))

    @cached_property
    def largest_sum(self) -> float:
        """How many times the largest value a released number can be."""
        return float(np.abs(self.weights).sum() * (1 if self.gains is None else self.gains.max()))

    def apply(self, values: IntArray) -> IntArray:
        """Return the release of x without noise, exactly, shape (k, n) in, (k, length) out."""
        whole = convolve_whole(self.weights, values if self.gains is None else values * self.gains)
        return wrapped(whole, self.length) if self.circular else whole[:, : self.length]

    def outputs(self, released: FloatArray) -> FloatArray:
        """Return all outputs of a release, shape (k, length) in, (filters, k, n) out."""
        if self.gains is not None:
            [released] = self._convolved(self._inverse[None], released) / self.gains
        return np.asarray(self._convolved(self.kernels, released) * self.scales[:, None])

    @cached_property
    def _inverse(self) -> FloatArray:
        return inverse(self.weights.astype(np.float64), self.n)

    def _convolved(self, kernels: FloatArray, rows: FloatArray) -> FloatArray:
        size = self.length if self.circular else fft.next_fast_len(2 * self.length, real=True)
        return np.asarray(fft.irfft(fft.rfft(kernels, size)[:, None] * fft.rfft(rows, size), size)[..., : self.n])

    def sensitivity(self, contribution: Contribution) -> float:
        """Return how far one event or person moves the release, in the Euclidean norm, rounded up.

        Notes
        -----
        A change of one unit moves the release by a shifted w. Changes of `total` units are mixtures of `total` such
        moves in one place: total ||w||_2. If a person changes k bins, each by at most p and at least b apart, then
        the squared length is at most p^2 (k R_0 + 2 sum over d < k of (k - d) R_{d b}), where R_m is the largest inner
        product of two shifts of w that are m or more apart (compare Choquette-Choo, McMahan, Rush and Thakurta). With
        gains no column is longer than the first, and those b apart are orthogonal if w has at most b coefficients.
        """
        first = 1 if self.gains is None else int(self.gains[0])
        anywhere = contribution.total * first * norm_above(self.weights) * (1 + 1e-12)
        together = self.gains is not None and len(self.weights) > contribution.separation  # visits are not orthogonal
        if together or contribution.per_bin is None or contribution.per_bin >= contribution.total:
            return anywhere
        bins = -(-contribution.total // contribution.per_bin)
        between = np.arange(min(bins, -(-self.n // contribution.separation)))  # an endless stream has more bins than n
        pairs = self._products[contribution.separation * between] * (bins - between) * np.where(between > 0, 2.0, 1.0)
        return min(anywhere, contribution.per_bin * first * math.sqrt(float(pairs.sum())) * (1 + 1e-9))

    @cached_property
    def _products(self) -> FloatArray:
        """R_m for m < n. Weights count as positive where a shift may lose some of them at the end of the series."""
        size = self.length if self.circular else fft.next_fast_len(2 * self.length, real=True)
        weights = self.weights.astype(np.float64)
        spectrum = fft.rfft(weights if self.circular else np.abs(weights), size)
        products = np.abs(fft.irfft(np.abs(spectrum) ** 2, size)[: self.n]) + 1e-12 * float(weights @ weights)
        return np.asarray(np.maximum.accumulate(products[::-1])[::-1])


def factor(
    filters: Sequence[Filter],
    n: int,
    *,
    circular: bool = False,
    mechanism: MechanismName = "least",
    contribution: Contribution | None = None,
) -> Strategy:
    """Choose what to release of a series of `n` values, so that the outputs of all filters have the least error.

    The choice depends on the filters and on the shape of the contribution, never on data. Several filters share one
    release, which minimises the sum of their mean squared errors.
    """
    if mechanism not in ("least", "fourier", "square-root"):
        raise InputError(f'mechanism={describe_argument(mechanism)}: give "fourier" or "square-root", or leave it out.')
    for each in filters if circular else ():
        if (each.reach or 0) > n:
            raise InputError(f"{each.name} reaches {each.reach} values, more than once around a circle of {n}.", n=n)
    unit = contribution or Contribution(1)
    cut = [each.cut(n) for each in filters]
    back_only = not circular and all(each.first >= 0 for each in cut)
    if mechanism == "square-root" and not back_only:
        raise InputError('mechanism="square-root" serves filters that look back only: use "fourier" for others.')
    drafts = []
    if mechanism != "square-root":
        drafts.append(fourier_strategy(cut, n, circular=circular))
    if mechanism == "square-root" or (mechanism == "least" and back_only and n <= _LONG):
        drafts += _causal_drafts(cut, n, unit)
    best = min(drafts, key=lambda draft: error(draft, unit))
    if not np.isfinite(error(best, unit)):
        raise InputError('the taps of this filter are out of bounds for "square-root": use "fourier".')
    return best


def error(strategy: Strategy, contribution: Contribution) -> float:
    """Return the mean squared error of all outputs with noise as large as the sensitivity; infinite if undefined."""
    variance = float(strategy.variances.mean())
    return variance * strategy.sensitivity(contribution) ** 2 if np.isfinite(variance) else math.inf


def _causal_drafts(filters: Sequence[Filter], n: int, unit: Contribution) -> list[Strategy]:
    """Return good strategies for filters that look back only.

    A root of `separation` coefficients makes the moves of one person orthogonal, so shorter roots may be better. What
    is cut off makes late coefficients worth more.
    """
    shorter = set() if unit.per_bin is None else {(unit.separation << k) // 4 for k in range(n.bit_length() + 2)}
    drafts = [causal_strategy(filters, n, band=band) for band in sorted({n, *(b for b in shorter if 0 < b < n)})]
    if unit.per_bin is not None:
        bands = {min(unit.separation, n), len(min(drafts, key=lambda draft: error(draft, unit)).weights)}
        more = itertools.product(bands, _RISES)
        drafts += [causal_strategy(filters, n, band=band, damping=math.exp(rise / band)) for band, rise in more]
    best = min(drafts, key=lambda draft: error(draft, unit))
    return [best, *_levelled(best, filters)]


def fourier_strategy(filters: Sequence[Filter], n: int, *, circular: bool) -> Strategy:
    """Return the best strategy on a circle; unless `circular`, the series is padded with zeros to one.

    Notes
    -----
    With Fourier coefficients H of a filter, weights of spectrum W have the norm ||w||^2 = (1/N) sum |W|^2, and the
    output has the variance (1/N) sum |H / W|^2. By Cauchy and Schwarz the product is least for |W|^2 = |H|, where it is
    ((1/N) sum |H|)^2: in the unitary coefficients h^ of Fawaz, Muthukrishnan and Nikolov, ||h^||_1^2 / N. For several
    filters |H|^2 is the sum over them. Frequencies that no filter uses are not released.
    """
    period = n
    if not circular:
        ahead = max(0, *(-each.first for each in filters))
        back = max(0, *(each.first + len(each.values) - 1 for each in filters))
        period = int(fft.next_fast_len(n + ahead + back, real=True))
    placed = np.zeros((len(filters), period))
    for row, each in zip(placed, filters, strict=True):
        np.add.at(row, (each.first + np.arange(len(each.values))) % period, each.values)
    spectra = fft.rfft(placed)
    scales = np.ones((len(filters), n)) if circular else np.stack([each.scale(n) for each in filters])
    shares = np.sqrt((scales**2).mean(axis=1))  # of each filter in the sum of mean squared errors
    size = np.linalg.norm(np.abs(spectra) * shares[:, None], axis=0)
    used = size > _NEGLIGIBLE * size.max()
    root = np.sqrt(np.where(used, np.maximum(size, _FLOOR * size[used].sum() / len(size)), 0.0))
    frequencies = np.arange(len(size))
    twice = np.where((frequencies > 0) & (2 * frequencies < period), 2.0, 1.0)  # each stands for its negative as well
    worth = (twice * size**2)[used] / (period * len(filters))

    def cost(weights: FloatArray) -> float:
        with np.errstate(divide="ignore"):
            variance = (worth / np.abs(fft.rfft(weights)[used]) ** 2).sum()
        return float(variance * (weights @ weights))

    weights = _rounded(fft.irfft(root, period), cost)
    spectrum = np.where(used, fft.rfft(weights.astype(np.float64)), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        kernels = fft.irfft(np.where(used, spectra / spectrum, 0.0), period)
    return Strategy(read_only(weights), read_only(kernels), scales, circular=True)


def causal_strategy(filters: Sequence[Filter], n: int, *, band: int, damping: float = 1.0) -> Strategy:
    """Return a strategy for filters that look back only: a causal square root.

    `band` keeps only this number of coefficients of the root, so a value is remembered that long. `damping` multiplies
    coefficient k by damping^k; below 1 that moves zeros away from the unit circle.

    Notes
    -----
    Any w with w_0 > 0 can serve: the outputs (h / w) * r follow from the release by a recursion. In the long run the
    error is ||w||^2 sum ||h / w||^2, at least (mean |H|)^2 over the unit circle, with equality for |W|^2 = |H|, where
    |H|^2 is summed over the filters. The square root of h as a power series is such a w if h has no zeros within the
    circle. Otherwise it grows without bound, and the root of the function with the same |H| and no such zeros takes
    its place. The lower triangular Toeplitz matrix of one filter is then the product of two others (Henzinger,
    Upadhyay and Upadhyay).
    """
    taps = [np.concatenate([np.zeros(each.first), each.values]) for each in filters]
    scales = np.stack([each.scale(n) for each in filters])
    falling = [bool((each[1:] <= each[:-1]).all()) and each[-1] >= 0 for each in taps]  # no zeros (Enestrom, Kakeya)
    roots = [square_root(each, band) for each in taps if each[0] > 0]
    if len(filters) > 1 or not falling[0]:
        shares = np.sqrt((scales**2).mean(axis=1))
        roots.append(
            square_root(_minimum_phase([each * share for each, share in zip(taps, shares, strict=True)]), band)
        )

    def kernels(weights: FloatArray) -> FloatArray:
        if not weights[0]:
            return np.full((len(taps), n), np.nan)
        over = inverse(weights, n)
        return np.stack([product(each, over, n) for each in taps])

    def cost(weights: FloatArray) -> float:
        variance = float((np.cumsum(kernels(weights) ** 2, axis=1) * scales**2).mean())
        return variance * float(weights @ weights) if np.isfinite(variance) else math.inf

    best = min((root * damping ** np.arange(band) for root in roots), key=cost)
    weights = _rounded(best, cost)
    return Strategy(read_only(weights), read_only(kernels(weights.astype(np.float64))), scales, circular=False)


def _levelled(plain: Strategy, filters: Sequence[Filter]) -> list[Strategy]:
    """Return the causal strategy in which each value moves the release as far as the first one does, if that may help.

    Notes
    -----
    A late value meets the first weights only, so it would be hidden more than the guarantee asks for. Its gain makes up
    for that (the normalised square root of Henzinger, Kalinin and Upadhyay).
    """
    squares = np.zeros(plain.n)
    squares[: len(plain.weights)] = plain.weights.astype(np.float64) ** 2
    norms = np.sqrt(np.cumsum(squares))[::-1]
    level = (norms**2).mean() > _LEVEL_ENOUGH * norms[0] ** 2
    if level or plain.n > _LONGEST_LEVEL or not np.isfinite(plain.variances).all():
        return []
    gains = np.floor(_GAIN * norms[0] / norms).astype(np.int64)
    kernels = np.zeros((len(filters), plain.n))
    for row, each in zip(kernels, filters, strict=True):
        row[each.first : each.first + len(each.values)] = each.values
    return [Strategy(plain.weights, read_only(kernels), plain.scales, circular=False, gains=read_only(gains))]


def norm_above(weights: IntArray) -> float:
    """Return ||weights||_2, rounded up: how far one unit moves the release."""
    fits = float((weights.astype(np.float64) ** 2).sum()) < 2.0**62
    square = int(weights @ weights) if fits else sum(int(weight) ** 2 for weight in weights)
    return float(np.nextafter(float(math.isqrt(square << 64) + 1) * 2.0**-32, np.inf))


def _rounded(root: FloatArray, cost: Callable[[FloatArray], float]) -> IntArray:
    """Round weights proportional to `root` to as few bits as cost next to nothing."""
    norm = float(np.linalg.norm(root))
    if not (np.isfinite(norm) and norm > 0):
        raise InputError('the taps of this filter are out of bounds for "square-root": use "fourier".')
    ideal = cost(root / norm)
    for bits in _BITS:
        weights = np.rint(root * (2.0**bits / norm))
        if cost(weights) <= (1 + _ROUNDING_COST) * ideal:
            break
    return weights.astype(np.int64)


def _minimum_phase(taps: Sequence[FloatArray]) -> FloatArray:
    """Return the series with the magnitude of all filters together at each frequency and no zeros within the circle.

    Notes
    -----
    The logarithm of such a function has no negative frequencies on the circle; its real part is log |H|.
    """
    length = max(map(len, taps))
    size = grid_points(length)
    sizes = np.linalg.norm([np.abs(fft.rfft(each, size)) for each in taps], axis=0)
    logs = fft.irfft(np.log(np.maximum(sizes, _SMALLEST_SIZE * sizes.max())), size)
    logs[1 : size // 2] *= 2
    logs[size // 2 + 1 :] = 0.0
    return np.asarray(fft.irfft(np.exp(fft.rfft(logs)), size)[:length])


def grid_points(length: int) -> int:
    """Return the number of points on the unit circle on which a polynomial of this length is examined."""
    return min(max(_FINENESS << max(length - 1, 1).bit_length(), _FEWEST_POINTS), _MAX_POINTS)
