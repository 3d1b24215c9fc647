"""Do successive reports depend on each other? Then counting them as independent would prove nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import fft

from cloakwork._checks import FloatArray
from cloakwork.auditing.lines import Combination, Entry, Figure, Identity, Value
from cloakwork.auditing.reports import Kind, Line, Reports

LEVEL = 1e-4  # of all tests together
_TESTS = 1e8  # more than there are in the longest audit
_EXPONENT = math.log(2 * _TESTS / LEVEL)
_MOST_LAGS = 2_000
_KEPT_LAGS = 32
_ALIGNED = 256
_MOST_ENTRIES = 6
_RANKS = np.linspace(0.0, 1.0, 257)[1:-1]


@dataclass(eq=False)
class Watch:
    """Looks at one input's reports, call after call, for anything that independent reports do not show.

    Notes
    -----
    Each entry is turned into its rank among the first reports, a number from 0 to 1. Tested are the products of ranks
    (and of their distances from the middle) at all lags within a call, and summed over calls at the first 32; the mean
    of a call against all before it; equal reports one after another; and a call that begins like the one before.
    Thresholds are Bernstein's inequality, at a level of 1e-4 for all tests of an audit together.
    """

    database: int
    _cuts: dict[Line, FloatArray] = field(default_factory=dict)
    _sums: dict[str, "_Sums"] = field(default_factory=dict)
    _before: FloatArray | None = None

    def look(self, reports: Reports) -> str:
        """What shows a dependence, as a sentence; empty if nothing does."""
        for line in _lines(reports):
            ranks = self._ranks(line, reports)
            for name, values in ((line.name(), ranks), (f"the size of {line.name()}", np.abs(ranks - 0.5))):
                found = self._sums.setdefault(name, _Sums()).look(values)
                if found:
                    return f"on input {self.database}, {name} {found}"
        found = self._repeats(reports)
        return f"on input {self.database}, {found}" if found else ""

    def _ranks(self, line: Line, reports: Reports) -> FloatArray:
        values = np.asarray(reports.line(line), dtype=np.float64)
        if line not in self._cuts:
            usable = values[~np.isnan(values)]
            self._cuts[line] = np.unique(np.quantile(usable, _RANKS, method="nearest")) if len(usable) else np.zeros(1)
        cuts = self._cuts[line]
        # NaN is the last rank, and so an outcome like others
        return np.asarray(np.searchsorted(cuts, values) / len(cuts), dtype=np.float64)

    def _repeats(self, reports: Reports) -> str:
        codes = reports.line(Identity())
        size = len(codes)
        numbers = np.unique(codes, return_counts=True)[1].astype(np.float64)
        same = float((numbers * (numbers - 1)).sum() / max(size * (size - 1), 1))
        cubes = float((numbers**3).sum() / size**3)
        before, self._before = self._before, codes[:_ALIGNED].copy()
        for lag in range(1, min(4, size - 1) + 1):
            equal = np.count_nonzero(codes[lag:] == codes[:-lag])
            if abs(equal - size * same) > _bernstein(size * (same + 5 * max(cubes - same**2, 0.0)), 1.0) + lag:
                return f"reports {_apart(lag)} are equal {equal:,} times where {size * same:,.0f} would be expected"
        if before is not None:
            length = min(len(before), size)
            equal = np.count_nonzero(before[:length] == codes[:length])
            if equal - length * same > _bernstein(length * same, 1.0):
                return f"{equal} of the first {length} reports are the same as when it was asked before"
        return ""


@dataclass(eq=False)
class _Sums:
    """Running sums of one series of numbers from 0 to 1."""

    number: int = 0
    total: float = 0.0
    products: FloatArray = field(default_factory=lambda: np.zeros(_KEPT_LAGS))
    spread: float = 0.0

    def look(self, values: FloatArray) -> str:
        size = len(values)
        centred = values - values.mean()
        variance = float(centred.var())
        if variance <= 1e-20:
            return self._drift(values, variance)
        lags = min(_MOST_LAGS, size // 2)
        products = _autocovariance(centred, lags)
        found = _beyond(products, size * variance**2, float(np.abs(centred).max()) ** 2)
        short = min(_KEPT_LAGS, lags)
        self.products[:short] += products[:short]
        self.spread += size * variance**2
        found = found or _beyond(self.products, self.spread, 1.0)
        return found or self._drift(values, variance)

    def _drift(self, values: FloatArray, variance: float) -> str:
        """Compare the mean of this call with all calls before."""
        size, before = len(values), self.number
        mean, old = float(values.mean()), self.total / max(before, 1)
        self.number += size
        self.total += float(values.sum())
        if not before:
            return ""
        pooled = self.total / self.number
        variance = max(variance, pooled * (1 - pooled) / size)
        few = min(size, before)
        if abs(mean - old) * few > _bernstein(few * variance * 2, 1.0):
            return "changes from one call to the next by more than chance explains"
        return ""


def _autocovariance(centred: FloatArray, lags: int) -> FloatArray:
    """Sums of products at lags 1 to `lags`."""
    length = fft.next_fast_len(len(centred) + lags + 1, real=True)
    power = np.abs(fft.rfft(centred, length)) ** 2
    return np.asarray(fft.irfft(power, length)[1 : lags + 1])


def _beyond(products: FloatArray, variance: float, largest: float) -> str:
    place = int(np.argmax(np.abs(products)))
    if abs(products[place]) > _bernstein(variance, largest):
        return f"is correlated between reports {_apart(place + 1)}"
    return ""


def _bernstein(variance: float, largest: float) -> float:
    """A sum of terms of at most `largest` with this variance in all is hardly ever further than this from its mean."""
    return math.sqrt(2 * variance * _EXPONENT) + 2 / 3 * largest * _EXPONENT


def _apart(lag: int) -> str:
    return "one after the other" if lag == 1 else f"{lag} apart"


def _lines(reports: Reports) -> Sequence[Line]:
    if reports.kind is Kind.TEXT or reports.width == 1:
        return [Value()]
    entries: list[Line] = [Entry(index) for index in range(min(reports.width, _MOST_ENTRIES))]
    return [*entries, Combination(0, 1, -1), Figure("the sum of the entries")]
