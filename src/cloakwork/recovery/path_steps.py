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
from cloakwork.recovery.source_strength import draw_strength

Beliefs = NDArray[np.float32]
LEAST = np.float32(1e-6)  # a share of a law this small does not walk
TINY = np.float32(1e-30)  # a state this unlikely is impossible
LOWEST = np.float32(-80.0)  # exp of less is 0 in single precision
NEVER = np.float32(-np.inf)
BLOCK = 64  # weights that are added up before a draw looks at each
ONE, LOG2E, LN2 = np.float32(1.0), np.float32(1 / math.log(2)), np.float32(math.log(2))
T2, T3, T4, T5, T6, T7 = (np.float32(1 / math.factorial(k)) for k in range(2, 8))


@compiled_part
def _exponentials(values: Beliefs, result: Beliefs, bits: IntArray) -> None:
    """Fill `result` with exp of values of at most 0, those below `LOWEST` as `LOWEST`, to within 5e-6 of each.

    The loops have no branches and call nothing, so they compile to vector instructions. `bits` is scratch.
    """
    for i in range(len(values)):
        value = min(max(values[i], LOWEST), np.float32(0.0)) * LOG2E
        whole = np.floor(value)
        part = (value - whole) * LN2
        result[i] = ONE + part * (ONE + part * (T2 + part * (T3 + part * (T4 + part * (T5 + part * (T6 + part * T7))))))
        bits[i] = (np.int32(whole) + np.int32(127)) << np.int32(23)
    powers = bits.view(np.float32)
    for i in range(len(values)):
        result[i] *= powers[i]


@compiled_part
def _moved(step: Any, values: Beliefs) -> Beliefs:
    """Let `values` (chains, n) walk from the patches of their places; returns what comes to each place (chains, n).

    All chains walk from a patch at once, and from two patches in one loop, so that `reach` is read from memory once.
    """
    patch, reach = step[0], step[1]
    chains, n, patches = len(values), len(patch), len(reach)
    weights, moved = np.zeros((chains, patches + 1), dtype=np.float32), np.zeros((chains, patches), dtype=np.float32)
    least = np.empty(chains, dtype=np.float32)
    for row in range(chains):
        weight, total = weights[row], np.float32(0.0)
        for i in range(n):
            weight[patch[i]] += values[row, i]
            total += values[row, i]
        least[row] = LEAST * total
    for start in range(0, patches, 2):
        first, second = reach[start], reach[min(start + 1, patches - 1)]  # the weight beyond the last patch is 0
        for row in range(chains):
            one, two = weights[row, start], weights[row, start + 1]
            if one > least[row] or two > least[row]:
                to = moved[row]
                for end in range(patches):
                    to[end] += one * first[end] + two * second[end]
    here = np.empty((chains, n), dtype=np.float32)
    for row in range(chains):
        for i in range(n):
            here[row, i] = moved[row, patch[i]]
    return here


@compiled
def predict(step: Any, law: Beliefs, after: Beliefs) -> None:
    """Fill `after` with the law after an interval."""
    flow, leave, arrive = step[2:5]
    begin, settle, appear = np.float32(step[5]), np.float32(step[6]), np.float32(step[7])
    n = len(flow)
    walking = np.empty((len(law), n), dtype=np.float32)
    for row in range(len(law)):
        for i in range(n):
            walking[row, i] = (begin * law[row, i] + law[row, n + i]) * flow[i]
    here = _moved(step, walking)
    for row in range(len(law)):
        sits, walks, absent = law[row, :n], law[row, n : 2 * n], law[row, 2 * n]
        sitting, moving, gone = after[row, :n], after[row, n : 2 * n], np.float32(0.0)
        for i in range(n):
            came = here[row, i] + absent * appear * arrive[i]
            gone += (sits[i] + walks[i]) * leave[i]
            sitting[i] = sits[i] * (ONE - begin) * (ONE - leave[i]) + settle * came
            moving[i] = (ONE - settle) * came
        after[row, 2 * n] = absent * (ONE - appear) + gone


@compiled
def look_back(step: Any, law: Beliefs, factors: Beliefs, later: Beliefs, smoothed: Beliefs) -> None:
    """Fill `smoothed` with a law given later readings as well, and turn `later` into what they say one frame earlier.

    `later` is the likelihood of the readings after the next frame, for each state there, and `factors` that of the next
    frame's own. `law` is the one before `step`, given the readings up to it.
    """
    flow, leave, arrive = step[2:5]
    begin, settle, appear = np.float32(step[5]), np.float32(step[6]), np.float32(step[7])
    n = len(flow)
    ended = np.empty((len(law), n), dtype=np.float32)
    for row in range(len(law)):
        factor, sits, walks = factors[row], later[row, :n], later[row, n : 2 * n]
        for i in range(n):
            sits[i] *= factor[i]
            ended[row, i] = settle * sits[i] + (ONE - settle) * walks[i] * factor[i]
    here = _moved(step, ended)
    for row in range(len(law)):
        sits, walks, absent = later[row, :n], later[row, n : 2 * n], later[row, 2 * n] * factors[row, n]
        came, top, total = np.float32(0.0), np.float32(0.0), np.float32(0.0)
        for i in range(n):
            walked, gone = here[row, i] * flow[i], leave[i] * absent
            came += ended[row, i] * arrive[i]
            sits[i] = (ONE - begin) * (ONE - leave[i]) * sits[i] + begin * walked + gone
            walks[i] = walked + gone
        later[row, 2 * n] = (ONE - appear) * absent + appear * came
        for state in range(2 * n + 1):
            smoothed[row, state] = law[row, state] * later[row, state]
            total += smoothed[row, state]
            top = max(top, later[row, state])
        for state in range(2 * n + 1):
            smoothed[row, state] *= ONE / total
            later[row, state] *= ONE / top  # only its proportions count


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
def exchange(step: Any, states: IntArray, tracks: IntArray, first: int, aims: FloatArray, order: IntArray) -> None:
    """Exchange the paths of two sources from a frame on, as likely as their steps to it allow, for all pairs.

    Frame by frame from `first` on, for each row of the random numbers `aims` (frames, chains, pairs). `states` and
    `tracks` (chains, slots, frames) are exchanged together. `order` (chains, slots) has what was exchanged before.
    """
    chains, slots, _ = states.shape
    absent = 2 * len(step[2])
    for turn in range(len(aims)):
        t = first + turn
        for row in range(chains):
            before, numbers = states[row, :, t].copy(), tracks[row, :, t].copy()
            for a in range(slots):
                states[row, a, t], tracks[row, a, t] = before[order[row, a]], numbers[order[row, a]]
            pair = 0
            for a in range(slots):
                for b in range(a):
                    origins = (states[row, a, t - 1], states[row, b, t - 1])
                    ends = (states[row, a, t], states[row, b, t])
                    aim = aims[turn, row, pair]
                    pair += 1
                    if origins[0] == origins[1] == absent or ends[0] == ends[1] == absent:
                        continue
                    crossed = _chance(step, origins[0], ends[1]) * _chance(step, origins[1], ends[0])
                    kept = _chance(step, origins[0], ends[0]) * _chance(step, origins[1], ends[1])
                    if aim * (kept + crossed) < crossed:
                        states[row, a, t], states[row, b, t] = ends[1], ends[0]
                        tracks[row, a, t], tracks[row, b, t] = tracks[row, b, t], tracks[row, a, t]
                        order[row, a], order[row, b] = order[row, b], order[row, a]


@compiled_part
def _pick(weights: Beliefs, aim: float) -> int:
    """A state drawn in proportion to its weight; `aim` is a uniform random number."""
    blocks = (len(weights) + BLOCK - 1) // BLOCK
    sums = np.zeros(blocks)
    for block in range(blocks):
        part = np.float32(0.0)
        for state in range(block * BLOCK, min(len(weights), (block + 1) * BLOCK)):
            part += weights[state]
        sums[block] = part
    left, last = aim * sums.sum(), 0
    for block in range(blocks):
        if left >= sums[block]:
            left -= sums[block]
            if block < blocks - 1:
                continue
        for state in range(block * BLOCK, min(len(weights), (block + 1) * BLOCK)):
            if weights[state] > 0:
                last = state
                left -= weights[state]
                if left < 0:
                    return last
    return last


@compiled
def draw(law: Beliefs, aims: FloatArray, drawn: IntArray) -> None:
    """Draw a state from the law of each chain."""
    for row in range(len(law)):
        drawn[row] = _pick(law[row], aims[row])


@compiled
def draw_before(step: Any, law: Beliefs, ends: IntArray, aims: FloatArray, drawn: IntArray) -> None:
    """Draw the state before an interval in each chain, given its law and the state after."""
    patch, reach, flow, leave = step[:4]
    begin, settle = np.float32(step[5]), np.float32(step[6])
    n = len(flow)
    way, weights = np.empty(n, dtype=np.float32), np.empty(2 * n + 1, dtype=np.float32)
    for row in range(len(law)):
        end, sits, walks = ends[row], law[row, :n], law[row, n : 2 * n]
        if end < 2 * n:
            near = reach[patch[end % n]]
            for i in range(n):
                way[i] = near[patch[i]]
            settled = settle if end < n else ONE - settle
            for i in range(n):
                walked = settled * way[i] * flow[i]
                weights[i] = sits[i] * begin * walked
                weights[n + i] = walks[i] * walked
            if end < n:
                weights[end] += sits[end] * (ONE - begin) * (ONE - leave[end])
        else:
            for i in range(n):
                weights[i] = sits[i] * leave[i]
                weights[n + i] = walks[i] * leave[i]
        weights[2 * n] = law[row, 2 * n] * np.float32(_chance(step, 2 * n, end))
        drawn[row] = _pick(weights, aims[row])


@compiled_part
def _lift(gain: Beliefs, sits: Beliefs, walks: Beliefs, top: np.float32) -> np.float32:
    """Subtract from all gains the largest where a source can be, or `top` if that is larger; returns it."""
    for i in range(len(gain)):
        if gain[i] > top and sits[i] + walks[i] > TINY:
            top = gain[i]
    for i in range(len(gain)):
        gain[i] -= top
    return top


@compiled
def weigh(
    law: Beliefs,
    frame: Any,
    states: IntArray,
    strengths: FloatArray,
    slot: int,
    after: Beliefs,
    factors: Beliefs,
) -> None:
    """Fill `after` with the law of one source after the readings of a frame, given the others.

    `frame` is (seen, squares, overlap): `seen` (chains, n), or (1, n) if it is the same for all, is the product of the
    readings with the column of each place, `overlap` (n, n) that of two columns, and `squares` (n,) its diagonal.
    `states` (chains, slots) are those of all sources, and `strengths` (chains, slots) their strengths. `factors`
    (chains, n + 1) are the likelihoods of each place and of no source, relative to the largest.
    """
    seen, squares, overlap = frame
    n = seen.shape[1]
    gain, bits = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.int32)
    for row in range(len(law)):
        own, product, factor = np.float32(strengths[row, slot]), seen[row % len(seen)], factors[row]
        half = own / np.float32(2.0)
        for i in range(n):
            gain[i] = own * (product[i] - half * squares[i])
        for other in range(states.shape[1]):
            state = states[row, other]
            if other != slot and state < 2 * n:
                lost, column = own * np.float32(strengths[row, other]), overlap[state % n]
                for i in range(n):
                    gain[i] -= lost * column[i]
        sits, walks, absent = law[row, :n], law[row, n : 2 * n], law[row, 2 * n]
        top = _lift(gain, sits, walks, np.float32(0.0) if absent > TINY else NEVER)
        _exponentials(gain, factor[:n], bits)
        factor[n] = math.exp(-top) if absent > TINY else 0.0
        sitting, moving, total = after[row, :n], after[row, n : 2 * n], absent * factor[n]
        for i in range(n):
            sitting[i] = sits[i] * factor[i]
            moving[i] = walks[i] * factor[i]
            total += sitting[i] + moving[i]
        for i in range(n):
            sitting[i] *= ONE / total
            moving[i] *= ONE / total
        after[row, 2 * n] = absent * factor[n] / total


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
def middle(law: Beliefs, distances: Beliefs, least: float) -> int:
    """The candidate with the least expected distance to a source of this law; those of at most `least` do not count."""
    likely = np.where(law > least, law, np.float32(0.0))
    best, lowest = 0, np.inf
    for candidate in np.flatnonzero(likely):
        row, total = distances[candidate], np.float32(0.0)
        for other in range(len(likely)):
            total += likely[other] * row[other]
        if total < lowest:
            best, lowest = int(candidate), float(total)
    return best
