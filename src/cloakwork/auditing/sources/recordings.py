"""Two recordings, as CSV files: one made with each set-up of sources."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import count
from cloakwork.auditing.sources.forms import Form, Reader, word_of
from cloakwork.errors import ReadingError
from cloakwork.site.readings import HEADER

if TYPE_CHECKING:
    import _csv

_QUOTED = re.compile(r'"[^"]*"').sub
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
    _refuse_same(Path(paths[0]), Path(paths[1]))
    numbers = _Numbers()
    lines = [_read(Path(path), tuple(columns), sensor, most, numbers) for path in paths]
    numbers.refuse_two_sensors()
    reader = Reader(form)
    reader.decide([*lines[0], *lines[1]])
    arrays = tuple(
        reader.read(part, lambda index, path=path: f"report {index + 1:,} of {path}")  # type: ignore[misc]
        for part, path in zip(lines, paths, strict=True)
    )
    used = min(map(len, lines))
    return Recordings(
        (arrays[0], arrays[1]), (len(lines[0]), len(lines[1])), reader, identical=lines[0][:used] == lines[1][:used]
    )


class _Numbers:
    """Which value each sequence number of a sensor has, in both recordings."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], tuple[Path, str]] = {}
        self._sensors: dict[str, Path] = {}

    def is_new(self, path: Path, row: int, sensor: str, seq: str, value: str) -> bool:
        """Whether this is the number's first reading; refused unless it says the same again in the same file."""
        if (sensor, seq) not in self._said:
            self._said[sensor, seq] = path, value
            self._sensors.setdefault(sensor, path)
            return True
        first, said = self._said[sensor, seq]
        where = f"{path}, row {row:,}: number {word_of(seq)}"
        if said != value:
            raise ReadingError(
                f"{where} has {'two values' if first == path else f'another value in {first}'}. Noise was used twice, "
                "or someone else speaks in the sensor's name: these are not reports of one honest device."
            )
        if first != path:
            raise ReadingError(
                f"{where} is in {first} too, with the same value: they are one recording, or overlap. Give two that "
                "were made one after the other."
            )
        return False

    def refuse_two_sensors(self) -> None:
        """Refuse recordings of two sensors: what tells them apart is not what they measured."""
        if len(self._sensors) > 1:
            each = " and ".join(f"{sensor[:64]!r} in {path}" for sensor, path in self._sensors.items())
            raise ReadingError(f"readings of {each}: both recordings must be of one sensor.")


def _refuse_same(first: Path, second: Path) -> None:
    if first.exists() and second.exists() and first.samefile(second):
        raise ReadingError(f"{first} is given twice: an audit compares two recordings, one made with each set-up.")


def _read(path: Path, columns: tuple[str, ...], sensor: str | None, most: int, numbers: _Numbers) -> list[str]:
    found: list[str] = []
    try:
        with path.open(encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
            head = file.readline()
            rows = csv.reader(chain([head], file), delimiter=_delimiter(head))
            for line in _reports(path, rows, columns, sensor, numbers):
                found.append(line)
                if len(found) == most:
                    break
    except OSError as problem:
        raise ReadingError(f"{path}: {problem.strerror}.") from None
    except csv.Error as problem:
        raise ReadingError(f"{path}: not a CSV file ({problem}).") from None
    if not found:
        raise ReadingError(f"{path}: there is no report in it{f' of sensor {sensor}' if sensor else ''}.")
    return found


def _reports(
    path: Path, rows: "_csv.Reader", columns: tuple[str, ...], sensor: str | None, numbers: _Numbers
) -> Iterator[str]:
    header = [name.strip() for name in next(rows, [])]
    if not any(header):
        raise ReadingError(f"{path}: the file is empty. The first line has the names of the columns.")
    if tuple(header) == HEADER and not columns:
        yield from _of_sensor(path, rows, sensor, numbers)
        return
    if sensor is not None:
        raise ReadingError(f"--sensor goes with files of readings, whose first line is {','.join(HEADER)}.")
    places = _places(path, header, columns)
    for number, row in _numbered(path, rows, len(header)):
        if len(row) != len(header):
            raise ReadingError(f"{path}, row {number:,}: {len(row)} columns, where the first line has {len(header)}.")
        cells = [row[place] for place in places]
        comma = next(filter(_DECIMAL_COMMA, cells), "") if rows.dialect.delimiter != "," else ""
        if comma:
            raise ReadingError(f"{path}, row {number:,}: {comma.strip()}: write numbers with a point, such as 0.5.")
        yield ",".join(cells)


def _numbered(path: Path, rows: Iterator[list[str]], width: int) -> Iterator[tuple[int, list[str]]]:
    """Rows with their numbers. A blank line of a file with one column is a row, unless it is the end of the file."""
    blank = 0
    for number, row in enumerate(rows, start=2):
        if width == 1 and blank:
            yield number - 1, [""]
        elif row and blank:
            raise ReadingError(
                f"{path}, row {blank:,} is blank: where a report is empty give the row with empty columns, so that it "
                "counts; else take the line out."
            )
        blank = 0 if row else number
        if row:
            yield number, row


def _delimiter(head: str) -> str:
    """What parts the columns, by the first line: what it has most of, names in quotation marks apart.

    >>> _delimiter('"x, left, low";y'), _delimiter("v")
    (';', ',')
    """
    return max(",;\t", key=_QUOTED("", head).count)


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


def _of_sensor(path: Path, rows: Iterator[list[str]], wanted: str | None, numbers: _Numbers) -> Iterator[str]:
    """Values of one sensor, each sequence number once."""
    found = wanted
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(HEADER):
            raise ReadingError(f"{path}, row {number:,}: {len(row)} columns, where the first line has {len(HEADER)}.")
        _, sensor, seq, value = (cell.strip() for cell in row)
        found = found or sensor
        if sensor != found:
            if wanted is None:
                raise ReadingError(f"{path}: readings of {found[:64]!r} and of {sensor[:64]!r}. Choose with --sensor.")
            continue
        if numbers.is_new(path, number, sensor, seq, value):
            yield value
