"""How readings change when a source moves: exact derivatives, or differences between neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy.whitening import Whitened
from cloakwork.errors import InputError
from cloakwork.physics import HeatLine, HeatPlane, Metric, Placement, Space, heat_kernel

NOBODY = -1


@dataclass(frozen=True, eq=False)
class AxisNeighbours:
    """The nearest neighbour of each place along each axis.

    Parameters
    ----------
    ahead, behind
        Its number, shape (axes, n); -1 where there is none: at a wall, or at the end.
    to_ahead, to_behind
        How far it is, shape (axes, n); 0 where there is none.

    Notes
    -----
    A straight run of neighbours is also a shortest path: no pair of neighbours is nearer along the space than as the
    crow flies (`axis_neighbours` makes sure), so no path is shorter than the difference of the coordinates.
    """

    ahead: IntArray
    behind: IntArray
    to_ahead: FloatArray
    to_behind: FloatArray

    @property
    def axes(self) -> int:
        """Number of axes."""
        return len(self.ahead)


@dataclass(frozen=True, eq=False)
class Ray:
    """One direction: the next place (-1 where there is none) and how far it is, each of shape (n,)."""

    following: IntArray
    length: FloatArray

    def step(self, places: IntArray) -> IntArray:
        """One step on; -1 stays -1."""
        return np.where(places >= 0, self.following[places], NOBODY)

    def then(self, other: "Ray") -> "Ray":
        """One step this way and one the other way, across a corner of the grid."""
        following = other.step(self.following)
        length = np.hypot(self.length, other.length[np.maximum(self.following, 0)])
        return Ray(following, np.where(following >= 0, length, 0.0))


def axis_neighbours(space: Space) -> AxisNeighbours | None:
    """Neighbours along the axes; None where places have no coordinates, or their neighbours are not along axes."""
    n, axes = space.places.shape
    if axes not in {1, 2}:
        return None
    i, j = space.pairs.T
    offsets = space.places[j] - space.places[i]
    crow = np.sqrt((offsets**2).sum(axis=1))
    if (space.lengths < crow * (1 - 1e-9)).any():
        return None
    tables = [_neighbours(n, i, j, offsets, axis) for axis in range(axes)]
    found = AxisNeighbours(*(np.stack(table) for table in zip(*tables, strict=True)))
    lonely = np.asarray(((found.ahead < 0) & (found.behind < 0)).all(axis=0))
    return None if lonely[space.pairs.ravel()].any() else found


def _neighbours(
    n: int, i: IntArray, j: IntArray, offsets: FloatArray, axis: int
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    along = offsets[:, axis]
    aside = np.abs(np.delete(offsets, axis, axis=1)).max(axis=1, initial=0.0)
    aligned = np.flatnonzero((np.abs(along) > 0) & (aside <= 1e-9 * np.abs(along)))
    far_first = aligned[np.argsort(-np.abs(along[aligned]), kind="stable")]  # so that the nearest is written last
    forward = along[far_first] > 0
    low = np.where(forward, i[far_first], j[far_first])
    high = np.where(forward, j[far_first], i[far_first])
    ahead, behind = np.full(n, NOBODY, dtype=np.int64), np.full(n, NOBODY, dtype=np.int64)
    to_ahead, to_behind = np.zeros(n), np.zeros(n)
    ahead[low], behind[high] = high, low
    to_ahead[low] = to_behind[high] = np.abs(along[far_first])
    return ahead, behind, to_ahead, to_behind


def rays(straight: AxisNeighbours, metric: Metric) -> list[Ray]:
    """All directions in which two sources are taken apart: along the axes, and across where crows fly."""
    ahead = [Ray(straight.ahead[k], straight.to_ahead[k]) for k in range(straight.axes)]
    behind = [Ray(straight.behind[k], straight.to_behind[k]) for k in range(straight.axes)]
    if straight.axes == 1 or metric is not Metric.PLANE:
        return ahead + behind
    across = [one.then(other) for one in (ahead[0], behind[0]) for other in (ahead[1], behind[1])]
    return ahead + behind + across


class Method(StrEnum):
    """Where a limit on locating a source comes from."""

    DERIVATIVES = "exact derivatives"
    DIFFERENCES = "differences between neighbouring places"
    TWO_POINTS = "comparisons of two places (Hammersley, Chapman and Robbins)"


@dataclass(frozen=True, eq=False)
class Slopes:
    """Readings of unit sources and their change per unit of distance, in units of the noise.

    Parameters
    ----------
    columns
        Readings of each source, shape (k, m).
    along
        Their change along each axis, shape (axes, k, m).
    free
        Whether a source can move along the axis at all: not between two walls, shape (axes, k).
    floor
        A slope up to this length is nothing but error of the computed M.
    """

    columns: FloatArray
    along: FloatArray
    free: NDArray[np.bool_]
    method: Method
    floor: float = 0.0


def slopes_at(whitened: Whitened, at: Sequence[object]) -> Slopes | None:
    """Slopes for sources at the given positions; None where derivatives mean nothing."""
    physics = whitened.physics
    if isinstance(physics, HeatLine):
        return _on_a_line(whitened, physics, _inside(at, np.array([physics.length])))
    if isinstance(physics, HeatPlane):
        return _on_a_plane(whitened, physics, _inside(at, np.array(physics.size)))
    straight = axis_neighbours(physics.space)
    if straight is None:
        return None
    places = np.array([physics.space.index(position) for position in at], dtype=np.int64)
    return _between_neighbours(whitened, straight, places)


def slopes_everywhere(whitened: Whitened) -> Slopes | None:
    """Slopes for a source at each of the places; None where derivatives mean nothing."""
    physics = whitened.physics
    if isinstance(physics, HeatLine):
        return _on_a_line(whitened, physics, physics.space.places)
    if isinstance(physics, HeatPlane):
        return _on_a_plane(whitened, physics, physics.space.places)
    straight = axis_neighbours(physics.space)
    return None if straight is None else _between_neighbours(whitened, straight, np.arange(physics.places))


def columns_of(whitened: Whitened, where: FloatArray) -> FloatArray | None:
    """Readings of unit sources at any positions, shape (k, axes) to (k, m); None where sources sit on places only."""
    physics = whitened.physics
    if isinstance(physics, HeatPlane):
        return _on_a_plane(whitened, physics, where).columns
    if isinstance(physics, HeatLine) and physics.placement is Placement.ANYWHERE:
        return _on_a_line(whitened, physics, where).columns
    return None


def _inside(at: Sequence[object], size: FloatArray) -> FloatArray:
    form = "one number" if len(size) == 1 else "(x, y)"
    try:
        where = np.array([np.atleast_1d(np.asarray(position, dtype=np.float64)) for position in at])
    except (TypeError, ValueError):
        raise InputError(f"at={at!r}: give {form} for each source.", at=at) from None
    if where.shape != (len(at), len(size)):
        raise InputError(f"at={at!r}: give {form} for each source.", at=at)
    outside = np.flatnonzero(~((where >= 0) & (where <= size)).all(axis=1))
    if len(outside):
        raise InputError(
            f"at[{outside[0]}] is {where[outside[0]].tolist()}, outside: positions run from 0 to {size.tolist()}.",
            at=at,
        )
    return where


def _on_a_line(whitened: Whitened, line: HeatLine, where: FloatArray) -> Slopes:
    offsets = where - line.sensor_positions
    columns = line.gain * heat_kernel(offsets, line.T) / whitened.sigma
    along = (-offsets / (2 * line.T) * columns)[None]
    return Slopes(columns, along, np.ones((1, len(where)), dtype=bool), Method.DERIVATIVES)


def _on_a_plane(whitened: Whitened, plane: HeatPlane, where: FloatArray) -> Slopes:
    offsets = where.T[:, :, None] - plane.sensor_positions.T[:, None, :]
    columns = plane.gain * heat_kernel(offsets[0], plane.T) * heat_kernel(offsets[1], plane.T) / whitened.sigma
    along = -offsets / (2 * plane.T) * columns
    return Slopes(columns, along, np.ones((2, len(where)), dtype=bool), Method.DERIVATIVES)


def _between_neighbours(whitened: Whitened, straight: AxisNeighbours, places: IntArray) -> Slopes:
    """Central differences; one-sided where a wall or the end is on one side."""
    columns = whitened.columns
    along = np.zeros((straight.axes, len(places), columns.shape[1]))
    free = np.zeros((straight.axes, len(places)), dtype=bool)
    floor = 0.0
    for axis in range(straight.axes):
        ahead, behind = straight.ahead[axis][places], straight.behind[axis][places]
        reach = straight.to_ahead[axis][places] + straight.to_behind[axis][places]
        free[axis] = reach > 0
        far, near = np.where(ahead >= 0, ahead, places), np.where(behind >= 0, behind, places)
        along[axis] = (columns[far] - columns[near]) / np.where(reach > 0, reach, 1.0)[:, None]
        floor = max(floor, 2 * whitened.error / float(reach[reach > 0].min(initial=np.inf)))
    return Slopes(columns[places], along, free, Method.DIFFERENCES, floor)
