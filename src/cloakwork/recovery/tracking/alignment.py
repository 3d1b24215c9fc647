"""Which source of one draw is which of another.

A draw has its sources in slots, in any order. A *track* takes one slot of each draw: `order` (draws, slots) holds the
slot of each track. `cells` (draws, slots) are the cells of the sources, -1 for an empty slot.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery.summary import cheapest
from cloakwork.recovery.tracking.motion import Single

SWITCH = 2.0  # a track changes its slot only if the new one is this many times nearer
MAX_REFERENCES = 8  # draws tried as the first centres of the tracks
ROUNDS = 2  # of matching draws to centres and moving the centres
RECENT = 0.5  # weight of a source's latest track, relative to the track that its path began with
EMPTY_SLOT = 1e-3  # weight of a slot without a source
EXISTS = 0.5  # a track of at least this probability is a source
ENDED = 0.1  # a track below this probability has ended
NEGLIGIBLE = 1e-3  # cells this much less likely than the best do not count for a centre


class Centres(NamedTuple):
    """The central cell of each track, -1 if there is none, and the probability of the track: shapes (slots,)."""

    cells: IntArray
    probabilities: FloatArray

    @classmethod
    def none(cls, slots: int) -> "Centres":
        return cls(np.full(slots, -1), np.zeros(slots))


@dataclass(frozen=True, eq=False)
class Aligner:
    """Matches draws over cells with given `distances` (n, n)."""

    distances: Single

    @cached_property
    def unmatched(self) -> float:
        """The cost of a track without a source: half the largest distance."""
        return float(self.distances.max()) / 2

    def align(self, cells: IntArray, before: IntArray, recent: IntArray) -> tuple[IntArray, Centres]:
        """Order the draws so that each track is in one place in all of them; returns the order and the centres.

        Tracks keep their slots from an earlier frame (`before`) and from the last alignment (`recent`) where they can.
        """
        order, centres = np.empty_like(cells), Centres.none(cells.shape[1])
        _align(cells, before, recent, self.distances, self.unmatched, order, *centres)
        return order, centres

    def match(self, centres: Centres, cells: IntArray, before: IntArray | None = None) -> IntArray:
        """Return the slot of each track in each draw, near the centre of the track."""
        order, free = np.empty_like(cells), np.full_like(cells, -1) if before is None else before
        found, weights = centres.cells.copy(), centres.probabilities.copy()
        _match(found, weights, cells, free, self.distances, self.unmatched, order)
        return order

    def centre(self, probabilities: FloatArray) -> int:
        """Return the cell with the least expected distance to a source; -1 if the source hardly exists."""
        if probabilities.sum() < ENDED:
            return -1
        least = NEGLIGIBLE * float(probabilities.max())
        return _middle(probabilities.astype(np.float32), self.distances, least)

    def centres(self, tracks: FloatArray) -> Centres:
        """Return the centre of each track (slots, n)."""
        return Centres(np.array([self.centre(track) for track in tracks]), tracks.sum(axis=1))


@compiled_part
def _fill_first_tracks(centres: IntArray, here: IntArray, chosen: IntArray) -> None:
    """Let the first tracks without a centre take the slots with a source, in their order."""
    first = 0
    for track in range(len(chosen)):
        if centres[track] < 0 and here[chosen[track]] >= 0:
            while centres[first] >= 0 or (first < track and here[chosen[first]] >= 0):
                first += 1
            chosen[first], chosen[track] = chosen[track], chosen[first]


@compiled
def _match(
    centres: IntArray,
    weights: FloatArray,
    cells: IntArray,
    before: IntArray,
    distances: Single,
    unmatched: float,
    order: IntArray,
) -> float:
    """Fill `order` with the slot of each track in each draw, at the least sum of distances; returns that sum.

    `before` (draws, slots) is the slot that a track had before, -1 if none. A track without a source costs `unmatched`
    times its weight; a new track costs `unmatched`, and its source becomes the centre for the next draws.
    """
    slots, total = len(centres), 0.0
    cost, best = np.empty((slots, slots)), np.empty(1 << slots)
    choice, chosen = np.empty(1 << slots, dtype=np.int64), np.empty(slots, dtype=np.int64)
    for row in range(len(cells)):
        for track in range(slots):
            for slot in range(slots):
                centre, cell = centres[track], cells[row, slot]
                if cell < 0:
                    cost[track, slot] = 0.0 if centre < 0 else unmatched * weights[track]
                else:
                    cost[track, slot] = unmatched if centre < 0 else distances[centre, cell]
                if before[row, track] >= 0 and before[row, track] != slot:
                    cost[track, slot] *= SWITCH
        cheapest(cost, slots, slots, best, choice, chosen)
        for track in range(slots):
            total += cost[track, chosen[track]]
        if before[row, 0] < 0:
            _fill_first_tracks(centres, cells[row], chosen)
        for track in range(slots):
            order[row, track] = chosen[track]
            if centres[track] < 0 and cells[row, chosen[track]] >= 0:
                centres[track], weights[track] = cells[row, chosen[track]], 0.5
    return total


@compiled_part
def _move_centres(cells: IntArray, order: IntArray, distances: Single, centres: IntArray, weights: FloatArray) -> None:
    """Move each centre to the source with the least total distance to all others of its track."""
    draws = len(cells)
    for track in range(len(centres)):
        centres[track], weights[track], least = -1, 0.0, np.inf
        for row in range(draws):
            candidate = cells[row, order[row, track]]
            if candidate < 0:
                continue
            weights[track] += 1 / draws
            total = 0.0
            for other in range(draws):
                cell = cells[other, order[other, track]]
                if cell >= 0:
                    total += distances[candidate, cell]
            if total < least:
                centres[track], least = candidate, total


@compiled_part
def _renumber(cells: IntArray, before: IntArray, recent: IntArray, order: IntArray) -> None:
    """Give each track the number of the earlier track that has the same slot in most draws."""
    slots = before.shape[1]
    cost, best = np.zeros((slots, slots)), np.empty(1 << slots)
    choice, number = np.empty(1 << slots, dtype=np.int64), np.empty(slots, dtype=np.int64)
    for row in range(len(cells)):
        for new in range(slots):
            weight = 1.0 if cells[row, order[row, new]] >= 0 else EMPTY_SLOT
            for old in range(slots):
                if order[row, new] == before[row, old]:
                    cost[old, new] -= weight
                if order[row, new] == recent[row, old]:
                    cost[old, new] -= weight * RECENT
    cheapest(cost, slots, slots, best, choice, number)
    for row in range(len(cells)):
        order[row] = order[row][number]


@compiled
def _align(
    cells: IntArray,
    before: IntArray,
    recent: IntArray,
    distances: Single,
    unmatched: float,
    order: IntArray,
    centres: IntArray,
    weights: FloatArray,
) -> None:
    """Fill `order`, `centres` and `weights` as `Aligner.align` says."""
    free, trial = np.full_like(before, -1), np.empty_like(order)
    least = np.inf
    for reference in range(min(MAX_REFERENCES, len(cells))):
        for slot in range(len(centres)):
            centres[slot] = cells[reference, slot]
            weights[slot] = 1.0 if centres[slot] >= 0 else 0.0
        total = _match(centres, weights, cells, free, distances, unmatched, trial)
        if total < least:
            least = total
            order[:] = trial
    for _ in range(ROUNDS):
        _move_centres(cells, order, distances, centres, weights)
        _match(centres, weights, cells, free, distances, unmatched, order)
    _renumber(cells, before, recent, order)
    _move_centres(cells, order, distances, centres, weights)
    _match(centres, weights, cells, before, distances, unmatched, order)
    _move_centres(cells, order, distances, centres, weights)


@compiled
def _middle(probabilities: Single, distances: Single, least: float) -> int:
    """Return the cell with the least expected distance to a source; cells of at most `least` do not count."""
    likely = np.where(probabilities > least, probabilities, np.float32(0.0))
    best, lowest = 0, np.inf
    for candidate in np.flatnonzero(likely):
        row, total = distances[candidate], np.float32(0.0)
        for other in range(len(likely)):
            total += likely[other] * row[other]
        if total < lowest:
            best, lowest = int(candidate), float(total)
    return best
