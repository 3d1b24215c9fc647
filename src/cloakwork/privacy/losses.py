"""Privacy losses of many independent reports: the distribution of their sum, and the (epsilon, delta) that it means."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.privacy.gaussian import log_delta, turning_point

ROUNDED = 2.0**-50  # covers the floating-point errors of an epsilon, and of its difference to a loss
MAX_LISTED = 1 << 14  # reports whose sums of losses are all listed; of more, all but a probability of 2 e^-60
MAX_SUMMED = 2048  # readings whose losses are added one by one; beyond, losses of two values bound those of more
GRID = 1 << 14  # points of the sum of losses of different kinds
LAPLACE_GRID = 8192  # points of the sum of losses of readings with Laplace noise
FINEST = 64  # values that the loss of one such reading is rounded to
_TAIL = 40.0  # the probability of a loss beyond a grid is at most 2 e^-40
_SLIP = 1e-9  # bounds the relative error of a convolution


@dataclass(frozen=True, eq=False)
class Losses:
    """Values of the loss and their probabilities, up to a factor `slip`; a larger loss has the probability `beyond`.

    No loss is larger than `largest`, and all but a probability of 2 e^-40 are within `span`.
    """

    values: FloatArray
    masses: FloatArray
    largest: float
    slip: float = 1.0
    beyond: float = 0.0
    span: tuple[float, float] = (0.0, 0.0)

    def delta(self, epsilon: float, mu: float = 0.0) -> float:
        """Return E max(0, 1 - e^(epsilon - L)), rounded up, L the loss and that of a Gaussian release with `mu`."""
        epsilon = max(0.0, epsilon - ROUNDED * (epsilon + 1))
        if mu == 0 and self.largest <= epsilon:
            return 0.0
        rest = epsilon - self.values
        if mu == 0:
            gains = -np.expm1(np.minimum(rest, 0.0))
        elif len(rest) == 1 and rest[0] >= 0:
            gains = np.array([math.exp(log_delta(float(rest[0]), mu))])
        else:
            ahead = np.exp(special.log_ndtr(mu / 2 - rest / mu))
            behind = np.exp(np.minimum(rest + special.log_ndtr(-mu / 2 - rest / mu), 0.0))
            gains = np.maximum(ahead - behind, 0.0) + 1e-13 * ahead
        return min(1.0, float(self.masses @ gains) * self.slip + self.beyond)

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at `delta`, rounded up."""
        if delta == 0:
            return self.largest
        found = turning_point(lambda e: e < self.largest and self.delta(e) > delta, 0.0, self.largest, within=1e-9)[1]
        return min(found, self.largest)


def report_losses(each: float, number: int, values: int = 2) -> Losses:
    """Return the sum of so many losses of randomised response: `each` for the truth, -`each` for its opposite."""
    slip, largest, span = _slip(number), each * number * (1 + ROUNDED), _span(each, number)
    if values > 2 and number <= MAX_SUMMED:
        one = np.array([1.0, values - 2.0, math.exp(each)]) / (math.exp(each) + values - 1)
        sums = each * np.arange(-number, number + 1, dtype=np.float64)
        return Losses(sums, _repeated(one, number), largest, slip, span=span)
    first, last = 0, number
    if number > MAX_LISTED:
        middle, far = number * float(special.expit(each)), math.sqrt(30.0 * number)  # Hoeffding
        first, last = max(0, math.floor(middle - far)), min(number, math.ceil(middle + far))
    k = np.arange(first, last + 1)
    logs = special.gammaln(number + 1) - special.gammaln(k + 1) - special.gammaln(number - k + 1)
    masses = np.exp(logs - k * np.log1p(math.exp(-each)) - (number - k) * np.log1p(math.exp(each)))
    beyond = 2 * math.exp(-60.0) if last - first < number else 0.0
    return Losses(np.asarray(each * (2.0 * k - number)), np.asarray(masses), largest, slip, beyond, span)


def laplace_losses(shift: float, readings: int) -> Losses:
    """Return the sum of losses of readings that move by `shift` scales of their Laplace noise, rounded up.

    Notes
    -----
    One reading has delta(x) = 1 - sqrt(x) e^(-a/2) at x = e^epsilon between e^-a and e^a, a the shift. This is convex
    in x, so straight lines between its values at x_i = e^(-a + 2 a i / k), i = 0, ..., k, lie above it. They are the
    delta of the distribution (with r = e^(a/k))

        P(L = -a) = e^-a r / (1 + r),   P(L = -a + 2 a i / k) = e^-a (r - 1) / (r + 1) r^i,   P(L = a) = r / (1 + r),

    which therefore stands for Laplace noise in every sum (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi). For k = 1
    it is randomised response, which is used for very many readings.
    """
    parts = max(1, min(FINEST, LAPLACE_GRID // readings))
    if parts == 1:
        return report_losses(shift, readings)
    r = math.exp(shift / parts)
    one = math.exp(-shift) * (r - 1) / (r + 1) * r ** np.arange(parts + 1, dtype=np.float64)
    one[0], one[-1] = math.exp(-shift) * r / (1 + r), r / (1 + r)
    largest = shift * readings
    values = np.asarray(largest * np.linspace(-1.0, 1.0, parts * readings + 1), dtype=np.float64)
    slip = _slip(readings + LAPLACE_GRID)
    return Losses(values, _repeated(one, readings), largest * (1 + ROUNDED), slip, span=_span(shift, readings))


def sum_of_losses(parts: Sequence[Losses]) -> Losses:
    """Return the sum of independent losses, each rounded up to a common grid once."""
    slip, largest = math.prod(part.slip for part in parts) * (1 + _SLIP), math.fsum(part.largest for part in parts)
    if not parts:
        return Losses(np.zeros(1), np.ones(1), 0.0)
    if len(parts) == 1:
        return parts[0]
    step = sum(high - low for low, high in (part.span for part in parts)) / GRID
    masses, start, beyond = np.ones(1), 0.0, 0.0
    for part in parts:
        low, high = part.span
        places = np.maximum(np.ceil((part.values - low) / step - 1e-9), 0).astype(np.int64)
        inside = part.values <= high
        beyond += float(part.masses[~inside].sum()) + part.beyond
        masses = np.convolve(masses, np.bincount(places[inside], part.masses[inside]))
        start += low + 1e-8 * step
    values = start + step * np.arange(len(masses), dtype=np.float64)
    return Losses(values, masses, largest * (1 + ROUNDED), slip, beyond)


def _slip(number: int) -> float:
    """Bounds the error of logarithms of factorials, and of sums of positive numbers."""
    return 1 + 2.0**-46 * number * math.log(number + 2)


def _span(each: float, number: int) -> tuple[float, float]:
    """Where the sum of so many losses lies, but for a probability of 2 e^-40 (Hoeffding)."""
    middle = number * each * math.tanh(each / 2)
    far = each * math.sqrt(2 * _TAIL * number)
    return max(-number * each, middle - far), min(number * each, middle + far)


def _repeated(one: FloatArray, readings: int) -> FloatArray:
    """The distribution of the sum of so many losses, each with the distribution `one` at equal distances."""
    masses, power = np.ones(1), one
    while readings:
        if readings & 1:
            masses = np.convolve(masses, power)
        readings >>= 1
        if readings:
            power = np.convolve(power, power)
    return masses
