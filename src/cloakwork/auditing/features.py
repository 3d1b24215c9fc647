"""Features: numbers measured on each report, from which events are made."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.auditing.reports import RUN, Feature, ReportPair, Reports

SCREEN = 1_000  # reports that a first look at many features takes
MAX_ENTRIES = 16
_FEW_ENTRIES = 4
MIX = np.uint64(0x9E3779B97F4A7C15)
_MAX_STEPS = 1e6  # beyond these, rounding errors look like points between those of a lattice
_SUMMARIES: dict[str, Callable[[FloatArray], NDArray[Any]]] = {
    "the largest entry": lambda rows: np.where(np.isnan(rows), -np.inf, rows).max(axis=1),
    "the smallest entry": lambda rows: np.where(np.isnan(rows), np.inf, rows).min(axis=1),
    "the number of entries that are not zero": lambda rows: np.count_nonzero(rows, axis=1),
    "the index of the largest entry": lambda rows: np.where(np.isnan(rows), -np.inf, rows).argmax(axis=1),
    "the index of the smallest entry": lambda rows: np.where(np.isnan(rows), np.inf, rows).argmin(axis=1),
}


def code(reports: Reports) -> NDArray[np.uint64]:
    """Return one code for each report: equal reports have equal codes."""
    if reports.width == 1:
        return reports.codes[:, 0]
    total = np.zeros(len(reports), dtype=np.uint64)
    for column in reports.codes.T:
        total = (total ^ column) * MIX
        total ^= total >> np.uint64(29)
    return total


OUTPUT = Feature("the output", code)  # as a code: for events that are sets of values


def entry(index: int, width: int) -> Feature:
    """Return one entry of each report."""
    return Feature(entry_name(index, width), lambda reports: reports.values[:, index])


def entries(past: ReportPair) -> list[Feature]:
    """Return the entries that differ most between the inputs."""
    return [entry(index, past.x.width) for index in map(int, differing(past, MAX_ENTRIES))]


def differences(past: ReportPair) -> list[Feature]:
    """Return differences of two entries: all where there are few, else of neighbours and of correlated entries."""
    width = past.x.width
    both = list(combinations(range(width), 2))
    if width > 7:
        rows = past.x.values[:SCREEN, :256]
        with np.errstate(all="ignore"):
            related = np.abs(np.nan_to_num(np.corrcoef(np.where(np.isfinite(rows), rows, 0.0).T)))
        i, j = np.triu_indices(len(related), 1)
        best = np.argsort(-related[i, j], kind="stable")[: MAX_ENTRIES // 2]
        both = [*((int(i[k]), int(j[k])) for k in best), *((k, k + 1) for k in range(MAX_ENTRIES // 2 - 1))]
    return [_difference(i, j) for i, j in dict.fromkeys(both)]


def summaries() -> list[Feature]:
    """Return features of the whole row, such as its largest entry."""
    return [_summary(name, measure) for name, measure in _SUMMARIES.items()]


def low_bits(index: int, width: int) -> list[Feature]:
    """Return features of the last digits of one entry, where floating-point noise and coarse grids leak."""
    name = entry_name(index, width)
    exponent = Feature(f"the exponent of the lowest bit of {name}", lambda reports: _lowest(reports.values[:, index]))
    return [*(_lowest_bits(index, bits, name) for bits in (1, 3, 8)), exponent]


def residues(past: ReportPair) -> list[Feature]:
    """Return the position of the output between the points of a lattice that all reports on one input lie on."""
    steps = {ReportLattice(reports.values[:SCREEN, 0]).spacing for reports in past} - {0.0}
    return [_residue(step * multiple) for step in sorted(steps) for multiple in (1, 2, 3)]


def run_digits(runs: ReportPair, width: int) -> list[Feature]:
    """Return the last digits of the XOR of two reports of a run, counted in steps of the lattice that they lie on."""
    found = []
    for index in range(min(width, _FEW_ENTRIES)):
        lattice = ReportLattice(runs.x.values[:SCREEN, index::width])
        for i, j in combinations(range(RUN), 2):
            places = i * width + index, j * width + index
            name = f"of the XOR of {entry_name(index, width)} in reports {i + 1} and {j + 1} of each {RUN} in a row"
            found += [_xor(*places, lattice, bits, f"the number in the {_bits(bits)} {name}") for bits in (1, 3, 8)]
    return found


class ReportLattice:
    """The points that all numbers lie on; `places` counts their steps, or returns codes where there is no lattice."""

    def __init__(self, values: FloatArray) -> None:
        self.spacing = self.origin = 0.0
        different = np.unique(values[np.isfinite(values)])
        smallest = float(np.diff(different).min(initial=np.inf))
        if not 1e-300 < smallest < np.inf:
            return
        for parts in (1, 2, 3, 4):
            steps = (different - different[0]) * parts / smallest
            if steps[-1] < _MAX_STEPS and (np.abs(steps - np.round(steps)) < 0.01).all():
                self.spacing, self.origin = smallest / parts, float(different[0])
                return

    def places(self, reports: Reports, index: int) -> NDArray[np.uint64]:
        """Return the number of steps of one entry from the origin."""
        if not self.spacing:
            return reports.codes[:, index]
        steps = np.round((reports.values[:, index] - self.origin) / self.spacing)
        return np.where(np.abs(steps) < 2.0**62, steps, 0.0).astype(np.int64).view(np.uint64)


def differing(past: ReportPair, most: int) -> IntArray:
    """Return the entries whose mean, spread or share of NaN and infinities differ most between the inputs."""
    x, y = (reports.values[:SCREEN] for reports in past)
    if x.shape[1] <= most:
        return np.arange(x.shape[1])
    a, b = (np.where(np.isfinite(part), part, 0.0) for part in (x, y))
    with np.errstate(all="ignore"):
        shift = np.abs(a.mean(axis=0) - b.mean(axis=0)) / np.sqrt(a.var(axis=0) + b.var(axis=0))
        spread = np.abs(np.log(a.std(axis=0) / b.std(axis=0)))
    odd = np.abs((~np.isfinite(x)).mean(axis=0) - (~np.isfinite(y)).mean(axis=0))
    total = sum(np.nan_to_num(part, posinf=0.0) for part in (shift, spread, odd))
    return np.sort(np.argsort(-np.asarray(total), kind="stable")[:most])


def _difference(i: int, j: int) -> Feature:
    return Feature(f"entry {i} minus entry {j}", lambda reports: reports.values[:, i] - reports.values[:, j])


def _summary(name: str, measure: Callable[[FloatArray], NDArray[Any]]) -> Feature:
    return Feature(name, lambda reports: measure(reports.values).astype(np.float64))


def _lowest_bits(index: int, bits: int, name: str) -> Feature:
    mask = np.uint64((1 << bits) - 1)

    def measure(reports: Reports) -> FloatArray:
        lowest = (reports.codes[:, index] & mask).astype(np.float64)
        return np.where(np.isnan(reports.values[:, index]), np.nan, lowest)  # the codes of words are hashes

    return Feature(f"the number in the {_bits(bits)} of {name}", measure)


def _xor(i: int, j: int, lattice: ReportLattice, bits: int, name: str) -> Feature:
    mask = np.uint64((1 << bits) - 1)
    return Feature(name, lambda r: ((lattice.places(r, i) ^ lattice.places(r, j)) & mask).astype(np.float64))


def _lowest(values: FloatArray) -> FloatArray:
    """Return the exponent of the lowest bit that is set: how fine a grid of powers of two a number needs."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.where(np.isfinite(mantissa), mantissa, 0.0) * 2.0**53).astype(np.uint64)
    lowest = whole & (~whole + np.uint64(1))
    zeros = np.where(whole == 0, 64.0, np.log2(np.maximum(lowest, 1).astype(np.float64)))
    return np.where(np.isfinite(mantissa), exponent - 53.0 + zeros, np.nan)


def _residue(spacing: float) -> Feature:
    def measure(reports: Reports) -> FloatArray:
        # the quarter keeps what lies on the lattice on one side of the cut, rounded or not
        remainder = np.mod(reports.values[:, 0] / spacing + 0.25, 1.0) - 0.25
        return np.asarray(np.round(remainder, 6) + 0.0)

    return Feature(f"the position of the output between multiples of {spacing:.6g}", measure)


def _bits(number: int) -> str:
    return "lowest bit" if number == 1 else f"lowest {number} bits"


def entry_name(index: int, width: int) -> str:
    """Return the name of an entry: "the output" where a report is one number."""
    return "the output" if width == 1 else f"entry {index}"
