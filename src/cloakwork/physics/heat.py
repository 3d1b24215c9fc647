"""A pulse of heat on a line, and on a plane without walls."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Self

import numpy as np

from cloakwork._checks import FloatArray, count, member_of, points, positive, read_only
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics
from cloakwork.physics.continuum import FIFTH, HeatKernel, lattice
from cloakwork.physics.later_readings import SlopeBounds
from cloakwork.physics.moves import Moves, RowMoves
from cloakwork.physics.space import Metric, Space


class Placement(StrEnum):
    """Where sources may be."""

    GRID = "grid"
    """Only at the n places."""
    ANYWHERE = "anywhere"
    """Anywhere; the slope is then the supremum over all positions."""


class _Heat(Physics):
    """What a line and a plane take from their kernel."""

    @property
    @abstractmethod
    def kernel(self) -> HeatKernel: ...

    @cached_property
    def matrix(self) -> FloatArray:
        return read_only(self.kernel.columns(self.space.places))

    @property
    def error(self) -> float:
        return self.kernel.error(self.space.places)

    def columns_at(self, positions: FloatArray) -> FloatArray:
        return self.kernel.columns(positions)

    def gradients_at(self, positions: FloatArray) -> FloatArray:
        return self.kernel.gradients(positions)


@dataclass(frozen=True, eq=False)
class HeatLine(_Heat):
    """A pulse of heat on a line, read by sensors after a diffusion time `T`.

    Parameters
    ----------
    n
        Number of places, at `length` i/n for i = 1..n.
    m
        Number of sensors, at `length` j/m for j = 1..m, or their positions.
    T
        Diffusion constant times elapsed time, in squared units of `length`.
    length
        Length of the line.
    gain
        Reading per unit of heat density: the strength of a unit source.
    placement
        Whether sources are at the places (the default) or anywhere on the line.

    Notes
    -----
    M[j, i] = gain g(x_i - s_j) with g(x) = exp(-x^2 / 4T) / sqrt(4 pi T), Gilbert and McMillan, section 4.

    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> line.range().rank
    11
    >>> round(0.01 * line.moves().steepest().value, 6)
    0.135897
    """

    n: int
    m: int | Sequence[float]
    T: float
    length: float = 1.0
    gain: float = 1.0
    placement: Placement | str = Placement.GRID
    only_listed = False
    pulse = True

    def __post_init__(self) -> None:
        count("n", self.n, error=PhysicsError)
        for name in ("T", "length", "gain"):
            positive(name, getattr(self, name), error=PhysicsError)
        object.__setattr__(self, "placement", member_of("placement", self.placement, Placement, error=PhysicsError))
        if self.sensor_positions.ndim != 2 or not len(self.sensor_positions):
            raise PhysicsError(f"m={self.m!r}: give a number of sensors, or their positions.", m=self.m)
        _refuse_outside(self.sensor_positions, self.extent)

    @cached_property
    def sensor_positions(self) -> FloatArray:
        if isinstance(self.m, int | np.integer) and not isinstance(self.m, bool):
            return read_only(lattice((count("m", int(self.m), error=PhysicsError),), self.extent))
        try:
            return read_only(np.array(self.m, dtype=np.float64)[:, None])
        except (TypeError, ValueError):
            return np.empty(0)

    @cached_property
    def kernel(self) -> HeatKernel:
        """The readings of a source anywhere."""
        return HeatKernel(self.sensor_positions, self.T, self.extent, self.gain)

    @cached_property
    def space(self) -> Space:
        return Space.line(self.n, length=self.length)

    @property
    def extent(self) -> tuple[float]:
        return (self.length,)

    @property
    def anywhere(self) -> bool:
        return self.placement is Placement.ANYWHERE

    def with_spread(self, factor: float) -> Self:
        return replace(self, T=self.T * factor)

    def moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        if self.anywhere:
            return self.kernel.moves((self.n,), position=position, travel=travel)
        still = self.steps(position)
        return RowMoves.of(self.kernel.swept(travel / 2 + position), alone=still.each) if travel else still

    def later_moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        if self.anywhere or position or travel:
            return self.kernel.later_moves((self.n,), position=position, travel=travel)
        return super().later_moves()

    def slope_bounds(self, position: float) -> SlopeBounds:
        """Bounds on the slope |g'| and, by `FIFTH`, on its second derivative by the time, the fifth by the place."""
        del position  # see `later_moves`
        height = np.full(self.sensors, self.kernel.ceiling * (1 + 1e-9))
        return SlopeBounds(height, FIFTH / 4 * math.exp(0.5) * height)

    def steps(self, position: float = 0.0) -> RowMoves:
        """The steps between neighbours; each sensor's slope changes by at most |g''| as it moves."""
        steps = RowMoves.between_neighbours(self.matrix, self.space, self.move_error)
        steps = replace(steps, each_error=position * self.kernel.bend)
        return replace(steps, alone=np.minimum(steps.each, self.kernel.ceiling))


@dataclass(frozen=True, eq=False)
class HeatPlane(_Heat):
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
    pulse = True
    anywhere = True
    convex = True

    def __post_init__(self) -> None:
        for name in ("n", "m", "size"):
            value = getattr(self, name)
            if not isinstance(value, Sequence | np.ndarray) or (name != "m" and len(value) != 2):
                raise PhysicsError(f"{name}={value!r}: give two numbers, for x and y.", **{name: value})
        for number in self.n:
            count("n", number, error=PhysicsError)
        for name, value in (("size", self.size[0]), ("size", self.size[1]), ("T", self.T), ("gain", self.gain)):
            positive(name, value, error=PhysicsError)
        _refuse_outside(self.sensor_positions, self.size)

    @cached_property
    def sensor_positions(self) -> FloatArray:
        if len(self.m) == 2 and all(isinstance(value, int | np.integer) for value in self.m):
            mx, my = (count("m", value, error=PhysicsError) for value in self.m if isinstance(value, int | np.integer))
            return read_only(lattice((mx, my), self.size))
        return read_only(points("m", self.m, error=PhysicsError))

    @cached_property
    def kernel(self) -> HeatKernel:
        """The readings of a source anywhere."""
        return HeatKernel(self.sensor_positions, self.T, tuple(self.size), self.gain)

    @cached_property
    def space(self) -> Space:
        index = np.arange(self.n[0] * self.n[1]).reshape(self.n)
        along_x = np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)
        along_y = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
        lengths = np.repeat(np.divide(self.size, self.n), [len(along_x), len(along_y)])
        return Space(lattice(self.n, self.size), np.concatenate([along_x, along_y]), lengths, Metric.PLANE)

    @property
    def extent(self) -> tuple[float, float]:
        return self.size

    def with_spread(self, factor: float) -> Self:
        return replace(self, T=self.T * factor)

    def moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        return self.kernel.moves(self.n, position=position, travel=travel)

    def later_moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        return self.kernel.later_moves(self.n, position=position, travel=travel)


def _refuse_outside(positions: FloatArray, size: Sequence[float]) -> None:
    outside = np.flatnonzero(~((positions >= 0) & (positions <= np.asarray(size))).all(axis=1))
    if len(outside):
        sensor = int(outside[0])
        raise PhysicsError(
            f"sensor {sensor} at {positions[sensor].tolist()} is outside: give positions from 0 to {list(size)}.",
            sensor=sensor,
        )
