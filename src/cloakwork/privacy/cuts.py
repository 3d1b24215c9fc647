"""Cut points of one table, to 127 bits: of the rounded and of the discrete Gaussian.

Cut point j is round(P(|K| <= j) 2^127). The rounded Gaussian is K = round(N(0, s^2)), with
P(|K| <= j) = erf((j + 1/2) / (s sqrt 2)); the discrete one has P(K = k) proportional to exp(-k^2 / (2 s^2)). All
arithmetic is in whole numbers with 192 bits after the point: every machine makes the same table.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, islice

from cloakwork.sensor import WORD_BYTES

BITS = 192
ONE = 1 << BITS
CUT_BITS = 127
REACH = Fraction(27, 2)  # standard deviations: the mass beyond is below 2^-135
_COARSEST = 32  # lattice points per standard deviation, at the least
_LEAST = Fraction(1, 32)  # rounded noise of less is never anything but zero, to 2^-188


def cut_count(parameter: Fraction) -> int:
    """How many cut points a table of this standard deviation has."""
    return math.ceil(REACH * parameter) + 1


def cuts_error(count: int) -> float:
    """What a table of `count` cut points can be wrong by.

    A bound on the sum of the absolute errors of all probabilities, each the difference of two cut points that are off
    by at most one, plus the mass that the table leaves out.
    """
    return (2 * count + 4) * 2.0**-CUT_BITS


def rounded_cuts(parameter: Fraction) -> bytes:
    """The table of round(N(0, parameter^2)).

    Notes
    -----
    A cell of width h around x holds phi(x) h sum over even k of He_k(x) (h/2)^k / (k+1)!, since the k-th
    derivative of phi is (-1)^k He_k phi. phi itself steps along the lattice by two multiplications a point.
    """
    parameter = max(parameter, _LEAST)
    parts = 2 * math.ceil(_COARSEST / parameter / 2) + 1 if parameter < _COARSEST else 1
    last = cut_count(parameter)
    masses = _lattice_masses(parameter * parts, last * parts + parts // 2 + 1)
    first = 2 * sum(masses[: parts // 2 + 1]) - masses[0]
    cells = (2 * sum(masses[j * parts - parts // 2 : j * parts + parts // 2 + 1]) for j in range(1, last))
    return _written(accumulate(cells, initial=first), ONE)


def discrete_cuts(parameter: Fraction) -> bytes:
    """The table of the discrete Gaussian, P(K = k) proportional to exp(-k^2 / (2 parameter^2))."""
    weights = list(_weights(parameter))
    whole = 2 * sum(weights) - weights[0]
    cells = (2 * weight for weight in weights[1 : cut_count(parameter)])
    return _written(accumulate(cells, initial=weights[0]), whole)


def _written(sums: Iterator[int], whole: int) -> bytes:
    """The parts `sums / whole` as cut points; none reaches 2^127, which no word does."""
    most = (1 << CUT_BITS) - 1
    cuts = (min(((total << (CUT_BITS + 1)) + whole) // (2 * whole), most) for total in sums)
    return b"".join(cut.to_bytes(WORD_BYTES, "big") for cut in cuts)


def _weights(parameter: Fraction) -> Iterator[int]:
    """exp(-k^2 / (2 parameter^2)) for k = 0, 1, ... while it is above 2^-BITS."""
    square = 1 / parameter**2
    weight, ratio, shrink = ONE, _exp_minus(square / 2), _exp_minus(square)
    while weight:
        yield weight
        weight = weight * ratio >> BITS
        ratio = ratio * shrink >> BITS


def _lattice_masses(density: Fraction, points: int) -> list[int]:
    """Gaussian mass within half a lattice step of i / density, for i = 0, 1, ..., in units of 2^-BITS."""
    step = 1 / density
    polynomial = _cell_polynomial(step)
    square = _fixed(step * step)
    height = _fixed(step) * _inverse_root_two_pi() >> BITS
    masses = []
    for i, weight in enumerate(islice(_weights(density), points)):
        x2 = i * i * square
        series = 0
        for coefficient in polynomial:
            series = coefficient + (series * x2 >> BITS)
        masses.append((weight * height >> BITS) * series >> BITS)
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
