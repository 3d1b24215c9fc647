"""Readings in CSV or Parquet files: `time,sensor,seq,value`, streamed by row or by frame, whatever the file's size."""

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
from cloakwork.readings.csv_lines import CsvLines, lines_of
from cloakwork.sensor.wire import ReplayCheck

HEADER = ("time", "sensor", "seq", "value")
ALARM = "alarm: one seq with two values"
REMEMBERED = 256  # sequence numbers of each sensor among which two values of one are noticed
OPEN_FRAMES = 64  # frames that may be incomplete at once; a row for an older one is too late
SHOWN_PROBLEMS = 20
LARGEST = 2**62
_BLOCK = 1 << 13  # bytes in memory at once
# the form of nearly every row; others are parsed cell by cell
_USUAL = re.compile(r"([0-9]{1,18}),([A-Za-z0-9_-]+),([0-9]{1,18}),(-?[0-9]{1,18})").fullmatch
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
    """A file of readings: iterate over it for frames in order of time, over `readings()` for its rows.

    During and after the iteration `problems` holds the rows that were left out and why, `rows` how many were read, good
    or bad, and `bytes_read` how much of the file. Rows of the sensors in `others` are skipped.
    """

    def __init__(self, path: str | Path, sensor_ids: tuple[str, ...], *, others: tuple[str, ...] = ()) -> None:
        self.path = Path(path)
        self.problems = Problems()
        self.rows = 0
        self.bytes_read = 0
        self._index = {name: k for k, name in enumerate(sensor_ids)}
        self._others = frozenset(others)

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        try:
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
        number = 0 if self._is_parquet else 1  # a CSV file has a header
        for line in self._parquet_lines() if self._is_parquet else self._csv_lines():
            number += 1
            usual = _USUAL(line)
            if usual is not None and usual[2] in self._index:
                self.rows += 1
                yield ReadingRow(number, int(usual[1]), self._index[usual[2]], int(usual[3]), int(usual[4]))
            elif line.strip() and (row := self._parse(number, line)) is not None:
                yield row

    @property
    def first_time(self) -> int:
        """The time of the first frame."""
        return next(iter(ReadingsFile(self.path, tuple(self._index), others=tuple(self._others)))).time

    @property
    def _is_parquet(self) -> bool:
        return self.path.suffix.lower() in {".parquet", ".pq"}

    def _csv_lines(self) -> Iterator[str]:
        with CsvLines(self.path, block=_BLOCK) as lines:
            self._check_header(lines.head)
            for block in lines.blocks:
                self.bytes_read = lines.bytes_read
                yield from lines_of(block, errors="replace")
            self.bytes_read = lines.bytes_read

    def _parquet_lines(self) -> Iterator[str]:
        """The rows as a CSV file has them, so that they are checked the same way."""
        import pyarrow as pa  # noqa: PLC0415 - large, and not needed for CSV
        import pyarrow.parquet as pq  # noqa: PLC0415

        size, rows, readable = self.size, 0, True
        try:
            with pq.ParquetFile(self.path) as file:
                if not set(HEADER) <= set(file.schema_arrow.names):
                    raise ReadingError(f"{self.path}: the columns must be {','.join(HEADER)}.", path=str(self.path))
                for batch in file.iter_batches(batch_size=_BLOCK, columns=list(HEADER)):
                    for row in zip(*(batch[name].to_pylist() for name in HEADER), strict=True):
                        yield ",".join(map(str, row))
                    rows += len(batch)
                    self.bytes_read = size * rows // file.metadata.num_rows
        except pa.ArrowException:
            readable = False  # Arrow's own messages show cells
        if not readable:
            raise ReadingError(f"{self.path} is not a whole Parquet file.", path=str(self.path))

    def no_readings(self) -> ReadingError:
        """The error for a file without a single usable row."""
        first = f"; {self.problems.shown[0]}." if self.problems.shown else "."
        return ReadingError(f"{self.path}: no usable reading in {self.rows} rows{first}")

    def _check_header(self, head: bytes) -> None:
        expected = f"the first line must be {','.join(HEADER)}"
        if not head:
            raise ReadingError(f"{self.path}: the file is empty: {expected}.")
        if head.startswith(b"PAR1"):
            raise ReadingError(f"{self.path}: a Parquet file under another name: give it one that ends in .parquet.")
        if tuple(_cells(head.decode("utf-8", "replace"))) != HEADER:
            raise ReadingError(f"{self.path}: {expected}.")

    def _parse(self, number: int, line: str) -> ReadingRow | None:
        """A row in any valid form, or None with the reason among the problems."""
        self.rows += 1
        cells = _cells(line)
        if len(cells) != len(HEADER):
            self.problems.add(number, f"{len(cells)} columns instead of {len(HEADER)}")
            return None
        sensor = cells.pop(1)
        if sensor in self._others:
            self.rows -= 1
            return None
        if sensor not in self._index:
            self.problems.add(number, "unknown sensor", f" {sensor[:64]!r}")
            return None
        for name, cell in zip(("time", "seq", "value"), cells, strict=True):
            if not _WHOLE(cell) or abs(int(cell)) >= LARGEST:
                self.problems.add(number, f"{name} is not a whole number in range")
                return None
        time, seq, value = map(int, cells)
        if time < 0 or seq < 0:
            self.problems.add(number, "time or seq is negative")
            return None
        return ReadingRow(number, time, self._index[sensor], seq, value)


def _cells(line: str) -> list[str]:
    """Cells of a line; readings need no quotation marks, so a mark is just a wrong character."""
    return [cell.strip() for cell in line.split(",")]


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
