"""The Gaussian kernel of heat on a line or a plane, and its certified steepest slopes over a continuum of places.

A grid that includes the corners and edges of the domain, with a bound on the curvature around each point, turns a
maximum over the grid into one over the domain: at the maximum of the squared slope S its gradient vanishes (along the
boundary, if the maximum is there), so S is at least S_max - C r^2 / 2 at the nearest grid point, with C the curvature
bound and r half the grid's diagonal.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.physics.moves import OUTWARD, Moves, RowMoves, Slope, pieces_of

FIRST, LAST = (257, 65), (2**17, 2**10)  # points along each axis of a line and of a plane: at first, and at most
ENOUGH = (1e-6, 1e-4)  # relative excess of the certified squared slope at which refinement stops
TOGETHER = 1024  # points of a line whose tables stay in the cache
MAX_CENTRES = 4_000_000  # centres of swept regions times sensors
FINE = 0.05  # distance of such centres, in standard deviations of the kernel
POINTS = 4  # listed per standard deviation of the kernel
MAX_POINTS = 10_000_000  # such points times sensors
DIRECTIONS = 12  # of moves on a plane, over half a turn
FIFTH = 5.784  # at least the largest |u^5 - 10 u^3 + 15 u| exp(-u^2/2)


@dataclass(frozen=True, eq=False)
class HeatKernel:
    """Readings gain g(x - s) of a pulse at x, g(x) = exp(-|x|^2 / 4T) / (4 pi T)^(d/2), on a line (d = 1) or a plane.

    `sensors` (m, d) are the positions s, and sources are from 0 to `size` (d,).
    """

    sensors: FloatArray
    T: float
    size: tuple[float, ...]
    gain: float

    @property
    def height(self) -> float:
        """The largest reading."""
        return self.gain / float((4 * math.pi * self.T) ** (len(self.size) / 2))

    @property
    def ceiling(self) -> float:
        """The steepest slope of one sensor, at a distance of sqrt(2T), rounded up."""
        return self.height * math.exp(-0.5) / math.sqrt(2 * self.T) * OUTWARD

    @property
    def bend(self) -> float:
        """The most by which a slope changes per unit of distance that its sensor is displaced."""
        return self.height / (2 * self.T)

    def columns(self, positions: FloatArray) -> FloatArray:
        """Readings of unit sources at positions (p, d), shape (m, p)."""
        axes = zip(self.sensors.T, positions.T, strict=True)
        factors = (heat_kernel(here[:, None] - there, self.T) for here, there in axes)
        return np.asarray(math.prod(factors, start=self.gain))

    def gradients(self, positions: FloatArray) -> FloatArray:
        """Derivatives of the readings along each axis, shape (p, d, m)."""
        offsets = self.sensors.T - positions[:, :, None]
        return self.columns(positions).T[:, None, :] * offsets / (2 * self.T)

    def error(self, positions: FloatArray) -> float:
        """Bound on the error of `columns` in the spectral norm.

        It adds up the arithmetic, the roundings of the exponent times its size, and those of the two positions (each
        half an ulp of the size) times the slope of the logarithm of the kernel.
        """
        ulps = np.zeros((len(self.sensors), len(positions)))
        for here, there, side in zip(self.sensors.T, positions.T, self.size, strict=True):
            offsets = here[:, None] - there
            ulps += 8 + 3 * offsets**2 / (4 * self.T) + np.abs(offsets) * side / self.T
        return float(np.finfo(float).eps * np.linalg.norm(ulps * self.columns(positions)))

    @property
    def endless(self) -> "HeatKernel":
        """The same sensors with a margin around them, such that no slope within it grows with T.

        Notes
        -----
        The kernel of a later time is a mean of shifted kernels of an earlier one, so over sources anywhere in an
        endless space the norm of all slopes never grows with time. At u standard deviations from all m sensors it is at
        most sqrt(m) u exp(-u^2/2) times that of a single kernel at its top, and for u = 2 + sqrt(ln m) this is below
        exp(-1/2), the steepest slope of the sensor with the largest weight.
        """
        more = (2 + math.sqrt(math.log(len(self.sensors)))) * math.sqrt(2 * self.T)
        return replace(self, sensors=self.sensors + more, size=tuple(side + 2 * more for side in self.size))

    def moves(self, counts: Sequence[int], *, position: float, travel: float) -> Moves:
        """The moves of sources anywhere; `counts` (d,) are the places along each axis, which name the steepest."""
        still = AnywhereMoves(self, tuple(counts), position)
        return RowMoves.of(self.swept(travel / 2 + position), alone=still.each) if travel else still

    def later_moves(self, counts: Sequence[int], *, position: float, travel: float) -> Moves:
        """The same at this time and at all later times; with an infinite `travel`, only `each` has a meaning."""
        return self.endless.moves(counts, position=position, travel=travel if math.isfinite(travel) else 0.0)

    def swept(self, radius: float) -> FloatArray:
        """Largest slope of each sensor within `radius` of each centre, shape (centres, m), rounded up.

        Every point of the domain lies within `radius` of some centre's surroundings: the centres form a grid, and half
        its diagonal is added to the radius. The slope at a distance r is `height` r/2T exp(-r^2/4T), which grows up to
        r = sqrt(2T) and falls from there.
        """
        peak = math.sqrt(2 * self.T)
        most = max(9, int((MAX_CENTRES / len(self.sensors)) ** (1 / len(self.size))))
        counts = [min(most, max(2, int(side / (peak * FINE)) + 2)) for side in self.size]
        centres = _grid([np.linspace(0, side, k) for side, k in zip(self.size, counts, strict=True)])
        cover = radius + math.hypot(*(side / (k - 1) / 2 for side, k in zip(self.size, counts, strict=True)))
        apart = np.sqrt(sum((centres[:, k, None] - self.sensors[:, k]) ** 2 for k in range(len(self.size))))
        r = np.clip(peak, apart - cover, apart + cover)
        return np.asarray(self.height * r / (2 * self.T) * np.exp(-(r**2) / (4 * self.T)) * OUTWARD)

    def steepest(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """A bound on the largest norm of weighted slopes in any direction, and the position near which it occurs."""
        squares, axes = (self.gain * weights) ** 2, len(self.size)
        points = FIRST[axes - 1]
        while True:
            grid = [np.linspace(0, side, points) for side in self.size]
            halves = [side / (points - 1) / 2 for side in self.size]
            squared, curvature = (_on_line if axes == 1 else _on_plane)(self, grid, halves, squares)
            bound = squared + curvature * sum(half**2 for half in halves) / 2
            best = np.unravel_index(int(np.argmax(bound)), bound.shape)
            if bound[best] <= squared.max() * (1 + ENOUGH[axes - 1]) or points > LAST[axes - 1]:
                return math.sqrt(bound[best]), np.array([axis[k] for axis, k in zip(grid, best, strict=True)])
            points = 2 * points - 1


@dataclass(frozen=True, eq=False)
class AnywhereMoves:
    """Moves of a source anywhere, in any direction, with sensors within `position` of theirs.

    `counts` are the places of the model along each axis.
    """

    kernel: HeatKernel
    counts: tuple[int, ...]
    position: float

    @cached_property
    def each(self) -> FloatArray:
        return np.full(len(self.kernel.sensors), self.kernel.ceiling)

    def steepest(self, weights: FloatArray | None = None) -> Slope:
        factors = np.ones(len(self.kernel.sensors)) if weights is None else weights
        value, at = self.kernel.steepest(factors)
        shift = self.position * self.kernel.bend * float(np.linalg.norm(factors))
        nearest = np.argsort(((lattice(self.counts, self.kernel.size) - at) ** 2).sum(axis=1))[:2]
        return Slope((value + shift) * OUTWARD, (int(nearest[0]), int(nearest[-1])))

    def rows(self) -> Iterator[FloatArray]:
        """Slopes in all directions at points that resolve the kernel, or at the places where these are too many."""
        kernel, density = self.kernel, POINTS / math.sqrt(2 * self.kernel.T)
        sensors, axes = kernel.sensors.shape
        counts = [max(k, math.ceil(density * side)) for k, side in zip(self.counts, kernel.size, strict=True)]
        points = lattice(counts if math.prod(counts) * sensors <= MAX_POINTS else self.counts, kernel.size)
        angles = math.pi * np.arange(DIRECTIONS) / DIRECTIONS
        turns = np.stack([np.cos(angles), np.sin(angles)], axis=1) if axes == 2 else np.ones((1, 1))
        for piece in pieces_of(len(points), len(turns) * sensors):
            yield (turns @ kernel.gradients(points[piece])).reshape(-1, sensors)


def lattice(counts: Sequence[int], size: Sequence[float]) -> FloatArray:
    """Points at `size` i/n for i = 1..n along each axis, shape (points, axes)."""
    return _grid([side * np.arange(1, k + 1) / k for side, k in zip(size, counts, strict=True)])


def _grid(axes: list[FloatArray]) -> FloatArray:
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def heat_kernel(offsets: FloatArray, T: float) -> FloatArray:
    """g(x) = exp(-x^2 / 4T) / sqrt(4 pi T)."""
    return np.asarray(np.exp(-(offsets**2) / (4 * T)) / np.sqrt(4 * np.pi * T))


def _on_line(
    kernel: HeatKernel, grid: list[FloatArray], halves: list[float], squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The squared slope at each point, and a bound on its second derivative nearby."""
    parts = []
    for start in range(0, len(grid[0]), TOGETHER):
        x = _Tables.on_axis(grid[0][start : start + TOGETHER], kernel.sensors[:, 0], kernel.T, halves[0])
        _, first, second, third = x.envelopes
        parts.append((x.slope**2 @ squares, 2 * (second**2 + first * third) @ squares))
    slopes, curvatures = (np.concatenate(each) for each in zip(*parts, strict=True))
    return slopes, curvatures


def _on_plane(
    kernel: HeatKernel, grid: list[FloatArray], halves: list[float], squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The squared slope in the steepest direction at each point, and a bound on its Hessian nearby.

    The bound is 2 sum w^2 (H^2 + G K), with H, G, K the Frobenius norms of the Hessian, gradient and third derivatives
    of one sensor's kernel; G K <= (G^2 c + K^2 / c) / 2 makes the sum separable.
    """
    x, y = (_Tables.on_axis(grid[k], kernel.sensors[:, k], kernel.T, halves[k]) for k in range(2))
    a = (x.slope**2 * squares) @ (y.g**2).T
    b = (x.g**2 * squares) @ (y.slope**2).T
    c = (x.slope * x.g * squares) @ (y.slope * y.g).T

    def total(i: int, j: int) -> FloatArray:
        return np.asarray((x.envelopes[i] ** 2 * squares) @ (y.envelopes[j] ** 2).T)

    scale = (2 * kernel.T) ** -2
    hessian, gradient = total(2, 0) + 2 * total(1, 1) + total(0, 2), total(1, 0) + total(0, 1)
    third = total(3, 0) + 3 * total(2, 1) + 3 * total(1, 2) + total(0, 3)
    curvature = 2 * (hessian + (gradient * scale + third / scale) / 2)
    return (a + b) / 2 + np.sqrt(((a - b) / 2) ** 2 + c**2), curvature


@dataclass(frozen=True, eq=False)
class _Tables:
    """The kernel and its derivative on one axis (points x sensors), and suprema of |g|, |g'|, |g''|, |g'''| nearby."""

    g: FloatArray
    slope: FloatArray
    envelopes: tuple[FloatArray, FloatArray, FloatArray, FloatArray]

    @classmethod
    def on_axis(cls, axis: FloatArray, sensors: FloatArray, T: float, half: float) -> "_Tables":
        """Tables for points whose surroundings end at a distance of `half`."""
        offsets, scale, peak = axis[:, None] - sensors, np.sqrt(2 * T), 1 / np.sqrt(4 * np.pi * T)
        g = heat_kernel(offsets, T)
        u = np.maximum(np.abs(offsets) - half, 0) / scale  # the suprema are over all distances from here on
        bell = np.exp(-(u**2) / 2)
        first = np.where(u < 1, np.exp(-0.5), u * bell)
        second = np.maximum(bell, np.where(u < np.sqrt(3), 2 * np.exp(-1.5), (u**2 - 1) * bell))
        # |u^3 - 3u| exp(-u^2/2) peaks at 1.3802; past u = 3^(1/4) the sum u^3 + 3u decreases
        third = np.where(u < 3**0.25, 1.3802, np.minimum(1.3802, (u**3 + 3 * u) * bell))
        envelopes = (peak * bell, peak * first / scale, peak * second / scale**2, peak * third / scale**3)
        return cls(g, -offsets / (2 * T) * g, envelopes)
