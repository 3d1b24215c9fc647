"""A chain over the places of many sources of known strength on a large floor, by moves that cost the same on any floor.

A source belongs to a track, which says where it may be, or to the others, of whom only an intensity is known: a Poisson
process. In a sweep

- each track is *redrawn* from all places near where it was, or from none, given the others;
- the floor is cut into square *tiles*, at a new random offset: none or one of the others in a tile is drawn given the
  rest, and where there are more, each is redrawn, and one appears or disappears;
- *pairs*: two sources within a few cells of each other move to neighbouring cells at once;
- *handing over*: a track leaves its source to the others, or takes one of them, which leaves all readings alike.

`field` is (starts, sensors, values, squares, grid, at_row, at_column): the whitened columns by place, their squares,
and the cells. `prior` is (core, size, weight, absent, patches, reached, came, patch_of, others, logs, likeliest): the
places near each track, sorted, and their probabilities; that of no source; the patches to which a track may walk,
sorted, and the probability of each place there; the intensity of the others; the logarithms of the probabilities near
each track; and the likeliest place of each, by which tracks are in the order of `FloorMotion.sweep_order`.
`state` is (at, rest, weight, inside, rng, held, first, following): the places of the tracks, -1 if absent, and then of
the others; the readings less their contribution; two scratch arrays; random numbers; how many others and how many
sources there are; and the sources in each square of the floor as linked lists, so that looking around costs the same on
any floor.
"""

import math
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery.chain_moves import accept
from cloakwork.recovery.floor_weights import (
    BAND,
    TILE,
    add_heat,
    chance,
    find,
    gain,
    pick,
    picked,
    scan_core,
    scan_tile,
)

NEAR = 6  # cells between the two sources of a pair, at most
HOTTEST = 0.1  # the part of the log likelihood that counts in the first sweep from nothing


@compiled_part
def _corner(field: Any, place: int, offset: Any) -> tuple[int, int]:
    """The first row and column of the tile of a place."""
    row = (field[5][place] + offset[0]) // TILE * TILE - offset[0]
    return row, (field[6][place] + offset[1]) // TILE * TILE - offset[1]


@compiled_part
def _move(field: Any, state: Any, i: int, place: int) -> None:
    """Move source i to a place, -1 for nowhere. The readings left are the caller's."""
    at, first, following = state[0], state[6], state[7]
    old = at[i]
    at[i] = place
    if old >= 0:
        row, column = field[5][old] // TILE, field[6][old] // TILE
        if place >= 0 and row == field[5][place] // TILE and column == field[6][place] // TILE:
            return
        if first[row, column] == i:
            first[row, column] = following[i]
        else:
            j = first[row, column]
            while following[j] != i:
                j = following[j]
            following[j] = following[i]
    if place >= 0:
        row, column = field[5][place] // TILE, field[6][place] // TILE
        following[i] = first[row, column]
        first[row, column] = i


@compiled_part
def _within(field: Any, state: Any, begin: int, box: Any, members: IntArray) -> int:
    """Fill `members` with the sources from number `begin` on in a box (rows, then columns, ends included)."""
    at, first, following = state[0], state[6], state[7]
    top, bottom, left, right = box
    number = 0
    for row in range(max(0, top) // TILE, min(bottom // TILE + 1, first.shape[0])):
        for column in range(max(0, left) // TILE, min(right // TILE + 1, first.shape[1])):
            j = first[row, column]
            while j >= 0:
                if j >= begin and top <= field[5][at[j]] <= bottom and left <= field[6][at[j]] <= right:
                    members[number] = j
                    number += 1
                j = following[j]
    return number


@compiled_part
def _redraw(field: Any, prior: Any, state: Any, i: int, offset: Any, rule: Any, sums: Any) -> None:
    """Draw the place of track i: near where it was or absent if it is there or absent now, else within its tile."""
    at, rest, held = state[0], state[1], state[5]
    old, (most, beta, share) = at[i], rule
    if old < 0 and held[1] >= most:
        return
    if old >= 0:
        add_heat(field, rest, old, 1.0)
        held[1] -= 1
    if old >= 0 and find(prior[0][i], prior[1][i], old) < 0:
        number, total, _ = scan_tile(field, prior, state, i, _corner(field, old, offset), beta)
        _move(field, state, i, picked(state, number, total))
        if share > 0 and sums[3][0] < len(sums[2]):
            sums[2][sums[3][0], 0], sums[2][sums[3][0], 1] = i, at[i]
            sums[3][0] += 1
    else:
        number, (total, top) = prior[1][i], scan_core(field, prior, state, i, beta)
        none = math.exp(math.log(prior[3][i]) - top) if prior[3][i] > 0 else 0.0
        for k in range(number if share > 0 else 0):
            sums[0][i, k] += share * state[2][k] / (total + none)
        stays = state[4].random() * (total + none) >= none
        _move(field, state, i, prior[0][i, pick(state, number, total)] if stays else -1)
    if at[i] >= 0:
        add_heat(field, rest, at[i], -1.0)
        held[1] += 1


@compiled_part
def _put(field: Any, state: Any, tracks: int, place: int) -> None:
    """Add one of the others."""
    held = state[5]
    _move(field, state, tracks + held[0], place)
    add_heat(field, state[1], place, -1.0)
    held[0] += 1
    held[1] += 1


@compiled_part
def _forget(field: Any, state: Any, tracks: int, j: int) -> None:
    """Remove one of the others, whose contribution is no longer in the readings left."""
    at, held = state[0], state[5]
    held[0] -= 1
    held[1] -= 1
    last = tracks + held[0]
    _move(field, state, j, at[last])
    _move(field, state, last, -1)


@compiled_part
def _renew_tile(field: Any, prior: Any, state: Any, members: IntArray, corner: Any, rule: Any, sums: Any) -> None:
    """Draw the others of a tile; `members` is scratch."""
    at, rest, held, tracks, (most, beta, share) = state[0], state[1], state[5], len(prior[1]), rule
    box = (corner[0], corner[0] + TILE - 1, corner[1], corner[1] + TILE - 1)
    count, stays = _within(field, state, tracks, box, members), False
    for which in range(max(count, 1)):
        j = members[which] if count > 0 else -1
        if count > 0:
            add_heat(field, rest, at[j], 1.0)
        number, total, top = scan_tile(field, prior, state, tracks, corner, beta)
        none = math.exp(-top) if count < 2 else 0.0
        if number == 0 or (count == 0 and held[1] >= most):
            return
        for k in range(number if share > 0 else 0):
            sums[1][state[3][k]] += share * state[2][k] / (total + none)
        stays = state[4].random() * (total + none) >= none
        if stays and count > 0:
            _move(field, state, j, picked(state, number, total))
            add_heat(field, rest, at[j], -1.0)
        elif stays:
            members[0] = tracks + held[0]
            _put(field, state, tracks, picked(state, number, total))
        elif count > 0:
            _forget(field, state, tracks, j)
    if count > 1 or stays:
        _jump(field, prior, state, members, max(count, 1), corner, rule)


@compiled_part
def _jump(field: Any, prior: Any, state: Any, members: IntArray, count: int, corner: Any, rule: Any) -> None:
    """Add one to the others of a tile that has some, or take one of several away."""
    tracks, held, beta = len(prior[1]), state[5], rule[1]
    if state[4].random() < 0.5:
        number, total, top = scan_tile(field, prior, state, tracks, corner, beta)
        if held[1] < rule[0] and total > 0 and accept(math.log(total / (count + 1)) + top, state[4]):
            _put(field, state, tracks, picked(state, number, total))
    elif count > 1:
        j = members[int(state[4].random() * count)]
        place = state[0][j]
        add_heat(field, state[1], place, 1.0)
        _, total, top = scan_tile(field, prior, state, tracks, corner, beta)
        if accept(math.log(count / total) - top, state[4]):
            _forget(field, state, tracks, j)
        else:
            add_heat(field, state[1], place, -1.0)


@compiled_part
def _around(field: Any, place: int) -> tuple[int, int, int, int]:
    """The box of the cells near a place."""
    row, column = field[5][place], field[6][place]
    return row - NEAR, row + NEAR, column - NEAR, column + NEAR


@compiled_part
def _stepped(field: Any, place: int, rng: np.random.Generator) -> int:
    """One of the nine cells around a place; -1 without floor."""
    row, column = field[5][place] + int(rng.random() * 3) - 1, field[6][place] + int(rng.random() * 3) - 1
    if not (0 <= row < field[4].shape[0] and 0 <= column < field[4].shape[1]):
        return -1
    return int(field[4][row, column])


@compiled_part
def _pair(field: Any, prior: Any, state: Any, members: IntArray, i: int, beta: float) -> None:
    at, rest, rng = state[0], state[1], state[4]
    before = _within(field, state, 0, _around(field, at[i]), members)
    j = members[int(rng.random() * before)]  # i is one of them
    if j == i:
        return
    old_i, old_j = at[i], at[j]
    new_i, new_j = _stepped(field, old_i, rng), _stepped(field, old_j, rng)
    if new_i < 0 or new_j < 0:
        return
    likely = chance(prior, i, new_i) * chance(prior, j, new_j)
    if likely <= 0:
        return
    add_heat(field, rest, old_i, 1.0)
    ratio = -gain(field, rest, old_i)
    add_heat(field, rest, old_j, 1.0)
    ratio += gain(field, rest, new_j) - gain(field, rest, old_j)
    add_heat(field, rest, new_j, -1.0)
    # the gain of the first is that beside the second, before and after
    ratio = beta * (ratio + gain(field, rest, new_i))
    ratio += math.log(likely / (chance(prior, i, old_i) * chance(prior, j, old_j)))
    _move(field, state, i, new_i)
    _move(field, state, j, new_j)
    far = max(abs(field[5][new_i] - field[5][new_j]), abs(field[6][new_i] - field[6][new_j]))
    after = _within(field, state, 0, _around(field, new_i), members)
    if far <= NEAR and accept(ratio + math.log(before / after), rng):
        add_heat(field, rest, new_i, -1.0)
        return
    _move(field, state, i, old_i)
    _move(field, state, j, old_j)
    add_heat(field, rest, new_j, 1.0)
    add_heat(field, rest, old_j, -1.0)
    add_heat(field, rest, old_i, -1.0)


@compiled_part
def _hand_over(field: Any, prior: Any, state: Any, members: IntArray, i: int, box: Any) -> None:
    """Let track i leave its source to the others, or take one of those near it; `box` has all places near it."""
    at, rng, held, tracks = state[0], state[4], state[5], len(prior[1])
    absent, place = prior[3][i], at[i]
    if absent <= 0 or held[0] >= len(at) - tracks or (place >= 0 and find(prior[0][i], prior[1][i], place) < 0):
        return
    number, chosen = 0, -1
    for k in range(_within(field, state, tracks, box, members)):
        near = find(prior[0][i], prior[1][i], at[members[k]])
        if near >= 0 and prior[2][i, near] > 0:
            number += 1
            if rng.random() * number < 1:
                chosen = members[k]
    if place >= 0:
        ratio = absent * prior[8][place] / (chance(prior, i, place) * (number + 1))
        if rng.random() < ratio:
            _move(field, state, tracks + held[0], place)
            _move(field, state, i, -1)
            held[0] += 1
    elif number > 0 and prior[8][at[chosen]] > 0:
        place = at[chosen]
        if rng.random() < chance(prior, i, place) * number / (absent * prior[8][place]):
            held[0] -= 1
            _move(field, state, chosen, at[tracks + held[0]])
            _move(field, state, tracks + held[0], -1)
            _move(field, state, i, place)


@compiled_part
def _comes_before(field: Any, place: int, right: int, bottom: int) -> bool:
    """Whether a place is in an earlier band than the one that ends at a column, or in it and above a row."""
    return bool(field[6][place] < right - BAND or (field[6][place] < right and field[5][place] < bottom))


@compiled_part
def _sweep(field: Any, prior: Any, state: Any, members: IntArray, boxes: IntArray, rule: Any, sums: Any) -> None:
    tracks, at, rng = len(prior[1]), state[0], state[4]
    offset, (height, width), drawn = (int(rng.random() * TILE), int(rng.random() * TILE)), field[4].shape, 0
    for left in range(0, width + offset[1], BAND):  # a band at a time: what is near is still in the cache
        for row in range(-offset[0], height, TILE):
            while drawn < tracks and _comes_before(field, prior[10][drawn], left + BAND, row + TILE):
                _redraw(field, prior, state, drawn, offset, rule, sums)
                drawn += 1
            for column in range(left - offset[1], min(left - offset[1] + BAND, width), TILE):
                _renew_tile(field, prior, state, members, (row, column), rule, sums)
    for i in range(tracks + state[5][0]):
        if at[i] >= 0:
            _pair(field, prior, state, members, i, rule[1])
    for i in range(tracks):
        _hand_over(field, prior, state, members, i, boxes[i])


@compiled_part
def _boxes(field: Any, prior: Any) -> IntArray:
    """The box of the places near each track."""
    boxes = np.empty((len(prior[1]), 4), dtype=np.int64)
    for i in range(len(boxes)):
        cells = prior[0][i, : prior[1][i]]
        rows, columns = field[5][cells], field[6][cells]
        boxes[i, 0], boxes[i, 1] = rows.min(), rows.max()
        boxes[i, 2], boxes[i, 3] = columns.min(), columns.max()
    return boxes


@compiled
def run_floor_chain(
    field: Any,
    prior: Any,
    data: FloatArray,
    lengths: Any,
    rng: np.random.Generator,
    at: IntArray,
    others: int,
    sums: Any,
    totals: IntArray,
    best: FloatArray,
) -> int:
    """Start from the places `at` of the tracks and of some `others`, and add up what the sweeps draw.

    `lengths` is (most sources, hot sweeps, sweeps before the first that counts, sweeps that count). `sums` is (tracks,
    others, outside, used): the probability of each place near each track, the expected number of the others at each
    place, and (track, place) of each draw elsewhere, of which `used` says how many there are. Fills `totals` with the
    number of sources after each sweep, and `best` with the readings less the sources that fit best. Returns the number
    of others, whose places follow those of the tracks in `at`.
    """
    most, hot, warm, sweeps = lengths
    tracks, size = len(prior[1]), max(TILE * TILE, prior[0].shape[1])
    held, before = np.zeros(2, dtype=np.int64), at.copy()
    at[:] = -1
    first = np.full((field[4].shape[0] // TILE + 1, field[4].shape[1] // TILE + 1), -1)
    lists = (first, np.full(len(at), -1))
    state = (at, data.copy(), np.empty(size), np.empty(size, dtype=np.int64), rng, held, *lists)
    members, boxes, least = np.empty(len(at) + 1, dtype=np.int64), _boxes(field, prior), np.inf
    for i in range(tracks):  # what was drawn before this frame may be impossible now
        if before[i] >= 0 and chance(prior, i, before[i]) > 0:
            _move(field, state, i, before[i])
            add_heat(field, state[1], at[i], -1.0)
            held[1] += 1
    for i in range(tracks, tracks + others):
        if prior[8][before[i]] > 0:
            _put(field, state, tracks, before[i])
    for sweep in range(hot + warm + sweeps):
        beta = HOTTEST ** (1 - sweep / hot) if sweep < hot else 1.0
        rule = (most, beta, 1.0 / sweeps if sweep >= hot + warm else 0.0)
        _sweep(field, prior, state, members, boxes, rule, sums)
        if sweep >= hot + warm:
            totals[sweep - hot - warm] = held[1]
            misfit = (state[1] ** 2).sum()
            if misfit < least:
                least = misfit
                best[:] = state[1]
    return int(held[0])
