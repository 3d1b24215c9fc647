"""A chain over the number and places of many sources of known strength on a large floor, by moves within tiles.

The floor is cut into square tiles, at a new random offset in every sweep. Within a tile:

- *redraw*: one source is drawn from all places of its tile, given the others;
- *birth* and *death*: a source drawn from the places of a tile appears, or one disappears;
- *split* and *merge*: one source becomes two in its tile, or the reverse;
- *pair*: two sources within a few cells of each other move to neighbouring cells at once.

A move costs as much as the tile is large, however large the floor is. `field` is (starts, sensors, values, squares,
grid, at_row, at_column): the whitened columns by place, their squares, and the cells. `state` is (at, rest, gain,
inside, rng): the places of the sources, the readings less their contribution, two scratch arrays, and random numbers.
"""

import math
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part

TILE = 8  # cells on a side of a tile
NEAR = 6  # cells between the two sources of a pair, at most


@compiled_part
def _add(field: Any, rest: FloatArray, place: int, factor: float) -> None:
    starts, sensors, values = field[0], field[1], field[2]
    for k in range(starts[place], starts[place + 1]):
        rest[sensors[k]] += factor * values[k]


@compiled_part
def _gain(field: Any, rest: FloatArray, place: int) -> float:
    """The log likelihood that a source at a place adds."""
    starts, sensors, values = field[0], field[1], field[2]
    total = 0.0
    for k in range(starts[place], starts[place + 1]):
        total += values[k] * rest[sensors[k]]
    return float(total - field[3][place] / 2)


@compiled_part
def _scan(field: Any, state: Any, place: int, offset: Any) -> tuple[int, float]:
    """Collect the places of a tile and their gains; their number, and the log of the average of exp(gain)."""
    grid, gain, inside = field[4], state[2], state[3]
    first_row = (field[5][place] + offset[0]) // TILE * TILE - offset[0]
    first_column = (field[6][place] + offset[1]) // TILE * TILE - offset[1]
    number, top = 0, -np.inf
    for row in range(max(0, first_row), min(grid.shape[0], first_row + TILE)):
        for column in range(max(0, first_column), min(grid.shape[1], first_column + TILE)):
            if grid[row, column] >= 0:
                inside[number] = grid[row, column]
                gain[number] = _gain(field, state[1], inside[number])
                top = max(top, gain[number])
                number += 1
    total = 0.0
    for k in range(number):
        total += math.exp(gain[k] - top)
    return number, top + math.log(total / number)


@compiled_part
def _pick(state: Any, number: int, average: float) -> int:
    """One of the places scanned, in proportion to exp(gain)."""
    left = state[4].random() * number
    for k in range(number):
        left -= math.exp(state[2][k] - average)
        if left < 0:
            return int(state[3][k])
    return int(state[3][number - 1])


@compiled_part
def _accept(log_ratio: float, rng: np.random.Generator) -> bool:
    return log_ratio >= 0 or rng.random() < math.exp(log_ratio)


@compiled_part
def _same_tile(field: Any, a: int, b: int, offset: Any) -> bool:
    row = (field[5][a] + offset[0]) // TILE == (field[5][b] + offset[0]) // TILE
    column = (field[6][a] + offset[1]) // TILE == (field[6][b] + offset[1]) // TILE
    return bool(row and column)


@compiled_part
def _beside(field: Any, at: IntArray, k: int, i: int, offset: Any, which: int) -> tuple[int, int]:
    """How many other sources the tile of source i has, and the one of number `which` among them."""
    number, found = 0, -1
    for j in range(k):
        if j != i and _same_tile(field, at[i], at[j], offset):
            if number == which:
                found = j
            number += 1
    return number, found


@compiled_part
def _redraw(field: Any, state: Any, i: int, offset: Any, intensity: FloatArray, share: float) -> None:
    at, rest = state[0], state[1]
    _add(field, rest, at[i], 1.0)
    number, average = _scan(field, state, at[i], offset)
    at[i] = _pick(state, number, average)
    _add(field, rest, at[i], -1.0)
    if share > 0:
        for k in range(number):
            intensity[state[3][k]] += share * math.exp(state[2][k] - average) / number


@compiled_part
def _birth(field: Any, state: Any, k: int, offset: Any) -> int:
    place = int(state[4].random() * len(field[3]))
    number, average = _scan(field, state, place, offset)
    if not _accept(average, state[4]):
        return k
    state[0][k] = _pick(state, number, average)
    _add(field, state[1], state[0][k], -1.0)
    return k + 1


@compiled_part
def _death(field: Any, state: Any, k: int, offset: Any) -> int:
    at, i = state[0], int(state[4].random() * k)
    _add(field, state[1], at[i], 1.0)
    _, average = _scan(field, state, at[i], offset)
    if _accept(-average, state[4]):
        at[i] = at[k - 1]
        return k - 1
    _add(field, state[1], at[i], -1.0)
    return k


@compiled_part
def _split(field: Any, state: Any, k: int, offset: Any) -> int:
    """Replace one source by two of its tile, drawn one after the other.

    Forwards a source of k is chosen, backwards one of k + 1 and then one of the c others of its tile. All gains cancel
    but the average over the places of the second: the ratio is k size average / (n c).
    """
    at, rest = state[0], state[1]
    i = int(state[4].random() * k)
    old = at[i]
    _add(field, rest, old, 1.0)
    number, average = _scan(field, state, old, offset)
    at[i] = _pick(state, number, average)
    _add(field, rest, at[i], -1.0)
    number, average = _scan(field, state, at[i], offset)
    others = _beside(field, at, k, i, offset, -1)[0] + 1
    if _accept(average + math.log(k * number / (len(field[3]) * others)), state[4]):
        at[k] = _pick(state, number, average)
        _add(field, rest, at[k], -1.0)
        return k + 1
    _add(field, rest, at[i], 1.0)
    at[i] = old
    _add(field, rest, old, -1.0)
    return k


@compiled_part
def _merge(field: Any, state: Any, k: int, offset: Any) -> int:
    """Replace two sources of a tile by one: the reverse of a split."""
    at, rest = state[0], state[1]
    i = int(state[4].random() * k)
    others = _beside(field, at, k, i, offset, -1)[0]
    if others == 0:
        return k
    j = _beside(field, at, k, i, offset, int(state[4].random() * others))[1]
    _add(field, rest, at[j], 1.0)
    number, average = _scan(field, state, at[i], offset)
    if not _accept(math.log(len(field[3]) * others / ((k - 1.0) * number)) - average, state[4]):
        _add(field, rest, at[j], -1.0)
        return k
    _add(field, rest, at[i], 1.0)
    number, average = _scan(field, state, at[i], offset)
    at[i] = _pick(state, number, average)
    _add(field, rest, at[i], -1.0)
    at[j] = at[k - 1]
    return k - 1


@compiled_part
def _near(field: Any, at: IntArray, k: int, i: int, which: int) -> tuple[int, int]:
    """How many other sources are near source i, and the one of number `which` among them."""
    number, found = 0, -1
    for j in range(k):
        far = max(abs(field[5][at[i]] - field[5][at[j]]), abs(field[6][at[i]] - field[6][at[j]]))
        if j != i and far <= NEAR:
            if number == which:
                found = j
            number += 1
    return number, found


@compiled_part
def _stepped(field: Any, place: int, rng: np.random.Generator) -> int:
    """One of the nine cells around a place; -1 without floor."""
    row, column = field[5][place] + int(rng.random() * 3) - 1, field[6][place] + int(rng.random() * 3) - 1
    if not (0 <= row < field[4].shape[0] and 0 <= column < field[4].shape[1]):
        return -1
    return int(field[4][row, column])


@compiled_part
def _pair(field: Any, state: Any, k: int, i: int) -> None:
    at, rest, rng = state[0], state[1], state[4]
    before = _near(field, at, k, i, -1)[0]
    if before == 0:
        return
    j = _near(field, at, k, i, int(rng.random() * before))[1]
    old_i, old_j = at[i], at[j]
    new_i, new_j = _stepped(field, old_i, rng), _stepped(field, old_j, rng)
    if new_i < 0 or new_j < 0:
        return
    _add(field, rest, old_i, 1.0)
    ratio = -_gain(field, rest, old_i)
    _add(field, rest, old_j, 1.0)
    ratio += _gain(field, rest, new_j) - _gain(field, rest, old_j)
    _add(field, rest, new_j, -1.0)
    # the gain of the first is that beside the second, before and after
    ratio += _gain(field, rest, new_i)
    at[i], at[j] = new_i, new_j
    far = max(abs(field[5][new_i] - field[5][new_j]), abs(field[6][new_i] - field[6][new_j]))
    after = _near(field, at, k, i, -1)[0]
    if far <= NEAR and _accept(ratio + math.log(before / after), rng):
        _add(field, rest, new_i, -1.0)
        return
    at[i], at[j] = old_i, old_j
    _add(field, rest, new_j, 1.0)
    _add(field, rest, old_j, -1.0)
    _add(field, rest, old_i, -1.0)


@compiled_part
def _jump(field: Any, state: Any, k: int, limits: tuple[int, int], offset: Any) -> int:
    """Move to one source more or less; each of two opposite moves is tried equally often."""
    least, most = limits
    up, apart = state[4].random() < 0.5, state[4].random() < 0.6
    if apart:
        if up:
            return _birth(field, state, k, offset) if k < most else k
        return _death(field, state, k, offset) if k > least else k
    if up:
        return _split(field, state, k, offset) if 0 < k < most else k
    return _merge(field, state, k, offset) if k > max(least, 1) else k


@compiled
def run_floor_chain(
    field: Any,
    data: FloatArray,
    limits: tuple[int, int],
    lengths: tuple[int, int],
    rng: np.random.Generator,
    at: IntArray,
    k: int,
    drawn: tuple[IntArray, IntArray, FloatArray],
    intensity: FloatArray,
) -> int:
    """Start from k sources and write a draw to `drawn` (places, counts, squared misfits) every few sweeps; the final k.

    `limits` is (least, most), `lengths` (sweeps before the first draw, sweeps per draw). `intensity` (n,) receives the
    expected number of sources at each place.
    """
    state = (at, data.copy(), np.empty(TILE * TILE), np.empty(TILE * TILE, dtype=np.int64), rng)
    for i in range(k):
        _add(field, state[1], at[i], -1.0)
    rows, sweeps = len(drawn[1]), lengths[1]
    share, jumps = 0.0, 8
    for row in range(rows):
        for sweep in range(lengths[0] + sweeps if row == 0 else sweeps):
            if row > 0 or sweep >= lengths[0]:
                share = 1.0 / (rows * sweeps)
            else:
                jumps = max(k, 8)  # a number that follows k while draws are written would distort them
            offset = (int(rng.random() * TILE), int(rng.random() * TILE))
            for _ in range(jumps):
                k = _jump(field, state, k, limits, offset)
            for i in range(k):
                _pair(field, state, k, i)
            for i in range(k):
                _redraw(field, state, i, offset, intensity, share)
        drawn[0][row, :k] = at[:k]
        drawn[1][row] = k
        drawn[2][row] = (state[1] ** 2).sum()
    return k
