"""Match sources one to one; inner loops only."""

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part


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
def match_draws(apart: FloatArray, counts: IntArray, labels: IntArray) -> None:
    """Fill `labels` (draws, slots) with the centre of each source at the least sum of distances, -1 if unmatched.

    `apart` (draws, slots, centres) are the distances, and `counts` (draws,) the numbers of sources.
    """
    listed, most = apart.shape[2], max(apart.shape[1:])
    best, choice, label = np.empty(1 << most), np.empty(1 << most, np.int64), np.empty(most, np.int64)
    labels[:] = -1
    for row in range(len(counts)):
        k = counts[row]
        if k <= listed:
            cheapest(apart[row], k, listed, best, choice, labels[row])
        else:
            cheapest(apart[row].T, listed, k, best, choice, label)
            for j in range(listed):
                labels[row, label[j]] = j
