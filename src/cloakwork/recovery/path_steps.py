"""Inner loops of drawing paths: laws over the states of a source from frame to frame, for several chains at once.

The states of a source are: sits at each of n places, walks at each, absent. A law is an array (chains, 2n + 1). `step`
is the tuple of `Transitions.step`: (patch, reach, flow, leave, arrive, begin, settle, appear), where `reach` is the
weight of a walk from patch to patch, and `flow` the probability to stay over the total weight of all walks, for each
place.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery.strength import draw_strength

Beliefs = NDArray[np.float32]
LEAST = 1e-12  # a share of a law this small does not walk
TINY = 1e-30  # a state this unlikely is impossible
LOWEST = -80.0  # exp of less is 0 in single precision


@compiled_part
def _spread(reach: Beliefs, weights: Beliefs, moved: Beliefs) -> None:
    """Walk from patches with these weights to all others."""
    total = np.float32(0.0)
    for patch in range(len(weights)):
        moved[patch] = 0.0
        total += weights[patch]
    for patch in range(len(weights)):
        weight = weights[patch]
        if weight > LEAST * total:
            row = reach[patch]
            for end in range(len(moved)):
                moved[end] += weight * row[end]


@compiled
def predict(step: Any, law: Beliefs, after: Beliefs) -> None:
    """Fill `after` with the law after an interval."""
    patch, reach, flow, leave, arrive, begin, settle, appear = step
    n = len(flow)
    weights, moved = np.empty(len(reach), dtype=np.float32), np.empty(len(reach), dtype=np.float32)
    for row in range(len(law)):
        weights[:] = 0.0
        gone, absent = 0.0, law[row, 2 * n]
        for i in range(n):
            sits, walks = law[row, i], law[row, n + i]
            weights[patch[i]] += (begin * sits + walks) * flow[i]
            gone += (sits + walks) * leave[i]
        _spread(reach, weights, moved)
        for i in range(n):
            here = moved[patch[i]] + absent * appear * arrive[i]
            after[row, i] = law[row, i] * (1 - begin) * (1 - leave[i]) + settle * here
            after[row, n + i] = (1 - settle) * here
        after[row, 2 * n] = absent * (1 - appear) + gone


@compiled
def back(step: Any, values: Beliefs, before: Beliefs) -> None:
    """Fill `before` with the expected value from each state, given the value of each state after the interval."""
    patch, reach, flow, leave, arrive, begin, settle, appear = step
    n = len(flow)
    weights, moved = np.empty(len(reach), dtype=np.float32), np.empty(len(reach), dtype=np.float32)
    for row in range(len(values)):
        weights[:] = 0.0
        came, absent = 0.0, values[row, 2 * n]
        for i in range(n):
            ended = settle * values[row, i] + (1 - settle) * values[row, n + i]
            weights[patch[i]] += ended
            came += ended * arrive[i]
        _spread(reach, weights, moved)
        for i in range(n):
            walked, gone = moved[patch[i]] * flow[i], leave[i] * absent
            before[row, i] = (1 - begin) * (1 - leave[i]) * values[row, i] + begin * walked + gone
            before[row, n + i] = walked + gone
        before[row, 2 * n] = (1 - appear) * absent + appear * came


@compiled_part
def _chance(step: Any, origin: int, end: int) -> float:
    """The probability to come from one state to another."""
    patch, reach, flow, leave, arrive, begin, settle, appear = step
    n = len(flow)
    if origin == 2 * n:
        if end == 2 * n:
            return float(1 - appear)
        return float(appear * arrive[end % n] * (settle if end < n else 1 - settle))
    place = origin % n
    if end == 2 * n:
        return float(leave[place])
    walked = (settle if end < n else 1 - settle) * reach[patch[place], patch[end % n]] * flow[place]
    if origin >= n:
        return float(walked)
    stayed = (1 - begin) * (1 - leave[place]) if origin == end else 0.0
    return float(begin * walked + stayed)


@compiled
def chances_between(step: Any, origins: IntArray, ends: IntArray, result: FloatArray) -> None:
    """Fill `result` with the probability to come from each origin to the end beside it."""
    for row in range(len(origins)):
        result[row] = _chance(step, origins[row], ends[row])


@compiled
def exchange(step: Any, states: IntArray, tracks: IntArray, t: int, aims: FloatArray) -> None:
    """Exchange the paths of two sources from frame t on, as likely as their steps to that frame allow, for all pairs.

    `states` and `tracks` (chains, slots, frames) are exchanged together; `aims` (chains, pairs) are random numbers.
    """
    chains, slots, frames = states.shape
    absent = 2 * len(step[2])
    for row in range(chains):
        pair = 0
        for a in range(slots):
            for b in range(a):
                origins, ends = (states[row, a, t - 1], states[row, b, t - 1]), (states[row, a, t], states[row, b, t])
                aim = aims[row, pair]
                pair += 1
                if origins[0] == origins[1] == absent or ends[0] == ends[1] == absent:
                    continue
                crossed = _chance(step, origins[0], ends[1]) * _chance(step, origins[1], ends[0])
                kept = _chance(step, origins[0], ends[0]) * _chance(step, origins[1], ends[1])
                if aim * (kept + crossed) < crossed:
                    for later in range(t, frames):
                        states[row, a, later], states[row, b, later] = states[row, b, later], states[row, a, later]
                        tracks[row, a, later], tracks[row, b, later] = tracks[row, b, later], tracks[row, a, later]


@compiled_part
def _pick(weights: FloatArray, aim: float) -> int:
    """A state drawn in proportion to its weight; `aim` is a uniform random number."""
    total = 0.0
    for state in range(len(weights)):
        total += weights[state]
    left, last = aim * total, 0
    for state in range(len(weights)):
        if weights[state] > 0:
            last = state
            left -= weights[state]
            if left < 0:
                break
    return last


@compiled
def draw(law: Beliefs, aims: FloatArray, drawn: IntArray) -> None:
    """Draw a state from the law of each chain."""
    weights = np.empty(law.shape[1])
    for row in range(len(law)):
        weights[:] = law[row]
        drawn[row] = _pick(weights, aims[row])


@compiled
def draw_before(step: Any, law: Beliefs, ends: IntArray, aims: FloatArray, drawn: IntArray) -> None:
    """Draw the state before an interval in each chain, given its law and the state after."""
    patch, reach, flow, leave, _, begin, settle, _ = step
    n = len(flow)
    weights = np.empty(2 * n + 1)
    for row in range(len(law)):
        end = ends[row]
        if end < 2 * n:
            near = reach[patch[end % n]]
            way = settle if end < n else 1 - settle
            for i in range(n):
                walked = way * near[patch[i]] * flow[i]
                weights[i] = law[row, i] * begin * walked
                weights[n + i] = law[row, n + i] * walked
            if end < n:
                weights[end] += law[row, end] * (1 - begin) * (1 - leave[end])
        else:
            for i in range(n):
                weights[i] = law[row, i] * leave[i]
                weights[n + i] = law[row, n + i] * leave[i]
        weights[2 * n] = law[row, 2 * n] * _chance(step, 2 * n, end)
        drawn[row] = _pick(weights, aims[row])


@compiled
def weigh(
    law: Beliefs,
    seen: Beliefs,
    squares: Beliefs,
    overlap: Beliefs,
    states: IntArray,
    strengths: FloatArray,
    slot: int,
    after: Beliefs,
) -> None:
    """Fill `after` with the law of one source after the readings of a frame, given the others.

    `seen` (chains, n), or (1, n) if it is the same for all, is the product of the readings with the column of each
    place, `overlap` (n, n) that of two columns, and `squares` (n,) its diagonal.
    `states` (chains, slots) are those of all sources, and `strengths` (chains, slots) their strengths.
    """
    n = seen.shape[1]
    gain = np.empty(n, dtype=np.float32)
    for row in range(len(law)):
        own, product = np.float32(strengths[row, slot]), seen[row % len(seen)]
        for i in range(n):
            gain[i] = own * (product[i] - own / 2 * squares[i])
        for other in range(states.shape[1]):
            state = states[row, other]
            if other != slot and state < 2 * n:
                lost, column = own * np.float32(strengths[row, other]), overlap[state % n]
                for i in range(n):
                    gain[i] -= lost * column[i]
        absent = law[row, 2 * n]
        top = np.float32(0.0 if absent > TINY else -np.inf)
        for i in range(n):
            if gain[i] > top and law[row, i] + law[row, n + i] > TINY:
                top = gain[i]
        after[row, 2 * n] = absent * math.exp(-top) if absent > TINY else 0.0
        total = float(after[row, 2 * n])
        for i in range(n):
            factor = np.float32(math.exp(gain[i] - top) if LOWEST < gain[i] - top <= 0 else 0.0)
            after[row, i] = law[row, i] * factor
            after[row, n + i] = law[row, n + i] * factor
            total += after[row, i] + after[row, n + i]
        for state in range(2 * n + 1):
            after[row, state] /= total


@compiled
def add_facts(frame: Any, states: IntArray, strengths: FloatArray, slot: int, facts: FloatArray) -> None:
    """Add what a frame (seen, overlap) says about the strength of one source, or of all if `slot` is negative.

    Given the paths, the log likelihood of a strength s is s c - s^2 g / 2 with `facts` (chains, 2) the sums of c and g.
    """
    seen, overlap = frame
    n = seen.shape[1]
    for row in range(len(states)):
        for source in range(states.shape[1]):
            if states[row, source] == 2 * n or (source != slot and slot >= 0):
                continue
            at = states[row, source] % n
            facts[row, 0] += seen[row % len(seen), at]
            for other in range(states.shape[1]):
                if states[row, other] < 2 * n:
                    shared = overlap[at, states[row, other] % n]
                    if slot < 0 or other == slot:
                        facts[row, 1] += shared
                    else:
                        facts[row, 0] -= strengths[row, other] * shared


@compiled
def draw_strengths(facts: FloatArray, low: float, high: float, rng: np.random.Generator, drawn: FloatArray) -> None:
    """Draw the strength in each chain, given its facts (chains, 2)."""
    for row in range(len(facts)):
        drawn[row] = draw_strength(facts[row, 0], facts[row, 1], low, high, rng)


@compiled
def add_law(law: Beliefs, order: IntArray, slot: int, places: Beliefs) -> None:
    """Add the law of one slot in each chain to the track it follows, in `places` (halves, slots, n) of the chains."""
    chains, n = len(law), places.shape[2]
    for row in range(chains):
        half = 0 if row < chains // 2 else 1
        for track in range(order.shape[1]):
            if order[row, track] == slot:
                for i in range(n):
                    places[half, track, i] += (law[row, i] + law[row, n + i]) * np.float32(2.0 / chains)


@compiled
def middle(law: FloatArray, distances: Beliefs, least: float) -> int:
    """The candidate with the least expected distance to a source of this law; those of at most `least` do not count."""
    likely = np.flatnonzero(law > least)
    best, lowest = 0, np.inf
    for candidate in likely:
        total = 0.0
        for other in likely:
            total += law[other] * distances[candidate, other]
            if total >= lowest:
                break
        if total < lowest:
            best, lowest = int(candidate), total
    return best
