"""The search for an event in past reports: the one on which the claim has looked worst so far.

All searches return, for each direction, an event with its estimated probability on the favoured input and on the other.
They see past reports only, so betting on the next reports is fair whatever they choose.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.auditing.features import column
from cloakwork.auditing.output_events import OneOf, OutputEvent, Ranges
from cloakwork.auditing.report_samples import Feature, Past, ReportKind

MOST_CUTS = 1024
_FAR = 64
_ENOUGH = 4096
_GRID = 40
_TAILS = np.array([0.0005, 0.001, 0.002, 0.005, 0.01])
_LEVELS = np.unique(np.concatenate([_TAILS, 1 - _TAILS, np.linspace(0.0, 1.0, _GRID)]))


@dataclass(frozen=True)
class AuditedClaim:
    """The claim under test: P(E) <= e^epsilon Q(E) + delta."""

    epsilon: float
    delta: float

    def merit(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Growth of a bet on events with these probabilities, as mean over standard deviation."""
        factor = math.exp(self.epsilon)
        # scaled by the factor: its square would overflow
        mean = (p - self.delta) / factor - q
        spread = p * (1 - p) / factor / factor + q * np.maximum(1 - q, 0.0)
        return np.asarray(mean / np.sqrt(spread + 1e-18))  # an event that always or never happens has no spread


@dataclass(frozen=True)
class CandidateEvent:
    """An event, its estimated probability on the favoured input and on the other, and its merit as a bet."""

    event: OutputEvent
    p: float
    q: float
    merit: float


Candidates: TypeAlias = tuple[CandidateEvent | None, CandidateEvent | None]
NO_CANDIDATES: Candidates = (None, None)


def half_line(feature: Feature, past: Past, claim: AuditedClaim) -> Candidates:
    """The best half-line."""
    x, y = (np.sort(_ordered(reports.feature(feature))) for reports in (past.x, past.y))
    cuts = np.unique(np.concatenate([_some(x), _some(y)]))
    if not len(cuts):
        return NO_CANDIDATES
    below = [np.searchsorted(values, cuts, side="right").astype(np.float64) for values in (x, y)]
    counts = [np.concatenate([len(values) - at, at]) for values, at in zip((x, y), below, strict=True)]

    def make(place: int) -> OutputEvent:
        return Ranges(feature, [float(cuts[place % len(cuts)])], lowest=place >= len(cuts))

    return _both(claim, counts[0], counts[1], len(past.x), make)


def interval(feature: Feature, past: Past, claim: AuditedClaim) -> Candidates:
    """The best interval between quantiles, or the complement of one."""
    edges = edges_of(feature, past)
    if not len(edges):
        return NO_CANDIDATES
    low, high = np.triu_indices(1 + len(edges), 1)  # 0 is no end at all: minus infinity can be an edge of its own
    counts = []
    for reports in (past.x, past.y):
        values = _ordered(reports.feature(feature))
        at = np.concatenate([[0], np.searchsorted(np.sort(values), edges, side="right")]).astype(np.float64)
        inside = at[high] - at[low]
        counts.append(np.concatenate([inside, len(values) - inside]))

    def make(place: int) -> OutputEvent:
        first, last = low[place % len(low)], high[place % len(low)]
        ends = edges[[first - 1, last - 1] if first else [last - 1]]
        return Ranges(feature, ends.tolist(), lowest=(first == 0) == (place < len(low)))

    return _both(claim, counts[0], counts[1], len(past.x), make)


def ranges(feature: Feature, past: Past, claim: AuditedClaim) -> Candidates:
    """The best union of ranges: ordered by their ratio on one half of the past, cut off on the other."""
    edges = edges_of(feature, past)
    if len(edges) < 3:
        return NO_CANDIDATES

    def make(chosen: NDArray[np.intp]) -> OutputEvent:
        inside = np.isin(np.arange(len(edges) + 1), chosen)
        return Ranges(feature, edges[np.diff(inside)].tolist(), lowest=bool(inside[0]))

    cells = [np.searchsorted(edges, _ordered(reports.feature(feature))) for reports in (past.x, past.y)]
    return _union(claim, cells, len(edges) + 1, len(past.x), make)


def one_value(feature: Feature, past: Past, claim: AuditedClaim) -> Candidates:
    """The best single value."""
    values, cells = _cells(feature, past)
    if not len(values):
        return NO_CANDIDATES
    counts = [np.bincount(part, minlength=len(values)).astype(np.float64) for part in cells]
    return _both(claim, counts[0], counts[1], len(past.x), lambda place: OneOf(feature, values[place : place + 1]))


def some_values(feature: Feature, past: Past, claim: AuditedClaim) -> Candidates:
    """The best set of values that were seen repeatedly."""
    values, cells = _cells(feature, past)
    total = np.bincount(np.concatenate(cells), minlength=len(values))
    frequent = total >= 4
    if frequent.sum() < 2:
        return NO_CANDIDATES
    place = np.where(frequent, np.cumsum(frequent) - 1, -1)
    kept = values[frequent]
    known = [place[part] for part in cells]
    return _union(claim, known, len(kept), len(past.x), lambda chosen: OneOf(feature, np.sort(kept[chosen])))


def better(first: Candidates, second: Candidates) -> Candidates:
    """For each direction the better of two choices."""
    best = []
    for one, other in zip(first, second, strict=True):
        best.append(other if one is None or (other is not None and other.merit > one.merit) else one)
    return best[0], best[1]


def _both(claim: AuditedClaim, x: FloatArray, y: FloatArray, reports: int, make: Any) -> Candidates:
    best = []
    for favoured, other in ((x, y), (y, x)):
        merit = _merit(claim, favoured, other, reports)
        place = int(np.argmax(merit))
        best.append(candidate(make(place), float(favoured[place]), float(other[place]), reports, float(merit[place])))
    return best[0], best[1]


def _merit(claim: AuditedClaim, favoured: FloatArray, other: FloatArray, reports: int) -> FloatArray:
    """The merit of counted events. One count is added to the other input, so that rare events must earn their place."""
    return claim.merit(favoured / reports, (other + 1.0) / (reports + 1.0))


def candidate(event: OutputEvent, favoured: float, other: float, reports: int, merit: float) -> CandidateEvent:
    """An event with its counts on the favoured input and on the other."""
    return CandidateEvent(event, favoured / reports, (other + 1.0) / (reports + 1.0), merit)


def _union(claim: AuditedClaim, cells: list[NDArray[Any]], size: int, reports: int, make: Any) -> Candidates:
    """Order cells by their ratio on even reports; on odd ones take the best beginning of that order."""
    counts = [
        [np.bincount(part[first::2][part[first::2] >= 0], minlength=size).astype(np.float64) for part in cells]
        for first in (0, 1)
    ]
    best = []
    for way in (0, 1):
        learn, judge = ((half[way], half[1 - way]) for half in counts)
        order = np.argsort(-(learn[0] + 0.5) / (learn[1] + 0.5), kind="stable")
        favoured, other = np.cumsum(judge[0][order]), np.cumsum(judge[1][order])
        merit = _merit(claim, favoured, other, reports // 2)
        last = int(np.argmax(merit))
        event = make(order[: last + 1])
        best.append(candidate(event, favoured[last], other[last], max(reports // 2, 1), float(merit[last])))
    return best[0], best[1]


def _cells(feature: Feature, past: Past) -> tuple[NDArray[Any], list[NDArray[np.intp]]]:
    x, y = past.x.feature(feature), past.y.feature(feature)
    values, which = np.unique(np.concatenate([x, y]), return_inverse=True)
    return values, [which[: len(x)], which[len(x) :]]


def _ordered(values: NDArray[Any]) -> FloatArray:
    """Values without NaN, which no half-line holds."""
    return np.asarray(values[~np.isnan(values)], dtype=np.float64)


def _some(ordered: FloatArray) -> FloatArray:
    """All extreme values of a sorted array, and a share of the rest."""
    if len(ordered) <= MOST_CUTS:
        return ordered
    places = np.linspace(_FAR, len(ordered) - _FAR - 1, MOST_CUTS).astype(np.intp)
    return np.concatenate([ordered[:_FAR], ordered[places], ordered[-_FAR:]])


def edges_of(feature: Feature, past: Past) -> FloatArray:
    """Values to cut a feature at: quantiles of some of the reports, which are as good as those of all."""
    parts = [_ordered(reports.feature(feature)) for reports in (past.x, past.y)]
    pooled = np.concatenate([part[:: 1 + len(part) // _ENOUGH] for part in parts])
    if not len(pooled):
        return pooled
    ordered = np.sort(pooled)
    return np.unique(ordered[np.ceil(_LEVELS * (len(ordered) - 1)).astype(np.intp)])


Tail: TypeAlias = Callable[[FloatArray], FloatArray]
_REACH = np.linspace(-8.0, 8.0, 641)  # in standard deviations
_FEWEST = 50
_SEEN_ENOUGH = 25
_NARROWEST, _WIDEST = 1e-150, 1e150  # beyond these, squares and products lose their digits


@dataclass(frozen=True)
class LocationScaleFamily:
    """Distributions of one shape: estimates of centre and width, and the probability above z widths."""

    centre: Callable[[FloatArray], float]
    width: Callable[[FloatArray, float], float]
    error: float  # of the logarithm of a fitted width, times the root of the number of reports
    tail: Tail


def _normal_tail(z: FloatArray) -> FloatArray:
    return np.asarray(special.ndtr(-z))


def _laplace_tail(z: FloatArray) -> FloatArray:
    return np.where(z > 0, 0.5 * np.exp(-np.maximum(z, 0.0)), 1 - 0.5 * np.exp(np.minimum(z, 0.0)))


NORMAL = LocationScaleFamily(
    centre=lambda values: float(values.mean()),
    width=lambda values, centre: float(values.std()) if math.isfinite(centre) else math.nan,
    error=math.sqrt(0.5),
    tail=_normal_tail,
)
LAPLACE = LocationScaleFamily(
    centre=lambda values: float(np.median(values)),
    width=lambda values, centre: float(np.abs(values - centre).mean()),
    error=1.0,
    tail=_laplace_tail,
)


def model_half_line(law: LocationScaleFamily, feature: Feature, past: Past, claim: AuditedClaim) -> Candidates:
    """The half-line that would be best if the reports followed the law.

    One width for both inputs, unless they differ by more than chance explains.
    """
    measured = (reports.feature(feature) for reports in (past.x, past.y))
    sides = [values[np.isfinite(values)] for values in measured]
    few = min(len(side) for side in sides)
    if few < _FEWEST:
        return NO_CANDIDATES
    with np.errstate(all="ignore"):  # huge values overflow: no model then
        centres = [law.centre(side) for side in sides]
        widths = [law.width(side, centre) for side, centre in zip(sides, centres, strict=True)]
    if not all(abs(number) < _WIDEST for number in (*centres, *widths)) or min(widths) < _NARROWEST:
        return NO_CANDIDATES
    if abs(math.log(widths[0] / widths[1])) < 3 * law.error * math.sqrt(2 / few):
        widths = [math.sqrt(widths[0] * widths[1])] * 2

    def best(way: int) -> CandidateEvent:
        cuts = centres[1 - way] + widths[1 - way] * _REACH
        if past.x.kind is ReportKind.WHOLE and feature.measure is column:
            cuts = np.floor(cuts)
        tails = [[law.tail(s * (cuts - centres[k]) / widths[k]) for k in (way, 1 - way)] for s in (1, -1)]
        merits = [claim.merit(p, q) for p, q in tails]
        side = 0 if merits[0].max() >= merits[1].max() else 1
        place = int(np.argmax(merits[side]))
        event = Ranges(feature, [float(cuts[place])], lowest=side == 1)
        p, q = (float(tail[place]) for tail in tails[side])
        counts = [int(event.holds(reports).sum()) for reports in (past.x, past.y)]
        if min(counts) >= _SEEN_ENOUGH:  # counts are better than the fitted law
            p, q = counts[way] / len(past.x), counts[1 - way] / len(past.y)
        return CandidateEvent(event, p, q, float(merits[side][place]))

    return best(0), best(1)
