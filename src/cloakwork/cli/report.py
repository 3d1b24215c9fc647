"""What a command hands to the renderer: labelled lines and tables for people, plain values for programs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any, Protocol

from cloakwork._checks import rounded_down, rounded_up
from cloakwork.cli.output import NARROWEST, UNLIMITED, WIDEST, out, print_json, width, wrapped


@dataclass(frozen=True)
class Labelled:
    """A label with its text."""

    label: str
    text: str


@dataclass(frozen=True)
class Table:
    """Columns with a heading each; the first one names the rows."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, heads: Sequence[str], rows: Iterable[Iterable[str]]) -> "Table":
        """A table without its empty columns."""
        body = [tuple(row) for row in rows]
        used = [k for k in range(len(heads)) if k == 0 or any(row[k] for row in body)]
        return cls(tuple(heads[k] for k in used), tuple(tuple(row[k] for k in used) for row in body))


Row = str | Labelled | Table  # a plain string is a paragraph, an empty one a blank line


class Report(Protocol):
    """The result of one command."""

    def rows(self) -> Iterable[Row]:
        """For people, from the answer to what to do next."""

    def as_dict(self) -> Mapping[str, Any]:
        """For programs: every value at full precision."""


def render(report: Report, *, json: bool = False) -> None:
    """Print a report on standard output, as text or as one JSON object."""
    if json:
        print_json(report.as_dict())
    else:
        show(*report.rows())


def show(*rows: Row) -> None:
    """Print rows on standard output."""
    for line in lines(rows, width(out)):
        out.out(line, highlight=False)


def lines(rows: Iterable[Row], most: int = UNLIMITED) -> Iterator[str]:
    """Lay out rows: the labels of neighbouring lines share a column, and long lines wrap under their text.

    >>> list(lines([Labelled("Next", "cloakwork init"), Labelled("", "cloakwork demo")]))
    ['Next  cloakwork init', '      cloakwork demo']
    """
    for _, group in groupby(rows, key=lambda row: isinstance(row, Labelled)):
        block = list(group)
        labels = [len(row.label) + 2 for row in block if isinstance(row, Labelled)]
        indent = max((size for size in labels if size < min(most, WIDEST) // 2), default=0)
        for row in block:
            if isinstance(row, Labelled):
                hang = max(indent, len(row.label) + 2)
                parts = wrapped(row.text, max(most - hang, NARROWEST // 2))  # a long label on a narrow terminal
                yield from (f"{'' if k else row.label:<{hang}}{part}" for k, part in enumerate(parts))
            elif isinstance(row, Table):
                yield from _columns(row, most)
            else:
                yield from wrapped(row, most)


def _columns(shown_table: Table, most: int) -> Iterator[str]:
    """The first column to the left, the others to the right; those that do not fit continue below it."""
    widths = [max(map(len, column)) + 3 for column in zip(shown_table.heads, *shown_table.rows, strict=True)]
    shown = 1
    while True:
        used = list(accumulate(widths[shown:], initial=widths[0] - 3))[1:]
        end = shown + max(1, sum(size <= most for size in used))
        for first, *others in (shown_table.heads, *shown_table.rows):
            cells = zip(others[shown - 1 : end - 1], widths[shown:end], strict=True)
            yield (f"{first:<{widths[0] - 3}}" + "".join(f"{cell:>{size}}" for cell, size in cells)).rstrip()
        if (shown := end) >= len(widths):
            return
        yield ""


def length(value: float, unit: str, *, lower: bool = False) -> str:
    """A distance with two digits, rounded up, or down if it is a lower bound; below a metre in centimetres.

    >>> length(0.1, "m"), length(0.0293, "m", lower=True), length(0.31, "")
    ('10 cm', '2.9 cm', '0.31')
    """
    rounded = rounded_down if lower else rounded_up
    if unit == "m" and 0 < value < 0.995:
        return f"{rounded(100 * value, 2)} cm"
    return f"{rounded(value, 2)} {unit}".rstrip()


def shown_place(at: object) -> str:
    """A place as text: a name, or coordinates to four digits."""
    if isinstance(at, tuple):
        return "(" + ", ".join(shown_place(value) for value in at) + ")"
    return f"{at:.4g}" if isinstance(at, float) else str(at)
