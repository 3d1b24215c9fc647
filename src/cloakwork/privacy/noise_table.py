"""Noise tables: rounded Gaussian noise of any size from small tables of cut points.

Noise of s = sigma / step steps needs a table of 13.5 s cut points. Up to a few hundred steps, one table is enough.
Larger noise is a sum: a fine table for the last steps and coarser tables that count in multiples of a factor, so no
device needs more than 56 kB.

Cut point j is round(P(|K| <= j) 2^127). For the rounded Gaussian, K = round(N(0, s^2)) and
P(|K| <= j) = erf((j + 1/2) / (s sqrt 2)); for the discrete Gaussian, P(K = k) is proportional to exp(-k^2 / (2 s^2)).
The arithmetic uses integers with 192 bits after the point, so every machine makes the same table.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import positive
from cloakwork.errors import CalibrationError
from cloakwork.sensor import WORD_BYTES

COMPOSITION_ERROR = 2.2e-34  # upper bound on the error that each coarser level adds
CUT_BITS = 127
REACH = Fraction(27, 2)  # standard deviations: the mass beyond is below 2^-135
_FINE_NOISE = Fraction(33, 16)  # in units of the coarse step: with less, the coarse steps would show in the sum
_RATIO_BITS = 40
_BITS = 192
_ONE = 1 << _BITS
_INVERSE_ROOT_TWO_PI = 0x662114CF50D942343F2CF1402EAE38BFD3829F30512706D8  # of _ONE
_LEAST_DENSITY = 32  # lattice points per standard deviation
_LEAST_PARAMETER = Fraction(1, 32)  # smaller rounded noise is always zero, to 2^-188


class TableSize(NamedTuple):
    """Limits of a kind of machine: noise in steps, bytes, and the largest error of any of its tables."""

    ratio: float
    bytes: int
    error: float


DEVICE_TABLES = TableSize(2.0**24, 56 * 1024, 1e-33)
SERVER_TABLES = TableSize(2.0**40, 512 * 1024, 2e-33)


@dataclass(frozen=True, eq=False)
class Level:
    """One table of a sum: each unit counts `factor` steps. `cuts` holds the bytes that a sensor reads."""

    factor: int
    cuts: bytes

    @property
    def count(self) -> int:
        """Number of cut points."""
        return len(self.cuts) // WORD_BYTES

    @cached_property
    def words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Upper and lower 64 bits of the cut points, for the bulk sampler."""
        halves = np.frombuffer(self.cuts, dtype=">u8").reshape(-1, 2).astype(np.uint64)
        return np.ascontiguousarray(halves[:, 0]), np.ascontiguousarray(halves[:, 1])


@dataclass(frozen=True, eq=False)
class NoiseTable:
    """The tables for one ratio of sigma to step, from coarse to fine.

    A draw looks up one random word per level and adds the results, each times its factor. `error` bounds the sum of
    the absolute errors of all probabilities plus the mass that the tables leave out.
    """

    ratio: float
    levels: tuple[Level, ...]
    error: float

    @property
    def cuts(self) -> bytes:
        """The cut points of all levels, one after the other: the table file of a device."""
        return b"".join(level.cuts for level in self.levels)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of each level's factor and number of cut points (8 bytes each, big-endian), then all cut points."""
        head = b"".join(level.factor.to_bytes(8, "big") + level.count.to_bytes(8, "big") for level in self.levels)
        return hashlib.sha256(head + self.cuts).hexdigest()


@dataclass(frozen=True)
class Part:
    """One term of the sum: `factor` times Gaussian noise of standard deviation `parameter`."""

    factor: int
    parameter: Fraction


def table_ratio(ratio: float) -> float:
    """Round a ratio of sigma to step up to 40 bits: never less noise, and one table for nearly equal ratios."""
    mantissa, exponent = math.frexp(ratio * (1 + 1e-15))
    return math.ldexp(math.ceil(mantissa * 2**40) / 2**40, exponent)


@lru_cache(maxsize=64)
def noise_table(ratio: float, *, size: TableSize = DEVICE_TABLES) -> NoiseTable:
    """Make the table for noise with a standard deviation of `ratio` steps, with as few levels as fit in `size`.

    >>> [(level.factor, level.count) for level in noise_table(3017.0).levels]
    [(38, 1073), (1, 1060)]
    """
    ratio = positive("sigma/step", ratio, error=CalibrationError)
    if ratio > size.ratio:
        raise CalibrationError(
            f"sigma is {ratio:,.0f} steps: tables go up to {size.ratio:,.0f}. Give a coarser resolution.",
            ratio=ratio,
            most=size.ratio,
        )
    return composed(ratio, fewest_parts(ratio, size.bytes))


@lru_cache(maxsize=8)
def discrete_table(ratio: float) -> NoiseTable:
    """Make the one table of the discrete Gaussian with this parameter."""
    cuts = discrete_cuts(Fraction(ratio))
    return NoiseTable(ratio, (Level(1, cuts),), cuts_error(len(cuts) // WORD_BYTES))


def fewest_parts(ratio: float, most_bytes: int = DEVICE_TABLES.bytes) -> tuple[Part, ...]:
    """Split noise of at least `ratio` steps into as few terms as fit in `most_bytes`, from coarse to fine."""
    terms = 1
    while sum(cut_count(part.parameter) for part in parts(ratio, terms)) * WORD_BYTES > most_bytes:
        terms += 1
    return parts(ratio, terms)


def composed(ratio: float, terms: tuple[Part, ...]) -> NoiseTable:
    """Make the table of a sum: the last term is a rounded Gaussian, the coarser ones are discrete.

    Notes
    -----
    Let D be discrete Gaussian noise of parameter r and N be normal with standard deviation f. The density of B D + N
    at x is proportional to

        sum_k exp(-k^2 / (2 r^2)) exp(-(x - B k)^2 / (2 f^2)) = exp(-x^2 / (2 S^2)) theta(x),   S^2 = B^2 r^2 + f^2,

    where theta(x) = sum_k exp(-(k - c x)^2 / (2 tau^2)), c = B r^2 / S^2 and 1/tau^2 = 1/r^2 + B^2/f^2. By Poisson's
    formula theta is tau sqrt(2 pi) (1 + 2 sum_{n>0} exp(-2 pi^2 n^2 tau^2) cos(2 pi n c x)): constant within a factor
    of 1 +- rho, rho = 2 sum_{n>0} exp(-2 pi^2 n^2 tau^2), which is at most 1.06e-34 for tau >= 2. So B D + N has the
    density of N(0, S^2) up to 2 rho / (1 - rho) in the sum of absolute differences, and rounding it is
    post-processing. Since B D is an integer, rounding the sum is the same as rounding N alone. Where N is a discrete
    Gaussian too, the same sum over integers x gives the discrete Gaussian of parameter S, with the same error (Peikert;
    Micciancio and Walter).
    """
    *coarse, fine = terms
    levels = [Level(part.factor, discrete_cuts(part.parameter)) for part in coarse]
    levels.append(Level(fine.factor, rounded_cuts(fine.parameter)))
    error = sum(cuts_error(level.count) for level in levels) + COMPOSITION_ERROR * len(coarse)
    return NoiseTable(ratio, tuple(levels), error)


def parts(ratio: float, terms: int) -> tuple[Part, ...]:
    """Split noise of at least `ratio` steps into this many terms, from coarse to fine.

    Each split takes off fine noise of f = 2.0625 B steps and leaves B times noise of parameter r, the smallest number
    of 40 bits with B^2 r^2 + f^2 >= s^2, so the noise is never less than requested. The arithmetic is exact, so every
    machine makes the same split.
    """
    factor, rest = 1, Fraction(ratio)
    fine_parts: list[Part] = []
    for left in range(terms, 1, -1):
        base = _whole_root(rest // 2, left)
        fine = _FINE_NOISE * base
        fine_parts.append(Part(factor, fine))
        factor, rest = factor * base, _root_above((rest**2 - fine**2) / base**2)
    return (Part(factor, rest), *reversed(fine_parts))


def _whole_root(value: int, degree: int) -> int:
    """The largest integer, at least 2, whose power does not exceed `value`."""
    root = max(2, int(value ** (1 / degree)))  # a float: exact to a few units
    while root > 2 and root**degree > value:
        root -= 1
    while (root + 1) ** degree <= value:
        root += 1
    return root


def _root_above(square: Fraction) -> Fraction:
    """The smallest number of 40 bits whose square is not below `square`, which is above 1."""
    shift = max(2 * _RATIO_BITS - math.floor(square).bit_length(), 0) & ~1
    goal = math.ceil(square * (1 << shift))
    return Fraction(math.isqrt(goal - 1) + 1, 1 << (shift // 2))


def cut_count(parameter: Fraction) -> int:
    """Number of cut points in a table of this standard deviation."""
    return math.ceil(REACH * parameter) + 1


def cuts_error(count: int) -> float:
    """Bound the error of a table of `count` cut points.

    The bound covers the absolute errors of all probabilities, each the difference of two cut points that are off by at
    most one, plus the mass that the table leaves out.
    """
    return (2 * count + 4) * 2.0**-CUT_BITS


def rounded_cuts(parameter: Fraction) -> bytes:
    """Make the cut points of round(N(0, parameter^2)).

    Notes
    -----
    A cell of width h around x holds phi(x) h sum over even k of He_k(x) (h/2)^k / (k+1)!, since the k-th
    derivative of phi is (-1)^k He_k phi. phi itself steps along the lattice by two multiplications a point.
    """
    parameter = max(parameter, _LEAST_PARAMETER)
    pieces = 2 * math.ceil(_LEAST_DENSITY / parameter / 2) + 1 if parameter < _LEAST_DENSITY else 1
    last = cut_count(parameter)
    masses = _lattice_masses(parameter * pieces, last * pieces + pieces // 2 + 1)
    first = 2 * sum(masses[: pieces // 2 + 1]) - masses[0]
    cells = (2 * sum(masses[j * pieces - pieces // 2 : j * pieces + pieces // 2 + 1]) for j in range(1, last))
    return _encoded(accumulate(cells, initial=first), _ONE)


def discrete_cuts(parameter: Fraction) -> bytes:
    """Make the cut points of the discrete Gaussian: P(K = k) is proportional to exp(-k^2 / (2 parameter^2))."""
    weights = list(_weights(parameter))
    whole = 2 * sum(weights) - weights[0]
    cells = (2 * weight for weight in weights[1 : cut_count(parameter)])
    return _encoded(accumulate(cells, initial=weights[0]), whole)


def _encoded(sums: Iterator[int], whole: int) -> bytes:
    """Encode `sums / whole` as cut points below 2^127, the largest magnitude of a word."""
    most = (1 << CUT_BITS) - 1
    cuts = (min(((total << (CUT_BITS + 1)) + whole) // (2 * whole), most) for total in sums)
    return b"".join(cut.to_bytes(WORD_BYTES, "big") for cut in cuts)


def _weights(parameter: Fraction) -> Iterator[int]:
    """exp(-k^2 / (2 parameter^2)) for k = 0, 1, ... while it is above 2^-192."""
    square = 1 / parameter**2
    weight, ratio, shrink = _ONE, _exp_minus(square / 2), _exp_minus(square)
    while weight:
        yield weight
        weight = weight * ratio >> _BITS
        ratio = ratio * shrink >> _BITS


def _lattice_masses(density: Fraction, points: int) -> list[int]:
    """Gaussian mass within half a lattice step of i / density, for i = 0, 1, ..., in units of 2^-192."""
    step = 1 / density
    polynomial = _cell_polynomial(step)
    square = _fixed(step * step)
    height = _fixed(step) * _INVERSE_ROOT_TWO_PI >> _BITS
    masses = []
    for i, weight in enumerate(islice(_weights(density), points)):
        x2 = i * i * square
        series = 0
        for coefficient in polynomial:
            series = coefficient + (series * x2 >> _BITS)
        masses.append((weight * height >> _BITS) * series >> _BITS)
    return masses


def _cell_polynomial(step: Fraction) -> list[int]:
    """Coefficients in x^2, highest first, of sum over even k of He_k(x) (step/2)^k / (k+1)!."""
    hermite_now, hermite_next = [1], [0, 1]
    total: dict[int, Fraction] = {}
    half = step / 2
    for k in range(80):
        if k % 2 == 0:
            factor = half**k / math.factorial(k + 1)
            for power in range(0, k + 1, 2):
                total[power] = total.get(power, Fraction(0)) + hermite_now[power] * factor
            if (half * 16) ** k * 2**150 < math.factorial(k + 1):
                break
        after = [0, *hermite_next]
        for power, value in enumerate(hermite_now):
            after[power] -= (k + 1) * value
        hermite_now, hermite_next = hermite_next, after
    return [_fixed(total[power]) for power in sorted(total, reverse=True)]


def _fixed(value: Fraction) -> int:
    return (value.numerator << _BITS) // value.denominator


def _exp_minus(value: Fraction) -> int:
    """exp(-value) for a small value."""
    x = _fixed(value)
    term, total, k = _ONE, _ONE, 0
    while term:
        k += 1
        term = -(term * x >> _BITS) // k if term > 0 else (-term * x >> _BITS) // k
        total += term
    return total
