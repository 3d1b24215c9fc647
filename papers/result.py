"""What an experiment returns: numbers that print as tables, travel as JSON and draw as a picture."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, final

from matplotlib.figure import Figure
from pydantic import TypeAdapter

from papers.drawing import styled


@dataclass(frozen=True)
class Table:
    """Text in rows and columns; the first column names the rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Goal:
    """What an experiment has to show, what it showed, and whether that is enough."""

    text: str
    reached: str
    met: bool


class Agreement(StrEnum):
    """Whether a printed claim holds."""

    AGREES = "agrees"
    CONSISTENT = "consistent"  # a lower bound on a rate: no measurement can confirm it, and none contradicts it
    LOOSER = "holds, but is loose"
    WRONG = "wrong as printed"
    NARROW = "does not carry over"  # true in the paper's model, false for real sources, readings or noise
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, where it is, what the experiment found, and the verdict."""

    text: str
    source: str
    found: str
    verdict: Agreement


_ERRORS = 5.0  # standard errors by which two runs may differ
_OWN = "numbers"
_LISTED = 6  # numbers of a list that a cell shows
_SHARE, _PART = 0.12, 0.5  # a comparison that tolerates more, absolutely or relatively, could hardly fail


@dataclass(frozen=True)
class Measure:
    """A number that every run repeats within the errors of both, whatever its size and seed.

    `error` is its standard error, 0 where no chance is involved. `slack` allows for other differences of a quick run,
    such as a coarser grid. A `share` lies between 0 and 1 and is compared absolutely.
    """

    name: str
    value: float
    error: float = 0.0
    slack: float = 0.0
    share: bool = False

    def agrees(self, other: "Measure") -> bool:
        """Whether two runs agree within five standard errors of their difference."""
        return abs(self.value - other.value) <= self.tolerance(other)

    def tolerance(self, other: "Measure") -> float:
        """How far apart two runs may be."""
        chance = _ERRORS * math.hypot(self.error, other.error)
        rounding = 1e-6 * max(abs(self.value), abs(other.value))
        return chance + max(self.slack, other.slack) + rounding

    def telling(self, other: "Measure", *, wider: float = 1.0) -> bool:
        """Whether the comparison is sharp enough to fail; a `wider` one may tolerate more."""
        return self.tolerance(other) <= wider * (_SHARE if self.share else _PART * abs(self.value))


class Finding(ABC):
    """The numbers of one experiment.

    A concrete finding is a frozen dataclass of plain values (numbers, texts, tuples, and dataclasses of these), so that
    it can be written as JSON and read back. Fields that hold times have `compare=False`; all others depend on the seed
    alone.
    """

    size: ClassVar[tuple[float, float]] = (8.0, 5.0)
    """Width and height of the picture in inches."""

    @abstractmethod
    def draw(self, figure: Figure) -> None:
        """Draw the numbers on an empty figure."""

    def goals(self) -> tuple[Goal, ...]:
        """What a full run has to show."""
        return ()

    def claims(self) -> tuple[Claim, ...]:
        """What the papers state and whether it holds; judged on full runs only."""
        return ()

    def measures(self) -> tuple[Measure, ...]:
        """The numbers by which runs are compared."""
        return ()

    def text(self) -> str:
        """How to read the picture and what it shows, with the numbers of this run."""
        return ""


def numbers_in(value: object, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield all numbers of a finding with their names, except for times."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from numbers_in(item, f"{name}[{index}]")
    elif is_dataclass(value):
        for field in fields(value):
            if field.compare:
                yield from numbers_in(getattr(value, field.name), f"{name}.{field.name}".lstrip("."))


def tables_of(finding: Finding) -> tuple[Table, ...]:
    """Return the numbers of a finding: one table for its own values, and one for each list in it, at any depth.

    A row of an inner list begins with the values of the item that it belongs to.
    """
    rows: dict[str, list[dict[str, str]]] = {}
    _collect(finding, _OWN, {}, rows)
    tables = []
    for title, found in rows.items():
        columns = tuple(dict.fromkeys(name for row in found for name in row))
        if columns:
            tables.append(Table(title, columns, tuple(tuple(row.get(name, "") for name in columns) for row in found)))
    return tuple(tables)


def _collect(item: Any, title: str, before: dict[str, str], rows: dict[str, list[dict[str, str]]]) -> None:
    """Add the row of a dataclass, then the rows of the lists of dataclasses that it has."""
    row, inner = dict(before), {}
    pending = [("", item)]
    while pending:
        prefix, one = pending.pop(0)
        for field in fields(one):
            name, value = f"{prefix}{field.name}", getattr(one, field.name)
            if isinstance(value, tuple) and value and is_dataclass(value[0]):
                inner[name] = value
            elif is_dataclass(value) and "__str__" not in vars(type(value)):
                pending.append((f"{name}.", value))
            else:
                row[name] = _cell(value)
    rows.setdefault(title, []).append(row)
    for name, values in inner.items():
        for value in values:
            _collect(value, *((name, {}) if title == _OWN else (f"{title}.{name}", row)), rows)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        return " ".join(map(_cell, value[:_LISTED])) + (f" ... ({len(value)})" if len(value) > _LISTED else "")
    return "-" if value is None else str(value)


@final
@dataclass(frozen=True)
class Result:
    """One run of an experiment."""

    name: str
    title: str
    quick: bool
    seed: int
    finding: Finding

    def tables(self) -> tuple[Table, ...]:
        """All numbers of the finding; after a full run also the claims and the goals."""
        tables = list(tables_of(self.finding))
        if not self.quick:
            claims = [(one.text, one.source, one.found, str(one.verdict)) for one in self.finding.claims()]
            goals = [(one.text, one.reached, "met" if one.met else "MISSED") for one in self.finding.goals()]
            if claims:
                tables.append(Table("Claims of the papers", ("claim", "source", "found", "verdict"), tuple(claims)))
            if goals:
                tables.append(Table("Goals", ("goal", "reached", ""), tuple(goals)))
        return tuple(tables)

    @property
    def met(self) -> bool:
        """Whether all goals are met."""
        return all(goal.met for goal in self.finding.goals())

    def to_json(self) -> Mapping[str, Any]:
        """Plain values, ready for `json.dumps`."""
        adapter: TypeAdapter[Any] = TypeAdapter(type(self.finding))
        head = {"experiment": self.name, "title": self.title, "quick": self.quick, "seed": self.seed}
        return head | {"finding": adapter.dump_python(self.finding, mode="json")}

    def draw(self, path: Path) -> None:
        """Write the picture, in the format of the file's suffix."""
        with styled():
            figure = Figure(figsize=self.finding.size, layout="constrained")
            self.finding.draw(figure)
            figure.savefig(path, dpi=150)
