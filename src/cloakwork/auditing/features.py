"""Features: numbers measured on a report, from which events are made."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray
from cloakwork.auditing.report_samples import Codes, Feature, ReportKind, Reports
from cloakwork.errors import InputError

FROM_ONE = "(counted from 1)"  # in words only
_MOST_STEPS = 1e6  # beyond these, rounding errors of floats look like places between the points of a lattice
_MIX = np.uint64(0x9E3779B97F4A7C15)
SPECIALS = ("an ordinary value", "not a number", "plus infinity", "minus infinity", "minus zero", "zero", "subnormal")
PLACES: dict[str, Callable[[FloatArray], NDArray[Any]]] = {  # of an entry, from 0; in words they are counted from 1
    "the place of the largest entry": lambda rows: np.where(np.isnan(rows), -np.inf, rows).argmax(axis=1),
    "the place of the smallest entry": lambda rows: np.where(np.isnan(rows), np.inf, rows).argmin(axis=1),
}
FIGURES: dict[str, Callable[[FloatArray], NDArray[Any]]] = {
    "the largest entry": lambda rows: np.where(np.isnan(rows), -np.inf, rows).max(axis=1),
    "the smallest entry": lambda rows: np.where(np.isnan(rows), np.inf, rows).min(axis=1),
    "the number of entries that are not zero": lambda rows: np.count_nonzero(rows, axis=1),
    "the number of different entries": lambda rows: (np.diff(np.sort(rows, axis=1), axis=1) != 0).sum(axis=1) + 1,
    "the sum of the entries": lambda rows: rows.sum(axis=1),
}


def column(reports: Reports, index: int) -> FloatArray:
    """One entry of each report."""
    return reports.values[:, index]


def _sum(reports: Reports, first: int, second: int, sign: int) -> FloatArray:
    return np.asarray(reports.values[:, first] + sign * reports.values[:, second])


def place(reports: Reports, name: str) -> FloatArray:
    """The index of an entry, one of `PLACES`."""
    return np.asarray(PLACES[name](reports.values), dtype=np.float64)


def _figure(reports: Reports, name: str) -> FloatArray:
    return np.asarray(FIGURES[name](reports.values), dtype=np.float64)


def _lowest_bit(reports: Reports, index: int) -> FloatArray:
    if reports.kind is ReportKind.WHOLE:
        return _trailing_zeros(reports.codes[:, index])
    mantissa, exponent = np.frexp(reports.values[:, index])
    whole = np.where(np.isfinite(mantissa), mantissa, 0.0) * 2.0**53
    zeros = _trailing_zeros(np.abs(whole).astype(np.uint64))
    return np.asarray(np.where(np.isfinite(mantissa), exponent - 53.0 + zeros, np.nan))


def _mantissa_zeros(reports: Reports, index: int) -> FloatArray:
    return _trailing_zeros(reports.codes[:, index] & np.uint64((1 << 52) - 1))


def _low_bits(reports: Reports, bits: int, index: int) -> FloatArray:
    return (reports.codes[:, index] & np.uint64((1 << bits) - 1)).astype(np.float64)


def _residue(reports: Reports, spacing: float) -> FloatArray:
    # a quarter is added so that what lies on the lattice does not fall to both sides of the cut, rounded or not
    remainder = np.mod(reports.values[:, 0] / spacing + 0.25, 1.0) - 0.25
    return np.asarray(np.round(remainder, 6) + 0.0)


def _identity(reports: Reports) -> Codes:
    if reports.width == 1:
        return reports.codes[:, 0]
    total = np.zeros(len(reports), dtype=np.uint64)
    for codes in reports.codes.T:
        total = (total ^ codes) * _MIX
        total ^= total >> np.uint64(29)
    return total


def _special(reports: Reports) -> FloatArray:
    values = reports.values
    kinds = [
        np.isnan(values),
        values == np.inf,
        values == -np.inf,
        (values == 0) & np.signbit(values),
        (values == 0) & ~np.signbit(values),
        (values != 0) & (np.abs(values) < np.finfo(np.float64).tiny),
    ]
    rarest = np.zeros(len(reports))
    for kind in range(len(kinds), 0, -1):
        rarest[kinds[kind - 1].any(axis=1)] = kind
    return rarest


VALUE = Feature("the output", column, (0,))
IDENTITY = Feature("the output", _identity)  # a code that is the same for equal reports only
SPECIAL = Feature("the output", _special)  # the place in `SPECIALS`; of a row the rarest kind that occurs


def entry(index: int, width: int) -> Feature:
    """One entry of a row."""
    return Feature(_subject(index, width), column, (index,))


def combination(first: int, second: int, sign: int, width: int) -> Feature:
    """One entry of a row plus or minus another."""
    name = f"entry {first + 1} {'plus' if sign > 0 else 'minus'} {_subject(second, width)}"
    return Feature(name, _sum, (first, second, sign))


def figure(name: str) -> Feature:
    """A figure of the whole row, one of `FIGURES` or `PLACES`."""
    return Feature(f"{name} {FROM_ONE}", place, (name,)) if name in PLACES else Feature(name, _figure, (name,))


def lowest_bit(index: int = 0, width: int = 1) -> Feature:
    """The exponent of the lowest bit that is set: how fine a grid of powers of two the number lies on."""
    return Feature(f"the exponent of the lowest bit of {_subject(index, width)}", _lowest_bit, (index,))


def mantissa_zeros(index: int = 0, width: int = 1) -> Feature:
    """Number of low bits of the mantissa that are zero."""
    name = f"the number of zeros at the end of the mantissa of {_subject(index, width)}"
    return Feature(name, _mantissa_zeros, (index,))


def low_bits(bits: int, index: int = 0, width: int = 1) -> Feature:
    """The lowest bits of the code: of a whole number its remainder, of a float the end of its mantissa."""
    name = "the lowest bit" if bits == 1 else f"the number in the lowest {bits} bits"
    return Feature(f"{name} of {_subject(index, width)}", _low_bits, (bits, index))


def residue(spacing: float) -> Feature:
    """The position of the number between two points of a lattice: 0 on the lattice, 0.5 half way to the next."""
    return Feature(f"the place of the output between multiples of {spacing:.6g}", _residue, (spacing,))


@dataclass(frozen=True)
class ReportLattice:
    """The points `origin` + k `spacing`; without a spacing a report's code stands for its k."""

    spacing: float
    origin: float

    @classmethod
    def of(cls, values: FloatArray) -> "ReportLattice":
        """The lattice that all these values lie on, without a spacing where there is none."""
        different = np.unique(values[np.isfinite(values)])
        if len(different) > 1:
            smallest = float(np.diff(different).min())
            for parts in (1, 2, 3, 4):
                steps = (different - different[0]) * parts / smallest
                if steps[-1] < _MOST_STEPS and (np.abs(steps - np.round(steps)) < 0.01).all():
                    return cls(smallest / parts, float(different[0]))
        return cls(0.0, 0.0)

    def places(self, reports: Reports, index: int) -> Codes:
        """The number k of one entry of each report."""
        if not self.spacing:
            return reports.codes[:, index]
        steps = np.round((reports.values[:, index] - self.origin) / self.spacing)
        usable = np.abs(steps) < 2.0**62  # NaN is not
        return np.where(usable, steps, 0.0).astype(np.int64).view(np.uint64)


def _joint_bits(reports: Reports, lattice: ReportLattice, bits: int, indices: tuple[int, ...]) -> FloatArray:
    total = reduce(np.bitwise_xor, (lattice.places(reports, index) for index in indices))
    return (total & np.uint64((1 << bits) - 1)).astype(np.float64)


def joint_bits(lattice: ReportLattice, bits: int, indices: tuple[int, ...], entries: str) -> Feature:
    """The lowest bits of the XOR of some entries, each counted in steps of a lattice."""
    what = "the lowest bit" if bits == 1 else f"the number in the lowest {bits} bits"
    return Feature(f"{what} of the XOR of {entries}", _joint_bits, (lattice, bits, indices))


def _product(reports: Reports, first: int, second: int, centre: float) -> FloatArray:
    return np.asarray((reports.values[:, first] - centre) * (reports.values[:, second] - centre))


def product(first: int, second: int, centre: float, entries: str) -> Feature:
    """The product of two entries, each less a centre."""
    return Feature(f"the product of {entries}, each less {centre:.6g},", _product, (first, second, centre))


def likelihood_ratio(densities: tuple[Any, Any]) -> Feature:
    """The log likelihood ratio of input 0 to input 1, from the caller's densities."""
    return Feature("the given log likelihood ratio of input 0 to input 1", partial(_given_ratio, densities))


def _given_ratio(densities: tuple[Any, Any], reports: Reports) -> FloatArray:
    rows = reports.values if reports.width > 1 else reports.values[:, 0]
    first, second = (np.asarray(density(rows), dtype=np.float64) for density in densities)
    if first.shape != (len(reports),) or second.shape != (len(reports),):
        raise InputError(
            f"densities gave shapes {first.shape} and {second.shape} for {len(reports)} outputs: "
            "give one log density per output.",
            shapes=(first.shape, second.shape),
        )
    ratio = np.where(first == second, 0.0, first - second)  # both minus infinity: never seen, no evidence
    return np.asarray(ratio, dtype=np.float64)


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


def _subject(index: int, width: int) -> str:
    return "the output" if width == 1 else f"entry {index + 1} of {width} {FROM_ONE}"
