"""Columns of a CSV or Parquet file: each row is read for itself, and in it each cell, whatever the others are."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.readings.csv_lines import BETWEEN, Head, Plain, line_of, plain_blocks, read_head
from cloakwork.readings.text_column import TextColumn

TIME_FORMS = "ISO 8601, such as 2026-10-05T08:30:00Z, or Unix seconds or milliseconds"
_LATEST = 253_402_300_800_000  # the year 10000
_SECONDS_BELOW = 1e11  # a larger number of Unix time is milliseconds: so many seconds are the year 5138
_TICKS = {"ms": 1, "us": 1_000, "ns": 1_000_000}  # of a timestamp, in a millisecond
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class TableFile:
    """A CSV or Parquet file; its names of columns are read at once. Messages never show a cell."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file.", path=str(path))
        self.path = path
        self.left_out = 0
        self._rows: list[int] = []  # of each block
        self._parquet = path.suffix.lower() in {".parquet", ".pq"}
        if not self._parquet and path.suffix.lower() not in {".csv", ".tsv", ".txt"}:
            raise InputError(f"{path.name}: the name says the form: give a file that ends in .csv or .parquet.")
        self._head = None if self._parquet else read_head(path)
        self.names = self._parquet_names() if self._head is None else list(self._head.names)

    def column(self, name: str) -> str:
        """The file's own spelling of a column name; blanks around it do not matter.

        Raises an error that carries `column` if the file has no such column, or several.
        """
        matches = [own for own in self.names if own.strip() == name.strip()]
        if len(matches) != 1:
            fault = "is in the file more than once" if matches else "is no column of the file"
            raise InputError(f"{name[:64]} {fault}. It has: {', '.join(self.names)[:500]}.", column=name)
        return matches[0]

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return self.path.stat().st_size

    def place(self, row: int) -> str:
        """Where a row is that was read, counted from 0, as whoever looks for it would find it."""
        return f"row {row + 1}" if self._head is None else f"line {line_of(self.path, self._head, self._rows, row)}"

    def read(self, names: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
        """Read columns by name. Lines of a CSV file that are not a row are left out and counted in `left_out`.

        A row is one line with as many cells as there are names. `progress` receives the number of bytes read.
        """
        wanted = list(dict.fromkeys(names))
        found, done = [], 0
        for table, size in self._tables(wanted):
            found.append(table)
            done += size
            progress(min(done, self.size))
        if not found:
            return {name: pa.chunked_array([], pa.string()) for name in wanted}
        whole = pa.concat_tables(found)
        return {name: whole.column(name) for name in wanted}

    def _tables(self, wanted: list[str]) -> Iterator[tuple[Any, int]]:
        """Tables of rows, one after the other, and how many bytes each stands for."""
        return self._parquet_tables(wanted) if self._head is None else self._csv_tables(self._head, wanted)

    def _csv_tables(self, head: Head, wanted: list[str]) -> Iterator[tuple[Any, int]]:
        for block in plain_blocks(self.path, head):
            self.left_out += block.odd
            table = self._csv_table(block, wanted) if block.text.strip(b"\r\n") else None
            self._rows.append(0 if table is None else table.num_rows)
            if table is not None:
                yield table, block.size

    def _csv_table(self, block: Plain, wanted: list[str]) -> Any:
        def skip(_: object) -> str:
            self.left_out += 1
            return "skip"

        text = b"\n" + block.text  # Arrow would take a byte order mark off the first row
        with _guarded(self.path, "CSV file in UTF-8"):
            return pa_csv.read_csv(
                pa.BufferReader(text),
                read_options=pa_csv.ReadOptions(block_size=len(text) + 1, column_names=self.names, use_threads=False),
                parse_options=pa_csv.ParseOptions(delimiter=BETWEEN, quote_char=False, invalid_row_handler=skip),
                convert_options=pa_csv.ConvertOptions(
                    include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
                ),
            )

    def _parquet_names(self) -> list[str]:
        try:
            return list(pq.read_schema(self.path).names)
        except pa.ArrowException:
            raise InputError(f"{self.path} is not a Parquet file.", path=str(self.path)) from None

    def _parquet_tables(self, wanted: list[str]) -> Iterator[tuple[Any, int]]:
        with _guarded(self.path, "whole Parquet file"):
            for batch in pq.ParquetFile(self.path).iter_batches(columns=wanted):
                yield pa.Table.from_batches([batch]), batch.nbytes


@contextmanager
def _guarded(path: Path, what: str) -> Iterator[None]:
    """Arrow's own messages show cells, and so they are not passed on."""
    try:
        yield
    except pa.ArrowException as problem:
        problem.args = ()
    else:
        return
    raise InputError(f"{path} is not a {what}.", path=str(path))


def column_times(column: Any, name: str) -> IntArray:
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


def column_numbers(column: Any, name: str) -> FloatArray:
    """The number in each cell, NaN where there is none."""
    column = _plain(column)
    if _is_number(column.type):
        return _floats(column)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.asarray(_each(column, _number, math.nan), dtype=np.float64)
    raise InputError(f"column {name} holds {column.type}: give a column of numbers.")


def column_texts(column: Any, name: str) -> TextColumn:
    """The text in each cell, without blanks around it."""
    try:
        texts = _plain(column).cast(pa.string())
    except pa.ArrowException:
        raise InputError(f"column {name} holds {column.type}: give a column of texts or whole numbers.") from None
    coded = texts.fill_null("").combine_chunks().dictionary_encode()
    stripped = [text.strip() for text in coded.dictionary.to_pylist()]
    labels = {text: code for code, text in enumerate(dict.fromkeys(stripped))}
    codes = np.array([labels[text] for text in stripped], dtype=np.int64)
    return TextColumn(codes[coded.indices.to_numpy()] if len(codes) else codes, tuple(labels))


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
                return column_times(texts.cast(pa.timestamp("ms", zone)), "")
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
        found = (aware - _EPOCH) // _MILLISECOND  # whole numbers: floats are off by one in some years
    except (ValueError, OverflowError):
        return -1
    return found if 0 <= found < _LATEST else -1


def _unix(number: float) -> int:
    """Milliseconds of Unix time in seconds or milliseconds; each number decides for itself which it is."""
    found = number if number >= _SECONDS_BELOW else 1000 * number
    return math.floor(found) if 0 <= found < _LATEST else -1
