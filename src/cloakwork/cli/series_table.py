"""Columns of a CSV or Parquet file: each cell is read for itself, whatever the others are."""

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from cloakwork._checks import FloatArray, IntArray
from cloakwork.cli.output import bar
from cloakwork.errors import InputError

_LATEST = 253_402_300_800_000  # the year 10000
_SECONDS_BELOW = 1e11  # a larger number of Unix time is milliseconds: so many seconds are the year 5138
_BLOCK = 1 << 23
_TICKS = {"ms": 1, "us": 1_000, "ns": 1_000_000}  # of a timestamp, in a millisecond


@dataclass(frozen=True, eq=False)
class Words:
    """Texts as numbers: row k has `labels[codes[k]]`. An empty cell has an empty text."""

    codes: IntArray
    labels: tuple[str, ...]


class TableFile:
    """A CSV or Parquet file; its names of columns are read at once. Messages never show a cell."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file.", path=str(path))
        self.path = path
        self.left_out = 0
        self._parquet = path.suffix.lower() in {".parquet", ".pq"}
        if not self._parquet and path.suffix.lower() not in {".csv", ".tsv", ".txt"}:
            raise InputError(f"{path.name}: the name says the form: give a file that ends in .csv or .parquet.")
        self._delimiter = ","
        self.names = self._parquet_names() if self._parquet else self._csv_names()

    def column(self, option: str, name: str) -> str:
        """The name of a column, refused where there is none of it, or several."""
        if self.names.count(name) != 1:
            found = "is in the file more than once" if name in self.names else "is no column of the file"
            raise InputError(f"{option} {name[:64]} {found}. It has: {', '.join(self.names)[:500]}.")
        return name

    def read(self, names: Sequence[str]) -> dict[str, Any]:
        """The columns of these names; rows with too few or too many cells are left out, and counted."""
        wanted = list(dict.fromkeys(names))
        batches = self._parquet_batches(wanted) if self._parquet else self._csv_batches(wanted)
        with bar("reading", self.path.stat().st_size) as progress:
            found, done = [], 0
            for batch in batches:
                found.append(batch)
                done += batch.nbytes
                progress(min(done, self.path.stat().st_size))
        if not found:
            return {name: pa.chunked_array([], pa.string()) for name in wanted}
        table = pa.Table.from_batches(found)
        return {name: table.column(name) for name in wanted}

    def _csv_names(self) -> list[str]:
        try:
            with self.path.open(newline="", encoding="utf-8-sig") as file:
                head = file.readline(1 << 20)
        except UnicodeDecodeError:
            raise InputError(f"{self.path} is not a text in UTF-8.", path=str(self.path)) from None
        if not head.strip():
            raise InputError(f"{self.path} is empty: the first line has the names of the columns.", path=str(self.path))
        self._delimiter = max(",;\t", key=head.count)
        return next(csv.reader([head], delimiter=self._delimiter))

    def _csv_batches(self, wanted: list[str]) -> Iterator[Any]:
        def skip(_: object) -> str:
            self.left_out += 1
            return "skip"

        options = {
            "read_options": pa_csv.ReadOptions(block_size=_BLOCK, column_names=self.names, skip_rows=1),
            "parse_options": pa_csv.ParseOptions(delimiter=self._delimiter, invalid_row_handler=skip),
            "convert_options": pa_csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
            ),
        }
        yield from _guarded(lambda: pa_csv.open_csv(self.path, **options), self.path, "CSV file in UTF-8")

    def _parquet_names(self) -> list[str]:
        try:
            return list(pq.read_schema(self.path).names)
        except pa.ArrowException:
            raise InputError(f"{self.path} is not a Parquet file.", path=str(self.path)) from None

    def _parquet_batches(self, wanted: list[str]) -> Iterator[Any]:
        yield from _guarded(
            lambda: pq.ParquetFile(self.path).iter_batches(columns=wanted), self.path, "whole Parquet file"
        )


def _guarded(opened: Callable[[], Any], path: Path, what: str) -> Iterator[Any]:
    """Batches of rows; Arrow's own messages show cells, and so they are not passed on."""
    try:
        yield from opened()
    except pa.ArrowInvalid as problem:
        if "Empty CSV" in str(problem):
            return
        problem.args = ()
    except pa.ArrowException:
        pass
    else:
        return
    raise InputError(f"{path} is not a {what}.", path=str(path))


def moments(column: Any, name: str) -> IntArray:
    """Unix milliseconds of each cell, -1 where there is no time: ISO 8601 (UTC if no zone is given) or Unix time."""
    column = _plain(column)
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("ms"))
        kind = column.type
    if pa.types.is_timestamp(kind):
        ticks = column.cast(pa.int64()).fill_null(-1).to_numpy()
        found = 1000 * ticks if kind.unit == "s" else ticks // _TICKS[kind.unit]
        return np.where((found >= 0) & (found < _LATEST), found, -1).astype(np.int64)
    if _is_number(kind):
        return _unix_times(_floats(column))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _iso_times(column)
    raise InputError(f"column {name} holds {kind}: times are ISO 8601 texts, timestamps or Unix time.")


def numbers(column: Any, name: str) -> FloatArray:
    """The number in each cell, NaN where there is none."""
    column = _plain(column)
    if _is_number(column.type):
        return _floats(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.asarray(_each(column, _number, math.nan), dtype=np.float64)
    raise InputError(f"column {name} holds {column.type}: give a column of numbers.")


def words(column: Any, name: str) -> Words:
    """The text in each cell, without blanks around it."""
    try:
        texts = _plain(column).cast(pa.string())
    except pa.ArrowException:
        raise InputError(f"column {name} holds {column.type}: give a column of texts or whole numbers.") from None
    coded = texts.fill_null("").combine_chunks().dictionary_encode()
    stripped = [text.strip() for text in coded.dictionary.to_pylist()]
    labels = {text: code for code, text in enumerate(dict.fromkeys(stripped))}
    codes = np.array([labels[text] for text in stripped], dtype=np.int64)
    return Words(codes[coded.indices.to_numpy()] if len(codes) else codes, tuple(labels))


def _plain(column: Any) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _floats(column: Any) -> FloatArray:
    return np.asarray(column.cast(pa.float64(), safe=False).fill_null(math.nan).to_numpy(), dtype=np.float64)


def _each(column: Any, read: Callable[[str], float], missing: float) -> Any:
    """What `read` makes of each cell; equal cells are read once."""
    coded = column.fill_null("").combine_chunks().dictionary_encode()
    found = np.array([read(text) for text in coded.dictionary.to_pylist()] or [missing])
    return found[coded.indices.to_numpy()]


def _iso_times(column: Any) -> IntArray:
    """Times written out; by Arrow's own reader, which is quick, where it reads every cell as `_moment` would."""
    texts = column.fill_null("")
    if len(texts) and pc.all(pc.match_like(texts, "____-__-__%")).as_py():
        for zone in (None, "UTC"):
            with suppress(pa.ArrowInvalid):
                return moments(texts.cast(pa.timestamp("ms", zone)), "")
    return np.asarray(_each(texts, _moment, -1), dtype=np.int64)


def _unix_times(values: FloatArray) -> IntArray:
    """What `_unix` makes of each number."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.where(values < _SECONDS_BELOW, 1000 * values, values)
        good = (found >= 0) & (found < _LATEST)
    return np.floor(np.where(good, found, -1)).astype(np.int64)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _moment(text: str) -> int:
    number = _number(text)
    if not math.isnan(number):
        return _unix(number)
    try:
        moment = datetime.fromisoformat(text.strip())
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return _unix(max(1000 * aware.timestamp(), -1.0), milliseconds=True)
    except (ValueError, OverflowError):
        return -1


def _unix(number: float, *, milliseconds: bool = False) -> int:
    """Milliseconds of Unix time in seconds or milliseconds; each number decides for itself which it is."""
    found = number if milliseconds or number >= _SECONDS_BELOW else 1000 * number
    return math.floor(found) if 0 <= found < _LATEST else -1
