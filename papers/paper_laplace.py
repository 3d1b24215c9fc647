"""The Fourier mechanism of Fawaz, Muthukrishnan and Nikolov, repaired: Laplace noise on real coefficients."""

import math

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.series import Filter
from papers.filters import magnitudes
from papers.laplace_losses import laplace_delta, quick_delta

LONGEST = 1024  # the exact privacy of more coefficients takes longer than a few seconds to compute


def repaired_delta(filter_: Filter, n: int, epsilon: float, delta: float, *, circular: bool = False) -> float:
    """Return the true delta of the papers' noise at `epsilon`, where the papers state `delta`, rounded up by about 1 %.

    Notes
    -----
    Algorithm 1 adds Laplace noise to each unitary Fourier coefficient of x with h^_i != 0, of scale
    sqrt(gamma / |h^_i|), gamma = 2 ln(1/delta) ||h^||_1 / (epsilon^2 N). As printed it is not private: coefficients are
    complex and the noise is real, so imaginary parts are published unchanged. Here the noise is on the coefficients in
    the real Fourier basis: a constant, cosines and sines. Even so the proof drops a term of second order. One event
    moves the coefficients by a column of the basis, and delta is computed exactly for each column. All other changes
    are mixtures of these: 1 - delta is log-concave in the shift (Prekopa), so delta is largest at a column.
    """
    sizes = magnitudes(filter_, n, circular=circular)
    if len(sizes) > LONGEST:
        raise InputError(f"{len(sizes)} coefficients: exact privacy is computed for up to {LONGEST}.", allowed=LONGEST)
    return largest_delta(papers_shifts(sizes, epsilon, delta)[:, :n], epsilon)


def papers_shifts(sizes: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """How far one event at each time moves each real coefficient, in scales of its noise, shape (numbers, times)."""
    basis, frequencies = real_basis(len(sizes))
    unitary = sizes / math.sqrt(len(sizes))
    gamma = 2 * math.log(1 / delta) * unitary.sum() / (epsilon**2 * len(sizes))
    return np.asarray(np.abs(basis) * np.sqrt(unitary[frequencies] / gamma)[:, None])


def largest_delta(shifts: FloatArray, epsilon: float) -> float:
    """The largest delta at `epsilon` of all columns of `shifts`, in scales of the noise, rounded up by about 1 %."""
    moving = np.unique(np.sort(np.abs(shifts).round(15), axis=0), axis=1).T
    bounds = [quick_delta(column[column > 0], epsilon) for column in moving]
    worst = 0.0
    for which in np.argsort(bounds)[::-1]:
        if bounds[which] <= worst:
            break
        worst = max(worst, laplace_delta(moving[which][moving[which] > 0], epsilon))
    return worst


def real_basis(n: int) -> tuple[FloatArray, IntArray]:
    """The orthonormal real Fourier basis in rows, shape (n, n), and the frequency of each row."""
    places = np.outer(np.arange(n // 2 + 1), np.arange(n)) % n
    turns = np.minimum(places, n - places) * (2 * np.pi / n)  # symmetric to the last bit
    sines = np.sin(turns) * np.where(2 * places > n, -1.0, 1.0)
    rows = np.concatenate([np.cos(turns), sines[1 : (n + 1) // 2]])
    frequencies = np.concatenate([np.arange(n // 2 + 1), np.arange(1, (n + 1) // 2)])
    twice = (frequencies != 0) & (2 * frequencies != n)
    return rows * np.sqrt(np.where(twice, 2.0, 1.0) / n)[:, None], frequencies
