"""Lines and cells of a CSV file or pipe. Each line stands alone: no line changes the meaning of another.

Other forms are read as CSV: JSON Lines, Parquet, Arrow, and tables in memory.
"""

import csv
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import FileIO
from itertools import chain
from typing import Self

from cloakwork._checks import IntArray
from cloakwork.errors import ReadingError
from cloakwork.readings.converted_rows import ARROW, JSON_LINES, PARQUET, arrow_lines, as_source, json_lines, path_of

LONGEST_LINE = 1 << 20  # bytes
BROKEN_LINE = "a quotation mark that is not closed on the same line, or text after a closed one"
_BOM = b"\xef\xbb\xbf"
_QUOTED = re.compile(r'"[^"]*"')
_LINE_END = re.compile(rb"[\r\n]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Header:
    """The names in the first line, without blanks around them, and the delimiter: the character it has most of."""

    names: tuple[str, ...]
    delimiter: str


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Texts as codes: row k holds `labels[codes[k]]`. Labels are unique."""

    codes: IntArray
    labels: tuple[str, ...]


class CsvLines:
    r"""A CSV file or pipe, read in blocks of whole lines. Use it as a context.

    Parameters
    ----------
    source
        The file, whose name says its form, or a table of Arrow, Polars or pandas. It may be a pipe: no more is awaited
        than a block that is at least one line.
    block
        Most bytes to read at once.

    Notes
    -----
    A line ends with \n, \r or both, within quotation marks too: otherwise an unclosed mark would swallow other lines.
    A line above `LONGEST_LINE` is replaced by a broken one, a single quotation mark, so that memory stays bounded.
    Once the file is open, `head` is its first line, `blocks` iterates over all others, and `bytes_read` counts.
    """

    def __init__(self, source: object, *, block: int) -> None:
        self._source = source = as_source(source)
        self.path = path_of(source)
        self.bytes_read, self.head = 0, b""
        form = self.path.suffix.lower()
        self._is_json = form in JSON_LINES
        self._is_arrow = source is not self.path or form in {*PARQUET, *ARROW}
        self.blocks: Iterator[bytes] = iter(())
        self._size = block

    def __enter__(self) -> Self:
        self._lines = self._arrow_lines() if self._is_arrow else self._whole_lines()
        blocks = json_lines(self._lines, self.path) if self._is_json else self._lines
        try:
            first = next(blocks, b"").removeprefix(_BOM)
        except BaseException:
            self._lines.close()
            raise
        end = _LINE_END.search(first)
        size = len(first) if end is None else end.end() + first.startswith(b"\r\n", end.start())
        self.head, rest = first[:size].rstrip(b"\r\n"), first[size:]
        self.blocks = chain([rest], blocks) if rest else blocks
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()

    @property
    def first_row(self) -> int:
        """The number of the first row, for messages: a line of a text file, otherwise counted from 1."""
        return 1 if self._is_json or self._is_arrow else 2

    def header(self) -> Header:
        """The names of the columns."""
        try:
            text = self.head.decode()
        except UnicodeDecodeError:
            raise ReadingError(f"{self.path}: the first line is not UTF-8 text.", path=str(self.path)) from None
        if not text.strip():
            raise ReadingError(
                f"{self.path} is empty: the first line holds the names of the columns.", path=str(self.path)
            )
        delimiter = max(",;\t", key=_QUOTED.sub("", text).count)
        try:
            return Header(tuple(name.strip() for name in split_cells(text, delimiter)), delimiter)
        except csv.Error:
            raise ReadingError(
                f"{self.path}: the first line has {BROKEN_LINE}. It holds the names of all columns.",
                path=str(self.path),
            ) from None

    def _arrow_lines(self) -> Generator[bytes, None, None]:
        """The rows of an Arrow table, of any origin."""
        size = self.path.stat().st_size if self._source is self.path and self.path.is_file() else 0
        for block, share in arrow_lines(self._source):
            self.bytes_read = round(share * size)
            yield block

    def _whole_lines(self) -> Generator[bytes, None, None]:
        """The whole file in blocks that end where a line ends."""
        rest, too_long, data = b"", False, b"\n"
        try:
            with FileIO(self.path) as file:
                while data:
                    data = file.read(self._size) or b""
                    self.bytes_read += len(data)
                    text = rest + (_after_line(data) if too_long else data)
                    # a carriage return at the end may be half of a line end
                    end = 1 + max(text.rfind(b"\n"), text.rfind(b"\r", 0, len(text) - 1)) if data else len(text)
                    block = text[:end]
                    if len(block) > LONGEST_LINE and any(len(line) > LONGEST_LINE for line in block.splitlines()):
                        lines = block.splitlines(keepends=True)
                        block = b"".join(b'"\n' if len(line) > LONGEST_LINE + 2 else line for line in lines)
                    if block:
                        yield block
                    rest = text[end:]
                    too_long = len(rest) > LONGEST_LINE or (too_long and not end)
                    if too_long:
                        rest = b'"'
        except OSError as problem:
            raise ReadingError(f"{self.path}: {problem.strerror}.", path=str(self.path)) from None


def _after_line(data: bytes) -> bytes:
    """Return what follows a line that began in earlier data."""
    end = _LINE_END.search(data)
    return b"" if end is None else data[end.start() :]


def lines_of(block: bytes, *, errors: str) -> list[str]:
    r"""The lines of a block as texts, without their ends; `errors` is for bytes that are not UTF-8.

    >>> lines_of(b"a\r\n\rb", errors="replace")
    ['a', '', 'b']
    """
    text = block.decode("utf-8", errors)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n").split("\n")


def split_cells(line: str, delimiter: str) -> list[str]:
    """The cells of one line, without quotation marks around them; none in an empty line.

    Raises `csv.Error` for a broken line (see `BROKEN_LINE`).
    """
    if '"' not in line:
        return line.split(delimiter) if line else []
    [cells] = csv.reader([line], delimiter=delimiter, strict=True)
    return cells


def iso_ms(text: str) -> int:
    """Unix milliseconds of an ISO 8601 time, UTC without a zone; raises ValueError where it is none.

    >>> iso_ms("2026-10-05T08:30:00+02:00") == iso_ms("2026-10-05 06:30")
    True
    """
    moment = datetime.fromisoformat(text)
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MILLISECOND  # whole numbers: floats are off by one in some years
