"""The steady field of a large floor: only the readings that a source changes noticeably, with a bound on the rest."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled
from cloakwork.physics.diffusion import pulse, pulse_reach, unit_rows

LEVEL = 1e-4  # entries below this part of a sensor's largest one are dropped
WINDOW = 1e-6  # of the field is left where a window of the floor ends
TILE = 20  # cells on a side of the squares whose sensors share a window


@dataclass(frozen=True, eq=False)
class LocalField:
    """M without the entries that are too small to matter.

    `columns` (m, n) are the entries kept. `dropped` (n,) bounds the l2 norm of the others in each column, and `error`
    the spectral norm of the error of all entries computed.
    """

    columns: sparse.csc_array
    dropped: FloatArray
    error: float

    def moves(self, pairs: IntArray, lengths: FloatArray) -> sparse.csr_array:
        """(M_i - M_j) / d(i, j) of each neighbour pair, shape (p, m)."""
        i, j = pairs.T
        numbers, ends = np.arange(len(pairs)), np.concatenate([i, j])
        parts = np.concatenate([1 / lengths, -1 / lengths])
        differences = sparse.coo_array((parts, (np.tile(numbers, 2), ends)), shape=(len(pairs), self.columns.shape[1]))
        return sparse.csr_array(differences.tocsr() @ self.columns.T.tocsr())

    def move_error(self, pairs: IntArray) -> float:
        """Bound on the l2 norm of the error of M_i - M_j over all neighbour pairs."""
        i, j = pairs.T
        return float((self.dropped[i] + self.dropped[j]).max(initial=0.0)) + math.sqrt(2) * self.error


def local_field(
    L: sparse.csr_array, kappa: float, tau: float, scale: float, grid_positions: IntArray, sensor_places: IntArray
) -> LocalField:
    """Rows of scale exp(-tau L) (kappa L + I)^-1 of the sensors, computed window by window.

    Notes
    -----
    A window extends so far around its sensors that the heat there has faded by `WINDOW`, and the footprint ends before.
    With the field zero outside, the residual of kappa L + I lies on the cells around the window. It bounds the error,
    since kappa L + I >= I: the spectral norm of all residuals together is at most the root of their largest row sum
    times their largest column sum, which does not grow with the floor.
    """
    n, m = L.shape[0], len(sensor_places)
    system = (kappa * L + sparse.identity(n, format="csr")).tocsr()
    squares, column_sums, row_sums = np.zeros(n), np.zeros(n), np.zeros(m)
    inside, footprint = 0.0, 0.0
    entries: list[tuple[FloatArray, IntArray, IntArray]] = []
    margin = max(math.ceil(-math.log(WINDOW) * math.sqrt(kappa)), pulse_reach(L, tau))
    for cells, sensors, at in _windows(grid_positions, sensor_places, margin):
        part = system[cells]
        block = part[:, cells].tocsc()
        seen = pulse(L[cells][:, cells].tocsr(), tau, unit_rows(len(cells), at))
        right = np.ascontiguousarray(seen.values.T)
        solution = sparse_linalg.splu(block).solve(right)
        inside += float(np.linalg.norm(right - block @ solution)) ** 2
        footprint += seen.error**2
        around = np.setdiff1d(part.indices, cells)
        outside = np.abs(part[:, around].T @ solution)
        row_sums[sensors] = outside.sum(axis=0)
        column_sums[around] += outside.sum(axis=1)
        kept = np.abs(solution) >= LEVEL * np.abs(solution).max(axis=0)
        squares[cells] += np.where(kept, 0.0, solution**2).sum(axis=1)
        row, column = np.nonzero(kept)
        entries.append((solution[row, column], sensors[column], cells[row]))
    values, rows, columns = (np.concatenate(each) for each in zip(*entries, strict=True))
    kept_columns = sparse.coo_array((scale * values, (rows, columns)), shape=(m, n)).tocsc()
    rounding = np.finfo(float).eps * 8 * (1 + kappa * float(L.diagonal().max(initial=0.0)))
    computed = math.sqrt(inside) + math.sqrt(footprint) + rounding * float(np.linalg.norm(values))
    error = math.sqrt(row_sums.max(initial=0.0) * column_sums.max(initial=0.0)) + computed
    return LocalField(kept_columns, scale * np.sqrt(squares) * (1 + 1e-9), scale * error * (1 + 1e-9))


def _windows(
    grid_positions: IntArray, sensor_places: IntArray, margin: int
) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Cut the floor into square tiles; the window of a tile extends its sensors by a margin.

    Yields the cells of each window, its sensors, and where these are among the cells.
    """
    at = grid_positions[sensor_places]
    tiles, tile_of = np.unique(at // TILE, axis=0, return_inverse=True)
    number = np.full(len(grid_positions), -1, dtype=np.int64)
    for tile in range(len(tiles)):
        sensors = np.flatnonzero(tile_of.ravel() == tile)
        low, high = at[sensors].min(axis=0) - margin, at[sensors].max(axis=0) + margin
        cells = np.flatnonzero(((grid_positions >= low) & (grid_positions <= high)).all(axis=1))
        number[cells] = np.arange(len(cells))
        yield cells, sensors, number[sensor_places[sensors]]


@compiled
def steepest_in_boxes(
    seen: Any, first: IntArray, along: IntArray, shape: IntArray, squares: int
) -> tuple[FloatArray, IntArray, IntArray]:
    """The steepest slope of each sensor within each square box of cells: values, boxes, and where each sensor starts.

    `seen` is (starts, pairs, slopes): sensor l sees `pairs[starts[l]:starts[l + 1]]`, and `slopes` how much. `first`
    (p, 2) is the lower cell of each pair and `along` (p,) whether it lies along a row.
    """
    starts, pairs, slopes = seen
    sensors = len(starts) - 1
    values, boxes = np.empty(1024), np.empty(1024, dtype=np.int64)
    ends = np.zeros(sensors + 1, dtype=np.int64)
    used = 0
    for sensor in range(sensors):
        low_row, low_column, high_row, high_column = shape[0], shape[1], 0, 0
        for k in range(starts[sensor], starts[sensor + 1]):
            row, column = first[pairs[k]]
            low_row, high_row = min(low_row, row), max(high_row, row)
            low_column, high_column = min(low_column, column), max(high_column, column)
        low_row, low_column = max(0, low_row - squares), max(0, low_column - squares)
        height, width = max(0, high_row - low_row + 1), max(0, high_column - low_column + 1)
        patch = np.zeros((height, width))
        for k in range(starts[sensor], starts[sensor + 1]):
            row, column = first[pairs[k]] - np.array([low_row, low_column])
            sideways = along[pairs[k]]  # a box of cells holds one more row of pairs along a row than across
            for r in range(max(0, row - squares + 1 - sideways), row + 1):
                for c in range(max(0, column - squares + (1 if sideways else 0)), column + 1):
                    patch[r, c] = max(patch[r, c], slopes[k])
        while used + height * width > len(values):
            values, boxes = np.append(values, np.empty_like(values)), np.append(boxes, np.empty_like(boxes))
        for r in range(height):
            for c in range(width):
                if patch[r, c] > 0:
                    values[used] = patch[r, c]
                    boxes[used] = (low_row + r) * shape[1] + low_column + c
                    used += 1
        ends[sensor + 1] = used
    return values[:used], boxes[:used], ends
