"""Numbers, values and lists as a person reads them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakwork.auditing.lines import SPECIALS, Identity, Special
from cloakwork.auditing.reports import Kind, Line, Past, Reports

_MOST_ENTRIES = 12


def number(value: float) -> str:
    """A number in a few digits; whole numbers in full."""
    if np.isinf(value):
        return "infinity" if value > 0 else "minus infinity"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value)}"
    return f"{value:.6g}"


def joined(parts: Sequence[str], *, of: int | None = None) -> str:
    """A list of alternatives: "a", "a or b", "a, b, or one of 3 others".

    >>> joined(["1"]), joined(["1", "2"]), joined(["1", "2"], of=9)
    ('1', '1 or 2', '1, 2, or one of 7 others')
    """
    shown = list(parts[:6])
    others = (len(parts) if of is None else of) - len(shown)
    if others > 0:
        return f"{', '.join(shown)}, or one of {others} others"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def report_words(line: Line, value: Any, past: Past) -> str:
    """What a value of a line stands for: for a code, the report that has it."""
    if isinstance(line, Special):
        return SPECIALS[int(value)]
    if not isinstance(line, Identity):
        return number(float(value))
    for reports in (past.x, past.y):
        found = np.flatnonzero(reports.line(line) == value)
        if len(found):
            return _report(reports, int(found[0]))
    return "a value seen before"


def _report(reports: Reports, place: int) -> str:
    if reports.words is not None:
        return f'"{reports.words[place]}"'
    if reports.width == 1 and reports.kind is Kind.WHOLE:
        return _whole(reports, place)
    entries = [repr(float(entry)) for entry in reports.values[place, :_MOST_ENTRIES]]
    if reports.width == 1:
        return "not a number" if entries[0] == "nan" else f"exactly {entries[0]}"
    if reports.kind is Kind.WHOLE:
        entries = [number(float(entry)) for entry in reports.values[place, :_MOST_ENTRIES]]
    return f"({', '.join(entries)}{', ...' if reports.width > _MOST_ENTRIES else ''})"


def _whole(reports: Reports, place: int) -> str:
    """A whole number in full, where a float would have rounded it."""
    value, code = float(reports.values[place, 0]), int(reports.codes[place, 0])
    if abs(value) >= 2.0**64:
        return number(value)
    return str(code - (1 << 64) if value < 0 else code)
