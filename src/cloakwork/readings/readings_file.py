"""Readings in files of any form, or in tables: streamed by row or by frame, whatever their size."""

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.errors import ReadingError
from cloakwork.readings.frame import (
    ALARM,
    HEADER,
    OTHER_PLAN,
    PLAN,
    Frame,
    Problems,
    as_source,
    path_of,
    size_of,
)
from cloakwork.sensor.wire import ReplayCheck

if TYPE_CHECKING:
    from cloakwork.readings.row_batches import RowBatch

TOO_LATE = "too late: this frame or a later one was finished already"
SECOND = "a second reading of one sensor at one time; the first is kept"
REMEMBERED = 256  # sequence numbers of each sensor among which two values of one are noticed
OPEN_FRAMES = 64  # frames that may be incomplete at once; a row for an older one is too late
_UNKNOWN = -1
_FAULTS = (
    "unknown sensor",
    OTHER_PLAN,
    "time is neither ISO 8601 nor Unix milliseconds, from 1970 on",
    "seq is not a whole number in range",
    "steps is not a whole number in range",
    "seq is negative",
)


class ReadingRows(NamedTuple):
    """Some readings: the line of each in the file, Unix milliseconds, index of the sensor, sequence number, steps."""

    number: IntArray
    time: IntArray
    sensor: IntArray
    seq: IntArray
    steps: IntArray

    def at(self, which: NDArray[np.bool_]) -> "ReadingRows":
        """Return some of the readings."""
        return ReadingRows(*(column[which] for column in self))


class ReadingsFile:
    """A file or table of readings: iterate over it for frames in order of time, over `readings()` for its rows.

    During and after the iteration `problems` holds the rows that were left out and why, `rows` how many were read, good
    or bad, and `bytes_read` how much of the file.

    Parameters
    ----------
    source
        A file of CSV, JSON Lines (.jsonl) or Parquet, or a table of Arrow, Polars or pandas. It has the columns
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

    def __repr__(self) -> str:
        return f"ReadingsFile({str(self.path)!r}, {len(self._index)} sensors)"

    @property
    def size(self) -> int:
        """Size of the file in bytes; 0 for a table."""
        return size_of(self._source)

    @property
    def share(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        return self.bytes_read / max(self.size, 1)

    def __iter__(self) -> Iterator[Frame]:
        checks = [ReplayCheck(REMEMBERED) for _ in range(len(self._index))]
        open_frames: dict[int, dict[int, int]] = {}
        finished = -1
        for rows in self.readings():
            for number, time, sensor, seq, steps in zip(*(column.tolist() for column in rows), strict=True):
                if checks[sensor].check(seq, steps) == "alarm":
                    self.problems.add(number, ALARM)
                elif time <= finished:
                    self.problems.add(number, TOO_LATE)
                elif sensor in (frame := open_frames.setdefault(time, {})):
                    self.problems.add(number, SECOND)
                else:
                    frame[sensor] = steps
                    if len(open_frames) > OPEN_FRAMES:
                        finished = min(open_frames)
                        yield self._frame(finished, open_frames.pop(finished))
        for time in sorted(open_frames):
            yield self._frame(time, open_frames[time])
        if self.rows == self.problems.total:
            raise self.no_readings()

    def readings(self) -> Iterator[ReadingRows]:
        """The readings in the order of the file, some at a time."""
        from cloakwork.readings.row_batches import TableFile  # noqa: PLC0415 - Arrow is large, and an optional part

        reader = TableFile(self._source)
        missing = [name for name in HEADER if reader.names.count(name) != 1]
        if missing:
            raise ReadingError(
                f"{self.path}: readings need the columns {','.join(HEADER)}, each once; {','.join(missing)} is not "
                "among those of the first line.",
                path=str(self.path),
                missing=missing,
            )
        for batch in reader.batches([*HEADER, PLAN] if PLAN in reader.names else HEADER):
            self.bytes_read = reader.bytes_read
            yield self._checked(batch)
        self.bytes_read = self.size

    def when_due(self) -> Iterator[Frame]:
        """An empty frame at the time of the first one, then all frames: the file is closed until they are due."""
        if isinstance(self._source, Path) and self._source.is_fifo():
            text = f"{self.path}: a pipe among several sources, each of which is opened twice. Give a file."
            raise ReadingError(text, path=str(self.path))
        first = next(iter(ReadingsFile(self._source, tuple(self._index), plan=self._plan)))
        yield Frame(first.time, np.zeros_like(first.steps), np.zeros_like(first.present))
        yield from self

    def no_readings(self) -> ReadingError:
        """The error for a file without a single usable row."""
        first = f"; {self.problems.shown[0]}." if self.problems.shown else ". Give a file with a row for each reading."
        return ReadingError(f"{self.path}: no usable reading in {self.rows} rows{first}")

    def _frame(self, time: int, readings: dict[int, int]) -> Frame:
        steps, present = np.zeros(len(self._index), np.int64), np.zeros(len(self._index), bool)
        sensors = list(readings)
        steps[sensors], present[sensors] = list(readings.values()), True
        return Frame(time, steps, present)

    def _checked(self, batch: "RowBatch") -> ReadingRows:
        """The good rows of a batch; the others are counted as problems."""
        from cloakwork.readings.columns import (  # noqa: PLC0415 - as above
            OUT_OF_RANGE,
            column_texts,
            column_times,
            column_whole,
        )

        time, sensor, seq, steps, *plan = batch.columns
        names = column_texts(sensor, "sensor")
        plans = column_texts(plan[0], PLAN) if plan and self._plan is not None else None
        known = np.array([self._index.get(name, _UNKNOWN) for name in names.labels] or [0], np.int64)[names.codes]
        rows = ReadingRows(
            batch.numbers,
            column_times(time, "time", seconds_below=0),
            known,
            column_whole(seq, "seq"),
            column_whole(steps, "steps"),
        )
        others = np.array([label not in {"", self._plan} for label in plans.labels] if plans else [False])
        faults = (
            known == _UNKNOWN,
            others[plans.codes] if plans else np.zeros(len(known), dtype=bool),
            rows.time < 0,
            rows.seq == OUT_OF_RANGE,
            rows.steps == OUT_OF_RANGE,
            rows.seq < 0,
        )
        bad = np.logical_or.reduce(faults)
        problems: dict[int, tuple[str, str]] = {number: (reason, "") for number, reason in batch.broken.items()}
        for k in np.flatnonzero(bad).tolist():
            fault = next(place for place, at in enumerate(faults) if at[k])
            detail = f" {names.labels[names.codes[k]][:64]!r}" if fault == 0 else ""
            if fault == 1 and plans is not None:
                detail = f" {plans.labels[plans.codes[k]][:12]!r}"
            problems[int(batch.numbers[k])] = _FAULTS[fault], detail
        self.rows += len(batch.numbers) + len(batch.broken)
        for number, problem in problems.items():
            self.problems.add(number, *problem)
        return rows.at(~bad)


class MergedFrames:
    """The frames of several files of readings in order of time, whichever file has which sensors and times.

    Iterate over it once. `rows` and `problems` are those of all files so far, `share` their progress.
    """

    def __init__(self, files: Sequence[ReadingsFile]) -> None:
        self._files, self._second = files, 0

    @property
    def rows(self) -> int:
        """Number of rows read."""
        return sum(file.rows for file in self._files)

    @property
    def share(self) -> float:
        """How much of the files has been read, from 0 to 1."""
        return sum(file.bytes_read for file in self._files) / max(sum(file.size for file in self._files), 1)

    @property
    def problems(self) -> Problems:
        """Rows left out."""
        total = Problems(Counter({SECOND: self._second}) if self._second else Counter())
        for file in self._files:
            total.counts.update(file.problems.counts)
            total.first += file.problems.first
        return total

    def __iter__(self) -> Iterator[Frame]:
        joined: Frame | None = None
        # as there may be too many files to hold, each is opened when it is due
        for frame in merge(*(file.when_due() for file in self._files), key=lambda frame: frame.time):
            if joined is None or joined.time != frame.time:
                if joined is not None:
                    yield joined
                joined = frame
            else:  # of a sensor in both, the first reading is kept
                self._second += int((joined.present & frame.present).sum())
                steps = np.where(joined.present, joined.steps, frame.steps)
                joined = Frame(frame.time, steps, joined.present | frame.present)
        if joined is not None:
            yield joined
