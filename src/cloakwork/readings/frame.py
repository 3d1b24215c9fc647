"""What files and a collector have in common, without a library that reads tables: sources, frames and problems."""

import os
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.errors import InputError, ReadingError

HEADER = ("time", "sensor", "seq", "steps")  # columns that readings need, wherever they stand
PLAN = "plan"
ALARM = "alarm: one seq with two values"
OTHER_PLAN = "made under another plan: give that plan,"
SHOWN_PROBLEMS = 20


@dataclass(frozen=True, eq=False)
class Frame:
    """The readings of one moment: steps of each sensor, and which are `present`: they reported a measurement.

    `aside` are sensors that reported and are not present, because their devices say that they cannot measure.
    """

    time: int
    steps: IntArray
    present: NDArray[np.bool_]
    aside: tuple[int, ...] = ()

    @property
    def reported(self) -> int:
        """Number of sensors that reported."""
        return int(self.present.sum()) + len(self.aside)


@dataclass
class Problems:
    """Rows that were left out, counted by reason; the first of them are kept."""

    counts: Counter[str] = field(default_factory=Counter)
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, row: int, reason: str, detail: str = "") -> None:
        """Count one bad row; rows of a batch are judged together, so they come in no order."""
        self.counts[reason] += 1
        if len(self.first) < SHOWN_PROBLEMS or row < self.first[-1][0]:
            insort(self.first, (row, reason + detail))
            del self.first[SHOWN_PROBLEMS:]

    @property
    def shown(self) -> list[str]:
        """The first of them, each with the number of its row."""
        return [f"row {row}: {reason}" for row, reason in self.first]

    @property
    def total(self) -> int:
        """Number of rows left out."""
        return sum(self.counts.values())


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Texts as codes: row k holds `labels[codes[k]]`. Labels are unique."""

    codes: IntArray
    labels: tuple[str, ...]


def as_source(source: object) -> object:
    """A file as a path, a table as it is; nothing else is a source of rows."""
    if isinstance(source, str | os.PathLike):
        return Path(source)
    if not hasattr(source, "__arrow_c_stream__"):
        kind = type(source).__name__
        raise InputError(f"{kind}: give a file, or a table of Arrow, pandas or Polars (not a lazy one).", type=kind)
    return source


def path_of(source: object) -> Path:
    """The path of a file; for a table, its name in messages."""
    return source if isinstance(source, Path) else Path("the table")


def size_of(source: object) -> int:
    """The bytes of a file, 0 for a table; refuses a folder and what is not there."""
    if not isinstance(source, Path):
        return 0
    try:
        if source.is_dir():
            raise ReadingError(f"{source}: a folder. Name the files in it.", path=str(source))
        return source.stat().st_size
    except OSError as problem:
        raise ReadingError(f"{source}: {problem.strerror}.", path=str(source)) from None
