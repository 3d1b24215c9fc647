"""Findings as rows of named numbers: how they travel as JSON, print as tables and are listed."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from cloakwork._checks import FloatArray, IntArray

T = TypeVar("T")
OWN = "numbers"  # the title of the table of what is in no list
_TIMES = ("milliseconds", "seconds")  # no two runs have the same
_LISTED = 6  # numbers of a list that a cell shows


@dataclass(frozen=True)
class Mean:
    """The mean of independent trials, or another estimate, and its standard error.

    >>> f"{Mean(0.123, 0.01)}; {100 * Mean(0.123, 0.01):.1f} %"
    '0.1230 ± 0.0100; 12.3 ± 1.0 %'
    """

    value: float
    error: float

    @classmethod
    def of(cls, values: FloatArray) -> "Mean":
        """The mean of at least two trials.

        >>> Mean.of(np.array([1.0, 3.0]))
        Mean(value=2.0, error=1.0)
        """
        return cls(float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))))

    @classmethod
    def over(cls, values: FloatArray, group: IntArray) -> "Mean":
        """The mean of values and its error over groups, from 0 on: what lies in one group is alike.

        >>> Mean.over(np.array([1.0, 1.0, 3.0, 3.0]), np.array([0, 0, 1, 1]))
        Mean(value=2.0, error=1.0)
        """
        value = float(values.mean())
        apart = np.bincount(group, values - value)
        groups = len(np.unique(group))
        return cls(value, math.sqrt(float((apart**2).sum()) * groups / max(groups - 1, 1)) / len(values))

    @classmethod
    def ratio(cls, over: FloatArray, under: FloatArray) -> "Mean":
        """One mean divided by another; trials that both have in common, from the first on, may be correlated.

        >>> Mean.ratio(np.array([2.0, 6.0]), np.array([1.0, 3.0]))
        Mean(value=2.0, error=0.0)
        """
        shared, most = sorted((len(over), len(under)))
        above, below = cls.of(over / over.mean()), cls.of(under / under.mean())
        common = float(np.cov(over[:shared], under[:shared])[0, 1] / over.mean() / under.mean()) / most
        value = float(over.mean() / under.mean())
        return cls(value, value * math.sqrt(max(above.error**2 + below.error**2 - 2 * common, 0.0)))

    @classmethod
    def share(cls, share: float, count: int) -> "Mean":
        """A share of some trials; its error is above 0 even for a share of 0 or 1 (Laplace's rule of succession)."""
        smooth = (share * count + 1) / (count + 2)
        return cls(share, math.sqrt(smooth * (1 - smooth) / count))

    def __rmul__(self, factor: float) -> "Mean":
        return Mean(factor * self.value, abs(factor) * self.error)

    def __format__(self, form: str) -> str:
        form = form or ".4f"
        return f"{self.value:{form}} ± {self.error:{form.removeprefix('+')}}"

    def __str__(self) -> str:
        return format(self)


class Row(SimpleNamespace):
    """Named values: numbers, texts, means, rows, and tuples of these."""


def revived(value: Any) -> Any:
    """Turn parsed JSON back into rows, means and tuples.

    >>> revived({"name": "a", "far": [{"value": 1.0, "error": 0.5}]})
    Row(name='a', far=(Mean(value=1.0, error=0.5),))
    """
    if isinstance(value, list):
        return tuple(map(revived, value))
    if not isinstance(value, dict):
        return value
    found = {name: revived(one) for name, one in value.items()}
    return Mean(**found) if found.keys() == {"value", "error"} else Row(**found)


def pick(items: Iterable[T], **values: object) -> T:
    """Return the first item whose attributes have these values.

    >>> pick([Mean(1.0, 0.0), Mean(2.0, 0.1)], value=2.0).error
    0.1
    """
    return next(picked(items, **values))


def picked(items: Iterable[T], **values: object) -> Iterator[T]:
    """Yield the items whose attributes have these values."""
    return (item for item in items if all(getattr(item, name) == value for name, value in values.items()))


def numbers_in(value: object, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield all numbers of a row with their names, except for times."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from numbers_in(item, f"{name}[{index}]")
    elif hasattr(value, "__dict__") and not isinstance(value, str):
        for part, item in vars(value).items():
            if part not in _TIMES:
                yield from numbers_in(item, f"{name}.{part}".lstrip("."))


@dataclass(frozen=True)
class Table:
    """Text in rows and columns; the first column names the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables_of(finding: Row) -> tuple[Table, ...]:
    """Return one table for what a row has itself, and one for each list of rows in it, at any depth.

    A row of an inner list begins with the values of the row that it belongs to.
    """
    found: dict[str, list[dict[str, str]]] = {}
    _collect(finding, OWN, {}, found)
    tables = []
    for title, rows in found.items():
        columns = tuple(dict.fromkeys(name for row in rows for name in row))
        if columns:
            tables.append(Table(title, columns, tuple(tuple(row.get(name, "") for name in columns) for row in rows)))
    return tuple(tables)


def _collect(item: object, title: str, before: dict[str, str], found: dict[str, list[dict[str, str]]]) -> None:
    """Add one row, then those of the lists that it has."""
    row, inner, pending = dict(before), {}, [("", item)]
    while pending:
        prefix, one = pending.pop(0)
        for name, value in vars(one).items():
            if isinstance(value, tuple) and value and isinstance(value[0], Row | Mean):
                inner[f"{prefix}{name}"] = value
            elif isinstance(value, Row):
                pending.append((f"{prefix}{name}.", value))
            else:
                row[f"{prefix}{name}"] = _cell(value)
    found.setdefault(title, []).append(row)
    for name, values in inner.items():
        for value in values:
            _collect(value, *((name, {}) if title == OWN else (f"{title}.{name}", row)), found)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        return " ".join(map(_cell, value[:_LISTED])) + (f" ... ({len(value)})" if len(value) > _LISTED else "")
    return "-" if value is None else str(value)
