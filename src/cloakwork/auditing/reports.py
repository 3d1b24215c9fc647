"""Reports as the auditor keeps them: values to compare, codes that tell any two apart, and a bounded past."""

import hashlib
import numbers
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import CloakworkError, InputError

Codes: TypeAlias = NDArray[np.uint64]
Mechanism: TypeAlias = Callable[[int, int, np.random.Generator], Any]

_KEPT_ROWS = 1 << 16
_KEPT_NUMBERS = 1 << 20
_WORD = (1 << 64) - 1


class Kind(StrEnum):
    """What a mechanism puts out."""

    FLOAT = "floating-point numbers"
    WHOLE = "whole numbers"
    TEXT = "words"


class Line(Protocol):
    """One number (or code) of each report, that events are made of."""

    def measure(self, reports: "Reports") -> NDArray[Any]:
        """One value per report, shape (size,)."""
        ...

    def name(self) -> str:
        """What is measured, as the subject of a sentence."""
        ...


class Reports:
    """A row of reports: `values` (size, width) as floats, `codes` (size, width) that differ where reports differ.

    Codes are the bits of a float (so -0.0 is not 0.0), the lower 64 bits of a whole number, a hash of a word.
    """

    def __init__(self, kind: Kind, values: FloatArray, codes: Codes, words: NDArray[np.object_] | None = None) -> None:
        self.kind, self.values, self.codes, self.words = kind, values, codes, words
        self._lines: dict[Line, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        """Numbers in one report."""
        return int(self.values.shape[1])

    def line(self, line: Line) -> NDArray[Any]:
        """The line's value of each report, worked out once."""
        if line not in self._lines:
            with np.errstate(all="ignore"):  # infinities and NaN are outcomes like others
                self._lines[line] = line.measure(self)
        return self._lines[line]

    def take(self, which: IntArray | slice) -> "Reports":
        """Some of the reports."""
        words = None if self.words is None else self.words[which]
        return Reports(self.kind, self.values[which], self.codes[which], words)

    def as_floats(self) -> "Reports":
        """Whole numbers as floats, where the other input gives floats."""
        return Reports(Kind.FLOAT, self.values, self.values.view(np.uint64)) if self.kind is Kind.WHOLE else self


class Past:
    """What the auditor remembers: an even sample of all pairs of reports so far, of bounded size."""

    def __init__(self, x: Reports, y: Reports, rng: np.random.Generator) -> None:
        self._most = max(2_000, min(_KEPT_ROWS, _KEPT_NUMBERS // x.width))
        self._rng = rng
        self.seen = len(x)
        self.x, self.y = x, y

    def add(self, x: Reports, y: Reports) -> None:
        """Remember more pairs, or some of them: each of all pairs is kept with the same probability."""
        room = max(0, self._most - len(self.x))
        if room:
            self.x, self.y = _joined(self.x, x.take(slice(room))), _joined(self.y, y.take(slice(room)))
        late = np.arange(room, len(x))
        places = (self._rng.random(len(late)) * (self.seen + late + 1)).astype(np.int64)
        kept = places < self._most
        if kept.any():
            self.x, self.y = (
                _replaced(old, places[kept], new.take(late[kept])) for old, new in ((self.x, x), (self.y, y))
            )
        self.seen += len(x)

    def every_other(self, first: int) -> "Past":
        """Half of what is remembered: what is learned on one half is judged on the other."""
        half = slice(first, None, 2)
        return Past(self.x.take(half), self.y.take(half), self._rng)


def draw(mechanism: Mechanism, database: int, size: int, rng: np.random.Generator) -> Reports:
    """Ask the mechanism for `size` reports on input `database`, and refuse anything else than that."""
    try:
        answer = mechanism(database, size, rng)
    except CloakworkError:
        raise
    except Exception as error:
        raise InputError(
            f"the mechanism failed when asked for {size} reports on input {database}: {type(error).__name__}: {error}. "
            "A failure can be an outcome too: then give a word or NaN for it.",
            database=database,
            size=size,
        ) from error
    try:
        array = np.asarray(answer)
    except (ValueError, TypeError):
        raise InputError(
            f"the mechanism's reports on input {database} are not of one width: give each report the same number of "
            "entries.",
            database=database,
        ) from None
    if array.ndim not in {1, 2} or len(array) != size or array.size == 0:
        raise InputError(
            f"the mechanism gave an array of shape {array.shape} for {size} reports on input {database}: give shape "
            f"({size},), or ({size}, k) with k entries in each report.",
            shape=array.shape,
            size=size,
            database=database,
        )
    return _read(array, database)


def alike(first: Reports, second: Reports) -> tuple[Reports, Reports]:
    """Both in one form; refused when they cannot be compared."""
    if first.width != second.width:
        raise InputError(
            f"the mechanism gave reports with {first.width} entries and reports with {second.width}: all reports must "
            "have the same number of entries.",
            widths=(first.width, second.width),
        )
    if first.kind is second.kind:
        return first, second
    if Kind.TEXT in {first.kind, second.kind}:
        raise InputError(
            f"the mechanism gave {first.kind} and {second.kind}: give arrays of objects where both occur.",
            kinds=(first.kind, second.kind),
        )
    return first.as_floats(), second.as_floats()


def _read(array: NDArray[Any], database: int) -> Reports:
    if array.dtype.kind in "USO":
        return _read_objects(array, database)
    rows = array.reshape(len(array), -1)
    if array.dtype.kind in "biu":
        whole = rows.astype(np.uint64 if array.dtype.kind == "u" else np.int64)
        return Reports(Kind.WHOLE, whole.astype(np.float64), np.ascontiguousarray(whole).view(np.uint64))
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return _floats(rows)
    raise InputError(
        f"the mechanism gave an array of {array.dtype} on input {database}: give numbers, bools or words.",
        dtype=array.dtype,
        database=database,
    )


def _floats(rows: NDArray[Any]) -> Reports:
    values = np.array(rows, dtype=np.float64, order="C")
    return Reports(Kind.FLOAT, values, values.view(np.uint64))


def _read_objects(array: NDArray[Any], database: int) -> Reports:
    entries = array.ravel().tolist()
    if all(_is_whole(entry) for entry in entries):
        values = np.array([_float(entry) for entry in entries]).reshape(len(array), -1)
        codes = np.array([int(entry) & _WORD for entry in entries], dtype=np.uint64).reshape(values.shape)
        return Reports(Kind.WHOLE, values, codes)
    if all(isinstance(entry, numbers.Real) for entry in entries):
        return _floats(np.array([_float(entry) for entry in entries]).reshape(len(array), -1))
    if array.ndim == 2 and array.shape[1] > 1:
        raise InputError(
            f"the mechanism gave rows of objects that are not all numbers on input {database}: give one word per "
            "report, such as the row joined by commas.",
            database=database,
        )
    words = np.array([entry if isinstance(entry, str) else repr(entry) for entry in entries], dtype=object)
    values = np.array([_float(entry) if isinstance(entry, numbers.Real) else np.nan for entry in entries])
    known = {word: _hash(word) for word in set(words.tolist())}
    codes = np.array([known[word] for word in words.tolist()], dtype=np.uint64)
    return Reports(Kind.TEXT, values[:, None], codes[:, None], words)


def _is_whole(entry: object) -> bool:
    return isinstance(entry, numbers.Integral | np.bool_)


def _float(entry: Any) -> float:
    try:
        return float(entry)
    except OverflowError:
        return np.inf if entry > 0 else -np.inf


def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _joined(first: Reports, second: Reports) -> Reports:
    words = None if first.words is None or second.words is None else np.concatenate([first.words, second.words])
    return Reports(
        first.kind,
        np.concatenate([first.values, second.values]),
        np.concatenate([first.codes, second.codes]),
        words,
    )


def _replaced(old: Reports, places: IntArray, new: Reports) -> Reports:
    """`old` with some rows exchanged, in place; a new object, since lines were worked out for the old one."""
    old.values[places] = new.values
    old.codes[places] = new.codes
    if old.words is not None and new.words is not None:
        old.words[places] = new.words
    return Reports(old.kind, old.values, old.codes, old.words)
