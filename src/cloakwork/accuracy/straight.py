"""Straight lines through places: who is next along each axis, where no wall is between."""

from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Metric, Space

NOBODY = -1


@dataclass(frozen=True, eq=False)
class Straight:
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
    crow flies (`straight_lines` makes sure), so no path is shorter than the difference of the coordinates.
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


def straight_lines(space: Space) -> Straight | None:
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
    found = Straight(*(np.stack(table) for table in zip(*tables, strict=True)))
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


def rays(straight: Straight, metric: Metric) -> list[Ray]:
    """All directions in which two sources are taken apart: along the axes, and across where crows fly."""
    ahead = [Ray(straight.ahead[k], straight.to_ahead[k]) for k in range(straight.axes)]
    behind = [Ray(straight.behind[k], straight.to_behind[k]) for k in range(straight.axes)]
    if straight.axes == 1 or metric is not Metric.PLANE:
        return ahead + behind
    across = [one.then(other) for one in (ahead[0], behind[0]) for other in (ahead[1], behind[1])]
    return ahead + behind + across
