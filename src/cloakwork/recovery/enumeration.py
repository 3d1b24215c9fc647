"""Every placement of a few equal sources of known strength, weighed exactly; counts that cannot be are proved so."""

import math

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part

NEGLIGIBLE = 50.0  # a placement e^-50 times less likely than any could be is left out
ROUNDS = 200  # of Frank-Wolfe, for the proof that a count is too far from the readings
ROOM = 20.0  # how far below what sums of real strengths could reach the best placement may stay
EXCLUDED = 30.0  # a count is left out when it is proved e^-30 times less likely than another


@compiled
def enumerate_placements(
    seen: FloatArray,
    gram: FloatArray,
    square: float,
    least: int,
    affordable: float,
    offset: float,
    evidence: FloatArray,
    drawn: IntArray,
) -> float:
    """Weigh all placements of `least` to len(evidence) - 1 sources, and draw some of them.

    `seen` is C'b and `gram` is C'C for the columns C of the candidate places and whitened readings b with ||b||^2 =
    `square`. Fills `evidence` with the probability of each count (uniform over counts, places independent and uniform)
    and `drawn` with placements at evenly spaced quantiles, the first at `offset` in [0, 1), padded with -1. Returns a
    bound on the probability of all that was left out; infinite, with nothing of use filled in, if a count that cannot
    be excluded has more than `affordable` placements.

    Notes
    -----
    The log likelihood of a placement p, up to ||b||^2 / 2, is sum over p of (C'b - diag(C'C) / 2) less the sum of
    C'C over its pairs. Its average over the placements of k sources is at most -dist^2 / 2 with dist the distance of b
    from k times the convex hull of the columns, which Frank-Wolfe bounds from below.
    """
    n, most = len(seen), len(evidence) - 1
    match = seen - np.diag(gram) / 2
    ceiling = np.full(most + 1, -np.inf)
    for k in range(least, most + 1):
        ceiling[k] = (square - _distance_squared(seen, gram, square, k)) / 2
    work = (np.empty((most + 1, n)), np.zeros(most + 1), np.zeros(most + 1), np.zeros(most + 1, dtype=np.int64))
    nothing = np.empty(0)
    evidence[:] = -np.inf
    best, left_out = -np.inf, 0.0  # of the log evidence so far, and the sum of what is left out relative to it
    for _ in range(least, most + 1):
        k = int(np.argmax(ceiling))
        possible = ceiling[k]
        ceiling[k] = -np.inf
        if possible < best - EXCLUDED:
            left_out += math.exp(possible - best)
            continue
        if _placements(n, k) > affordable:
            return np.inf
        total, top = _weigh(match, gram, k, possible, 0.0, nothing, drawn, 0, work)
        if top < possible - ROOM:  # no placement of whole sources comes near what sums of real strengths could reach
            possible = top
            total, top = _weigh(match, gram, k, possible, 0.0, nothing, drawn, 0, work)
        evidence[k] = possible + math.log(total)
        if evidence[k] > best:
            left_out *= math.exp(best - evidence[k])
            best = evidence[k]
        left_out += _placements(n, k) * math.exp(possible - NEGLIGIBLE - best)
    for k in range(most + 1):
        evidence[k] = math.exp(evidence[k] - best)
    wanted = (np.arange(len(drawn)) + offset) / len(drawn) * evidence.sum()
    drawn[:] = -1
    before = 0.0
    for k in range(most + 1):
        if evidence[k] > 0:
            row = int(np.searchsorted(wanted, before))
            before += _weigh(match, gram, k, best, before, wanted, drawn, row, work)[0]
    left_out /= float(evidence.sum())
    evidence /= evidence.sum()
    return left_out


@compiled_part
def _placements(n: int, k: int) -> float:
    number = 1.0
    for i in range(k):
        number *= (n + i) / (i + 1.0)
    return number


@compiled_part
def _distance_squared(seen: FloatArray, gram: FloatArray, square: float, k: int) -> float:
    """At most the least ||b - C f||^2 over f >= 0 with total k, by Frank-Wolfe with its duality gap."""
    n = len(seen)
    image = np.zeros(n)  # C'C f
    start = int(np.argmax(seen - k * np.diag(gram) / 2))
    for i in range(n):
        image[i] = k * gram[start, i]
    fit, norm = k * seen[start], k * k * gram[start, start]  # f.C'b and f.C'C.f
    bound = -np.inf
    for _ in range(ROUNDS if k > 0 else 1):
        i = int(np.argmin(image - seen))
        gap = 2 * ((norm - fit) - k * (image[i] - seen[i]))
        bound = max(bound, square - 2 * fit + norm - gap)
        curve = k * k * gram[i, i] - 2 * k * image[i] + norm
        if gap <= 1.0 or curve <= 0:
            break
        step = min(1.0, gap / (2 * curve))
        norm = (1 - step) ** 2 * norm + 2 * step * (1 - step) * k * image[i] + step**2 * k * k * gram[i, i]
        fit = (1 - step) * fit + step * k * seen[i]
        for j in range(n):
            image[j] = (1 - step) * image[j] + step * k * gram[i, j]
    return bound


@compiled_part
def _step(gram: FloatArray, depth: int, place: int, work: tuple[FloatArray, FloatArray, FloatArray, IntArray]) -> None:
    """Put source number `depth` at `place`: what adding another one then scores, and in how many orders."""
    fields, base, run, chosen = work
    same = depth > 0 and place == chosen[depth - 1]
    run[depth + 1] = run[depth] + 1.0 if same else 1.0
    base[depth + 1] = base[depth] + fields[depth, place] + math.log((depth + 1.0) / run[depth + 1])
    for other in range(place, fields.shape[1]):
        fields[depth + 1, other] = fields[depth, other] - gram[place, other]
    chosen[depth] = place


@compiled_part
def _draw(total: float, wanted: FloatArray, drawn: IntArray, row: int, chosen: IntArray, depth: int, last: int) -> int:
    """Write down a placement as often as `total` has passed a wanted value; returns the next row to fill."""
    while row < len(wanted) and wanted[row] < total:
        for level in range(depth):
            drawn[row, level] = chosen[level]
        drawn[row, depth] = last
        row += 1
    return row


@compiled_part
def _weigh(
    match: FloatArray,
    gram: FloatArray,
    k: int,
    reference: float,
    before: float,
    wanted: FloatArray,
    drawn: IntArray,
    row: int,
    work: tuple[FloatArray, FloatArray, FloatArray, IntArray],
) -> tuple[float, float]:
    """Sum of exp(score - reference) over placements of k sources, and the largest score.

    Draws the placements at which the running total, from `before` on, passes `wanted`.
    """
    fields, base, run, chosen = work
    n = len(match)
    if k == 0:
        return math.exp(-reference), 0.0
    for place in range(n):
        fields[0, place] = match[place]
    total, top, depth, place = before, -np.inf, 0, 0
    while True:
        if depth < k - 1 and place < n:
            _step(gram, depth, place, work)
            depth += 1
            continue
        if depth == k - 1:
            shift = base[depth] - k * math.log(float(n)) - reference + math.log(float(k))
            for other in range(place, n):
                value = fields[depth, other] + shift
                top = max(top, value)
                if value < -NEGLIGIBLE:
                    continue
                if depth > 0 and other == chosen[depth - 1]:
                    value -= math.log(run[depth] + 1.0)
                total += math.exp(value)
                row = _draw(total, wanted, drawn, row, chosen, depth, other)
        if depth == 0:
            return total - before, top + reference
        depth -= 1
        place = chosen[depth] + 1
