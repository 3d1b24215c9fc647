"""Earth mover distance between two maps, by an exact minimum-cost flow, and two plainer distances.

The flow uses successive shortest paths: from each place with something left to send, Dijkstra's method over reduced
costs finds the nearest place that still lacks something, through forward arcs and backwards along arcs that carry flow.
Potentials keep the reduced costs non-negative and prove the result optimal.
"""

from heapq import heappop, heappush

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, frames
from cloakwork._compile import compiled
from cloakwork.errors import MeasureError
from cloakwork.physics import Metric, Space

CRUMB = 1e-15
MOST_ARCS = 20_000_000
FEW_PAIRS = 400_000  # up to here, distances between places are cheaper than flows through them


def emd(first: ArrayLike, second: ArrayLike, space: Space) -> float:
    """The mean distance that weight must travel to turn one map into the other, in units of the space.

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
        raise MeasureError(f"space={space!r}: give the space of a model, such as line.space.", space=space)
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
        raise MeasureError("the maps have weight in unconnected parts: their distance is undefined.", space=space)
    return cost


def l1(first: ArrayLike, second: ArrayLike) -> float:
    """Sum of absolute differences of two maps, without scaling.

    >>> l1([1, 0, 0], [0, 0.5, 0])
    1.5
    """
    return float(np.abs(_difference(first, second)).sum())


def l2(first: ArrayLike, second: ArrayLike) -> float:
    """Root of the sum of squared differences of two maps, without scaling.

    >>> l2([3, 0], [0, 4])
    5.0
    """
    return float(np.sqrt((_difference(first, second) ** 2).sum()))


def _difference(first: ArrayLike, second: ArrayLike) -> FloatArray:
    places = np.asarray(first, dtype=np.float64).size
    return _single_map("first", first, places) - _single_map("second", second, places)


def _single_map(name: str, values: ArrayLike, places: int) -> FloatArray:
    weights = frames(name, values, places, error=MeasureError)
    if weights.ndim != 1:
        raise MeasureError(f"the {name} map has shape {weights.shape}: give one map.", shape=weights.shape)
    return weights


def _normalised(name: str, values: ArrayLike, space: Space) -> FloatArray:
    weights = _single_map(name, values, len(space))
    if weights.min() < 0:
        place = int(weights.argmin())
        raise MeasureError(f"the {name} map has a negative weight at place {place}.", place=place)
    largest = float(weights.max())
    if largest <= 0:
        raise MeasureError(f"the {name} map is empty: see the status of its recovery for the reason.", map=name)
    scaled = weights / largest  # so the sum cannot overflow
    return np.asarray(scaled / scaled.sum())


def _transport(difference: FloatArray, space: Space) -> float:
    """Carry weight from each place with too much to those with too little, at their distance."""
    givers, takers = np.flatnonzero(difference > 0), np.flatnonzero(difference < 0)
    if len(givers) * len(takers) > MOST_ARCS:
        arcs = len(givers) * len(takers)
        raise MeasureError(f"{arcs:,} pairs of places differ: drop small weights from the maps first.", pairs=arcs)
    if len(givers) > len(takers):
        return _transport(-difference, space)
    distances = np.stack([space.distances(int(giver))[takers] for giver in givers])
    i, j = np.meshgrid(np.arange(len(givers)), len(givers) + np.arange(len(takers)), indexing="ij")
    reached = np.isfinite(distances)
    pairs = np.stack([i[reached], j[reached]], axis=1)
    excess = difference[np.concatenate([givers, takers])]
    return _flow(excess, pairs, distances[reached], one_way=True)


def _flow(excess: FloatArray, pairs: IntArray, lengths: FloatArray, *, one_way: bool = False) -> float:
    """Order the arcs by node, each with its reverse, and solve; -1 if some weight cannot be sent."""
    n, p = len(excess), len(pairs)
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


@compiled
def cheapest_flow(
    start: IntArray,
    ends: IntArray,
    costs: FloatArray,
    twins: IntArray,
    capacity: FloatArray,
    excess: FloatArray,
    crumb: float,
) -> float:
    """Send every positive excess to the negative ones; the cost, or -1 if some cannot be sent.

    The arcs of node v are start[v]:start[v+1], to `ends` at `costs`. `twins` holds the reverse of each arc, with the
    opposite cost and the flow that can be undone as its `capacity` (infinite for a forward arc). Amounts up to `crumb`
    are dropped.
    """
    n = len(start) - 1
    potential = np.zeros(n)
    distance = np.empty(n)
    came = np.empty(n, np.int64)
    known = np.empty(n, np.bool_)
    total = 0.0
    for source in range(n):
        while excess[source] > crumb:
            distance[:] = np.inf
            known[:] = False
            distance[source] = 0.0
            came[source] = -1
            nearest = [(0.0, source)]
            sink = -1
            while len(nearest) > 0:
                near, node = heappop(nearest)
                if known[node]:
                    continue
                known[node] = True
                if excess[node] < -crumb:
                    sink = node
                    break
                for arc in range(start[node], start[node + 1]):
                    other = ends[arc]
                    if capacity[arc] <= 0.0 or known[other]:
                        continue
                    through = near + max(0.0, costs[arc] + potential[node] - potential[other])
                    if through < distance[other]:
                        distance[other] = through
                        came[other] = arc
                        heappush(nearest, (through, other))
            if sink < 0:
                # roundings may leave a little over; a larger rest cannot be sent
                if excess[source] > 4 * n * crumb:
                    return -1.0
                break
            reach = distance[sink]
            for node in range(n):
                potential[node] += min(distance[node], reach)
            amount = min(excess[source], -excess[sink])
            node = sink
            while node != source:
                amount = min(amount, capacity[came[node]])
                node = ends[twins[came[node]]]
            node = sink
            while node != source:
                arc = came[node]
                capacity[arc] -= amount
                capacity[twins[arc]] += amount
                total += amount * costs[arc]
                node = ends[twins[arc]]
            excess[source] -= amount
            excess[sink] += amount
    return total
