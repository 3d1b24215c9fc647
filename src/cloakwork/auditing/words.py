"""Numbers, values and lists as a person reads them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloakwork.auditing.lines import SPECIALS, Figure, Identity, Special
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
        return _special(int(value), past)
    if isinstance(line, Figure) and line.is_place:
        return number(float(value) + 1)
    if not isinstance(line, Identity):
        return number(float(value))
    for reports in (past.x, past.y):
        found = np.flatnonzero(reports.line(line) == value)
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
    plain = reports.kind is not Kind.FLOAT or entries[0].startswith('"')
    return entries[0] if plain else "not a number" if entries[0] == "nan" else f"exactly {entries[0]}"


def _entry(reports: Reports, place: int, column: int) -> str:
    word = None if reports.words is None else reports.words[place, column]
    if word is not None:
        return f'"{word}"'
    value = float(reports.values[place, column])
    if (value <= -(2.0**63) or value >= 2.0**64) and reports.kind is not Kind.FLOAT:
        return number(value)
    if reports.kind is Kind.FLOAT or not value.is_integer():
        return repr(value)
    # a whole number in full, where a float would have rounded it
    code = int(reports.codes[place, column])
    return str(code - (1 << 64) if value < 0 else code)
