"""Two recordings of one device's reports, as files: one for each set-up of sources."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import count
from cloakwork.auditing.report_values import ReportReader, is_number, printable
from cloakwork.errors import ReadingError
from cloakwork.readings import HEADER, PLAN, TableFile, as_source, cell_texts, path_of, size_of

_BLANK = 'a blank line. Where a report is empty write "", with the quotation marks; otherwise remove the line'
_TWICE = (
    "Noise was used twice, or someone else publishes in the sensor's name: these are not reports of one honest device. "
    "Simulated ones cannot be audited so: each simulation counts from 0"
)


@dataclass(frozen=True, eq=False)
class Recordings:
    """Reports on both inputs, in order; call it as a mechanism for the next reports of an input.

    An audit uses `ceiling` reports of each. `identical` means that these are the same in both recordings.
    """

    reports: tuple[NDArray[Any], NDArray[Any]]
    reader: ReportReader
    _next: list[int] = field(default_factory=lambda: [0, 0], repr=False)

    @property
    def lengths(self) -> tuple[int, int]:
        """Reports in each recording."""
        return len(self.reports[0]), len(self.reports[1])

    @property
    def ceiling(self) -> int:
        """Reports in the shorter recording."""
        return min(self.lengths)

    @property
    def identical(self) -> bool:
        """Whether the reports are the same one by one, as far as both recordings go."""
        first, second = (part[: self.ceiling] for part in self.reports)
        if first.dtype == second.dtype != object:
            return first.tobytes() == second.tobytes()
        return list(map(repr, first.tolist())) == list(map(repr, second.tolist()))

    def __call__(self, database: int, size: int, rng: np.random.Generator) -> NDArray[Any]:  # noqa: ARG002 - recorded
        """The next reports on an input."""
        start = self._next[database]
        self._next[database] += size
        return self.reports[database][start : start + size]


def read_recordings(
    sources: Sequence[object],
    *,
    columns: Sequence[str] = (),
    sensor: str | None = None,
    most: int = 500_000,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> Recordings:
    """Read two recordings, the first `most` reports of each. Rows that follow them are never judged.

    Parameters
    ----------
    sources
        Of input 0 and of input 1: files of CSV with a header, JSON Lines or Parquet, or tables of Arrow, Polars
        or pandas. They may be pipes.
    columns
        The columns that make a report. Optional where there is only one column, and for a file of readings, which has
        the columns `time,sensor,seq,steps`: its steps are taken, each sequence number once.
    sensor
        Which sensor of a file of readings; optional where there is only one.
    progress
        Called with the bytes read so far and the bytes of both files. Pipes do not count.

    Notes
    -----
    The same file twice is refused, and so are files of readings that share a sequence number: with two values its noise
    was used twice, with one value it is the same reading.

    Blank lines are refused, except at the end of a file: where a report is empty, the row has an empty column.
    """
    count("most", most)
    if len(sources) != 2:
        raise ReadingError(f"{len(sources)} recordings: give two, one made with each set-up.")
    given = [as_source(source) for source in sources]
    files, sizes = [path_of(source) for source in given], [size_of(source) for source in given]
    if given[0] is given[1] or (all(isinstance(source, Path) for source in given) and files[0].samefile(files[1])):
        raise ReadingError(f"{files[0]} is given twice: an audit compares two recordings, one made with each set-up.")
    recorded: list[_Recording] = []
    for source, before in zip(given, (0, sizes[0]), strict=True):
        recording = _Recording(TableFile(source), tuple(columns), sensor, recorded[0] if recorded else None)
        recording.read(most, lambda done, before=before: progress(before + done, sum(sizes)))  # type: ignore[misc]
        recorded.append(recording)
    reader = ReportReader()
    reader.decide([*recorded[0].reports, *recorded[1].reports])
    first, second = (
        reader.read(part.reports, where=lambda index, path=part.path: f"report {index + 1:,} of {path}")  # type: ignore[misc]
        for part in recorded
    )
    return Recordings((first, second), reader)


class _Recording:
    """The reports of one file as texts; those of readings are checked against the `earlier` recording."""

    def __init__(
        self, rows: TableFile, columns: tuple[str, ...], sensor: str | None, earlier: "_Recording | None"
    ) -> None:
        self.path, self._rows, self._earlier = rows.path, rows, earlier
        self.reports: list[str] = []
        self.sensor, self._chosen = sensor, sensor
        self.plan: str = "" if earlier is None else earlier.plan
        self.values: dict[str, str] = {}  # by sequence number, which is its text: 7 and 07 differ
        self.is_readings = set(HEADER) <= set(rows.names) and not columns
        if self.is_readings:
            self._columns: tuple[str, ...] = ("sensor", "seq", "steps", *({PLAN} & set(rows.names)))
        elif sensor is not None:
            raise ReadingError(
                f"{self.path}: a sensor can only be chosen from readings, which have the columns {','.join(HEADER)}.",
                parameter="sensor",
            )
        else:
            self._columns = self._chosen_columns(columns)

    def read(self, most: int, progress: Callable[[int], None]) -> None:
        """Read up to `most` reports."""
        reports = self._values(progress) if self.is_readings else self._cells(progress)
        self.reports = list(islice(reports, most))
        if not self.reports:
            of_sensor = f" of sensor {self._chosen}" if self._chosen else ""
            raise ReadingError(f"{self.path}: there is no report in it{of_sensor}.", path=str(self.path))

    def _lines(self, progress: Callable[[int], None]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The cells of each row and its line; refuses a line that is none, and a blank one before the last row."""
        blank = 0
        for batch in self._rows.batches(self._columns):
            rows = dict(zip(batch.numbers.tolist(), zip(*map(cell_texts, batch.columns), strict=True), strict=True))
            for number in range(batch.first, batch.end):
                if number not in rows and number not in batch.broken:
                    blank = blank or number
                    continue
                if blank:
                    raise self._error(_BLANK, blank)
                if number in batch.broken:
                    raise self._error(f"it has {batch.broken[number]}", number)
                yield number, rows[number]
            progress(min(self._rows.bytes_read, self._rows.size))

    def _cells(self, progress: Callable[[int], None]) -> Iterator[str]:
        """Reports of the chosen columns."""
        return (",".join(cells) for _, cells in self._lines(progress))

    def _values(self, progress: Callable[[int], None]) -> Iterator[str]:
        """Values of one sensor, each sequence number once."""
        for number, cells in self._lines(progress):
            sensor, seq, value, *plan = (cell.strip() for cell in cells)
            self.sensor = self.sensor or sensor
            if self._chosen and sensor != self._chosen:
                continue
            if sensor != self.sensor:
                two = f"readings of {self.sensor[:64]!r} and of {sensor[:64]!r}: choose a sensor"
                raise self._error(two, number, parameter="sensor")
            if plan and plan[0]:
                self.plan = self.plan or plan[0]
                if plan[0] != self.plan:
                    raise self._error(f"made under the plan {plan[0][:12]!r}, others under {self.plan[:12]!r}", number)
            if self._is_new(number, seq, value):
                yield value

    def _is_new(self, row: int, seq: str, value: str) -> bool:
        """Whether a number is new in this recording; the same reading may come again. `row` is for messages."""
        earlier = self._earlier
        if earlier is not None and earlier.is_readings and earlier.sensor != self.sensor:
            both = f"{str(earlier.sensor)[:64]!r} in {earlier.path} and {str(self.sensor)[:64]!r} in {self.path}"
            raise ReadingError(f"readings of {both}: both recordings must be of one sensor.")
        fault = ""
        if earlier is not None and seq in earlier.values:
            fault = f"is in {earlier.path} too: they are one recording, or overlap. Give two made one after the other"
            if earlier.values[seq] != value:
                fault = f"has another value in {earlier.path}. {_TWICE}"
        elif self.values.get(seq, value) != value:
            fault = f"has two values. {_TWICE}"
        if fault:
            raise self._error(f"number {printable(seq)} {fault}", row)
        new = seq not in self.values
        self.values[seq] = value
        return new

    def _chosen_columns(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        names = self._rows.names
        known = ", ".join(name[:40] for name in names[:10])
        if not columns and all(map(is_number, names)):
            raise ReadingError(
                f"{self.path}: the first line is {known}: it must name the columns. Add a line with names before it, "
                "or choose the column if this is its name.",
                parameter="columns",
            )
        if not columns and len(names) > 1:
            raise ReadingError(
                f"{self.path}: choose which of its columns make the report: {known}.", parameter="columns"
            )
        for name in columns:
            if names.count(name) != 1:
                raise ReadingError(f"{self.path}: there is no single column {name!r}. It has {known}.", column=name)
        return columns or names

    def _error(self, problem: str, row: int, **values: object) -> ReadingError:
        return ReadingError(f"{self.path}, row {row:,}: {problem}.", path=str(self.path), row=row, **values)
