"""What an experiment hands back: numbers that print as tables, travel as JSON and draw as a picture."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

from matplotlib.figure import Figure
from pydantic import TypeAdapter

from cloakwork.lab.style import styled


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
        """The tables of the finding, and one of the goals after a run at full size."""
        goals = () if self.quick else self.finding.goals()
        rows = tuple((goal.text, goal.reached, "met" if goal.met else "MISSED") for goal in goals)
        return (*self.finding.tables(), *([Table("Goals", ("goal", "reached", ""), rows)] if rows else []))

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
