"""How sources move on a large floor: walks between patches of places, without a table of all distances."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork._method_cache import memoize
from cloakwork.physics import FloorPlan
from cloakwork.recovery.floors.floor_weights import BAND, Whereabouts, find
from cloakwork.recovery.tracking.motion import MAX_INTERVALS, MAX_WALK, PATCH, Motion, Step, whole_milliseconds


class FloorStep(NamedTuple):
    """An interval, as compiled functions take it.

    `patch` is the patch of each place, and (`starts`, `to`, `reach`) the weights of walks between patches. `flow` is
    the factor on what leaves a place, `leave` the probability to disappear from it, `begin` that of beginning to walk.
    """

    patch: IntArray
    starts: IntArray
    to: IntArray
    reach: FloatArray
    flow: FloatArray
    leave: FloatArray
    begin: float


@compiled_part
def _ball(graph: Any, place: int, radius: int, seen: IntArray, stamp: int, queue: IntArray, hops: IntArray) -> int:
    """Fill `queue` with the places within some steps of one, nearest first, and `hops` with the steps; their number.

    `graph` is (starts, neighbours); `seen` (n,) is `stamp` at the places found.
    """
    starts, neighbours = graph
    queue[0], hops[0], seen[place] = place, 0, stamp
    size, done = 1, 0
    while done < size and hops[done] < radius:
        for k in range(starts[queue[done]], starts[queue[done] + 1]):
            if seen[neighbours[k]] != stamp and size < len(queue):
                seen[neighbours[k]] = stamp
                queue[size], hops[size] = neighbours[k], hops[done] + 1
                size += 1
        done += 1
    return size


@compiled
def ball(graph: Any, place: int, radius: int) -> IntArray:
    """The places within some steps of one, nearest first."""
    n = len(graph[0]) - 1
    queue, hops = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    return queue[: _ball(graph, place, radius, np.full(n, -1), 0, queue, hops)].copy()


@compiled
def cut_patches(graph: Any, radius: int) -> tuple[IntArray, IntArray]:
    """Cut places into patches of a radius: the place in the middle of each patch, and the patch of each place."""
    n = len(graph[0]) - 1
    patch, centres, seen = np.full(n, -1), np.empty(n, dtype=np.int64), np.full(n, -1)
    queue, hops = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    number = 0
    for place in range(n):
        if patch[place] < 0:
            for k in range(_ball(graph, place, radius, seen, number, queue, hops)):
                if patch[queue[k]] < 0:
                    patch[queue[k]] = number
            centres[number] = place
            number += 1
    return centres[:number].copy(), patch


@compiled
def link_patches(graph: Any, centres: IntArray, farthest: int) -> tuple[IntArray, IntArray, IntArray]:
    """The patches within some steps of each: where each begins, the patches, and the steps between their middles."""
    n = len(graph[0]) - 1
    number, seen = np.full(n, -1), np.full(n, -1)
    number[centres] = np.arange(len(centres))
    queue, hops = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    starts, used = np.zeros(len(centres) + 1, dtype=np.int64), 0
    to, steps = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.int64)
    for patch in range(len(centres)):
        for k in range(_ball(graph, centres[patch], farthest, seen, patch, queue, hops)):
            if number[queue[k]] >= 0:
                if used == len(to):
                    to, steps = np.append(to, np.empty_like(to)), np.append(steps, np.empty_like(steps))
                to[used], steps[used] = number[queue[k]], hops[k]
                used += 1
        starts[patch + 1] = used
    return starts, to[:used], steps[:used]


@compiled_part
def _sorted(keys: Any, values: Any, size: int) -> None:
    """Sort the first entries of two arrays by the first."""
    order = np.argsort(keys[:size])
    keys[:size], values[:size] = keys[:size][order], values[:size][order]


@compiled_part
def _walk(step: FloorStep, cells: IntArray, leaving: FloatArray, scratch: Any, patches: Any, came: Any) -> int:
    """Let weights walk from their cells; fills the patches that they come to, sorted, and the weight of a place."""
    patch, starts, to, reach = step.patch, step.starts, step.to, step.reach
    weights, moved = scratch
    for k in range(len(cells)):
        weights[patch[cells[k]]] += leaving[k]
    size = 0
    for k in range(len(cells)):
        weight = weights[patch[cells[k]]]
        weights[patch[cells[k]]] = 0.0
        if weight > 0:
            for link in range(starts[patch[cells[k]]], starts[patch[cells[k]] + 1]):
                if moved[to[link]] == 0 and size < len(patches):
                    patches[size] = to[link]
                    size += 1
                moved[to[link]] += weight * reach[link]
    for k in range(size):
        came[k] = moved[patches[k]]
    for k in range(len(cells)):  # also those beyond the most that are kept
        for link in range(starts[patch[cells[k]]], starts[patch[cells[k]] + 1]):
            moved[to[link]] = 0.0
    _sorted(patches, came, size)
    return size


@compiled
def predict_tracks(step: FloorStep, graph: Any, laws: Any, radius: int, where: Whereabouts) -> None:
    """Fill `where` with the tracks after an interval, their logarithms apart.

    `laws` is (starts, cells, sits, walks) of all tracks. Places within `radius` steps of the likeliest and those of the
    frame before are weighed one by one.
    """
    patch, flow, leave, begin = step.patch, step.flow, step.leave, step.begin
    starts, cells, sits, walks = laws
    core, size, weight, absent = where.core, where.size, where.weight, where.absent
    patches, reached, came, stay = where.patches, where.reached, where.came, where.stayed
    n = len(patch)
    of_patches = (np.zeros(len(step.starts) - 1), np.zeros(len(step.starts) - 1))
    stayed, seen = np.zeros(n), np.full(n, -1)
    queue, hops = np.empty(core.shape[1], dtype=np.int64), np.empty(core.shape[1], dtype=np.int64)
    for i in range(len(size)):
        mine = slice(starts[i], starts[i + 1])
        held, here = sits[mine] + walks[mine], cells[mine]
        leaving, likeliest = np.empty(len(here)), np.argmax(held)
        absent[i] = 1 - held.sum()
        for k in range(len(here)):
            leaving[k] = (begin * sits[mine][k] + walks[mine][k]) * flow[here[k]]
            stayed[here[k]] = sits[mine][k] * (1 - begin) * (1 - leave[here[k]])
            absent[i] += held[k] * leave[here[k]]
        reached[i] = _walk(step, here, leaving, of_patches, patches[i], came[i])
        number = _ball(graph, here[likeliest], radius, seen, i, queue[: len(queue) - len(here)], hops)
        for k in range(len(here)):
            if seen[here[k]] != i:
                queue[number] = here[k]
                number += 1
        core[i, :number] = queue[:number]
        for k in range(number):
            stay[i, k] = stayed[queue[k]]
        for k in range(len(here)):
            stayed[here[k]] = 0.0
        _sorted(core[i], stay[i], number)
        size[i] = number
        for k in range(number):
            there = find(patches[i], reached[i], patch[core[i, k]])
            weight[i, k] = stay[i, k] + (came[i, there] if there >= 0 else 0.0)


@dataclass(frozen=True, eq=False)
class FloorMotion:
    """A motion on a large floor."""

    motion: Motion
    plan: FloorPlan

    @cached_property
    def graph(self) -> Any:
        """The neighbours of each place, as compiled functions take them."""
        adjacency = self.plan.space.adjacency
        return (adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64))

    @cached_property
    def sweep_order(self) -> IntArray:
        """Numbers of the places in the order of a sweep: band by band, and from above to below in each."""
        row, column = self.plan.rooms.grid_positions.T
        return np.asarray(column // BAND * (row.max() + 1) + row)

    def hops(self, distance: float) -> int:
        """A distance in steps from cell to cell."""
        return max(1, int(min(distance / self.plan.rooms.cell, self.plan.places)))

    @cached_property
    def _doors(self) -> Any:
        """The distance of each place from the nearest entrance; None if sources come and go anywhere."""
        if self.motion.entrances is None:
            return None
        space = self.plan.space
        far = [space.distances(int(place)) for place in space.indices(list(self.motion.entrances))]
        return np.min(far, axis=0).astype(np.float32)

    def over(self, seconds: float) -> Step:
        return self._transitions(whole_milliseconds(seconds))

    @memoize(MAX_INTERVALS)
    def _transitions(self, seconds: float) -> Step:
        length = self.motion.walk_length(seconds, self.plan.rooms.cell)
        centres, patch = cut_patches(self.graph, int(PATCH * length / self.plan.rooms.cell))
        starts, to, steps = link_patches(self.graph, centres, self.hops(MAX_WALK * length))
        weights = np.exp(-steps * self.plan.rooms.cell / length)
        reach = sparse.csr_array((weights, to, starts), shape=(len(centres), len(centres)))
        return Step.over(self.motion, seconds, length, patch, reach, self._doors)
