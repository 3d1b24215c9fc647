"""Where a sensor's noise arises: whether a reading that is driven through several steps rises evenly or in stairs.

Floats serve here for what a person reads about a device; they never touch a reading that is sent.

Notes
-----
Noise g before the rounding blurs the steps: the mean of round(x + g) follows x to within exp(-2 pi^2 s^2)/pi steps,
0.002 at s = 1/2. Noise after the rounding leaves stairs: the mean is round(x), whatever the noise. At rest both look
the same.

The readings of a ramp are split by orthonormal polynomials in time (Gram's). The lowest, up to the degree of the number
of steps, are the ramp x_t; the highest are the noise, of variance v; the K in between hold the stairs, if there are
any. The noise is shown to blur the steps if

    sum of the squares of the K coefficients  <  v (K + 3 sqrt(2 K))
    (1 - share) sqrt(E / v)  >=  4.5      for stairs with each of 8 offsets
    v  <=  the variance at rest, at most

where E is what such stairs, drawn along x_t, would add to this sum, and `share` how much of them the readings hold.
The first also refuses steps of several times the size, as of an inner converter, and ramps that are too uneven to say.
The last refuses a reading that flutters as it is driven: what blurs stairs in place of the noise adds to the variance.
"""

from array import array
from math import floor, sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FEWEST_STEPS = 2.0  # that a ramp must span
SURE = 4.5  # standard deviations between stairs and what is seen
EVEN = 3.0  # standard deviations by which the energy of honest readings may exceed that of noise
OFFSETS = 8
_HIGHEST = 64  # degree: finer waves than these belong to the noise
_SMOOTHEST, _ROUGHEST = 2, 8  # degrees of a ramp


class Ramp:
    """Readings in steps of the hardware while they are driven.

    `link` is the correlation of neighbours at rest, and `most` the largest variance that readings may have there.
    `steps` is how far they move, and `fault` why they do not show that the noise blurs the steps; empty if they do.
    """

    def __init__(self, values: "Sequence[float]", link: float, most: float) -> None:
        count = len(values)
        rest = array("d", [value - values[0] for value in values])
        highest = min(_HIGHEST, count // 8)
        weights = [_product(wave, rest) for wave in _waves(count, highest)]
        degree, higher = 0, _SMOOTHEST
        while higher > degree:
            degree = higher
            course = array("d", [0.0] * count)
            for weight, wave in zip(weights[: degree + 1], _waves(count, degree)):
                for turn in range(count):
                    course[turn] += weight * wave[turn]
            self.steps = max(course) - min(course)
            higher = min(int(self.steps), _ROUGHEST)
        last = min(highest, int(3 * self.steps) + 8)
        between = weights[degree + 1 : last + 1]
        noise = (_product(rest, rest) - sum([w * w for w in weights[: last + 1]])) / (count - last - 1)
        calm = noise <= most
        noise *= max(1.0, (1 + link) / (1 - link))  # that of the slow waves
        energy = sum([weight * weight for weight in between])
        even = energy < noise * (len(between) + EVEN * sqrt(2 * len(between)))
        stairs, shared = [0.0] * OFFSETS, [0.0] * OFFSETS
        for place, wave in enumerate(_waves(count, last)):
            if place > degree:
                for offset in range(OFFSETS):
                    weight = _stairs(course, wave, offset / OFFSETS)
                    stairs[offset] += weight * weight
                    shared[offset] += weight * weights[place]
        apart = min([(full - held) / sqrt(full * noise) if full * noise else 0.0 for full, held in zip(stairs, shared)])
        faults = (
            (self.steps >= FEWEST_STEPS, f"the reading moved by {self.steps:.1f} steps only, and 2 are needed"),
            (even, "the readings moved in stairs, as with noise that arises after a rounding, or unevenly"),
            (calm, "the readings scatter more than at rest: the sensor flutters while it is warmed"),
            (apart >= SURE, "the readings are too few to show that the noise blurs the steps of the hardware"),
        )
        self.fault = ([text for good, text in faults if not good] or [""])[0]


def _waves(count: int, highest: int) -> "Iterator[array[float]]":
    """Orthonormal polynomials in time, of degree 0 and up, by their recurrence."""
    before, wave = array("d", [0.0] * count), array("d", [1 / sqrt(count)] * count)
    for degree in range(highest + 1):
        yield wave
        if degree < highest:
            after = array("d", [(2 * turn / count - 1 + 1 / count) * value for turn, value in enumerate(wave)])
            back = _product(after, before)
            for turn in range(count):
                after[turn] -= back * before[turn]
            size = sqrt(_product(after, after))
            for turn in range(count):
                after[turn] /= size
            before, wave = wave, after


def _product(a: "array[float]", b: "array[float]") -> float:
    return sum(x * y for x, y in zip(a, b))


def _stairs(course: "array[float]", wave: "array[float]", offset: float) -> float:
    """How much of a wave is in what rounding the course to whole steps adds to it."""
    return sum((floor(x + offset + 0.5) - x - offset) * y for x, y in zip(course, wave))
