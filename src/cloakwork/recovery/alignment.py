"""Which source of one draw is which of another: matching draws to the tracks that they have in common.

A draw has its sources in slots, in any order. A track takes one slot of each draw: `order` (draws, slots) has the slot
of each track.
"""

from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery.observation import Observer
from cloakwork.recovery.path_steps import Beliefs
from cloakwork.recovery.summary import cheapest

CHANGED = 2.0  # a track takes another slot than before only where that is so many times nearer
REFERENCES = 8  # draws that are tried as the first centres of the tracks
ROUNDS = 2  # of matching draws to centres and moving the centres
RECENT = 0.5  # how much the latest number of a source counts beside the one that its path began with
ALIKE = 1e-3  # how much a slot without a source counts for the number of a track


@compiled_part
def _new_first(empty: IntArray, here: IntArray, chosen: IntArray) -> None:
    """Let the first tracks that are empty take the slots with a source, in their order."""
    first = 0
    for track in range(len(chosen)):
        if empty[track] < 0 and here[chosen[track]] >= 0:
            while empty[first] >= 0 or (first < track and here[chosen[first]] >= 0):
                first += 1
            chosen[first], chosen[track] = chosen[track], chosen[first]


@compiled
def match(
    centres: IntArray,
    weights: FloatArray,
    states: IntArray,
    before: IntArray,
    distances: Beliefs,
    strange: float,
    order: IntArray,
) -> float:
    """Fill `order` with the slot of each track in each draw, at the least sum of distances; returns that sum.

    `centres` (slots,) are the places of the tracks, `weights` (slots,) their probabilities, and `states` (draws, slots)
    the places of the slots, -1 if absent. `before` (draws, slots) is the slot that a track had before, -1 if none. It
    costs `strange` times its weight to leave a track without a source, and `strange` to begin one: the place of its
    source is then the centre for the next draws.
    """
    slots, total = len(centres), 0.0
    cost, best = np.empty((slots, slots)), np.empty(1 << slots)
    choice, chosen = np.empty(1 << slots, dtype=np.int64), np.empty(slots, dtype=np.int64)
    for row in range(len(states)):
        for track in range(slots):
            for slot in range(slots):
                at, place = centres[track], states[row, slot]
                if place < 0:
                    cost[track, slot] = 0.0 if at < 0 else strange * weights[track]
                else:
                    cost[track, slot] = strange if at < 0 else distances[at, place]
                if before[row, track] >= 0 and before[row, track] != slot:
                    cost[track, slot] *= CHANGED
        cheapest(cost, slots, slots, best, choice, chosen)
        for track in range(slots):
            total += cost[track, chosen[track]]
        if before[row, 0] < 0:
            _new_first(centres, states[row], chosen)
        for track in range(slots):
            order[row, track] = chosen[track]
            if centres[track] < 0 and states[row, chosen[track]] >= 0:
                centres[track], weights[track] = states[row, chosen[track]], 0.5
    return total


@compiled_part
def _recentre(states: IntArray, order: IntArray, distances: Beliefs, centres: IntArray, weights: FloatArray) -> None:
    """Move each centre to the source with the least total distance to all others of its track."""
    draws = len(states)
    for track in range(len(centres)):
        centres[track], weights[track], least = -1, 0.0, np.inf
        for row in range(draws):
            candidate = states[row, order[row, track]]
            if candidate < 0:
                continue
            weights[track] += 1 / draws
            total = 0.0
            for other in range(draws):
                place = states[other, order[other, track]]
                if place >= 0:
                    total += distances[candidate, place]
            if total < least:
                centres[track], least = candidate, total


@compiled_part
def _renumber(states: IntArray, before: IntArray, recent: IntArray, order: IntArray) -> None:
    """Give each track the number of the one before that has the same slot in most draws."""
    slots = before.shape[1]
    cost, best = np.zeros((slots, slots)), np.empty(1 << slots)
    choice, number = np.empty(1 << slots, dtype=np.int64), np.empty(slots, dtype=np.int64)
    for row in range(len(states)):
        for new in range(slots):
            for old in range(slots):
                weight = 1.0 if states[row, order[row, new]] >= 0 else ALIKE
                if order[row, new] == before[row, old]:
                    cost[old, new] -= weight
                if order[row, new] == recent[row, old]:
                    cost[old, new] -= weight * RECENT
    cheapest(cost, slots, slots, best, choice, number)
    for row in range(len(states)):
        order[row] = order[row][number]


@compiled
def align(
    states: IntArray,
    before: IntArray,
    recent: IntArray,
    distances: Beliefs,
    strange: float,
    order: IntArray,
    centres: IntArray,
    weights: FloatArray,
) -> None:
    """Fill `order` with the slot of each track in each draw, so that a track is at one place in all draws.

    `states` (draws, slots) are the places of the slots, -1 if absent, `before` (draws, slots) the slots of the tracks
    at an earlier moment, and `recent` (draws, slots) those of the last time that the moment was aligned. Fills
    `centres` and `weights` (slots,) with the places and probabilities of the tracks.
    """
    free, trial = np.full_like(before, -1), np.empty_like(order)
    least = np.inf
    for reference in range(min(REFERENCES, len(states))):
        for slot in range(len(centres)):
            centres[slot] = states[reference, slot]
            weights[slot] = 1.0 if centres[slot] >= 0 else 0.0
        total = match(centres, weights, states, free, distances, strange, trial)
        if total < least:
            least = total
            order[:] = trial
    for _ in range(ROUNDS):
        _recentre(states, order, distances, centres, weights)
        match(centres, weights, states, free, distances, strange, order)
    _renumber(states, before, recent, order)
    _recentre(states, order, distances, centres, weights)
    match(centres, weights, states, before, distances, strange, order)
    _recentre(states, order, distances, centres, weights)


@dataclass(frozen=True, eq=False)
class Marks:
    """Where each track is, -1 if there is none, and with which probability: shapes (slots,)."""

    centres: IntArray
    weights: FloatArray

    @classmethod
    def none(cls, slots: int) -> "Marks":
        """No track at all."""
        return cls(np.full(slots, -1), np.zeros(slots))

    def match(self, states: IntArray, observer: Observer, before: IntArray | None = None) -> IntArray:
        """The slot of each track in each of some draws (draws, slots), if known given the slots `before`."""
        order, free = np.empty_like(states), np.full_like(states, -1)
        centres, weights = self.centres.copy(), self.weights.copy()
        match(centres, weights, states, free if before is None else before, observer.distances, observer.strange, order)
        return order


@dataclass(frozen=True, eq=False)
class Alignment:
    """The slot of each track in each draw, (draws, slots), and where the tracks are."""

    order: IntArray
    marks: Marks

    @classmethod
    def of(cls, states: IntArray, before: IntArray, recent: IntArray, observer: Observer) -> "Alignment":
        """Align draws (draws, slots) of one moment, given the slots of the tracks before, and last time."""
        order, marks = np.empty_like(states), Marks.none(states.shape[1])
        align(states, before, recent, observer.distances, observer.strange, order, marks.centres, marks.weights)
        return cls(order, marks)
