"""Weigh places for a source on a large floor; `floor_chain` says what `field`, `prior` and `state` are."""

import math
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork._compile import compiled_part

TILE = 8  # cells on a side of a tile
BAND = 5 * TILE  # columns that a sweep finishes before it goes on: those of a few rows fit into a cache


@compiled_part
def add_heat(field: Any, rest: FloatArray, place: int, factor: float) -> None:
    """Add the heat of a source at a place to the readings left, times a factor."""
    starts, sensors, values = field[0], field[1], field[2]
    for k in range(starts[place], starts[place + 1]):
        rest[sensors[k]] += factor * values[k]


@compiled_part
def gain(field: Any, rest: FloatArray, place: int) -> float:
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
def chance(prior: Any, i: int, place: int) -> float:
    """The prior probability of a place for track i, or the intensity of the others there."""
    if i >= len(prior[1]):
        return float(prior[8][place])
    k = find(prior[0][i], prior[1][i], place)
    if k >= 0:
        return float(prior[2][i, k])
    k = find(prior[4][i], prior[5][i], prior[7][place])
    return float(prior[6][i, k]) if k >= 0 else 0.0


@compiled_part
def _weighed(weight: FloatArray, number: int, top: float) -> float:
    """Turn the logs of the first weights into weights relative to exp(top); returns their sum."""
    total = 0.0
    for k in range(number):
        weight[k] = math.exp(weight[k] - top)
        total += weight[k]
    return total


@compiled_part
def scan_core(field: Any, prior: Any, state: Any, i: int, beta: float) -> tuple[float, float]:
    """Weigh the places near track i: the sum of their weights over exp(top), and top."""
    (starts, sensors, values, squares), rest, weight = field[:4], state[1], state[2]
    core, logs, number = prior[0][i], prior[9][i], prior[1][i]
    top = math.log(prior[3][i]) if prior[3][i] > 0 else -np.inf
    for k in range(number):
        place, total = core[k], 0.0
        for entry in range(starts[place], starts[place + 1]):  # as `gain`, whose call would cost as much again
            total += values[entry] * rest[sensors[entry]]
        weight[k] = logs[k] + beta * (total - squares[place] / 2)
        top = max(top, weight[k])
    return _weighed(weight, number, top), top


@compiled_part
def scan_tile(field: Any, prior: Any, state: Any, i: int, corner: Any, beta: float) -> tuple[int, float, float]:
    """Weigh the places of a tile for track i, those near it left out, or for one of the others.

    Fills `inside` with the places; returns their number, the sum of their weights over exp(top), and top.
    """
    (starts, sensors, values, squares), grid, others = field[:4], field[4], prior[8]
    rest, weight, inside = state[1], state[2], state[3]
    track = i < len(prior[1])
    number, top = 0, -np.inf if track else 0.0
    for row in range(max(0, corner[0]), min(grid.shape[0], corner[0] + TILE)):
        for column in range(max(0, corner[1]), min(grid.shape[1], corner[1] + TILE)):
            place = grid[row, column]
            if place < 0 or (track and find(prior[0][i], prior[1][i], place) >= 0):
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
def pick(state: Any, number: int, total: float) -> int:
    """The number of one of the entries scanned, in proportion to its weight."""
    left, weight = state[4].random() * total, state[2]
    for k in range(number):
        left -= weight[k]
        if left < 0:
            return k
    return number - 1


@compiled_part
def picked(state: Any, number: int, total: float) -> int:
    """One of the places scanned in a tile."""
    return int(state[3][pick(state, number, total)])
