"""Reports as the auditor sees them: numbers to compare, and codes that distinguish any two reports."""

import hashlib
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray
from cloakwork.errors import CloakworkError, InputError

Draw: TypeAlias = Callable[[int, int], ArrayLike]
"""Called with (database, size): `size` new reports on input 0 or 1. Every adapter is one of these."""

RUN = 4  # consecutive reports that are examined together
MAX_ROWS, MAX_NUMBERS = 1 << 16, 1 << 20  # remembered on each input
_WORD, _LOW = (1 << 64) - 1, (1 << 32) - 1


@dataclass(frozen=True, eq=False)
class Feature:
    """One number for each report, shape (size,), and its name as the subject of a sentence."""

    name: str
    measure: Callable[["Reports"], NDArray[Any]]


@dataclass(eq=False)
class Reports:
    """Reports on one input: `values` as floats and `codes` as 64-bit words, both of shape (size, width).

    Two entries are equal exactly where their codes are. A word among the numbers has the value NaN, and its code is a
    NaN whose payload is a hash of the word.
    """

    values: FloatArray
    codes: NDArray[np.uint64]
    _measured: dict[Feature, NDArray[Any]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        """Entries in one report."""
        return int(self.values.shape[1])

    def measure(self, feature: Feature) -> NDArray[Any]:
        """Return the feature of each report; it is computed once."""
        if feature not in self._measured:
            with np.errstate(all="ignore"):  # infinities and NaN are outcomes like any other
                self._measured[feature] = feature.measure(self)
        return self._measured[feature]

    def take(self, which: slice) -> "Reports":
        """Return some of the reports."""
        return Reports(self.values[which], self.codes[which])

    def runs(self) -> "Reports":
        """Return each `RUN` consecutive reports as one wide report."""
        size, width = len(self) // RUN, RUN * self.width
        whole = slice(size * RUN)
        return Reports(self.values[whole].reshape(size, width), self.codes[whole].reshape(size, width))


class ReportPair(NamedTuple):
    """Equally many reports on input 0 and on input 1."""

    x: Reports
    y: Reports

    def take(self, which: slice) -> "ReportPair":
        """Return some of the pairs."""
        return ReportPair(self.x.take(which), self.y.take(which))

    def runs(self) -> "ReportPair":
        """Return each `RUN` consecutive reports as one."""
        return ReportPair(self.x.runs(), self.y.runs())

    def followed_by(self, more: "ReportPair") -> "ReportPair":
        """Return both together, without the oldest where they are more than the auditor remembers."""
        keep = slice(-max(2_000, min(MAX_ROWS, MAX_NUMBERS // self.x.width)), None)
        return ReportPair(
            *(
                Reports(np.concatenate([a.values, b.values])[keep], np.concatenate([a.codes, b.codes])[keep])
                for a, b in zip(self, more, strict=True)
            )
        )


class Reader:
    """Draws reports and reads them, always in the way that the first ones called for.

    `whole` says whether the first reports were whole numbers or words only, `width` how many entries a report has.
    """

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._words: dict[int, str] = {}
        self.whole = False
        self.width = 0

    def pair(self, size: int) -> ReportPair:
        """Return `size` new reports on each input."""
        first = not self.width
        answers = self._rows(0, size), self._rows(1, size)
        if first:
            self.whole = all(map(_is_whole, answers))
        return ReportPair(*map(self._read, answers))

    def shown(self, code: int) -> str:
        """Return the entry with this code, as a person writes it."""
        if code in self._words:
            return f'"{self._words[code]}"'
        if self.whole:
            return str(code - (1 << 64) if code >> 63 else code)
        return repr(struct.unpack("<d", struct.pack("<Q", code))[0])

    def _rows(self, database: int, size: int) -> NDArray[Any]:
        try:
            answer = self._draw(database, size)
            # NumPy would turn the numbers of a mixed list into words, and large integers into floats
            array = answer if isinstance(answer, np.ndarray) else np.asarray(answer, dtype=object)
        except CloakworkError:
            raise
        except Exception as error:
            raise InputError(
                f"the mechanism failed when asked for {size} reports on input {database}: {type(error).__name__}: "
                f"{error}. A failure can be an outcome too: return a word or NaN for it.",
                database=database,
                size=size,
            ) from error
        uneven = array.dtype == object and any(isinstance(entry, list | tuple | np.ndarray) for entry in array.flat)
        known = array.ndim in {1, 2} and len(array) == size and array.size and array.dtype.kind in "biufUSO"
        if uneven or not known:
            raise InputError(
                f"the mechanism returned {array.dtype} of shape {array.shape} for {size} reports on input {database}: "
                f"return numbers, bools or words of shape ({size},) or ({size}, k).",
                shape=array.shape,
                size=size,
                database=database,
            )
        rows = array.reshape(size, -1).copy()  # the mechanism may reuse its array for the other input
        self.width = self.width or rows.shape[1]
        if rows.shape[1] != self.width:
            raise InputError(
                f"the mechanism returned reports with {self.width} and with {rows.shape[1]} entries: all reports need "
                "the same number.",
                widths=(self.width, rows.shape[1]),
            )
        return rows.astype(object) if rows.dtype.kind in "US" else rows

    def _read(self, rows: NDArray[Any]) -> Reports:
        if rows.dtype == object:
            read = [self._entry(entry) for entry in rows.flat]
            values = np.array([value for value, _ in read], dtype=np.float64)
            codes = np.array([code for _, code in read], dtype=np.uint64)
            return Reports(values.reshape(rows.shape), codes.reshape(rows.shape))
        values = rows.astype(np.float64)
        if not self.whole:
            return Reports(values, values.view(np.uint64))
        if rows.dtype.kind != "f":
            return Reports(values, rows.astype(np.uint64 if rows.dtype.kind == "u" else np.int64).view(np.uint64))
        codes = values.view(np.uint64).copy()  # floats after whole numbers: 1.0 is the same report as 1
        same = (np.abs(values) < 2.0**63) & (values == np.floor(values))
        codes[same] = values[same].astype(np.int64).view(np.uint64)
        return Reports(values, codes)

    def _entry(self, entry: Any) -> tuple[float, int]:
        """Return the value and the code of an entry of an array of objects."""
        number = _number(entry)
        if number is None:
            code = _word_code(str(entry))
            self._words.setdefault(code, str(entry)[:60])
            return np.nan, code
        try:
            value = float(number)
        except OverflowError:
            value = np.inf if number > 0 else -np.inf
        if self.whole and (isinstance(number, int) or (np.isfinite(value) and value.is_integer())):
            number = int(number)
            fits = -(1 << 63) <= number < 1 << 64
            return value, number & _WORD if fits else number & _LOW | _word_code(hex(number)) & ~_LOW
        return value, struct.unpack("<Q", struct.pack("<d", value))[0]


def _is_whole(rows: NDArray[Any]) -> bool:
    if rows.dtype != object:
        return rows.dtype.kind != "f"
    return not any(isinstance(_number(entry), float) for entry in rows.flat)


def _number(entry: Any) -> int | float | None:
    """Return an entry as an int or a float; None if it is a word.

    A word that is written as Python writes a number is this number: NumPy makes words of [1, "x"].
    """
    if isinstance(entry, Integral | np.bool_):
        return int(entry)
    if isinstance(entry, Real):
        return float(entry)
    for kind in (int, float) if isinstance(entry, str) else ():
        with suppress(ValueError):
            if repr(kind(entry)) == entry:
                return kind(entry)
    return None


def _word_code(word: str) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return 0x7FF8 << 48 | int.from_bytes(digest, "big") | 1
