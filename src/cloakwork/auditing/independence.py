"""Tests for reports that depend on each other or share their noise: bets need independent reports."""

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from cloakwork._checks import FloatArray
from cloakwork.auditing.features import MIX, ReportLattice, code, entry_name
from cloakwork.auditing.reports import ReportPair

MAX_LAGS, NEAR = 2_000, 32
_LEVEL, _SECOND_LEVEL = 1e-4, 1e-3  # of all tests of an audit together; of the look before a violation is announced
_STRICT = math.log(2e9 / _LEVEL)  # an audit makes fewer than 1e9 tests
_MAX_ENTRIES = 6
_CUTS = np.linspace(0.0, 1.0, 257)[1:-1]
_SPANS = 2 ** np.arange(1, MAX_LAGS.bit_length() - 1)
_STRETCH = 64  # reports in a row, which do not come again among independent ones
_SAME_NOISE = "the same noise seems to have been used for both"


class IndependenceCheck:
    """Checks all reports so far for patterns that independent reports do not have.

    Notes
    -----
    Three numbers of each entry are followed: its rank among the first reports, the distance of this rank from the
    middle, and the last digit. Tested are their products up to 2,000 reports apart, on each input and across the two;
    sums of these products over the nearest 2, 4, 8, ... lags, where slow changes show; products of the last digits of
    three and four reports in a row; how often reports are equal; and whether a stretch of reports comes again, however
    much later. Thresholds are Bernstein's inequality, and Chatterjee's (2007) for equal reports.

    Two reports that come together may depend on each other without making a bet unfair. But then noise was used twice,
    and both reports together reveal the difference of what they hide.
    """

    def __init__(self) -> None:
        self._words: bool | None = None  # whether most reports are words; decided once
        self._cuts: dict[str, FloatArray] = {}
        self._lattices: list[ReportLattice] = []
        self._numbers: dict[str, _Series] = defaultdict(_Series)
        self._digits: dict[str, _Series] = defaultdict(_Series)
        self._equal: dict[str, FloatArray] = defaultdict(lambda: np.zeros(2))  # how often, and how often expected
        self._replays = (_ReplayCheck(), _ReplayCheck())

    def add(self, pair: ReportPair) -> None:
        """Take the reports of one call on each input."""
        if self._words is None:
            self._words = all(np.isnan(reports.values).mean() > 0.5 for reports in pair)
        for name, values in _columns(pair, words=self._words).items():
            ranks = [self._ranks(f"{name} {database}", column) for database, column in enumerate(values)]
            self._numbers[name].add(*ranks)
            self._numbers[f"the size of {name}"].add(*(np.abs(rank - 0.5) for rank in ranks))
        few = range(min(pair.x.width, _MAX_ENTRIES))
        self._lattices = self._lattices or [ReportLattice(pair.x.values[:, index]) for index in few]
        for index, lattice in enumerate(self._lattices):
            bits = [(lattice.places(reports, index) & np.uint64(1)).astype(np.float64) for reports in pair]
            self._digits[f"the last digit of {entry_name(index, pair.x.width)}"].add(*bits)
        codes = tuple(map(code, pair))
        self._count(f"reports on both inputs are equal: {_SAME_NOISE}", *codes)
        for database, now in enumerate(codes):
            for lag in range(1, 5):
                self._count(f"on input {database}, reports {lag} apart are equal", now[lag:], now[:-lag])
            self._replays[database].add(now)

    def found(self, *, digits: bool, again: bool = False) -> str:
        """Return the dependence of the last digits, or else of all other numbers, in words; empty if there is none.

        `again` looks at near reports only, at a higher level: once, before a violation is announced. Among dependent
        reports, chance makes an event frequent on one input and wins bets before the strict tests are sure.
        """
        watched = self._digits if digits else self._numbers
        tests = 16 * NEAR * len(watched) + len(self._equal)
        exponent = math.log(2 * tests / _SECOND_LEVEL) if again else _STRICT
        for name, series in watched.items():
            for what in series.far(name, exponent, NEAR if again else MAX_LAGS, in_a_row=digits):
                return what
        for what, (equal, expected) in () if digits else self._equal.items():
            if abs(equal - expected) > math.sqrt(4 * expected * exponent) + 2 * exponent:
                return f"{what} ({equal:,.0f} times, where {expected:,.0f} would be expected)"
        for database, replay in () if digits else enumerate(self._replays):
            if replay.found:
                return f"on input {database}, {replay.found}"
        return ""

    def _ranks(self, key: str, values: FloatArray) -> FloatArray:
        if key not in self._cuts:
            usable = values[~np.isnan(values)]
            self._cuts[key] = np.unique(np.quantile(usable, _CUTS, method="nearest")) if len(usable) else np.zeros(1)
        return np.searchsorted(self._cuts[key], values) / len(self._cuts[key])  # NaN is the last rank

    def _count(self, what: str, first: NDArray[np.uint64], second: NDArray[np.uint64]) -> None:
        """Count the equal entries of two series, and how many there would be if one were shuffled."""
        values, which = np.unique(np.concatenate([first, second]), return_inverse=True)
        numbers = [np.bincount(part, minlength=len(values)) for part in (which[: len(first)], which[len(first) :])]
        expected = float(numbers[0] @ numbers[1]) / len(first)
        self._equal[what] += np.array([float(np.count_nonzero(first == second)), expected])


class _ReplayCheck:
    """Remembers a hash of every 64th stretch of 64 reports, and compares each later stretch with them.

    Where reports have so few values that chance alone may repeat a stretch, nothing is compared.
    """

    def __init__(self) -> None:
        self.found = ""
        self._known = np.empty(0, dtype=np.uint64)
        self._rest = np.empty(0, dtype=np.uint64)
        self._equal, self._size = 0.0, 0  # pairs of equal reports in each call, per report

    def add(self, codes: NDArray[np.uint64]) -> None:
        numbers = np.unique(codes, return_counts=True)[1].astype(np.float64)
        self._equal += float(numbers @ (numbers - 1)) / max(len(codes) - 1, 1)
        begin = self._size - len(self._rest)
        self._size += len(codes)
        codes = np.concatenate([self._rest, codes])
        stretches = _hashes(codes)
        again = np.flatnonzero(np.isin(stretches, self._known))
        chance = self._size**2 * (max(self._equal, 1.0) / self._size) ** _STRETCH
        if len(again) and chance < _LEVEL**2 and not self.found:
            before = _STRETCH * int(np.flatnonzero(self._known == stretches[again[0]])[0])
            self.found = f"the reports from {begin + again[0] + 1:,} on repeat those from {before + 1:,} on"
        self._known = np.concatenate([self._known, stretches[-begin % _STRETCH :: _STRETCH]])
        self._rest = codes[len(stretches) :]


class _Series:
    """One number of each report on both inputs, and sums of its products with earlier ones."""

    def __init__(self) -> None:
        self._latest = [np.empty(0), np.empty(0)]
        self._total, self._size = np.zeros(2), 0
        self._products, self._spread = np.zeros((2, 2, MAX_LAGS + 1)), np.zeros((2, 2))
        self._in_a_row = np.zeros((2, 2))  # sums of products of three and of four, on each input
        self._largest = 0.0

    def add(self, *values: FloatArray) -> None:
        self._total += [part.sum() for part in values]
        self._size += len(values[0])
        # less the mean of all calls, not of this one: a change from call to call must show
        centred = [part - mean for part, mean in zip(values, self._total / self._size, strict=True)]
        every = [np.concatenate(parts) for parts in zip(self._latest, centred, strict=True)]
        length = fft.next_fast_len(len(every[0]) + MAX_LAGS, real=True)
        spectra = [fft.rfft(part, length).conj() for part in every]
        self._largest = max(self._largest, *(float(np.abs(part).max()) for part in centred))
        for now, part in enumerate(centred):
            new = fft.rfft(np.concatenate([np.zeros_like(self._latest[now]), part]), length)
            for before in (0, 1):
                products = fft.irfft(new * spectra[before], length)[: MAX_LAGS + 1]
                products[: 1 if now <= before else 0] = 0.0  # nothing with itself, and each pair once
                self._products[now, before] += products
                self._spread[now, before] += len(part) * float((part**2).mean() * (centred[before] ** 2).mean())
            pairs = part[1:] * part[:-1]
            self._in_a_row[now] += (pairs[1:] * part[:-2]).sum(), (pairs[2:] * pairs[:-2]).sum()
        self._latest = [part[-MAX_LAGS:] for part in every]

    def far(self, name: str, exponent: float, most: int, *, in_a_row: bool) -> Iterator[str]:
        """Yield the products that are further from 0 than chance explains, in words."""
        largest = self._largest**2
        for now in (0, 1):
            for before in (0, 1):
                products = self._products[now, before, : most + 1]
                lag = int(np.argmax(np.abs(products)))
                if abs(products[lag]) > _bernstein(self._spread[now, before], largest, exponent):
                    verb = "follows" if products[lag] > 0 else "mirrors"
                    yield f"on input {now}, {name} {verb} that of {_earlier(now, before, lag)}"
            spread = self._spread[now, now]
            for span, total in zip(_SPANS, np.cumsum(self._products[now, now, 1:])[_SPANS - 1], strict=True):
                if total > _bernstein(span * spread, span * largest, exponent):
                    yield f"on input {now}, {name} changes slowly: it is correlated over {span} reports"
            for number, total in zip((3, 4), self._in_a_row[now], strict=True):
                spread = self._size * (self._spread[now, now] / self._size) ** (number / 2)
                if in_a_row and abs(total) > _bernstein(spread, 1.0, exponent):
                    yield f"on input {now}, {name} depends on the {number - 1} reports before"


def _columns(pair: ReportPair, *, words: bool) -> dict[str, list[FloatArray]]:
    width = pair.x.width
    if width == 1:
        return {"the output": [r.codes[:, 0].astype(float) if words else r.values[:, 0] for r in pair]}
    found = {f"entry {k}": [reports.values[:, k] for reports in pair] for k in range(min(width, _MAX_ENTRIES))}
    found["entry 0 minus entry 1"] = [reports.values[:, 0] - reports.values[:, 1] for reports in pair]
    return {**found, "the sum of the entries": [reports.values.sum(axis=1) for reports in pair]}


def _hashes(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each stretch of reports: a polynomial in an odd number, modulo 2^64."""
    mixed = (codes ^ (codes >> np.uint64(31))) * MIX
    powers = np.cumprod(np.full(len(codes), MIX))
    sums = np.concatenate([[np.uint64(0)], np.cumsum((mixed ^ (mixed >> np.uint64(29))) * powers)])
    inverse = np.cumprod(np.full(len(codes), np.uint64(pow(int(MIX), -1, 1 << 64))))
    stretches = sums[_STRETCH:] - sums[:-_STRETCH]
    return np.asarray(stretches * inverse[: len(stretches)])


def _earlier(now: int, before: int, lag: int) -> str:
    report = f"{lag} reports before" if lag > 1 else "the report before" if lag else "the report that came with it"
    return report if now == before else f"{report} on input {before}, and {_SAME_NOISE}"


def _bernstein(variance: float, largest: float, exponent: float) -> float:
    """Return how far a sum of terms up to `largest` with this variance hardly ever is from its mean."""
    return math.sqrt(2 * variance * exponent) + 2 / 3 * largest * exponent + 1e-9  # constants have rounding errors
