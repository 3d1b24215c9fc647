"""The moves of a reversible-jump chain over the number, places and strengths of point sources (Green, 1995).

The chain samples the posterior for whitened readings: the number of sources uniform from `least` to `most`, places
independent and uniform over the fine candidates, strengths independent and uniform in [low, high], or one shared
strength.

- *local*: one source moves to a nearby candidate, its strength integrated out and redrawn;
- *pair*: two sources move to nearby candidates at once; *exchange*: strength flows from one source to another;
- *anywhere*: one source is redrawn from all places given the others;
- *birth* and *death*: a source drawn from all places given the others appears, or one disappears;
- *split* and *merge*: one source becomes two nearby ones with the same total, or the reverse.
"""

import math
from typing import NamedTuple

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled_part
from cloakwork.recovery.source_strength import draw_strength, gain
from cloakwork.recovery.vectors import add, copy, dot


class Candidates(NamedTuple):
    """The candidates of a lattice, as the chain takes them.

    `coarse` are the columns of the places and `fine` those of the finer candidates around them, one per row, with their
    squared norms. `cell` is the place of each candidate, `members` (places, candidates) are the candidates of each
    place. Those near candidate i are `near[starts[i] : starts[i + 1]]`.
    """

    coarse: FloatArray
    coarse_squares: FloatArray
    fine: FloatArray
    squares: FloatArray
    cell: IntArray
    members: IntArray
    starts: IntArray
    near: IntArray


class ChainState(NamedTuple):
    """The state of a chain: candidates and strengths of the sources, and the readings less what they explain.

    `trial` and `field` are scratch arrays, of readings and of places.
    """

    at: IntArray
    strength: FloatArray
    rest: FloatArray
    trial: FloatArray
    field: FloatArray
    rng: np.random.Generator


@compiled_part
def accept(log_ratio: float, rng: np.random.Generator) -> bool:
    """Whether a move is made."""
    return log_ratio >= 0 or rng.random() < math.exp(log_ratio)


@compiled_part
def below(n: int, rng: np.random.Generator) -> int:
    """A whole number from 0 to n - 1."""
    return int(rng.random() * n)


@compiled_part
def other(i: int, k: int, rng: np.random.Generator) -> int:
    """One of k other than i."""
    return (i + 1 + below(k - 1, rng)) % k


@compiled_part
def _neighbour(lattice: Candidates, at: int, rng: np.random.Generator) -> int:
    first, last = lattice.starts[at], lattice.starts[at + 1]
    return int(lattice.near[first + below(last - first, rng)])


@compiled_part
def _crowd(lattice: Candidates, at: int) -> float:
    return float(lattice.starts[at + 1] - lattice.starts[at])


@compiled_part
def _near(lattice: Candidates, at: int, other: int) -> bool:
    near = False
    for k in range(lattice.starts[at], lattice.starts[at + 1]):
        near |= lattice.near[k] == other
    return near


@compiled_part
def _score(lattice: Candidates, rest: FloatArray, at: int, low: float, high: float) -> float:
    return gain(dot(rest, lattice.fine[at]), lattice.squares[at], low, high)


@compiled_part
def _scan(lattice: Candidates, state: ChainState, low: float, high: float) -> float:
    """Fill `field` with the gain of a source at each place; returns the log of the average of exp(field)."""
    coarse, squares = lattice.coarse, lattice.coarse_squares
    rest, field = state.rest, state.field
    top = -np.inf
    for place in range(len(coarse)):
        field[place] = gain(dot(rest, coarse[place]), squares[place], low, high)
        top = max(top, field[place])
    total = 0.0
    for place in range(len(coarse)):
        total += math.exp(field[place] - top)
    return top + math.log(total / len(coarse))


@compiled_part
def _pick(lattice: Candidates, field: FloatArray, average: float, rng: np.random.Generator) -> int:
    """A candidate of a place drawn in proportion to exp(field)."""
    left = rng.random() * len(field)
    place = 0
    for place in range(len(field)):
        left -= math.exp(field[place] - average)
        if left < 0:
            break
    members = lattice.members
    return int(members[place, below(members.shape[1], rng)])


@compiled_part
def _excess(lattice: Candidates, state: ChainState, at: int, low: float, high: float) -> float:
    """The gain of a candidate beyond that of its place."""
    return float(_score(lattice, state.rest, at, low, high) - state.field[lattice.cell[at]])


@compiled_part
def _take(lattice: Candidates, state: ChainState, i: int) -> None:
    add(state.rest, lattice.fine[state.at[i]], state.strength[i])


@compiled_part
def _put(lattice: Candidates, state: ChainState, i: int, at: int, low: float, high: float) -> None:
    """Put source i, removed before, at a candidate, with a strength drawn given all others."""
    column = lattice.fine[at]
    state.at[i] = at
    state.strength[i] = (
        low if low == high else draw_strength(dot(state.rest, column), lattice.squares[at], low, high, state.rng)
    )
    add(state.rest, column, -state.strength[i])


@compiled_part
def local(lattice: Candidates, state: ChainState, i: int, low: float, high: float) -> None:
    """Move one source to a nearby candidate, its strength integrated out and redrawn."""
    old = state.at[i]
    new = _neighbour(lattice, old, state.rng)
    _take(lattice, state, i)
    ratio = _score(lattice, state.rest, new, low, high) - _score(lattice, state.rest, old, low, high)
    if _crowd(lattice, old) != _crowd(lattice, new):
        ratio += math.log(_crowd(lattice, old) / _crowd(lattice, new))
    _put(lattice, state, i, new if accept(ratio, state.rng) else old, low, high)


@compiled_part
def shift(lattice: Candidates, state: ChainState, i: int) -> None:
    """Move one source to a nearby candidate with the same strength."""
    fine, rest = lattice.fine, state.rest
    old, strength = state.at[i], state.strength[i]
    new = _neighbour(lattice, old, state.rng)
    ratio = 0.0
    for t in range(len(rest)):
        change = strength * (fine[old, t] - fine[new, t])
        ratio -= change * (rest[t] + change / 2)
    if _crowd(lattice, old) != _crowd(lattice, new):
        ratio += math.log(_crowd(lattice, old) / _crowd(lattice, new))
    if accept(ratio, state.rng):
        state.at[i] = new
        for t in range(len(rest)):
            rest[t] += strength * (fine[old, t] - fine[new, t])


@compiled_part
def anywhere(lattice: Candidates, state: ChainState, i: int, low: float, high: float) -> None:
    """Redraw one source from all places given the others."""
    old = state.at[i]
    _take(lattice, state, i)
    average = _scan(lattice, state, low, high)
    new = _pick(lattice, state.field, average, state.rng)
    ratio = _excess(lattice, state, new, low, high) - _excess(lattice, state, old, low, high)
    _put(lattice, state, i, new if accept(ratio, state.rng) else old, low, high)


@compiled_part
def pair(lattice: Candidates, state: ChainState, i: int, j: int) -> None:
    """Move two sources to nearby candidates at once."""
    at, strength, rest, trial = state.at, state.strength, state.rest, state.trial
    new_i, new_j = _neighbour(lattice, at[i], state.rng), _neighbour(lattice, at[j], state.rng)
    copy(rest, trial)
    add(trial, lattice.fine[at[i]], strength[i])
    add(trial, lattice.fine[at[j]], strength[j])
    add(trial, lattice.fine[new_i], -strength[i])
    add(trial, lattice.fine[new_j], -strength[j])
    ratio = (dot(rest, rest) - dot(trial, trial)) / 2
    ratio += math.log(_crowd(lattice, at[i]) / _crowd(lattice, new_i) * _crowd(lattice, at[j]) / _crowd(lattice, new_j))
    if accept(ratio, state.rng):
        at[i], at[j] = new_i, new_j
        copy(trial, rest)


@compiled_part
def exchange(lattice: Candidates, state: ChainState, i: int, j: int, low: float, high: float) -> None:
    """Move strength from one source to another."""
    at, strength, rest, trial = state.at, state.strength, state.rest, state.trial
    least, most = max(low - strength[i], strength[j] - high), min(high - strength[i], strength[j] - low)
    if most <= least:
        return
    copy(lattice.fine[at[i]], trial)
    add(trial, lattice.fine[at[j]], -1.0)
    moved = draw_strength(dot(rest, trial), dot(trial, trial), least, most, state.rng)
    strength[i] += moved
    strength[j] -= moved
    add(rest, trial, -moved)


@compiled_part
def common(lattice: Candidates, state: ChainState, k: int, low: float, high: float) -> None:
    """Redraw the shared strength of all k sources."""
    strength, rest, trial = state.strength, state.rest, state.trial
    for t in range(len(trial)):
        trial[t] = 0.0
    for i in range(k):
        add(trial, lattice.fine[state.at[i]], 1.0)
    add(rest, trial, strength[0])
    drawn = draw_strength(dot(rest, trial), dot(trial, trial), low, high, state.rng)
    for i in range(k):
        strength[i] = drawn
    add(rest, trial, -drawn)


@compiled_part
def _rescale(lattice: Candidates, state: ChainState, k: int, factor: float) -> float:
    """Multiply the strengths of the first k sources; returns the change of the log likelihood."""
    rest = state.rest
    before = dot(rest, rest)
    for i in range(k):
        add(rest, lattice.fine[state.at[i]], state.strength[i] * (1 - factor))
        state.strength[i] *= factor
    return (before - dot(rest, rest)) / 2


@compiled_part
def birth(lattice: Candidates, state: ChainState, k: int, low: float, high: float, shared: bool) -> int:
    """Add a source; a shared strength s of the k sources becomes s k / (k + 1)."""
    change = 0.0
    if shared and k > 0:
        change = _rescale(lattice, state, k, k / (k + 1.0)) + math.log(k / (k + 1.0))
        low = high = state.strength[0]
    average = _scan(lattice, state, low, high)
    new = _pick(lattice, state.field, average, state.rng)
    if accept(change + average + _excess(lattice, state, new, low, high), state.rng):
        _put(lattice, state, k, new, low, high)
        return k + 1
    if shared and k > 0:
        _rescale(lattice, state, k, (k + 1.0) / k)
    return k


@compiled_part
def death(lattice: Candidates, state: ChainState, k: int, low: float, high: float, shared: bool) -> int:
    """Remove a source chosen uniformly: the reverse of a birth."""
    at, strength = state.at, state.strength
    i, last = below(k, state.rng), k - 1
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
    if accept(-ratio, state.rng):
        return last
    if shared and last > 0:
        _rescale(lattice, state, last, last / float(k))
    add(state.rest, lattice.fine[at[last]], -common)
    return k


@compiled_part
def split(lattice: Candidates, state: ChainState, k: int, low: float, high: float) -> int:
    """Split one source into two nearby ones with the same total; returns the new number."""
    at, strength, rest, trial = state.at, state.strength, state.rest, state.trial
    i = below(k, state.rng)
    old, total = at[i], strength[i]
    first, second = _neighbour(lattice, old, state.rng), _neighbour(lattice, old, state.rng)
    part = state.rng.random() * total
    if not (low <= part <= high and low <= total - part <= high):
        return k
    copy(rest, trial)
    add(trial, lattice.fine[old], total)
    add(trial, lattice.fine[first], -part)
    add(trial, lattice.fine[second], part - total)
    ratio = (dot(rest, rest) - dot(trial, trial)) / 2 + math.log(total / (high - low) / len(lattice.fine))
    if accept(ratio + math.log(_crowd(lattice, old) / _crowd(lattice, first) * _crowd(lattice, old)), state.rng):
        at[i], at[k], strength[i], strength[k] = first, second, part, total - part
        copy(trial, rest)
        return k + 1
    return k


@compiled_part
def merge(lattice: Candidates, state: ChainState, k: int, low: float, high: float) -> int:
    """Merge two sources: the reverse of a split."""
    at, strength, rest, trial = state.at, state.strength, state.rest, state.trial
    i = below(k, state.rng)
    j = other(i, k, state.rng)
    total = strength[i] + strength[j]
    new = _neighbour(lattice, at[i], state.rng)
    if total > high or not _near(lattice, new, at[j]):
        return k
    copy(rest, trial)
    add(trial, lattice.fine[at[i]], strength[i])
    add(trial, lattice.fine[at[j]], strength[j])
    add(trial, lattice.fine[new], -total)
    ratio = (dot(rest, rest) - dot(trial, trial)) / 2 - math.log(total / (high - low) / len(lattice.fine))
    if accept(ratio - math.log(_crowd(lattice, new) / _crowd(lattice, at[i]) * _crowd(lattice, new)), state.rng):
        at[i], strength[i] = new, total
        at[j], strength[j] = at[k - 1], strength[k - 1]
        copy(trial, rest)
        return k - 1
    return k
