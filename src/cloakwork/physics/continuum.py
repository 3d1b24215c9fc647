"""Certified steepest slopes of the Gaussian kernel over a continuum of places.

A grid that includes the corners and edges of the domain, with a bound on the curvature around each point, turns a
maximum over the grid into one over the domain: at the maximum of the squared slope S its gradient vanishes (along the
boundary, if the maximum is there), so S is at least S_max - C r^2 / 2 at the nearest grid point, with C the curvature
bound and r half the grid's diagonal.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray
from cloakwork.physics.moves import OUTWARD, Slope, pieces_of

FINEST_LINE = 2**17
TOGETHER = 1024  # points of a line whose tables stay in the cache
FINEST_PLANE = 2**10
MAX_CENTRES = 4_000_000  # centres of swept regions times sensors
FINE = 0.05  # distance of such centres, in standard deviations of the kernel
POINTS = 4  # listed per standard deviation of the kernel
MAX_POINTS = 10_000_000  # such points times sensors
DIRECTIONS = 12  # of moves on a plane, over half a turn
FIFTH = 5.784  # at least the largest |u^5 - 10 u^3 + 15 u| exp(-u^2/2)
ENOUGH = 1e-6  # relative excess of the certified squared slope at which refinement stops


@dataclass(frozen=True)
class CertifiedMaximum:
    """A bound `value` on a supremum, and the position `at` near which it occurs."""

    value: float
    at: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class AnywhereMoves:
    """Moves of a source anywhere, in any direction, with sensors within `position` of theirs.

    `peak` bounds the largest norm of the slopes of all sensors, for factors (m,) of them. `gradients_at` and `places`,
    of which there are `counts` along each axis of the `extent`, are those of the model. `height` is the largest reading
    and T the diffusion time.
    """

    peak: Callable[[FloatArray], "CertifiedMaximum"]
    gradients_at: Callable[[FloatArray], FloatArray]
    places: FloatArray
    counts: tuple[int, ...]
    extent: tuple[float, ...]
    sensors: int
    height: float
    T: float
    position: float = 0.0

    @property
    def each(self) -> FloatArray:
        return np.full(self.sensors, steepest_kernel(self.height, self.T) * OUTWARD)

    def steepest(self, weights: FloatArray | None = None) -> Slope:
        factors = np.ones(self.sensors) if weights is None else weights
        peak = self.peak(factors)
        shift = self.position * float(np.linalg.norm(factors)) * self.height / (2 * self.T)
        nearest = np.argsort(((self.places - np.asarray(peak.at)) ** 2).sum(axis=1))[:2]
        return Slope((peak.value + shift) * OUTWARD, (int(nearest[0]), int(nearest[-1])))

    def rows(self) -> Iterator[FloatArray]:
        """Slopes in all directions at points that resolve the kernel, or at the places where these are too many."""
        density, points = POINTS / math.sqrt(2 * self.T), self.places
        counts = [max(k, math.ceil(density * side)) for k, side in zip(self.counts, self.extent, strict=True)]
        if math.prod(counts) * self.sensors <= MAX_POINTS:
            points = lattice(counts, self.extent)
        angles = math.pi * np.arange(DIRECTIONS) / DIRECTIONS
        turns = np.stack([np.cos(angles), np.sin(angles)], axis=1) if len(counts) == 2 else np.ones((1, 1))
        for piece in pieces_of(len(points), len(turns) * self.sensors):
            yield (turns @ self.gradients_at(points[piece])).reshape(-1, self.sensors)


def lattice(counts: Sequence[int], size: Sequence[float]) -> FloatArray:
    """Points at `size` i/n for i = 1..n along each axis, shape (points, axes)."""
    axes = [side * np.arange(1, k + 1) / k for side, k in zip(size, counts, strict=True)]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def heat_kernel(offsets: FloatArray, T: float) -> FloatArray:
    """g(x) = exp(-x^2 / 4T) / sqrt(4 pi T)."""
    return np.asarray(np.exp(-(offsets**2) / (4 * T)) / np.sqrt(4 * np.pi * T))


def kernel_error(offsets: FloatArray, T: float, length: float) -> FloatArray:
    """Bound on the relative error of a computed kernel value, in roundings.

    It adds up the arithmetic, the roundings of the exponent times its size, and those of the two positions (each half
    an ulp of `length`) times the slope of the logarithm of the kernel.
    """
    return np.asarray(8 + 3 * offsets**2 / (4 * T) + np.abs(offsets) * length / T)


def steepest_kernel(height: float, T: float) -> float:
    """The steepest slope of a kernel of this height, at a distance of sqrt(2T)."""
    return height * math.exp(-0.5) / math.sqrt(2 * T)


def margin(T: float, sensors: int) -> float:
    """The margin beyond its sensors within which a space holds the steepest slope of all sources.

    Notes
    -----
    The kernel of a later time is a mean of shifted kernels of an earlier one, so over sources anywhere in an endless
    space the norm of all slopes never grows with time. At u standard deviations from all m sensors it is at most
    sqrt(m) u exp(-u^2/2) times that of a single kernel at its top, and for u = 2 + sqrt(ln m) this is below
    exp(-1/2), the steepest slope of the sensor with the largest weight.
    """
    return float((2 + np.sqrt(np.log(sensors))) * np.sqrt(2 * T))


def line_peak(sensors: FloatArray, T: float, length: float, weights: FloatArray) -> CertifiedMaximum:
    """Sup over x in [0, length] of the l2 norm of weights * g'(x - sensors)."""
    points = 257
    while True:
        x = np.linspace(0, length, points)
        half = length / (points - 1) / 2
        squared, bound = np.empty(points), np.empty(points)
        for start in range(0, points, TOGETHER):
            part = slice(start, start + TOGETHER)
            tables = _Tables.on_axis(x[part], sensors, T, half)
            _, first, second, third = tables.envelopes
            squared[part] = tables.slope**2 @ weights**2
            bound[part] = squared[part] + (2 * (second**2 + first * third)) @ weights**2 * half**2 / 2
        best = int(np.argmax(bound))
        if bound[best] <= squared.max() * (1 + ENOUGH) or points > FINEST_LINE:
            return CertifiedMaximum(float(np.sqrt(bound[best])), (float(x[best]),))
        points = 2 * points - 1


def plane_peak(sensors: FloatArray, T: float, size: tuple[float, float], weights: FloatArray) -> CertifiedMaximum:
    """Sup over the plane of the largest singular value of diag(weights) dM/d(x, y)."""
    points = 65
    while True:
        axes = [np.linspace(0, side, points) for side in size]
        halves = [side / (points - 1) / 2 for side in size]
        x, y = (
            _Tables.on_axis(axis, sensors[:, k], T, half)
            for k, (axis, half) in enumerate(zip(axes, halves, strict=True))
        )
        squared = _largest_eigenvalue(x, y, weights)
        reach = halves[0] ** 2 + halves[1] ** 2
        bound = squared + _plane_curvature(x, y, weights, T) * reach / 2
        best = np.unravel_index(int(np.argmax(bound)), bound.shape)
        if bound[best] <= squared.max() * (1 + 100 * ENOUGH) or points > FINEST_PLANE:
            return CertifiedMaximum(float(np.sqrt(bound[best])), (float(axes[0][best[0]]), float(axes[1][best[1]])))
        points = 2 * points - 1


def swept_kernel(
    sensors: FloatArray, T: float, size: tuple[float, ...], radius: float, height: float
) -> NDArray[np.float64]:
    """Largest slope of each sensor's kernel within `radius` of each centre, shape (m, centres), rounded up.

    Every point of the domain lies within `radius` of some centre's surroundings: the centres form a grid, and half its
    diagonal is added to the radius. The slope at a distance r is `height` r/2T exp(-r^2/4T), which grows up to
    r = sqrt(2T) and falls from there.
    """
    peak = np.sqrt(2 * T)
    most = max(9, int((MAX_CENTRES / len(sensors)) ** (1 / len(size))))
    counts = [min(most, max(2, int(side / (peak * FINE)) + 2)) for side in size]
    axes = [np.linspace(0, side, k) for side, k in zip(size, counts, strict=True)]
    cover = radius + np.sqrt(sum((side / (k - 1) / 2) ** 2 for side, k in zip(size, counts, strict=True)))
    centres = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    apart = np.sqrt(sum((sensors[:, k, None] - centres[:, k]) ** 2 for k in range(len(size))))
    r = np.clip(peak, apart - cover, apart + cover)
    return np.asarray(height * r / (2 * T) * np.exp(-(r**2) / (4 * T)) * (1 + 1e-12))


@dataclass(frozen=True, eq=False)
class _Tables:
    """The kernel and its derivative on one axis (points x sensors), and envelopes of |g|, |g'|, |g''|, |g'''|."""

    g: FloatArray
    slope: FloatArray
    envelopes: tuple[FloatArray, FloatArray, FloatArray, FloatArray]

    @classmethod
    def on_axis(cls, axis: FloatArray, sensors: FloatArray, T: float, half: float) -> "_Tables":
        offsets = axis[:, None] - sensors
        g = heat_kernel(offsets, T)
        return cls(g, -offsets / (2 * T) * g, _envelopes(offsets, T, half))


def _envelopes(offsets: FloatArray, T: float, half: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Suprema of |g|, |g'|, |g''|, |g'''| over all distances of at least |offset| - half, for each offset."""
    scale = np.sqrt(2 * T)
    u = np.maximum(np.abs(offsets) - half, 0) / scale
    bell = np.exp(-(u**2) / 2)
    peak = 1 / np.sqrt(4 * np.pi * T)
    first = np.where(u < 1, np.exp(-0.5), u * bell)
    second = np.maximum(bell, np.where(u < np.sqrt(3), 2 * np.exp(-1.5), (u**2 - 1) * bell))
    # |u^3 - 3u| exp(-u^2/2) peaks at 1.3802; past u = 3^(1/4) the sum u^3 + 3u decreases
    third = np.where(u < 3**0.25, 1.3802, np.minimum(1.3802, (u**3 + 3 * u) * bell))
    return peak * bell, peak * first / scale, peak * second / scale**2, peak * third / scale**3


def _largest_eigenvalue(x: _Tables, y: _Tables, weights: FloatArray) -> FloatArray:
    squares = weights**2
    a = (x.slope**2 * squares) @ (y.g**2).T
    b = (x.g**2 * squares) @ (y.slope**2).T
    c = (x.slope * x.g * squares) @ (y.slope * y.g).T
    return np.asarray((a + b) / 2 + np.sqrt(((a - b) / 2) ** 2 + c**2))


def _plane_curvature(x: _Tables, y: _Tables, weights: FloatArray, T: float) -> FloatArray:
    """Bound on the Hessian of every directional squared slope.

    2 sum w^2 (H^2 + G K), with H, G, K the Frobenius norms of the Hessian, gradient and third derivatives of one
    sensor's kernel; G K <= (G^2 c + K^2 / c) / 2 makes the sum separable.
    """
    squares = weights**2

    def total(i: int, j: int) -> FloatArray:
        return np.asarray((x.envelopes[i] ** 2 * squares) @ (y.envelopes[j] ** 2).T)

    c = (2 * T) ** -2
    hessian = total(2, 0) + 2 * total(1, 1) + total(0, 2)
    gradient = total(1, 0) + total(0, 1)
    third = total(3, 0) + 3 * total(2, 1) + 3 * total(1, 2) + total(0, 3)
    return 2 * (hessian + (gradient * c + third / c) / 2)
