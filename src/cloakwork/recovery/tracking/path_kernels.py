"""Compiled loops over the states of one source, for several chains at once.

A source sits in one of n cells, walks in one, or is absent: states 0 to n - 1, n to 2n - 1, and 2n. *Beliefs* are
arrays (chains, 2n + 1) of probabilities. `step` is a `motion.Step`, `scores` a `Scores`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery.source_strength import draw_strength
from cloakwork.recovery.tracking.motion import Single, Step

MIN_SHARE = np.float32(1e-6)  # patches with a smaller share of a belief do not walk
IMPOSSIBLE = np.float32(1e-30)
MIN_EXPONENT = np.float32(-80.0)  # exp of less is 0 in single precision
NEVER = np.float32(-np.inf)
BLOCK = 64  # weights that a draw adds up before it looks at each
ONE, LOG2E, LN2 = np.float32(1.0), np.float32(1 / math.log(2)), np.float32(math.log(2))
T2, T3, T4, T5, T6, T7 = (np.float32(1 / math.factorial(k)) for k in range(2, 8))


class Scores(NamedTuple):
    """Inner products of whitened readings and columns, from which log likelihoods follow.

    `readings` (chains, n), or (1, n) if all chains share it, is the product of the readings with the column of each
    cell; `overlap` (n, n) is that of two columns, and `squares` (n,) its diagonal.
    """

    readings: Single
    squares: Single
    overlap: Single


@compiled_part
def _exponentials(values: Single, result: Single, bits: NDArray[np.int32]) -> None:
    """Fill `result` with exp of values of at most 0, to within 5e-6 of each; `bits` is scratch.

    The loops have no branches and call nothing, so they compile to vector instructions.
    """
    for i in range(len(values)):
        value = min(max(values[i], MIN_EXPONENT), np.float32(0.0)) * LOG2E
        whole = np.floor(value)
        part = (value - whole) * LN2
        result[i] = ONE + part * (ONE + part * (T2 + part * (T3 + part * (T4 + part * (T5 + part * (T6 + part * T7))))))
        bits[i] = (np.int32(whole) + np.int32(127)) << np.int32(23)
    powers = bits.view(np.float32)
    for i in range(len(values)):
        result[i] *= powers[i]


@compiled_part
def _walk(step: Step, leaving: Single) -> Single:
    """Return what arrives in each cell (chains, n) if `leaving` (chains, n) walks.

    All chains walk from a patch together, and from two patches in one loop, so that `reach` is read from memory once.
    """
    patch, reach = step.patch, step.reach
    chains, n, patches = len(leaving), len(patch), len(reach)
    weights, arrived = np.zeros((chains, patches + 1), dtype=np.float32), np.zeros((chains, patches), dtype=np.float32)
    least = np.empty(chains, dtype=np.float32)
    for row in range(chains):
        weight, total = weights[row], np.float32(0.0)
        for i in range(n):
            weight[patch[i]] += leaving[row, i]
            total += leaving[row, i]
        least[row] = MIN_SHARE * total
    for start in range(0, patches, 2):
        first, second = reach[start], reach[min(start + 1, patches - 1)]  # beyond the last patch the weight is 0
        for row in range(chains):
            one, two = weights[row, start], weights[row, start + 1]
            if one > least[row] or two > least[row]:
                to = arrived[row]
                for end in range(patches):
                    to[end] += one * first[end] + two * second[end]
    here = np.empty((chains, n), dtype=np.float32)
    for row in range(chains):
        for i in range(n):
            here[row, i] = arrived[row, patch[i]]
    return here


@compiled
def predict(step: Step, before: Single, after: Single) -> None:
    """Fill `after` with the beliefs after an interval."""
    flow, leave, arrive = step.flow, step.leave, step.arrive
    begin, settle, appear = np.float32(step.begin), np.float32(step.settle), np.float32(step.appear)
    n = len(flow)
    leaving = np.empty((len(before), n), dtype=np.float32)
    for row in range(len(before)):
        for i in range(n):
            leaving[row, i] = (begin * before[row, i] + before[row, n + i]) * flow[i]
    here = _walk(step, leaving)
    for row in range(len(before)):
        sits, walks, absent = before[row, :n], before[row, n : 2 * n], before[row, 2 * n]
        sitting, walking, gone = after[row, :n], after[row, n : 2 * n], np.float32(0.0)
        for i in range(n):
            came = here[row, i] + absent * appear * arrive[i]
            gone += (sits[i] + walks[i]) * leave[i]
            sitting[i] = sits[i] * (ONE - begin) * (ONE - leave[i]) + settle * came
            walking[i] = (ONE - settle) * came
        after[row, 2 * n] = absent * (ONE - appear) + gone


@compiled
def look_back(step: Step, before: Single, likelihoods: Single, later: Single, smoothed: Single) -> None:
    """Fill `smoothed` with the beliefs `before` an interval, given all later readings as well.

    `later` (chains, 2n + 1) is the likelihood of the readings after the next frame in each state there, `likelihoods`
    (chains, n + 1) that of the next frame. Turns `later` into what both say about the states before the interval.
    """
    flow, leave, arrive = step.flow, step.leave, step.arrive
    begin, settle, appear = np.float32(step.begin), np.float32(step.settle), np.float32(step.appear)
    n = len(flow)
    ended = np.empty((len(before), n), dtype=np.float32)
    for row in range(len(before)):
        likelihood, sits, walks = likelihoods[row], later[row, :n], later[row, n : 2 * n]
        for i in range(n):
            sits[i] *= likelihood[i]
            ended[row, i] = settle * sits[i] + (ONE - settle) * walks[i] * likelihood[i]
    here = _walk(step, ended)
    for row in range(len(before)):
        sits, walks, absent = later[row, :n], later[row, n : 2 * n], later[row, 2 * n] * likelihoods[row, n]
        came, top, total = np.float32(0.0), np.float32(0.0), np.float32(0.0)
        for i in range(n):
            walked, gone = here[row, i] * flow[i], leave[i] * absent
            came += ended[row, i] * arrive[i]
            sits[i] = (ONE - begin) * (ONE - leave[i]) * sits[i] + begin * walked + gone
            walks[i] = walked + gone
        later[row, 2 * n] = (ONE - appear) * absent + appear * came
        for state in range(2 * n + 1):
            smoothed[row, state] = before[row, state] * later[row, state]
            total += smoothed[row, state]
            top = max(top, later[row, state])
        for state in range(2 * n + 1):
            smoothed[row, state] *= ONE / total
            later[row, state] *= ONE / top  # only its proportions count


@compiled_part
def _transition(step: Step, origin: int, end: int) -> float:
    """Return the probability of one state after another."""
    n = len(step.flow)
    ends = step.settle if end < n else 1 - step.settle
    if origin == 2 * n:
        return float(1 - step.appear) if end == 2 * n else float(step.appear * step.arrive[end % n] * ends)
    cell = origin % n
    if end == 2 * n:
        return float(step.leave[cell])
    walked = ends * step.reach[step.patch[cell], step.patch[end % n]] * step.flow[cell]
    if origin >= n:
        return float(walked)
    stayed = (1 - step.begin) * (1 - step.leave[cell]) if origin == end else 0.0
    return float(step.begin * walked + stayed)


@compiled
def transitions(step: Step, origins: IntArray, ends: IntArray, result: FloatArray) -> None:
    """Fill `result` with the probability of each end after the origin next to it."""
    for row in range(len(origins)):
        result[row] = _transition(step, origins[row], ends[row])


@compiled
def exchange(step: Step, states: IntArray, numbers: IntArray, first: int, aims: FloatArray, order: IntArray) -> None:
    """Exchange the paths of two sources from a frame on, with the probability that their steps to it imply.

    Tries all pairs in each frame from `first` on; `aims` (frames, chains, pairs) are uniform random numbers. `states`
    and `numbers` (chains, slots, frames) are exchanged together; `order` (chains, slots) is what earlier frames
    exchanged.
    """
    chains, slots, _ = states.shape
    absent = 2 * len(step.flow)
    for turn in range(len(aims)):
        t = first + turn
        for row in range(chains):
            before, old_numbers = states[row, :, t].copy(), numbers[row, :, t].copy()
            for a in range(slots):
                states[row, a, t], numbers[row, a, t] = before[order[row, a]], old_numbers[order[row, a]]
            pair = 0
            for a in range(slots):
                for b in range(a):
                    origins = (states[row, a, t - 1], states[row, b, t - 1])
                    ends = (states[row, a, t], states[row, b, t])
                    aim = aims[turn, row, pair]
                    pair += 1
                    if origins[0] == origins[1] == absent or ends[0] == ends[1] == absent:
                        continue
                    crossed = _transition(step, origins[0], ends[1]) * _transition(step, origins[1], ends[0])
                    kept = _transition(step, origins[0], ends[0]) * _transition(step, origins[1], ends[1])
                    if aim * (kept + crossed) < crossed:
                        states[row, a, t], states[row, b, t] = ends[1], ends[0]
                        numbers[row, a, t], numbers[row, b, t] = numbers[row, b, t], numbers[row, a, t]
                        order[row, a], order[row, b] = order[row, b], order[row, a]


@compiled_part
def _pick(weights: Single, aim: float) -> int:
    """Return a state in proportion to its weight; `aim` is a uniform random number."""
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
def draw(beliefs: Single, aims: FloatArray, drawn: IntArray) -> None:
    """Draw a state from the belief of each chain."""
    for row in range(len(beliefs)):
        drawn[row] = _pick(beliefs[row], aims[row])


@compiled
def draw_before(step: Step, beliefs: Single, ends: IntArray, aims: FloatArray, drawn: IntArray) -> None:
    """Draw the state before an interval in each chain, given its belief and the state after."""
    patch, reach, flow, leave = step.patch, step.reach, step.flow, step.leave
    begin, settle = np.float32(step.begin), np.float32(step.settle)
    n = len(flow)
    way, weights = np.empty(n, dtype=np.float32), np.empty(2 * n + 1, dtype=np.float32)
    for row in range(len(beliefs)):
        end, sits, walks = ends[row], beliefs[row, :n], beliefs[row, n : 2 * n]
        if end < 2 * n:
            near = reach[patch[end % n]]
            for i in range(n):
                way[i] = near[patch[i]]
            ending = settle if end < n else ONE - settle
            for i in range(n):
                walked = ending * way[i] * flow[i]
                weights[i] = sits[i] * begin * walked
                weights[n + i] = walks[i] * walked
            if end < n:
                weights[end] += sits[end] * (ONE - begin) * (ONE - leave[end])
        else:
            for i in range(n):
                weights[i] = sits[i] * leave[i]
                weights[n + i] = walks[i] * leave[i]
        weights[2 * n] = beliefs[row, 2 * n] * np.float32(_transition(step, 2 * n, end))
        drawn[row] = _pick(weights, aims[row])


@compiled_part
def _lift(gain: Single, sits: Single, walks: Single, top: np.float32) -> np.float32:
    """Subtract from all gains the largest where a source can be, or `top` if that is larger; returns it."""
    for i in range(len(gain)):
        if gain[i] > top and sits[i] + walks[i] > IMPOSSIBLE:
            top = gain[i]
    for i in range(len(gain)):
        gain[i] -= top
    return top


@compiled
def weigh(
    beliefs: Single, scores: Scores, states: IntArray, strengths: FloatArray, slot: int, likelihoods: Single
) -> None:
    """Turn the beliefs about one source into those after the readings of a frame, given the other sources.

    `states` and `strengths` (chains, slots) are those of all sources. Fills `likelihoods` (chains, n + 1) with those of
    each cell and of no source, relative to the largest.
    """
    readings, squares, overlap = scores.readings, scores.squares, scores.overlap
    n = readings.shape[1]
    gain, bits = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.int32)
    for row in range(len(beliefs)):
        strength, product = np.float32(strengths[row, slot]), readings[row % len(readings)]
        half = strength / np.float32(2.0)
        for i in range(n):
            gain[i] = strength * (product[i] - half * squares[i])
        for other in range(states.shape[1]):
            state = states[row, other]
            if other != slot and state < 2 * n:
                shared, column = strength * np.float32(strengths[row, other]), overlap[state % n]
                for i in range(n):
                    gain[i] -= shared * column[i]
        sits, walks, absent = beliefs[row, :n], beliefs[row, n : 2 * n], beliefs[row, 2 * n]
        top = _lift(gain, sits, walks, np.float32(0.0) if absent > IMPOSSIBLE else NEVER)
        likelihood = likelihoods[row]
        _exponentials(gain, likelihood[:n], bits)
        likelihood[n] = math.exp(-top) if absent > IMPOSSIBLE else 0.0
        total = absent * likelihood[n]
        for i in range(n):
            sits[i] *= likelihood[i]
            walks[i] *= likelihood[i]
            total += sits[i] + walks[i]
        for i in range(n):
            sits[i] *= ONE / total
            walks[i] *= ONE / total
        beliefs[row, 2 * n] = absent * likelihood[n] / total


@compiled
def add_evidence(scores: Scores, states: IntArray, strengths: FloatArray, slot: int, evidence: FloatArray) -> None:
    """Add what a frame says about the strength of one source, or of all sources if `slot` is negative.

    Given the paths, the log likelihood of a strength s is s c - s^2 g / 2; `evidence` (chains, 2) sums c and g.
    """
    readings, overlap = scores.readings, scores.overlap
    n = readings.shape[1]
    for row in range(len(states)):
        for source in range(states.shape[1]):
            if states[row, source] == 2 * n or (source != slot and slot >= 0):
                continue
            at = states[row, source] % n
            evidence[row, 0] += readings[row % len(readings), at]
            for other in range(states.shape[1]):
                if states[row, other] < 2 * n:
                    shared = overlap[at, states[row, other] % n]
                    if slot < 0 or other == slot:
                        evidence[row, 1] += shared
                    else:
                        evidence[row, 0] -= strengths[row, other] * shared


@compiled
def draw_strengths(evidence: FloatArray, low: float, high: float, rng: np.random.Generator, drawn: FloatArray) -> None:
    """Draw a strength between `low` and `high` in each chain, given the evidence (chains, 2)."""
    for row in range(len(evidence)):
        drawn[row] = draw_strength(evidence[row, 0], evidence[row, 1], low, high, rng)


@compiled
def add_cells(beliefs: Single, order: IntArray, slot: int, cells: Single) -> None:
    """Add the beliefs about one slot to the track that it follows in each chain: `cells` (halves, tracks, n)."""
    chains, n = len(beliefs), cells.shape[2]
    for row in range(chains):
        half = 0 if row < chains // 2 else 1
        for track in range(order.shape[1]):
            if order[row, track] == slot:
                for i in range(n):
                    cells[half, track, i] += (beliefs[row, i] + beliefs[row, n + i]) * np.float32(2.0 / chains)
