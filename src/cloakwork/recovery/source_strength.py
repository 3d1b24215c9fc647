"""The gain of one source of unknown strength for whitened readings, and draws of its strength.

With match c = column . readings and square g = ||column||^2, a source of strength s changes the log likelihood by
s c - s^2 g / 2: a normal law for s with mean c/g and variance 1/g, cut off at the ends of its interval.
"""

import math

import numpy as np

from cloakwork._compile import compiled_part

_TAIL = 6.0  # beyond this many standard deviations the continued fraction is exact to rounding
_NARROW = 1e-3  # standard deviations
_ROOT_HALF_PI = math.sqrt(math.pi / 2)
_ROOT_HALF = math.sqrt(0.5)


@compiled_part
def _mills(x: float) -> float:
    """The normal tail beyond x >= 0 over the density at x."""
    if x < _TAIL:
        return _ROOT_HALF_PI * math.exp(x * x / 2) * math.erfc(x * _ROOT_HALF)
    fraction = x
    for k in range(24, 0, -1):
        fraction = x + k / fraction
    return 1 / fraction


@compiled_part
def _narrow(c: float, g: float, low: float, high: float) -> float:
    """`gain` if the log likelihood hardly bends between the ends: the average of exp over a line, log(sinh(x) / x)."""
    middle, width = (low + high) / 2, high - low
    x = abs(c - middle * g) * width / 2
    bend = x * x / 6 if x < _NARROW else x + math.log(-math.expm1(-2 * x) / (2 * x))
    return middle * (c - middle * g / 2) + bend - g * width * width / 24


@compiled_part
def gain(c: float, g: float, low: float, high: float) -> float:
    """Log of the average over s in [low, high] of exp(s c - s^2 g / 2)."""
    if high == low:
        return low * (c - low * g / 2)
    if g <= 0:
        return 0.0
    root = math.sqrt(g)
    if root * (high - low) < _NARROW:
        return _narrow(c, g, low, high)
    a, z = (low - c / g) * root, (high - c / g) * root
    if a >= 0:
        at_low, at_high = low * (c - low * g / 2), high * (c - high * g / 2)
        inside = _mills(a) - _mills(z) * math.exp(at_high - at_low)
        return at_low + math.log(max(inside, 1e-300) / (root * (high - low)))
    if z <= 0:
        at_low, at_high = low * (c - low * g / 2), high * (c - high * g / 2)
        inside = _mills(-z) - _mills(-a) * math.exp(at_low - at_high)
        return at_high + math.log(max(inside, 1e-300) / (root * (high - low)))
    mass = (math.erf(z * _ROOT_HALF) - math.erf(a * _ROOT_HALF)) / 2
    return c * c / (2 * g) + math.log(max(mass, 1e-300) * 2 * _ROOT_HALF_PI / (root * (high - low)))


@compiled_part
def draw_strength(c: float, g: float, low: float, high: float, rng: np.random.Generator) -> float:
    """A strength from its law given the readings and the place."""
    if high == low:
        return low
    if g <= 0:
        return low + rng.random() * (high - low)
    root = math.sqrt(g)
    middle = c / g
    drawn = middle + _cut_normal((low - middle) * root, (high - middle) * root, rng) / root
    return min(max(drawn, low), high)


@compiled_part
def _cut_normal(a: float, z: float, rng: np.random.Generator) -> float:
    """A standard normal number between a and z, by rejection (Robert, 1995)."""
    if z < 0:
        return -_cut_above(-z, -a, rng)
    if a > 0:
        return _cut_above(a, z, rng)
    if z - a < 2.5:
        while True:
            x = a + rng.random() * (z - a)
            if rng.random() < math.exp(-x * x / 2):
                return x
    while True:
        x = rng.standard_normal()
        if a <= x <= z:
            return x


@compiled_part
def _cut_above(a: float, z: float, rng: np.random.Generator) -> float:
    """A standard normal number between a and z, 0 <= a < z."""
    if (z - a) * (z + a) < 2.0:
        while True:
            x = a + rng.random() * (z - a)
            if rng.random() < math.exp((a - x) * (a + x) / 2):
                return x
    rate = (a + math.sqrt(a * a + 4)) / 2
    while True:
        x = a - math.log(1 - rng.random()) / rate
        if x <= z and rng.random() < math.exp(-((x - rate) ** 2) / 2):
            return x
