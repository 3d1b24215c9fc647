"""Columns of a file. Each row, and each cell, is read on its own, whatever the others hold."""

import csv
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork._extras import optional_parts
from cloakwork.errors import InputError
from cloakwork.readings.converted_rows import ARROW, JSON_LINES, PARQUET, as_source, path_of, record_batches
from cloakwork.readings.csv_lines import CsvLines, Header, TextColumn, iso_ms, split_cells

with optional_parts():
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv

TIME_FORMS = "ISO 8601, such as 2026-10-05T08:30:00Z, or Unix seconds or milliseconds"
_BLOCK = 1 << 23
_BETWEEN = "\x1f"  # separates cells once a line is plain: quoted cells may hold the file's own delimiter
_LATEST = 253_402_300_800_000  # the year 10000
_SECONDS_BELOW = 1e11  # larger Unix times are milliseconds: in seconds this is the year 5138
_EMPTY = {"", "nan", "na", "null"}  # cells without a number, in small letters
_TICKS = {"ms": 1, "us": 1_000, "ns": 1_000_000}  # of a timestamp, in a millisecond


class TableFile:
    """A CSV, JSON Lines, Parquet or Arrow file, or a table of Arrow, Polars or pandas; `names` holds its columns.

    Messages never show a cell.
    """

    def __init__(self, source: object) -> None:
        self._source = as_source(source)
        self.path = path = path_of(self._source)
        table = self._source is not path
        if not table and not path.is_file():
            raise InputError(f"{path}: there is no such file.", path=str(path))
        self.left_out = 0
        self._rows: list[int] = []  # of each block
        self._header: Header | None = None
        if table or path.suffix.lower() in {*PARQUET, *ARROW}:
            self.names = self._arrow_names()
        elif path.suffix.lower() in {".csv", ".tsv", ".txt", *JSON_LINES}:
            with CsvLines(path, block=_BLOCK) as lines:
                self._header = lines.header()
            self.names = list(self._header.names)
        else:
            raise InputError(
                f"{path.name}: the name tells the format. Give a file that ends in .csv, .jsonl, .parquet or .arrow."
            )

    def place(self, row: int) -> str:
        """The place of a row in the file, for messages; rows are counted from 0 as they were read."""
        return f"row {row + 1}" if self._header is None else f"line {self._line_of(row, self._header)}"

    def read(self, names: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
        """Read columns by name. Lines of a CSV file that are not a row are left out and counted in `left_out`.

        A row is one line with as many cells as there are names. `progress` receives the number of bytes read.
        """
        columns = list(dict.fromkeys(names))
        size = self.path.stat().st_size if self._source is self.path else 0
        tables, readable = [], True
        try:
            if self._header is None:
                for batch, _ in record_batches(self._source)[1]:
                    tables.append(pa.Table.from_batches([batch]).select(columns))
                    progress(min(sum(table.nbytes for table in tables), size))
            else:
                with CsvLines(self.path, block=_BLOCK) as lines:
                    for block in lines.blocks:
                        tables.append(self._block_rows(block, columns, self._header.delimiter))
                        progress(lines.bytes_read)
        except pa.ArrowException as problem:
            problem.args = ()  # Arrow's own messages show cells
            readable = False
        if not readable:
            form = "whole Parquet or Arrow file" if self._header is None else "CSV file in UTF-8"
            raise InputError(f"{self.path} is not a {form}.", path=str(self.path))
        whole = pa.concat_tables(tables) if tables else dict.fromkeys(columns, pa.chunked_array([], pa.string()))
        return {name: whole[name] for name in columns}

    def _block_rows(self, block: bytes, columns: list[str], delimiter: str) -> Any:
        """The rows of a block of lines as a table of texts; lines that are not a row are left out and counted."""
        text, between = b"", _BETWEEN.encode()
        try:
            block.decode()
            plain = b'"' not in block
        except UnicodeDecodeError:
            plain = False
        if plain:
            text = block.replace(delimiter.encode(), between)
        else:
            lines = [_plain_line(line, delimiter) for line in block.splitlines()]  # of bytes: at no other places
            self.left_out += lines.count(None)
            text = b"\n".join(line for line in lines if line is not None)

        def skip(_: object) -> str:
            self.left_out += 1
            return "skip"

        texts = dict.fromkeys(columns, pa.string())
        rows = pa.table({name: pa.array([], pa.string()) for name in columns})
        if text.strip(b"\r\n"):
            text = b"\n" + text  # else Arrow takes a byte order mark off the first row
            rows = pa_csv.read_csv(
                pa.BufferReader(text),
                pa_csv.ReadOptions(block_size=len(text) + 1, column_names=self.names, use_threads=False),
                pa_csv.ParseOptions(delimiter=_BETWEEN, quote_char=False, invalid_row_handler=skip),
                pa_csv.ConvertOptions(include_columns=columns, column_types=texts, strings_can_be_null=False),
            )
        self._rows.append(rows.num_rows)
        return rows

    def _line_of(self, row: int, header: Header) -> int:
        """The line of a row, from 1. Only one block is read line by line."""
        with CsvLines(self.path, block=_BLOCK) as csv_lines:
            first = csv_lines.first_row
            for block, rows in zip(csv_lines.blocks, self._rows, strict=False):
                lines = block.splitlines()
                if row < rows:
                    places = [place for place, line in enumerate(lines) if _is_row(line, header)]
                    if row < len(places):
                        return first + places[row]
                first, row = first + len(lines), row - rows
        raise InputError(f"{self.path} changed while it was read: run the command again.", path=str(self.path))

    def _arrow_names(self) -> list[str]:
        try:
            if self._source is not self.path:
                self._source = pa.table(self._source)  # a stream can be read once
            return list(record_batches(self._source)[0].names)
        except pa.ArrowException:
            raise InputError(f"{self.path} is not a Parquet or Arrow file.", path=str(self.path)) from None


def _plain_line(line: bytes, delimiter: str) -> bytes | None:
    try:
        text = line.decode()
        cells = split_cells(text, delimiter)
    except (UnicodeDecodeError, csv.Error):
        return None
    return _BETWEEN.join(cells).encode() or (b" " if text else b"")  # an empty cell is not an empty line


def _is_row(line: bytes, header: Header) -> bool:
    """Whether a line is neither empty nor left out."""
    plain = _plain_line(line, header.delimiter) if line else None
    return plain is not None and plain.count(_BETWEEN.encode()) == len(header.names) - 1


def column_times(column: Any, name: str) -> IntArray:
    """Unix milliseconds of each cell, -1 where there is no time: ISO 8601 (UTC without a zone) or Unix time."""
    column = column if pa.types.is_string(column.type) else _decoded(column)
    if pa.types.is_float64(column.type):
        values = column.fill_null(math.nan).to_numpy()
        with np.errstate(invalid="ignore", over="ignore"):
            times = np.where(values < _SECONDS_BELOW, 1000 * values, values)  # each number on its own
            return np.floor(np.where((times >= 0) & (times < _LATEST), times, -1)).astype(np.int64)
    if pa.types.is_string(column.type):
        texts = column.fill_null("")
        if len(texts) and pc.all(pc.match_like(texts, "____-__-__%")).as_py():
            for zone in (None, "UTC"):  # by Arrow's fast reader where it reads every cell as `_moment` would
                with suppress(pa.ArrowInvalid):
                    column = texts.cast(pa.timestamp("ms", zone))
                    break
        if pa.types.is_string(column.type):
            return np.asarray(_each(texts, _moment, -1), dtype=np.int64)
    if not pa.types.is_timestamp(column.type):
        raise InputError(f"column {name} holds {column.type}: times are ISO 8601 texts, timestamps or Unix time.")
    ticks = column.cast(pa.int64()).fill_null(-1).to_numpy()
    times = 1000 * ticks if column.type.unit == "s" else ticks // _TICKS[column.type.unit]
    return np.where((times >= 0) & (times < _LATEST), times, -1).astype(np.int64)


def column_numbers(column: Any, name: str) -> FloatArray:
    """The number in each cell, NaN where there is none."""
    column = column if pa.types.is_string(column.type) else _decoded(column)
    if pa.types.is_float64(column.type):
        return np.asarray(column.fill_null(math.nan).to_numpy(), dtype=np.float64)
    if pa.types.is_string(column.type):
        return np.asarray(_each(column, float, math.nan), dtype=np.float64)
    raise InputError(f"column {name} holds {column.type}: give a column of numbers.")


def unreadable(column: Any, numbers: FloatArray) -> NDArray[np.bool_]:
    """Which cells of a column have a text that is no finite number; an empty cell has none, nor has one with `nan`."""
    if not pa.types.is_string(column.type):
        return np.zeros(len(numbers), dtype=bool)
    texts = column_texts(column, "")
    empty = np.array([text.strip().lower() in _EMPTY for text in texts.labels], dtype=bool)
    return np.asarray(~np.isfinite(numbers) & ~empty[texts.codes])


def column_texts(column: Any, name: str) -> TextColumn:
    """The text in each cell, without blanks around it.

    Refuses floats: programs turn whole numbers into floats where one row has none, which would rename all others.
    """
    column = _looked_up(column)
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
        raise InputError(f"column {name} holds {column.type}: give a column of texts or whole numbers.", column=name)
    coded = column.cast(pa.string()).fill_null("").combine_chunks().dictionary_encode()
    stripped = [text.strip() for text in coded.dictionary.to_pylist()]
    labels = {text: code for code, text in enumerate(dict.fromkeys(stripped))}
    codes = np.array([labels[text] for text in stripped], dtype=np.int64)
    return TextColumn(codes[coded.indices.to_numpy()] if len(codes) else codes, tuple(labels))


def _decoded(column: Any) -> Any:
    """The column with numbers as float64, texts as string and dates as timestamps, out of any dictionary."""
    column = _looked_up(column)
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64(), safe=False)
    return column.cast(pa.timestamp("ms")) if pa.types.is_date(kind) else column


def _looked_up(column: Any) -> Any:
    """The column out of any dictionary, and texts of every kind as string."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        if pa.types.is_string_view(kind.value_type):  # categories of Polars, which Arrow cannot look up as they are
            column = column.cast(pa.dictionary(kind.index_type, pa.string()))
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    return column


def _each(column: Any, read: Callable[[str], float], missing: float) -> Any:
    """The result of `read` for each cell, `missing` where it raises an error; equal cells are read once."""
    coded = column.fill_null("").combine_chunks().dictionary_encode()
    results = np.full(max(len(coded.dictionary), 1), missing)
    for place, text in enumerate(coded.dictionary.to_pylist()):
        with suppress(ValueError, OverflowError):
            results[place] = read(text)
    return results[coded.indices.to_numpy()]


def _moment(text: str) -> int:
    """Unix milliseconds of a text, -1 where it is no time."""
    try:
        number = float(text)
    except ValueError:
        time = iso_ms(text.strip())
    else:
        time = math.floor(number if number >= _SECONDS_BELOW else 1000 * number)
    return time if 0 <= time < _LATEST else -1
