"""Two recordings, as CSV files: one made with each set-up of sources."""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import count
from cloakwork.auditing.sources.forms import Form, Reader
from cloakwork.auditing.sources.lines import Lines
from cloakwork.auditing.sources.numbering import Numbers
from cloakwork.auditing.sources.rows import Rows
from cloakwork.errors import ReadingError
from cloakwork.readings.readings_file import HEADER

_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*").fullmatch


@dataclass(frozen=True, eq=False)
class Recordings:
    """Reports on both inputs, in the order in which they were made; `ceiling` of each are used.

    Call it as a mechanism: it gives the next reports of an input, until there are none left. `identical` says whether
    those that are used are the same in both, one by one.
    """

    reports: tuple[NDArray[Any], NDArray[Any]]
    lengths: tuple[int, int]
    reader: Reader
    identical: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "_next", [0, 0])

    @property
    def ceiling(self) -> int:
        """As many as the shorter one has."""
        return min(map(len, self.reports))

    def __call__(self, database: int, size: int, rng: np.random.Generator) -> NDArray[Any]:  # noqa: ARG002 - all is recorded
        """The next reports on an input."""
        places: list[int] = self._next  # type: ignore[attr-defined]
        first = places[database]
        places[database] += size
        return self.reports[database][first : first + size]


def read_recordings(
    paths: Sequence[str | Path],
    *,
    columns: Sequence[str] = (),
    sensor: str | None = None,
    form: Form | None = None,
    most: int = 500_000,
    progress: Callable[[int, int], None] | None = None,
) -> Recordings:
    """Read two recordings, the first `most` reports of each.

    Parameters
    ----------
    paths
        Two CSV files with a header: of input 0, and of input 1. Commas, semicolons or tabs part the columns, whichever
        the header has most of.
    columns
        Which columns make a report, several for a row of numbers. May be left out where there is only one column, and
        for a file of readings (`time,sensor,seq,value`), whose values are taken, each sequence number once.
    sensor
        Of a file of readings, which sensor's; may be left out where there is one only.
    form
        What each report is taken for; decided by all of them if None.
    progress
        Told now and then how many bytes are read, of how many in both files. Pipes do not count.

    Notes
    -----
    The two must be recordings of their own. One file given twice is refused, and so are files of readings that share a
    sequence number: with two values its noise was used twice, with one value it is the same reading.

    In a file of one column a blank line is a report that is empty, an outcome like others; one at the end of the file
    is not.
    """
    most = count("most", most)
    if len(paths) != 2:
        raise ReadingError(f"{len(paths)} recordings: give two, one made with each set-up.")
    files = [Path(path) for path in paths]
    _refuse_same(*files)
    numbers = Numbers()
    lines = [
        _read(path, _Wanted(tuple(columns), sensor, form, most), numbers, told)
        for path, told in zip(files, _meters(files, progress), strict=True)
    ]
    numbers.refuse_two_sensors()
    reader = Reader(form)
    reader.decide_parts(part for each in lines for part in each.parts())
    arrays = tuple(
        reader.read_parts(each.parts(), lambda index, path=path: f"report {index + 1:,} of {path}")  # type: ignore[misc]
        for each, path in zip(lines, paths, strict=True)
    )
    first, second = lines
    return Recordings((arrays[0], arrays[1]), (len(first), len(second)), reader, identical=first.same(second))


@dataclass(frozen=True)
class _Wanted:
    """What is to be read of a file."""

    columns: tuple[str, ...]
    sensor: str | None
    form: Form | None
    most: int


def _refuse_same(first: Path, second: Path) -> None:
    if first.exists() and second.exists() and first.samefile(second):
        raise ReadingError(f"{first} is given twice: an audit compares two recordings, one made with each set-up.")


def _meters(paths: Sequence[Path], progress: Callable[[int, int], None] | None) -> list[Callable[[int], None]]:
    """For each file, what is told how many of its bytes are read."""
    sizes = [path.stat().st_size if path.is_file() else 0 for path in paths]

    def meter(before: int, size: int) -> Callable[[int], None]:
        def told(done: int) -> None:
            if progress is not None and size:
                progress(before + min(done, size), sum(sizes))

        return told

    return [meter(sum(sizes[:place]), size) for place, size in enumerate(sizes)]


def _read(path: Path, wanted: _Wanted, numbers: Numbers, told: Callable[[int], None]) -> Lines:
    found = Lines(wanted.form)
    try:
        with path.open(encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
            rows = Rows(file, wanted.most, told)
            for lines in _reports(path, rows, wanted, numbers):
                found.extend(lines[: rows.left])
                rows.left = wanted.most - len(found)
                if not rows.left:
                    break
    except OSError as problem:
        raise ReadingError(f"{path}: {problem.strerror}.") from None
    except csv.Error as problem:
        raise ReadingError(f"{path}: not a CSV file ({problem}).") from None
    if not len(found):
        raise ReadingError(f"{path}: there is no report in it{f' of sensor {wanted.sensor}' if wanted.sensor else ''}.")
    return found


def _reports(path: Path, rows: Rows, wanted: _Wanted, numbers: Numbers) -> Iterator[list[str]]:
    header = rows.header()
    if not any(header):
        raise ReadingError(f"{path}: the file is empty. The first line has the names of the columns.")
    if tuple(header) == HEADER and not wanted.columns:
        return _of_sensor(path, rows, wanted.sensor, numbers)
    if wanted.sensor is not None:
        raise ReadingError(f"--sensor goes with files of readings, whose first line is {','.join(HEADER)}.")
    return _of_columns(path, rows, len(header), _places(path, header, wanted.columns))


def _of_columns(path: Path, rows: Rows, width: int, places: list[int]) -> Iterator[list[str]]:
    """Reports of the columns at these places, those before an error first."""
    pick = itemgetter(*places)
    for number, batch in _filled(path, rows, width):
        cells = list(map(pick, batch))
        lines = cells if len(places) == 1 else list(map(",".join, cells))
        if rows.delimiter != ",":
            for index, row in enumerate(batch):
                comma = next(filter(_DECIMAL_COMMA, (row[place] for place in places)), "")
                if comma:
                    yield lines[:index]
                    raise ReadingError(
                        f"{path}, row {number + index:,}: {comma.strip()}: write numbers with a point, such as 0.5."
                    )
        yield lines


def _filled(path: Path, rows: Rows, width: int) -> Iterator[tuple[int, list[list[str]]]]:
    """Rows of this width, with the number of the first; those before an error come first.

    A blank line of a file with one column is a row, unless it is the end of the file.
    """
    blank = 0
    for first, batch in rows.batches():
        if not blank and set(map(len, batch)) == {width}:
            yield first, batch
            continue
        start, filled = blank or first, []
        for number, row in enumerate(batch, start=first):
            if blank and width == 1:
                filled.append([""])
            problem = _problem(path, number, row, blank, width)
            if problem:
                yield start, filled
                raise ReadingError(problem)
            if row:
                filled.append(row)
            blank = 0 if row else number
        yield start, filled


def _problem(path: Path, number: int, row: list[str], blank: int, width: int) -> str:
    if row and blank and width > 1:
        return (
            f"{path}, row {blank:,} is blank: where a report is empty give the row with empty columns, so that it "
            "counts; else take the line out."
        )
    if row and len(row) != width:
        return f"{path}, row {number:,}: {len(row)} columns, where the first line has {width}."
    return ""


def _places(path: Path, header: list[str], columns: tuple[str, ...]) -> list[int]:
    chosen = columns or (tuple(header) if len(header) == 1 else ())
    known = ", ".join(name[:40] for name in header[:10])
    if not columns and all(map(_is_number, header)):
        raise ReadingError(
            f"{path}: the first line is {known}: the first line must name the columns. Put a line with names before "
            f"it; if {header[0][:40]} is a name, give --column {header[0][:40]}."
        )
    if not chosen:
        raise ReadingError(f"{path}: say with --column which of its columns are the report: {known}.")
    for name in chosen:
        if header.count(name) != 1:
            raise ReadingError(f"{path}: there is no one column {name!r}. It has {known}.", column=name)
    return [header.index(name) for name in chosen]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Said(NamedTuple):
    """What rows say of one sensor."""

    sensor: str
    rows: Sequence[int]
    numbers: Sequence[str]
    values: Sequence[str]


def _of_sensor(path: Path, rows: Rows, wanted: str | None, numbers: Numbers) -> Iterator[list[str]]:
    """Values of one sensor, each sequence number once."""
    found = wanted or ""
    for first, batch in rows.batches():
        every = _of_all(first, batch, found)
        for said in [every] if every else _of_some(path, first, batch, found, wanted):
            found = said.sensor
            yield numbers.new(path, *said)


def _of_all(first: int, batch: list[list[str]], sensor: str) -> _Said | None:
    """What rows say if all are of this sensor, as is usual."""
    if not sensor or set(map(len, batch)) != {len(HEADER)}:
        return None
    _, sensors, numbers, values = zip(*batch, strict=True)
    if set(map(str.strip, set(sensors))) != {sensor}:
        return None
    every = range(first, first + len(batch))
    return _Said(sensor, every, list(map(str.strip, numbers)), list(map(str.strip, values)))


def _of_some(path: Path, first: int, batch: list[list[str]], found: str, wanted: str | None) -> Iterator[_Said]:
    """What rows say where some are blank or of other sensors; what is before an error first."""
    chosen: list[tuple[str, int, str, str]] = []
    problem = ""
    for number, row in enumerate(batch, start=first):
        if not row:
            continue
        if len(row) != len(HEADER):
            problem = f"{path}, row {number:,}: {len(row)} columns, where the first line has {len(HEADER)}."
            break
        _, sensor, seq, value = map(str.strip, row)
        found = found or sensor
        if sensor == found:
            chosen.append((sensor, number, seq, value))
        elif wanted is None:
            problem = f"{path}: readings of {found[:64]!r} and of {sensor[:64]!r}. Choose with --sensor."
            break
    for sensor, group in groupby(chosen, itemgetter(0)):
        _, numbers, seqs, values = zip(*group, strict=True)
        yield _Said(sensor, numbers, seqs, values)
    if problem:
        raise ReadingError(problem)
