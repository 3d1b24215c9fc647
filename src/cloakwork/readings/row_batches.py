"""The one reader of tables: CSV, JSON Lines, Parquet, Arrow, pipes, and tables in memory, in batches of rows.

Each line of a text file stands alone: no line changes the meaning of another.
"""

import csv
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from itertools import chain
from typing import Any

import numpy as np

from cloakwork._checks import IntArray
from cloakwork._extras import optional_parts
from cloakwork.errors import ReadingError
from cloakwork.readings.frame import as_source, path_of, size_of

with optional_parts():
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

PARQUET, JSON_LINES = (".parquet", ".pq"), (".jsonl", ".ndjson")
LONGEST_LINE = 1 << 20  # characters
BROKEN_LINE = "a quotation mark that is not closed on the same line, or text after a closed one"
_BROKEN_JSON = "not a JSON object of plain values"
_TOO_LONG = b'""x'  # a broken line in place of one that is too long to hold
_BLOCK = 1 << 17  # bytes of text at once
_ROWS = 1 << 13  # of a table at once
_QUOTED = re.compile(r'"[^"]*"')
_BOM = "\ufeff"


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Some rows of a file, as one Arrow array for each wanted column; of a text file the arrays hold texts.

    `numbers` are those of the rows: lines of a text file, otherwise counted from 1. The batch spans the numbers from
    `first` up to `end`. Of these, `broken` are no rows, each for a reason, and any others are blank lines.
    """

    columns: tuple[Any, ...]
    numbers: IntArray
    first: int
    end: int
    broken: dict[int, str]


class TableFile:
    r"""A CSV, JSON Lines or Parquet file, a pipe, or a table of Arrow, Polars or pandas.

    `names` holds its columns. Either `read` or `batches` may be called, once. Messages never show a cell.

    Notes
    -----
    The name of a file says its form, and any other name stands for CSV. A line ends with \n, \r or both, within
    quotation marks too: otherwise an unclosed mark would swallow other lines. A pipe is read as its lines arrive. Bytes
    that are not UTF-8 become escapes such as \xe9.
    """

    def __init__(self, source: object) -> None:
        self._source = source = as_source(source)
        self.path = path_of(source)
        self.bytes_read = self.left_out = 0
        self._numbers = np.zeros(0, dtype=np.int64)
        self.delimiter = ","
        self._form = self.path.suffix.lower()
        self.is_text = source is self.path and self._form not in PARQUET
        size_of(source)  # refuses a folder
        if self.is_text:
            self._blocks = self._text_blocks()
            self._first = next(self._blocks, "").removeprefix(_BOM)
            self.names = self._json_names() if self._form in JSON_LINES else self._csv_names()
        else:
            self.names, self._arrow = self._reading(self._open_arrow)

    @property
    def size(self) -> int:
        """Bytes of the file; 0 for a pipe or a table."""
        return size_of(self._source)

    def place(self, row: int) -> str:
        """Return the place of a row in the file, for messages; rows are counted from 0 as they were read."""
        return f"{'line' if self.is_text else 'row'} {self._numbers[row]}"

    def read(self, names: Sequence[str], progress: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
        """Read columns by name. Lines that are not a row are left out and counted in `left_out`.

        `progress` receives the number of bytes read.
        """
        columns = list(dict.fromkeys(names))
        parts, numbers = [], [self._numbers]
        for batch in self.batches(columns):
            parts.append(batch.columns)
            numbers.append(batch.numbers)
            self.left_out += len(batch.broken)
            progress(self.bytes_read)
        self._numbers = np.concatenate(numbers)
        empty = [pa.array([], pa.string())]
        return {name: pa.chunked_array([part[k] for part in parts] or empty) for k, name in enumerate(columns)}

    def batches(self, names: Sequence[str]) -> Iterator[RowBatch]:
        """The rows with these columns, each of which the file has once."""
        places = [self.names.index(name) for name in names]
        if self.is_text:
            cells, number = (self._json_cells if self._form in JSON_LINES else self._csv_cells), self._first_line
            for text in chain([self._first] if self._first else [], self._blocks):
                yield (batch := cells(text, number, places))
                number = batch.end
            return
        number = 1
        while (batch := self._reading(lambda: next(self._arrow, None))) is not None:
            end = number + batch.num_rows
            yield RowBatch(tuple(batch.column(k) for k in places), np.arange(number, end), number, end, {})
            number = end

    def _text_blocks(self) -> Generator[str, None, None]:
        """The text in blocks of whole lines, with line ends of one kind."""
        rest, data = b"", b"\n"
        try:
            with FileIO(self.path) as file:
                while data:
                    data = file.read(_BLOCK) or b""
                    self.bytes_read += len(data)
                    rest += data
                    # a carriage return at the end may be half of a line end
                    end = 1 + max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, len(rest) - 1)) if data else len(rest)
                    block, rest = rest[:end], rest[end:]
                    if len(rest) > LONGEST_LINE:
                        rest = _TOO_LONG
                    if block:
                        text = block.decode("utf-8", "backslashreplace")
                        yield text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        except OSError as problem:
            raise ReadingError(f"{self.path}: {problem.strerror}.", path=str(self.path)) from None

    def _csv_names(self) -> tuple[str, ...]:
        head, _, self._first = self._first.partition("\n")
        self._first_line = 2
        if not head.strip():
            raise self._error(" is empty: the first line holds the names of the columns.")
        if "\\x" in head or head.startswith(("PAR1", "ARROW1", "PK\3\4")):
            raise self._error(": the first line is not UTF-8 text. Give CSV, .jsonl or .parquet.")
        self.delimiter = max(",;\t", key=_QUOTED.sub("", head).count)
        cells = _cells(head, self.delimiter)
        if cells is None:
            raise self._error(f": the first line has {BROKEN_LINE}. It holds the names of all columns.")
        return tuple(name.strip() for name in cells)

    def _csv_cells(self, text: str, first: int, places: Sequence[int]) -> RowBatch:
        lines = pc.split_pattern(pa.array([text.removesuffix("\n")], pa.string()), "\n").flatten()
        if '"' in text:
            kind = pa.list_(pa.string())
            cells = pa.array([_cells(line, self.delimiter) for line in lines.to_pylist()], kind)
        else:
            cells = pc.split_pattern(lines, self.delimiter)
        lengths = pc.utf8_length(lines).to_numpy(zero_copy_only=False)
        widths = pc.list_value_length(cells).fill_null(0).to_numpy(zero_copy_only=False).copy()
        widths[lengths > LONGEST_LINE] = 0
        width = len(self.names)
        good = (widths == width) & (lengths > 0)
        broken = {
            first + k: f"{widths[k]} columns instead of {width}" if widths[k] else BROKEN_LINE
            for k in np.flatnonzero(~good).tolist()
            if lines[k].as_py().strip(" \t")
        }
        rows = cells if good.all() else cells.filter(pa.array(good))
        columns = tuple(pc.list_element(rows, k) for k in places)
        return RowBatch(columns, first + np.flatnonzero(good), first, first + len(good), broken)

    def _json_names(self) -> tuple[str, ...]:
        self._first_line = 1
        row = _json_row(self._first.partition("\n")[0])
        if row is None:
            raise self._error(f": the first line is {_BROKEN_JSON}.")
        return tuple(row)

    def _json_cells(self, text: str, first: int, places: Sequence[int]) -> RowBatch:
        lines = text.removesuffix("\n").split("\n")
        rows = {first + k: _json_row(line) for k, line in enumerate(lines) if line.strip()}
        good = {number: row for number, row in rows.items() if row is not None}
        names = [self.names[k] for k in places]
        columns = tuple(pa.array([row.get(name, "") for row in good.values()], pa.string()) for name in names)
        broken = dict.fromkeys(rows.keys() - good.keys(), _BROKEN_JSON)
        return RowBatch(columns, np.array(list(good), dtype=np.int64), first, first + len(lines), broken)

    def _open_arrow(self) -> tuple[tuple[str, ...], Iterator[Any]]:
        if self._source is not self.path:
            stream = pa.RecordBatchReader.from_stream(self._source)
            return tuple(stream.schema.names), _sliced(stream)
        file = pq.ParquetFile(self.path)
        return tuple(file.schema_arrow.names), self._counted(file)

    def _counted(self, file: Any) -> Iterator[Any]:
        """The batches of a Parquet file, with the share of its bytes that they stand for."""
        rows = 0
        for batch in file.iter_batches(_ROWS):
            rows += batch.num_rows
            self.bytes_read = round(self.size * rows / file.metadata.num_rows)
            yield batch
        self.bytes_read = self.size

    def _reading(self, read: Any) -> Any:
        """What `read` returns; an error of Arrow becomes one without its text, which may show cells."""
        reason = "is not a whole Parquet file."
        try:
            return read()
        except pa.ArrowException:
            pass
        except OSError as problem:
            reason = f"{problem.strerror}." if problem.strerror else reason
        raise self._error(f" {reason}" if reason[0] == "i" else f": {reason}")

    def _error(self, text: str) -> ReadingError:
        return ReadingError(f"{self.path}{text}", path=str(self.path))


def _cells(line: str, delimiter: str) -> list[str] | None:
    """The cells of one line, without quotation marks around them; None for a broken line."""
    if '"' not in line:
        return line.split(delimiter)
    try:
        [cells] = csv.reader([line], delimiter=delimiter, strict=True)
    except csv.Error:
        return None
    return cells


def _json_row(line: str) -> dict[str, str] | None:
    """The values of one line as texts; numbers keep their digits."""
    try:
        values = json.loads(line, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or any(isinstance(value, dict | list) for value in values.values()):
        return None
    return {name: "" if value is None else str(value) for name, value in values.items()}


def _sliced(batches: Iterable[Any]) -> Iterator[Any]:
    return (batch.slice(k, _ROWS) for batch in batches for k in range(0, batch.num_rows, _ROWS))
