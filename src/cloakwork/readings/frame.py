"""The readings of one moment, and rows that are no readings: what a file and a collector have in common."""

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray

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
