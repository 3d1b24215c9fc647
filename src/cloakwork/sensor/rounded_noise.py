"""The noise that a sensor has of its own, estimated from readings at rest that its hardware has rounded.

Floats serve here for what a person reads about a device; they never touch a reading that is sent.

Notes
-----
What counts for privacy is the white part of the noise: s / (1 + |c|), the smallest value of its spectrum, where c is
how much of a deviation carries over to the next reading. The model of a reading, in steps of the hardware, is

    y_t = round(m_t + g_t),   m_t = a + b t + c y_(t-1),   g_t independent and normal with standard deviation s:

a straight line takes out the drift, and the previous reading what is correlated with it. The likelihood of y_t is the
normal probability of the cell from y_t - 1/2 to y_t + 1/2. For each s it is log-concave in (a, b, c), and Newton's
method finds its maximum; the values of s whose maximum is within 1.92 of the best are the interval of 95 %. Where
readings lie on two neighbouring values only, it reaches down to 0: any small noise next to a border explains them.

A filter in the chip, such as a running mean, links readings in other ways, and its spectrum may fall to 0. So
`smallest_spectrum` estimates the smallest value of the spectrum without this model of m_t: from an autoregression of
the order that the readings support (Akaike, 1974), and of at least order 8 if neighbours are clearly linked.
"""

from math import cos, erfc, exp, log, sin, sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SMALLEST = 0.05  # steps: below this, noise next to the border of a cell and none cannot be told apart
DROP = 1.92  # in log-likelihood, at the ends of the interval of 95 %
LONGEST, LINKED = 16, 8  # readings back that an autoregression uses: at most, and at least if neighbours are linked
LINK = 0.25  # correlation of neighbours, above that of white noise by chance from 100 readings on
PENALTY = 3.0  # on each order, in twice the log-likelihood: 2 would link one white sensor in four
_FREQUENCIES = 64
_ROOT_2, _ROOT_2_PI = sqrt(2.0), sqrt(2.0 * 3.14159265)
_FAR = 1e-30  # probability below which the tail is taken as that of its nearer border


class RoundedNoise:
    """The estimate in steps: `sd` with its interval from `low` to `high`; `carry` is c.

    `chances` are the probabilities of repeating the previous reading, `worst` the largest distance of a reading from
    its prediction in units of `sd`.
    """

    def __init__(self, steps: "list[float]") -> None:
        count = len(steps) - 1
        middle = sum(steps) / len(steps)
        self._values = [value - middle for value in steps[1:]]
        self._before = [value - middle for value in steps[:-1]]
        self._times = [turn / count - 0.5 for turn in range(count)]
        self._weights = [0.0, 0.0, 0.0]
        self._fit()

    def _fit(self) -> None:
        spread = sqrt(sum([value * value for value in self._values]) / len(self._values))
        grid = [2 * spread + 1]
        while grid[-1] > SMALLEST:
            grid.append(max(SMALLEST, grid[-1] / 1.5))
        heights = [self._height(sd) for sd in grid]
        best = max(range(len(grid)), key=lambda place: heights[place])
        upper, lower = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
        self.sd = _largest(self._height, lower, upper)
        top = max(heights + [self._height(self.sd)])
        self.low = self._end(top, SMALLEST, self.sd)
        self.high = self._end(top, grid[0], self.sd)
        self._height(self.sd)
        means = [self._mean(turn) for turn in range(len(self._values))]
        self.carry = self._weights[2]
        self.chances = [exp(_cell(self._before[turn] - means[turn], self.sd)[0]) for turn in range(len(self._values))]
        self.worst = max([abs(value - mean) for value, mean in zip(self._values, means)]) / self.sd

    def _end(self, top: float, outside: float, inside: float) -> float:
        """The end of the interval between these two; 0 if the smallest noise lies within."""
        if self._height(outside) >= top - DROP:
            return 0.0 if outside == SMALLEST else outside
        for _ in range(12):
            middle = sqrt(outside * inside)
            if self._height(middle) >= top - DROP:
                inside = middle
            else:
                outside = middle
        return outside

    def _mean(self, turn: int) -> float:
        weights = self._weights
        return weights[0] + weights[1] * self._times[turn] + weights[2] * self._before[turn]

    def _height(self, sd: float) -> float:
        """The log-likelihood at its maximum over (a, b, c), which it leaves in `_weights`."""
        height, slope, curvature = self._derivatives(sd)
        for _ in range(30):
            change = _solved(curvature, slope)
            start, share = self._weights, 1.0
            while True:
                self._weights = [weight + share * step for weight, step in zip(start, change)]
                after, slope, curvature = self._derivatives(sd)
                if after >= height or share < 1e-3:
                    break
                share /= 4
            if after - height < 1e-3:
                return max(after, height)
            height = after
        return height

    def _derivatives(self, sd: float) -> "tuple[float, list[float], list[list[float]]]":
        """The log-likelihood, its gradient and minus its second derivatives in (a, b, c)."""
        height = a = b = c = aa = ab = ac = bb = bc = cc = 0.0
        for turn, value in enumerate(self._values):
            time, before = self._times[turn], self._before[turn]
            chance, first, second = _cell(value - self._mean(turn), sd)
            height += chance
            a, b, c = a + first, b + first * time, c + first * before
            aa, ab, ac = aa + second, ab + second * time, ac + second * before
            bb, bc, cc = bb + second * time * time, bc + second * time * before, cc + second * before * before
        return height, [a, b, c], [[aa, ab, ac], [ab, bb + 1e-6, bc], [ac, bc, cc + 1e-6]]


def smallest_spectrum(values: "list[float]", step: float = 1.0) -> float:
    """The square root of the smallest spectral density of readings at rest, less that of rounding to the step.

    White noise has its standard deviation at every frequency. A straight line in time is taken out first.
    """
    count = len(values)
    middle, level, rise = (count - 1) / 2, sum(values) / count, slope(values)
    rest = [value - level - rise * (turn - middle) for turn, value in enumerate(values)]
    products = [sum([a * b for a, b in zip(rest, rest[lag:])]) / count for lag in range(LONGEST + 1)]
    if not products[0]:
        return 0.0
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
        angles = [3.14159265 * turn / _FREQUENCIES * (k + 1) for k in range(len(weights))]
        real = 1 - sum([w * cos(angle) for w, angle in zip(weights, angles)])
        imaginary = sum([w * sin(angle) for w, angle in zip(weights, angles)])
        largest = max(largest, real * real + imaginary * imaginary)
    return sqrt(max(0.0, variance / largest - step * step / 12))


def slope(values: "Sequence[float]") -> float:
    """Least-squares change from one value to the next."""
    middle = (len(values) - 1) / 2
    above = sum([(turn - middle) * (value - values[0]) for turn, value in enumerate(values)])
    return above / sum([(turn - middle) ** 2 for turn in range(len(values))])


def _cell(distance: float, sd: float) -> "tuple[float, float, float]":
    """Log probability of a cell at this distance from the mean, its derivative in the mean, and minus its second."""
    sign = 1.0 if distance >= 0 else -1.0
    low, high = (abs(distance) - 0.5) / sd, (abs(distance) + 0.5) / sd
    chance = (erfc(low / _ROOT_2) - erfc(high / _ROOT_2)) / 2
    if chance < _FAR:
        return -low * low / 2 - log(low * _ROOT_2_PI), sign * low / sd, 1 / (sd * sd)
    left, right = exp(-low * low / 2) / _ROOT_2_PI, exp(-(min(high, 13.0) ** 2) / 2) / _ROOT_2_PI
    first = (left - right) / (sd * chance)
    second = first * first - (low * left - high * right) / (sd * sd * chance)
    return log(chance), sign * first, max(second, 1e-9)


def _solved(matrix: "list[list[float]]", right: "list[float]") -> "list[float]":
    """The solution of a small positive definite system, by elimination."""
    rows = [row + [value] for row, value in zip(matrix, right)]
    size = len(rows)
    for pivot in range(size):
        for other in range(size):
            if other != pivot:
                factor = rows[other][pivot] / rows[pivot][pivot]
                rows[other] = [value - factor * top for value, top in zip(rows[other], rows[pivot])]
    return [rows[place][size] / rows[place][place] for place in range(size)]


def _largest(height: "Callable[[float], float]", lower: float, upper: float) -> float:
    """Where a function with one peak is largest, to within a percent, by thirds on a logarithmic scale."""
    while upper > 1.01 * lower:
        third = (upper / lower) ** (1 / 3)
        if height(lower * third) < height(upper / third):
            lower *= third
        else:
            upper /= third
    return sqrt(lower * upper)
