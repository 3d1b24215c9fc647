"""Heat in rooms with walls and doors: of lasting sources such as people, or of a puff."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage, sparse

from cloakwork._checks import FloatArray, IntArray, frames, not_negative, points, positive, read_only
from cloakwork._method_cache import memoize
from cloakwork.errors import PhysicsError
from cloakwork.physics.base import Physics
from cloakwork.physics.diffusion import CertifiedRows, laplacian, pulse, steady, unit_rows
from cloakwork.physics.later_readings import SlopeBounds
from cloakwork.physics.local_field import LocalField, local_field, steepest_in_boxes
from cloakwork.physics.moves import RowMoves, Steps, shortest
from cloakwork.physics.rooms import Rooms
from cloakwork.physics.space import Space

AGES = 16  # ages at which the heat of a room that remembers is evaluated
MAX_DENSE = 3_000_000  # entries of M; beyond, a steady field keeps only those that matter
OLDEST = 12.0  # the last of them, in time constants of the room


@dataclass(frozen=True)
class Pulse:
    """A puff that spreads freely, read when its standard deviation along each axis is `length` metres.

    >>> import numpy as np
    >>> from cloakwork.physics import Rooms
    >>> puff = FloorPlan(Rooms.from_walls((4, 3), cell=0.5), [(1, 1), (3, 2)], Pulse(length=0.7))
    >>> puff.apply(np.ones(48)).round(6).tolist()
    [4.0, 4.0]
    """

    length: float

    def __post_init__(self) -> None:
        positive("length", self.length, error=PhysicsError)


@dataclass(frozen=True)
class Steady:
    """A lasting source whose heat falls to 1/e over `reach` metres of corridor.

    >>> from cloakwork.physics import Rooms
    >>> hall = Rooms.from_walls((4, 3), cell=0.5)
    >>> FloorPlan(hall, [(1, 1)], Steady(reach=0.5)).peak > FloorPlan(hall, [(1, 1)], Steady(reach=2.0)).peak
    True
    """

    reach: float

    def __post_init__(self) -> None:
        positive("reach", self.reach, error=PhysicsError)


@dataclass(frozen=True, eq=False, repr=False)
class FloorPlan(Physics):
    """Sensors and sources in rooms; walls stop heat, doors let it through.

    Parameters
    ----------
    rooms
        The geometry, from `Rooms.from_text` or `Rooms.from_walls`. A source fills one cell: make cells as large as the
        smallest source, since the field of a point source has no steepest slope at the edge of a doorway.
    sensors_at
        (x, y) of each sensor in metres; a sensor reads its cell.
    regime
        `Steady` for lasting sources such as people, `Pulse` for a puff.
    footprint
        Standard deviation, in metres, of the area that a sensor averages over; walls bound it.
    gain
        Reading of a unit source, summed over the floor in square metres: 10 for a person of 100 W in rooms that lose
        10 W per square metre and degree, with readings in degrees.
    lag
        With `Steady`: seconds in which a reading covers 63 % of the way to its new value; 0 for sensors of radiation.

    Notes
    -----
    With h the cell and L the Laplacian of the grid graph without the edges that walls cut:
    pulse M = gain / h^2 exp(-tau L), tau = (length / h)^2 / 2; steady M = gain / h^2 (kappa L + I)^-1,
    kappa = (reach / h)^2. A footprint multiplies the row by exp(-tau' L), tau' = (footprint / h)^2 / 2.

    >>> rooms = Rooms.from_walls((4, 3), cell=0.5, walls=[((2, 0), (2, 3))], doors=[((2, 1), (2, 2))])
    >>> flat = FloorPlan(rooms, [(1, 1), (3, 2)], Steady(reach=1.0), footprint=0.5)
    >>> bool(np.isclose(flat.apply(np.ones(48)), 1 / 0.5**2).all())  # equal sources, equal readings
    True
    """

    rooms: Rooms
    sensors_at: Sequence[tuple[float, float]]
    regime: Pulse | Steady
    footprint: float = 0.0
    gain: float = 1.0
    lag: float = 0.0
    only_listed = False
    stretch = math.sqrt(2)  # distance is measured along the axes

    def __post_init__(self) -> None:
        not_negative("footprint", self.footprint, error=PhysicsError)
        not_negative("lag", self.lag, error=PhysicsError)
        positive("gain", self.gain, error=PhysicsError)
        if not isinstance(self.regime, Pulse | Steady):
            raise PhysicsError(f"regime={self.regime!r}: give Steady(...) or Pulse(...).", regime=self.regime)
        if self.lag and self.pulse:
            raise PhysicsError(
                f"lag={self.lag:g}: a pulse is read when the model says. Leave lag out, or use Steady(...).",
                lag=self.lag,
            )
        self.sensor_places  # noqa: B018 - refuses a sensor off the floor at once

    def __repr__(self) -> str:
        sensors = len(self.sensor_positions)
        return f"FloorPlan({self.rooms!r}, {sensors} sensors, {self.regime}, footprint={self.footprint:g})"

    @cached_property
    def sensor_positions(self) -> FloatArray:
        return read_only(points("sensors_at", self.sensors_at, error=PhysicsError))

    @cached_property
    def sensor_places(self) -> IntArray:
        cells = []
        for number, (x, y) in enumerate(self.sensor_positions):
            try:
                cells.append(self.rooms.cell_at(float(x), float(y)))
            except PhysicsError as problem:
                raise PhysicsError(f"sensor {number}: {problem}", sensor=number) from None
        return np.array(cells, dtype=np.int64)

    @property
    def space(self) -> Space:
        return self.rooms.space

    @property
    def floor(self) -> Rooms:
        return self.rooms

    @property
    def extent(self) -> tuple[float, float]:
        return self.rooms.size

    def place_at(self, at: object) -> int:
        if isinstance(at, tuple | list) and len(at) == 2:
            return self.rooms.cell_at(float(at[0]), float(at[1]))
        return super().place_at(at)

    @cached_property
    def laplacian(self) -> sparse.csr_array:
        """L of the grid graph, shape (n, n)."""
        return laplacian(len(self.space), self.rooms.pairs, np.ones(len(self.rooms.pairs)))

    @property
    def diffusion_time(self) -> float:
        """The equations' tau of a pulse, or kappa of steady heat."""
        length = self.regime.reach if isinstance(self.regime, Steady) else self.regime.length
        return (length / self.rooms.cell) ** 2 / (1 if isinstance(self.regime, Steady) else 2)

    @property
    def fade(self) -> float:
        return 4 * self.regime.reach + self.footprint if isinstance(self.regime, Steady) else math.inf

    @property
    def pulse(self) -> bool:
        return isinstance(self.regime, Pulse)

    def _spread(self, places: IntArray) -> CertifiedRows:
        h = self.rooms.cell
        scale = self.gain / h**2
        seen = pulse(self.laplacian, (self.footprint / h) ** 2 / 2, unit_rows(len(self.space), places))
        if isinstance(self.regime, Steady):
            spread = steady(self.laplacian, self.diffusion_time, seen.values)
        else:
            spread = pulse(self.laplacian, self.diffusion_time, seen.values)
        return CertifiedRows(scale * spread.values, scale * (spread.error + seen.error))

    @cached_property
    def local(self) -> LocalField | None:
        """The entries of M that matter, for the steady field of a large floor; None if M is small or of a pulse."""
        return None if self.pulse or self.places * self.sensors <= MAX_DENSE else self.nearby

    @cached_property
    def nearby(self) -> LocalField:
        """The entries of M that matter, for the steady field of any floor."""
        h = self.rooms.cell
        scale, tau = self.gain / h**2, (self.footprint / h) ** 2 / 2
        positions, sensors_at = self.rooms.grid_positions, self.sensor_places
        return local_field(self.laplacian, self.diffusion_time, tau, scale, positions, sensors_at)

    @property
    def near(self) -> sparse.csc_array | None:
        return None if self.local is None else self.local.columns

    @property
    def explicit(self) -> bool:
        return self.local is None

    @property
    def rank(self) -> int:
        return super().rank if self.local is None else min(self.sensors, self.places)

    @property
    def peak(self) -> float:
        return super().peak if self.local is None else float(np.abs(self.local.columns.data).max(initial=0.0))

    @property
    def sensors(self) -> int:
        return len(self.sensor_positions)

    def apply(self, sources: ArrayLike) -> FloatArray:
        if self.local is None:
            return super().apply(sources)
        values = frames("sources", sources, self.places)
        readings = self.local.columns @ values.reshape(-1, self.places).T
        return np.ascontiguousarray(readings.T).reshape(*values.shape[:-1], self.sensors)

    def adjoint(self, readings: ArrayLike) -> FloatArray:
        if self.local is None:
            return super().adjoint(readings)
        values = frames("readings", readings, self.sensors)
        matches = self.local.columns.T @ values.reshape(-1, self.sensors).T
        return np.ascontiguousarray(matches.T).reshape(*values.shape[:-1], self.places)

    @property
    def move_error(self) -> float:
        return super().move_error if self.local is None else self.local.move_error(self.space.pairs)

    def steps(self, position: float = 0.0) -> Steps:
        return super().steps(position) if self.local is None or position > 0 else self._local_steps

    @cached_property
    def _local_steps(self) -> RowMoves:
        assert self.local is not None  # noqa: S101 - see `steps`
        table = self.local.moves(self.space.pairs, self.space.lengths)
        return RowMoves.of(table, row_error=self.move_error / shortest(self.space), pairs=self.space.pairs)

    def slope_bounds(self, position: float) -> SlopeBounds | None:
        return SlopeBounds.of_diffusion(self, self.laplacian, self.diffusion_time, position) if self.pulse else None

    @cached_property
    def _rows(self) -> CertifiedRows:
        return self._spread(self.sensor_places)

    @cached_property
    def matrix(self) -> FloatArray:
        return read_only(self._rows.values)

    @property
    def error(self) -> float:
        return self._rows.error

    def rows(self, sensors: IntArray) -> CertifiedRows:
        return self._spread(sensors)

    def nearby_places(self, distance: float) -> list[IntArray]:
        """The cells with a point within `distance` of the sensor in a straight line, through walls or not."""
        half = self.rooms.cell / 2
        apart = np.maximum(np.abs(self.space.places - self.sensor_positions[:, None]) - half, 0.0)
        close = (apart**2).sum(axis=2) <= (distance * (1 + 1e-9)) ** 2
        return [np.flatnonzero(row) for row in close]

    @cached_property
    def ages(self) -> tuple[tuple[float, Physics], ...]:
        """The heat of each age as a pulse, with its share of the steady heat.

        Notes
        -----
        (kappa L + I)^-1 is the integral of e^-b exp(-b kappa L) over b, the age of the heat in time constants of the
        room: a pulse of length reach sqrt(2b). The shares are those of a linear interpolation between the ages; what is
        older counts as the oldest.
        """
        if not isinstance(self.regime, Steady):
            return ()
        start = ((self.footprint / self.rooms.cell) ** 2 + 1) / 2 / (self.regime.reach / self.rooms.cell) ** 2
        ages = np.append(np.geomspace(start, start + OLDEST, AGES - 1), start + OLDEST) - start
        ages = np.unique(ages)
        gaps, left = np.diff(ages), np.exp(-ages)
        later = (left[:-1] - left[1:] * (1 + gaps)) / gaps
        shares = np.append(left[:-1] - left[1:] - later, left[-1]) + np.append(0.0, later)
        lengths = np.maximum(self.regime.reach * np.sqrt(2 * ages), 1e-6 * self.rooms.cell)
        pulses = [replace(self, regime=Pulse(float(length)), lag=0.0) for length in lengths]
        return tuple(zip((shares * (1 + 1e-12)).tolist(), pulses, strict=True))

    def regions(self, travel: float, *, position: float = 0.0) -> RowMoves:
        """Each sensor at its steepest within each square box of cells.

        Notes
        -----
        A source between cell centres covers up to four cells by its shares of them, so its reading is bilinear in its
        position, and its slopes are means of those along the sides of the square of four centres around it. Positions
        that extend over at most k cells along each axis lie within a box of k + 1 such squares on a side.
        """
        squares = math.ceil(travel / self.rooms.cell * (1 - 1e-12)) + 1
        return self._boxes(min(squares, max(self.rooms.grid.shape)), position)

    @memoize(1)  # the next call mostly asks for the same boxes
    def _boxes(self, squares: int, position: float) -> RowMoves:
        shape, ends = np.array(self.rooms.grid.shape), self.rooms.grid_positions[self.rooms.pairs]
        first, along_x = ends.min(axis=1), ends[:, 0, 0] == ends[:, 1, 0]
        if self.local is not None and position == 0:
            moves, error = next(self._local_steps.rows()).tocsc(), self._local_steps.row_error
            seen = (moves.indptr.astype(np.int64), moves.indices.astype(np.int64), np.abs(moves.data))
            values, boxes, starts = steepest_in_boxes(seen, first, along_x.astype(np.int64), shape, squares)
            local = sparse.csr_array((values, boxes, starts), shape=(self.sensors, int(shape.prod()))).T.tocsr()
            # the error of a sensor's steepest slope is at most that of all pairs of the box together
            return RowMoves.of(local, each_error=error, together=error * math.sqrt(2 * squares * (squares + 1)))
        steps, slopes = self._listed(position)
        table = np.zeros((self.sensors, *shape))
        for chosen, sizes in ((along_x, (squares + 1, squares)), (~along_x, (squares, squares + 1))):
            part = np.zeros_like(table)
            part[:, first[chosen, 0], first[chosen, 1]] = slopes[chosen].T
            for axis, size in enumerate(sizes, start=1):
                part = ndimage.maximum_filter1d(part, size, axis, mode="constant", origin=-(size // 2))
            np.maximum(table, part, out=table)
        return RowMoves.of(table.reshape(self.sensors, -1).T, each_error=steps.each_error + steps.row_error)

    def with_spread(self, factor: float) -> Self:
        scale = float(np.sqrt(factor))
        if isinstance(self.regime, Steady):
            return replace(self, regime=Steady(self.regime.reach * scale))
        return replace(self, regime=Pulse(self.regime.length * scale))

    def with_doors_shut(self, doors: Sequence[int]) -> Self:
        return replace(self, rooms=self.rooms.shut(doors))
