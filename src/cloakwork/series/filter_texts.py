"""Filters as people write them: window:24, seasonal:24x4, or a CSV file of coefficients.

Coefficients are public, but a file given by mistake may hold data, so no message shows a cell.
"""

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from cloakwork.errors import InputError
from cloakwork.series.filters import (
    Coefficients,
    Decay,
    Filter,
    MovingAverage,
    PowerDecay,
    RunningSum,
    Seasonal,
    Trend,
    WindowSum,
)

FILTER_FORMS = (
    "running-sum, window:24, average:24, decay:0.9, power:1, trend:24, seasonal:24x4 or a CSV file of coefficients"
)
_FILE_FORM = "give one coefficient a line, starting at lag 0, or two columns, lag and coefficient"
_MOST_SHOWN = 5
_MOST_LAGS = 2**24
_LARGEST_LAG = 2**31


def _seasonal(text: str) -> Filter:
    period, times, cycles = text.partition("x")
    return Seasonal(int(period), int(cycles)) if times else Seasonal(int(period))


_FORMS: dict[str, tuple[Callable[[str], Filter], str, str, str]] = {  # how to make it, its parameter, kind and example
    "window": (lambda text: WindowSum(int(text)), "a width", "a whole number", "window:24"),
    "average": (lambda text: MovingAverage(int(text)), "a width", "a whole number", "average:24"),
    "decay": (lambda text: Decay(float(text)), "a rate", "a number", "decay:0.9"),
    "power": (lambda text: PowerDecay(float(text)), "a power", "a number", "power:1"),
    "trend": (lambda text: Trend(int(text)), "a width", "a whole number", "trend:24"),
    "seasonal": (_seasonal, "a period", "whole numbers", "seasonal:24x4"),
}


def parse_filters(texts: Sequence[str]) -> list[Filter]:
    """Convert texts such as trend:24, or names of CSV files of coefficients, to filters.

    >>> [made.name for made in parse_filters(["running-sum", "seasonal:24x4"])]
    ['running-sum', 'seasonal-24x4']
    """
    filters: list[Filter] = []
    for text in texts:
        kind, _, rest = text.partition(":")
        fault = f"there is no such filter. Give {FILTER_FORMS}"
        made: Filter | None = None
        if text.lower().endswith(".csv"):
            made = read_coefficients(Path(text))
        elif kind == "running-sum" and not rest:
            made = RunningSum()
        elif kind in _FORMS:
            make, parameter, number, example = _FORMS[kind]
            fault = (
                f"give {number}, such as {example}" if rest.strip() else f"{kind} needs {parameter}, such as {example}"
            )
            try:
                made = make(rest)
            except InputError as problem:
                fault = f"{problem} Give {FILTER_FORMS}"
            except ValueError:
                pass
        if made is None:
            raise InputError(f"filters={text[:64]}: {fault}.", parameter="filters", filter=text[:64])
        filters.append(made)
    if not filters:
        raise InputError(f"give at least one: {FILTER_FORMS}.", parameter="filters", filter=None)
    return filters


def read_coefficients(path: Path) -> Coefficients:
    """Read a file with one coefficient a line, starting at lag 0, or with two columns, lag and coefficient."""
    if not path.is_file():
        raise InputError(f"filters={path}: there is no such file.", parameter="filters", path=str(path))
    lines = _read_lines(path)
    if not lines:
        raise InputError(f"{path} is empty: {_FILE_FORM}.", path=str(path))
    rows = _split_lines(lines, path)
    first_row = 1 if all(map(_is_column_name, rows[0])) else 0
    if first_row == len(rows):
        raise InputError(f"{path} has a line of names and no coefficients: {_FILE_FORM}.", path=str(path))
    if not first_row and all(re.fullmatch(r"[+-]?[0-9]+,[0-9]+", line) for line in lines):
        raise InputError(
            f"{path}: each line may be a lag and a coefficient, or a number with a decimal comma. Make the first line "
            "lag,coefficient, or write decimal points.",
            path=str(path),
        )
    values: dict[int, float] = {}
    for number, row in enumerate(rows[first_row:], first_row + 1):
        entries = [_number_or_none(cell) for cell in row]
        finite = [entry for entry in entries if entry is not None and abs(entry) < float("inf")]
        if len(finite) < len(entries):
            raise _line_error(path, number, "it must hold finite numbers only, with decimal points, such as 0.25")
        lag = finite[0] if len(row) == 2 else number - first_row - 1
        if lag != round(lag) or abs(lag) >= _LARGEST_LAG or round(lag) in values:
            raise _line_error(path, number, "lags are whole numbers, each once; negative lags look ahead")
        values[round(lag)] = finite[-1]
    first, last = min(values), max(values)
    if last - first >= _MOST_LAGS:
        raise InputError(
            f"{path}: lags from {first} to {last} are too many. Give at most {_MOST_LAGS:,}.", path=str(path)
        )
    return Coefficients([values.get(lag, 0.0) for lag in range(first, last + 1)], first=first, label=path.stem)


def describe_coefficients(filter: Coefficients) -> str:  # noqa: A002 - it is one
    """Summarise coefficients in a line.

    >>> describe_coefficients(Coefficients([0.5, 0.25, 0.25], first=-1))
    '3 coefficients from lag -1: 0.5, 0.25, 0.25'
    """
    values = [f"{value:g}" for value in filter.values]
    number = "1 coefficient" if len(values) == 1 else f"{len(values):,} coefficients"
    more = ", ..." if len(values) > _MOST_SHOWN else ""
    return f"{number} from lag {filter.first}: {', '.join(values[:_MOST_SHOWN])}{more}"


def _read_lines(path: Path) -> list[str]:
    """All lines up to the last that is not empty; empty lines before it are refused."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = [line.rstrip("\n") for line in file]
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a CSV file of numbers.", path=str(path)) from None
    while lines and not lines[-1].strip(" \t,;"):
        del lines[-1]
    for number, line in enumerate(lines, 1):
        if not line.strip(" \t,;"):
            raise _line_error(path, number, "it is empty. Write 0 for a lag without a coefficient, or delete the line")
    return lines


def _split_lines(lines: Sequence[str], path: Path) -> list[list[str]]:
    """The cells of each line: one or two, and the same number in all lines."""
    delimiter = next((sign for sign in "\t;" if any(sign in line for line in lines)), ",")
    rows: list[list[str]] = []
    for number, line in enumerate(lines, 1):
        try:
            [cells] = csv.reader([line], delimiter=delimiter, strict=True)
        except csv.Error:
            raise _line_error(path, number, "it has a quotation mark that is not closed, or text after one") from None
        if len(cells) > 2:
            raise _line_error(path, number, f"it has {len(cells)} cells: {_FILE_FORM}")
        if rows and len(cells) != len(rows[0]):
            raise _line_error(
                path, number, f"its number of cells is {len(cells)}, and line 1 has {len(rows[0])}: {_FILE_FORM}"
            )
        rows.append([cell.strip() for cell in cells])
    return rows


def _is_column_name(cell: str) -> bool:
    """Whether a cell is the name of a column rather than a mistyped number, such as o.5."""
    return cell[:1].isalpha() and _number_or_none(cell) is None and not re.search(r"\.[0-9]", cell)


def _number_or_none(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _line_error(path: Path, number: int, fault: str) -> InputError:
    return InputError(f"{path}, line {number}: {fault}.", path=str(path), line=number)
