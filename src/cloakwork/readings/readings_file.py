"""Readings in CSV files: `time,sensor,seq,value`, streamed by row or by frame, whatever the size of the file."""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.errors import ReadingError
from cloakwork.sensor.wire import ReplayCheck

HEADER = ("time", "sensor", "seq", "value")
ALARM = "alarm: one seq with two values"
REMEMBERED = 256  # sequence numbers of each sensor among which an alarm is noticed
OPEN_FRAMES = 64  # frames that may be under way at once; a row for an older one comes too late
SHOWN_PROBLEMS = 20
LARGEST = 2**62
LONGEST_LINE = 1000  # characters; the rest of a longer line is passed over, and its row refused
# almost every row there is; the others are looked at cell by cell
_USUAL = re.compile(r"([0-9]{1,18}),([A-Za-z0-9_-]+),([0-9]{1,18}),(-?[0-9]{1,18})\n").fullmatch


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


class Row(NamedTuple):
    """One reading: its row in the file, Unix milliseconds, number of the sensor, sequence number, steps."""

    number: int
    time: int
    sensor: int
    seq: int
    value: int


class ReadingRows:
    """The readings of a file, row by row as they stand there; `problems` says which rows were left out and why.

    `rows` is how many were read so far, good or bad, and `bytes_read` how much of the file.
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

    def __iter__(self) -> Iterator[Row]:
        try:
            with self.path.open(encoding="utf-8-sig", errors="replace") as file:
                yield from self._parsed(file)
        except OSError as problem:
            raise ReadingError(f"{self.path}: {problem.strerror}.") from None

    def refusal(self) -> ReadingError:
        """What to raise when no row at all was of use."""
        first = f"; {self.problems.shown[0]}." if self.problems.shown else "."
        return ReadingError(f"{self.path}: no usable reading in {self.rows} rows{first}")

    def _parsed(self, file: TextIO) -> Iterator[Row]:
        lines = self._lines(file)
        header = next(lines, None)
        if header is None:
            raise ReadingError(f"{self.path}: the file is empty. The first line is {','.join(HEADER)}.")
        if header.startswith("PAR1"):
            raise ReadingError(f"{self.path}: a Parquet file. Give the readings as CSV: export them to a .csv file.")
        if tuple(_cells(header)) != HEADER:
            raise ReadingError(f"{self.path}: the first line is not {','.join(HEADER)}.")
        for number, line in enumerate(lines, start=2):
            usual = _USUAL(line)
            if usual is not None and usual[2] in self._index:
                self.rows += 1
                yield Row(number, int(usual[1]), self._index[usual[2]], int(usual[3]), int(usual[4]))
            elif line.strip() and (row := self._parse(number, _cells(line))) is not None:
                yield row

    def _lines(self, file: TextIO) -> Iterator[str]:
        while line := file.readline(LONGEST_LINE):
            self.bytes_read += len(line)
            yield line
            while line and not line.endswith("\n"):
                line = file.readline(LONGEST_LINE)
                self.bytes_read += len(line)

    def _parse(self, number: int, cells: list[str]) -> Row | None:
        """A row in any form that is understood, or None with the reason among the problems."""
        self.rows += 1
        if len(cells) != len(HEADER):
            self.problems.add(number, f"{len(cells)} columns instead of {len(HEADER)}")
            return None
        time, sensor, seq, value = cells
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
        return Row(number, numbers[0] or 0, self._index[sensor], numbers[1] or 0, numbers[2] or 0)


class ReadingsFile:
    """A file of readings; iterate over it for frames in the order of their time.

    After (and during) the iteration `problems` says which rows were left out and why, and `rows` how many were read.
    """

    def __init__(self, path: str | Path, sensor_ids: tuple[str, ...]) -> None:
        self._file = ReadingRows(path, sensor_ids)
        self._sensors = len(sensor_ids)
        self._replay_checks = [ReplayCheck(REMEMBERED) for _ in sensor_ids]

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._file.path

    @property
    def problems(self) -> Problems:
        """Rows that were left out so far."""
        return self._file.problems

    @property
    def rows(self) -> int:
        """Rows read so far, good or bad."""
        return self._file.rows

    @property
    def bytes_read(self) -> int:
        """How much of the file was read so far."""
        return self._file.bytes_read

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self._file.size

    def __iter__(self) -> Iterator[Frame]:
        pending: dict[int, Frame] = {}
        finished = -1
        for row in self._file:
            if self._replay_checks[row.sensor].check(row.seq, row.value) == "alarm":
                self.problems.add(row.number, ALARM)
                continue
            if row.time <= finished:
                self.problems.add(row.number, "too late: this frame or a later one was finished already")
                continue
            if row.time not in pending:
                pending[row.time] = Frame(row.time, np.zeros(self._sensors, np.int64), np.zeros(self._sensors, bool))
            self._enter(pending[row.time], row)
            if len(pending) > OPEN_FRAMES:
                finished = min(pending)
                yield pending.pop(finished)
        yield from (pending[time] for time in sorted(pending))
        if self.rows == self.problems.total:
            raise self._file.refusal()

    def _enter(self, frame: Frame, row: Row) -> None:
        if frame.present[row.sensor]:
            self.problems.add(row.number, "a second reading of one sensor at one time; the first is kept")
            return
        frame.steps[row.sensor], frame.present[row.sensor] = row.value, True


def _cells(line: str) -> list[str]:
    """Cells of a line; no cell of ours needs quotes, so a quote is just a wrong character."""
    return [cell.strip() for cell in line.split(",")]


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
