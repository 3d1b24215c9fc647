"""The portfolio of event families: which are tried on which reports, and their shares of the stake."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TypeAlias

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.auditing.event_search import (
    LAPLACE,
    NO_CANDIDATES,
    NORMAL,
    AuditedClaim,
    CandidateEvent,
    Candidates,
    better,
    half_line,
    interval,
    model_half_line,
    one_value,
    ranges,
    some_values,
)
from cloakwork.auditing.features import (
    FIGURES,
    Combination,
    GivenRatio,
    Identity,
    LowBits,
    LowestBit,
    Residue,
    RowEntry,
    RowFigure,
    SpecialValue,
    TrailingZeros,
    Value,
    spacing_of,
)
from cloakwork.auditing.learning import learn, telling_entries
from cloakwork.auditing.output_events import HalfLine
from cloakwork.auditing.report_samples import Feature, Past, ReportKind

Chooser: TypeAlias = Callable[[Feature, Past, AuditedClaim], Candidates]
_SCREEN = 1_000
_MOST_FEATURES = 16
_PLACES = tuple(figure for figure in FIGURES if figure.startswith("the place"))
_SIZES = tuple(figure for figure in FIGURES if not figure.startswith("the place"))

normal = partial(model_half_line, NORMAL)
laplace = partial(model_half_line, LAPLACE)


@dataclass(frozen=True, eq=False)
class EventFamily:
    """A family of events: its name, its share of the stake, and its search in past reports.

    A plain family has events that a person can check by eye.
    """

    source: str
    share: float
    choose: Callable[[Past, AuditedClaim], Candidates]
    plain: bool = True


def portfolio(kind: ReportKind, width: int, given: GivenRatio | None) -> list[EventFamily]:
    """The families for reports of this kind, shares adding up to 1."""
    numbers = _of_scalars if width == 1 else _of_rows
    families = _of_words() if kind is ReportKind.TEXT else numbers(kind)
    if given is not None:
        families = [*_of_densities(given), *families]
    total = sum(family.share for family in families)
    return [replace(family, share=family.share / total) for family in families]


def _of_scalars(kind: ReportKind) -> list[EventFamily]:
    value = Value()
    return [
        EventFamily("half-lines", 3.0, partial(half_line, value)),
        EventFamily("half-lines of a fitted normal law", 3.0, partial(normal, value)),
        EventFamily("half-lines of a fitted Laplace law", 1.0, partial(laplace, value)),
        EventFamily("intervals and their complements", 1.0, partial(interval, value)),
        EventFamily("unions of ranges", 1.0, partial(ranges, value)),
        *_atoms(),
        *_bits(kind),
    ]


def _of_words() -> list[EventFamily]:
    value = Value()
    return [*_atoms(), EventFamily("half-lines", 1.0, partial(half_line, value))]


def _of_rows(kind: ReportKind) -> list[EventFamily]:
    score = SharedScore()
    return [
        EventFamily("half-lines of a learned score", 3.0, score.half_line, plain=False),
        EventFamily("half-lines of a learned score's normal law", 3.0, score.normal, plain=False),
        EventFamily("half-lines of entries", 1.5, partial(_screened, [half_line], _entries)),
        EventFamily("half-lines of entries' normal law", 1.0, partial(_screened, [normal], _entries)),
        EventFamily("intervals of entries", 1.0, partial(_screened, [interval], _entries)),
        EventFamily(
            "differences of entries", 1.0, partial(_screened, [half_line, interval, one_value], partial(_pairs, -1))
        ),
        EventFamily("sums of entries", 1.0, partial(_screened, [half_line, interval], partial(_pairs, +1))),
        EventFamily(
            "place of the largest or smallest entry", 0.5, partial(_best_of, [some_values, one_value], _PLACES)
        ),
        EventFamily("number, sum and extremes of the entries", 1.0, partial(_best_of, [half_line, interval], _SIZES)),
        *_atoms(),
        EventFamily("low bits of entries", 0.5, partial(_screened, [interval], partial(_entry_bits, kind))),
    ]


def _of_densities(given: GivenRatio) -> list[EventFamily]:
    def exact(past: Past, claim: AuditedClaim) -> Candidates:
        """The event of Neyman and Pearson: the ratio is above e^epsilon."""
        found = [_counted(event, past, way) for way, event in enumerate(_likelier(given, claim))]
        return found[0], found[1]

    return [
        EventFamily("likelihood ratio above the claim", 12.0, exact),
        EventFamily("half-lines of the likelihood ratio", 4.0, partial(half_line, given)),
    ]


def _likelier(given: GivenRatio, claim: AuditedClaim) -> tuple[HalfLine, HalfLine]:
    return HalfLine(given, claim.epsilon, above=True), HalfLine(given, -claim.epsilon, above=False)


def _counted(event: HalfLine, past: Past, way: int) -> CandidateEvent:
    counts = [float(event.holds(reports).sum()) for reports in (past.x, past.y)]
    return CandidateEvent(event, counts[way] / len(past.x), (counts[1 - way] + 1.0) / (len(past.x) + 1.0), 0.0)


def _atoms() -> list[EventFamily]:
    same = Identity()
    return [
        EventFamily("single values", 1.0, partial(one_value, same)),
        EventFamily("sets of values", 1.0, partial(some_values, same)),
        EventFamily("special values", 0.5, partial(one_value, SpecialValue())),
    ]


def _bits(kind: ReportKind) -> list[EventFamily]:
    families = [
        EventFamily("grids of powers of two", 0.5, partial(interval, LowestBit())),
        EventFamily("low bits", 0.5, partial(_low_bits, None)),
        EventFamily("lattices", 1.0, _on_lattice),
    ]
    if kind is ReportKind.FLOAT:
        families.append(EventFamily("zeros at the end of the mantissa", 0.5, partial(interval, TrailingZeros())))
    return families


def _low_bits(index: int | None, past: Past, claim: AuditedClaim) -> Candidates:
    found = NO_CANDIDATES
    for bits in (1, 3, 8):
        found = better(found, some_values(LowBits(bits, index), past, claim))
    return found


def _on_lattice(past: Past, claim: AuditedClaim) -> Candidates:
    """Residues on the lattices of both inputs, and on coarser ones."""
    steps = {spacing_of(reports.values[:_SCREEN, 0]) for reports in (past.x, past.y)} - {0.0}
    found = NO_CANDIDATES
    for step in sorted(steps):
        for multiple in (1, 2, 3):
            found = better(found, interval(Residue(step * multiple), past, claim))
    return found


def _best_of(choosers: list[Chooser], figures: tuple[str, ...], past: Past, claim: AuditedClaim) -> Candidates:
    found = NO_CANDIDATES
    for figure in figures:
        for choose in choosers:
            found = better(found, choose(RowFigure(figure), past, claim))
    return found


def _screened(
    choosers: list[Chooser], features: Callable[[Past], list[Feature]], past: Past, claim: AuditedClaim
) -> Candidates:
    """The best event of many features: all are tried on some of the past, the best for each direction on all of it."""
    some = Past(past.x.take(slice(_SCREEN)), past.y.take(slice(_SCREEN)), np.random.default_rng(0))
    candidates = features(past)
    found = NO_CANDIDATES
    for choose in choosers:
        tried = [choose(feature, some, claim) for feature in candidates]
        for way in (0, 1):
            merits = [-np.inf if pair[way] is None else pair[way].merit for pair in tried]  # type: ignore[union-attr]
            if merits:
                found = better(found, choose(candidates[int(np.argmax(merits))], past, claim))
    return found


def _entries(past: Past) -> list[Feature]:
    x, y = past.x.values[:_SCREEN], past.y.values[:_SCREEN]
    return [RowEntry(int(index), past.x.width) for index in telling_entries(x, y, _MOST_FEATURES)]


def _entry_bits(kind: ReportKind, past: Past) -> list[Feature]:
    entries = [feature.index for feature in _entries(past)[:8] if isinstance(feature, RowEntry)]
    if kind is ReportKind.WHOLE:
        return [LowBits(2, index, past.x.width) for index in entries]
    width = past.x.width
    return [feature for index in entries for feature in (LowestBit(index, width), TrailingZeros(index, width))]


def _pairs(sign: int, past: Past) -> list[Feature]:
    """Pairs of entries: all where there are few, else those that correlate most, and neighbours."""
    width = past.x.width
    pairs = list(combinations(range(width), 2)) if width <= 7 else _related(past.x.values[:_SCREEN])
    return [Combination(first, second, sign, width) for first, second in pairs[:_MOST_FEATURES]]


def _related(rows: FloatArray) -> list[tuple[int, int]]:
    columns = np.arange(min(rows.shape[1], 256))
    with np.errstate(all="ignore"):
        related = np.abs(np.corrcoef(np.where(np.isfinite(rows[:, columns]), rows[:, columns], 0.0).T))
    first, second = np.triu_indices(len(columns), 1)
    strength = np.nan_to_num(related[first, second])
    best = np.argsort(-strength, kind="stable")[: _MOST_FEATURES // 2]
    beside = [(int(k), int(k) + 1) for k in columns[:-1][: _MOST_FEATURES // 2]]
    chosen = [(int(first[k]), int(second[k])) for k in best]
    return list(dict.fromkeys([*chosen, *beside]))


class SharedScore:
    """A learned score, shared by the families that cut it: fitted on one half of the past, cut on the other."""

    def __init__(self) -> None:
        self._feature: Feature | None = None
        self._learned_at = 0

    def half_line(self, past: Past, claim: AuditedClaim) -> Candidates:
        return half_line(self.feature(past), past.every_other(1), claim)

    def normal(self, past: Past, claim: AuditedClaim) -> Candidates:
        return normal(self.feature(past), past.every_other(1), claim)

    def feature(self, past: Past) -> Feature:
        """The score, fitted again when there is half as much more to learn from."""
        if self._feature is None or past.seen >= 1.5 * self._learned_at:
            self._feature, self._learned_at = learn(past.every_other(0)), past.seen
        return self._feature
