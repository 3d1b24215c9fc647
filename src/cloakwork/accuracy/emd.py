"""Earth mover distance between two maps, by an exact minimum-cost flow."""

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray, frames
from cloakwork._compile import compiled, compiled_part
from cloakwork.errors import IncompatibleMapsError
from cloakwork.physics import Metric, Space

CRUMB = 1e-15  # of the total weight: less is not moved
MAX_PAIRS = 20_000_000
FEW_PAIRS = 400_000  # up to here, distances between places are cheaper than flows through them


def emd(first: ArrayLike, second: ArrayLike, space: Space) -> float:
    """Return the mean distance that weight must travel to turn one map into the other, in units of the space.

    Both maps are first scaled to a total of 1.

    Notes
    -----
    Exact balanced optimal transport. On a line: the sum of |cumulative difference| times the spacing. On a plane: the
    transport between the places whose weights differ. Along paths (graphs, floor plans): the same with walking
    distances, or the cheapest flow over the neighbour pairs if most places differ.

    >>> space = Space.line(4)
    >>> emd([1, 0, 0, 0], [0, 0, 1, 0], space)
    0.5
    """
    if not isinstance(space, Space):
        raise IncompatibleMapsError(f"space={space!r}: give the space of a model, such as line.space.", space=space)
    difference = _normalised("first", first, space) - _normalised("second", second, space)
    if space.metric is Metric.LINE:
        return float(np.abs(np.cumsum(difference)[:-1]) @ space.lengths)
    difference[np.abs(difference) <= CRUMB] = 0.0
    givers, takers = np.flatnonzero(difference > 0), np.flatnonzero(difference < 0)
    if space.metric is Metric.PLANE or len(givers) * len(takers) <= FEW_PAIRS:
        fewer, more = sorted((givers, takers), key=len)
        cost = _transport(difference, fewer, more, space)
    else:
        cost = _flow(difference, space.pairs, space.lengths, givers=len(space))
    if cost < 0:
        raise IncompatibleMapsError(
            "the maps have weight in unconnected parts: their distance is undefined.", space=space
        )
    return cost


def _normalised(name: str, values: ArrayLike, space: Space) -> FloatArray:
    weights = frames(name, values, len(space), error=IncompatibleMapsError)
    if weights.ndim != 1:
        raise IncompatibleMapsError(f"the {name} map has shape {weights.shape}: give one map.", shape=weights.shape)
    if weights.min() < 0:
        place = int(weights.argmin())
        raise IncompatibleMapsError(f"the {name} map has a negative weight at place {place}.", place=place)
    largest = float(weights.max())
    if largest <= 0:
        raise IncompatibleMapsError(
            f"the {name} map is empty: see the status of its recovery for the reason.", map=name
        )
    scaled = weights / largest  # so the sum cannot overflow
    return np.asarray(scaled / scaled.sum())


def _transport(difference: FloatArray, fewer: IntArray, more: IntArray, space: Space) -> float:
    """Carry weight between places at their distance."""
    if len(fewer) * len(more) > MAX_PAIRS:
        pairs = len(fewer) * len(more)
        raise IncompatibleMapsError(
            f"{pairs:,} pairs of places differ: drop small weights from the maps first.", pairs=pairs
        )
    if not len(fewer):
        return 0.0
    distances = np.stack([space.distances(int(place))[more] for place in fewer])
    i, j = np.nonzero(np.isfinite(distances))
    excess = difference[np.concatenate([fewer, more])]
    giving = excess if excess[0] > 0 else -excess
    return _flow(giving, np.stack([i, len(fewer) + j], axis=1), distances[i, j], givers=len(fewer))


def _flow(excess: FloatArray, pairs: IntArray, lengths: FloatArray, *, givers: int) -> float:
    """Carry weight over pairs of places, away from the first `givers` places; -1 if some cannot be sent."""
    tails, heads = (np.concatenate(ends) for ends in (pairs.T, pairs.T[::-1]))
    order = np.argsort(tails, kind="stable")
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    back = position[(order + len(pairs)) % len(order)]
    start = np.searchsorted(tails[order], np.arange(len(excess) + 1))
    arcs = _Arcs(start, heads[order], np.tile(lengths, 2)[order], back, givers)
    n = len(excess)
    nodes = _Nodes(excess.copy(), np.zeros(n), np.empty(n), np.empty(n, np.int64), np.empty(n, np.bool_))
    return float(_cheapest_flow(arcs, nodes, CRUMB))


class _Arcs(NamedTuple):
    """Those of node v are start[v]:start[v+1]; `back` holds the arc of the same pair in the other direction.

    Arcs of nodes from `givers` on only take back what they owe.
    """

    start: IntArray
    heads: IntArray
    lengths: FloatArray
    back: IntArray
    givers: int


class _Nodes(NamedTuple):
    """The excess and the potential of each node; of a search its distance, the arc to it, and whether it is done."""

    excess: FloatArray
    potential: FloatArray
    distance: FloatArray
    came: IntArray
    known: NDArray[np.bool_]


@compiled_part
def _nearest_lack(arcs: _Arcs, nodes: _Nodes, owed: FloatArray, source: int, crumb: float) -> int:
    """Find the nearest node that lacks something, by Dijkstra's method over reduced costs; -1 if none is reached."""
    start, heads, lengths, givers = arcs.start, arcs.heads, arcs.lengths, arcs.givers
    excess, potential, distance, came, known = nodes.excess, nodes.potential, nodes.distance, nodes.came, nodes.known
    distance[:] = np.inf
    known[:] = False
    distance[source] = 0.0
    nearest = [(0.0, source)]
    while len(nearest) > 0:
        near, node = heappop(nearest)
        if known[node]:
            continue
        known[node] = True
        if excess[node] < -crumb:
            return int(node)
        for arc in range(start[node], start[node + 1]):
            other = heads[arc]
            if known[other] or (owed[arc] == 0.0 and node >= givers):
                continue
            cost = -lengths[arc] if owed[arc] > 0.0 else lengths[arc]
            through = near + max(0.0, cost + potential[node] - potential[other])
            if through < distance[other]:
                distance[other] = through
                came[other] = arc
                heappush(nearest, (through, other))
    return -1


@compiled_part
def _send(arcs: _Arcs, nodes: _Nodes, owed: FloatArray, source: int, sink: int) -> float:
    """Send along the path that was found as much as its ends and the arcs that owe allow; returns the cost."""
    heads, lengths, back, excess, came = arcs.heads, arcs.lengths, arcs.back, nodes.excess, nodes.came
    amount, cost = min(excess[source], -excess[sink]), 0.0
    node = sink
    while node != source:
        arc = came[node]
        amount = min(amount, owed[arc]) if owed[arc] > 0.0 else amount
        node = heads[back[arc]]
    node = sink
    while node != source:
        arc = came[node]
        if owed[arc] > 0.0:
            owed[arc] -= amount
            cost -= amount * lengths[arc]
        else:
            owed[back[arc]] += amount
            cost += amount * lengths[arc]
        node = heads[back[arc]]
    excess[source] -= amount
    excess[sink] += amount
    return float(cost)


@compiled
def _cheapest_flow(arcs: _Arcs, nodes: _Nodes, crumb: float) -> float:
    """Send every positive excess to the negative ones; the cost, or -1 if some cannot be sent.

    Successive shortest paths. While the arc of a pair in one direction carries flow, the other one owes it and takes it
    back. Potentials keep the reduced costs non-negative, which proves the optimum.
    """
    excess, distance, total = nodes.excess, nodes.distance, 0.0
    owed = np.zeros(len(arcs.heads))
    for source in range(len(excess)):
        while excess[source] > crumb:
            sink = _nearest_lack(arcs, nodes, owed, source, crumb)
            if sink < 0 and excess[source] > 4 * len(excess) * crumb:
                return -1.0
            if sink < 0:
                break  # roundings may leave a little over
            nodes.potential[:] += np.minimum(distance, distance[sink])
            total += _send(arcs, nodes, owed, source, sink)
    return total
