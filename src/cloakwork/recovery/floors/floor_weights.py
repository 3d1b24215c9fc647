"""What the compiled chain of a large floor takes, and how it weighs places for a source."""

import math
from typing import Any, NamedTuple

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled_part

OTHERS, SOURCES = 0, 1  # indices of `FloorChainState.held`
TILE = 8  # cells on a side of a tile
BAND = 5 * TILE  # columns that a sweep finishes before it goes on: those of a few rows fit into a cache
MAX_NEAR = 400  # places near a track that are weighed one by one
MAX_PATCHES = 1024  # to which a track may walk


class FloorColumns(NamedTuple):
    """The whitened columns by place, their squares, and the cells of the floor."""

    starts: IntArray
    sensors: Any
    values: Any
    squares: FloatArray
    grid: IntArray
    row: IntArray
    column: IntArray


class Whereabouts(NamedTuple):
    """Where the tracks and the others may be before a frame.

    Track i is at one of the `size[i]` sorted places `core[i]` with the probabilities `weight[i]` (`logs` has their
    logarithms, `stayed` the part of those who did not walk), or `absent`, or it walked to one of the `reached[i]`
    sorted `patches[i]`, with the probability `came[i]` for each place there; `patch_of` is the patch of each place.
    `others` is the expected number of other sources at each place. Tracks are in the order of
    `FloorMotion.sweep_order` by their `likeliest` place.
    """

    core: IntArray
    size: IntArray
    weight: FloatArray
    absent: FloatArray
    patches: IntArray
    reached: IntArray
    came: FloatArray
    stayed: FloatArray
    logs: FloatArray
    likeliest: IntArray
    patch_of: IntArray
    others: FloatArray


def no_tracks(likeliest: IntArray, patch_of: IntArray, others: FloatArray) -> Whereabouts:
    """Space for the tracks whose likeliest places are given, to be filled by `predict_tracks`."""
    number = len(likeliest)
    places, patches = (number, MAX_NEAR), (number, MAX_PATCHES)
    return Whereabouts(
        core=np.zeros(places, dtype=np.int64),
        size=np.zeros(number, dtype=np.int64),
        weight=np.zeros(places),
        absent=np.zeros(number),
        patches=np.zeros(patches, dtype=np.int64),
        reached=np.zeros(number, dtype=np.int64),
        came=np.zeros(patches),
        stayed=np.zeros(places),
        logs=np.zeros(places),
        likeliest=likeliest,
        patch_of=patch_of,
        others=others,
    )


class FloorChainState(NamedTuple):
    """The state of a chain.

    `at` holds the places of the tracks, -1 if absent, and then of the others; `rest` the readings less the sources;
    `held` how many others (`OTHERS`) and how many sources (`SOURCES`) there are. `first` and `following` are the
    sources in each tile as linked lists, so that looking around costs the same on any floor. The last three are
    scratch.
    """

    at: IntArray
    rest: FloatArray
    held: IntArray
    rng: np.random.Generator
    first: IntArray
    following: IntArray
    weight: FloatArray
    inside: IntArray
    members: IntArray


class SweepRule(NamedTuple):
    """What holds for one sweep.

    `beta` is the part of the log likelihood that counts, and `share` the part of the sums that the sweep adds.
    """

    max_sources: int
    beta: float
    share: float


class ChainSums(NamedTuple):
    """What the sweeps of a chain add up.

    `near` is the probability of each place near each track, `others` the expected number of the others at each place,
    and the first `used[0]` rows of `far` the (track, place) of each draw elsewhere. `totals` has the number of sources
    after each sweep, and `best` the readings less the sources that fit best.
    """

    near: FloatArray
    others: FloatArray
    far: IntArray
    used: IntArray
    totals: IntArray
    best: FloatArray


@compiled_part
def add_heat(field: FloorColumns, rest: FloatArray, place: int, factor: float) -> None:
    """Add the heat of a source at a place to the readings left, times a factor."""
    starts, sensors, values = field.starts, field.sensors, field.values
    for k in range(starts[place], starts[place + 1]):
        rest[sensors[k]] += factor * values[k]


@compiled_part
def gain(field: FloorColumns, rest: FloatArray, place: int) -> float:
    """The log likelihood that a source at a place adds."""
    starts, sensors, values = field.starts, field.sensors, field.values
    total = 0.0
    for k in range(starts[place], starts[place + 1]):
        total += values[k] * rest[sensors[k]]
    return float(total - field.squares[place] / 2)


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
def chance(prior: Whereabouts, i: int, place: int) -> float:
    """The prior probability of a place for track i, or the intensity of the others there."""
    if i >= len(prior.size):
        return float(prior.others[place])
    k = find(prior.core[i], prior.size[i], place)
    if k >= 0:
        return float(prior.weight[i, k])
    k = find(prior.patches[i], prior.reached[i], prior.patch_of[place])
    return float(prior.came[i, k]) if k >= 0 else 0.0


@compiled_part
def _weighed(weight: FloatArray, number: int, top: float) -> float:
    """Turn the logs of the first weights into weights relative to exp(top); returns their sum."""
    total = 0.0
    for k in range(number):
        weight[k] = math.exp(weight[k] - top)
        total += weight[k]
    return total


@compiled_part
def scan_core(
    field: FloorColumns, prior: Whereabouts, state: FloorChainState, i: int, beta: float
) -> tuple[float, float]:
    """Weigh the places near track i: the sum of their weights over exp(top), and top."""
    starts, sensors, values, squares = field.starts, field.sensors, field.values, field.squares
    rest, weight = state.rest, state.weight
    core, logs, number = prior.core[i], prior.logs[i], prior.size[i]
    top = math.log(prior.absent[i]) if prior.absent[i] > 0 else -np.inf
    for k in range(number):
        place, total = core[k], 0.0
        for entry in range(starts[place], starts[place + 1]):  # as `gain`, whose call would cost as much again
            total += values[entry] * rest[sensors[entry]]
        weight[k] = logs[k] + beta * (total - squares[place] / 2)
        top = max(top, weight[k])
    return _weighed(weight, number, top), top


@compiled_part
def scan_tile(
    field: FloorColumns, prior: Whereabouts, state: FloorChainState, i: int, corner: Any, beta: float
) -> tuple[int, float, float]:
    """Weigh the places of a tile for track i, those near it left out, or for one of the others.

    Fills `inside` with the places; returns their number, the sum of their weights over exp(top), and top.
    """
    starts, sensors, values, squares = field.starts, field.sensors, field.values, field.squares
    grid, others = field.grid, prior.others
    rest, weight, inside = state.rest, state.weight, state.inside
    track = i < len(prior.size)
    number, top = 0, -np.inf if track else 0.0
    for row in range(max(0, corner[0]), min(grid.shape[0], corner[0] + TILE)):
        for column in range(max(0, corner[1]), min(grid.shape[1], corner[1] + TILE)):
            place = grid[row, column]
            if place < 0 or (track and find(prior.core[i], prior.size[i], place) >= 0):
                continue
            probable = chance(prior, i, place) if track else others[place]
            if probable > 0:
                total = 0.0
                for entry in range(starts[place], starts[place + 1]):
                    total += values[entry] * rest[sensors[entry]]
                inside[number] = place
                weight[number] = math.log(probable) + beta * (total - squares[place] / 2)
                top = max(top, weight[number])
                number += 1
    return number, _weighed(weight, number, top), top


@compiled_part
def pick(state: FloorChainState, number: int, total: float) -> int:
    """The number of one of the entries scanned, in proportion to its weight."""
    left, weight = state.rng.random() * total, state.weight
    for k in range(number):
        left -= weight[k]
        if left < 0:
            return k
    return number - 1


@compiled_part
def picked(state: FloorChainState, number: int, total: float) -> int:
    """One of the places scanned in a tile."""
    return int(state.inside[pick(state, number, total)])
