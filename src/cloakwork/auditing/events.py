"""Events: sets of reports, each with a test and a sentence."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray
from cloakwork.auditing.reports import Line, Past, Reports
from cloakwork.auditing.words import joined, number, report_words

Mask = NDArray[np.bool_]


class Event(Protocol):
    """A set of reports."""

    def holds(self, reports: Reports) -> Mask:
        """For each report whether it is in the set."""
        ...

    def words(self, past: Past) -> str:
        """The event as a sentence; `past` has examples of what codes stand for."""
        ...


@dataclass(frozen=True)
class HalfLine:
    """The line is above a value, or at most it. NaN is neither."""

    line: Line
    cut: float
    above: bool

    def holds(self, reports: Reports) -> Mask:
        values = reports.line(self.line)
        return np.asarray(values > self.cut if self.above else values <= self.cut)

    def words(self, past: Past) -> str:  # noqa: ARG002 - a cut speaks for itself
        return f"{self.line.name()} is {_above(self.cut) or 'above infinity' if self.above else _at_most(self.cut)}"


@dataclass(frozen=True)
class Interval:
    """The line is above `lower` and at most `upper`, or is not (NaN is neither).

    None for no lower end: minus infinity, which a line can be, is above nothing, not even itself.
    """

    line: Line
    lower: float | None
    upper: float
    inside: bool

    def holds(self, reports: Reports) -> Mask:
        values = reports.line(self.line)
        return self._inside(values) if self.inside else np.asarray(~self._inside(values) & ~np.isnan(values))

    def words(self, past: Past) -> str:
        return f"{self.line.name()} is {self._only(past) or self._between()}"

    def _inside(self, values: NDArray[Any]) -> Mask:
        above = True if self.lower is None else values > self.lower
        return np.asarray(above & (values <= self.upper))

    def _between(self) -> str:
        low, high = "" if self.lower is None else _at_most(self.lower), _above(self.upper)
        if not self.inside:
            return " or ".join(part for part in (low, high) if part)
        if self.lower is None:
            return _at_most(self.upper)
        return f"{_above(self.lower)} and {_at_most(self.upper)}" if high else _above(self.lower)

    def _only(self, past: Past) -> str:
        """The one value that was ever seen in the interval, if there is only one."""
        if not self.inside:
            return ""
        seen = np.concatenate([past.x.line(self.line), past.y.line(self.line)])
        found = seen[self._inside(seen)]
        return number(float(found[0])) if len(found) and (found == found[0]).all() else ""


@dataclass(frozen=True, eq=False)
class Ranges:
    """The line falls in one of some ranges between `cuts`, shape (k,); `chosen` is one bool per range, (k + 1,)."""

    line: Line
    cuts: FloatArray
    chosen: Mask

    def holds(self, reports: Reports) -> Mask:
        values = reports.line(self.line)
        return np.asarray(self.chosen[np.searchsorted(self.cuts, values)] & ~np.isnan(values))

    def words(self, past: Past) -> str:  # noqa: ARG002 - cuts speak for themselves
        turns = np.flatnonzero(np.diff(np.concatenate([[False], self.chosen, [False]])))
        spans = [self._span(int(first), int(end)) for first, end in turns.reshape(-1, 2)]
        return f"{self.line.name()} is {joined([span for span in spans if span] or ['above infinity'])}"

    def _span(self, first: int, end: int) -> str:
        """The ranges from `first` to before `end`, which lie side by side; empty where nothing can be in them."""
        upper = float(self.cuts[end - 1]) if end <= len(self.cuts) else np.inf
        if first == 0:
            return _at_most(upper)
        lower = float(self.cuts[first - 1])
        return f"{_above(lower)} and {_at_most(upper)}" if upper < np.inf else _above(lower)


@dataclass(frozen=True, eq=False)
class OneOf:
    """The line has one of some values, sorted, shape (k,)."""

    line: Line
    values: NDArray[Any]

    def holds(self, reports: Reports) -> Mask:
        found = reports.line(self.line)
        places = np.minimum(np.searchsorted(self.values, found), len(self.values) - 1)
        return np.asarray(self.values[places] == found)

    def words(self, past: Past) -> str:
        shown = [report_words(self.line, value, past) for value in self.values[:6]]
        return f"{self.line.name()} is {joined(shown, of=len(self.values))}"


def _at_most(cut: float) -> str:
    return "minus infinity" if cut == -np.inf else f"at most {number(cut)}"


def _above(cut: float) -> str:
    """Empty where nothing is above."""
    return "" if cut == np.inf else f"above {number(cut)}"
