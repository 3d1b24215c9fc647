"""The moves that bound the noise: squared slopes of every sensor along each, over all models of a declared set."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.physics import Family, HeatLine, HeatPlane, Physics, Placement, column_differences
from cloakwork.privacy.variance import Moves

MOST_SLOPES = 4_000_000  # of moves and sensors to begin with; of more, the steepest moves
DIRECTIONS = 12  # of a move on a plane, over half a turn
POINTS = 4  # a kernel's width, where sources may be anywhere
MOST_POINTS = 10_000_000  # such points times sensors
_PIECE = 2_000_000


@dataclass(frozen=True, eq=False)
class Bounds:
    """Some of the moves, one row each, of squared slopes per sensor; `whole` if there are no others."""

    rows: FloatArray
    whole: bool


def steepest(family: Family, weights: FloatArray) -> Bounds:
    """The moves that shift the readings most at these weights, and for each sensor the one that shifts it most."""
    m = family.physics.sensors
    room = _room(m)
    top, own = np.empty((0, m)), np.zeros((m, m))
    seen = 0
    for piece in squared_slopes(family):
        seen += len(piece)
        top = _largest(np.concatenate([top, piece]), weights, room)
        better = piece.max(axis=0) > own.diagonal()
        own[better] = piece[piece.argmax(axis=0)[better]]
    return Bounds(top, whole=True) if seen <= room else Bounds(np.concatenate([top, own]), whole=False)


def exceeding(family: Family, weights: FloatArray, limit: float) -> FloatArray:
    """The moves whose squared slope at these weights is above `limit`; not all of them where they are many."""
    found = np.empty((0, family.physics.sensors))
    for piece in squared_slopes(family):
        found = _largest(np.concatenate([found, piece[piece @ weights > limit]]), weights, _room(len(weights)) // 2)
    return found


def squared_slopes(family: Family) -> Iterator[FloatArray]:
    """Every move of every model of the set, in pieces: (dM_l / length)^2, one row a move and one column a sensor."""
    for member in family.members:
        for slopes in _slopes(member, family.tolerance.position):
            yield np.ascontiguousarray(slopes.T**2)


def _slopes(model: Physics, displacement: float) -> Iterator[FloatArray]:
    """Slopes along moves, in pieces of shape (m, moves)."""
    if isinstance(model, HeatPlane) or (isinstance(model, HeatLine) and model.placement is Placement.ANYWHERE):
        yield from _all_round(model)
    elif displacement > 0 and not isinstance(model, HeatLine):  # which adds the same for all moves
        yield from _displaced(model, displacement)
    else:
        for which, columns in model.pair_columns():
            yield columns / model.space.lengths[which]


def _all_round(model: HeatLine | HeatPlane) -> Iterator[FloatArray]:
    """Slopes in directions all round each point of a space in which sources may be anywhere."""
    along = Moves.of(_finer(model)).slopes
    angles = math.pi * np.arange(DIRECTIONS) / DIRECTIONS
    turns = np.stack([np.cos(angles), np.sin(angles)], axis=1) if along.shape[1] == 2 else np.ones((1, 1))
    step = max(1, _PIECE // (len(turns) * along.shape[2]))
    for start in range(0, len(along), step):
        yield (turns @ along[start : start + step]).reshape(-1, along.shape[2]).T


def _finer(model: HeatLine | HeatPlane) -> HeatLine | HeatPlane:
    """The same model with enough places to see every bend of its kernel, unless these would be very many."""
    density = POINTS / math.sqrt(2 * model.T)
    if isinstance(model, HeatLine):
        points = max(model.n, math.ceil(density * model.length))
        return replace(model, n=points) if points * model.sensors <= MOST_POINTS else model
    x, y = (max(k, math.ceil(density * side)) for k, side in zip(model.n, model.size, strict=True))
    return replace(model, n=(x, y)) if x * y * model.sensors <= MOST_POINTS else model


def _displaced(model: Physics, distance: float) -> Iterator[FloatArray]:
    """The largest slope of each sensor wherever it stands within `distance`."""
    nearby = model.nearby_places(distance)
    stood = np.unique(np.concatenate(nearby))
    for which, columns in column_differences(model.rows(stood).values, model.space):
        largest = [np.abs(columns[np.searchsorted(stood, places)]).max(axis=0) for places in nearby]
        yield np.stack(largest) / model.space.lengths[which]


def _room(sensors: int) -> int:
    return max(MOST_SLOPES // sensors, 4 * sensors)


def _largest(rows: FloatArray, weights: FloatArray, most: int) -> FloatArray:
    if len(rows) <= most:
        return rows
    return np.asarray(rows[np.argpartition(rows @ weights, -most)[-most:]])
