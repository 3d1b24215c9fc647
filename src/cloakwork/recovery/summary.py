"""From draws of a posterior to a list of sources, each with the vicinity that holds it as often as it says."""

from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part

ROUNDS = 4  # of matching draws to centres and moving the centres
SMOOTHED = 3  # times that each draw is spread over those nearby, before a vicinity is cut out
TRIED = 48  # draws that are tried as the new centre of a source


@compiled_part
def _apart(metric: Any, a: int, b: int) -> float:
    """Distance between two candidates: from a table over places, or between coordinates."""
    table, coordinates, cell = metric
    if len(table):
        return float(table[cell[a], cell[b]])
    total = 0.0
    for axis in range(coordinates.shape[1]):
        total += (coordinates[a, axis] - coordinates[b, axis]) ** 2
    return float(np.sqrt(total))


@compiled_part
def _match(cost: FloatArray, rows: int, columns: int, best: FloatArray, choice: IntArray, label: IntArray) -> None:
    """The cheapest way to give each row a column of its own (rows <= columns), over all subsets of columns."""
    full = 1 << columns
    best[:full] = np.inf
    best[0] = 0.0
    end, least = 0, np.inf
    for mask in range(full):
        row = 0
        for column in range(columns):
            row += (mask >> column) & 1
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
def match_draws(metric: Any, centres: IntArray, at: IntArray, counts: IntArray, labels: IntArray) -> None:
    """Match the sources of every draw to centres one to one, at the least sum of distances; -1 for those left over."""
    listed, most = len(centres), at.shape[1]
    size = 1 << max(listed, most)
    best, choice, label = np.empty(size), np.empty(size, dtype=np.int64), np.empty(max(listed, most), dtype=np.int64)
    cost = np.empty((max(listed, most), max(listed, most)))
    for row in range(len(counts)):
        k = counts[row]
        labels[row] = -1
        for i in range(k):
            for j in range(listed):
                apart = _apart(metric, at[row, i], centres[j])
                if k <= listed:
                    cost[i, j] = apart
                else:
                    cost[j, i] = apart
        if k <= listed:
            _match(cost, k, listed, best, choice, label)
            labels[row, :k] = label[:k]
        else:
            _match(cost, listed, k, best, choice, label)
            for j in range(listed):
                labels[row, label[j]] = j


@compiled_part
def _middle(metric: Any, matched: IntArray, before: int) -> int:
    """The candidate among those drawn with the least total distance to all; the median on a line."""
    number, coordinates = len(matched), metric[1]
    if number == 0:
        return before
    if coordinates.shape[1] == 1:
        return int(matched[np.argsort(coordinates[matched, 0])[number // 2]])
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


@compiled
def centre(metric: Any, centres: IntArray, at: IntArray, counts: IntArray, labels: IntArray) -> None:
    """Move each centre to the drawn candidate with the least total distance to all that are matched to it."""
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
            centres[j] = _middle(metric, matched[:number], before)
            moved |= centres[j] != before
        if not moved:
            break
    match_draws(metric, centres, at, counts, labels)


@compiled
def region(
    starts: IntArray,
    near: IntArray,
    shaping: IntArray,
    cutting: IntArray,
    level: float,
    far: FloatArray,
    density: FloatArray,
) -> float:
    """The cut at which {density >= cut} holds a share `level` of the draws in `cutting`.

    `density` is filled with a smooth count of the draws in `shaping`, and where that is the same the nearer candidate
    (`far` is the distance of each from the centre) comes first. The two sets are different draws, so that the shape
    cannot adapt to those which decide how large it is.
    """
    rough = np.zeros(len(density))
    for drawn in shaping:
        rough[drawn] += 1.0
    for _ in range(SMOOTHED):
        density[:] = 0.0
        for at in range(len(density)):
            if rough[at] > 0:
                weight = rough[at] / (starts[at + 1] - starts[at])
                for k in range(starts[at], starts[at + 1]):
                    density[near[k]] += weight
        rough[:] = density
    farthest = max(far.max(), 1e-300)
    for at in range(len(density)):
        density[at] -= 1e-9 * far[at] / farthest
    values = np.sort(density[cutting])
    kept = int(np.round(level * len(values)))
    return float(values[len(values) - min(max(kept, 1), len(values))])


@compiled
def median_quantiles(
    position: FloatArray, at: IntArray, strength: FloatArray, counts: IntArray, levels: int
) -> FloatArray:
    """For each level t in (0, 1) the median over draws of the position below which a share t of the strength lies.

    These are the quantiles of the place-wise median of the cumulative maps: the median at x is at least t exactly when
    half the draws have their t-quantile at x or before.
    """
    found = np.empty((levels, len(counts)))
    used = 0
    order = np.empty(at.shape[1], dtype=np.int64)
    for row in range(len(counts)):
        k = counts[row]
        if k == 0:
            continue
        order[:k] = np.argsort(position[at[row, :k]])
        total = strength[row, :k].sum()
        passed, i = strength[row, order[0]], 0
        for t in range(levels):
            while passed < (t + 0.5) / levels * total and i < k - 1:
                i += 1
                passed += strength[row, order[i]]
            found[t, used] = position[at[row, order[i]]]
        used += 1
    quantiles = np.empty(levels)
    for t in range(levels):
        quantiles[t] = np.median(found[t, :used])
    return quantiles
