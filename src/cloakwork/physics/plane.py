"""Heat on a plane without walls."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from cloakwork._checks import FloatArray, count, points, positive, read_only
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics
from cloakwork.physics.continuum import (
    AnywhereMoves,
    CertifiedMaximum,
    heat_kernel,
    kernel_error,
    lattice,
    margin,
    plane_peak,
    swept_kernel,
)
from cloakwork.physics.moves import Moves, RowMoves
from cloakwork.physics.space import Metric, Space


@dataclass(frozen=True, eq=False)
class HeatPlane(Physics):
    """A pulse of heat on a rectangle: the product of two lines.

    Parameters
    ----------
    n
        Number of places along x and y, at `size` i/n as on the line; place (i, j) has index i ny + j.
    m
        Number of sensors along x and y, likewise, or a list of (x, y) positions.
    T, gain
        As for `HeatLine`, with T in squared units of `size`.
    size
        Width and height.

    Notes
    -----
    Distance is Euclidean and sources may be anywhere in the rectangle: the slope is the supremum of the largest
    singular value of dM/d(x, y). Neighbours on the grid alone would understate it by up to sqrt 2.

    >>> plane = HeatPlane(n=(20, 10), m=(8, 4), T=0.02, size=(2.0, 1.0))
    >>> plane.places, plane.sensors
    (200, 32)
    """

    n: tuple[int, int]
    m: tuple[int, int] | Sequence[tuple[float, float]]
    T: float
    size: tuple[float, float] = (1.0, 1.0)
    gain: float = 1.0
    only_listed = False

    def __post_init__(self) -> None:
        for name in ("n", "m", "size"):
            value = getattr(self, name)
            if not isinstance(value, Sequence | np.ndarray) or (name != "m" and len(value) != 2):
                raise PhysicsError(f"{name}={value!r}: give two numbers, for x and y.", **{name: value})
        for number in self.n:
            count("n", number, error=PhysicsError)
        for name, value in (("size", self.size[0]), ("size", self.size[1]), ("T", self.T), ("gain", self.gain)):
            positive(name, value, error=PhysicsError)
        where = self.sensor_positions
        outside = np.flatnonzero(((where < 0) | (where > np.asarray(self.size))).any(axis=1))
        if len(outside):
            raise PhysicsError(
                f"sensor {outside[0]} at {where[outside[0]].tolist()} is outside the plane of {self.size}.",
                sensor=int(outside[0]),
            )

    @cached_property
    def sensor_positions(self) -> FloatArray:
        if len(self.m) == 2 and all(isinstance(value, int | np.integer) for value in self.m):
            mx, my = (count("m", value, error=PhysicsError) for value in self.m if isinstance(value, int | np.integer))
            return read_only(lattice((mx, my), self.size))
        return read_only(points("m", self.m, error=PhysicsError))

    @cached_property
    def space(self) -> Space:
        nx, ny = self.n
        steps = (self.size[0] / nx, self.size[1] / ny)
        index = np.arange(nx * ny).reshape(nx, ny)
        along_x = np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)
        along_y = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
        lengths = np.r_[np.full(len(along_x), steps[0]), np.full(len(along_y), steps[1])]
        return Space(lattice(self.n, self.size), np.concatenate([along_x, along_y]), lengths, Metric.PLANE)

    @cached_property
    def matrix(self) -> FloatArray:
        axes = [self.size[k] * np.arange(1, self.n[k] + 1) / self.n[k] for k in range(2)]
        x, y = (heat_kernel(self.sensor_positions[:, k, None] - axes[k], self.T) for k in range(2))
        return read_only(self.gain * (x[:, :, None] * y[:, None, :]).reshape(len(x), -1))

    def columns_at(self, positions: FloatArray) -> FloatArray:
        x, y = (heat_kernel(self.sensor_positions[:, k, None] - positions[:, k], self.T) for k in range(2))
        return self.gain * x * y

    def gradients_at(self, positions: FloatArray) -> FloatArray:
        offsets = self.sensor_positions.T - positions[:, :, None]
        return self.columns_at(positions).T[:, None, :] * offsets / (2 * self.T)

    @property
    def extent(self) -> tuple[float, float]:
        return self.size

    @property
    def anywhere(self) -> bool:
        return True

    @property
    def error(self) -> float:
        each = [
            kernel_error(self.sensor_positions[:, k, None] - np.unique(self.space.places[:, k]), self.T, self.size[k])
            for k in range(2)
        ]
        ulps = each[0][:, :, None] + each[1][:, None, :]
        return float(np.finfo(float).eps * np.linalg.norm(ulps.reshape(self.matrix.shape) * self.matrix))

    @property
    def pulse(self) -> bool:
        return True

    @property
    def endless(self) -> "HeatPlane":
        """The same sensors on a larger plane, whose slopes never grow with T (see `margin`)."""
        more = margin(self.T, self.sensors)
        width, height = (side + 2 * more for side in self.size)
        return replace(self, m=[(x + more, y + more) for x, y in self.sensor_positions], size=(width, height))

    @property
    def convex(self) -> bool:
        return True

    def with_spread(self, factor: float) -> Self:
        return replace(self, T=self.T * factor)

    def moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        model = (self.gradients_at, self.space.places, tuple(self.n), self.size, self.sensors, self._height, self.T)
        still = AnywhereMoves(self._steepest, *model, position)
        if not travel:
            return still
        swept = swept_kernel(self.sensor_positions, self.T, self.size, travel / 2 + position, self._height)
        return RowMoves.of(swept.T, alone=still.each)

    def later_moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        return self.endless.moves(position=position, travel=travel if math.isfinite(travel) else 0.0)

    def _steepest(self, weights: FloatArray) -> CertifiedMaximum:
        return plane_peak(self.sensor_positions, self.T, self.size, self.gain * weights)

    @property
    def _height(self) -> float:
        """The largest reading."""
        return self.gain / (4 * math.pi * self.T)
