"""Noise of any size from small tables.

Rounded Gaussian noise of s = sigma / step steps needs a table of 13.5 s cut points. Up to a few hundred steps there is
one such table. Noise of more steps is a sum: a fine table for the last steps, and coarser ones that count in
multiples of a factor, so that no device needs more than 56 kB.
"""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import positive
from cloakwork.errors import CalibrationError
from cloakwork.privacy.cuts import cut_count, cuts_error, discrete_cuts, rounded_cuts
from cloakwork.sensor import WORD_BYTES

COMPOSITION_ERROR = 2.2e-34  # what adding one coarser level costs at the most
_SMOOTH = Fraction(33, 16)  # fine noise in units of the coarse step: less, and the sum would show the coarse steps
_BITS = 40


class TableSize(NamedTuple):
    """What a kind of machine can hold: steps of noise, bytes, and the most error that any of its tables has."""

    ratio: float
    bytes: int
    error: float


DEVICE_TABLES = TableSize(2.0**24, 56 * 1024, 1e-33)
SERVER_TABLES = TableSize(2.0**40, 512 * 1024, 2e-33)


@dataclass(frozen=True, eq=False)
class Level:
    """One of the tables: what it gives counts `factor` steps each. `cuts` is the form that the sensor reads."""

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

    A draw is the sum over the levels of factor times the look-up of a random word of its own. `error` bounds the sum
    of the absolute errors of all probabilities plus the mass that the tables leave out.
    """

    ratio: float
    levels: tuple[Level, ...]
    error: float

    @property
    def cuts(self) -> bytes:
        """The cut points of all levels, one after the other: the file that a device gets."""
        return b"".join(level.cuts for level in self.levels)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of factor and number of cut points of each level (8 bytes each, big-endian), then the cut points."""
        head = b"".join(level.factor.to_bytes(8, "big") + level.count.to_bytes(8, "big") for level in self.levels)
        return hashlib.sha256(head + self.cuts).hexdigest()


@dataclass(frozen=True)
class Part:
    """One term of the sum: `factor` times Gaussian noise of standard deviation `parameter`."""

    factor: int
    parameter: Fraction


def table_ratio(ratio: float) -> float:
    """Noise in steps, a hair more, to 40 bits: never less noise, and one table for ratios that differ by roundings."""
    mantissa, exponent = math.frexp(ratio * (1 + 1e-15))
    return math.ldexp(math.ceil(mantissa * 2**40) / 2**40, exponent)


@lru_cache(maxsize=64)
def noise_table(ratio: float, *, size: TableSize = DEVICE_TABLES) -> NoiseTable:
    """The table for noise of `ratio` steps standard deviation: as few levels as fit in `size`.

    >>> [(level.factor, level.count) for level in noise_table(3017.0).levels]
    [(38, 1073), (1, 1060)]
    """
    ratio = positive("sigma/step", ratio, error=CalibrationError)
    if ratio > size.ratio:
        raise CalibrationError(
            f"sigma is {ratio:,.0f} steps: there are tables for up to {size.ratio:,.0f}. Give a coarser resolution.",
            ratio=ratio,
        )
    return composed(ratio, fewest_parts(ratio, size.bytes))


def fewest_parts(ratio: float, most_bytes: int = DEVICE_TABLES.bytes) -> tuple[Part, ...]:
    """Noise of at least `ratio` steps as the sum of as few terms as fit in `most_bytes`, from coarse to fine."""
    terms = 1
    while sum(cut_count(part.parameter) for part in parts(ratio, terms)) * WORD_BYTES > most_bytes:
        terms += 1
    return parts(ratio, terms)


def composed(ratio: float, terms: tuple[Part, ...]) -> NoiseTable:
    """The table of a sum: the last term is a rounded Gaussian, the coarser ones are discrete.

    Notes
    -----
    Let D be discrete Gaussian noise of parameter r and N be normal with standard deviation f. The density of B D + N
    at x is proportional to

        sum_k exp(-k^2 / (2 r^2)) exp(-(x - B k)^2 / (2 f^2)) = exp(-x^2 / (2 S^2)) theta(x),   S^2 = B^2 r^2 + f^2,

    where theta(x) = sum_k exp(-(k - c x)^2 / (2 tau^2)), c = B r^2 / S^2 and 1/tau^2 = 1/r^2 + B^2/f^2. By Poisson's
    formula theta is tau sqrt(2 pi) (1 + 2 sum_{n>0} exp(-2 pi^2 n^2 tau^2) cos(2 pi n c x)): constant within a factor
    of 1 +- rho, rho = 2 sum_{n>0} exp(-2 pi^2 n^2 tau^2), which is at most 1.06e-34 for tau >= 2. So B D + N has the
    density of N(0, S^2) up to 2 rho / (1 - rho) in the sum of absolute differences, and rounding it is
    post-processing. Since B D is whole, rounding the sum is the same as rounding N alone. Where N is a discrete
    Gaussian too, the same sum over whole x gives the discrete Gaussian of parameter S, with the same error (Peikert;
    Micciancio and Walter).
    """
    *coarse, fine = terms
    levels = [Level(part.factor, discrete_cuts(part.parameter)) for part in coarse]
    levels.append(Level(fine.factor, rounded_cuts(fine.parameter)))
    error = sum(cuts_error(level.count) for level in levels) + COMPOSITION_ERROR * len(coarse)
    return NoiseTable(ratio, tuple(levels), error)


def parts(ratio: float, terms: int) -> tuple[Part, ...]:
    """Noise of at least `ratio` steps as a sum of so many terms, from coarse to fine.

    Each split takes off fine noise of f = 2.0625 B steps and leaves B times noise of parameter r, the smallest number
    of 40 bits with B^2 r^2 + f^2 >= s^2: the noise is never less than asked for. Exact, and therefore the same
    everywhere.
    """
    factor, rest = 1, Fraction(ratio)
    found: list[Part] = []
    for left in range(terms, 1, -1):
        base = _whole_root(rest // 2, left)
        fine = _SMOOTH * base
        found.append(Part(factor, fine))
        factor, rest = factor * base, _root_above((rest**2 - fine**2) / base**2)
    return (Part(factor, rest), *reversed(found))


def _whole_root(value: int, degree: int) -> int:
    """The largest whole number, from 2 on, whose power is not above `value`."""
    root = 2
    while (root + 1) ** degree <= value:
        root += 1
    return root


def _root_above(square: Fraction) -> Fraction:
    """The smallest number of 40 bits whose square is not below `square`, which is above 1."""
    shift = max(2 * _BITS - math.floor(square).bit_length(), 0) & ~1
    goal = math.ceil(square * (1 << shift))
    return Fraction(math.isqrt(goal - 1) + 1, 1 << (shift // 2))
