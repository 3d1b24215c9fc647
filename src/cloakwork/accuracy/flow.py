"""Minimum-cost flow from many sources to many sinks over a sparse network, exact; inner loops only.

Successive shortest paths: from each place with something left to send, Dijkstra's method over reduced costs finds the
nearest place that still wants some, through forward arcs and backwards along arcs that carry flow. Potentials keep the
reduced costs from being negative, and are a proof of optimality when it ends.
"""

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part


@compiled_part
def _push(heap: IntArray, keys: FloatArray, place: IntArray, size: int, node: int) -> int:
    """Put a node into the heap, or move it up after its key became smaller."""
    at = place[node]
    if at < 0:
        at = size
        size += 1
    while at > 0:
        above = (at - 1) >> 1
        other = heap[above]
        if keys[other] <= keys[node]:
            break
        heap[at] = other
        place[other] = at
        at = above
    heap[at] = node
    place[node] = at
    return size


@compiled_part
def _pop(heap: IntArray, keys: FloatArray, place: IntArray, size: int) -> int:
    """Take the node with the least key off the heap, which then holds size - 1."""
    top = int(heap[0])
    place[top] = -2
    size -= 1
    if size > 0:
        node = heap[size]
        at = 0
        while True:
            below = 2 * at + 1
            if below >= size:
                break
            if below + 1 < size and keys[heap[below + 1]] < keys[heap[below]]:
                below += 1
            other = heap[below]
            if keys[other] >= keys[node]:
                break
            heap[at] = other
            place[other] = at
            at = below
        heap[at] = node
        place[node] = at
    return top


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

    Arcs of node v are start[v]:start[v+1], to `ends` at `costs`; `twins` is the reverse of each arc, with the opposite
    cost and the flow that can be undone as its `capacity` (infinite for a forward arc). Amounts up to `crumb` are
    dropped.
    """
    n = len(start) - 1
    potential = np.zeros(n)
    distance = np.empty(n)
    came = np.empty(n, np.int64)
    heap = np.empty(n, np.int64)
    place = np.empty(n, np.int64)
    total = 0.0
    for source in range(n):
        while excess[source] > crumb:
            distance[:] = np.inf
            place[:] = -1
            distance[source] = 0.0
            came[source] = -1
            size = _push(heap, distance, place, 0, source)
            sink = -1
            while size > 0:
                node = _pop(heap, distance, place, size)
                size -= 1
                if excess[node] < -crumb:
                    sink = node
                    break
                for arc in range(start[node], start[node + 1]):
                    if capacity[arc] <= 0.0:
                        continue
                    other = ends[arc]
                    if place[other] == -2:
                        continue
                    through = distance[node] + max(0.0, costs[arc] + potential[node] - potential[other])
                    if through < distance[other]:
                        distance[other] = through
                        came[other] = arc
                        size = _push(heap, distance, place, size, other)
            if sink < 0:
                # roundings of the sinks may leave a little over; more than that has nowhere to go
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
