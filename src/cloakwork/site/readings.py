"""Readings in CSV files: `time,sensor,seq,value`, streamed frame by frame, whatever the size of the file."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.errors import ReadingError

HEADER = ("time", "sensor", "seq", "value")
OPEN_FRAMES = 64  # frames that may be under way at once; a row for an older one comes too late
SHOWN_PROBLEMS = 20
LARGEST = 2**62
LONGEST_LINE = 1000  # characters; the rest of a longer line is passed over, and its row refused


@dataclass(frozen=True, eq=False)
class Frame:
    """The readings of one moment: steps of each sensor, and which sensors reported."""

    time: int
    steps: IntArray
    present: NDArray[np.bool_]


@dataclass
class Problems:
    """Rows that could not be used, counted by reason; the first of each kept with their row number."""

    counts: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)

    def add(self, row: int, reason: str, detail: str = "") -> None:
        """Count one bad row."""
        self.counts[reason] += 1
        if len(self.shown) < SHOWN_PROBLEMS:
            self.shown.append(f"row {row}: {reason}{detail}")

    @property
    def total(self) -> int:
        """Number of rows left out."""
        return sum(self.counts.values())


class ReadingsFile:
    """A file of readings; iterate over it for frames in the order of their time.

    After (and during) the iteration `problems` says which rows were left out and why, and `rows` how many were read.
    """

    def __init__(self, path: str | Path, sensor_ids: tuple[str, ...]) -> None:
        self.path = Path(path)
        self.problems = Problems()
        self.rows = 0
        self.bytes_read = 0
        self._index = {name: k for k, name in enumerate(sensor_ids)}

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        try:
            return self.path.stat().st_size
        except OSError as problem:
            raise ReadingError(f"{self.path}: {problem.strerror}.") from None

    def __iter__(self) -> Iterator[Frame]:
        try:
            with self.path.open(encoding="utf-8-sig", errors="replace") as file:
                yield from self._frames(file)
        except OSError as problem:
            raise ReadingError(f"{self.path}: {problem.strerror}.") from None

    def _frames(self, file: TextIO) -> Iterator[Frame]:
        rows = self._rows(file)
        header = next(rows, None)
        if header is None:
            raise ReadingError(f"{self.path}: the file is empty. The first line is {','.join(HEADER)}.")
        if tuple(header) != HEADER:
            raise ReadingError(f"{self.path}: the first line is not {','.join(HEADER)}.")
        pending: dict[int, Frame] = {}
        finished = -1
        for number, row in enumerate(rows, start=2):
            parsed = self._parse(number, row) if row != [""] else None
            if parsed is None:
                continue
            time, sensor, value = parsed
            if time <= finished:
                self.problems.add(number, "too late: this frame or a later one was finished already")
                continue
            if time not in pending:
                pending[time] = Frame(time, np.zeros(len(self._index), np.int64), np.zeros(len(self._index), bool))
            self._enter(number, pending[time], sensor, value)
            if len(pending) > OPEN_FRAMES:
                finished = min(pending)
                yield pending.pop(finished)
        yield from (pending[time] for time in sorted(pending))
        if self.rows == self.problems.total:
            raise ReadingError(
                f"{self.path}: no usable reading in {self.rows} rows"
                + (f"; {self.problems.shown[0]}." if self.problems.shown else ".")
            )

    def _enter(self, number: int, frame: Frame, sensor: int, value: int) -> None:
        if frame.present[sensor]:
            self.problems.add(number, "a second reading of one sensor at one time; the first is kept")
            return
        frame.steps[sensor], frame.present[sensor] = value, True

    def _rows(self, file: TextIO) -> Iterator[list[str]]:
        """Cells of one line after the other; no cell of ours needs quotes, so a quote is just a wrong character."""
        while line := file.readline(LONGEST_LINE):
            self.bytes_read += len(line)
            yield [cell.strip() for cell in line.split(",")]
            while line and not line.endswith("\n"):
                line = file.readline(LONGEST_LINE)
                self.bytes_read += len(line)

    def _parse(self, number: int, row: list[str]) -> tuple[int, int, int] | None:
        self.rows += 1
        if len(row) != len(HEADER):
            self.problems.add(number, f"{len(row)} columns instead of {len(HEADER)}")
            return None
        time, sensor, seq, value = row
        if sensor not in self._index:
            self.problems.add(number, "unknown sensor", f" {sensor[:64]!r}")
            return None
        numbers = [_integer(cell) for cell in (time, seq, value)]
        for name, given in zip(("time", "seq", "value"), numbers, strict=True):
            if given is None:
                self.problems.add(number, f"{name} is not a whole number in range")
                return None
        if (numbers[0] or 0) < 0 or (numbers[1] or 0) < 0:
            self.problems.add(number, "time or seq is negative")
            return None
        return numbers[0] or 0, self._index[sensor], numbers[2] or 0


def _integer(text: str) -> int | None:
    if not 0 < len(text) <= 20 or not text.lstrip("+-").isascii() or not text.lstrip("+-").isdigit():
        return None
    try:
        number = int(text)
    except ValueError:
        return None
    return number if abs(number) < LARGEST else None


def write_readings(file: TextIO, sensor_ids: tuple[str, ...], frames: Iterable[tuple[int, int, IntArray]]) -> int:
    """Write frames of (time, seq, steps); returns the number of rows."""
    rows = 0
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADER)
    for time, seq, steps in frames:
        for sensor, value in zip(sensor_ids, steps, strict=True):
            writer.writerow((time, sensor, seq, int(value)))
            rows += 1
    return rows
