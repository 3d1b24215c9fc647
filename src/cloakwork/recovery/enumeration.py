"""Exact weights of all placements of a few equal sources of known strength, with a proof for excluded counts."""

import math
from typing import Any, NamedTuple

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part

NEGLIGIBLE = 50.0  # a placement e^-50 times less likely than the upper bound is left out
FRANK_WOLFE_STEPS = 200  # to prove that a count is too far from the readings
ROOM = 20.0  # largest distance of the best placement below the bound for sources of any strength
EXCLUDED = 30.0  # a count is left out if it is provably e^-30 times less likely than another


class Terms(NamedTuple):
    """C'b, C'b - diag(C'C) / 2, C'C and ||b||^2, for the columns C of the candidate places and whitened readings b."""

    match: FloatArray
    score: FloatArray
    gram: FloatArray
    square: float


@compiled
def enumerate_placements(
    terms: Terms, least: int, affordable: float, offset: float, evidence: FloatArray, drawn: IntArray
) -> float:
    """Weigh all placements of `least` to len(evidence) - 1 sources, and draw some of them.

    Fills `evidence` with the probability of each count (uniform over counts, places independent and uniform) and
    `drawn` with placements at evenly spaced quantiles, the first at `offset` in [0, 1), padded with -1. Returns a bound
    on the probability of everything left out; infinite, without useful results, if a count that cannot be excluded has
    more than `affordable` placements.

    Notes
    -----
    The log likelihood of a placement p, up to ||b||^2 / 2, is the sum over p of (C'b - diag(C'C) / 2) less the sum of
    C'C over its pairs. Its average over the placements of k sources is at most -dist^2 / 2, with dist the distance of b
    from k times the convex hull of the columns, which Frank-Wolfe bounds from below.
    """
    n, most = len(terms.match), len(evidence) - 1
    ceiling = np.empty(most + 1)
    for k in range(most + 1):
        ceiling[k] = (terms.square - _distance_squared(terms, k)) / 2 if k >= least else -np.inf
        evidence[k] = -np.inf
    work = (np.empty((most + 1, n)), np.zeros(most + 1), np.zeros(most + 1), np.zeros(most + 1, dtype=np.int64))
    best, left_out = -np.inf, 0.0  # log evidence so far, and the sum of the rest relative to it
    for _ in range(least, most + 1):
        k = int(np.argmax(ceiling))
        possible = ceiling[k]
        ceiling[k] = -np.inf
        if possible < best - EXCLUDED:
            left_out += math.exp(possible - best)
            continue
        if _placements(n, k) > affordable:
            return np.inf
        total, top, _ = _weigh(terms, k, possible, 0.0, 0.0, offset, drawn, 0, work)
        if top < possible - ROOM:  # no placement of whole sources comes near the bound: weigh relative to the best
            possible = top
            total, top, _ = _weigh(terms, k, possible, 0.0, 0.0, offset, drawn, 0, work)
        evidence[k] = possible + math.log(total)
        if evidence[k] > best:
            left_out *= math.exp(best - evidence[k])
            best = evidence[k]
        left_out += _placements(n, k) * math.exp(possible - NEGLIGIBLE - best)
    return left_out / _draw_all(terms, best, offset, evidence, drawn, work)


@compiled_part
def _draw_all(terms: Terms, best: float, offset: float, evidence: FloatArray, drawn: IntArray, work: Any) -> float:
    """Turn log evidence into probabilities, and draw; returns the total evidence relative to the best."""
    whole = 0.0
    for k in range(len(evidence)):
        evidence[k] = math.exp(evidence[k] - best)
        whole += evidence[k]
    for row in range(drawn.shape[0]):
        for i in range(drawn.shape[1]):
            drawn[row, i] = -1
    before, row = 0.0, 0
    for k in range(len(evidence)):
        if evidence[k] > 0:
            held, _, row = _weigh(terms, k, best, before, whole, offset, drawn, row, work)
            before += held
        evidence[k] /= whole
    return whole


@compiled_part
def _placements(n: int, k: int) -> float:
    number = 1.0
    for i in range(k):
        number *= (n + i) / (i + 1.0)
    return number


@compiled_part
def _distance_squared(terms: Terms, k: int) -> float:
    """A lower bound on ||b - C f||^2 over f >= 0 with total k, by Frank-Wolfe and its duality gap."""
    seen, gram, square = terms.match, terms.gram, terms.square
    n = len(seen)
    score = np.empty(n)  # minus half the gradient: C'b - C'C f
    for i in range(n):
        score[i] = seen[i] - k * gram[i, i] / 2
    start = int(np.argmax(score))
    for i in range(n):
        score[i] = seen[i] - k * gram[start, i]
    fit, norm = k * seen[start], k * k * gram[start, start]  # f.C'b and f.C'C.f
    bound = -np.inf
    for _ in range(FRANK_WOLFE_STEPS if k > 0 else 1):
        i = int(np.argmax(score))
        gap = 2 * ((norm - fit) + k * score[i])
        bound = max(bound, square - 2 * fit + norm - gap)
        image = seen[i] - score[i]  # of C'C f
        curve = k * k * gram[i, i] - 2 * k * image + norm
        if gap <= 1.0 or curve <= 0:
            break
        step = min(1.0, gap / (2 * curve))
        norm = (1 - step) ** 2 * norm + 2 * step * (1 - step) * k * image + step**2 * k * k * gram[i, i]
        fit = (1 - step) * fit + step * k * seen[i]
        for j in range(n):
            score[j] = (1 - step) * score[j] + step * (seen[j] - k * gram[i, j])
    return float(bound)


@compiled_part
def _step(gram: FloatArray, depth: int, place: int, work: Any) -> None:
    """Put source number `depth` at `place`: update the scores of the next one and the number of orders."""
    fields, base, run, chosen = work
    same = depth > 0 and place == chosen[depth - 1]
    run[depth + 1] = run[depth] + 1.0 if same else 1.0
    base[depth + 1] = base[depth] + fields[depth, place] + math.log((depth + 1.0) / run[depth + 1])
    for other in range(place, fields.shape[1]):
        fields[depth + 1, other] = fields[depth, other] - gram[place, other]
    chosen[depth] = place


@compiled_part
def _draw(
    total: float, whole: float, offset: float, drawn: IntArray, row: int, chosen: IntArray, depth: int, last: int
) -> int:
    """Write a placement once per quantile that `total` has passed; returns the next row to fill."""
    while row < len(drawn) and (row + offset) / len(drawn) * whole < total:
        for level in range(depth):
            drawn[row, level] = chosen[level]
        if depth >= 0:
            drawn[row, depth] = last
        row += 1
    return row


@compiled_part
def _last(
    k: int, first: int, shift: float, total: float, whole: float, offset: float, drawn: IntArray, row: int, work: Any
) -> tuple[float, float, int]:
    """Try every place from `first` on for the last of k sources: the total, the largest score, and the next row."""
    fields, _, run, chosen = work
    depth, top = k - 1, -np.inf
    for place in range(first, fields.shape[1]):
        value = fields[depth, place] + shift
        top = max(top, value)
        if value < -NEGLIGIBLE:
            continue
        if depth > 0 and place == chosen[depth - 1]:
            value -= math.log(run[depth] + 1.0)
        total += math.exp(value)
        if whole > 0:
            row = _draw(total, whole, offset, drawn, row, chosen, depth, place)
    return total, top, row


@compiled_part
def _weigh(
    terms: Terms,
    k: int,
    reference: float,
    before: float,
    whole: float,
    offset: float,
    drawn: IntArray,
    row: int,
    work: Any,
) -> tuple[float, float, int]:
    """Sum of exp(score - reference) over placements of k sources, the largest score, and the next row to fill.

    With `whole` > 0, draws the placements at which the total, starting at `before`, passes evenly spaced quantiles.
    """
    fields, base, chosen = work[0], work[1], work[3]
    n = fields.shape[1]
    if k == 0:
        total = math.exp(-reference)
        if whole > 0:
            row = _draw(before + total, whole, offset, drawn, row, chosen, -1, -1)
        return total, 0.0, row
    for place in range(n):
        fields[0, place] = terms.score[place]
    total, top, depth, place = before, -np.inf, 0, 0
    while True:
        if depth < k - 1 and place < n:
            _step(terms.gram, depth, place, work)
            depth += 1
            continue
        if depth == k - 1:
            shift = base[depth] - k * math.log(float(n)) - reference + math.log(float(k))
            total, seen, row = _last(k, place, shift, total, whole, offset, drawn, row, work)
            top = max(top, seen)
        if depth == 0:
            return total - before, top + reference, row
        depth -= 1
        place = chosen[depth] + 1
