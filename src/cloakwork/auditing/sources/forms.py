"""Lines of text as reports: whole numbers, numbers, rows of them, or words."""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloakwork.errors import InputError

LONGEST = 1 << 16  # characters of a line
_SHOWN = 60
_KEPT_WORDS = 20
_split = re.compile(r"[,;\s]+").split


Part: TypeAlias = Sequence[str] | NDArray[Any]
"""Lines, or the one number in each of them."""


class Form(StrEnum):
    """What each line is taken for."""

    WHOLE = "whole"
    """Whole numbers, exactly as they stand, of any size."""
    NUMBERS = "numbers"
    """Floating-point numbers; a word among them is an outcome of its own."""
    WORDS = "words"
    """Words: lines are the same or not, and have no size."""


class Reader:
    """Turns lines into reports for an audit; a line may hold a row of numbers.

    Parameters
    ----------
    form
        None to take each line for what it is: words if none of the first lines is a number, else whole numbers until
        another number comes.

    Notes
    -----
    Among numbers a word is an outcome of its own, so that a fault code that leaks is found without giving up what is
    tried on numbers. Where the form is left open, numbers stay exactly as they stand beside it.

    Examples
    --------
    >>> reader = Reader()
    >>> reader.read(["1.5, 2", "3, 4"]).tolist(), reader.form.value, reader.width
    ([[1.5, 2.0], [3.0, 4.0]], 'numbers', 2)
    >>> Reader().read(["7", "ERR"]).tolist()
    [7, 'ERR']
    """

    def __init__(self, form: Form | None = None) -> None:
        self.form = form
        self._told = form is not None
        self.width: int | None = 1 if form is Form.WORDS else None
        self.words: list[str] = []  # seen among numbers, the first of them

    def decide(self, lines: Sequence[str]) -> None:
        """Settle what is still open by these lines."""
        self.decide_parts([lines])

    def decide_parts(self, parts: Iterable[Part]) -> None:
        """The same for lines in parts, of which some are numbers already."""
        full, mixed = _Seen(), _Seen()
        for part in parts:
            if isinstance(part, np.ndarray):
                full.see(1, decimal=part.dtype.kind == "f")
                continue
            for row in map(_entries, part):
                kinds = set(map(type, row))
                if kinds != {str}:
                    (mixed if str in kinds else full).see(len(row), decimal=float in kinds)
        some = full if full.width else mixed
        if self.form is None:
            self.form = Form.WORDS if not some.width else Form.NUMBERS if some.decimal else Form.WHOLE
        if self.width is None:
            self.width = some.width if some.width and self.form is not Form.WORDS else 1

    def read(self, lines: Sequence[str], where: Callable[[int], str] = "line {}".format) -> NDArray[Any]:
        """The reports, shape (size,), or (size, width) where a line holds several numbers.

        `where` says where the line of an index was found, for messages.
        """
        if self.form is None or self.width is None:
            self.decide(lines)
        return self.read_parts([lines], where)

    def read_parts(self, parts: Sequence[Part], where: Callable[[int], str]) -> NDArray[Any]:
        """The same for lines in parts, by all of which the form was decided."""
        if self.form is Form.WORDS:
            return np.array([word_of(line) for part in parts for line in part], dtype=object)
        array = self._quick(parts) if self.width == 1 else None
        if array is not None:
            return array
        rows = enumerate(chain.from_iterable(map(_rows, parts)))
        found = [entry for index, (line, row) in rows for entry in self._row(line, row, index, where)]
        array = _array(found, whole=self.form is Form.WHOLE)
        return array if self.width == 1 else array.reshape(sum(map(len, parts)), -1)

    def _quick(self, parts: Sequence[Part]) -> NDArray[Any] | None:
        """One number in each line, as is usual; None where a line is something else."""
        whole = self.form is Form.WHOLE
        arrays = []
        for part in parts:
            array = part if isinstance(part, np.ndarray) else _numbers(part, whole=whole)
            if array is None:
                return None
            arrays.append(array)
        return np.concatenate(arrays) if whole else np.concatenate(arrays, dtype=np.float64)

    def _row(self, line: str, row: list[Any], index: int, where: Callable[[int], str]) -> list[Any]:
        width = self.width or 1
        if width == 1 and len(row) == 1 and isinstance(row[0], int if self.form is Form.WHOLE else int | float):
            return row  # as is usual
        if self.form is Form.WHOLE and not all(isinstance(entry, int) for entry in row):
            self._not_whole(line, row, index, where)
        words = sum(isinstance(entry, str) for entry in row)
        if words == len(row) or (words and len(row) != width):
            return [self._word(line)] * width  # a word, or several, in the place of a row
        if len(row) != width:
            raise InputError(
                f"{where(index)} has {len(row)} entries, where the first had {width}: every report must have as many.",
                width=width,
            )
        return [self._word(entry) if isinstance(entry, str) else entry for entry in row]

    def _not_whole(self, line: str, row: list[Any], index: int, where: Callable[[int], str]) -> None:
        if self._told:
            raise InputError(
                f'{where(index)} is "{word_of(line)}", where whole numbers are expected: run it again with '
                "--as numbers, for which a word is an outcome too, or with --as words."
            )
        if any(isinstance(entry, float) for entry in row):
            self.form = Form.NUMBERS

    def _word(self, text: str) -> str:
        word = word_of(text)
        if len(self.words) < _KEPT_WORDS and word not in self.words:
            self.words.append(word)
        return word


class _Seen:
    """What lines of one kind hold: as many entries as the first of them, and whether any of these is not whole."""

    def __init__(self) -> None:
        self.width, self.decimal = 0, False

    def see(self, width: int, *, decimal: bool) -> None:
        self.width = self.width or width
        self.decimal = self.decimal or decimal


def word_of(line: str) -> str:
    r"""A line as a word that may be shown anywhere: on one line, of some length, told apart from all others.

    >>> word_of("ERR\x1b[2J")
    'ERR\\x1b[2J'
    """
    text = line.strip("\r\n")
    if not text.isprintable() or "\\" in text:
        text = text.encode("unicode_escape").decode()
    if len(text) > _SHOWN:
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
        text = f"{text[:_SHOWN]}... ({digest})"
    return text


def numbers_of(lines: Sequence[str], form: Form | None) -> NDArray[Any] | None:
    """The number in each line, int64 or float64; None where the lines say more than that to a `Reader` of this form.

    Notes
    -----
    That are words, whole numbers beyond 64 bits, and -0, which has no sign among whole numbers. Where whole numbers
    are asked for it is every other number as well, since messages show its line; where words are, it is every line.
    """
    if form is Form.WORDS:
        return None
    whole = _numbers(lines, whole=True)
    found = whole if whole is not None or form is Form.WHOLE else _numbers(lines, whole=False)
    if found is None or found.dtype == object:
        return None
    zeros = [lines[index] for index in np.flatnonzero(found == 0).tolist()]
    return None if any("-" in line and isinstance(_entry(line), int) for line in zeros) else found


def _numbers(lines: Sequence[str], *, whole: bool) -> NDArray[Any] | None:
    if not _is_plain("".join(lines)):
        return None
    try:
        if not whole:
            return np.fromiter(map(float, lines), np.float64, len(lines))
        return np.fromiter(map(int, lines), np.int64, len(lines))
    except ValueError:
        return None
    except OverflowError:  # beyond 64 bits
        return _large(lines)


def _large(lines: Sequence[str]) -> NDArray[Any] | None:
    try:
        return np.array(list(map(int, lines)), dtype=object)
    except ValueError:
        return None


def _rows(part: Part) -> Iterator[tuple[str, list[Any]]]:
    """Lines with what is in them."""
    if isinstance(part, np.ndarray):
        return ((str(entry), [entry]) for entry in part.tolist())
    return ((line, _entries(line)) for line in part)


def _entries(line: str) -> list[int | float | str]:
    entry = _entry(line)
    if not isinstance(entry, str):
        return [entry]  # as is usual
    return [_entry(part) for part in _split(line.strip().strip(",;"))]


def _is_plain(text: str) -> bool:
    """Python would take 1_000 for a number, and digits of any script."""
    return text.isascii() and "_" not in text


def _entry(text: str) -> int | float | str:
    if not _is_plain(text):
        return text
    if "." not in text:  # with a point it is no whole number: to try it takes longer than all else
        try:
            return int(text)
        except ValueError:
            pass
    try:
        return float(text)
    except ValueError:
        return text


def _array(found: list[Any], *, whole: bool) -> NDArray[Any]:
    if any(isinstance(entry, str) for entry in found):
        mixed = found if whole else [entry if isinstance(entry, str) else _float(entry) for entry in found]
        return np.array(mixed, dtype=object)
    if not whole:
        return np.array([_float(entry) for entry in found])
    try:
        return np.array(found, dtype=np.int64)
    except OverflowError:
        return np.array(found, dtype=object)


def _float(entry: Any) -> float:
    try:
        return float(entry)
    except OverflowError:  # a whole number beyond all floats
        return math.inf if entry > 0 else -math.inf
