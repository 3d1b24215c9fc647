"""Tests for reports that depend on each other, or share their noise: an audit needs independent reports."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from cloakwork._checks import FloatArray
from cloakwork.auditing.features import IDENTITY, VALUE, ReportLattice, combination, entry, figure
from cloakwork.auditing.report_samples import RUN, Codes, Feature, ReportKind, Reports

LEVEL = 1e-4  # of all tests of an audit together
SECOND_LEVEL = 1e-3  # of the second look together
_TESTS = 1e9  # each call makes at most 131,000 (8 features, 2 series of each, 4 times 2,000 lags and some): 7,000 calls
_STRICT = math.log(2 * _TESTS / LEVEL)
_MOST_LAGS = 2_000
_NEAR = 32
_FEWEST_RUNS = 4
_NEAR_TESTS = 4 * _NEAR + 1 + 2 * 20  # lags on each input and across the two, there also 0; lengths of runs
_ALIGNED = 256
_MOST_ENTRIES = 6
_RANKS = np.linspace(0.0, 1.0, 257)[1:-1]
_EQUAL_LAGS = 4
_TWICE = "the same noise seems to have been used for both"


class IndependenceCheck:
    """Checks the reports on both inputs, call after call, for patterns that independent reports do not have.

    Notes
    -----
    Each entry is turned into its rank among the first reports, a number from 0 to 1. Tested are the products of ranks
    (and of their distances from the middle) up to 2,000 reports apart, on each input and across the two, of each call
    and summed over all; the same of all pairs within runs of 32, 64, ... reports; the mean of a call against all before
    it; equal reports one after another; a call that begins like the one before; and reports, or steps from one report
    to the next, that are the same on both inputs.
    Thresholds are Bernstein's inequality, at a level of 1e-4 for all tests of an audit together.

    Bets need reports that do not depend on earlier ones, of either input. Two reports that come together may depend on
    each other without making a bet unfair, since Z in `Book` is a difference of their separate terms. But then noise
    was used twice, and both reports together reveal the difference of what they hide: a fault that no audit of single
    reports shows.
    """

    def __init__(self) -> None:
        self._cuts: dict[tuple[int, Feature], FloatArray] = {}
        self._series: dict[str, _Series] = {}
        self._repeats = _Repeats(), _Repeats()

    def look(self, x: Reports, y: Reports) -> str:
        """The dependence that these reports show, as a sentence without its full stop; empty if none."""
        return next(self._seen(x, y), "")

    def look_again(self) -> str:
        """The dependence of all reports so far up to 32 apart or in longer runs, at a level of 1e-3; empty if none.

        For use once, before a violation is announced: among dependent reports chance makes an event frequent on one
        input and wins bets before the tests of `look` are sure.
        """
        tests = len(self._series) * _NEAR_TESTS + 2 * _EQUAL_LAGS
        exponent = math.log(2 * tests / SECOND_LEVEL)
        near = chain.from_iterable(series.near(exponent) for series in self._series.values())
        return next(chain(near, self._on_inputs([part.far(exponent) for part in self._repeats])), "")

    def _seen(self, x: Reports, y: Reports) -> Iterator[str]:
        for feature in _features(x):
            ranks = self._ranks(0, feature, x), self._ranks(1, feature, y)
            yield from self._named(feature.name).look(*ranks)
            if x.kind is not ReportKind.TEXT:  # words have no size, and nothing between them
                yield from self._named(f"the size of {feature.name}").look(*(np.abs(part - 0.5) for part in ranks))
                yield from _same_steps(feature, x, y)
        yield from self._on_inputs([part.look(reports) for part, reports in zip(self._repeats, (x, y), strict=True)])
        yield from _same_reports(x, y)

    def _named(self, name: str) -> "_Series":
        return self._series.setdefault(name, _Series(name))

    def _ranks(self, database: int, feature: Feature, reports: Reports) -> FloatArray:
        values = np.asarray(reports.feature(feature), dtype=np.float64)
        if (database, feature) not in self._cuts:
            usable = values[~np.isnan(values)]
            cuts = np.unique(np.quantile(usable, _RANKS, method="nearest")) if len(usable) else np.zeros(1)
            self._cuts[database, feature] = cuts
        cuts = self._cuts[database, feature]
        # NaN is the last rank, and so an outcome like others
        return np.asarray(np.searchsorted(cuts, values) / len(cuts), dtype=np.float64)

    @staticmethod
    def _on_inputs(found: Sequence[str]) -> Iterator[str]:
        yield from (f"on input {database}, {what}" for database, what in enumerate(found) if what)


class BitCheck:
    """Checks the lowest bits of reports on both inputs: reports may depend on each other by them alone.

    Notes
    -----
    Each report is counted in steps of the lattice that the first ones lie on. Tested are the products of lowest bits,
    less their means, up to 2,000 reports apart, and of any two to four of the reports of each run. The same thresholds
    and level as in `IndependenceCheck`, whose number of tests has room for these.
    """

    def __init__(self) -> None:
        self.dependence = ""
        self._lattices: list[ReportLattice] = []
        self._series: list[_Series] = []
        self._subsets = [subset for size in range(2, RUN + 1) for subset in combinations(range(RUN), size)]
        self._sums: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = {}

    def look(self, x: Reports, y: Reports) -> None:
        """Add reports; `dependence` is the first that they show, as a sentence without its full stop."""
        if x.kind is not ReportKind.TEXT and not self.dependence:
            self.dependence = next(self._seen(x, y), "")

    def _seen(self, x: Reports, y: Reports) -> Iterator[str]:
        if not self._lattices:
            self._lattices = [ReportLattice.of(x.values[:, index]) for index in range(min(x.width, _MOST_ENTRIES))]
            self._series = [_Series(f"the lowest bit of {entry(k, x.width).name}") for k in range(len(self._lattices))]
        for index, (lattice, series) in enumerate(zip(self._lattices, self._series, strict=True)):
            bits = [(lattice.places(part, index) & np.uint64(1)).astype(np.float64) for part in (x, y)]
            yield from series.look(*bits)
            for database, part in enumerate(bits):
                runs = (part - part.mean())[: len(part) // RUN * RUN].reshape(-1, RUN)
                yield from self._joint(index, database, runs, part.var(), series.name)

    def _joint(self, index: int, database: int, runs: FloatArray, variance: float, name: str) -> Iterator[str]:
        products = np.array([runs[:, subset].prod(axis=1).sum() for subset in self._subsets])
        sizes = np.array([len(subset) for subset in self._subsets])
        spread, largest = len(runs) * variance**sizes, float(np.abs(runs).max()) ** sizes
        before = self._sums.get((index, database), (0.0, 0.0))
        products, spread = self._sums[index, database] = before[0] + products, before[1] + spread
        for subset, total, *bounds in zip(self._subsets, products, spread, largest, strict=True):
            if abs(total) > _bernstein(*bounds):
                places = ", ".join(str(place + 1) for place in subset)
                yield (
                    f"on input {database}, reports depend on each other: of {RUN} in a row, numbers {places} have "
                    f"lowest bits that go together more often than chance explains ({name})"
                )


@dataclass(eq=False)
class _Sums:
    """Sums of products of a series with what came 0, 1, ... reports before, on the same input or on the other."""

    products: FloatArray = field(default_factory=lambda: np.zeros(_MOST_LAGS + 1))
    spread: float = 0.0
    largest: float = 0.0

    def add(self, more: "_Sums") -> None:
        self.products += more.products
        self.spread += more.spread
        self.largest = max(self.largest, more.largest)

    def far(self, exponent: float, most: int = _MOST_LAGS) -> tuple[int, float] | None:
        """The lag, and the sign, at which independent series have no such products."""
        lag = int(np.argmax(np.abs(self.products[: most + 1])))
        found = float(self.products[lag])
        return (lag, found) if abs(found) > _bernstein(self.spread, self.largest, exponent) else None


class _Series:
    """One number from 0 to 1 of each report, on both inputs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._latest = np.empty(0), np.empty(0)
        self._sums = {ways: _Sums() for ways in product((0, 1), repeat=2)}
        self._means = _Mean(), _Mean()
        self._runs = _Runs(), _Runs()

    def look(self, x: FloatArray, y: FloatArray) -> Iterator[str]:
        """Signs of dependence."""
        batches = _Batch(self._latest[0], x), _Batch(self._latest[1], y)
        self._latest = batches[0].latest, batches[1].latest
        for (now, before), sums in self._sums.items():
            new = batches[now].products(batches[before])
            new.products[: 1 if now <= before else 0] = 0.0  # nothing with itself, and each pair once
            sums.add(new)
            for found in (new.far(_STRICT), sums.far(_STRICT)):
                if found is not None:
                    yield self._words(now, before, *found)
        for database, values in enumerate((x, y)):
            if self._means[database].drifts(values):
                yield f"on input {database}, {self.name} changes from one call to the next by more than chance explains"
            self._runs[database].add(values)
        yield from self._slow(_STRICT)

    def near(self, exponent: float) -> Iterator[str]:
        """Signs of dependence in all reports so far, up to 32 apart and in longer runs."""
        for (now, before), sums in self._sums.items():
            found = sums.far(exponent, _NEAR)
            if found is not None:
                yield self._words(now, before, *found)
        yield from self._slow(exponent)

    def _slow(self, exponent: float) -> Iterator[str]:
        for database, runs in enumerate(self._runs):
            length = runs.far(exponent)
            if length:
                yield f"on input {database}, {self.name} changes slowly: it is correlated over {length} reports"

    def _words(self, now: int, before: int, lag: int, sign: float) -> str:
        if now == before:
            return f"on input {now}, {self.name} is correlated between reports {_apart(lag)}"
        ago = f", {lag} report{'s' if lag > 1 else ''} before" if lag else ""
        verb = "follows" if sign > 0 else "mirrors"
        return f"{self.name} on input {now} {verb} that on input {before}{ago}: {_TWICE}"


class _Batch:
    """New values of a series on one input, and the latest before them; both as spectra too."""

    def __init__(self, latest: FloatArray, values: FloatArray) -> None:
        centred = values - values.mean()
        every = np.concatenate([latest, centred])
        self.latest = every[-_MOST_LAGS:].copy()
        self.variance, self.largest = float(centred.var()), float(np.abs(every).max())
        self._size, self._length = len(values), fft.next_fast_len(len(every) + _MOST_LAGS, real=True)
        self.spectrum = fft.rfft(every, self._length)
        every[: len(latest)] = 0.0
        self._new = fft.rfft(every, self._length)

    def products(self, other: "_Batch") -> _Sums:
        """Sums of products of the new values with those of `other` that came 0, 1, ... before."""
        variance = self.variance * other.variance
        if variance <= 1e-30:  # a constant shows nothing, and its products are rounding errors
            return _Sums()
        products = fft.irfft(self._new * other.spectrum.conj(), self._length)[: _MOST_LAGS + 1]
        return _Sums(products, self._size * variance, self.largest * other.largest)


@dataclass(eq=False)
class _Mean:
    """The mean of a series on one input, over all calls."""

    number: int = 0
    total: float = 0.0

    def drifts(self, values: FloatArray) -> bool:
        """Whether the mean of this call is too far from that of all before."""
        size, before = len(values), self.number
        mean, old = float(values.mean()), self.total / max(before, 1)
        self.number += size
        self.total += float(values.sum())
        pooled = self.total / self.number
        variance = max(float(values.var()), pooled * (1 - pooled) / size)
        few = min(size, before)
        return before > 0 and abs(mean - old) * few > _bernstein(few * variance * 2, 1.0)


class _Runs:
    """A series on one input in runs of 32, 64, 128, ... values: slow changes differ from run to run."""

    def __init__(self) -> None:
        self._rest = np.empty(0)
        self._runs: list[FloatArray] = []  # the sums of runs, and of their squares
        self._highest = 0.0

    def add(self, values: FloatArray) -> None:
        every = np.concatenate([self._rest, values])
        runs = every[: len(every) // _NEAR * _NEAR].reshape(-1, _NEAR)
        self._runs.append(np.stack([runs.sum(axis=1), (runs**2).sum(axis=1)]))
        self._rest = every[runs.size :].copy()
        self._highest = max(self._highest, float(values.max()))

    def far(self, exponent: float) -> int:
        """The length of runs within which values are correlated, all pairs taken together; 0 if there is none."""
        runs, length = np.concatenate(self._runs, axis=1), _NEAR
        mean, square = runs.sum(axis=1) / max(runs.shape[1] * length, 1)
        variance, largest = max(square - mean**2, 0.0), max(mean, self._highest - mean)
        while runs.shape[1] >= _FEWEST_RUNS:
            sums, squares = runs[0] - length * mean, runs[1] - 2 * mean * runs[0] + length * mean**2
            pairs = len(sums) * length * (length - 1) / 2
            allowed = _bernstein(pairs * variance**2, largest * float(np.abs(sums).max()), exponent)
            if variance > 1e-15 and (sums @ sums - squares.sum()) / 2 > allowed:
                return length
            runs, length = runs[:, : len(sums) // 2 * 2].reshape(2, -1, 2).sum(axis=2), 2 * length
        return 0


class _Repeats:
    """Equal reports on one input: one after another, and where two calls begin."""

    def __init__(self) -> None:
        self._begun: tuple[ReportKind, Codes] | None = None
        self._equal, self._expected = np.zeros(_EQUAL_LAGS), np.zeros(_EQUAL_LAGS)
        self._spread = 0.0

    def look(self, reports: Reports) -> str:
        codes = reports.feature(IDENTITY)
        size = len(codes)
        numbers = np.unique(codes, return_counts=True)[1].astype(np.float64)
        same = float((numbers * (numbers - 1)).sum() / (size * (size - 1)))
        cubes = float((numbers**3).sum() / size**3)
        for place in range(_EQUAL_LAGS):
            self._equal[place] += np.count_nonzero(codes[place + 1 :] == codes[: -place - 1])
            self._expected[place] += max(size - place - 1, 0) * same
        self._spread += size * (same + 5 * max(cubes - same**2, 0.0))
        return self.far(_STRICT) or self._begins(reports.kind, codes[:_ALIGNED], same)

    def far(self, exponent: float) -> str:
        """Whether reports so far are equal more often, or more rarely, than chance explains."""
        place = int(np.argmax(np.abs(self._equal - self._expected)))
        equal, expected = float(self._equal[place]), float(self._expected[place])
        if abs(equal - expected) <= _bernstein(self._spread, 1.0, exponent):
            return ""
        return f"reports {_apart(place + 1)} are equal {equal:,.0f} times where {expected:,.0f} would be expected"

    def _begins(self, kind: ReportKind, codes: Codes, same: float) -> str:
        begun, self._begun = self._begun, (kind, codes.copy())
        if begun is None or begun[0] is not kind:
            return ""
        length = min(len(begun[1]), len(codes))
        equal = np.count_nonzero(begun[1][:length] == codes[:length])
        if equal - length * same <= _bernstein(length * same, 1.0):
            return ""
        return f"{equal} of the first {length} reports are the same as when it was asked before"


def _same_reports(x: Reports, y: Reports) -> Iterator[str]:
    """Reports that come together and are the same, or are never the same."""
    equal, expected = _matches(x.feature(IDENTITY), y.feature(IDENTITY))
    if abs(equal - expected) > _matching(expected):
        yield (
            f"reports on inputs 0 and 1 that come together are equal {equal:,} times where {expected:,.0f} would be "
            f"expected: {_TWICE}"
        )


def _same_steps(feature: Feature, x: Reports, y: Reports) -> Iterator[str]:
    """Steps from one report to the next that are the same on both inputs: one noise on two values."""
    sides = [np.asarray(reports.feature(feature), dtype=np.float64) for reports in (x, y)]
    size = float(max(np.abs(side[np.isfinite(side)]).max(initial=0.0) for side in sides))
    with np.errstate(all="ignore"):  # a sum of float and noise is rounded, hence the 44 bits
        steps = [np.round((side[1::2] - side[: len(side) // 2 * 2 : 2]) / (size * 2.0**-44)) for side in sides]
    usable = np.isfinite(steps[0]) & np.isfinite(steps[1])
    equal, expected = _matches(steps[0][usable], steps[1][usable])
    if equal - expected > _matching(expected):
        yield (
            f"{feature.name} changes by the same on inputs 0 and 1 {equal:,} times of {len(usable):,}, where "
            f"{expected:,.0f} would be expected: {_TWICE}"
        )


def _matches(first: NDArray[np.generic], second: NDArray[np.generic]) -> tuple[int, float]:
    """Matches of two series place by place, and the number expected if one were shuffled."""
    values, which = np.unique(np.concatenate([first, second]), return_inverse=True)
    numbers = [np.bincount(part, minlength=len(values)) for part in (which[: len(first)], which[len(first) :])]
    return int(np.count_nonzero(first == second)), float(numbers[0] @ numbers[1]) / max(len(first), 1)


def _matching(expected: float) -> float:
    """The matches of two shuffled series are hardly ever further than this from what is expected (Chatterjee, 2007)."""
    return math.sqrt(4 * expected * _STRICT) + 2 * _STRICT


def _bernstein(variance: float, largest: float, exponent: float = _STRICT) -> float:
    """A sum of terms of at most `largest` with this variance in all is hardly ever further than this from its mean."""
    return math.sqrt(2 * variance * exponent) + 2 / 3 * largest * exponent


def _apart(lag: int) -> str:
    return "one after the other" if lag == 1 else f"{lag} apart"


def _features(reports: Reports) -> Sequence[Feature]:
    if reports.kind is ReportKind.TEXT:
        return [IDENTITY]
    if reports.width == 1:
        return [VALUE]
    width = reports.width
    entries = [entry(index, width) for index in range(min(width, _MOST_ENTRIES))]
    return [*entries, combination(0, 1, -1, width), figure("the sum of the entries")]
