"""Inner loops from draws of a posterior to centres, smooth densities and quantiles."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part

ROUNDS = 4  # of matching draws to centres and moving the centres
SMOOTHED = 3  # rounds of spreading each draw over nearby candidates
TRIED = 48  # draws tried as the new centre of a source


class CandidateMetric(NamedTuple):
    """How far candidates are from each other.

    `table` has the distances of places, or is empty where `coordinates` of the candidates have them. `place` is the
    place of each candidate, `order` lists the candidates along a line.
    """

    table: NDArray[np.float32]
    coordinates: FloatArray
    place: IntArray
    order: IntArray


@compiled_part
def _apart(metric: CandidateMetric, a: int, b: int) -> float:
    """Distance between two candidates: from a table over places, or between coordinates."""
    table, coordinates, cell = metric.table, metric.coordinates, metric.place
    if len(table):
        return float(table[cell[a], cell[b]])
    total = 0.0
    for axis in range(coordinates.shape[1]):
        total += (coordinates[a, axis] - coordinates[b, axis]) ** 2
    return float(np.sqrt(total))


@compiled_part
def _ones(mask: int) -> int:
    number = 0
    while mask:
        number += mask & 1
        mask >>= 1
    return number


@compiled_part
def cheapest(cost: FloatArray, rows: int, columns: int, best: FloatArray, choice: IntArray, label: IntArray) -> None:
    """The cheapest assignment of a column to each row (rows <= columns), over all subsets of columns."""
    full = 1 << columns
    for mask in range(1, full):
        best[mask] = np.inf
    best[0] = 0.0
    end, least = 0, np.inf
    for mask in range(full):
        row = _ones(mask)
        if row == rows:
            if best[mask] < least:
                end, least = mask, best[mask]
            continue
        if row > rows or best[mask] == np.inf:
            continue
        for column in range(columns):
            if not (mask >> column) & 1:
                grown = mask | (1 << column)
                value = best[mask] + cost[row, column]
                if value < best[grown]:
                    best[grown] = value
                    choice[grown] = column
    for row in range(rows - 1, -1, -1):
        label[row] = choice[end]
        end ^= 1 << choice[end]


@compiled
def match_draws(metric: CandidateMetric, centres: IntArray, at: IntArray, counts: IntArray, labels: IntArray) -> None:
    """Match the sources of every draw to centres one to one, at the least sum of distances; -1 if unmatched."""
    listed, most = len(centres), at.shape[1]
    size = 1 << max(listed, most)
    best, choice, label = np.empty(size), np.empty(size, dtype=np.int64), np.empty(max(listed, most), dtype=np.int64)
    cost = np.empty((max(listed, most), max(listed, most)))
    for row in range(len(counts)):
        k = counts[row]
        for i in range(most):
            labels[row, i] = -1
        for i in range(k):
            for j in range(listed):
                apart = _apart(metric, at[row, i], centres[j])
                if k <= listed:
                    cost[i, j] = apart
                else:
                    cost[j, i] = apart
        if k <= listed:
            cheapest(cost, k, listed, best, choice, label)
            for i in range(k):
                labels[row, i] = label[i]
        else:
            cheapest(cost, listed, k, best, choice, label)
            for j in range(listed):
                labels[row, label[j]] = j


@compiled_part
def _middle(metric: CandidateMetric, matched: IntArray, number: int, before: int) -> int:
    """The one of the first `number` candidates with the least total distance to all; the median on a line."""
    if number == 0:
        return before
    order = metric.order
    if len(order):
        return _median(order, matched, number)
    best, least = before, np.inf
    for trial in range(min(number, TRIED)):
        candidate = matched[trial * number // min(number, TRIED)]
        total = 0.0
        for other in range(number):
            total += _apart(metric, candidate, matched[other])
            if total >= least:
                break
        if total < least:
            best, least = candidate, total
    return int(best)


@compiled_part
def _median(order: IntArray, matched: IntArray, number: int) -> int:
    """The median of candidates along a line."""
    hits = np.zeros(len(order), dtype=np.int64)
    for k in range(number):
        hits[matched[k]] += 1
    passed = 0
    for candidate in order:
        passed += hits[candidate]
        if 2 * passed > number:
            return int(candidate)
    return int(order[-1])


@compiled
def centre(metric: CandidateMetric, centres: IntArray, at: IntArray, counts: IntArray, labels: IntArray) -> None:
    """Move each centre to the drawn candidate with the least total distance to all those matched to it."""
    listed = len(centres)
    matched = np.empty(at.shape[0], dtype=np.int64)
    for _ in range(ROUNDS):
        match_draws(metric, centres, at, counts, labels)
        moved = False
        for j in range(listed):
            number = 0
            for row in range(len(counts)):
                for i in range(counts[row]):
                    if labels[row, i] == j:
                        matched[number] = at[row, i]
                        number += 1
            before = centres[j]
            centres[j] = _middle(metric, matched, number, before)
            moved |= centres[j] != before
        if not moved:
            break
    match_draws(metric, centres, at, counts, labels)


@compiled
def spread(starts: IntArray, near: IntArray, drawn: IntArray, far: FloatArray, density: FloatArray) -> None:
    """Fill `density` with a smoothed count of draws; ties go to the candidate that is less `far`."""
    rough = np.zeros(len(density))
    for candidate in drawn:
        rough[candidate] += 1.0
    for _ in range(SMOOTHED):
        for at in range(len(density)):
            density[at] = 0.0
        for at in range(len(density)):
            if rough[at] > 0:
                weight = rough[at] / (starts[at + 1] - starts[at])
                for k in range(starts[at], starts[at + 1]):
                    density[near[k]] += weight
        for at in range(len(density)):
            rough[at] = density[at]
    farthest = 1e-300
    for at in range(len(density)):
        farthest = max(farthest, far[at])
    for at in range(len(density)):
        density[at] -= 1e-9 * far[at] / farthest


@compiled
def quantiles(
    position: FloatArray, at: IntArray, strength: FloatArray, counts: IntArray, positions: FloatArray, order: IntArray
) -> int:
    """Fill positions[t, draw] with the position below which a share (t + 1/2) / levels of a draw's strength lies.

    Draws without a source are left out; returns the number of others. `order` is scratch for one draw.
    """
    levels, used = len(positions), 0
    for row in range(len(counts)):
        k = counts[row]
        if k == 0:
            continue
        total = 0.0
        for i in range(k):
            total += strength[row, i]
            j = i
            while j > 0 and position[at[row, order[j - 1]]] > position[at[row, i]]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
        passed, i = strength[row, order[0]], 0
        for t in range(levels):
            while passed < (t + 0.5) / levels * total and i < k - 1:
                i += 1
                passed += strength[row, order[i]]
            positions[t, used] = position[at[row, order[i]]]
        used += 1
    return used
