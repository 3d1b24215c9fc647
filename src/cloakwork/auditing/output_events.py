"""Events: sets of reports, each with a test and a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloakwork.auditing.features import IDENTITY, SPECIAL, SPECIALS, place
from cloakwork.auditing.report_samples import Feature, Past, ReportKind, Reports

Mask = NDArray[np.bool_]


class OutputEvent(Protocol):
    """A set of reports."""

    def holds(self, reports: Reports) -> Mask:
        """For each report whether it is in the set."""
        ...

    def describe(self, past: Past) -> str:
        """The event as a sentence; `past` has examples of what codes stand for."""
        ...


@dataclass(frozen=True, eq=False)
class Ranges:
    """The feature falls in one of some ranges, which begin after one of the rising `ends` and reach to the next.

    With `lowest`, the first range has no beginning and reaches to the first end; it has minus infinity. After the last
    end, a range that begins there has no end. NaN is in none.
    """

    feature: Feature
    ends: Sequence[float]
    lowest: bool

    def holds(self, reports: Reports) -> Mask:
        values = reports.feature(self.feature)
        inside = np.full(len(values), self.lowest)
        for end in self.ends:
            inside ^= values > end
        return np.asarray(inside & ~np.isnan(values))

    def describe(self, past: Past) -> str:
        lowers: Sequence[float | None] = [None, *self.ends[1::2]] if self.lowest else self.ends[::2]
        uppers = [*self.ends, np.inf][0 if self.lowest else 1 :: 2]
        spans = [_between(lower, upper) for lower, upper in zip(lowers, uppers, strict=True)]
        words = joined([span for span in spans if span] or ["above infinity"])
        return f"{self.feature.name} is {self._only(past) or words}"

    def _only(self, past: Past) -> str:
        """The one value that was ever seen between two ends, if there is only one."""
        if self.lowest or len(self.ends) != 2:
            return ""
        seen = np.concatenate([reports.feature(self.feature)[self.holds(reports)] for reports in (past.x, past.y)])
        return number(float(seen[0])) if len(seen) and (seen == seen[0]).all() else ""


@dataclass(frozen=True, eq=False)
class OneOf:
    """The feature has one of some values, sorted, shape (k,)."""

    feature: Feature
    values: NDArray[Any]

    def holds(self, reports: Reports) -> Mask:
        found = reports.feature(self.feature)
        places = np.minimum(np.searchsorted(self.values, found), len(self.values) - 1)
        return np.asarray(self.values[places] == found)

    def describe(self, past: Past) -> str:
        shown = [describe_value(self.feature, value, past) for value in self.values[:6]]
        return f"{self.feature.name} is {joined(shown, of=len(self.values))}"


def _between(lower: float | None, upper: float) -> str:
    """The values above `lower` and at most `upper`; empty where there are none."""
    most = "minus infinity" if upper == -np.inf else f"at most {number(upper)}"
    if lower is None:
        return most
    above = "" if lower == np.inf else f"above {number(lower)}"
    return f"{above} and {most}" if upper < np.inf else above


_MOST_ENTRIES = 12


def number(value: float) -> str:
    """A number in a few digits; whole numbers in full."""
    if np.isinf(value):
        return "infinity" if value > 0 else "minus infinity"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value)}"
    return f"{value:.6g}"


def joined(parts: Sequence[str], *, of: int | None = None, by: str = "or") -> str:
    """A list of alternatives: "a", "a or b", "a, b, or one of 3 others".

    >>> joined(["1"]), joined(["1", "2"]), joined(["1", "2"], of=9)
    ('1', '1 or 2', '1, 2, or one of 7 others')
    """
    shown = list(parts[:6])
    others = (len(parts) if of is None else of) - len(shown)
    if others > 0:
        return f"{', '.join(shown)}, or one of {others} others"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {by} {shown[-1]}"


def describe_value(feature: Feature, value: Any, past: Past) -> str:
    """A value of a feature in words: for a code, the report that has it."""
    if feature == SPECIAL:
        return _special(int(value), past)
    if feature.measure is place:
        return number(float(value) + 1)
    if feature != IDENTITY:
        return number(float(value))
    for reports in (past.x, past.y):
        found = np.flatnonzero(reports.feature(feature) == value)
        if len(found):
            return _report(reports, int(found[0]))
    return "a value seen before"


def _special(place: int, past: Past) -> str:
    """The special value; where words among numbers are meant, with one of them."""
    shown = [word for reports in (past.x, past.y) if reports.words is not None for word in reports.words.flat if word]
    return f'{SPECIALS[place]}, such as "{shown[0]}"' if place == 1 and shown else SPECIALS[place]


def _report(reports: Reports, place: int) -> str:
    entries = [_entry(reports, place, column) for column in range(min(reports.width, _MOST_ENTRIES))]
    if reports.width > 1:
        return f"({', '.join(entries)}{', ...' if reports.width > _MOST_ENTRIES else ''})"
    plain = reports.kind is not ReportKind.FLOAT or entries[0].startswith('"')
    return entries[0] if plain else "not a number" if entries[0] == "nan" else f"exactly {entries[0]}"


def _entry(reports: Reports, place: int, column: int) -> str:
    word = None if reports.words is None else reports.words[place, column]
    if word is not None:
        return f'"{word}"'
    value = float(reports.values[place, column])
    if (value <= -(2.0**63) or value >= 2.0**64) and reports.kind is not ReportKind.FLOAT:
        return number(value)
    if reports.kind is ReportKind.FLOAT or not value.is_integer():
        return repr(value)
    # a whole number in full, where a float would have rounded it
    code = int(reports.codes[place, column])
    return str(code - (1 << 64) if value < 0 else code)
