"""What an experiment returns: rows that print as tables, travel as JSON and draw as a picture, and the verdicts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import final

from matplotlib.figure import Figure

from papers.drawing import styled
from papers.rows import Row, Table, tables_of


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

    @classmethod
    def of(cls, holds: bool) -> "Agreement":
        """The verdict on a claim that a number decides."""
        return cls.AGREES if holds else cls.WRONG


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, where it is, what the experiment found, and the verdict."""

    text: str
    source: str
    found: str
    verdict: Agreement


class Finding(Row, ABC):
    """The rows of one experiment, what they say of the papers, and their picture.

    The rows depend on the seed alone, except for times. Text, claims and goals follow from them, so that a result that
    was read back says the same.
    """

    size = (8.0, 5.0)
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

    def text(self) -> str:
        """How to read the picture and what it shows, with the numbers of this run."""
        return ""


@final
@dataclass(frozen=True)
class Result:
    """One run of an experiment, and where it was made.

    Parameters
    ----------
    signature
        The numbers of the probe that was run with it: a result is stale when the probe gives others.
    processor
        The kind of processor that ran the probe. On another, a few numbers may differ.
    libraries
        Versions of the libraries that compute and draw, for information.
    data
        The SHA-256 of each recording that the experiment uses.
    """

    name: str
    title: str
    quick: bool
    seed: int
    finding: Finding
    signature: tuple[float, ...] = ()
    processor: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

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

    def draw(self, path: Path) -> None:
        """Write the picture, in the format of the file's suffix."""
        with styled():
            figure = Figure(figsize=self.finding.size, layout="constrained")
            self.finding.draw(figure)
            figure.savefig(path, dpi=150)
