"""Reports as the auditor keeps them: values to compare, codes that tell any two apart, and a bounded past."""

import hashlib
import numbers
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import CloakworkError, InputError
from cloakwork.readings import as_float

Codes: TypeAlias = NDArray[np.uint64]
WordArray: TypeAlias = NDArray[np.object_]
Answers: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
Mechanism: TypeAlias = Callable[[int, int, np.random.Generator], Any]

RUN = 4  # reports in a row that are looked at together
_KEPT_ROWS = 1 << 16
_KEPT_NUMBERS = 1 << 20
_WORD = (1 << 64) - 1
_LOW = (1 << 32) - 1
_EXACT = 2.0**53  # floats tell whole numbers apart up to here
_WHOLE = numbers.Integral | np.bool_
_NUMBER = numbers.Real | np.bool_


class ReportKind(StrEnum):
    """The kind of a mechanism's reports."""

    FLOAT = "floating-point numbers"
    WHOLE = "whole numbers"
    TEXT = "words"


@dataclass(frozen=True)
class Feature:
    """A number (or code) of each report, that events are made of, and its name as the subject of a sentence.

    `measure(reports, *args)` gives one value per report, shape (size,).
    """

    name: str
    measure: Callable[..., NDArray[Any]]
    args: tuple[Any, ...] = ()


class Reports:
    """A row of reports: `values` (size, width) as floats, `codes` (size, width) that differ where reports differ.

    Codes are the bits of a float (so -0.0 is not 0.0), the lower 64 bits of a whole number (of one that needs more,
    the lower 32 and a hash), a hash of a word. A word among numbers is a NaN with a payload of its own; `words` (size,
    width) has it, and None for each number.
    """

    def __init__(self, kind: ReportKind, values: FloatArray, codes: Codes, words: WordArray | None = None) -> None:
        self.kind, self.values, self.codes, self.words = kind, values, codes, words
        self._features: dict[Feature, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        """Numbers in one report."""
        return int(self.values.shape[1])

    def feature(self, feature: Feature) -> NDArray[Any]:
        """The feature's value of each report, worked out once."""
        if feature not in self._features:
            with np.errstate(all="ignore"):  # infinities and NaN are outcomes like others
                self._features[feature] = feature.measure(self, *feature.args)
        return self._features[feature]

    def take(self, which: IntArray | slice) -> "Reports":
        """Some of the reports."""
        words = None if self.words is None else self.words[which]
        return Reports(self.kind, self.values[which], self.codes[which], words)

    def runs(self) -> "Reports":
        """Each `RUN` reports in a row as one row; what is left over at the end is not in it."""
        size, width = len(self) // RUN, RUN * self.width
        whole = slice(size * RUN)
        return Reports(self.kind, self.values[whole].reshape(size, width), self.codes[whole].reshape(size, width))

    def as_floats(self) -> "Reports":
        """Whole numbers as floats, once floats have come too."""
        return Reports(ReportKind.FLOAT, self.values, self.values.view(np.uint64), self.words)


class Past:
    """The auditor's memory: a uniform sample of all pairs of reports (or of runs of them) so far, of bounded size."""

    def __init__(self, x: Reports, y: Reports, rng: np.random.Generator, *, run: int = 1) -> None:
        self._most = max(2_000, min(_KEPT_ROWS // run, _KEPT_NUMBERS // x.width))
        self.rng = rng
        self.seen = len(x)
        self.x, self.y = x, y

    def add(self, x: Reports, y: Reports) -> None:
        """Remember more pairs; each of all pairs so far is kept with the same probability."""
        room = max(0, self._most - len(self.x))
        if room:
            self.x, self.y = _joined(self.x, x.take(slice(room))), _joined(self.y, y.take(slice(room)))
        late = np.arange(room, len(x))
        places = (self.rng.random(len(late)) * (self.seen + late + 1)).astype(np.int64)
        kept = places < self._most
        if kept.any():
            self.x, self.y = (
                _replaced(old, places[kept], new.take(late[kept])) for old, new in ((self.x, x), (self.y, y))
            )
        self.seen += len(x)

    def as_floats(self) -> None:
        """Remember whole numbers as floats from now on."""
        self.x, self.y = self.x.as_floats(), self.y.as_floats()

    def every_other(self, first: int) -> "Past":
        """Half of the memory: one half is for learning, the other for judging."""
        half = slice(first, None, 2)
        return Past(self.x.take(half), self.y.take(half), self.rng)


def ask(mechanism: Mechanism, size: int, rng: np.random.Generator, *, width: int | None = None) -> Answers:
    """Ask the mechanism for `size` reports on each input: two arrays (size, width), of numbers or of objects."""
    answers = _draw(mechanism, 0, size, rng), _draw(mechanism, 1, size, rng)
    first = answers[0].shape[1] if width is None else width
    for answer in answers:
        if answer.shape[1] != first:
            raise InputError(
                f"the mechanism gave reports with {first} entries and reports with {answer.shape[1]}: all reports must "
                "have the same number of entries.",
                widths=(first, answer.shape[1]),
            )
    return answers


def kind_of(answers: Answers, before: ReportKind | None = None) -> ReportKind:
    """The kind of these answers, after reports of kind `before`.

    Words if the first answers hold nothing else, floating-point numbers once one has come, else whole numbers.
    """
    if before in {ReportKind.TEXT, ReportKind.FLOAT}:
        return before
    if before is None and all(_is_words(answer) for answer in answers):
        if answers[0].shape[1] > 1:
            raise InputError(
                "the mechanism gave rows of words: give one word per report, such as the row joined by commas."
            )
        return ReportKind.TEXT
    return ReportKind.FLOAT if any(_has_floats(answer) for answer in answers) else ReportKind.WHOLE


def read(answer: NDArray[Any], kind: ReportKind) -> Reports:
    """The reports of an answer, as this kind.

    Each is read on its own, whatever else is in the answer, so that a bet on whole numbers stays fair when the first
    float or word comes.
    """
    if kind is ReportKind.TEXT:
        return _read_words(answer)
    if answer.dtype == object:
        return _read_objects(answer, kind)
    with np.errstate(over="ignore"):
        values = np.array(answer, dtype=np.float64, order="C")
    if kind is ReportKind.FLOAT:
        return Reports(kind, values, values.view(np.uint64))
    if answer.dtype.kind == "f":
        return Reports(kind, values, _whole_codes(values))
    whole = answer.astype(np.uint64 if answer.dtype.kind == "u" else np.int64)
    return Reports(kind, values, np.ascontiguousarray(whole).view(np.uint64))


def word_code(word: str) -> float:
    """A NaN whose payload is a hash of the word: among numbers, an outcome of its own."""
    payload = _hash(word) >> 16 | 1
    found: float = struct.unpack("<d", struct.pack("<Q", 0x7FF8 << 48 | payload))[0]
    return found


def _draw(mechanism: Mechanism, database: int, size: int, rng: np.random.Generator) -> NDArray[Any]:
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
    array = _array(answer, database)
    if array.ndim not in {1, 2} or len(array) != size or array.size == 0:
        raise InputError(
            f"the mechanism gave an array of shape {array.shape} for {size} reports on input {database}: give shape "
            f"({size},), or ({size}, k) with k entries in each report.",
            shape=array.shape,
            size=size,
            database=database,
        )
    if array.dtype.kind not in "biufUSO":
        raise InputError(
            f"the mechanism gave an array of {array.dtype} on input {database}: give numbers, bools or words.",
            dtype=array.dtype,
            database=database,
        )
    # a copy, because the mechanism may use the same array for the other input
    rows = np.array(array, dtype=object if array.dtype.kind in "US" else None)
    return rows.reshape(size, -1)


def _array(answer: Any, database: int) -> NDArray[Any]:
    try:
        array = np.asarray(answer)
        return np.asarray(answer, dtype=object) if array is not answer and _is_changed(array) else array
    except (ValueError, TypeError):
        raise InputError(
            f"the mechanism's reports on input {database} are not of one width: give each report the same number of "
            "entries.",
            database=database,
        ) from None


def _is_changed(array: NDArray[Any]) -> bool:
    """Whether NumPy may have changed a list: numbers beside words to words, large integers to floats."""
    return array.dtype.kind in "US" or (array.dtype.kind == "f" and bool((np.abs(array) >= _EXACT).any()))


def _is_words(answer: NDArray[Any]) -> bool:
    return answer.dtype == object and not any(isinstance(entry, _NUMBER) for entry in answer.flat)


def _has_floats(answer: NDArray[Any]) -> bool:
    if answer.dtype != object:
        return answer.dtype.kind == "f"
    return any(not isinstance(entry, str | _WHOLE) for entry in map(_meant, answer.flat))


def _read_words(answer: NDArray[Any]) -> Reports:
    entries = answer.ravel().tolist()
    words = np.array([entry if isinstance(entry, str) else repr(entry) for entry in entries], dtype=object)
    values = np.array([as_float(entry) if isinstance(entry, _NUMBER) else np.nan for entry in entries])
    known = {word: _hash(word) for word in set(words.tolist())}
    codes = np.array([known[word] for word in words.tolist()], dtype=np.uint64)
    return Reports(ReportKind.TEXT, values[:, None], codes[:, None], words[:, None])


def _read_objects(answer: NDArray[Any], kind: ReportKind) -> Reports:
    entries = [_meant(entry) for entry in answer.flat]
    known = {word: word_code(word) for word in {entry for entry in entries if isinstance(entry, str)}}
    found = [known[entry] if isinstance(entry, str) else as_float(entry) for entry in entries]
    values = np.array(found).reshape(answer.shape)
    codes = values.view(np.uint64)
    if kind is ReportKind.WHOLE:
        codes = _whole_codes(values)
        exact = [place for place, entry in enumerate(entries) if isinstance(entry, _WHOLE)]
        codes.flat[exact] = [_whole_code(int(entries[place])) for place in exact]
    if not known:
        return Reports(kind, values, codes)
    words = np.array([entry if isinstance(entry, str) else None for entry in entries], dtype=object)
    return Reports(kind, values, codes, words.reshape(answer.shape))


def _whole_code(number: int) -> int:
    if -(1 << 63) <= number < 1 << 64:
        return number & _WORD
    return number & _LOW | _hash(hex(number)) & ~_LOW


def _whole_codes(values: FloatArray) -> Codes:
    """The lower 64 bits of floats that are whole numbers; the bits of those that are not, and of words."""
    codes = values.view(np.uint64).copy()
    whole = (np.abs(values) < 2.0**63) & (values == np.floor(values))
    codes[whole] = values[whole].astype(np.int64).view(np.uint64)
    return codes


def _meant(entry: Any) -> Any:
    """A number or a word; a word that is a number as Python writes it is that number, which numpy makes of [1, "x"]."""
    if not isinstance(entry, str):
        return entry if isinstance(entry, _NUMBER) else repr(entry)
    for reads in (int, float):
        try:
            number = reads(entry)
        except ValueError:
            continue
        if repr(number) == entry:
            return number
    return entry


def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _joined(first: Reports, second: Reports) -> Reports:
    words = None
    if first.words is not None or second.words is not None:
        words = np.concatenate([_words_of(first), _words_of(second)])
    return Reports(
        first.kind,
        np.concatenate([first.values, second.values]),
        np.concatenate([first.codes, second.codes]),
        words,
    )


def _replaced(old: Reports, places: IntArray, new: Reports) -> Reports:
    """`old` with some rows exchanged, in place; a new object, since features were worked out for the old one."""
    old.values[places] = new.values
    old.codes[places] = new.codes
    words = old.words
    if words is not None or new.words is not None:
        words = _words_of(old)
        words[places] = _words_of(new)
    return Reports(old.kind, old.values, old.codes, words)


def _words_of(reports: Reports) -> WordArray:
    return np.full(reports.values.shape, None) if reports.words is None else reports.words
