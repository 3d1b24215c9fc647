"""Files of coefficients. They are public, but whoever gives a file of data by mistake must not see it in a message."""

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from cloakwork.cli.output import counted
from cloakwork.errors import InputError
from cloakwork.series import Coefficients

FORM = "give one coefficient a line, from lag 0 on, or two columns, lag and coefficient"
_SHOWN = 5
_MOST_LAGS = 2**24
_FURTHEST = 2**31


def read_coefficients(path: Path) -> Coefficients:
    """A file with one coefficient a line, from lag 0 on; or two columns, lag and coefficient."""
    if not path.is_file():
        raise InputError(f"--filter {path}: there is no such file.")
    lines = _lines(path)
    if not lines:
        raise InputError(f"{path} is empty: {FORM}.", path=str(path))
    rows = _rows(lines, path)
    begin = 1 if all(map(_is_name, rows[0])) else 0
    if begin == len(rows):
        raise InputError(f"{path} has a line of names and no coefficients: {FORM}.", path=str(path))
    if not begin and all(re.fullmatch(r"[+-]?[0-9]+,[0-9]+", line) for line in lines):
        raise InputError(
            f"{path}: each line may be a lag and a coefficient, or a number with a decimal comma. Make the first line "
            "lag,coefficient, or write decimal points.",
            path=str(path),
        )
    values = [_numbers(row, number, path) for number, row in enumerate(rows[begin:], begin + 1)]
    if len(rows[0]) == 1:
        return Coefficients([row[0] for row in values], label=path.stem)
    return _by_lag(values, begin + 1, path)


def described(one: Coefficients) -> str:
    """What was read of a file, in a line.

    >>> described(Coefficients([0.5, 0.25, 0.25], first=-1))
    '3 coefficients from lag -1: 0.5, 0.25, 0.25'
    """
    values = [f"{value:g}" for value in one.values]
    more = ", ..." if len(values) > _SHOWN else ""
    return f"{counted(len(values), 'coefficient')} from lag {one.first}: {', '.join(values[:_SHOWN])}{more}"


def _lines(path: Path) -> list[str]:
    """All lines up to the last that is not empty; refused where an empty one is among them."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = [line.rstrip("\n") for line in file]
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a CSV file of numbers.", path=str(path)) from None
    while lines and not lines[-1].strip(" \t,;"):
        del lines[-1]
    for number, line in enumerate(lines, 1):
        if not line.strip(" \t,;"):
            raise _refusal(path, number, "it is empty. Write 0 for a lag without a coefficient, or take the line out")
    return lines


def _rows(lines: Sequence[str], path: Path) -> list[list[str]]:
    """The cells of each line; all lines have as many, one or two."""
    delimiter = next((one for one in "\t;" if any(one in line for line in lines)), ",")
    rows: list[list[str]] = []
    for number, line in enumerate(lines, 1):
        try:
            [cells] = csv.reader([line], delimiter=delimiter, strict=True)
        except csv.Error:
            raise _refusal(path, number, "it has a quotation mark that is not closed, or text after one") from None
        if len(cells) > 2:
            raise _refusal(path, number, f"it has {len(cells)} cells: {FORM}")
        if rows and len(cells) != len(rows[0]):
            raise _refusal(path, number, f"it has {counted(len(cells), 'cell')}, and line 1 has {len(rows[0])}: {FORM}")
        rows.append([cell.strip() for cell in cells])
    return rows


def _is_name(cell: str) -> bool:
    """Whether this is a name of a column, and no number that someone mistyped, such as o.5."""
    return cell[:1].isalpha() and _number(cell) is None and not re.search(r"\.[0-9]", cell)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _numbers(row: Sequence[str], number: int, path: Path) -> list[float]:
    found = [_number(cell) for cell in row]
    good = [value for value in found if value is not None and abs(value) < float("inf")]
    if len(good) < len(found):
        raise _refusal(path, number, "it must have finite numbers only, with decimal points, such as 0.25")
    return good


def _by_lag(rows: Sequence[Sequence[float]], begin: int, path: Path) -> Coefficients:
    given: dict[int, float] = {}
    for number, (lag, value) in enumerate(rows, begin):
        if lag != round(lag) or abs(lag) >= _FURTHEST or round(lag) in given:
            raise _refusal(path, number, "lags are whole numbers, each once; below 0 they look ahead")
        given[round(lag)] = value
    first, last = min(given), max(given)
    if last - first >= _MOST_LAGS:
        raise InputError(f"{path}: lags from {first} to {last} are too many. Give at most {_MOST_LAGS:,}.")
    return Coefficients([given.get(lag, 0.0) for lag in range(first, last + 1)], first=first, label=path.stem)


def _refusal(path: Path, number: int, why: str) -> InputError:
    return InputError(f"{path}, line {number}: {why}.", path=str(path), line=number)
