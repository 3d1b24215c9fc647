"""Two recordings, as CSV files: one made with each set-up of sources."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import count
from cloakwork.auditing.sources.forms import Form, Reader
from cloakwork.errors import ReadingError
from cloakwork.site.readings import HEADER


@dataclass(frozen=True, eq=False)
class Recordings:
    """Reports on both inputs, in the order in which they were made; `ceiling` of each are used.

    Call it as a mechanism: it gives the next reports of an input, until there are none left.
    """

    reports: tuple[NDArray[Any], NDArray[Any]]
    lengths: tuple[int, int]
    reader: Reader

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
        Two CSV files with a header: of input 0, and of input 1.
    columns
        Which columns make a report, several for a row of numbers. May be left out where there is only one column, and
        for a file of readings (`time,sensor,seq,value`), whose values are taken, each sequence number once.
    sensor
        Of a file of readings, which sensor's; may be left out where there is one only.
    form
        What each report is taken for; decided by all of them if None.
    """
    most = count("most", most)
    if len(paths) != 2:
        raise ReadingError(f"{len(paths)} recordings: give two, one made with each set-up.")
    lines = [_read(Path(path), tuple(columns), sensor, most) for path in paths]
    reader = Reader(form)
    reader.decide([*lines[0], *lines[1]])
    arrays = tuple(
        reader.read(part, lambda index, path=path: f"report {index + 1:,} of {path}")  # type: ignore[misc]
        for part, path in zip(lines, paths, strict=True)
    )
    return Recordings((arrays[0], arrays[1]), (len(lines[0]), len(lines[1])), reader)


def _read(path: Path, columns: tuple[str, ...], sensor: str | None, most: int) -> list[str]:
    found: list[str] = []
    try:
        with path.open(encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
            for line in _reports(path, csv.reader(file), columns, sensor):
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


def _reports(path: Path, rows: Iterator[list[str]], columns: tuple[str, ...], sensor: str | None) -> Iterator[str]:
    header = [name.strip() for name in next(rows, [])]
    if not any(header):
        raise ReadingError(f"{path}: the file is empty. The first line has the names of the columns.")
    if tuple(header) == HEADER and not columns:
        yield from _of_sensor(path, rows, sensor)
        return
    if sensor is not None:
        raise ReadingError(f"--sensor goes with files of readings, whose first line is {','.join(HEADER)}.")
    places = _places(path, header, columns)
    for number, row in enumerate(rows, start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise ReadingError(f"{path}, row {number:,}: {len(row)} columns, where the first line has {len(header)}.")
        yield row[places[0]] if len(places) == 1 else ",".join(row[place] for place in places)


def _places(path: Path, header: list[str], columns: tuple[str, ...]) -> list[int]:
    chosen = columns or (tuple(header) if len(header) == 1 else ())
    known = ", ".join(name[:40] for name in header[:10])
    if not chosen:
        raise ReadingError(f"{path}: say with --column which of its columns are the report: {known}.")
    for name in chosen:
        if header.count(name) != 1:
            raise ReadingError(f"{path}: there is no one column {name!r}. It has {known}.", column=name)
    return [header.index(name) for name in chosen]


def _of_sensor(path: Path, rows: Iterator[list[str]], wanted: str | None) -> Iterator[str]:
    """Values of one sensor, each sequence number once; refused where one has two values."""
    values: dict[str, str] = {}
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
        if seq in values:
            if values[seq] != value:
                raise ReadingError(
                    f"{path}, row {number:,}: number {seq[:20]} has two values. Noise was used twice, or someone else "
                    "speaks in the sensor's name: these are not reports of one honest device."
                )
            continue
        values[seq] = value
        yield value
