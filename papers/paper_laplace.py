"""The Fourier mechanism of Fawaz, Muthukrishnan and Nikolov, repaired: Laplace noise on real coefficients."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from cloakwork._checks import FloatArray, IntArray
from cloakwork.series import Filter
from papers.filters import magnitudes

_ULP = 2.0**-52
_COST = 0.01  # of delta, for the damping that makes the sum end
_MAX_NODES = 4000
_TILTS = (math.log(1e-4), math.log(1e8))


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


def quick_delta(shifts: FloatArray, epsilon: float) -> float:
    """Chernoff's upper bound on delta at `epsilon`, about ten times too large.

    Notes
    -----
    (1 - e^(epsilon - L))_+ <= e^(c (L - epsilon)) c^c / (c + 1)^(c + 1) for all L and c > 0.
    """
    if _pure(shifts, epsilon):
        return 0.0
    c = _tilt(shifts, epsilon)
    return _delta(_height(shifts, epsilon, c) + c * math.log(c / (c + 1)) - math.log(c + 1))


def laplace_delta(shifts: FloatArray, epsilon: float) -> float:
    """Delta at `epsilon` of numbers that move by `shifts` scales of their Laplace noise, rounded up.

    The result exceeds the true delta by a fraction of about 0.01.

    Notes
    -----
    The loss L of one number that moves by a scales has, with z = s + 1/2, the moments

        E e^(s L) = e^(-a/2) (cosh(z a) + sinh(z a) / (2 z)),

    those of independent numbers multiply to K(s), and delta = E (1 - e^(epsilon - L))_+ is the integral of
    K(s) e^(-s epsilon) / (s (s + 1)) along any line from c - i oo to c + i oo, c > 0, divided by 2 pi i. Three steps
    make it computable, and none of them can make it smaller:

    - K(s) is multiplied by e^(v s (s + 1) / 2), as if one more number were released, with Gaussian noise and
      mu = sqrt(v): that can only reveal more. Now the integrand decays like e^(-v t^2 / 2); v is chosen so that delta
      grows by that fraction.
    - The integral becomes a sum at t = 0, +-tau, +-2 tau, ...: by Poisson's formula that is delta(epsilon) plus all
      e^(c k T) delta(epsilon + k T), T = 2 pi / tau, k != 0, none of which is negative.
    - Bounds on the rest of the sum and on the floating point error are added.

    The line passes through the saddle point, so little cancels.

    Examples
    --------
    One number that moves by 2 scales has delta = 1 - e^((epsilon - 2) / 2).

    >>> round(laplace_delta(np.array([2.0]), 1.0) / (1 - math.exp(-0.5)), 2)
    1.0
    """
    if _pure(shifts, epsilon):
        return 0.0
    line = _line(shifts, epsilon)
    sizes, turns = line.weights(epsilon)
    total = float((sizes * (_moments(shifts, line) * np.exp(1j * turns)).real).sum())
    # bounds on the rounding error of a factor, relative to K(c), and of its argument
    roundings = len(shifts) * (40.0 + 4.0 * line.nodes) + 100.0
    turning = 4 * float(shifts.sum()) + epsilon + line.v * (line.last + line.c + 1)
    slip = _ULP * float((sizes * (roundings + line.t * turning)).sum())
    height = _height(shifts, epsilon, line.c) + line.v * line.c * (line.c + 1) / 2
    return _delta(height + math.log(max(total, 0.0) + line.rest + slip))


def _delta(logarithm: float) -> float:
    """A bound from its logarithm, rounded up: at most 1."""
    return min(1.0, math.exp(min(logarithm, 0.0)) * (1 + 1e-12))


@dataclass(frozen=True)
class _Line:
    """The line on which the integrand is evaluated, c + i t, t = 0, tau, 2 tau, ..., and its damping v."""

    c: float
    tau: float
    nodes: int
    v: float

    @property
    def t(self) -> FloatArray:
        return np.asarray(self.tau * np.arange(self.nodes, dtype=np.float64))

    @property
    def last(self) -> float:
        return self.tau * self.nodes

    @property
    def rest(self) -> float:
        """A bound on the rest of the sum, relative to K(c)."""
        end = math.exp(-self.v * self.last**2 / 2)
        return end * (self.tau / self.last + 1) / (math.pi * self.last)

    def weights(self, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """Size and argument of all factors but the moments, relative to c; both signs of t together."""
        t = self.t
        sizes = self.tau / math.pi * np.exp(-self.v * t**2 / 2) / np.hypot(self.c, t) / np.hypot(self.c + 1, t)
        sizes[0] /= 2
        return sizes, t * (self.v * (self.c + 0.5) - epsilon) - np.arctan2(t, self.c) - np.arctan2(t, self.c + 1)


def _line(shifts: FloatArray, epsilon: float) -> _Line:
    """A line with negligible aliases.

    They are T apart, c T = 12 - log(K(c) e^(-c epsilon)). The one below adds less than e^-12 of K(c) e^(-c epsilon),
    and where the loss is nearly normal the one above is 4.9 standard deviations away or more.
    """
    c = _tilt(shifts, epsilon)
    apart = (12.0 + max(-_height(shifts, epsilon, c), 0.0)) / c
    tau = 2 * math.pi / apart
    ends = math.log(1e4 * (1 + c * apart))
    nodes = min(math.ceil(math.sqrt(c * (c + 1) * ends / _COST) / tau) + 2, _MAX_NODES)
    return _Line(c, tau, nodes, 2 * ends / (tau * nodes) ** 2)


def _pure(shifts: FloatArray, epsilon: float) -> bool:
    """Whether the loss never exceeds epsilon."""
    return float(shifts.sum()) * (1 + 1e-12) <= epsilon


def _tilt(shifts: FloatArray, epsilon: float) -> float:
    """The saddle point: where K(c) e^(-c epsilon) / (c (c + 1)) is least."""

    def goal(log_c: float) -> float:
        c = math.exp(log_c)
        return _height(shifts, epsilon, c) - math.log(c) - math.log(c + 1)

    return math.exp(float(minimize_scalar(goal, bounds=_TILTS, method="bounded", options={"xatol": 1e-2}).x))


def _height(shifts: FloatArray, epsilon: float, c: float) -> float:
    """The logarithm of K(c) e^(-c epsilon), rounded up."""
    q = np.exp(-(2 * c + 1) * shifts)
    logs = np.log((1 + q) / 2 + (1 - q) / (4 * c + 2))
    total = float(shifts.sum())
    slip = 8 * _ULP * (4 * len(shifts) + c * (total + epsilon) + float(np.abs(logs).sum()) + 4)
    return c * (total - epsilon) + float(logs.sum()) + slip


def _moments(shifts: FloatArray, line: _Line) -> FloatArray:
    """K(s) / K(c) at each s, complex.

    Each factor is e^(s a) (1 + 1/(2 z)) / 2 times 1 + r e^(-2 z a), where r = (2 z - 1) / (2 z + 1) = s / (s + 1).
    """
    c, s = line.c, line.c + 1j * line.t
    waves = np.empty((line.nodes, len(shifts)), dtype=np.complex128)
    waves[0] = np.exp(-(2 * c + 1) * shifts)
    waves[1:] = np.exp(-2j * line.tau * shifts)
    np.multiply.accumulate(waves, axis=0, out=waves)
    waves *= (s / (s + 1))[:, None]
    waves += 1.0
    waves /= waves[0].copy()
    first = (s + 1) / (2 * s + 1) * ((2 * c + 1) / (c + 1))
    turns = 1j * line.t * shifts.sum() + len(shifts) * np.log(first)
    return np.asarray(waves.prod(axis=1) * np.exp(turns))
