"""Readings in files of any form, or in tables: streamed by row or by frame, whatever their size."""

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.errors import ReadingError
from cloakwork.readings.converted_rows import as_source, path_of
from cloakwork.readings.csv_lines import BROKEN_LINE, CsvLines, Header, iso_ms, lines_of, split_cells
from cloakwork.sensor.wire import ReplayCheck

HEADER = ("time", "sensor", "seq", "steps")  # columns that readings need, wherever they stand
PLAN = "plan"
ALARM = "alarm: one seq with two values"
OTHER_PLAN = "made under another plan: give that plan,"
REMEMBERED = 256  # sequence numbers of each sensor among which two values of one are noticed
OPEN_FRAMES = 64  # frames that may be incomplete at once; a row for an older one is too late
SHOWN_PROBLEMS = 20
LARGEST = 2**62
_BLOCK = 1 << 13  # bytes in memory at once
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}|[0-9]{20}").fullmatch


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
    """Rows that were left out, counted by reason; the first of them are kept with their row number."""

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


class ReadingRow(NamedTuple):
    """One reading: its line in the file, Unix milliseconds, index of the sensor, sequence number, steps."""

    number: int
    time: int
    sensor: int
    seq: int
    value: int


class ReadingsFile:
    """A file or table of readings: iterate over it for frames in order of time, over `readings()` for its rows.

    During and after the iteration `problems` holds the rows that were left out and why, `rows` how many were read, good
    or bad, and `bytes_read` how much of the file.

    Parameters
    ----------
    source
        A file of CSV, JSON Lines (.jsonl), Parquet or Arrow, or a table of Arrow, Polars or pandas. It has the columns
        of `HEADER`: time as ISO 8601 (UTC without a zone), timestamps or Unix milliseconds, and steps.
    plan
        Id of the plan that the readings must be made under: rows that name another one are left out. None accepts all,
        "" only rows that name none.

    >>> import pyarrow
    >>> rows = {"time": [1000, 1000, 61000], "sensor": ["hall", "attic", "hall"], "seq": [0, 0, 1]}
    >>> frames = ReadingsFile(pyarrow.table(rows | {"steps": [412, 398, 405]}), ("hall", "attic"))
    >>> [(frame.time, frame.steps[frame.present].tolist()) for frame in frames]
    [(1000, [412, 398]), (61000, [405])]
    """

    def __init__(self, source: object, sensor_ids: tuple[str, ...], *, plan: str | None = None) -> None:
        self._source = as_source(source)
        self.path = path_of(self._source)
        self.problems = Problems()
        self.rows = 0
        self.bytes_read = 0
        self._index = {name: k for k, name in enumerate(sensor_ids)}
        self._plan = plan
        self._last_time = "", 0

    @property
    def size(self) -> int:
        """Size of the file in bytes; 0 for a table."""
        if self._source is not self.path:
            return 0
        try:
            if self.path.is_dir():
                raise ReadingError(f"{self.path}: a folder. Name the files in it.", path=str(self.path))
            return self.path.stat().st_size
        except OSError as problem:
            raise ReadingError(f"{self.path}: {problem.strerror}.") from None

    def __iter__(self) -> Iterator[Frame]:
        sensors = len(self._index)
        checks = [ReplayCheck(REMEMBERED) for _ in range(sensors)]
        open_frames: dict[int, Frame] = {}
        finished = -1
        for row in self.readings():
            if checks[row.sensor].check(row.seq, row.value) == "alarm":
                self.problems.add(row.number, ALARM)
                continue
            if row.time <= finished:
                self.problems.add(row.number, "too late: this frame or a later one was finished already")
                continue
            if row.time not in open_frames:
                open_frames[row.time] = Frame(row.time, np.zeros(sensors, np.int64), np.zeros(sensors, bool))
            frame = open_frames[row.time]
            if frame.present[row.sensor]:
                self.problems.add(row.number, "a second reading of one sensor at one time; the first is kept")
            else:
                frame.steps[row.sensor], frame.present[row.sensor] = row.value, True
            if len(open_frames) > OPEN_FRAMES:
                finished = min(open_frames)
                yield open_frames.pop(finished)
        yield from (open_frames[time] for time in sorted(open_frames))
        if self.rows == self.problems.total:
            raise self.no_readings()

    def readings(self) -> Iterator[ReadingRow]:
        """The readings in the order of the file."""
        with CsvLines(self._source, block=_BLOCK) as lines:
            number = lines.first_row - 1
            header = self._header(lines)
            places = [header.names.index(name) for name in HEADER]
            if PLAN in header.names:
                places.append(header.names.index(PLAN))
            for block in lines.blocks:
                self.bytes_read = lines.bytes_read
                for line in lines_of(block, errors="replace"):
                    number += 1
                    if line.strip() and (row := self._parse(number, line, header, places)) is not None:
                        yield row
            self.bytes_read = self.size

    @property
    def first_time(self) -> int:
        """The time of the first frame."""
        again = ReadingsFile(self._source, tuple(self._index), plan=self._plan)
        return next(iter(again)).time

    def no_readings(self) -> ReadingError:
        """The error for a file without a single usable row."""
        first = f"; {self.problems.shown[0]}." if self.problems.shown else ". Give a file with a row for each reading."
        return ReadingError(f"{self.path}: no usable reading in {self.rows} rows{first}")

    def _header(self, lines: CsvLines) -> Header:
        if lines.head.startswith(b"PAR1"):
            raise ReadingError(f"{self.path}: a Parquet file under another name: give it one that ends in .parquet.")
        header = lines.header()
        missing = [name for name in HEADER if header.names.count(name) != 1]
        if missing:
            raise ReadingError(
                f"{self.path}: readings need the columns {','.join(HEADER)}, each once; {','.join(missing)} is not "
                "among those of the first line.",
                path=str(self.path),
                missing=missing,
            )
        return header

    def _parse(self, number: int, line: str, header: Header, places: list[int]) -> ReadingRow | None:
        """One row, or None with the reason among the problems."""
        self.rows += 1
        try:
            cells = split_cells(line, header.delimiter)
        except csv.Error:
            self.problems.add(number, BROKEN_LINE)
            return None
        if len(cells) != len(header.names):
            self.problems.add(number, f"{len(cells)} columns instead of {len(header.names)}")
            return None
        time, sensor, seq, steps, *plans = [cells[place].strip() for place in places]
        row, moment = self._index.get(sensor), self._moment(time)
        if row is None:
            self.problems.add(number, "unknown sensor", f" {sensor[:64]!r}")
        elif self._plan is not None and plans and plans[0] not in {"", self._plan}:
            self.problems.add(number, OTHER_PLAN, f" {plans[0][:12]!r}")
        elif moment is None:
            self.problems.add(number, "time is neither ISO 8601 nor Unix milliseconds, from 1970 on")
        elif not _in_range(seq):
            self.problems.add(number, "seq is not a whole number in range")
        elif not _in_range(steps):
            self.problems.add(number, "steps is not a whole number in range")
        elif int(seq) < 0:
            self.problems.add(number, "seq is negative")
        else:
            return ReadingRow(number, moment, row, int(seq), int(steps))
        return None

    def _moment(self, text: str) -> int | None:
        """Unix milliseconds of a time; most rows have that of the row before."""
        if text != self._last_time[0]:
            try:
                time = int(text) if _WHOLE(text) else iso_ms(text)
            except (ValueError, OverflowError):
                return None
            if not 0 <= time < LARGEST:
                return None
            self._last_time = text, time
        return self._last_time[1]


def _in_range(cell: str) -> bool:
    return _WHOLE(cell) is not None and abs(int(cell)) < LARGEST
