"""The distance below which two sources look like both in the middle."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.sparse import csgraph

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy.slopes import AxisNeighbours, Ray, axis_neighbours
from cloakwork.accuracy.whitening import (
    CHUNK,
    Whitened,
    check_positions,
    refuse_one_place,
    sample_size,
    spread_places,
    whiten,
)
from cloakwork.physics import Metric, Physics, pieces_of

ERROR_RATE = 0.25
RESOLVED = -2 * float(special.ndtri(ERROR_RATE))  # 1.349: the separation at which the best test errs this often
MOST_PLACES = 500
BLOCK = 128  # places compared at once, nearest first


@dataclass(frozen=True, eq=False)
class Resolution:
    """The distance at some places below which two sources cannot be distinguished.

    Every test confuses two unit sources, one of them at `places[i]`, with both in the middle at least one time in four
    while they are closer than `values[i]`; infinite if that holds at every distance. Both have shape (k,).
    """

    places: IntArray
    values: FloatArray
    strengths_known: bool

    @property
    def typical(self) -> float:
        """Median over the places."""
        return float(np.median(self.values))

    @property
    def worst(self) -> float:
        """Largest over the places."""
        return float(self.values.max())


def resolution(
    physics: Physics, sigma: ArrayLike, *, at: Sequence[object] | None = None, strengths_known: bool = True
) -> Resolution:
    """Compute how far apart two unit sources must be before any test can separate them.

    `sigma` is the standard deviation of the noise: one number, or one per sensor. `at` are positions of the first
    source, by default up to 500 evenly spread places (fewer on large graphs). If the strengths are unknown, a single
    source in the middle may have any strength.

    Notes
    -----
    Two hypotheses: unit sources at i and at j, or weight t at the place z midway between them. The best test (the
    likelihood ratio), if both are equally likely, errs with probability

        Phi(-separation/2),  separation = ||(M_i + M_j - t M_z) / sigma||,  t = 2, or the closest t >= 0 if unknown,

    which is 1/4 at a separation of 1.349. The resolution at i is the largest distance up to which the error stays at
    1/4 or above in every direction. For small d the separation grows with d^2, since the first moments cancel; values
    between the places are interpolated accordingly. (Shahram and Milanfar ask the same of two points of light.)

    j moves along the axes up to the walls (on a plane also diagonally), with z a place. On a graph j is any place, z is
    the harder of the two places around the middle of a shortest path, and nothing is interpolated. The test knows the
    middle and the strengths, so no real method resolves more.

    >>> from cloakwork.physics import HeatLine
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> [round(resolution(line, 0.01, strengths_known=known).typical, 3) for known in (True, False)]
    [0.032, 0.04]
    """
    whitened = whiten(physics, sigma)
    refuse_one_place(physics)
    places = None if at is None else physics.space.indices(check_positions(at))
    return smallest_gaps(whitened, places, strengths_known=strengths_known)


def smallest_gaps(whitened: Whitened, places: IntArray | None = None, *, strengths_known: bool) -> Resolution:
    """`resolution` for whitened columns."""
    straight = axis_neighbours(whitened.space)
    if places is None:
        most = MOST_PLACES if straight is not None else sample_size(whitened)
        places = spread_places(len(whitened.space), most)
    if straight is None:
        values = np.array([_on_a_graph(whitened, int(place), strengths_known) for place in places])
    else:
        directions = _directions(straight, whitened.space.metric)
        values = np.min([_along(whitened, places, ray, strengths_known) for ray in directions], axis=0)
    return Resolution(places, values, strengths_known)


def _directions(straight: AxisNeighbours, metric: Metric) -> list[Ray]:
    """All directions in which two sources move apart: along the axes, and diagonally on a plane."""
    along = [*straight.ahead, *straight.behind]
    if len(straight.ahead) == 1 or metric is not Metric.PLANE:
        return along
    first, second = zip(straight.ahead, straight.behind, strict=True)
    return along + [x.then(y) for x in first for y in second]


def _along(whitened: Whitened, places: IntArray, ray: Ray, strengths_known: bool) -> FloatArray:
    """Distance along one direction at which two sources separate; infinite if a wall comes first, shape (k,)."""
    resolved = np.full(len(places), np.inf)
    active, middle, end = np.arange(len(places)), places, places
    distance, root = np.zeros(len(places)), np.zeros(len(places))
    while len(active):
        between = ray.step(end)
        following = ray.step(between)
        on = following >= 0
        reached = distance[on] + ray.length[end[on]] + ray.length[between[on]]
        active, middle, end, before, low = active[on], ray.step(middle)[on], following[on], distance[on], root[on]
        high = np.sqrt(_separations(whitened, places[active], end, middle, strengths_known))
        done = high >= np.sqrt(RESOLVED)
        share = (np.sqrt(RESOLVED) - low[done]) / (high - low)[done]
        resolved[active[done]] = before[done] + share * (reached - before)[done]
        left = ~done
        active, middle, end, distance, root = active[left], middle[left], end[left], reached[left], high[left]
    return resolved


def _separations(
    whitened: Whitened, first: IntArray, second: IntArray, middle: IntArray, strengths_known: bool
) -> FloatArray:
    """||(M_i + M_j - t M_z) / sigma||, rounded up, shape (k,)."""
    separations = np.empty(len(first))
    for piece in pieces_of(len(first), whitened.columns.shape[1], CHUNK):
        both, single = whitened.columns[first[piece]] + whitened.columns[second[piece]], whitened.columns[middle[piece]]
        squares = whitened.squares[middle[piece]]
        closest = np.maximum(np.einsum("ij,ij->i", both, single), 0.0) / np.where(squares > 0, squares, 1.0)
        weights = np.full(len(single), 2.0) if strengths_known else closest
        apart = both - weights[:, None] * single
        separations[piece] = np.sqrt(np.einsum("ij,ij->i", apart, apart)) + np.sqrt(2 + weights**2) * whitened.error
    return separations


def _on_a_graph(whitened: Whitened, place: int, strengths_known: bool) -> float:
    """Distance of the nearest place where a second source can be distinguished from both in the middle."""
    from_place, tree = csgraph.dijkstra(
        whitened.space.adjacency, directed=False, indices=[place], return_predecessors=True
    )
    distances, before = from_place[0], tree[0].astype(np.int64)
    middles = _middles(np.where(np.isfinite(distances), distances, 0.0), before, place)
    others = np.flatnonzero(np.isfinite(distances) & (distances > 0))
    others = others[np.argsort(distances[others], kind="stable")]
    for start in range(0, len(others), BLOCK):
        second = others[start : start + BLOCK]
        first = np.full(len(second), place)
        apart = [_separations(whitened, first, second, each[second], strengths_known) for each in middles]
        resolved = np.min(apart, axis=0) >= RESOLVED
        if resolved.any():
            return float(distances[second[resolved]].min())
    return np.inf


def _middles(distances: FloatArray, before: IntArray, root: int) -> tuple[IntArray, IntArray]:
    """The places just beyond and just before the middle of the path to each place, by jumps of doubling length."""
    upwards = np.where(before >= 0, before, root)
    jumps = [upwards]
    while (jumps[-1] != root).any():
        jumps.append(jumps[-1][jumps[-1]])
    beyond = np.arange(len(distances))
    for jump in reversed(jumps):
        higher = jump[beyond]
        beyond = np.where(distances[higher] >= distances / 2, higher, beyond)
    return beyond, upwards[beyond]
