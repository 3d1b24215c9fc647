"""The noise that a sensor has before its hardware rounds, estimated from readings at rest.

Floats serve here for what a person reads about a device; they never touch a reading that is sent.

Notes
-----
What counts for privacy is the white part of the noise: the smallest value of its spectrum. A straight line takes out
the drift. The spectrum is that of an autoregression of the order that the readings support (Akaike, 1974), and of at
least order 8 if neighbours are clearly linked, as by a running mean in the chip, whose spectrum may fall to 0.

Normal noise of s steps around values m_t has the variance

    s^2 + 1/12 - exp(-2 pi^2 s^2) (1/pi^2 + 4 s^2) mean of cos(2 pi m_t)

after the rounding to whole steps, for s of 0.35 and more (the first harmonic of the rounding error). So this is solved
for s. Less noise counts as none: next to the border of a step, any small noise tosses readings between two values.
"""

from math import cos, exp, log, pi, sin, sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST = 0.35  # steps
LONGEST, LINKED = 16, 8  # readings back that an autoregression uses: at most, and at least if neighbours are linked
LINK = 0.25  # correlation of neighbours, above that of white noise by chance from 100 readings on
PENALTY = 3.0  # on each order, in twice the log-likelihood: 2 would link one white sensor in four
NORMAL = 1.96  # standard errors at the ends of an interval of 95 %
_FREQUENCIES = 64


class RestingNoise:
    """The estimate in steps: `sd` with its interval of 95 % from `low` to `high`.

    `variance` is that of all readings around the line, `link` the correlation of neighbours, `rise` the change of the
    line from one reading to the next, and `farthest` the largest distance of a reading from it.
    """

    def __init__(self, steps: "Sequence[float]") -> None:
        count = len(steps)
        middle, level = (count - 1) / 2, sum(steps) / count
        places = [turn - middle for turn in range(count)]
        self.rise = sum([place * (value - level) for place, value in zip(places, steps)]) / sum([p * p for p in places])
        rest = [value - level - self.rise * place for place, value in zip(places, steps)]
        products = [sum([a * b for a, b in zip(rest, rest[lag:])]) / count for lag in range(LONGEST + 1)]
        self.variance = products[0]
        self.link = products[1] / products[0] if products[0] else 0.0
        self.farthest = max([abs(value) for value in rest])
        smallest, order = _smallest_spectrum(products, count)
        error = min(1.0, NORMAL * sqrt(2 * (1 + order) / count))  # about, relative (Berk, 1974)
        wave = sum([cos(2 * pi * (level + self.rise * place)) for place in places]) / count
        self.low, self.sd, self.high = [_before_rounding(smallest * k, wave) for k in (1 - error, 1, 1 + error)]


def _before_rounding(variance: float, wave: float) -> float:
    """Return the noise that has this variance after the rounding; 0 if that is less than the least."""
    low, high = LEAST, max(LEAST, sqrt(variance) + 1)
    if _rounded(low, wave) > variance:
        return 0.0
    for _ in range(30):
        middle = (low + high) / 2
        if _rounded(middle, wave) <= variance:
            low = middle
        else:
            high = middle
    return low


def _rounded(sd: float, wave: float) -> float:
    return sd * sd + 1 / 12 - exp(-2 * (pi * sd) ** 2) * (1 / pi**2 + 4 * sd * sd) * wave


def _smallest_spectrum(products: "Sequence[float]", count: int) -> "tuple[float, int]":
    """Return the smallest spectral density from the autocovariances, and the order of its model.

    White noise has its variance at every frequency.
    """
    if not products[0]:
        return 0.0, 0
    weights: list[float] = []
    orders = [(weights, products[0])]  # of autoregressions with the variance that each leaves, by Levinson and Durbin
    for order in range(1, LONGEST + 1):
        variance = orders[-1][1]
        carry = (products[order] - sum([w * products[order - 1 - k] for k, w in enumerate(weights)])) / variance
        weights = [w - carry * v for w, v in zip(weights, weights[::-1])] + [carry]
        orders.append((weights, variance * (1 - carry * carry)))
    best = min(range(LONGEST + 1), key=lambda order: count * log(orders[order][1]) + PENALTY * order)
    linked = abs(products[1]) > LINK * products[0]
    weights, variance = orders[max(best, LINKED) if linked else best]
    largest = 1.0
    for turn in range(_FREQUENCIES + 1):
        angles = [pi * turn / _FREQUENCIES * (k + 1) for k in range(len(weights))]
        real = 1 - sum([w * cos(angle) for w, angle in zip(weights, angles)])
        imaginary = sum([w * sin(angle) for w, angle in zip(weights, angles)])
        largest = max(largest, real * real + imaginary * imaginary)
    return variance / largest, len(weights)
