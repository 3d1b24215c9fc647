"""Rows of Parquet, Arrow and JSON Lines as lines of CSV, so that one reader checks the rows of every form."""

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cloakwork._extras import optional_parts
from cloakwork.errors import InputError, ReadingError

PARQUET, ARROW, JSON_LINES = (".parquet", ".pq"), (".arrow", ".feather"), (".jsonl", ".ndjson")
_EXACT = 1 << 53  # below it, each whole number is a float of its own
_ROWS = 1 << 13  # in memory at once
_BROKEN = '"\n'  # a line that no reader takes for a row


def as_source(source: object) -> object:
    """A file as a path, a table as it is; nothing else is a source of rows."""
    if isinstance(source, str | os.PathLike):
        return Path(source)
    if not hasattr(source, "__arrow_c_stream__"):
        kind = type(source).__name__
        raise InputError(f"{kind}: give a file, or a table of Arrow, pandas or Polars (not a lazy one).", type=kind)
    return source


def path_of(source: object) -> Path:
    """The path of a file; for a table, its name in messages."""
    return source if isinstance(source, Path) else Path("the table")


def json_lines(blocks: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """Blocks of JSON Lines as CSV: the keys of the first object, then what each object has under these keys.

    Numbers keep their digits. A line that is not an object of plain values becomes a broken one.
    """
    names: list[str] | None = None
    for block in blocks:
        lines: list[str] = []
        for line in block.splitlines():
            row = _json_row(line)
            if names is None:
                if row is None:
                    raise ReadingError(f"{path}: the first line is not a JSON object of plain values.", path=str(path))
                names = list(row)
                lines.append(_csv_line(names))
            if line.strip():
                lines.append(_BROKEN if row is None else _csv_line([row.get(name, "") for name in names]))
            else:
                lines.append("\n")
        yield "".join(lines).encode()


def arrow_lines(source: object) -> Iterator[tuple[bytes, float]]:
    """A Parquet or Arrow file, or a table, as blocks of CSV, each with the share of the source that is read by then.

    A table has the Arrow stream protocol, as those of Arrow, Polars and pandas do. Timestamps become Unix milliseconds.
    """
    with optional_parts():
        import pyarrow as pa  # noqa: PLC0415 - large, and not needed for CSV

    name, readable = str(path_of(source)), True
    try:
        schema, batches = record_batches(source)
        yield _csv_line(schema.names).encode(), 0.0
        for batch, share in batches:
            rows = zip(*(_texts(column) for column in batch.columns), strict=True)
            yield "".join(map(_csv_line, rows)).encode(), share
    except pa.ArrowException:
        readable = False  # Arrow's own messages show cells
    except OSError as problem:
        if problem.strerror:
            raise ReadingError(f"{name}: {problem.strerror}.", path=name) from None
        readable = False
    if not readable:
        raise ReadingError(f"{name} is not a whole Parquet or Arrow file.", path=name)


def record_batches(source: object) -> tuple[Any, Iterator[tuple[Any, float]]]:
    """The schema of a file or table, and its record batches with the share that is read after each."""
    with optional_parts():
        import pyarrow as pa  # noqa: PLC0415 - as above
        import pyarrow.parquet as pq  # noqa: PLC0415

    if not isinstance(source, Path):
        stream = pa.RecordBatchReader.from_stream(source)
        return stream.schema, ((part, 0.0) for batch in stream for part in _parts(batch))
    if source.suffix.lower() in PARQUET:
        file = pq.ParquetFile(source)
        total = max(file.metadata.num_rows, 1)
        batches = file.iter_batches(batch_size=_ROWS)
        return file.schema_arrow, ((batch, min(_ROWS * (k + 1) / total, 1.0)) for k, batch in enumerate(batches))
    opened = pa.ipc.open_file(pa.memory_map(str(source)))
    count = opened.num_record_batches
    return opened.schema, ((part, k / count) for k in range(count) for part in _parts(opened.get_batch(k)))


def _parts(batch: Any) -> Iterator[Any]:
    return (batch.slice(start, _ROWS) for start in range(0, batch.num_rows, _ROWS))


def _texts(column: Any) -> list[str]:
    """The cells of an Arrow column as a CSV file has them."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if pa.types.is_dictionary(column.type) and pa.types.is_timestamp(column.type.value_type):
        column = column.dictionary_decode()  # of categories of Polars, Arrow can only give the values
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    if pa.types.is_float64(column.type):  # pandas turns whole numbers into these where one is missing
        return ["" if value is None else _number(value) for value in column.to_pylist()]
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _number(value: float) -> str:
    """A number as text; a whole one without a point, while no other rounds to it."""
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else str(value)


def _json_row(line: bytes) -> dict[str, str] | None:
    try:
        values = json.loads(line, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or any(isinstance(value, dict | list) for value in values.values()):
        return None
    return {name: "" if value is None else str(value) for name, value in values.items()}


def _csv_line(cells: Sequence[str]) -> str:
    if any(mark in cell for cell in cells for mark in '",;\t\r\n'):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue()
    return ",".join(cells) + "\n"
