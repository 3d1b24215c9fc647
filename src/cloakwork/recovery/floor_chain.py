"""A chain over the places of many sources of known strength on a large floor, by moves that cost the same on any floor.

A source belongs to a track, which says where it may be, or to the others, of whom only an intensity is known: a Poisson
process. In a sweep

- each track is *redrawn* from all places near where it was, or from none, given the others;
- the floor is cut into square *tiles*, at a new random offset: none or one of the others in a tile is drawn given the
  rest, and where there are more, each is redrawn, and one appears or disappears;
- *pairs*: two sources within a few cells of each other move to neighbouring cells at once;
- *handing over*: a track leaves its source to the others, or takes one of them, which leaves all readings alike.

`field` is (starts, sensors, values, squares, grid, at_row, at_column): the whitened columns by place, their squares,
and the cells. `prior` is (core, size, weight, absent, patches, reached, came, patch_of, others): the places near each
track, sorted, and their probabilities; that of no source; the patches to which a track may walk, sorted, and the
probability of each place there; and the intensity of the others. `state` is (at, rest, weight, inside, rng, held): the
places of the tracks, -1 if absent, and then of the others; the readings less their contribution; two scratch arrays;
random numbers; and how many others and how many sources there are.
"""

import math
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part

TILE = 8  # cells on a side of a tile
NEAR = 6  # cells between the two sources of a pair, at most
HOTTEST = 0.1  # the part of the log likelihood that counts in the first sweep from nothing


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
def find(values: Any, size: int, value: int) -> int:
    """The index of a value in the first entries of a sorted array, -1 if it is not there."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < size and values[low] == value else -1


@compiled_part
def _chance(prior: Any, i: int, place: int) -> float:
    """The prior probability of a place for track i, or the intensity of the others there."""
    if i >= len(prior[1]):
        return float(prior[8][place])
    k = find(prior[0][i], prior[1][i], place)
    if k >= 0:
        return float(prior[2][i, k])
    k = find(prior[4][i], prior[5][i], prior[7][place])
    return float(prior[6][i, k]) if k >= 0 else 0.0


@compiled_part
def _weighed(state: Any, number: int, top: float) -> float:
    """Turn the logs of the weights of the places scanned into weights relative to exp(top); returns their sum."""
    weight, total = state[2], 0.0
    for k in range(number):
        weight[k] = math.exp(weight[k] - top)
        total += weight[k]
    return total


@compiled_part
def _scan_core(field: Any, prior: Any, state: Any, i: int, beta: float) -> tuple[int, float, float]:
    """Weigh the places near track i: their number, the sum of their weights over exp(top), and top."""
    weight, inside = state[2], state[3]
    number, top = 0, math.log(prior[3][i]) if prior[3][i] > 0 else -np.inf
    for k in range(prior[1][i]):
        if prior[2][i, k] > 0:
            inside[number] = k
            weight[number] = math.log(prior[2][i, k]) + beta * _gain(field, state[1], prior[0][i, k])
            top = max(top, weight[number])
            number += 1
    return number, _weighed(state, number, top), top


@compiled_part
def _scan_tile(field: Any, prior: Any, state: Any, i: int, corner: Any, beta: float) -> tuple[int, float, float]:
    """Weigh the places of a tile for track i, those near it left out, or for one of the others."""
    grid, weight, inside = field[4], state[2], state[3]
    track = i < len(prior[1])
    number, top = 0, -np.inf if track else 0.0
    for row in range(max(0, corner[0]), min(grid.shape[0], corner[0] + TILE)):
        for column in range(max(0, corner[1]), min(grid.shape[1], corner[1] + TILE)):
            place = grid[row, column]
            if place < 0 or (track and find(prior[0][i], prior[1][i], place) >= 0):
                continue
            chance = _chance(prior, i, place)
            if chance > 0:
                inside[number] = place
                weight[number] = math.log(chance) + beta * _gain(field, state[1], place)
                top = max(top, weight[number])
                number += 1
    return number, _weighed(state, number, top), top


@compiled_part
def _pick(state: Any, number: int, total: float) -> int:
    """One of the entries scanned, in proportion to its weight."""
    left = state[4].random() * total
    for k in range(number):
        left -= state[2][k]
        if left < 0:
            return int(state[3][k])
    return int(state[3][number - 1])


@compiled_part
def _accept(log_ratio: float, rng: np.random.Generator) -> bool:
    return log_ratio >= 0 or rng.random() < math.exp(log_ratio)


@compiled_part
def _corner(field: Any, place: int, offset: Any) -> tuple[int, int]:
    """The first row and column of the tile of a place."""
    row = (field[5][place] + offset[0]) // TILE * TILE - offset[0]
    return row, (field[6][place] + offset[1]) // TILE * TILE - offset[1]


@compiled_part
def _redraw(field: Any, prior: Any, state: Any, i: int, offset: Any, rule: Any, sums: Any) -> None:
    """Draw the place of track i: near where it was or absent if it is there or absent now, else within its tile."""
    at, rest, held = state[0], state[1], state[5]
    old, (most, beta, share) = at[i], rule
    if old < 0 and held[1] >= most:
        return
    if old >= 0:
        _add(field, rest, old, 1.0)
        held[1] -= 1
    if old >= 0 and find(prior[0][i], prior[1][i], old) < 0:
        number, total, _ = _scan_tile(field, prior, state, i, _corner(field, old, offset), beta)
        at[i] = _pick(state, number, total)
        if share > 0 and sums[3][0] < len(sums[2]):
            sums[2][sums[3][0], 0], sums[2][sums[3][0], 1] = i, at[i]
            sums[3][0] += 1
    else:
        number, total, top = _scan_core(field, prior, state, i, beta)
        none = math.exp(math.log(prior[3][i]) - top) if prior[3][i] > 0 else 0.0
        for k in range(number if share > 0 else 0):
            sums[0][i, state[3][k]] += share * state[2][k] / (total + none)
        at[i] = -1
        if state[4].random() * (total + none) >= none:
            at[i] = prior[0][i, _pick(state, number, total)]
    if at[i] >= 0:
        _add(field, rest, at[i], -1.0)
        held[1] += 1


@compiled_part
def _put(field: Any, state: Any, tracks: int, place: int) -> None:
    """Add one of the others."""
    at, held = state[0], state[5]
    at[tracks + held[0]] = place
    _add(field, state[1], place, -1.0)
    held[0] += 1
    held[1] += 1


@compiled_part
def _forget(state: Any, tracks: int, j: int) -> None:
    """Remove one of the others, whose contribution is no longer in the readings left."""
    at, held = state[0], state[5]
    held[0] -= 1
    held[1] -= 1
    at[j] = at[tracks + held[0]]


@compiled_part
def _in_tile(field: Any, state: Any, tracks: int, corner: Any, members: IntArray) -> int:
    """Fill `members` with the others of a tile; their number."""
    count, at = 0, state[0]
    for j in range(tracks, tracks + state[5][0]):
        if 0 <= field[5][at[j]] - corner[0] < TILE and 0 <= field[6][at[j]] - corner[1] < TILE:
            members[count] = j
            count += 1
    return count


@compiled_part
def _renew_tile(field: Any, prior: Any, state: Any, members: IntArray, corner: Any, rule: Any, sums: Any) -> None:
    """Draw the others of a tile; `members` is scratch."""
    at, rest, held, tracks, (most, beta, share) = state[0], state[1], state[5], len(prior[1]), rule
    count, stays = _in_tile(field, state, tracks, corner, members), False
    for which in range(max(count, 1)):
        j = members[which] if count > 0 else -1
        if count > 0:
            _add(field, rest, at[j], 1.0)
        number, total, top = _scan_tile(field, prior, state, tracks, corner, beta)
        none = math.exp(-top) if count < 2 else 0.0
        if number == 0 or (count == 0 and held[1] >= most):
            return
        for k in range(number if share > 0 else 0):
            sums[1][state[3][k]] += share * state[2][k] / (total + none)
        stays = state[4].random() * (total + none) >= none
        if stays and count > 0:
            at[j] = _pick(state, number, total)
            _add(field, rest, at[j], -1.0)
        elif stays:
            members[0] = tracks + held[0]
            _put(field, state, tracks, _pick(state, number, total))
        elif count > 0:
            _forget(state, tracks, j)
    if count > 1 or stays:
        _jump(field, prior, state, members, max(count, 1), corner, rule)


@compiled_part
def _jump(field: Any, prior: Any, state: Any, members: IntArray, count: int, corner: Any, rule: Any) -> None:
    """Add one to the others of a tile that has some, or take one of several away."""
    tracks, held, beta = len(prior[1]), state[5], rule[1]
    if state[4].random() < 0.5:
        number, total, top = _scan_tile(field, prior, state, tracks, corner, beta)
        if held[1] < rule[0] and total > 0 and _accept(math.log(total / (count + 1)) + top, state[4]):
            _put(field, state, tracks, _pick(state, number, total))
    elif count > 1:
        j = members[int(state[4].random() * count)]
        place = state[0][j]
        _add(field, state[1], place, 1.0)
        _, total, top = _scan_tile(field, prior, state, tracks, corner, beta)
        if _accept(math.log(count / total) - top, state[4]):
            _forget(state, tracks, j)
        else:
            _add(field, state[1], place, -1.0)


@compiled_part
def _near(field: Any, at: IntArray, end: int, i: int, which: int) -> tuple[int, int]:
    """How many other sources are near source i, and the one of number `which` among them."""
    number, found, row, column = 0, -1, field[5][at[i]], field[6][at[i]]
    for j in range(end):
        if at[j] >= 0 and j != i and abs(row - field[5][at[j]]) <= NEAR and abs(column - field[6][at[j]]) <= NEAR:
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
def _pair(field: Any, prior: Any, state: Any, i: int, beta: float) -> None:
    at, rest, rng, end = state[0], state[1], state[4], len(prior[1]) + state[5][0]
    before = _near(field, at, end, i, -1)[0]
    if before == 0:
        return
    j = _near(field, at, end, i, int(rng.random() * before))[1]
    old_i, old_j = at[i], at[j]
    new_i, new_j = _stepped(field, old_i, rng), _stepped(field, old_j, rng)
    if new_i < 0 or new_j < 0:
        return
    chance = _chance(prior, i, new_i) * _chance(prior, j, new_j)
    if chance <= 0:
        return
    _add(field, rest, old_i, 1.0)
    ratio = -_gain(field, rest, old_i)
    _add(field, rest, old_j, 1.0)
    ratio += _gain(field, rest, new_j) - _gain(field, rest, old_j)
    _add(field, rest, new_j, -1.0)
    # the gain of the first is that beside the second, before and after
    ratio = beta * (ratio + _gain(field, rest, new_i))
    ratio += math.log(chance / (_chance(prior, i, old_i) * _chance(prior, j, old_j)))
    at[i], at[j] = new_i, new_j
    far = max(abs(field[5][new_i] - field[5][new_j]), abs(field[6][new_i] - field[6][new_j]))
    after = _near(field, at, end, i, -1)[0]
    if far <= NEAR and _accept(ratio + math.log(before / after), rng):
        _add(field, rest, new_i, -1.0)
        return
    at[i], at[j] = old_i, old_j
    _add(field, rest, new_j, 1.0)
    _add(field, rest, old_j, -1.0)
    _add(field, rest, old_i, -1.0)


@compiled_part
def _hand_over(prior: Any, state: Any, i: int) -> None:
    """Let track i leave its source to the others, or take one of those that it can reach."""
    at, rng, held, tracks = state[0], state[4], state[5], len(prior[1])
    absent, place = prior[3][i], at[i]
    if absent <= 0 or held[0] >= len(at) - tracks:
        return
    number, chosen = 0, -1
    for j in range(tracks, tracks + held[0]):
        if _chance(prior, i, at[j]) > 0:
            number += 1
            if rng.random() * number < 1:
                chosen = j
    if place >= 0:
        ratio = absent * prior[8][place] / (_chance(prior, i, place) * (number + 1))
        if rng.random() < ratio:
            at[tracks + held[0]] = place
            held[0] += 1
            at[i] = -1
    elif number > 0 and prior[8][at[chosen]] > 0:
        place = at[chosen]
        if rng.random() < _chance(prior, i, place) * number / (absent * prior[8][place]):
            held[0] -= 1
            at[chosen] = at[tracks + held[0]]
            at[i] = place


@compiled_part
def _sweep(field: Any, prior: Any, state: Any, members: IntArray, rule: Any, sums: Any) -> None:
    tracks, at, rng = len(prior[1]), state[0], state[4]
    offset = (int(rng.random() * TILE), int(rng.random() * TILE))
    for i in range(tracks):
        _redraw(field, prior, state, i, offset, rule, sums)
    for row in range(-offset[0], field[4].shape[0], TILE):
        for column in range(-offset[1], field[4].shape[1], TILE):
            _renew_tile(field, prior, state, members, (row, column), rule, sums)
    for i in range(tracks + state[5][0]):
        if at[i] >= 0:
            _pair(field, prior, state, i, rule[1])
    for i in range(tracks):
        _hand_over(prior, state, i)


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
    held = np.zeros(2, dtype=np.int64)
    state = (at, data.copy(), np.empty(size), np.empty(size, dtype=np.int64), rng, held)
    members, least = np.empty(len(at) + 1, dtype=np.int64), np.inf
    for i in range(tracks):
        if at[i] >= 0 and _chance(prior, i, at[i]) <= 0:
            at[i] = -1  # what was drawn before this frame may be impossible now
        if at[i] >= 0:
            _add(field, state[1], at[i], -1.0)
            held[1] += 1
    for i in range(tracks, tracks + others):
        if prior[8][at[i]] > 0:
            _put(field, state, tracks, at[i])
    for sweep in range(hot + warm + sweeps):
        beta = HOTTEST ** (1 - sweep / hot) if sweep < hot else 1.0
        rule = (most, beta, 1.0 / sweeps if sweep >= hot + warm else 0.0)
        _sweep(field, prior, state, members, rule, sums)
        if sweep >= hot + warm:
            totals[sweep - hot - warm] = held[1]
            misfit = (state[1] ** 2).sum()
            if misfit < least:
                least = misfit
                best[:] = state[1]
    return int(held[0])
