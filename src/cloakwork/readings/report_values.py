"""Lines of text as reports for an audit: whole numbers, numbers, rows of them, or words."""

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork.errors import InputError

_SHOWN = 60
_KEPT_WORDS = 20
_split = re.compile(r"[,;\s]+").split


class ReportForm(StrEnum):
    """The form of lines."""

    WHOLE = "whole"
    """Whole numbers of any size, exactly."""
    NUMBERS = "numbers"
    """Floating-point numbers; a word among them is an outcome of its own."""
    WORDS = "words"
    """Words: two lines are the same or not, and have no size."""


class ReportReader:
    """Turns lines into reports for an audit; a line may hold a row of numbers.

    Parameters
    ----------
    form
        None to infer it: words if none of the first lines is a number, otherwise whole numbers until another number
        comes.

    Notes
    -----
    A word among numbers is an outcome of its own: a fault code that leaks is found while the events for numbers are
    still tried. Without a given form, numbers beside a word keep all their digits. `words` holds the first of them.

    Examples
    --------
    >>> reader = ReportReader()
    >>> reader.read(["1.5, 2", "3, 4"]).tolist(), reader.form.value, reader.width
    ([[1.5, 2.0], [3.0, 4.0]], 'numbers', 2)
    >>> ReportReader().read(["7", "ERR"]).tolist()
    [7, 'ERR']
    """

    def __init__(self, form: ReportForm | None = None) -> None:
        self.form = form
        self._fixed = form is not None
        self.width: int | None = 1 if form is ReportForm.WORDS else None
        self.words: list[str] = []

    def decide(self, lines: Sequence[str]) -> None:
        """Infer what is still open, the form and the numbers in a line, from these lines."""
        # lines of numbers only count; where there is none, lines of numbers and words
        width, decimal = [0, 0], [False, False]
        alone = _numbers(lines, whole=True)
        if alone is None:
            alone = _numbers(lines, whole=False)
        for row in map(_entries, lines) if alone is None else ():
            kinds = set(map(type, row))
            if kinds != {str}:
                mixed = str in kinds
                width[mixed], decimal[mixed] = width[mixed] or len(row), decimal[mixed] or float in kinds
        if alone is not None and len(lines):
            width[0], decimal[0] = 1, alone.dtype.kind == "f"
        some = 0 if width[0] else 1
        if self.form is None:
            numbers = ReportForm.NUMBERS if decimal[some] else ReportForm.WHOLE
            self.form = numbers if width[some] else ReportForm.WORDS
        if self.width is None:
            self.width = width[some] if width[some] and self.form is not ReportForm.WORDS else 1

    def read(self, lines: Sequence[str], where: Callable[[int], str] = "line {}".format) -> NDArray[Any]:
        """The reports, shape (size,), or (size, width) where a line holds several numbers.

        `where` tells for messages where the line of an index is.
        """
        if self.form is None or self.width is None:
            self.decide(lines)
        if self.form is ReportForm.WORDS:
            return np.array([printable(line) for line in lines], dtype=object)
        if self.width == 1:
            alone = _numbers(lines, whole=self.form is ReportForm.WHOLE)
            if alone is not None:
                return alone
        entries = [entry for index, line in enumerate(lines) for entry in self._row(line, index, where)]
        array = _array(entries, whole=self.form is ReportForm.WHOLE)
        return array if self.width == 1 else array.reshape(len(lines), -1)

    def _row(self, line: str, index: int, where: Callable[[int], str]) -> list[Any]:
        row, width, whole = _entries(line), self.width or 1, self.form is ReportForm.WHOLE
        if width == 1 and len(row) == 1 and isinstance(row[0], int if whole else int | float):
            return row
        if whole and not all(isinstance(entry, int) for entry in row):
            self._not_whole(line, row, index, where)
        words = sum(isinstance(entry, str) for entry in row)
        if words == len(row) or (words and len(row) != width):
            return [self._word(line)] * width  # one word, or several, instead of a row
        if len(row) != width:
            raise InputError(
                f"{where(index)} has {len(row)} entries, where the first had {width}: every report must have as many.",
                width=width,
            )
        return [self._word(entry) if isinstance(entry, str) else entry for entry in row]

    def _not_whole(self, line: str, row: list[Any], index: int, where: Callable[[int], str]) -> None:
        if self._fixed:
            raise InputError(
                f'{where(index)} is "{printable(line)}", where whole numbers are expected. Read reports as numbers, '
                "where a word is an outcome too, or as words.",
                argument="form",
            )
        if any(isinstance(entry, float) for entry in row):
            self.form = ReportForm.NUMBERS

    def _word(self, text: str) -> str:
        word = printable(text)
        if len(self.words) < _KEPT_WORDS and word not in self.words:
            self.words.append(word)
        return word


def printable(line: str) -> str:
    r"""A line as text that is safe to show: on one line, of limited length, distinct from other lines.

    >>> printable("ERR\x1b[2J")
    'ERR\\x1b[2J'
    """
    text = line.strip("\r\n")
    if not text.isprintable() or "\\" in text:
        text = text.encode("unicode_escape").decode()
    if len(text) > _SHOWN:
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
        text = f"{text[:_SHOWN]}... ({digest})"
    return text


def _numbers(lines: Sequence[str], *, whole: bool) -> NDArray[Any] | None:
    """The one number in each line, of int64 or object if all must be whole, else of float64; None if one has none."""
    if not _is_plain("".join(lines)):
        return None
    try:
        if not whole:
            return np.fromiter(map(float, lines), np.float64, len(lines))
        try:
            return np.fromiter(map(int, lines), np.int64, len(lines))
        except OverflowError:  # beyond 64 bits
            return np.array(list(map(int, lines)), dtype=object)
    except ValueError:
        return None


def _entries(line: str) -> list[int | float | str]:
    entry = _entry(line)
    return [entry] if not isinstance(entry, str) else [_entry(part) for part in _split(line.strip().strip(",;"))]


def _entry(text: str) -> int | float | str:
    if not _is_plain(text):
        return text
    if "." not in text:  # a failed int() takes longer than everything else
        try:
            return int(text)
        except ValueError:
            pass
    try:
        return float(text)
    except ValueError:
        return text


def _is_plain(text: str) -> bool:
    """Python would accept 1_000 as a number, and digits of any script."""
    return text.isascii() and "_" not in text


def _array(entries: list[Any], *, whole: bool) -> NDArray[Any]:
    if not whole:
        entries = [entry if isinstance(entry, str) else as_float(entry) for entry in entries]
    if any(isinstance(entry, str) for entry in entries):
        return np.array(entries, dtype=object)
    try:
        return np.array(entries, dtype=np.int64 if whole else np.float64)
    except OverflowError:
        return np.array(entries, dtype=object)


def as_float(entry: Any) -> float:
    """A number as a float; infinite where no float is as large."""
    try:
        return float(entry)
    except OverflowError:
        return math.inf if entry > 0 else -math.inf
