"""Features: numbers measured on a report, from which events are made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray
from cloakwork.auditing.report_samples import Codes, ReportKind, Reports
from cloakwork.errors import InputError

FROM_ONE = "(counted from 1)"  # in words only
_MIX = np.uint64(0x9E3779B97F4A7C15)
SPECIALS = ("an ordinary value", "not a number", "plus infinity", "minus infinity", "minus zero", "zero", "subnormal")


@dataclass(frozen=True)
class Value:
    """The only entry of a report."""

    def measure(self, reports: Reports) -> FloatArray:
        return reports.values[:, 0]

    def name(self) -> str:
        return "the output"


@dataclass(frozen=True)
class RowEntry:
    """One entry of a report that has `of` of them."""

    index: int
    of: int

    def measure(self, reports: Reports) -> FloatArray:
        return reports.values[:, self.index]

    def name(self) -> str:
        return _subject(self.index, self.of)


@dataclass(frozen=True)
class Combination:
    """One entry plus or minus another, in a report that has `of` of them."""

    first: int
    second: int
    sign: int
    of: int

    def measure(self, reports: Reports) -> FloatArray:
        return np.asarray(reports.values[:, self.first] + self.sign * reports.values[:, self.second])

    def name(self) -> str:
        return f"entry {self.first + 1} {'plus' if self.sign > 0 else 'minus'} {_subject(self.second, self.of)}"


@dataclass(frozen=True)
class RowFigure:
    """A figure of the whole row, one of `FIGURES`."""

    figure: str

    def measure(self, reports: Reports) -> FloatArray:
        return np.asarray(FIGURES[self.figure](reports.values), dtype=np.float64)

    def name(self) -> str:
        return f"{self.figure} {FROM_ONE}" if self.is_place else self.figure

    @property
    def is_place(self) -> bool:
        """Whether it is the index of an entry, from 0; in words entries are counted from 1."""
        return self.figure.startswith("the place")


FIGURES: dict[str, Callable[[FloatArray], NDArray[Any]]] = {
    "the place of the largest entry": lambda rows: np.where(np.isnan(rows), -np.inf, rows).argmax(axis=1),
    "the place of the smallest entry": lambda rows: np.where(np.isnan(rows), np.inf, rows).argmin(axis=1),
    "the largest entry": lambda rows: np.where(np.isnan(rows), -np.inf, rows).max(axis=1),
    "the smallest entry": lambda rows: np.where(np.isnan(rows), np.inf, rows).min(axis=1),
    "the number of entries that are not zero": lambda rows: np.count_nonzero(rows, axis=1),
    "the number of different entries": lambda rows: (np.diff(np.sort(rows, axis=1), axis=1) != 0).sum(axis=1) + 1,
    "the sum of the entries": lambda rows: rows.sum(axis=1),
}


@dataclass(frozen=True)
class LowestBit:
    """The exponent of the lowest bit that is set: how fine a grid of powers of two the number lies on."""

    index: int | None = None
    of: int = 1

    def measure(self, reports: Reports) -> FloatArray:
        if reports.kind is ReportKind.WHOLE:
            return _trailing_zeros(reports.codes[:, self.index or 0])
        mantissa, exponent = np.frexp(reports.values[:, self.index or 0])
        whole = np.where(np.isfinite(mantissa), mantissa, 0.0) * 2.0**53
        zeros = _trailing_zeros(np.abs(whole).astype(np.uint64))
        return np.asarray(np.where(np.isfinite(mantissa), exponent - 53.0 + zeros, np.nan))

    def name(self) -> str:
        return f"the exponent of the lowest bit of {_subject(self.index, self.of)}"


@dataclass(frozen=True)
class TrailingZeros:
    """Number of low bits of the mantissa that are zero."""

    index: int | None = None
    of: int = 1

    def measure(self, reports: Reports) -> FloatArray:
        return _trailing_zeros(reports.codes[:, self.index or 0] & np.uint64((1 << 52) - 1))

    def name(self) -> str:
        return f"the number of zeros at the end of the mantissa of {_subject(self.index, self.of)}"


@dataclass(frozen=True)
class LowBits:
    """The lowest bits of the code: of a whole number its remainder, of a float the end of its mantissa."""

    bits: int
    index: int | None = None
    of: int = 1

    def measure(self, reports: Reports) -> FloatArray:
        return (reports.codes[:, self.index or 0] & np.uint64((1 << self.bits) - 1)).astype(np.float64)

    def name(self) -> str:
        if self.bits == 1:
            return f"the lowest bit of {_subject(self.index, self.of)}"
        return f"the number in the lowest {self.bits} bits of {_subject(self.index, self.of)}"


@dataclass(frozen=True)
class Residue:
    """Where between two points of a lattice the number lies: 0 is on the lattice, 0.5 half way to the next."""

    spacing: float

    def measure(self, reports: Reports) -> FloatArray:
        # a quarter is added so that what lies on the lattice does not fall to both sides of the cut, rounded or not
        place = np.mod(reports.values[:, 0] / self.spacing + 0.25, 1.0) - 0.25
        return np.asarray(np.round(place, 6) + 0.0)

    def name(self) -> str:
        return f"the place of the output between multiples of {self.spacing:.6g}"


@dataclass(frozen=True)
class Identity:
    """The report itself: a code that is the same for equal reports only."""

    def measure(self, reports: Reports) -> Codes:
        if reports.width == 1:
            return reports.codes[:, 0]
        total = np.zeros(len(reports), dtype=np.uint64)
        for column in reports.codes.T:
            total = (total ^ column) * _MIX
            total ^= total >> np.uint64(29)
        return total

    def name(self) -> str:
        return "the output"


@dataclass(frozen=True)
class SpecialValue:
    """Which special value the report holds, as the place in `SPECIALS`; of a row the rarest kind that occurs."""

    def measure(self, reports: Reports) -> FloatArray:
        values = reports.values
        kinds = [
            np.isnan(values),
            values == np.inf,
            values == -np.inf,
            (values == 0) & np.signbit(values),
            (values == 0) & ~np.signbit(values),
            (values != 0) & (np.abs(values) < np.finfo(np.float64).tiny),
        ]
        found = np.zeros(len(reports))
        for place in range(len(kinds), 0, -1):
            found[kinds[place - 1].any(axis=1)] = place
        return found

    def name(self) -> str:
        return "the output"


@dataclass(frozen=True, eq=False)
class GivenRatio:
    """The log likelihood ratio of input 0 to input 1, from the caller's densities."""

    densities: Any

    def measure(self, reports: Reports) -> FloatArray:
        rows = reports.values if reports.width > 1 else reports.values[:, 0]
        first, second = (np.asarray(density(rows), dtype=np.float64) for density in self.densities)
        if first.shape != (len(reports),) or second.shape != (len(reports),):
            raise InputError(
                f"densities gave shapes {first.shape} and {second.shape} for {len(reports)} outputs: "
                "give one log density per output.",
                shapes=(first.shape, second.shape),
            )
        ratio = np.where(first == second, 0.0, first - second)  # both minus infinity: never seen, no evidence
        return np.asarray(ratio, dtype=np.float64)

    def name(self) -> str:
        return "the given log likelihood ratio of input 0 to input 1"


def spacing_of(values: FloatArray) -> float:
    """The step of the lattice that most values lie on, 0 where there is none."""
    different = np.unique(values[np.isfinite(values)])
    gaps = np.diff(different)
    size = float(np.abs(different).max(initial=0.0))
    gaps = gaps[gaps > 1e-12 * size]
    if len(gaps) < 8:
        return 0.0
    # rounding shrinks gaps slightly: the step is the value that many small gaps share
    step = float(np.quantile(gaps, 0.05))
    near = gaps[np.abs(gaps - step) <= 1e-6 * step + 1e-13 * size]
    return float(np.median(near)) if len(near) >= max(4, 0.2 * len(gaps)) else 0.0


def _trailing_zeros(whole: NDArray[np.uint64]) -> FloatArray:
    lowest = whole & (~whole + np.uint64(1))
    return np.asarray(np.where(whole == 0, 64.0, np.log2(np.maximum(lowest, 1).astype(np.float64))))


def _subject(index: int | None, of: int) -> str:
    return "the output" if index is None else f"entry {index + 1} of {of} {FROM_ONE}"
