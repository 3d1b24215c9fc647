"""A chain over the places of many sources of known strength on a large floor, by moves that cost the same on any floor.

A source belongs to a track, which says where it may be, or to the others, of whom only an intensity is known: a Poisson
process. In a sweep

- each track is *redrawn* from all places near where it was, or from none, given the others;
- the floor is cut into square *tiles*, at a new random offset: none or one of the others in a tile is drawn given the
  rest, and where there are more, each is redrawn, and one appears or disappears;
- *pairs*: two sources within a few cells of each other move to neighbouring cells at once;
- *handing over*: a track leaves its source to the others, or takes one of them, which leaves all readings alike.
"""

import math
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery.chain_moves import accept
from cloakwork.recovery.floors.floor_weights import (
    BAND,
    OTHERS,
    SOURCES,
    TILE,
    ChainSums,
    FloorChainState,
    FloorColumns,
    SweepRule,
    Whereabouts,
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
def _corner(field: FloorColumns, place: int, offset: Any) -> tuple[int, int]:
    """The first row and column of the tile of a place."""
    row = (field.row[place] + offset[0]) // TILE * TILE - offset[0]
    return row, (field.column[place] + offset[1]) // TILE * TILE - offset[1]


@compiled_part
def _move(field: FloorColumns, state: FloorChainState, i: int, place: int) -> None:
    """Move source i to a place, -1 for nowhere. The readings left are the caller's."""
    at, first, following = state.at, state.first, state.following
    old = at[i]
    at[i] = place
    if old >= 0:
        row, column = field.row[old] // TILE, field.column[old] // TILE
        if place >= 0 and row == field.row[place] // TILE and column == field.column[place] // TILE:
            return
        if first[row, column] == i:
            first[row, column] = following[i]
        else:
            j = first[row, column]
            while following[j] != i:
                j = following[j]
            following[j] = following[i]
    if place >= 0:
        row, column = field.row[place] // TILE, field.column[place] // TILE
        following[i] = first[row, column]
        first[row, column] = i


@compiled_part
def _within(field: FloorColumns, state: FloorChainState, begin: int, box: Any) -> int:
    """Fill `state.members` with the sources from number `begin` on in a box (rows, then columns, ends included)."""
    at, first, following = state.at, state.first, state.following
    top, bottom, left, right = box
    number = 0
    for row in range(max(0, top) // TILE, min(bottom // TILE + 1, first.shape[0])):
        for column in range(max(0, left) // TILE, min(right // TILE + 1, first.shape[1])):
            j = first[row, column]
            while j >= 0:
                if j >= begin and top <= field.row[at[j]] <= bottom and left <= field.column[at[j]] <= right:
                    state.members[number] = j
                    number += 1
                j = following[j]
    return number


@compiled_part
def _redraw(
    field: FloorColumns,
    prior: Whereabouts,
    state: FloorChainState,
    i: int,
    offset: Any,
    rule: SweepRule,
    sums: ChainSums,
) -> None:
    """Draw the place of track i: near where it was or absent if it is there or absent now, else within its tile."""
    at, rest, held = state.at, state.rest, state.held
    old = at[i]
    if old < 0 and held[SOURCES] >= rule.max_sources:
        return
    if old >= 0:
        add_heat(field, rest, old, 1.0)
        held[SOURCES] -= 1
    if old >= 0 and find(prior.core[i], prior.size[i], old) < 0:
        number, total, _ = scan_tile(field, prior, state, i, _corner(field, old, offset), rule.beta)
        _move(field, state, i, picked(state, number, total))
        if rule.share > 0 and sums.used[0] < len(sums.far):
            sums.far[sums.used[0], 0], sums.far[sums.used[0], 1] = i, at[i]
            sums.used[0] += 1
    else:
        number, (total, top) = prior.size[i], scan_core(field, prior, state, i, rule.beta)
        none = math.exp(math.log(prior.absent[i]) - top) if prior.absent[i] > 0 else 0.0
        for k in range(number if rule.share > 0 else 0):
            sums.near[i, k] += rule.share * state.weight[k] / (total + none)
        stays = state.rng.random() * (total + none) >= none
        _move(field, state, i, prior.core[i, pick(state, number, total)] if stays else -1)
    if at[i] >= 0:
        add_heat(field, rest, at[i], -1.0)
        held[SOURCES] += 1


@compiled_part
def _put(field: FloorColumns, state: FloorChainState, tracks: int, place: int) -> None:
    """Add one of the others."""
    held = state.held
    _move(field, state, tracks + held[OTHERS], place)
    add_heat(field, state.rest, place, -1.0)
    held[OTHERS] += 1
    held[SOURCES] += 1


@compiled_part
def _forget(field: FloorColumns, state: FloorChainState, tracks: int, j: int) -> None:
    """Remove one of the others, whose contribution is no longer in the readings left."""
    at, held = state.at, state.held
    held[OTHERS] -= 1
    held[SOURCES] -= 1
    last = tracks + held[OTHERS]
    _move(field, state, j, at[last])
    _move(field, state, last, -1)


@compiled_part
def _renew_tile(
    field: FloorColumns, prior: Whereabouts, state: FloorChainState, corner: Any, rule: SweepRule, sums: ChainSums
) -> None:
    """Draw the others of a tile."""
    at, rest, held, members, tracks = state.at, state.rest, state.held, state.members, len(prior.size)
    box = (corner[0], corner[0] + TILE - 1, corner[1], corner[1] + TILE - 1)
    count, stays = _within(field, state, tracks, box), False
    for which in range(max(count, 1)):
        j = members[which] if count > 0 else -1
        if count > 0:
            add_heat(field, rest, at[j], 1.0)
        number, total, top = scan_tile(field, prior, state, tracks, corner, rule.beta)
        none = math.exp(-top) if count < 2 else 0.0
        if number == 0 or (count == 0 and held[SOURCES] >= rule.max_sources):
            return
        for k in range(number if rule.share > 0 else 0):
            sums.others[state.inside[k]] += rule.share * state.weight[k] / (total + none)
        stays = state.rng.random() * (total + none) >= none
        if stays and count > 0:
            _move(field, state, j, picked(state, number, total))
            add_heat(field, rest, at[j], -1.0)
        elif stays:
            members[0] = tracks + held[OTHERS]
            _put(field, state, tracks, picked(state, number, total))
        elif count > 0:
            _forget(field, state, tracks, j)
    if count > 1 or stays:
        _jump(field, prior, state, max(count, 1), corner, rule)


@compiled_part
def _jump(
    field: FloorColumns, prior: Whereabouts, state: FloorChainState, count: int, corner: Any, rule: SweepRule
) -> None:
    """Add one to the others of a tile that has some, or take one of several away."""
    tracks, held, beta = len(prior.size), state.held, rule.beta
    if state.rng.random() < 0.5:
        number, total, top = scan_tile(field, prior, state, tracks, corner, beta)
        if held[SOURCES] < rule.max_sources and total > 0 and accept(math.log(total / (count + 1)) + top, state.rng):
            _put(field, state, tracks, picked(state, number, total))
    elif count > 1:
        j = state.members[int(state.rng.random() * count)]
        place = state.at[j]
        add_heat(field, state.rest, place, 1.0)
        _, total, top = scan_tile(field, prior, state, tracks, corner, beta)
        if accept(math.log(count / total) - top, state.rng):
            _forget(field, state, tracks, j)
        else:
            add_heat(field, state.rest, place, -1.0)


@compiled_part
def _around(field: FloorColumns, place: int) -> tuple[int, int, int, int]:
    """The box of the cells near a place."""
    row, column = field.row[place], field.column[place]
    return row - NEAR, row + NEAR, column - NEAR, column + NEAR


@compiled_part
def _stepped(field: FloorColumns, place: int, rng: np.random.Generator) -> int:
    """One of the nine cells around a place; -1 without floor."""
    row, column = field.row[place] + int(rng.random() * 3) - 1, field.column[place] + int(rng.random() * 3) - 1
    if not (0 <= row < field.grid.shape[0] and 0 <= column < field.grid.shape[1]):
        return -1
    return int(field.grid[row, column])


@compiled_part
def _pair(field: FloorColumns, prior: Whereabouts, state: FloorChainState, i: int, beta: float) -> None:
    """Move source i and one near it to neighbouring cells at once."""
    at, rest, rng = state.at, state.rest, state.rng
    before = _within(field, state, 0, _around(field, at[i]))
    j = state.members[int(rng.random() * before)]  # i is one of them
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
    far = max(abs(field.row[new_i] - field.row[new_j]), abs(field.column[new_i] - field.column[new_j]))
    after = _within(field, state, 0, _around(field, new_i))
    if far <= NEAR and accept(ratio + math.log(before / after), rng):
        add_heat(field, rest, new_i, -1.0)
        return
    _move(field, state, i, old_i)
    _move(field, state, j, old_j)
    add_heat(field, rest, new_j, 1.0)
    add_heat(field, rest, old_j, -1.0)
    add_heat(field, rest, old_i, -1.0)


@compiled_part
def _hand_over(field: FloorColumns, prior: Whereabouts, state: FloorChainState, i: int, box: Any) -> None:
    """Let track i leave its source to the others, or take one of those near it; `box` has all places near it."""
    at, rng, held, tracks = state.at, state.rng, state.held, len(prior.size)
    absent, place = prior.absent[i], at[i]
    if (
        absent <= 0
        or held[OTHERS] >= len(at) - tracks
        or (place >= 0 and find(prior.core[i], prior.size[i], place) < 0)
    ):
        return
    number, chosen = 0, -1
    for k in range(_within(field, state, tracks, box)):
        near = find(prior.core[i], prior.size[i], at[state.members[k]])
        if near >= 0 and prior.weight[i, near] > 0:
            number += 1
            if rng.random() * number < 1:
                chosen = state.members[k]
    if place >= 0:
        ratio = absent * prior.others[place] / (chance(prior, i, place) * (number + 1))
        if rng.random() < ratio:
            _move(field, state, tracks + held[OTHERS], place)
            _move(field, state, i, -1)
            held[OTHERS] += 1
    elif number > 0 and prior.others[at[chosen]] > 0:
        place = at[chosen]
        if rng.random() < chance(prior, i, place) * number / (absent * prior.others[place]):
            held[OTHERS] -= 1
            _move(field, state, chosen, at[tracks + held[OTHERS]])
            _move(field, state, tracks + held[OTHERS], -1)
            _move(field, state, i, place)


@compiled_part
def _comes_before(field: FloorColumns, place: int, right: int, bottom: int) -> bool:
    """Whether a place is in an earlier band than the one that ends at a column, or in it and above a row."""
    return bool(field.column[place] < right - BAND or (field.column[place] < right and field.row[place] < bottom))


@compiled_part
def _sweep(
    field: FloorColumns, prior: Whereabouts, state: FloorChainState, boxes: IntArray, rule: SweepRule, sums: ChainSums
) -> None:
    tracks, at, rng = len(prior.size), state.at, state.rng
    offset, (height, width), drawn = (int(rng.random() * TILE), int(rng.random() * TILE)), field.grid.shape, 0
    for left in range(0, width + offset[1], BAND):  # a band at a time: what is near is still in the cache
        for row in range(-offset[0], height, TILE):
            while drawn < tracks and _comes_before(field, prior.likeliest[drawn], left + BAND, row + TILE):
                _redraw(field, prior, state, drawn, offset, rule, sums)
                drawn += 1
            for column in range(left - offset[1], min(left - offset[1] + BAND, width), TILE):
                _renew_tile(field, prior, state, (row, column), rule, sums)
    for i in range(tracks + state.held[OTHERS]):
        if at[i] >= 0:
            _pair(field, prior, state, i, rule.beta)
    for i in range(tracks):
        _hand_over(field, prior, state, i, boxes[i])


@compiled_part
def _boxes(field: FloorColumns, prior: Whereabouts) -> IntArray:
    """The box of the places near each track."""
    boxes = np.empty((len(prior.size), 4), dtype=np.int64)
    for i in range(len(boxes)):
        cells = prior.core[i, : prior.size[i]]
        rows, columns = field.row[cells], field.column[cells]
        boxes[i, 0], boxes[i, 1] = rows.min(), rows.max()
        boxes[i, 2], boxes[i, 3] = columns.min(), columns.max()
    return boxes


@compiled
def run_floor_chain(
    field: FloorColumns,
    prior: Whereabouts,
    data: FloatArray,
    max_sources: int,
    lengths: Any,
    rng: np.random.Generator,
    at: IntArray,
    others: int,
    sums: ChainSums,
) -> int:
    """Start from the places `at` of the tracks and of some `others`, and add up what the sweeps draw in `sums`.

    `lengths` is (hot sweeps, sweeps before the first that counts, sweeps that count). Returns the number of others,
    whose places follow those of the tracks in `at`.
    """
    hot, warm, sweeps = lengths
    tracks, size = len(prior.size), max(TILE * TILE, prior.core.shape[1])
    before, least = at.copy(), np.inf
    at[:] = -1
    state = FloorChainState(
        at=at,
        rest=data.copy(),
        held=np.zeros(2, dtype=np.int64),
        rng=rng,
        first=np.full((field.grid.shape[0] // TILE + 1, field.grid.shape[1] // TILE + 1), -1),
        following=np.full(len(at), -1),
        weight=np.empty(size),
        inside=np.empty(size, dtype=np.int64),
        members=np.empty(len(at) + 1, dtype=np.int64),
    )
    boxes = _boxes(field, prior)
    for i in range(tracks):  # what was drawn before this frame may be impossible now
        if before[i] >= 0 and chance(prior, i, before[i]) > 0:
            _move(field, state, i, before[i])
            add_heat(field, state.rest, at[i], -1.0)
            state.held[SOURCES] += 1
    for i in range(tracks, tracks + others):
        if prior.others[before[i]] > 0:
            _put(field, state, tracks, before[i])
    for sweep in range(hot + warm + sweeps):
        beta = HOTTEST ** (1 - sweep / hot) if sweep < hot else 1.0
        rule = SweepRule(max_sources, beta, 1.0 / sweeps if sweep >= hot + warm else 0.0)
        _sweep(field, prior, state, boxes, rule, sums)
        if sweep >= hot + warm:
            sums.totals[sweep - hot - warm] = state.held[SOURCES]
            misfit = (state.rest**2).sum()
            if misfit < least:
                least = misfit
                sums.best[:] = state.rest
    return int(state.held[OTHERS])
