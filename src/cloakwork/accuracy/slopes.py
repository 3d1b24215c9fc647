"""Changes of the readings when a source moves: exact derivatives, or differences between neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy.whitening import Whitened
from cloakwork.errors import InputError
from cloakwork.physics import Space


class Method(StrEnum):
    """The way a limit on locating a source is computed."""

    DERIVATIVES = "exact derivatives"
    DIFFERENCES = "differences between neighbouring places"
    TWO_POINTS = "comparisons of two places (Hammersley, Chapman and Robbins)"


@dataclass(frozen=True, eq=False)
class Slopes:
    """Changes of the readings of unit sources per unit of distance, in units of the noise.

    `along` (k, axes, m) is the change along each axis. `free` (k, axes) is false for a source between two walls. A
    slope up to `floor` may be an error of the computed M.
    """

    along: FloatArray
    free: NDArray[np.bool_]
    method: Method
    floor: float = 0.0


def slopes_at(whitened: Whitened, at: Sequence[object] | None = None) -> Slopes | None:
    """Return slopes for sources at the given positions, or at all places; None if the space has no axes."""
    physics = whitened.physics
    if physics.extent and physics.gradients_at(physics.space.places[:1]) is not None:
        where = physics.space.places if at is None else _inside(at, np.array(physics.extent))
        along = np.asarray(physics.gradients_at(where))
        return Slopes(whitened.whiten(along), np.ones(where.shape, bool), Method.DERIVATIVES)
    return _differences(whitened, np.arange(physics.places) if at is None else physics.space.indices(at))


def _inside(at: Sequence[object], size: FloatArray) -> FloatArray:
    try:
        where = np.array([np.atleast_1d(np.asarray(position, dtype=np.float64)) for position in at])
    except (TypeError, ValueError):
        where = np.empty(0)
    if where.shape != (len(at), len(size)) or not ((where >= 0) & (where <= size)).all():
        form = "one number" if len(size) == 1 else "(x, y)"
        raise InputError(f"at={at!r}: give {form} for each source, from 0 to {size.tolist()}.", at=at)
    return where


def _differences(whitened: Whitened, places: IntArray) -> Slopes | None:
    """Return central differences; one-sided at a wall or at the end; None if neighbours are not along axes."""
    space = whitened.physics.space
    axes = space.places.shape[1]
    offsets = space.places[space.pairs[:, 1]] - space.places[space.pairs[:, 0]]
    apart = np.sqrt((offsets**2).sum(axis=1))
    if axes not in {1, 2} or (space.lengths < apart * (1 - 1e-9)).any():
        return None  # a straight run of neighbours need not be a shortest path
    steps = [_neighbours(space, offsets, axis) for axis in range(axes)]
    lonely = np.all([next_place == np.arange(len(space)) for axis in steps for next_place in axis], axis=0)
    if lonely[space.pairs.ravel()].any():
        return None
    along = np.zeros((len(places), axes, whitened.physics.sensors))
    free, floor = np.zeros((len(places), axes), dtype=bool), 0.0
    for axis, (ahead, behind) in enumerate(steps):
        far, near = ahead[places], behind[places]
        reach = space.places[far, axis] - space.places[near, axis]
        free[:, axis] = reach > 0
        along[:, axis] = (whitened.at(far) - whitened.at(near)) / np.where(reach > 0, reach, 1.0)[:, None]
        floor = max(floor, 2 * whitened.error / float(reach[reach > 0].min(initial=np.inf)))
    return Slopes(along, free, Method.DIFFERENCES, floor)


def _neighbours(space: Space, offsets: FloatArray, axis: int) -> tuple[IntArray, IntArray]:
    """Return the nearest neighbour of each place ahead and behind along an axis (n,); the place itself without one."""
    along = offsets[:, axis]
    aside = np.abs(np.delete(offsets, axis, axis=1)).max(axis=1, initial=0.0)
    aligned = np.flatnonzero((np.abs(along) > 0) & (aside <= 1e-9 * np.abs(along)))
    aligned = aligned[np.argsort(-np.abs(along[aligned]), kind="stable")]  # the nearest is written last
    low, high = np.where(along[aligned, None] > 0, space.pairs[aligned], space.pairs[aligned, ::-1]).T
    ahead, behind = np.arange(len(space)), np.arange(len(space))
    ahead[low], behind[high] = high, low
    return ahead, behind
