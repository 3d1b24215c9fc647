"""Heat on a line."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Self

import numpy as np

from cloakwork._checks import FloatArray, count, positive, read_only
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics
from cloakwork.physics.continuum import (
    FIFTH,
    AnywhereMoves,
    CertifiedMaximum,
    heat_kernel,
    kernel_error,
    line_peak,
    margin,
    steepest_kernel,
    swept_kernel,
)
from cloakwork.physics.later_readings import SlopeBounds
from cloakwork.physics.moves import OUTWARD, Moves, RowMoves
from cloakwork.physics.space import Space


class Placement(StrEnum):
    """Where sources may be."""

    GRID = "grid"
    """Only at the n places."""
    ANYWHERE = "anywhere"
    """Anywhere; the slope is then the supremum over all positions."""


@dataclass(frozen=True, eq=False)
class HeatLine(Physics):
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

    def __post_init__(self) -> None:
        count("n", self.n, error=PhysicsError)
        for name in ("T", "length", "gain"):
            positive(name, getattr(self, name), error=PhysicsError)
        if self.placement not in set(Placement):
            raise PhysicsError(f'placement={self.placement!r}: give "grid" or "anywhere".', placement=self.placement)
        object.__setattr__(self, "placement", Placement(self.placement))
        where = self.sensor_positions
        outside = np.flatnonzero(~((where >= 0) & (where <= self.length)))
        if where.ndim != 2 or not len(where):
            raise PhysicsError(f"m={self.m!r}: give a number of sensors, or their positions.", m=self.m)
        if len(outside):
            raise PhysicsError(
                f"sensor {outside[0]} at {where[outside[0]].item():g} is outside: "
                f"give a position from 0 to {self.length:g}.",
                sensor=int(outside[0]),
            )

    @cached_property
    def sensor_positions(self) -> FloatArray:
        if isinstance(self.m, int | np.integer) and not isinstance(self.m, bool):
            m = count("m", int(self.m), error=PhysicsError)
            return read_only((self.length * np.arange(1, m + 1) / m)[:, None])
        try:
            return read_only(np.array(self.m, dtype=np.float64)[:, None])
        except (TypeError, ValueError):
            return np.empty(0)

    @cached_property
    def space(self) -> Space:
        return Space.line(self.n, length=self.length)

    @cached_property
    def matrix(self) -> FloatArray:
        return read_only(self.columns_at(self.space.places))

    def columns_at(self, positions: FloatArray) -> FloatArray:
        return self.gain * heat_kernel(self.sensor_positions - positions[:, 0], self.T)

    def gradients_at(self, positions: FloatArray) -> FloatArray:
        offsets = self.sensor_positions.T - positions
        return (self.columns_at(positions).T * offsets / (2 * self.T))[:, None, :]

    @property
    def extent(self) -> tuple[float]:
        return (self.length,)

    @property
    def anywhere(self) -> bool:
        return self.placement is Placement.ANYWHERE

    @property
    def error(self) -> float:
        offsets = self.sensor_positions - self.space.places[:, 0]
        ulps = kernel_error(offsets, self.T, self.length)
        return float(np.finfo(float).eps * np.linalg.norm(ulps * self.matrix))

    def with_spread(self, factor: float) -> Self:
        return replace(self, T=self.T * factor)

    @property
    def pulse(self) -> bool:
        return True

    @property
    def endless(self) -> "HeatLine":
        """The same sensors on a longer line with sources anywhere, whose slopes never grow with T (see `margin`)."""
        more = margin(self.T, self.sensors)
        return replace(
            self, m=(self.sensor_positions[:, 0] + more).tolist(), length=self.length + 2 * more, placement="anywhere"
        )

    def moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        still = self._anywhere(position) if self.anywhere else self.steps(position)
        if not travel:
            return still
        swept = swept_kernel(self.sensor_positions, self.T, (self.length,), travel / 2 + position, self._height)
        return RowMoves.of(swept.T, alone=still.each)

    def later_moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        if self.anywhere or position or travel:
            return self.endless.moves(position=position, travel=travel if math.isfinite(travel) else 0.0)
        return super().later_moves()

    def slope_bounds(self, position: float) -> SlopeBounds:
        """Bounds on the slope |g'| and, by `FIFTH`, on its second derivative by the time, the fifth by the place."""
        del position  # see `later_moves`
        height = np.full(self.sensors, steepest_kernel(self._height, self.T) * (1 + 1e-9))
        return SlopeBounds(height, FIFTH / 4 * math.exp(0.5) * height)

    def steps(self, position: float = 0.0) -> RowMoves:
        """The steps between neighbours; each sensor's slope changes by at most |g''| as it moves."""
        steps = RowMoves.between_neighbours(self.matrix, self.space, self.move_error)
        steps = replace(steps, each_error=position * self._height / (2 * self.T))
        return replace(steps, alone=np.minimum(steps.each, steepest_kernel(self._height, self.T) * OUTWARD))

    def _anywhere(self, position: float) -> AnywhereMoves:
        model = (self.gradients_at, self.space.places, (self.n,), self.extent, self.sensors, self._height, self.T)
        return AnywhereMoves(self._steepest, *model, position)

    def _steepest(self, weights: FloatArray) -> CertifiedMaximum:
        return line_peak(self.sensor_positions[:, 0], self.T, self.length, self.gain * weights)

    @property
    def _height(self) -> float:
        """The largest reading."""
        return self.gain / math.sqrt(4 * math.pi * self.T)
