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
        return f"{self.line.name()} is {'above' if self.above else 'at most'} {number(self.cut)}"


@dataclass(frozen=True)
class Interval:
    """The line is above `lower` and at most `upper`, or is not (NaN is neither)."""

    line: Line
    lower: float
    upper: float
    inside: bool

    def holds(self, reports: Reports) -> Mask:
        values = reports.line(self.line)
        if self.inside:
            return np.asarray((values > self.lower) & (values <= self.upper))
        return np.asarray((values <= self.lower) | (values > self.upper))

    def words(self, past: Past) -> str:
        name, lower, upper = self.line.name(), number(self.lower), number(self.upper)
        only = _only_value(self.line, self.lower, self.upper, past) if self.inside else ""
        if only:
            return f"{name} is {only}"
        if np.isinf(self.lower):
            return f"{name} is {'at most' if self.inside else 'above'} {upper}"
        if self.inside:
            return f"{name} is above {lower} and at most {upper}"
        return f"{name} is at most {lower} or above {upper}"


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
        edges = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        turns = np.flatnonzero(np.diff(np.concatenate([[False], self.chosen, [False]])))
        spans = [f"{number(edges[a])} to {number(edges[b])}" for a, b in turns.reshape(-1, 2)]
        return f"{self.line.name()} is in {joined(spans)}"


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


def _only_value(line: Line, lower: float, upper: float, past: Past) -> str:
    """The one value that was ever seen in an interval, if there is only one."""
    seen = np.concatenate([past.x.line(line), past.y.line(line)])
    inside = seen[(seen > lower) & (seen <= upper)]
    return number(float(inside[0])) if len(inside) and (inside == inside[0]).all() else ""
