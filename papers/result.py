"""What an experiment hands back: numbers that print as tables, travel as JSON and draw as a picture."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, final

from matplotlib.figure import Figure
from pydantic import TypeAdapter

from papers.style import styled


@dataclass(frozen=True)
class Table:
    """Text in rows and columns; the first column says what a row is."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Goal:
    """What an experiment shall show, what it showed, and whether that is enough."""

    text: str
    reached: str
    met: bool


class Agreement(StrEnum):
    """How a printed claim and what was measured stand to each other."""

    AGREES = "agrees"
    LOOSER = "looser than it need be"
    WRONG = "wrong as printed"
    NARROW = "does not carry over"  # right for what a paper assumes, and not for the real thing
    UNDECIDED = "cannot be told"


@dataclass(frozen=True)
class Claim:
    """Something that a paper says, where it says it, what was found, and how the two stand to each other."""

    text: str
    source: str
    found: str
    verdict: Agreement


_ERRORS = 5.0  # standard errors that two runs may differ by
_SHARE, _PART = 0.12, 0.5  # a comparison that allows more, of a share or in parts of the number, tells nothing


@dataclass(frozen=True)
class Measure:
    """A number that another run, of any size and seed, gives again within the errors of both.

    `error` is its standard error, 0 where it does not depend on chance; `slack` is how far a quick run may be off for
    other reasons, such as a coarser grid. A `share` is between 0 and 1, and compared as such.
    """

    name: str
    value: float
    error: float = 0.0
    slack: float = 0.0
    share: bool = False

    def agrees(self, other: "Measure") -> bool:
        """Whether two runs gave the same, within five standard errors of their difference."""
        return abs(self.value - other.value) <= self.tolerance(other)

    def tolerance(self, other: "Measure") -> float:
        """How far apart two runs may be."""
        chance = _ERRORS * math.hypot(self.error, other.error)
        rounding = 1e-6 * max(abs(self.value), abs(other.value))
        return chance + max(self.slack, other.slack) + rounding

    def telling(self, other: "Measure") -> bool:
        """Whether a comparison could fail by much less than the number itself."""
        return self.tolerance(other) <= (_SHARE if self.share else _PART * abs(self.value))


class Finding(ABC):
    """The numbers of one experiment.

    A concrete finding is a frozen dataclass of plain values (numbers, texts, tuples and such dataclasses), so that it
    can be written as JSON and read back. What a clock measured is left out of comparisons (`field(compare=False)`): all
    else depends on the seed alone.
    """

    size: ClassVar[tuple[float, float]] = (8.0, 5.0)
    """Width and height of the picture in inches."""

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """The numbers for people."""

    @abstractmethod
    def draw(self, figure: Figure) -> None:
        """The numbers as a picture, on an empty figure."""

    def goals(self) -> tuple[Goal, ...]:
        """What was to be shown, if anything; judged at full size only."""
        return ()

    def claims(self) -> tuple[Claim, ...]:
        """What papers say of the same, and whether it holds; judged at full size only."""
        return ()

    def measures(self) -> tuple[Measure, ...]:
        """The numbers by which one run is compared with another."""
        return ()

    def words(self) -> tuple[str, ...]:
        """What the picture shows and how to read it, a few paragraphs, with the numbers of this run."""
        return ()


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
        """The tables of the finding; after a run at full size also what became of the papers' claims and the goals."""
        found = list(self.finding.tables())
        if not self.quick:
            claims = [(one.text, one.source, one.found, str(one.verdict)) for one in self.finding.claims()]
            goals = [(one.text, one.reached, "met" if one.met else "MISSED") for one in self.finding.goals()]
            if claims:
                found.append(Table("What the papers say", ("claim", "where", "found", "verdict"), tuple(claims)))
            if goals:
                found.append(Table("Goals", ("goal", "reached", ""), tuple(goals)))
        return tuple(found)

    @property
    def met(self) -> bool:
        """Whether all goals are met."""
        return all(goal.met for goal in self.finding.goals())

    def to_json(self) -> Mapping[str, Any]:
        """Plain values, ready for `json.dumps`."""
        finding: TypeAdapter[Any] = TypeAdapter(type(self.finding))
        head = {"experiment": self.name, "title": self.title, "quick": self.quick, "seed": self.seed}
        return head | {"finding": finding.dump_python(self.finding, mode="json")}

    def draw(self, path: Path) -> None:
        """Write the picture, in the format that the name asks for."""
        with styled():
            figure = Figure(figsize=self.finding.size, layout="constrained")
            self.finding.draw(figure)
            figure.savefig(path, dpi=150)
