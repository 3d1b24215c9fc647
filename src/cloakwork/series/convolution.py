"""Exact convolution of whole numbers, and arithmetic of power series, by Fourier transforms."""

import math

import numpy as np
from scipy import fft

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError

_ROUNDING = 2.0**-53
_LARGEST_ERROR = 0.125  # an error below 1/2 still rounds to the right whole number
_BLOCK = 1 << 17  # values that are transformed at a time: they stay in the cache
_SHORT = 128  # up to here direct sums are quicker than transforms, and more exact
_BOUND = 1e70  # squares of products of numbers below it stay finite


def convolve_whole(weights: IntArray, values: IntArray) -> IntArray:
    """Convolve whole `weights`, shape (l,), with each row of whole `values`, shape (k, n).

    Returns shape (k, n + l - 1). Exact as long as each output fits into 63 bits.

    Notes
    -----
    Both are split into digits of a few bits; digits are convolved in floating point, and the results are rounded. The
    error of an FFT convolution of length 2^m is at most (13 m + 3) u ||a||_2 ||b||_2, u = 2^-53: each of the m stages
    of each of the three transforms adds at most (1 + sqrt 5 + 1) u of the norm (Brent, Percival and Zimmermann).
    Digits are so short that this bound stays below 1/8 for any values. They are recombined modulo 2^64, which loses
    nothing.
    """
    length = values.shape[1] + len(weights) - 1
    size = 1 << max(length - 1, 1).bit_length()
    bits = _digit_bits(len(weights), values.shape[1], size)
    spectra = [fft.rfft(digit, size) for digit in _digits(weights, bits)]
    out = np.zeros((len(values), length), dtype=np.int64)
    block = max(1, _BLOCK // size)
    for start in range(0, len(values), block):
        others = [fft.rfft(digit, size) for digit in _digits(values[start : start + block], bits)]
        for place in range(len(spectra) + len(others) - 1):
            pairs = [(k, place - k) for k in range(len(spectra)) if 0 <= place - k < len(others)]
            product = np.sum([spectra[k] * others[j] for k, j in pairs], axis=0)
            whole = np.rint(fft.irfft(product, size)[:, :length]).astype(np.int64)
            out[start : start + block] += whole << (place * bits)
    return out


def wrapped(values: IntArray, period: int) -> IntArray:
    """Add up each row modulo `period`, which turns a linear convolution into a circular one."""
    padded = np.pad(values, ((0, 0), (0, -values.shape[1] % period)))
    return np.asarray(padded.reshape(len(values), -1, period).sum(axis=1))


def _digit_bits(length: int, width: int, size: int) -> int:
    """Return the longest digits whose convolution is certain to be rounded correctly."""
    for bits in range(24, 3, -1):
        norms = 4.0 ** (bits - 1) * math.sqrt(length * width)
        if (13 * math.log2(size) + 3) * _ROUNDING * -(-64 // bits) * norms <= _LARGEST_ERROR:
            return bits
    raise InputError(f"{size} values are too many for exact convolution: publish the series in parts.", size=size)


def _digits(values: IntArray, bits: int) -> list[IntArray]:
    """Return balanced digits, lowest first: values = sum over k of digits[k] 2^(k bits), each within 2^(bits-1)."""
    rest = values
    digits: list[IntArray] = []
    while not digits or rest.any():
        carried = (rest + (1 << (bits - 1))) >> bits
        digits.append(rest - (carried << bits))
        rest = carried
    return digits


def product(first: FloatArray, second: FloatArray, n: int) -> FloatArray:
    """Return the first `n` coefficients of a product of power series; NaN if they are out of bounds."""
    first, second = first[:n], second[:n]
    if not (np.abs(first).max() < _BOUND and np.abs(second).max() < _BOUND):
        return np.full(n, np.nan)
    length = len(first) + len(second) - 1
    if min(len(first), len(second)) <= _SHORT:
        whole = np.convolve(first, second)
    else:
        size = fft.next_fast_len(length, real=True)
        whole = fft.irfft(fft.rfft(first, size) * fft.rfft(second, size), size)
    kept = np.zeros(n)
    kept[:length] = whole[: min(n, length)]
    return kept


def inverse(series: FloatArray, n: int) -> FloatArray:
    """Return the first `n` coefficients of 1 / series, by Newton's method; the constant term must not be 0."""
    approximation = np.array([1.0 / series[0]])
    while len(approximation) < n:
        size = min(2 * len(approximation), n)
        rest = -product(series, approximation, size)
        rest[0] += 2.0
        approximation = product(approximation, rest, size)
    return approximation


def square_root(series: FloatArray, n: int) -> FloatArray:
    """Return the first `n` coefficients of the square root, by Newton's method; the constant term must be above 0.

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
