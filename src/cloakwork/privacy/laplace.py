"""Laplace noise on the readings of one sensor: its privacy, and exact tables of it of any scale.

An exponential number is a whole number of blocks plus a remainder, and the two are independent. Laplace noise is the
difference of two exponential numbers, hence a whole number of blocks plus independent noise within two of them.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import lru_cache

from cloakwork._checks import not_negative, positive
from cloakwork.errors import CalibrationError
from cloakwork.privacy.gaussian import checked_delta, turning_point
from cloakwork.privacy.losses import laplace_losses
from cloakwork.privacy.noise_table import CUT_BITS, Level, NoiseTable, cuts_error
from cloakwork.sensor import WORD_BYTES

_ULP = 2.0**-52
LARGEST_SCALE = 2.0**52
_BASE = 1 << 12
_COARSEST = 64  # the largest scale of one table without blocks
_REACH = 92  # scales: the mass beyond is below 2^-132
_EXACT = Context(prec=80, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True)
class LaplaceProfile:
    """All (epsilon, delta) of readings with Laplace noise, each of which moves by up to `shift` scales of the noise.

    >>> LaplaceProfile(0.5).compose(4).epsilon(0.0)
    2.0
    """

    shift: float
    readings: int = 1

    def delta(self, epsilon: float) -> float:
        """Return the least delta at `epsilon` (0 or above), rounded up; for several readings by about 1 %."""
        not_negative("epsilon", epsilon, error=CalibrationError)
        if self.readings == 1:
            return min(1.0, max(0.0, -math.expm1((epsilon - self.shift) / 2)) * (1 + 4 * _ULP))
        return laplace_losses(self.shift, self.readings).delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at `delta`, rounded up; the sum of all shifts at a delta of 0."""
        if checked_delta(delta) == 0:
            return self.readings * self.shift
        if self.readings == 1:
            return max(0.0, self.shift + 2 * math.log1p(-delta)) * (1 + 4 * _ULP) + 4 * _ULP * self.shift
        return laplace_losses(self.shift, self.readings).epsilon(delta)

    def compose(self, k: int) -> "LaplaceProfile":
        """Return the profile of `k` times as many readings."""
        return replace(self, readings=k * self.readings)

    @property
    def mu(self) -> float:
        """How far all readings move together, in standard deviations of their noise: for accuracy, not for privacy."""
        return self.shift * math.sqrt(self.readings / 2)

    @property
    def best_test_accuracy(self) -> float:
        """How often the best test between two neighbours is right, at most."""
        return (1 + self.delta(0.0)) / 2


def largest_shift(epsilon: float, delta: float, *, readings: int) -> float:
    """Return the largest shift of each of so many readings, in scales of Laplace noise, that meets (epsilon, delta).

    It is rounded down. At a delta of 0 it is epsilon / readings.

    >>> round(largest_shift(1.0, 0.1, readings=1), 4), round(20 * largest_shift(1.0, 1e-6, readings=20), 3)
    (1.2107, 1.151)
    """
    low = epsilon / readings * (1 - 2 * _ULP)
    if delta <= 0:
        return low
    if readings == 1:
        return (epsilon - 2 * math.log1p(-delta)) * (1 - 4 * _ULP)
    met = (low, epsilon)
    return turning_point(lambda shift: LaplaceProfile(shift, readings).delta(epsilon) <= delta, *met, within=1e-9)[0]


@lru_cache(maxsize=16)
def laplace_table(scale: float, *, base: int = _BASE, coarsest: int = _COARSEST) -> NoiseTable:
    """The table of round(L), where L is Laplace noise of `scale` steps; its `ratio` is the scale.

    Noise of up to `coarsest` steps is one table. Larger noise counts in blocks of `base` steps, and in blocks of those.

    Notes
    -----
    With exponential E1, E2 of this scale, L = E1 - E2, and E = B D + T, where D is geometric, T is exponential within
    [0, B), and both are independent. So round(L) = B (D1 - D2) + round(T1 - T2): a discrete Laplace number and noise
    within B steps, each symmetric. If the scale of D1 - D2 is large, it is split again in the same way. Decimal
    arithmetic of 80 digits gives the same table on every machine.

    >>> [(level.factor, level.count) for level in laplace_table(1e6).levels]
    [(16777216, 7), (4096, 4096), (1, 4096)]
    """
    if positive("scale", scale, error=CalibrationError) > LARGEST_SCALE:
        raise CalibrationError(
            f"the noise is {scale:.3g} steps: there are tables for up to {LARGEST_SCALE:.3g}. Give a larger step, a "
            "larger epsilon or a smaller contribution.",
            scale=scale,
        )
    with localcontext(_EXACT):
        left, factor = +Decimal(scale), 1
        if left <= coarsest:
            levels = [Level(1, _written(_falling((-1 / (2 * left)).exp(), left)))]  # of round(L)
        else:
            levels = [Level(1, _written(_rounded_within(left, base)))]
            left, factor = left / base, base
            while left > coarsest:
                levels.append(Level(factor, _written(_discrete_within(left, base))))
                left, factor = left / base, factor * base
            ratio = (-1 / left).exp()
            levels.append(Level(factor, _written(_falling(2 * ratio / (1 + ratio), left))))  # of D1 - D2
    return NoiseTable(scale, tuple(reversed(levels)), sum(cuts_error(level.count) for level in levels))


def _falling(tail: Decimal, scale: Decimal) -> Iterator[Decimal]:
    """1 - tail e^(-j / scale).

    That is P(|round(L)| <= j) with tail e^(-1 / (2 scale)), and P(|D1 - D2| <= j) for geometric numbers D of ratio r =
    e^(-1/scale) with tail 2 r / (1 + r).
    """
    ratio = (-1 / scale).exp()
    for _ in range(int(scale * _REACH) + 2):
        yield 1 - tail
        tail *= ratio


def _rounded_within(scale: Decimal, base: int) -> Iterator[Decimal]:
    """P(|round(T1 - T2)| <= j) for exponential numbers T within [0, base).

    It is (1 - e^(-y) - e^(-(2 b - y)) + e^(-2 b)) / (1 - e^(-b))^2, y = (j + 1/2) / scale and b = base / scale.
    """
    end, ratio = (-base / scale).exp(), (-1 / scale).exp()
    down, up = (-1 / (2 * scale)).exp(), end * end * (1 / (2 * scale)).exp()
    for _ in range(base):
        yield (1 - down - up + end * end) / (1 - end) ** 2
        down, up = down * ratio, up / ratio


def _discrete_within(scale: Decimal, base: int) -> Iterator[Decimal]:
    """P(|D1 - D2| <= j) for geometric numbers D below `base`, of ratio r = e^(-1/scale).

    P(D1 - D2 = k) = (1 - r)^2 / (1 - r^b)^2 r^k (1 - r^(2 (b - k))) / (1 - r^2), for k >= 0 and b = base.
    """
    ratio = (-1 / scale).exp()
    end = (-base / scale).exp()
    height = (1 - ratio) / (1 + ratio) / (1 - end) ** 2
    total, down, up = height * (1 - end * end), ratio, end * end / ratio
    for _ in range(base):
        yield total
        total += 2 * height * (down - up)
        down, up = down * ratio, up / ratio


def _written(probabilities: Iterable[Decimal]) -> bytes:
    """The probabilities as cut points, below 2^127 like the words they are compared with."""
    most = (1 << CUT_BITS) - 1
    cuts = (
        min(int((probability * (1 << CUT_BITS)).to_integral_value(ROUND_HALF_EVEN)), most)
        for probability in probabilities
    )
    return b"".join(cut.to_bytes(WORD_BYTES, "big") for cut in cuts)
