"""How readings change when a source moves: exact derivatives, or differences between neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy.straight import Straight, straight_lines
from cloakwork.accuracy.whitening import Whitened
from cloakwork.errors import InputError
from cloakwork.physics import HeatLine, HeatPlane, Placement
from cloakwork.physics.continuum import kernel


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
    straight = straight_lines(physics.space)
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
    straight = straight_lines(physics.space)
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
    columns = line.gain * kernel(offsets, line.T) / whitened.sigma
    along = (-offsets / (2 * line.T) * columns)[None]
    return Slopes(columns, along, np.ones((1, len(where)), dtype=bool), Method.DERIVATIVES)


def _on_a_plane(whitened: Whitened, plane: HeatPlane, where: FloatArray) -> Slopes:
    offsets = where.T[:, :, None] - plane.sensor_positions.T[:, None, :]
    columns = plane.gain * kernel(offsets[0], plane.T) * kernel(offsets[1], plane.T) / whitened.sigma
    along = -offsets / (2 * plane.T) * columns
    return Slopes(columns, along, np.ones((2, len(where)), dtype=bool), Method.DERIVATIVES)


def _between_neighbours(whitened: Whitened, straight: Straight, places: IntArray) -> Slopes:
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
