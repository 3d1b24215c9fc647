"""Inner loops of drawing paths: laws over the states of a source from frame to frame, for several chains at once.

The states of a source are: sits at each of n places, walks at each, absent. A law is an array (chains, 2n + 1). `step`
is the tuple of `Transitions.step`: (patch, starts, near, reach, flow, leave, arrive, begin, settle, appear), where
`near[starts[p]:starts[p + 1]]` are the patches that a walk from patch p can reach, `reach` the weights of these walks,
and `flow` the probability to stay over the total weight of all walks, for each place.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery.summary import cheapest

Beliefs = NDArray[np.float32]
LEAST = 1e-12  # a share of a law this small does not walk
LOWEST = -80.0  # exp of less is 0 in single precision


@compiled_part
def _spread(step: Any, weights: FloatArray, moved: FloatArray) -> None:
    """Walk from patches with these weights to all others."""
    starts, near, reach = step[1], step[2], step[3]
    total = 0.0
    for patch in range(len(weights)):
        moved[patch] = 0.0
        total += weights[patch]
    for patch in range(len(weights)):
        weight = weights[patch]
        if weight > LEAST * total:
            for k in range(starts[patch], starts[patch + 1]):
                moved[near[k]] += weight * reach[k]


@compiled
def predict(step: Any, law: Beliefs, after: Beliefs) -> None:
    """Fill `after` with the law after an interval."""
    patch, flow, leave, arrive, begin, settle, appear = step[0], step[4], step[5], step[6], step[7], step[8], step[9]
    n, patches = len(flow), len(step[1]) - 1
    weights, moved = np.empty(patches), np.empty(patches)
    for row in range(len(law)):
        weights[:] = 0.0
        gone, absent = 0.0, law[row, 2 * n]
        for i in range(n):
            sits, walks = law[row, i], law[row, n + i]
            weights[patch[i]] += (begin * sits + walks) * flow[i]
            gone += (sits + walks) * leave[i]
        _spread(step, weights, moved)
        for i in range(n):
            here = moved[patch[i]] + absent * appear * arrive[i]
            after[row, i] = law[row, i] * (1 - begin) * (1 - leave[i]) + settle * here
            after[row, n + i] = (1 - settle) * here
        after[row, 2 * n] = absent * (1 - appear) + gone


@compiled
def back(step: Any, values: Beliefs, before: Beliefs) -> None:
    """Fill `before` with the expected value from each state, given the value of each state after the interval."""
    patch, flow, leave, arrive, begin, settle, appear = step[0], step[4], step[5], step[6], step[7], step[8], step[9]
    n, patches = len(flow), len(step[1]) - 1
    weights, moved = np.empty(patches), np.empty(patches)
    for row in range(len(values)):
        weights[:] = 0.0
        came, absent = 0.0, values[row, 2 * n]
        for i in range(n):
            ended = settle * values[row, i] + (1 - settle) * values[row, n + i]
            weights[patch[i]] += ended
            came += ended * arrive[i]
        _spread(step, weights, moved)
        for i in range(n):
            walked, gone = moved[patch[i]] * flow[i], leave[i] * absent
            before[row, i] = (1 - begin) * (1 - leave[i]) * values[row, i] + begin * walked + gone
            before[row, n + i] = walked + gone
        before[row, 2 * n] = (1 - appear) * absent + appear * came


@compiled_part
def _fill_reach(step: Any, patch: int, reach: FloatArray) -> None:
    """Fill `reach` with the weight of a walk from each patch to this one."""
    reach[:] = 0.0
    for k in range(step[1][patch], step[1][patch + 1]):
        reach[step[2][k]] = step[3][k]


@compiled_part
def _chance(step: Any, origin: int, end: int, reach: FloatArray) -> float:
    """The probability to come from one state to another; `reach` is that of the patch of the end."""
    patch, flow, leave, arrive, begin, settle, appear = step[0], step[4], step[5], step[6], step[7], step[8], step[9]
    n = len(flow)
    if origin == 2 * n:
        if end == 2 * n:
            return float(1 - appear)
        return float(appear * arrive[end % n] * (settle if end < n else 1 - settle))
    place = origin % n
    if end == 2 * n:
        return float(leave[place])
    walked = (settle if end < n else 1 - settle) * reach[patch[place]] * flow[place]
    if origin >= n:
        return float(walked)
    stayed = (1 - begin) * (1 - leave[place]) if origin == end else 0.0
    return float(begin * walked + stayed)


@compiled
def chances_between(step: Any, origins: IntArray, ends: IntArray, result: FloatArray) -> None:
    """Fill `result` with the probability to come from each origin to the end beside it."""
    reach = np.zeros(len(step[1]) - 1)
    for row in range(len(origins)):
        if ends[row] < 2 * len(step[4]):
            _fill_reach(step, step[0][ends[row] % len(step[4])], reach)
        result[row] = _chance(step, origins[row], ends[row], reach)


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
    patch, flow, leave, begin, settle = step[0], step[4], step[5], step[7], step[8]
    n = len(flow)
    weights, reach = np.empty(2 * n + 1), np.zeros(len(step[1]) - 1)
    for row in range(len(law)):
        end = ends[row]
        if end < 2 * n:
            _fill_reach(step, patch[end % n], reach)
            way = settle if end < n else 1 - settle
            for i in range(n):
                walked = way * reach[patch[i]] * flow[i]
                weights[i] = law[row, i] * begin * walked
                weights[n + i] = law[row, n + i] * walked
            if end < n:
                weights[end] += law[row, end] * (1 - begin) * (1 - leave[end])
        else:
            for i in range(n):
                weights[i] = law[row, i] * leave[i]
                weights[n + i] = law[row, n + i] * leave[i]
        weights[2 * n] = law[row, 2 * n] * _chance(step, 2 * n, end, reach)
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

    `seen` (n,) is the product of the readings with the column of each place, `overlap` (n, n) that of two columns, and
    `squares` (n,) its diagonal.
    `states` (chains, slots) are those of all sources, and `strengths` (chains, slots) their strengths.
    """
    n = len(seen)
    gain = np.empty(n, dtype=np.float32)
    for row in range(len(law)):
        own = np.float32(strengths[row, slot])
        for i in range(n):
            gain[i] = own * (seen[i] - own / 2 * squares[i])
        for other in range(states.shape[1]):
            state = states[row, other]
            if other != slot and state < 2 * n:
                lost, column = own * np.float32(strengths[row, other]), overlap[state % n]
                for i in range(n):
                    gain[i] -= lost * column[i]
        absent = law[row, 2 * n]
        top = np.float32(0.0 if absent > 0 else -np.inf)
        for i in range(n):
            if gain[i] > top and law[row, i] + law[row, n + i] > 0:
                top = gain[i]
        after[row, 2 * n] = absent * math.exp(-top) if absent > 0 else 0.0
        total = float(after[row, 2 * n])
        for i in range(n):
            factor = np.float32(math.exp(gain[i] - top) if LOWEST < gain[i] - top <= 0 else 0.0)
            after[row, i] = law[row, i] * factor
            after[row, n + i] = law[row, n + i] * factor
            total += after[row, i] + after[row, n + i]
        for state in range(2 * n + 1):
            after[row, state] /= total


@compiled_part
def _new_first(empty: IntArray, here: IntArray, chosen: IntArray) -> None:
    """Let the first tracks that are empty take the slots with a source, in their order."""
    first = 0
    for track in range(len(chosen)):
        if empty[track] < 0 and here[chosen[track]] >= 0:
            while empty[first] >= 0 or (first < track and here[chosen[first]] >= 0):
                first += 1
            chosen[first], chosen[track] = chosen[track], chosen[first]


@compiled
def match(centres: IntArray, states: IntArray, distances: Beliefs, strange: float, order: IntArray) -> None:
    """Fill `order` with the slot of each track in each chain, at the least sum of distances.

    `centres` (slots,) are the places of the tracks and `states` (chains, slots) those of the slots, -1 if absent. A
    source without a track is as far from it as `strange`, and begins one: its place is the centre for the next chains.
    """
    slots = len(centres)
    cost, best = np.empty((slots, slots)), np.empty(1 << slots)
    choice, chosen = np.empty(1 << slots, dtype=np.int64), np.empty(slots, dtype=np.int64)
    for row in range(len(states)):
        for track in range(slots):
            for slot in range(slots):
                at, place = centres[track], states[row, slot]
                known = distances[at, place] if at >= 0 and place >= 0 else strange
                cost[track, slot] = 0.0 if at < 0 and place < 0 else known
        cheapest(cost, slots, slots, best, choice, chosen)
        _new_first(centres, states[row], chosen)
        for track in range(slots):
            order[row, track] = chosen[track]
            if centres[track] < 0:
                centres[track] = states[row, chosen[track]]


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
