"""Columns of any kind as times, numbers and texts. Each cell is read on its own, whatever the others hold."""

import math
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork._extras import optional_parts
from cloakwork.errors import InputError
from cloakwork.readings.frame import TextColumn

with optional_parts():
    import pyarrow as pa

TIME_FORMS = "ISO 8601, such as 2026-10-05T08:30:00Z, or Unix seconds or milliseconds"
SECONDS_BELOW = 1e11  # larger Unix times are milliseconds: in seconds this is the year 5138
LARGEST = 2**62
OUT_OF_RANGE = -LARGEST
_LATEST = 253_402_300_800_000  # the year 10000
_EMPTY = {"", "nan", "na", "null"}  # cells without a number, in small letters
_TICKS = {"ms": 1, "us": 1_000, "ns": 1_000_000}  # of a timestamp, in a millisecond
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}").fullmatch
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def column_times(column: Any, name: str, *, seconds_below: float = SECONDS_BELOW) -> IntArray:
    """Return Unix milliseconds of each cell, -1 where there is no time.

    A time is ISO 8601 (UTC without a zone) or Unix time, in seconds if it is below `seconds_below`.
    """
    column = _plain(column)
    if pa.types.is_string(column.type):
        return np.asarray(_each(column, lambda text: _moment(text, seconds_below), -1))
    if pa.types.is_floating(column.type):
        values = np.asarray(column.cast(pa.float64()).fill_null(math.nan).to_numpy(zero_copy_only=False))
    elif pa.types.is_integer(column.type):
        values = column.cast(pa.int64(), safe=False).fill_null(-1).to_numpy(zero_copy_only=False)
    elif pa.types.is_timestamp(column.type):
        ticks = column.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        values = 1000 * ticks if column.type.unit == "s" else ticks // _TICKS[column.type.unit]
        seconds_below = 0
    else:
        raise InputError(f"column {name} holds {column.type}: times are ISO 8601 texts, timestamps or Unix time.")
    with np.errstate(invalid="ignore", over="ignore"):
        times = np.where(values < seconds_below, 1000 * values, values)  # each number on its own
        times = np.where((times >= 0) & (times < (_LATEST if seconds_below else LARGEST)), times, -1)
    return np.floor(times).astype(np.int64) if times.dtype.kind == "f" else times


def column_numbers(column: Any, name: str) -> FloatArray:
    """Return the number in each cell, NaN where there is none."""
    column = _plain(column)
    if pa.types.is_string(column.type):
        return np.asarray(_each(column, float, math.nan), dtype=np.float64)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InputError(f"column {name} holds {column.type}: give a column of numbers.")
    values = column.cast(pa.float64(), safe=False).fill_null(math.nan)
    return np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def column_whole(column: Any, name: str) -> IntArray:
    """Return the whole number in each cell, `OUT_OF_RANGE` where there is none of a size below 2^62."""
    column = _plain(column)
    if pa.types.is_floating(column.type):  # programs turn whole numbers into floats where one row has none
        values = column.cast(pa.float64()).fill_null(math.nan).to_numpy(zero_copy_only=False)
        fits = (np.abs(values) < 2**53) & (values == np.rint(values))
        return np.where(fits, values, OUT_OF_RANGE).astype(np.int64)
    if pa.types.is_string(column.type):
        return np.asarray(_each(column, _whole, OUT_OF_RANGE), dtype=np.int64)
    if not pa.types.is_integer(column.type):
        raise InputError(f"column {name} holds {column.type}: give a column of whole numbers.")
    values = column.cast(pa.int64(), safe=False).fill_null(OUT_OF_RANGE).to_numpy(zero_copy_only=False)
    return np.where((values > -LARGEST) & (values < LARGEST), values, OUT_OF_RANGE)


def column_texts(column: Any, name: str) -> TextColumn:
    """Return the text in each cell, without blanks around it.

    Refuses floats: programs turn whole numbers into floats where one row has none, which would rename all others.
    """
    column = _plain(column)
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
        raise InputError(f"column {name} holds {column.type}: give a column of texts or whole numbers.", column=name)
    coded = column.cast(pa.string()).fill_null("").dictionary_encode()
    stripped = [text.strip() for text in coded.dictionary.to_pylist()]
    labels = {text: code for code, text in enumerate(dict.fromkeys(stripped))}
    codes = np.array([labels[text] for text in stripped], dtype=np.int64)
    return TextColumn(codes[coded.indices.to_numpy()] if len(codes) else codes, tuple(labels))


def unreadable(column: Any, numbers: FloatArray) -> NDArray[np.bool_]:
    """Return which cells have a text that is no finite number; an empty cell has none, nor has one with `nan`."""
    column = _plain(column)
    if not pa.types.is_string(column.type):
        return np.zeros(len(numbers), dtype=bool)
    empty = _each(column, lambda text: float(text.strip().lower() in _EMPTY), 0.0)
    return np.asarray(~np.isfinite(numbers) & (empty == 0))


def cell_texts(column: Any) -> list[str]:
    """Return each cell as a CSV file has it: no text for none, Unix milliseconds, whole numbers without a point."""
    column = _plain(column)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    return ["" if value is None else _number(value) for value in column.to_pylist()]


def _number(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return str(int(value) if whole else value)


def _plain(column: Any) -> Any:
    """The column as one array out of any dictionary, with texts as string and dates as timestamps."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_dictionary(kind):
        if pa.types.is_string_view(kind.value_type):  # categories of Polars, which Arrow cannot look up as they are
            column = column.cast(pa.dictionary(kind.index_type, pa.string()))
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    if pa.types.is_decimal(column.type):
        return column.cast(pa.float64(), safe=False)
    return column.cast(pa.timestamp("ms")) if pa.types.is_date(column.type) else column


def _each(column: Any, read: Callable[[str], float], missing: float) -> Any:
    """The result of `read` for each cell, `missing` where it raises an error; equal cells are read once."""
    coded = column.fill_null("").dictionary_encode()
    results = np.full(max(len(coded.dictionary), 1), missing)
    for place, text in enumerate(coded.dictionary.to_pylist()):
        with suppress(ValueError, OverflowError):
            results[place] = read(text)
    return results[coded.indices.to_numpy(zero_copy_only=False)]


def _whole(text: str) -> int:
    number = int(text) if _WHOLE(text := text.strip()) else LARGEST
    if abs(number) >= LARGEST:
        raise ValueError("not a whole number in range")
    return number


def _moment(text: str, seconds_below: float) -> int:
    """Unix milliseconds of a text, -1 where it is no time."""
    try:
        number = float(text) if seconds_below else _whole(text)
    except ValueError:
        time = iso_ms(text.strip())
    else:
        time = math.floor(number if number >= seconds_below else 1000 * number)
    return time if 0 <= time < (_LATEST if seconds_below else LARGEST) else -1


def iso_ms(text: str) -> int:
    """Return Unix milliseconds of an ISO 8601 time, UTC without a zone; raises ValueError where it is none.

    >>> iso_ms("2026-10-05T08:30:00+02:00") == iso_ms("2026-10-05 06:30")
    True
    """
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MILLISECOND  # whole numbers: floats are off by one in some years
