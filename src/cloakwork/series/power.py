"""Power series modulo z^n: product, inverse and square root, by Newton's method and Fourier transforms."""

import numpy as np
from scipy import fft

from cloakwork._checks import FloatArray

_SHORT = 128  # up to here adding up is quicker than transforms, and more exact
_BOUND = 1e70  # squares of products of numbers below it stay finite


def product(first: FloatArray, second: FloatArray, n: int) -> FloatArray:
    """The first `n` coefficients of the product, with zeros where there are fewer; NaN where it gets out of bounds."""
    if not (np.abs(first[:n]).max() < _BOUND and np.abs(second[:n]).max() < _BOUND):
        return np.full(n, np.nan)
    found = _convolved(first[:n], second[:n])[:n]
    return np.pad(found, (0, n - len(found)))


def inverse(series: FloatArray, n: int) -> FloatArray:
    """The first `n` coefficients of 1 / series; the constant term must not be 0."""
    found = np.array([1.0 / series[0]])
    while len(found) < n:
        size = min(2 * len(found), n)
        rest = -product(series, found, size)
        rest[0] += 2.0
        found = product(found, rest, size)
    return found


def square_root(series: FloatArray, n: int) -> FloatArray:
    """The first `n` coefficients of the square root; the constant term must be above 0.

    >>> square_root(np.ones(4), 4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    found = np.array([1.0 / np.sqrt(series[0])])
    while len(found) < n:
        size = min(2 * len(found), n)
        rest = -product(series, product(found, found, size), size)
        rest[0] += 3.0
        found = product(found, rest, size) / 2
    return product(series, found, n)


def _convolved(first: FloatArray, second: FloatArray) -> FloatArray:
    length = len(first) + len(second) - 1
    if min(len(first), len(second)) <= _SHORT:
        return np.convolve(first, second)
    size = fft.next_fast_len(length, real=True)
    return np.asarray(fft.irfft(fft.rfft(first, size) * fft.rfft(second, size), size)[:length])
