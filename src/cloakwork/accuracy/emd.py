"""Earth mover distance between two maps, and two plainer distances."""

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, frames
from cloakwork.accuracy.flow import cheapest_flow
from cloakwork.errors import MeasureError
from cloakwork.physics import Metric, Space

CRUMB = 1e-15
MOST_ARCS = 20_000_000
FEW_PAIRS = 400_000  # up to here distances between places are cheaper than flows through them


def emd(first: ArrayLike, second: ArrayLike, space: Space) -> float:
    """How far weight must be carried, on average, to turn one map into the other, in units of the space.

    Both maps are scaled to a total of 1 first.

    Notes
    -----
    Balanced optimal transport, exact. On a line the sum of |cumulative difference| times the spacing; on a plane the
    transport between the places whose weights differ; along paths (graphs, floor plans) the same with walking
    distances, or the cheapest flow over the neighbour pairs when most places differ. Walls count.

    Examples
    --------
    >>> space = Space.line(4)
    >>> emd([1, 0, 0, 0], [0, 0, 1, 0], space)
    0.5
    """
    if not isinstance(space, Space):
        raise MeasureError(f"the third argument is a {type(space).__name__}: give the space, such as line.space.")
    difference = _normalised("first", first, space) - _normalised("second", second, space)
    if space.metric is Metric.LINE:
        return float(np.abs(np.cumsum(difference)[:-1]) @ space.lengths)
    difference[np.abs(difference) <= CRUMB] = 0.0
    if not difference.any():
        return 0.0
    givers, takers = int((difference > 0).sum()), int((difference < 0).sum())
    if space.metric is Metric.PLANE or givers * takers <= FEW_PAIRS:
        cost = _transport(difference, space)
    else:
        cost = _flow(difference, space.pairs, space.lengths)
    if cost < 0:
        raise MeasureError(
            "the maps have weight in parts of the space that no path connects: the distance is undefined."
        )
    return cost


def l1(first: ArrayLike, second: ArrayLike) -> float:
    """Sum of absolute differences of two maps, not scaled."""
    return float(np.abs(_difference(first, second)).sum())


def l2(first: ArrayLike, second: ArrayLike) -> float:
    """Root of the sum of squared differences of two maps, not scaled."""
    return float(np.sqrt((_difference(first, second) ** 2).sum()))


def _difference(first: ArrayLike, second: ArrayLike) -> FloatArray:
    a = np.asarray(first, dtype=np.float64)
    if a.ndim != 1:
        raise MeasureError(f"the first map has shape {a.shape}: give one map, shape (n,).")
    a = frames("first", a, a.shape[0], error=MeasureError)
    b = frames("second", second, a.shape[0], error=MeasureError)
    if b.ndim != 1:
        raise MeasureError(f"the second map has shape {b.shape}: give one map, shape (n,).")
    return a - b


def _normalised(name: str, values: ArrayLike, space: Space) -> FloatArray:
    weights = frames(name, values, len(space), error=MeasureError)
    if weights.ndim != 1:
        raise MeasureError(f"the {name} map has shape {weights.shape}: give one map, shape ({len(space)},).")
    if weights.min() < 0:
        raise MeasureError(f"the {name} map has a negative weight at place {int(weights.argmin())}.")
    largest = float(weights.max())
    if largest <= 0:
        raise MeasureError(
            f"the {name} map is empty: the distance to a map without weight is undefined. "
            "Check found.status; an empty map means that the readings fit no source at all."
        )
    scaled = weights / largest  # so that the sum cannot overflow
    return np.asarray(scaled / scaled.sum())


def _transport(difference: FloatArray, space: Space) -> float:
    """From each place with too much to each with too little, at the distance between the two."""
    givers, takers = np.flatnonzero(difference > 0), np.flatnonzero(difference < 0)
    if len(givers) * len(takers) > MOST_ARCS:
        raise MeasureError(
            f"{len(givers)} x {len(takers)} pairs of places differ: give sparser maps (drop small weights first)."
        )
    if len(givers) > len(takers):
        return _transport(-difference, space)
    distances = np.stack([space.distances(int(giver))[takers] for giver in givers])
    i, j = np.meshgrid(np.arange(len(givers)), len(givers) + np.arange(len(takers)), indexing="ij")
    reached = np.isfinite(distances)
    pairs = np.stack([i[reached], j[reached]], axis=1)
    excess = difference[np.concatenate([givers, takers])]
    return _flow(excess, pairs, distances[reached], one_way=True)


def _flow(excess: FloatArray, pairs: IntArray, lengths: FloatArray, *, one_way: bool = False) -> float:
    """Lay the arcs out node by node, each with its reverse, and solve; -1 if not everything can be sent."""
    n, p = len(excess), len(pairs)
    # each pair gives an arc and its reverse; a two-way pair gives a second arc and reverse the other way
    there, back = pairs[:, 0], pairs[:, 1]
    tails = np.concatenate([there, back] if one_way else [there, back, back, there])
    heads = np.concatenate([back, there] if one_way else [back, there, there, back])
    costs = np.concatenate([lengths, -lengths] * (1 if one_way else 2))
    room = np.concatenate([np.full(p, np.inf), np.zeros(p)] * (1 if one_way else 2))
    blocks = np.arange(2 * p).reshape(2, p)[::-1].ravel()
    twins = blocks if one_way else np.concatenate([blocks, 2 * p + blocks])
    order = np.argsort(tails, kind="stable")
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    start = np.concatenate([[0], np.cumsum(np.bincount(tails, minlength=n))]).astype(np.int64)
    return float(
        cheapest_flow(start, heads[order], costs[order], position[twins[order]], room[order], excess.copy(), CRUMB)
    )
