"""Choosing an event from past reports: the one on which the claim has looked worst so far.

All choosers return, for each direction, an event and how likely it seems on the favoured input and on the other. They
see past reports only, so whatever they choose, betting on the next reports is fair.
"""

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray
from cloakwork.auditing.events import Event, HalfLine, Interval, OneOf, Ranges
from cloakwork.auditing.reports import Line, Past

MOST_CUTS = 1024
_FAR = 64
_ENOUGH = 4096
_GRID = 40
_TAILS = np.array([0.0005, 0.001, 0.002, 0.005, 0.01])
_LEVELS = np.unique(np.concatenate([_TAILS, 1 - _TAILS, np.linspace(0.0, 1.0, _GRID)]))


@dataclass(frozen=True)
class Claim:
    """What is tested: P(E) <= e^epsilon Q(E) + delta."""

    epsilon: float
    delta: float

    def merit(self, favoured: FloatArray, other: FloatArray, reports: int) -> FloatArray:
        """How fast a bet on events with these counts would have grown, as mean over standard deviation.

        One count is added to the other input, so that rare events must earn their place.
        """
        p, q = favoured / reports, (other + 1.0) / (reports + 1.0)
        factor = math.exp(self.epsilon)
        # scaled by the factor: its square would overflow
        mean = (p - self.delta) / factor - q
        spread = p * (1 - p) / factor / factor + q * np.maximum(1 - q, 0.0)
        return np.asarray(mean / np.sqrt(spread + 1e-18))  # an event that always or never happens has no spread


@dataclass(frozen=True)
class Choice:
    """An event, how likely it seems on the favoured input and on the other, and how good a bet it looks."""

    event: Event
    p: float
    q: float
    merit: float


Pair: TypeAlias = tuple[Choice | None, Choice | None]
NOTHING: Pair = (None, None)


def half_line(line: Line, past: Past, claim: Claim) -> Pair:
    """The best half-line."""
    x, y = (np.sort(_ordered(reports.line(line))) for reports in (past.x, past.y))
    cuts = np.unique(np.concatenate([_some(x), _some(y)]))
    if not len(cuts):
        return NOTHING
    below = [np.searchsorted(values, cuts, side="right").astype(np.float64) for values in (x, y)]
    counts = [np.concatenate([len(values) - at, at]) for values, at in zip((x, y), below, strict=True)]

    def make(place: int) -> Event:
        return HalfLine(line, float(cuts[place % len(cuts)]), above=place < len(cuts))

    return _both(claim, counts[0], counts[1], len(past.x), make)


def interval(line: Line, past: Past, claim: Claim) -> Pair:
    """The best interval between quantiles, or the complement of one."""
    edges = edges_of(line, past)
    if not len(edges):
        return NOTHING
    low, high = np.triu_indices(1 + len(edges), 1)  # 0 is no end at all: minus infinity can be an edge of its own
    counts = []
    for reports in (past.x, past.y):
        values = _ordered(reports.line(line))
        at = np.concatenate([[0], np.searchsorted(np.sort(values), edges, side="right")]).astype(np.float64)
        inside = at[high] - at[low]
        counts.append(np.concatenate([inside, len(values) - inside]))

    def make(place: int) -> Event:
        which = place % len(low)
        first, last = int(low[which]), int(high[which])
        lower = float(edges[first - 1]) if first else None
        return Interval(line, lower, float(edges[last - 1]), inside=place < len(low))

    return _both(claim, counts[0], counts[1], len(past.x), make)


def ranges(line: Line, past: Past, claim: Claim) -> Pair:
    """The best union of ranges: ordered by their ratio on one half of the past, cut off on the other."""
    edges = edges_of(line, past)
    if len(edges) < 3:
        return NOTHING

    def make(chosen: NDArray[np.intp]) -> Event:
        return Ranges(line, edges, np.isin(np.arange(len(edges) + 1), chosen))

    cells = [np.searchsorted(edges, _ordered(reports.line(line))) for reports in (past.x, past.y)]
    return _union(claim, cells, len(edges) + 1, len(past.x), make)


def one_value(line: Line, past: Past, claim: Claim) -> Pair:
    """The best single value."""
    values, cells = _cells(line, past)
    if not len(values):
        return NOTHING
    counts = [np.bincount(part, minlength=len(values)).astype(np.float64) for part in cells]
    return _both(claim, counts[0], counts[1], len(past.x), lambda place: OneOf(line, values[place : place + 1]))


def some_values(line: Line, past: Past, claim: Claim) -> Pair:
    """The best set of values that were seen repeatedly."""
    values, cells = _cells(line, past)
    total = np.bincount(np.concatenate(cells), minlength=len(values))
    frequent = total >= 4
    if frequent.sum() < 2:
        return NOTHING
    place = np.where(frequent, np.cumsum(frequent) - 1, -1)
    kept = values[frequent]
    known = [place[part] for part in cells]
    return _union(claim, known, len(kept), len(past.x), lambda chosen: OneOf(line, np.sort(kept[chosen])))


def better(first: Pair, second: Pair) -> Pair:
    """For each direction the better of two choices."""
    best = []
    for one, other in zip(first, second, strict=True):
        best.append(other if one is None or (other is not None and other.merit > one.merit) else one)
    return best[0], best[1]


def _both(claim: Claim, x: FloatArray, y: FloatArray, reports: int, make: Any) -> Pair:
    found = []
    for favoured, other in ((x, y), (y, x)):
        merit = claim.merit(favoured, other, reports)
        place = int(np.argmax(merit))
        found.append(_choice(make(place), float(favoured[place]), float(other[place]), reports, float(merit[place])))
    return found[0], found[1]


def _choice(event: Event, favoured: float, other: float, reports: int, merit: float) -> Choice:
    return Choice(event, favoured / reports, (other + 1.0) / (reports + 1.0), merit)


def _union(claim: Claim, cells: list[NDArray[Any]], size: int, reports: int, make: Any) -> Pair:
    """Order cells by their ratio on even reports; on odd ones take the best beginning of that order."""
    counts = [
        [np.bincount(part[first::2][part[first::2] >= 0], minlength=size).astype(np.float64) for part in cells]
        for first in (0, 1)
    ]
    found: list[Choice | None] = []
    for way in (0, 1):
        learn, judge = ((half[way], half[1 - way]) for half in counts)
        order = np.argsort(-(learn[0] + 0.5) / (learn[1] + 0.5), kind="stable")
        favoured, other = np.cumsum(judge[0][order]), np.cumsum(judge[1][order])
        merit = claim.merit(favoured, other, reports // 2)
        last = int(np.argmax(merit))
        found.append(
            _choice(make(order[: last + 1]), favoured[last], other[last], max(reports // 2, 1), float(merit[last]))
        )
    return found[0], found[1]


def _cells(line: Line, past: Past) -> tuple[NDArray[Any], list[NDArray[np.intp]]]:
    x, y = past.x.line(line), past.y.line(line)
    values, which = np.unique(np.concatenate([x, y]), return_inverse=True)
    return values, [which[: len(x)], which[len(x) :]]


def _ordered(values: NDArray[Any]) -> FloatArray:
    """Without NaN, which no half-line holds."""
    return np.asarray(values[~np.isnan(values)], dtype=np.float64)


def _some(ordered: FloatArray) -> FloatArray:
    """Of sorted values all of the far ones, and a share of those between."""
    if len(ordered) <= MOST_CUTS:
        return ordered
    places = np.linspace(_FAR, len(ordered) - _FAR - 1, MOST_CUTS).astype(np.intp)
    return np.concatenate([ordered[:_FAR], ordered[places], ordered[-_FAR:]])


def edges_of(line: Line, past: Past) -> FloatArray:
    """Values to cut a line at: quantiles of some of the reports, which are as good as those of all."""
    parts = [_ordered(reports.line(line)) for reports in (past.x, past.y)]
    pooled = np.concatenate([part[:: 1 + len(part) // _ENOUGH] for part in parts])
    if not len(pooled):
        return pooled
    ordered = np.sort(pooled)
    return np.unique(ordered[np.ceil(_LEVELS * (len(ordered) - 1)).astype(np.intp)])
