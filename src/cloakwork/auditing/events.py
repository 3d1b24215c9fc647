"""Events: sets of cells of a feature, and the search for the set on which the claim has looked worst so far.

A search sees past reports only, so betting on the next reports is fair whatever it chooses.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.auditing.features import SCREEN
from cloakwork.auditing.reports import Feature, ReportPair, Reports

Mask: TypeAlias = NDArray[np.bool_]

_TAILS = np.array([0.0005, 0.001, 0.002, 0.005, 0.01])
COARSE = np.unique(np.concatenate([_TAILS, 1 - _TAILS, np.linspace(0.0, 1.0, 40)]))
FINE = np.linspace(0.0, 1.0, 1024)
_EXTREMES = 64
_MAX_VALUES = 4_096
_SHOWN = 6
_REACH = np.linspace(-8.0, 8.0, 641)  # standard deviations


@dataclass(frozen=True)
class AuditedClaim:
    """The claim P(E) <= e^epsilon Q(E) + delta for every event E, in both directions."""

    epsilon: float
    delta: float

    def times(self, reports: int) -> "AuditedClaim":
        """Return what the claim says about several reports together (basic composition)."""
        return AuditedClaim(reports * self.epsilon, reports * self.delta)

    def merit(self, p: FloatArray, q: FloatArray) -> FloatArray:
        """Return how fast a bet on events with these probabilities grows: its mean over its standard deviation."""
        factor = math.exp(self.epsilon)
        variance = p * (1 - p) / factor / factor + q * np.maximum(1 - q, 0.0)
        return np.asarray(((p - self.delta) / factor - q) / np.sqrt(variance + 1e-18))


@dataclass(frozen=True, eq=False)
class Cells:
    """The values of a feature, cut into cells.

    Cell k has the values above cuts[k-1] and up to cuts[k], the last but one those above all cuts, the last NaN. If
    `exact`, cell k has the value cuts[k], and the last one all others.
    """

    feature: Feature
    cuts: NDArray[Any]
    exact: bool = False

    @property
    def number(self) -> int:
        """How many cells there are."""
        return len(self.cuts) + (1 if self.exact else 2)

    def of(self, reports: Reports) -> NDArray[np.intp]:
        """Return the cell of each report."""
        values = reports.measure(self.feature)
        found = np.searchsorted(self.cuts, values)
        if self.exact:
            nearest = np.minimum(found, len(self.cuts) - 1)
            return np.where(self.cuts[nearest] == values, nearest, len(self.cuts))
        return np.where(np.isnan(values), len(self.cuts) + 1, found)

    def counts(self, reports: Reports) -> FloatArray:
        """Return the number of reports in each cell."""
        return np.bincount(self.of(reports), minlength=self.number).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Event:
    """The reports whose feature falls `inside` some cells; `direction` 0 bets that input 0 has too many of them.

    `p` and `q` are its estimated probabilities on the favoured input and on the other one, `merit` its value as a bet.
    """

    cells: Cells
    inside: Mask
    direction: int
    p: float
    q: float
    merit: float

    def holds(self, reports: Reports) -> Mask:
        """Return for each report whether it is in the event."""
        return self.inside[self.cells.of(reports)]

    def describe(self, shown: Callable[[int], str], past: ReportPair) -> str:
        """Return the event as a sentence; `shown` writes the code of one entry."""
        parts = list(self._values(shown, past) if self.cells.exact else self._ranges(shown, past))
        if len(parts) > _SHOWN:
            parts[_SHOWN - 1 :] = [f"one of {len(parts) - _SHOWN + 1} others"]
        return f"{self.cells.feature.name} is {' or '.join(parts) or 'none of the values so far'}"

    def _ranges(self, shown: Callable[[int], str], past: ReportPair) -> Iterator[str]:
        cuts, seen = self.cells.cuts, self.cells.counts(past.x) + self.cells.counts(past.y)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], self.inside[:-1], [False]]).astype(int)))
        for first, after in edges.reshape(-1, 2):
            if not seen[first:after].any():
                continue
            above = f"above {cuts[first - 1]:.6g}" if first else ""
            most = f"at most {cuts[after - 1]:.6g}" if after <= len(cuts) else ""
            yield " and ".join(filter(None, (above, most))) or "a number"
        odd = [r.codes[np.isnan(r.measure(self.cells.feature))] for r in past]
        if self.inside[-1] and any(map(len, odd)):
            words = [word for codes in odd for word in map(shown, codes[:9].ravel().tolist()) if word.startswith('"')]
            yield f"not a number, such as {words[0]}" if words else "not a number"

    def _values(self, shown: Callable[[int], str], past: ReportPair) -> Iterator[str]:
        for value in self.cells.cuts[self.inside[:-1]]:
            if value.dtype != np.uint64:
                yield f"{value:g}"
                continue
            rows = np.concatenate([r.codes[r.measure(self.cells.feature) == value][:1] for r in past])
            if len(rows):
                words = ", ".join(shown(int(code)) for code in rows[0][:12])
                yield words if len(rows[0]) == 1 else f"({words}{', ...' if len(rows[0]) > 12 else ''})"


Choice: TypeAlias = tuple[Event | None, Event | None]
"""For each direction an event to bet on, or None."""
Search: TypeAlias = Callable[[Feature, ReportPair, AuditedClaim], Choice]
NO_CHOICE: Choice = (None, None)


def cut(feature: Feature, past: ReportPair, levels: FloatArray) -> Cells:
    """Return cells between quantiles of past values, with every extreme value on its own where the levels are fine."""
    values = np.concatenate([reports.measure(feature) for reports in past])
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return Cells(feature, np.zeros(1))
    chosen = ordered[np.ceil(levels * (len(ordered) - 1)).astype(np.intp)]
    ends = [ordered[:_EXTREMES], ordered[-_EXTREMES:]] if len(levels) >= len(FINE) else []
    return Cells(feature, np.unique(np.concatenate([chosen, *ends])))


def values_of(feature: Feature, past: ReportPair) -> Cells:
    """Return a cell for each of the most frequent values."""
    values, number = np.unique(np.concatenate([reports.measure(feature) for reports in past]), return_counts=True)
    return Cells(feature, np.sort(values[np.argsort(-number, kind="stable")[:_MAX_VALUES]]), exact=True)


def half_line(feature: Feature, past: ReportPair, claim: AuditedClaim) -> Choice:
    """Choose the best half-line."""
    cells = cut(feature, past, FINE)
    sums = [np.cumsum(cells.counts(reports)) for reports in past]
    both = [np.concatenate([total, len(past.x) - total]) for total in sums]
    numbers = np.arange(cells.number)

    def inside(place: int) -> Mask:
        return (numbers <= place) if place < cells.number else (numbers > place - cells.number)

    return _best(cells, claim, both, len(past.x), inside)


def ranges(feature: Feature, past: ReportPair, claim: AuditedClaim) -> Choice:
    """Choose the best union of ranges between quantiles."""
    return _union(cut(feature, past, COARSE), past, claim)


def some_values(feature: Feature, past: ReportPair, claim: AuditedClaim) -> Choice:
    """Choose the best single value or set of values."""
    cells = values_of(feature, past)
    both = [cells.counts(reports)[:-1] for reports in past]
    single = _best(cells, claim, both, len(past.x), lambda place: np.arange(cells.number) == place)
    return _better(single, _union(cells, past, claim))


def normal_half_line(feature: Feature, past: ReportPair, claim: AuditedClaim) -> Choice:
    """Choose the half-line that would be best if the feature were normal, however far out.

    Both inputs get one width, unless their widths differ by more than chance explains.
    """
    sides = [values[np.isfinite(values)] for values in (reports.measure(feature) for reports in past)]
    few = min(map(len, sides))
    if few < 50:
        return NO_CHOICE
    with np.errstate(all="ignore"):
        means, widths = (np.array([measure(side) for side in sides]) for measure in (np.mean, np.std))
    if not (np.isfinite(means).all() and (widths > 1e-150).all() and (widths < 1e150).all()):
        return NO_CHOICE
    if abs(math.log(widths[0] / widths[1])) < 3 / math.sqrt(few):
        widths[:] = math.sqrt(widths[0] * widths[1])

    def best(way: int) -> Event:
        cuts = means[1 - way] + widths[1 - way] * _REACH
        if all((side[:SCREEN] == np.round(side[:SCREEN])).all() for side in sides):
            cuts = np.floor(cuts)
        tails = [[special.ndtr(s * (means[k] - cuts) / widths[k]) for k in (way, 1 - way)] for s in (1, -1)]
        merits = np.array([claim.merit(p, q) for p, q in tails])
        side, place = np.unravel_index(int(np.argmax(merits)), merits.shape)
        p, q = (float(tail[place]) for tail in tails[side])
        cells = Cells(feature, cuts[[place]])
        event = Event(cells, np.array([side == 1, side == 0, False]), way, p, q, float(merits[side, place]))
        counts = [int(event.holds(reports).sum()) for reports in (past[way], past[1 - way])]
        if min(counts) < 25:
            return event
        p, q = (number / len(past.x) for number in counts)  # counts are better than the fitted distribution
        return Event(cells, event.inside, way, p, q, event.merit)

    return best(0), best(1)


def best_of(features: Sequence[Feature], searches: Sequence[Search], past: ReportPair, claim: AuditedClaim) -> Choice:
    """Choose the best event: all features are tried on some of the past, the best for each direction on all of it."""
    some, best = past.take(slice(SCREEN)), NO_CHOICE
    for search in searches:
        tried = [search(feature, some, claim) for feature in features] if len(features) > 1 else []
        merits = np.array([[-np.inf if event is None else event.merit for event in choice] for choice in tried])
        places = set(merits.argmax(axis=0).tolist()) if tried else range(len(features))
        for place in places:
            best = _better(best, search(features[place], past, claim))
    return best


def _better(first: Choice, second: Choice) -> Choice:
    a, b = (
        other if one is None or (other is not None and other.merit > one.merit) else one
        for one, other in zip(first, second, strict=True)
    )
    return a, b


def _best(
    cells: Cells, claim: AuditedClaim, counts: list[FloatArray], reports: int, inside: Callable[[int], Mask]
) -> Choice:
    def best(way: int) -> Event | None:
        if not len(counts[0]):
            return None
        p, q = _frequencies(counts[way], counts[1 - way], reports)
        merit = claim.merit(p, q)
        place = int(np.argmax(merit))
        return Event(cells, inside(place), way, float(p[place]), float(q[place]), float(merit[place]))

    return best(0), best(1)


def _union(cells: Cells, past: ReportPair, claim: AuditedClaim) -> Choice:
    """Order cells by their ratio on even reports, and on odd ones cut off the best beginning of this order."""
    halves = [[cells.counts(reports.take(slice(first, None, 2))) for reports in past] for first in (0, 1)]
    if cells.exact:
        halves = [[counts[:-1] for counts in half] for half in halves]
    known = np.flatnonzero(np.sum(halves, axis=(0, 1)) >= 4)

    def best(way: int) -> Event | None:
        if len(known) < 2:
            return None
        learn, judge = ((half[way][known], half[1 - way][known]) for half in halves)
        order = np.argsort(-(learn[0] + 0.5) / (learn[1] + 0.5), kind="stable")
        p, q = _frequencies(np.cumsum(judge[0][order]), np.cumsum(judge[1][order]), max(len(past.x) // 2, 1))
        merit = claim.merit(p, q)
        last = int(np.argmax(merit))
        inside = np.isin(np.arange(cells.number), known[order[: last + 1]])
        return Event(cells, inside, way, float(p[last]), float(q[last]), float(merit[last]))

    return best(0), best(1)


def _frequencies(favoured: FloatArray, other: FloatArray, reports: int) -> tuple[FloatArray, FloatArray]:
    """Return frequencies; one count is added to the other input, so that rare events must earn their place."""
    return favoured / reports, (other + 1.0) / (reports + 1.0)
