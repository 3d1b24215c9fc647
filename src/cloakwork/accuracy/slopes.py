"""Changes of the readings when a source moves: exact derivatives, or differences between neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy.whitening import Whitened
from cloakwork.errors import InputError
from cloakwork.physics import HeatLine, HeatPlane, Placement, Space, heat_kernel

NONE = -1


@dataclass(frozen=True, eq=False)
class AxisNeighbours:
    """The nearest neighbour of each place `ahead` and `behind` along each axis: none at a wall or at the end.

    A straight run of neighbours is also a shortest path: `axis_neighbours` makes sure that no pair is nearer along the
    space than in a straight line, so no path is shorter than the difference of the coordinates.
    """

    ahead: tuple["Ray", ...]
    behind: tuple["Ray", ...]


@dataclass(frozen=True, eq=False)
class Ray:
    """One direction: the next place (-1 for none) and its distance (0 without), each of shape (n,)."""

    following: IntArray
    length: FloatArray

    def step(self, places: IntArray) -> IntArray:
        """Move each place one step; -1 stays -1."""
        return np.where(places >= 0, self.following[places], NONE)

    def then(self, other: "Ray") -> "Ray":
        """Combine a step of this ray with one of another: a diagonal step on the grid."""
        following = other.step(self.following)
        length = np.hypot(self.length, other.length[np.maximum(self.following, 0)])
        return Ray(following, np.where(following >= 0, length, 0.0))


def axis_neighbours(space: Space) -> AxisNeighbours | None:
    """Find neighbours along the axes; None without coordinates, or if neighbours are not along the axes."""
    n, axes = space.places.shape
    if axes not in {1, 2}:
        return None
    i, j = space.pairs.T
    offsets = space.places[j] - space.places[i]
    apart = np.sqrt((offsets**2).sum(axis=1))
    if (space.lengths < apart * (1 - 1e-9)).any():
        return None
    ahead, behind = zip(*(_neighbours(n, i, j, offsets, axis) for axis in range(axes)), strict=True)
    lonely = np.all([ray.following < 0 for ray in (*ahead, *behind)], axis=0)
    return None if lonely[space.pairs.ravel()].any() else AxisNeighbours(ahead, behind)


def _neighbours(n: int, i: IntArray, j: IntArray, offsets: FloatArray, axis: int) -> tuple[Ray, Ray]:
    along = offsets[:, axis]
    aside = np.abs(np.delete(offsets, axis, axis=1)).max(axis=1, initial=0.0)
    aligned = np.flatnonzero((np.abs(along) > 0) & (aside <= 1e-9 * np.abs(along)))
    far_first = aligned[np.argsort(-np.abs(along[aligned]), kind="stable")]  # the nearest is written last
    forward = along[far_first] > 0
    low = np.where(forward, i[far_first], j[far_first])
    high = np.where(forward, j[far_first], i[far_first])
    ahead, behind = np.full(n, NONE, dtype=np.int64), np.full(n, NONE, dtype=np.int64)
    to_ahead, to_behind = np.zeros(n), np.zeros(n)
    ahead[low], behind[high] = high, low
    to_ahead[low] = to_behind[high] = np.abs(along[far_first])
    return Ray(ahead, to_ahead), Ray(behind, to_behind)


class Method(StrEnum):
    """The way a limit on locating a source is computed."""

    DERIVATIVES = "exact derivatives"
    DIFFERENCES = "differences between neighbouring places"
    TWO_POINTS = "comparisons of two places (Hammersley, Chapman and Robbins)"


@dataclass(frozen=True, eq=False)
class Slopes:
    """Readings of unit sources and their change per unit of distance, in units of the noise.

    `columns` (k, m) are the readings of each source, `along` (axes, k, m) their change along each axis. `free`
    (axes, k) is false for a source between two walls. A slope up to `floor` may be an error of the computed M.
    """

    columns: FloatArray
    along: FloatArray
    free: NDArray[np.bool_]
    method: Method
    floor: float = 0.0


def slopes_at(whitened: Whitened, at: Sequence[object] | None = None) -> Slopes | None:
    """Slopes for sources at the given positions, or at all places; None if the space has no axes."""
    physics = whitened.physics
    if isinstance(physics, HeatLine | HeatPlane):
        size = np.atleast_1d(physics.length if isinstance(physics, HeatLine) else physics.size)
        return _derivatives(whitened, physics, physics.space.places if at is None else _inside(at, size))
    straight = axis_neighbours(physics.space)
    if straight is None:
        return None
    return _between_neighbours(
        whitened, straight, np.arange(physics.places) if at is None else physics.space.indices(at)
    )


def columns_of(whitened: Whitened, where: FloatArray) -> FloatArray | None:
    """Whitened readings of unit sources at any positions, (k, axes) to (k, m); None if sources are at places only."""
    physics = whitened.physics
    if isinstance(physics, HeatPlane) or (isinstance(physics, HeatLine) and physics.placement is Placement.ANYWHERE):
        return _derivatives(whitened, physics, where).columns
    return None


def _inside(at: Sequence[object], size: FloatArray) -> FloatArray:
    form = "one number" if len(size) == 1 else "(x, y)"
    try:
        where = np.array([np.atleast_1d(np.asarray(position, dtype=np.float64)) for position in at])
    except (TypeError, ValueError):
        where = np.empty(0)
    if where.shape != (len(at), len(size)):
        raise InputError(f"at={at!r}: give {form} for each source.", at=at)
    outside = np.flatnonzero(~((where >= 0) & (where <= size)).all(axis=1))
    if len(outside):
        raise InputError(f"at[{outside[0]}]={at[outside[0]]}: give a position from 0 to {size.tolist()}.", at=at)
    return where


def _derivatives(whitened: Whitened, physics: HeatLine | HeatPlane, where: FloatArray) -> Slopes:
    offsets = where.T[:, :, None] - physics.sensor_positions.reshape(physics.sensors, -1).T[:, None, :]
    columns = np.full(offsets.shape[1:], physics.gain)
    for along_axis in offsets:
        columns = columns * heat_kernel(along_axis, physics.T)
    along = whitened.whiten(-offsets / (2 * physics.T) * columns)
    return Slopes(whitened.whiten(columns), along, np.ones(offsets.shape[:2], dtype=bool), Method.DERIVATIVES)


def _between_neighbours(whitened: Whitened, straight: AxisNeighbours, places: IntArray) -> Slopes:
    """Central differences; one-sided at a wall or at the end."""
    axes = len(straight.ahead)
    along = np.zeros((axes, len(places), whitened.physics.sensors))
    free = np.zeros((axes, len(places)), dtype=bool)
    floor = 0.0
    for axis, (ahead, behind) in enumerate(zip(straight.ahead, straight.behind, strict=True)):
        reach = ahead.length[places] + behind.length[places]
        free[axis] = reach > 0
        far, near = (np.where(step >= 0, step, places) for step in (ahead.step(places), behind.step(places)))
        along[axis] = (whitened.at(far) - whitened.at(near)) / np.where(reach > 0, reach, 1.0)[:, None]
        floor = max(floor, 2 * whitened.error / float(reach[reach > 0].min(initial=np.inf)))
    return Slopes(whitened.at(places), along, free, Method.DIFFERENCES, floor)
