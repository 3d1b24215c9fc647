"""Exact convolution of whole numbers, and arithmetic of power series, by Fourier transforms."""

import math

import numpy as np
from scipy import fft

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError

_ROUNDING = 2.0**-53
_LARGEST_ERROR = 0.25  # of a result that is then rounded to a whole number
_LEAST_BITS, _MOST_BITS = 4, 24
_BLOCK = 1 << 17  # values that are transformed at a time: they stay in the cache
_SHORT = 128  # up to here direct sums are quicker than transforms, and more exact
_BOUND = 1e70  # squares of products of numbers below it stay finite


def convolve_whole(weights: IntArray, values: IntArray) -> IntArray:
    """Convolve whole `weights`, shape (l,), with each row of whole `values`, shape (..., n).

    Returns shape (..., n + l - 1). Exact as long as each output fits into 63 bits.

    Notes
    -----
    Both are split into digits of a few bits; digits are convolved in floating point, and the results are rounded. The
    error of an FFT convolution of length 2^m is at most (13 m + 3) u ||a||_2 ||b||_2, u = 2^-53: each of the m stages
    of each of the three transforms adds at most (1 + sqrt 5 + 1) u of the norm, for one addition, one complex
    multiplication and a root of unity that is off by u (Brent, Percival and Zimmermann). Digits are so short that twice
    this bound stays below 1/4. They are recombined modulo 2^64, which loses nothing.
    """
    rows = values.reshape(-1, values.shape[-1])
    length = rows.shape[1] + len(weights) - 1
    size = 1 << max(length - 1, 1).bit_length()
    bits = _digit_bits(weights, rows, size)
    first, second = _digits(weights[None, :], bits), _digits(rows, bits)
    spectra = [fft.rfft(digit, size) for digit in first]
    out = np.zeros((len(rows), length), dtype=np.int64)
    block = max(1, _BLOCK // size)
    for part in (slice(start, start + block) for start in range(0, len(rows), block)):
        others = [fft.rfft(digit[part], size) for digit in second]
        for place in range(len(spectra) + len(others) - 1):
            pairs = [(k, place - k) for k in range(len(spectra)) if 0 <= place - k < len(others)]
            product = np.sum([spectra[k] * others[j] for k, j in pairs], axis=0)
            whole = np.rint(fft.irfft(product, size)[:, :length]).astype(np.int64)
            out[part] += whole << (place * bits)
    return out.reshape(*values.shape[:-1], length)


def wrapped(values: IntArray, period: int) -> IntArray:
    """Add up values of shape (..., n) modulo `period`, which turns a linear convolution into a circular one."""
    length = values.shape[-1]
    padded = np.zeros((*values.shape[:-1], -(-length // period) * period), dtype=np.int64)
    padded[..., :length] = values
    return np.asarray(padded.reshape(*values.shape[:-1], -1, period).sum(axis=-2))


def _digit_bits(weights: IntArray, rows: IntArray, size: int) -> int:
    """The longest digits whose convolution is certain to be rounded correctly."""
    relative = 2 * (13 * math.log2(size) + 3) * _ROUNDING
    for bits in range(_MOST_BITS, _LEAST_BITS - 1, -1):
        first, second = _digits(weights[None, :], bits), _digits(rows, bits)
        together = min(len(first), len(second)) * _largest_norm(first) * _largest_norm(second)
        if relative * together <= _LARGEST_ERROR:
            return bits
    raise InputError(f"{size} values are too many for exact convolution: publish the series in parts.", size=size)


def _largest_norm(digits: list[IntArray]) -> float:
    return max(float(np.sqrt((digit.astype(np.float64) ** 2).sum(axis=1).max())) for digit in digits) * (1 + 1e-9)


def _digits(values: IntArray, bits: int) -> list[IntArray]:
    """Balanced digits, lowest first: values = sum over k of digits[k] 2^(k bits), each within 2^(bits-1)."""
    rest, half = values.astype(np.int64), 1 << (bits - 1)
    digits = []
    while True:
        carried = (rest + half) >> bits
        digits.append(rest - (carried << bits))
        rest = carried
        if not rest.any():
            return digits


def product(first: FloatArray, second: FloatArray, n: int) -> FloatArray:
    """The first `n` coefficients of a product of power series, padded with zeros; NaN if it is out of bounds."""
    if not (np.abs(first[:n]).max() < _BOUND and np.abs(second[:n]).max() < _BOUND):
        return np.full(n, np.nan)
    kept = _convolved(first[:n], second[:n])[:n]
    return np.pad(kept, (0, n - len(kept)))


def inverse(series: FloatArray, n: int) -> FloatArray:
    """The first `n` coefficients of 1 / series, by Newton's method; the constant term must not be 0."""
    approximation = np.array([1.0 / series[0]])
    while len(approximation) < n:
        size = min(2 * len(approximation), n)
        rest = -product(series, approximation, size)
        rest[0] += 2.0
        approximation = product(approximation, rest, size)
    return approximation


def square_root(series: FloatArray, n: int) -> FloatArray:
    """The first `n` coefficients of the square root, by Newton's method; the constant term must be above 0.

    >>> square_root(np.ones(4), 4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    approximation = np.array([1.0 / np.sqrt(series[0])])
    while len(approximation) < n:
        size = min(2 * len(approximation), n)
        rest = -product(series, product(approximation, approximation, size), size)
        rest[0] += 3.0
        approximation = product(approximation, rest, size) / 2
    return product(series, approximation, n)


def _convolved(first: FloatArray, second: FloatArray) -> FloatArray:
    length = len(first) + len(second) - 1
    if min(len(first), len(second)) <= _SHORT:
        return np.convolve(first, second)
    size = fft.next_fast_len(length, real=True)
    return np.asarray(fft.irfft(fft.rfft(first, size) * fft.rfft(second, size), size)[:length])
