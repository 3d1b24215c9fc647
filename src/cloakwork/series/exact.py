"""Convolution of whole numbers, exactly, at the cost of a few Fourier transforms."""

import math

import numpy as np
from scipy import fft

from cloakwork._checks import IntArray
from cloakwork.errors import InputError

_ROUNDING = 2.0**-53
_LARGEST_ERROR = 0.25  # of what is then rounded to a whole number
_LEAST_BITS, _MOST_BITS = 4, 24
_BLOCK = 1 << 17  # values that are transformed at a time: they stay in the cache


def convolve_whole(weights: IntArray, values: IntArray) -> IntArray:
    """The linear convolution of whole `weights`, shape (l,), with each row of whole `values`, shape (..., n).

    Returns shape (..., n + l - 1). Exact as long as each output fits into 63 bits.

    Notes
    -----
    Both are cut into digits of a few bits, digits are convolved in floating point, and what comes out is rounded. The
    error of an FFT convolution of length 2^m is at most (13 m + 3) u ||a||_2 ||b||_2, u = 2^-53: each of the m stages
    of each of the three transforms adds at most (1 + sqrt 5 + 1) u of the norm, for one addition, one complex
    multiplication and a root of unity that is off by u (Brent, Percival and Zimmermann). With twice that to spare,
    digits are taken so short that it stays below 1/4. Digits are put together modulo 2^64, which loses nothing.
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
    """Values of shape (..., n) added up modulo `period`: a linear convolution becomes a circular one."""
    length = values.shape[-1]
    padded = np.zeros((*values.shape[:-1], -(-length // period) * period), dtype=np.int64)
    padded[..., :length] = values
    return np.asarray(padded.reshape(*values.shape[:-1], -1, period).sum(axis=-2))


def _digit_bits(weights: IntArray, rows: IntArray, size: int) -> int:
    """The longest digits whose convolution is certain to be rounded right."""
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
