"""The portfolio of event families: which are tried on which reports, and their shares of the stake."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations
from typing import TypeAlias

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.auditing.event_search import (
    LAPLACE,
    NO_CANDIDATES,
    NORMAL,
    AuditedClaim,
    Candidates,
    better,
    candidate,
    half_line,
    interval,
    model_half_line,
    one_value,
    ranges,
    some_values,
)
from cloakwork.auditing.features import (
    FIGURES,
    IDENTITY,
    PLACES,
    SPECIAL,
    VALUE,
    ReportLattice,
    combination,
    entry,
    figure,
    joint_bits,
    low_bits,
    lowest_bit,
    mantissa_zeros,
    product,
    residue,
    spacing_of,
)
from cloakwork.auditing.learned_score import learn, telling_entries
from cloakwork.auditing.output_events import Ranges, joined
from cloakwork.auditing.report_samples import RUN, Feature, Past, ReportKind

Search: TypeAlias = Callable[[Feature, Past, AuditedClaim], Candidates]
Features: TypeAlias = Callable[[Past], list[Feature]]
_SCREEN = 1_000
_MOST_FEATURES = 16
_FEW_ENTRIES = 4
_TWO_OF_RUN = ((0, 1), (1, 2), (0, 2), (0, 3))  # a device that pairs its reports may begin at either of the first
_HIGHEST = 16.0  # e^16 reports are more than anyone draws

normal = partial(model_half_line, NORMAL)
laplace = partial(model_half_line, LAPLACE)


@dataclass(frozen=True, eq=False)
class EventFamily:
    """A family of events: its name, its share of the stake, and its search in past reports.

    A plain family has events that a person can check by eye. Events of `span` > 1 are about that many of the `RUN`
    reports of a run, and are bets against what the claim says of so many together.
    """

    source: str
    share: float
    choose: Callable[[Past, AuditedClaim], Candidates]
    plain: bool = True
    span: int = 1


def portfolio(kind: ReportKind, width: int, given: Feature | None, *, epsilon: float = 0.0) -> list[EventFamily]:
    """The families for reports of this kind, shares adding up to 1; `given` is the ratio of the caller's densities.

    Runs of reports are left out where k `epsilon` is too much for any number of reports to test.
    """
    if kind is ReportKind.TEXT:
        families = [*_atoms(), EventFamily("half-lines", 1.0, partial(half_line, VALUE))]
    else:
        families = _of_scalars(kind) if width == 1 else _of_rows(kind)
        families += [family for family in _of_runs(width) if family.span * epsilon < _HIGHEST]
    if given is not None:
        families = [
            EventFamily("likelihood ratio above the claim", 12.0, partial(_likelier, given)),
            EventFamily("half-lines of the likelihood ratio", 4.0, partial(half_line, given)),
            *families,
        ]
    total = sum(family.share for family in families)
    return [replace(family, share=family.share / total) for family in families]


def _of_scalars(kind: ReportKind) -> list[EventFamily]:
    families = [
        EventFamily("half-lines", 3.0, partial(half_line, VALUE)),
        EventFamily("half-lines of a fitted normal law", 3.0, partial(normal, VALUE)),
        EventFamily("half-lines of a fitted Laplace law", 1.0, partial(laplace, VALUE)),
        EventFamily("intervals and their complements", 1.0, partial(interval, VALUE)),
        EventFamily("unions of ranges", 1.0, partial(ranges, VALUE)),
        *_atoms(),
        EventFamily("grids of powers of two", 0.5, partial(interval, lowest_bit())),
        EventFamily("low bits", 0.5, partial(_best_of, [some_values], lambda _: [low_bits(k) for k in (1, 3, 8)])),
        EventFamily("lattices", 1.0, partial(_best_of, [interval], _residues)),
    ]
    if kind is ReportKind.FLOAT:
        families.append(EventFamily("zeros at the end of the mantissa", 0.5, partial(interval, mantissa_zeros())))
    return families


def _of_rows(kind: ReportKind) -> list[EventFamily]:
    score = SharedScore()
    places, sizes = ([figure(name) for name in names] for names in (PLACES, FIGURES))
    return [
        EventFamily("half-lines of a learned score", 3.0, partial(score.best, half_line), plain=False),
        EventFamily("half-lines of a learned score's normal law", 3.0, partial(score.best, normal), plain=False),
        EventFamily("half-lines of entries", 1.5, partial(_screened, [half_line], _entries)),
        EventFamily("half-lines of entries' normal law", 1.0, partial(_screened, [normal], _entries)),
        EventFamily("intervals of entries", 1.0, partial(_screened, [interval], _entries)),
        EventFamily(
            "differences of entries", 1.0, partial(_screened, [half_line, interval, one_value], partial(_pairs, -1))
        ),
        EventFamily("sums of entries", 1.0, partial(_screened, [half_line, interval], partial(_pairs, +1))),
        EventFamily(
            "place of the largest or smallest entry", 0.5, partial(_best_of, [some_values, one_value], lambda _: places)
        ),
        EventFamily(
            "number, sum and extremes of the entries", 1.0, partial(_best_of, [half_line, interval], lambda _: sizes)
        ),
        *_atoms(),
        EventFamily("low bits of entries", 0.5, partial(_screened, [interval], partial(_entry_bits, kind))),
    ]


def _of_runs(width: int) -> list[EventFamily]:
    """Families about several reports of a run: their low bits together, and differences and products of two."""
    bits = [
        EventFamily(
            f"low bits of {span} reports together",
            0.25,
            partial(_screened, [some_values], partial(_run_bits, width, span)),
            span=span,
        )
        for span in range(2, RUN + 1)
    ]
    steps = partial(_screened, [half_line, interval], partial(_run_steps, width))
    return [*bits, EventFamily("differences and products of consecutive reports", 0.25, steps, span=2)]


def _run_bits(width: int, span: int, past: Past) -> list[Feature]:
    found, depths = [], (1, 3, 8) if span == 2 and width == 1 else (1,)
    for index in range(min(width, _FEW_ENTRIES)):
        lattice = ReportLattice.of(past.x.values[:_SCREEN, index::width])
        for places in _TWO_OF_RUN if span == 2 else combinations(range(RUN), span):
            words = _run_words(places, index, width)
            indices = tuple(place * width + index for place in places)
            found += [joint_bits(lattice, bits, indices, words) for bits in (depths)]
    return found


def _run_steps(width: int, past: Past) -> list[Feature]:
    found = []
    for index in range(min(width, _FEW_ENTRIES)):
        values = past.x.values[:_SCREEN, index::width]
        usable = values[np.isfinite(values)]
        centre = float(np.median(usable)) if len(usable) else 0.0
        for places in _TWO_OF_RUN[:2]:
            first, second = (place * width + index for place in places)
            words = _run_words(places, index, width)
            difference = combination(second, first, -1, RUN * width)
            found += [replace(difference, name=f"the difference of {words}"), product(first, second, centre, words)]
    return found


def _run_words(places: tuple[int, ...], index: int, width: int) -> str:
    entries = "" if width == 1 else f"entry {index + 1} of "
    return f"{entries}reports {joined([str(place + 1) for place in places], by='and')} of each {RUN} in a row"


def _atoms() -> list[EventFamily]:
    return [
        EventFamily("single values", 1.0, partial(one_value, IDENTITY)),
        EventFamily("sets of values", 1.0, partial(some_values, IDENTITY)),
        EventFamily("special values", 0.5, partial(one_value, SPECIAL)),
    ]


def _likelier(ratio: Feature, past: Past, claim: AuditedClaim) -> Candidates:
    """The event of Neyman and Pearson: the ratio is above e^epsilon."""
    events = Ranges(ratio, [claim.epsilon], lowest=False), Ranges(ratio, [-claim.epsilon], lowest=True)
    x, y = ([float(event.holds(reports).sum()) for event in events] for reports in (past.x, past.y))
    size = len(past.x)
    return candidate(events[0], x[0], y[0], size, 0.0), candidate(events[1], y[1], x[1], size, 0.0)


def _best_of(searches: list[Search], features: Features, past: Past, claim: AuditedClaim) -> Candidates:
    results = (search(feature, past, claim) for feature in features(past) for search in searches)
    return reduce(better, results, NO_CANDIDATES)


def _screened(searches: list[Search], features: Features, past: Past, claim: AuditedClaim) -> Candidates:
    """The best event of many features: all are tried on some of the past, the best for each direction on all of it."""
    some = Past(past.x.take(slice(_SCREEN)), past.y.take(slice(_SCREEN)), np.random.default_rng(0))
    tried = features(past)
    best = NO_CANDIDATES
    for search in searches:
        screened = [search(feature, some, claim) for feature in tried]
        for way in (0, 1):
            merits = [-np.inf if pair[way] is None else pair[way].merit for pair in screened]  # type: ignore[union-attr]
            if merits:
                best = better(best, search(tried[int(np.argmax(merits))], past, claim))
    return best


def _residues(past: Past) -> list[Feature]:
    """Residues on the lattices of both inputs, and on coarser ones."""
    steps = {spacing_of(reports.values[:_SCREEN, 0]) for reports in (past.x, past.y)} - {0.0}
    return [residue(step * multiple) for step in sorted(steps) for multiple in (1, 2, 3)]


def _telling(past: Past) -> IntArray:
    return telling_entries(past.x.values[:_SCREEN], past.y.values[:_SCREEN], _MOST_FEATURES)


def _entries(past: Past) -> list[Feature]:
    return [entry(index, past.x.width) for index in map(int, _telling(past))]


def _entry_bits(kind: ReportKind, past: Past) -> list[Feature]:
    entries, width = map(int, _telling(past)[:8]), past.x.width
    if kind is ReportKind.WHOLE:
        return [low_bits(2, index, width) for index in entries]
    return [feature(index, width) for index in entries for feature in (lowest_bit, mantissa_zeros)]


def _pairs(sign: int, past: Past) -> list[Feature]:
    """Pairs of entries: all where there are few, else those that correlate most, and neighbours."""
    width = past.x.width
    pairs = list(combinations(range(width), 2)) if width <= 7 else _related(past.x.values[:_SCREEN])
    return [combination(first, second, sign, width) for first, second in pairs[:_MOST_FEATURES]]


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

    def best(self, search: Search, past: Past, claim: AuditedClaim) -> Candidates:
        """The best event of the score, which is fitted again when there is half as much more to learn from."""
        if self._feature is None or past.seen >= 1.5 * self._learned_at:
            self._feature, self._learned_at = learn(past.every_other(0)).feature, past.seen
        return search(self._feature, past.every_other(1), claim)
