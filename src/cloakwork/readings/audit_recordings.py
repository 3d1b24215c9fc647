"""Two recordings of one device's reports, as files: one for each set-up of sources."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import count
from cloakwork.errors import ReadingError
from cloakwork.readings.converted_rows import as_source, path_of
from cloakwork.readings.csv_lines import BROKEN_LINE, CsvLines, Header, lines_of, split_cells
from cloakwork.readings.readings_file import HEADER, PLAN
from cloakwork.readings.report_values import ReportForm, ReportReader, printable

_BLOCK = 1 << 13
_BLANK = "Where a report is empty give the row with empty columns, so that it counts; otherwise remove the line"
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*").fullmatch


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
        return all(repr(one) == repr(other) for one, other in zip(first.tolist(), second.tolist(), strict=True))

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
    form: ReportForm | None = None,
    most: int = 500_000,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> Recordings:
    """Read two recordings, the first `most` reports of each.

    Parameters
    ----------
    sources
        Of input 0 and of input 1: files of CSV with a header, JSON Lines, Parquet or Arrow, or tables of Arrow, Polars
        or pandas. They may be pipes.
    columns
        The columns that make a report. Optional where there is only one column, and for a file of readings, which has
        the columns `time,sensor,seq,steps`: its steps are taken, each sequence number once.
    sensor
        Which sensor of a file of readings; optional where there is only one.
    form
        How reports are read; inferred from all of them by default.
    progress
        Called with the bytes read so far and the bytes of both files. Pipes do not count.

    Notes
    -----
    The same file twice is refused, and so are files of readings that share a sequence number: with two values its noise
    was used twice, with one value it is the same reading.

    In a file of one column a blank line is an empty report, an outcome like others, except at the end of the file.
    """
    count("most", most)
    if len(sources) != 2:
        raise ReadingError(f"{len(sources)} recordings: give two, one made with each set-up.")
    given = [as_source(source) for source in sources]
    files = [path_of(source) for source in given]
    if given[0] is given[1] or _one_file(given):
        raise ReadingError(f"{files[0]} is given twice: an audit compares two recordings, one made with each set-up.")
    sizes = [
        path.stat().st_size if source is path and path.is_file() else 0
        for source, path in zip(given, files, strict=True)
    ]
    earlier: _SequenceNumbers | None = None
    recorded: list[list[str]] = []
    for source, size, before in zip(given, sizes, (0, sizes[0]), strict=True):
        path = path_of(source)
        with CsvLines(source, block=_BLOCK) as lines:
            recording = _Recording(lines, tuple(columns), sensor, most, earlier)
            earlier = recording.sequence_numbers
            reports: list[str] = []
            for texts in recording.texts():
                reports += texts
                if size:
                    progress(before + min(lines.bytes_read, size), sum(sizes))
        recorded.append(reports)
        if not reports:
            of_sensor = f" of sensor {sensor}" if sensor else ""
            raise ReadingError(f"{path}: there is no report in it{of_sensor}.", path=str(path))
    reader = ReportReader(form)
    reader.decide([*recorded[0], *recorded[1]])
    first, second = (
        reader.read(reports, where=lambda index, path=path: f"report {index + 1:,} of {path}")  # type: ignore[misc]
        for reports, path in zip(recorded, files, strict=True)
    )
    return Recordings((first, second), reader)


def _one_file(sources: list[object]) -> bool:
    return all(isinstance(source, Path) and source.exists() for source in sources) and path_of(sources[0]).samefile(
        path_of(sources[1])
    )


class _Recording:
    """The reports of one file as texts; `left` counts down how many are still wanted.

    Rows that follow the last report that is wanted are never judged.
    """

    def __init__(
        self,
        lines: CsvLines,
        columns: tuple[str, ...],
        sensor: str | None,
        most: int,
        earlier: "_SequenceNumbers | None",
    ) -> None:
        self.left = most
        self._lines, self._path = lines, lines.path
        self._header = lines.header()
        self._sensor, self._chosen_sensor = sensor, sensor is not None
        self.sequence_numbers = _SequenceNumbers(self._path, earlier)
        self._is_readings = set(HEADER) <= set(self._header.names) and not columns
        self._blank = 0  # the row of a blank line that is not yet known to end the file
        if not self._is_readings and sensor is not None:
            raise ReadingError(
                f"{self._path}: a sensor can only be chosen from readings, which have the columns {','.join(HEADER)}.",
                argument="sensor",
            )
        self._places = [] if self._is_readings else _places(self._path, self._header, columns)

    def texts(self) -> Iterator[list[str]]:
        """The texts of reports, some at a time, until there are enough."""
        for texts in self._texts():
            self.left -= len(texts)
            yield texts
            if not self.left:
                return

    def _texts(self) -> Iterator[list[str]]:
        number, read = self._lines.first_row, self._values if self._is_readings else self._cells
        for block in self._lines.blocks:
            rows, broken = [], False
            try:
                for line in lines_of(block, errors="backslashreplace"):
                    rows.append(split_cells(line, self._header.delimiter))  # noqa: PERF401 - those before an error count
            except csv.Error:
                broken = True
            start = 0
            while start < len(rows) and self.left:
                batch = rows[start : start + self.left]
                for texts in read(number + start, batch):
                    yield texts[: self.left]
                start += len(batch)
            number += len(rows)
            if broken:
                if self._blank and len(self._header.names) == 1:  # it does not end the file, and so it counts
                    yield [""]
                raise self._error(f"it has {BROKEN_LINE}", number)

    def _cells(self, first: int, rows: list[list[str]]) -> Iterator[list[str]]:
        """Reports of the chosen columns."""
        problem: ReadingError | None = None
        if self._blank or set(map(len, rows)) != {len(self._header.names)}:
            first, rows, problem = self._full_rows(first, rows)
        if self._header.delimiter != ",":
            for index, row in enumerate(rows):
                if any(_DECIMAL_COMMA(row[place]) for place in self._places):
                    rows = rows[:index]
                    problem = self._error("a decimal comma. Write numbers with a point, such as 0.5", first + index)
                    break
        texts = list(map(itemgetter(*self._places), rows))
        yield texts if len(self._places) == 1 else list(map(",".join, texts))
        if problem is not None:
            raise problem

    def _full_rows(self, first: int, rows: list[list[str]]) -> tuple[int, list[list[str]], ReadingError | None]:
        """The number of the first row, the rows up to a problem, and the problem if there is one.

        A blank line of a file with one column is a row, unless it ends the file.
        """
        width = len(self._header.names)
        start, full = self._blank or first, []
        for number, row in enumerate(rows, start=first):
            if self._blank and width == 1:
                full.append([""])
            elif row and self._blank:
                return start, full, self._error(f"a blank line. {_BLANK}", self._blank)
            if row and len(row) != width:
                return start, full, self._error(f"{len(row)} columns, where the first line has {width}", number)
            full += [row] if row else []
            self._blank = 0 if row else number
        return start, full, None

    def _values(self, first: int, rows: list[list[str]]) -> Iterator[list[str]]:
        """Values of one sensor, each sequence number once."""
        names, values = self._header.names, []
        places = [names.index(name) for name in ("sensor", "seq", "steps")]
        planned = names.index(PLAN) if PLAN in names else None
        for number, row in enumerate(rows, start=first):
            if not row:
                continue
            if len(row) != len(names):
                raise self._error(f"{len(row)} columns, where the first line has {len(names)}", number)
            sensor, seq, value = (row[place].strip() for place in places)
            if self._sensor is None:
                self._sensor = sensor
            if sensor != self._sensor:
                if self._chosen_sensor:
                    continue
                two = f"readings of {self._sensor[:64]!r} and of {sensor[:64]!r}: choose a sensor"
                raise self._error(two, number, argument="sensor")
            if planned is not None and (other := self.sequence_numbers.other_plan(row[planned].strip())):
                raise self._error(f"made under the plan {row[planned][:12]!r}, others under {other!r}", number)
            if self.sequence_numbers.is_new(number, sensor, seq, value):
                values.append(value)
        yield values

    def _error(self, problem: str, row: int, **values: object) -> ReadingError:
        return ReadingError(f"{self._path}, row {row:,}: {problem}.", path=str(self._path), row=row, **values)


def _places(path: Path, header: Header, columns: tuple[str, ...]) -> list[int]:
    names = header.names
    known = ", ".join(name[:40] for name in names[:10])
    if not columns and all(map(_is_number, names)):
        raise ReadingError(
            f"{path}: the first line is {known}: it must name the columns. Add a line with names before it, or choose "
            "the column if this is its name.",
            argument="columns",
        )
    if not columns and len(names) > 1:
        raise ReadingError(f"{path}: choose which of its columns make the report: {known}.", argument="columns")
    for name in columns:
        if names.count(name) != 1:
            raise ReadingError(f"{path}: there is no single column {name!r}. It has {known}.", column=name)
    return [names.index(name) for name in columns or names]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _SequenceNumbers:
    """The value of each sequence number of a sensor in one recording, checked against the `earlier` recording.

    A number is its text: 7 and 07 differ.
    """

    def __init__(self, path: Path, earlier: "_SequenceNumbers | None") -> None:
        self.path, self._earlier = path, earlier
        self.sensor: str | None = None
        self.plan: str = "" if earlier is None else earlier.plan
        self.values: dict[str, str] = {}

    def other_plan(self, plan: str) -> str:
        """The plan of all readings before if this one is another, else nothing."""
        self.plan = self.plan or plan
        return self.plan[:12] if plan and plan != self.plan else ""

    def is_new(self, row: int, sensor: str, number: str, value: str) -> bool:
        """Whether a number is new in this recording; the same reading may come again. `row` is for messages."""
        earlier, self.sensor = self._earlier, sensor
        if earlier is not None and earlier.sensor not in {None, sensor}:
            both = f"{str(earlier.sensor)[:64]!r} in {earlier.path} and {sensor[:64]!r} in {self.path}"
            raise ReadingError(f"readings of {both}: both recordings must be of one sensor.")
        shared = earlier is not None and number in earlier.values
        known = earlier.values[number] if earlier is not None and shared else self.values.get(number)
        if shared or known not in {None, value}:
            where = f"{self.path}, row {row:,}: number {printable(number)}"
            fault = _fault(earlier.path if earlier is not None and shared else None, different=known != value)
            raise ReadingError(f"{where} {fault}", path=str(self.path), row=row)
        self.values[number] = value
        return known is None


def _fault(shared: Path | None, *, different: bool) -> str:
    """Why a sequence number is refused that was seen before, in this recording or in the other one, `shared`."""
    if not different:
        return (
            f"is in {shared} too, with the same value: they are one recording, or overlap. Give two that were made one "
            "after the other."
        )
    return (
        f"has {'two values' if shared is None else f'another value in {shared}'}. Noise was used twice, or someone "
        "else publishes in the sensor's name: these are not reports of one honest device. Simulated ones cannot be "
        "audited so: each simulation counts from 0."
    )
