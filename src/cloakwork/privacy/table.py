"""Cut points of the rounded Gaussian, to 127 bits, with their error.

The noise is K = round(N(0, s^2)) with s = sigma / step. Its magnitude is at most j with probability
c_j = erf((j + 1/2) / (s sqrt 2)), and the table holds round(c_j 2^127). All arithmetic is in integers with
192 bits after the point.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import positive
from cloakwork.errors import CalibrationError
from cloakwork.sensor import WORD_BYTES

BITS = 192
ONE = 1 << BITS
WORD = 127
REACH = 13.5  # standard deviations: the mass beyond is below 2^-135
LARGEST_RATIO = 2.0**18
QUICK_RATIO = 2.0**14  # a table up to here is made in about a second
_COARSEST = 32  # lattice points per standard deviation, at the least


@dataclass(frozen=True, eq=False)
class NoiseTable:
    """A table for one ratio of sigma to step.

    `cuts` is the form that the sensor reads; `error` bounds the sum of the absolute errors of all
    probabilities plus the mass that the table leaves out.
    """

    ratio: float
    cuts: bytes
    error: float

    @cached_property
    def words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Upper and lower 64 bits of the cut points, for the bulk sampler."""
        halves = np.frombuffer(self.cuts, dtype=">u8").reshape(-1, 2).astype(np.uint64)
        return np.ascontiguousarray(halves[:, 0]), np.ascontiguousarray(halves[:, 1])


@lru_cache(maxsize=64)
def noise_table(ratio: float) -> NoiseTable:
    """The table for noise of `ratio` steps standard deviation.

    Notes
    -----
    A cell of width h around x holds phi(x) h sum over even k of He_k(x) (h/2)^k / (k+1)!, since the k-th
    derivative of phi is (-1)^k He_k phi. phi itself steps along the lattice by two multiplications a point.
    """
    positive("sigma/step", ratio, error=CalibrationError)
    if ratio > LARGEST_RATIO:
        raise CalibrationError(
            f"sigma is {ratio:,.0f} steps: a table for more than {LARGEST_RATIO:,.0f} is too large. "
            "Give a coarser resolution.",
            ratio=ratio,
        )
    parts = 2 * math.ceil(_COARSEST / ratio / 2) + 1 if ratio < _COARSEST else 1
    last = math.ceil(REACH * ratio) + 1
    masses = _lattice_masses(Fraction(ratio) * parts, last * parts + parts // 2 + 1)
    cuts, total = [], -masses[0]
    for j in range(last):
        first = 0 if j == 0 else j * parts - parts // 2
        cell = sum(masses[first : j * parts + parts // 2 + 1])
        total += 2 * cell
        cuts.append(min((total + (1 << (BITS - WORD - 1))) >> (BITS - WORD), (1 << WORD) - 1))
    return NoiseTable(ratio, b"".join(c.to_bytes(WORD_BYTES, "big") for c in cuts), (2 * last + 4) * 2.0**-WORD)


def _lattice_masses(density: Fraction, points: int) -> list[int]:
    """Gaussian mass within half a lattice step of i / density, for i = 0, 1, ..., in units of 2^-BITS."""
    step = 1 / density
    polynomial = _cell_polynomial(step)
    square = _fixed(step * step)
    phi = _fixed(step) * _inverse_root_two_pi() >> BITS
    ratio, shrink = _exp_minus(step * step / 2), _exp_minus(step * step)
    masses = []
    for i in range(points):
        x2 = i * i * square
        series = 0
        for coefficient in polynomial:
            series = coefficient + (series * x2 >> BITS)
        masses.append(phi * series >> BITS)
        phi = phi * ratio >> BITS
        ratio = ratio * shrink >> BITS
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
            if float(half * 16) ** k / math.factorial(k + 1) < 2.0**-150:
                break
        after = [0, *hermite_next]
        for power, value in enumerate(hermite_now):
            after[power] -= (k + 1) * value
        hermite_now, hermite_next = hermite_next, after
    return [_fixed(total[power]) for power in sorted(total, reverse=True)]


def _fixed(value: Fraction) -> int:
    return (value.numerator << BITS) // value.denominator


def _exp_minus(value: Fraction) -> int:
    """exp(-value) for a small value."""
    x = _fixed(value)
    term, total, k = ONE, ONE, 0
    while term:
        k += 1
        term = -(term * x >> BITS) // k if term > 0 else (-term * x >> BITS) // k
        total += term
    return total


def _inverse_root_two_pi() -> int:
    two_pi = 2 * (16 * _arctan_inverse(5) - 4 * _arctan_inverse(239))
    return math.isqrt((ONE << (2 * BITS)) // two_pi)


def _arctan_inverse(n: int) -> int:
    term = ONE // n
    total, k, sign = term, 1, 1
    while term:
        term //= n * n
        k += 2
        sign = -sign
        total += sign * (term // k)
    return total
