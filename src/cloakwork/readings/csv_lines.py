"""Lines of a CSV file. Each is read for itself: whatever is in one, all others mean what they meant without it."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloakwork.errors import InputError

BETWEEN = "\x1f"  # what parts cells once a line is plain: cells in quotation marks may hold the file's own delimiter
_BLOCK = 1 << 23
_LONGEST_HEAD = 1 << 20


@dataclass(frozen=True)
class Head:
    """The first line: the names of the columns, what parts them, and how many bytes it has."""

    names: tuple[str, ...]
    delimiter: str
    size: int


@dataclass(frozen=True, eq=False)
class Plain:
    """Lines whose cells are parted by BETWEEN, without quotation marks around them; `odd` lines were left out."""

    text: bytes
    odd: int
    size: int


def read_head(path: Path) -> Head:
    """The first line of a CSV file, whatever is in the others."""
    with path.open("rb") as file:
        line = (file.readline(_LONGEST_HEAD).splitlines(keepends=True) or [b""])[0]
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError(f"{path}: its first line is not a text in UTF-8.", path=str(path)) from None
    if not text.strip():
        raise InputError(f"{path} is empty: the first line has the names of the columns.", path=str(path))
    delimiter = max(",;\t", key=text.count)
    try:
        [names] = csv.reader([text], delimiter=delimiter, strict=True)
    except csv.Error:
        raise InputError(
            f"{path}: its first line has a quotation mark that is not closed, or text after one that is. It holds the "
            "names of the columns, all in one line.",
            path=str(path),
        ) from None
    return Head(tuple(names), delimiter, len(line))


def plain_blocks(path: Path, head: Head) -> Iterator[Plain]:
    """All lines after the first, in blocks."""
    for block in _blocks(path, head):
        yield plain(block, head.delimiter)


def line_of(path: Path, head: Head, rows: Sequence[int], row: int) -> int:
    """The line, from 1, that a row is in, counted from 0; `rows` says how many each block has.

    All is read once more, but only one block line by line.
    """
    line = 2
    for block, here in zip(_blocks(path, head), rows, strict=False):
        lines = block.splitlines()
        places = [place for place, text in enumerate(lines) if _is_row(text, head)] if row < here else []
        if row < len(places):
            return line + places[row]
        line, row = line + len(lines), row - here
    raise InputError(f"{path} has changed while it was read: run the command again.", path=str(path))


def _blocks(path: Path, head: Head) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(head.size)
        while block := file.read(_BLOCK):
            yield block + file.readline()


def _is_row(line: bytes, head: Head) -> bool:
    """Whether a line is neither empty nor left out."""
    made = _plain_line(line, head.delimiter) if line else None
    return made is not None and made.count(BETWEEN.encode()) == len(head.names) - 1


def plain(block: bytes, delimiter: str) -> Plain:
    r"""Whole lines as plain ones; left out is a line that is not UTF-8, or whose quotation marks do not match.

    A line ends with \n, \r or both, within quotation marks as well: otherwise one mark that nobody closes would make
    all that follow part of one cell.

    >>> plain(b'a,"b,c"\nd,"e\nf,g\n', ",")
    Plain(text=b'a\x1fb,c\nf\x1fg', odd=1, size=17)
    """
    if b'"' not in block and _is_text(block):
        return Plain(block.replace(delimiter.encode(), BETWEEN.encode()), 0, len(block))
    lines = block.splitlines()  # of bytes: at no other places
    read = [_plain_line(line, delimiter) for line in lines]
    good = [line for line in read if line is not None]
    return Plain(b"\n".join(good), len(read) - len(good), len(block))


def _is_text(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _plain_line(line: bytes, delimiter: str) -> bytes | None:
    try:
        text = line.decode()
        if '"' not in text:
            return text.replace(delimiter, BETWEEN).encode()
        [cells] = csv.reader([text], delimiter=delimiter, strict=True)
    except (UnicodeDecodeError, csv.Error):
        return None
    return BETWEEN.join(cells).encode() or b" "  # a cell of nothing is not a line of nothing
