"""A reversible-jump chain over the number, places and strengths of point sources (Green, 1995).

Its law is the posterior for whitened readings: the number of sources uniform from 0 to `most`, places independent and
uniform over the fine candidates, strengths independent and uniform in [low, high], or one common strength for all.

- *local*: one source goes to a candidate nearby, its strength integrated out and drawn again;
- *pair*: two sources go to candidates nearby at once; *exchange*: strength flows from one source to another;
- *anywhere*: one source is drawn anew from all places given the others;
- *birth* and *death*: a source drawn from all places given the others appears, or one disappears;
- *split* and *merge*: one source becomes two nearby with the same total, or the reverse.

`lattice` is (coarse, coarse_squares, fine, squares, cell, members, starts, near): the columns of the places and of the
finer candidates around them, one a row, and their squares; the place of each candidate, the candidates of each
place; and for each candidate the list of those nearby. `state` is (at, strength, rest, trial, field, rng): the
candidates and strengths of the sources, the readings less what they explain, two scratch arrays, and random numbers.
"""

import math
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery.strength import draw_strength, gain


@compiled_part
def _dot(a: FloatArray, b: FloatArray) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled_part
def _add(rest: FloatArray, column: FloatArray, strength: float) -> None:
    for i in range(len(rest)):
        rest[i] += strength * column[i]


@compiled_part
def _copy(one: FloatArray, into: FloatArray) -> None:
    for i in range(len(one)):
        into[i] = one[i]


@compiled_part
def _accept(log_ratio: float, rng: np.random.Generator) -> bool:
    return log_ratio >= 0 or rng.random() < math.exp(log_ratio)


@compiled_part
def _below(n: int, rng: np.random.Generator) -> int:
    """A whole number from 0 to n - 1."""
    return int(rng.random() * n)


@compiled_part
def _other(i: int, k: int, rng: np.random.Generator) -> int:
    """Another one of k than i."""
    return (i + 1 + _below(k - 1, rng)) % k


@compiled_part
def _neighbour(lattice: Any, at: int, rng: np.random.Generator) -> int:
    first, last = lattice[6][at], lattice[6][at + 1]
    return int(lattice[7][first + _below(last - first, rng)])


@compiled_part
def _crowd(lattice: Any, at: int) -> float:
    return float(lattice[6][at + 1] - lattice[6][at])


@compiled_part
def _near(lattice: Any, at: int, other: int) -> bool:
    found = False
    for k in range(lattice[6][at], lattice[6][at + 1]):
        found |= lattice[7][k] == other
    return found


@compiled_part
def _score(lattice: Any, rest: FloatArray, at: int, low: float, high: float) -> float:
    return gain(_dot(rest, lattice[2][at]), lattice[3][at], low, high)


@compiled_part
def _scan(lattice: Any, state: Any, low: float, high: float) -> float:
    """Fill `field` with what a source at each place would explain; returns the log of the average of exp(field)."""
    coarse, squares = lattice[0], lattice[1]
    rest, field = state[2], state[4]
    top = -np.inf
    for place in range(len(coarse)):
        field[place] = gain(_dot(rest, coarse[place]), squares[place], low, high)
        top = max(top, field[place])
    total = 0.0
    for place in range(len(coarse)):
        total += math.exp(field[place] - top)
    return top + math.log(total / len(coarse))


@compiled_part
def _pick(lattice: Any, field: FloatArray, average: float, rng: np.random.Generator) -> int:
    """A candidate of a place drawn with probability proportional to exp(field)."""
    left = rng.random() * len(field)
    place = 0
    for place in range(len(field)):
        left -= math.exp(field[place] - average)
        if left < 0:
            break
    members = lattice[5]
    return int(members[place, _below(members.shape[1], rng)])


@compiled_part
def _excess(lattice: Any, state: Any, at: int, low: float, high: float) -> float:
    """How much better a candidate explains the rest than its place does."""
    return float(_score(lattice, state[2], at, low, high) - state[4][lattice[4][at]])


@compiled_part
def _take(lattice: Any, state: Any, i: int) -> None:
    _add(state[2], lattice[2][state[0][i]], state[1][i])


@compiled_part
def _put(lattice: Any, state: Any, i: int, at: int, low: float, high: float) -> None:
    """Put source i, taken out before, at a candidate, with a strength drawn given all others."""
    column = lattice[2][at]
    state[0][i] = at
    state[1][i] = low if low == high else draw_strength(_dot(state[2], column), lattice[3][at], low, high, state[5])
    _add(state[2], column, -state[1][i])


@compiled_part
def _local(lattice: Any, state: Any, i: int, low: float, high: float) -> None:
    old = state[0][i]
    new = _neighbour(lattice, old, state[5])
    _take(lattice, state, i)
    ratio = _score(lattice, state[2], new, low, high) - _score(lattice, state[2], old, low, high)
    if _crowd(lattice, old) != _crowd(lattice, new):
        ratio += math.log(_crowd(lattice, old) / _crowd(lattice, new))
    _put(lattice, state, i, new if _accept(ratio, state[5]) else old, low, high)


@compiled_part
def _shift(lattice: Any, state: Any, i: int) -> None:
    """A local move of a source that keeps its strength."""
    fine, rest = lattice[2], state[2]
    old, strength = state[0][i], state[1][i]
    new = _neighbour(lattice, old, state[5])
    ratio = 0.0
    for t in range(len(rest)):
        change = strength * (fine[old, t] - fine[new, t])
        ratio -= change * (rest[t] + change / 2)
    if _crowd(lattice, old) != _crowd(lattice, new):
        ratio += math.log(_crowd(lattice, old) / _crowd(lattice, new))
    if _accept(ratio, state[5]):
        state[0][i] = new
        for t in range(len(rest)):
            rest[t] += strength * (fine[old, t] - fine[new, t])


@compiled_part
def _anywhere(lattice: Any, state: Any, i: int, low: float, high: float) -> None:
    old = state[0][i]
    _take(lattice, state, i)
    average = _scan(lattice, state, low, high)
    new = _pick(lattice, state[4], average, state[5])
    ratio = _excess(lattice, state, new, low, high) - _excess(lattice, state, old, low, high)
    _put(lattice, state, i, new if _accept(ratio, state[5]) else old, low, high)


@compiled_part
def _pair(lattice: Any, state: Any, i: int, j: int) -> None:
    at, strength, rest, trial = state[0], state[1], state[2], state[3]
    new_i, new_j = _neighbour(lattice, at[i], state[5]), _neighbour(lattice, at[j], state[5])
    _copy(rest, trial)
    _add(trial, lattice[2][at[i]], strength[i])
    _add(trial, lattice[2][at[j]], strength[j])
    _add(trial, lattice[2][new_i], -strength[i])
    _add(trial, lattice[2][new_j], -strength[j])
    ratio = (_dot(rest, rest) - _dot(trial, trial)) / 2
    ratio += math.log(_crowd(lattice, at[i]) / _crowd(lattice, new_i) * _crowd(lattice, at[j]) / _crowd(lattice, new_j))
    if _accept(ratio, state[5]):
        at[i], at[j] = new_i, new_j
        _copy(trial, rest)


@compiled_part
def _exchange(lattice: Any, state: Any, i: int, j: int, low: float, high: float) -> None:
    at, strength, rest, trial = state[0], state[1], state[2], state[3]
    least, most = max(low - strength[i], strength[j] - high), min(high - strength[i], strength[j] - low)
    if most <= least:
        return
    _copy(lattice[2][at[i]], trial)
    _add(trial, lattice[2][at[j]], -1.0)
    moved = draw_strength(_dot(rest, trial), _dot(trial, trial), least, most, state[5])
    strength[i] += moved
    strength[j] -= moved
    _add(rest, trial, -moved)


@compiled_part
def _common(lattice: Any, state: Any, k: int, low: float, high: float) -> None:
    """Draw the one strength of all k sources anew."""
    strength, rest, trial = state[1], state[2], state[3]
    for t in range(len(trial)):
        trial[t] = 0.0
    for i in range(k):
        _add(trial, lattice[2][state[0][i]], 1.0)
    _add(rest, trial, strength[0])
    drawn = draw_strength(_dot(rest, trial), _dot(trial, trial), low, high, state[5])
    for i in range(k):
        strength[i] = drawn
    _add(rest, trial, -drawn)


@compiled_part
def _rescale(lattice: Any, state: Any, k: int, factor: float) -> float:
    """Multiply the strengths of the first k sources; returns what it does to the log likelihood."""
    rest = state[2]
    before = _dot(rest, rest)
    for i in range(k):
        _add(rest, lattice[2][state[0][i]], state[1][i] * (1 - factor))
        state[1][i] *= factor
    return (before - _dot(rest, rest)) / 2


@compiled_part
def _birth(lattice: Any, state: Any, k: int, low: float, high: float, shared: bool) -> int:
    """With one strength s for all, the k sources that there are give way to s k / (k + 1)."""
    change = 0.0
    if shared and k > 0:
        change = _rescale(lattice, state, k, k / (k + 1.0)) + math.log(k / (k + 1.0))
        low = high = state[1][0]
    average = _scan(lattice, state, low, high)
    new = _pick(lattice, state[4], average, state[5])
    if _accept(change + average + _excess(lattice, state, new, low, high), state[5]):
        _put(lattice, state, k, new, low, high)
        return k + 1
    if shared and k > 0:
        _rescale(lattice, state, k, (k + 1.0) / k)
    return k


@compiled_part
def _death(lattice: Any, state: Any, k: int, low: float, high: float, shared: bool) -> int:
    """The reverse of a birth, for a source chosen evenly."""
    at, strength = state[0], state[1]
    i, last = _below(k, state[5]), k - 1
    at[i], at[last] = at[last], at[i]
    strength[i], strength[last] = strength[last], strength[i]
    common = strength[last]
    if shared and last > 0:
        if common * k / last > high:
            return k
        low = high = common
    _take(lattice, state, last)
    ratio = _scan(lattice, state, low, high) + _excess(lattice, state, at[last], low, high)
    if shared and last > 0:
        ratio += math.log(last / float(k)) - _rescale(lattice, state, last, float(k) / last)
    if _accept(-ratio, state[5]):
        return last
    if shared and last > 0:
        _rescale(lattice, state, last, last / float(k))
    _add(state[2], lattice[2][at[last]], -common)
    return k


@compiled_part
def _split(lattice: Any, state: Any, k: int, low: float, high: float) -> int:
    at, strength, rest, trial = state[0], state[1], state[2], state[3]
    i = _below(k, state[5])
    old, total = at[i], strength[i]
    one, two = _neighbour(lattice, old, state[5]), _neighbour(lattice, old, state[5])
    part = state[5].random() * total
    if not (low <= part <= high and low <= total - part <= high):
        return k
    _copy(rest, trial)
    _add(trial, lattice[2][old], total)
    _add(trial, lattice[2][one], -part)
    _add(trial, lattice[2][two], part - total)
    ratio = (_dot(rest, rest) - _dot(trial, trial)) / 2 + math.log(total / (high - low) / len(lattice[2]))
    if _accept(ratio + math.log(_crowd(lattice, old) / _crowd(lattice, one) * _crowd(lattice, old)), state[5]):
        at[i], at[k], strength[i], strength[k] = one, two, part, total - part
        _copy(trial, rest)
        return k + 1
    return k


@compiled_part
def _merge(lattice: Any, state: Any, k: int, low: float, high: float) -> int:
    at, strength, rest, trial = state[0], state[1], state[2], state[3]
    i = _below(k, state[5])
    j = _other(i, k, state[5])
    total = strength[i] + strength[j]
    new = _neighbour(lattice, at[i], state[5])
    if total > high or not _near(lattice, new, at[j]):
        return k
    _copy(rest, trial)
    _add(trial, lattice[2][at[i]], strength[i])
    _add(trial, lattice[2][at[j]], strength[j])
    _add(trial, lattice[2][new], -total)
    ratio = (_dot(rest, rest) - _dot(trial, trial)) / 2 - math.log(total / (high - low) / len(lattice[2]))
    if _accept(ratio - math.log(_crowd(lattice, new) / _crowd(lattice, at[i]) * _crowd(lattice, new)), state[5]):
        at[i], strength[i] = new, total
        at[j], strength[j] = at[k - 1], strength[k - 1]
        _copy(trial, rest)
        return k - 1
    return k


@compiled_part
def _move(lattice: Any, state: Any, k: int, low: float, high: float, shared: bool) -> None:
    """Moves that leave the number of sources as it is."""
    one_low, one_high = low, high
    if shared and k > 1:
        one_low = one_high = state[1][0]
    for i in range(k):
        if one_low == one_high:
            _shift(lattice, state, i)
        else:
            _local(lattice, state, i, one_low, one_high)
        if k > 1:
            j = _other(i, k, state[5])
            _pair(lattice, state, i, j)
            if low < high and not shared:
                _exchange(lattice, state, i, j, low, high)
    if k > 0:
        _anywhere(lattice, state, _below(k, state[5]), one_low, one_high)
        if shared:
            _common(lattice, state, k, low, high)


@compiled_part
def _jump(lattice: Any, state: Any, k: int, least: int, low: float, high: float, shared: bool) -> int:
    """Moves to one source more or less; of a pair of opposite moves each is tried half the time."""
    most, up = len(state[0]), state[5].random() < 0.5
    if up and k < most:
        k = _birth(lattice, state, k, low, high, shared)
    elif not up and k > least:
        k = _death(lattice, state, k, low, high, shared)
    if low < high and not shared:
        up = state[5].random() < 0.5
        if up and 0 < k < most:
            k = _split(lattice, state, k, low, high)
        elif not up and k > max(least, 1):
            k = _merge(lattice, state, k, low, high)
    return k


@compiled
def run_chain(
    lattice: Any,
    data: FloatArray,
    law: tuple[float, float, bool],
    least: int,
    lengths: tuple[int, int],
    rng: np.random.Generator,
    at: IntArray,
    strength: FloatArray,
    k: int,
    drawn: tuple[IntArray, FloatArray, IntArray, FloatArray],
) -> int:
    """Start from k >= `least` sources (`at`, `strength`), and write a draw to `drawn` every few sweeps.

    `law` is (low, high, shared), `lengths` (sweeps before the first draw, sweeps for each draw). `drawn` is
    (candidates, strengths, counts, squared misfits), one row a draw. Returns the final k.
    """
    low, high, shared = law
    before, between = lengths
    state = (at, strength, data.copy(), np.empty(len(data)), np.empty(len(lattice[0])), rng)
    for i in range(k):
        _add(state[2], lattice[2][at[i]], -strength[i])
    for row in range(len(drawn[2])):
        for _ in range(between if row else before):
            _move(lattice, state, k, low, high, shared)
            k = _jump(lattice, state, k, least, low, high, shared)
        for i in range(len(at)):
            drawn[0][row, i] = at[i]
            drawn[1][row, i] = strength[i]
        drawn[2][row] = k
        drawn[3][row] = _dot(state[2], state[2])
    return k


@compiled
def settle(
    lattice: Any,
    data: FloatArray,
    strength: float,
    sweeps: int,
    rng: np.random.Generator,
    drawn: tuple[IntArray, FloatArray, IntArray, FloatArray],
) -> None:
    """Turn draws of places into draws of candidates: one around each place, then local moves."""
    members = lattice[5]
    nothing = np.empty(0)
    for row in range(len(drawn[2])):
        state = (drawn[0][row], drawn[1][row], data.copy(), nothing, nothing, rng)
        k = drawn[2][row]
        for i in range(k):
            state[0][i] = members[state[0][i], _below(members.shape[1], rng)]
            state[1][i] = strength
            _add(state[2], lattice[2][state[0][i]], -strength)
        for _ in range(sweeps):
            for i in range(k):
                _shift(lattice, state, i)
        drawn[3][row] = _dot(state[2], state[2])
