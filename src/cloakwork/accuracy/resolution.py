"""How close two sources can be before they look like both in the middle."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from scipy.sparse import csgraph

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy.slopes import Ray, axis_neighbours, rays
from cloakwork.accuracy.whitening import CHUNK, Whitened, refuse_one_place, sample_size, spread_places, whiten
from cloakwork.errors import InputError
from cloakwork.physics import Physics

ERROR_RATE = 0.25
TOLD_APART = -2 * float(special.ndtri(ERROR_RATE))  # 1.349: the separation at which the best test errs so often
MOST_PLACES = 500
BLOCK = 128  # places that are tried at once, nearest first


@dataclass(frozen=True, eq=False)
class Resolution:
    """For each of some places the distance below which a second source cannot be told from the first.

    Parameters
    ----------
    places
        Numbers of the places, shape (k,).
    values
        Two unit sources, one of them there, are taken for both in the middle at least one time in four by every test
        as long as they are closer than this, shape (k,). Infinite if that is so at every distance.
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
    """How far apart two unit sources have to be before anyone can see that they are two.

    Parameters
    ----------
    sigma
        Standard deviation of the noise: one number, or one for each sensor.
    at
        Positions of the first source; up to 500 places spread evenly when left out (fewer on large graphs).
    strengths_known
        Whether it is known that the total strength is 2. If not, one source in the middle may have any strength.

    Notes
    -----
    Two hypotheses: unit sources at i and at j, or weight t at the place z midway between the two. The best test (the
    likelihood ratio) between them, if both are as likely, errs with probability

        Phi(-separation/2),  separation = ||(M_i + M_j - t M_z) / sigma||,  t = 2, or the closest t >= 0 if unknown,

    which is 1/4 at a separation of 1.349. The resolution at i is the largest distance up to which it stays at 1/4 or
    above in every direction. The separation grows with d^2 while d is small, as the first moments cancel, and values
    between the places are interpolated so. (Shahram and Milanfar ask the same of two points of light.)

    j goes straight along the axes as far as the walls (on a plane also across), where z is a place. On a graph j is
    every place, z is one of the two around the middle of a shortest path, whichever is harder to tell, and
    nothing is interpolated. As the middle and the strengths are given to the test, no real method resolves more.

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> [round(resolution(line, 0.01, strengths_known=known).typical, 3) for known in (True, False)]
    [0.032, 0.04]
    """
    whitened = whiten(physics, sigma)
    refuse_one_place(physics)
    if at is None:
        return smallest_gaps(whitened, strengths_known=strengths_known)
    if isinstance(at, str) or not isinstance(at, Sequence | np.ndarray) or not len(at):
        raise InputError(f"at={at!r}: give a list of one position or more, or leave it out.", at=at)
    places = np.array([physics.space.index(position) for position in at], dtype=np.int64)
    return smallest_gaps(whitened, places, strengths_known=strengths_known)


def smallest_gaps(whitened: Whitened, places: IntArray | None = None, *, strengths_known: bool) -> Resolution:
    """The same for columns already divided by the noise."""
    straight = axis_neighbours(whitened.space)
    if places is None:
        most = MOST_PLACES if straight is not None else sample_size(whitened)
        places = spread_places(len(whitened.space), most)
    if straight is None:
        values = np.array([_on_a_graph(whitened, int(place), strengths_known) for place in places])
    else:
        directions = rays(straight, whitened.space.metric)
        values = np.min([_along(whitened, places, ray, strengths_known) for ray in directions], axis=0)
    return Resolution(places, values, strengths_known)


def _along(whitened: Whitened, places: IntArray, ray: Ray, strengths_known: bool) -> FloatArray:
    """Distance along one direction at which the two are told apart; infinite if the wall comes first, shape (k,)."""
    found = np.full(len(places), np.inf)
    active, middle, end = np.arange(len(places)), places, places
    distance, root = np.zeros(len(places)), np.zeros(len(places))
    while len(active):
        between = ray.step(end)
        following = ray.step(between)
        on = following >= 0
        reached = distance[on] + ray.length[end[on]] + ray.length[between[on]]
        active, middle, end, before, low = active[on], ray.step(middle)[on], following[on], distance[on], root[on]
        high = np.sqrt(_separations(whitened, places[active], end, middle, strengths_known))
        done = high >= np.sqrt(TOLD_APART)
        share = (np.sqrt(TOLD_APART) - low[done]) / (high - low)[done]
        found[active[done]] = before[done] + share * (reached - before)[done]
        left = ~done
        active, middle, end, distance, root = active[left], middle[left], end[left], reached[left], high[left]
    return found


def _separations(
    whitened: Whitened, first: IntArray, second: IntArray, middle: IntArray, strengths_known: bool
) -> FloatArray:
    """||(M_i + M_j - t M_z) / sigma||, rounded up, shape (k,)."""
    found = np.empty(len(first))
    step = max(1, CHUNK // whitened.columns.shape[1])
    for start in range(0, len(first), step):
        piece = slice(start, start + step)
        two, one = whitened.columns[first[piece]] + whitened.columns[second[piece]], whitened.columns[middle[piece]]
        squares = whitened.squares[middle[piece]]
        closest = np.maximum(np.einsum("ij,ij->i", two, one), 0.0) / np.where(squares > 0, squares, 1.0)
        weights = np.full(len(one), 2.0) if strengths_known else closest
        apart = two - weights[:, None] * one
        found[piece] = np.sqrt(np.einsum("ij,ij->i", apart, apart)) + np.sqrt(2 + weights**2) * whitened.error
    return found


def _on_a_graph(whitened: Whitened, place: int, strengths_known: bool) -> float:
    """Distance of the nearest place where a second source can be told apart from both in the middle."""
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
        told = np.min(apart, axis=0) >= TOLD_APART
        if told.any():
            return float(distances[second[told]].min())
    return np.inf


def _middles(distances: FloatArray, before: IntArray, root: int) -> tuple[IntArray, IntArray]:
    """The places just beyond and just before the middle of the path to each place, by doubling jumps."""
    upwards = np.where(before >= 0, before, root)
    jumps = [upwards]
    while (jumps[-1] != root).any():
        jumps.append(jumps[-1][jumps[-1]])
    beyond = np.arange(len(distances))
    for jump in reversed(jumps):
        higher = jump[beyond]
        beyond = np.where(distances[higher] >= distances / 2, higher, beyond)
    return beyond, upwards[beyond]
