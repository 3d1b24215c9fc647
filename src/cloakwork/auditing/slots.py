"""The portfolio: which kinds of events are tried on which reports, and what share of the stake each has."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TypeAlias

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.auditing.choosing import (
    NOTHING,
    Choice,
    Claim,
    Pair,
    better,
    half_line,
    interval,
    one_value,
    ranges,
    some_values,
)
from cloakwork.auditing.events import HalfLine
from cloakwork.auditing.learning import learn, telling_entries
from cloakwork.auditing.lines import (
    FIGURES,
    Combination,
    Entry,
    Figure,
    Given,
    Identity,
    LowBits,
    LowestBit,
    Residue,
    Special,
    TrailingZeros,
    Value,
    spacing_of,
)
from cloakwork.auditing.models import LAPLACE, NORMAL, model_half_line
from cloakwork.auditing.reports import Kind, Line, Past

Chooser: TypeAlias = Callable[[Line, Past, Claim], Pair]
_SCREEN = 1_000
_MOST_LINES = 16
_PLACES = tuple(figure for figure in FIGURES if figure.startswith("the place"))
_SIZES = tuple(figure for figure in FIGURES if not figure.startswith("the place"))

normal = partial(model_half_line, NORMAL)
laplace = partial(model_half_line, LAPLACE)


@dataclass(frozen=True, eq=False)
class Slot:
    """One source of events: how it is called, its share of the stake, and how it chooses from the past.

    A plain one gives events that a person can check by eye.
    """

    source: str
    share: float
    choose: Callable[[Past, Claim], Pair]
    plain: bool = True


def portfolio(kind: Kind, width: int, given: Given | None) -> list[Slot]:
    """The slots for reports of this kind, shares adding up to 1."""
    numbers = _of_scalars if width == 1 else _of_rows
    slots = _of_words() if kind is Kind.TEXT else numbers(kind)
    if given is not None:
        slots = [*_of_densities(given), *slots]
    total = sum(slot.share for slot in slots)
    return [replace(slot, share=slot.share / total) for slot in slots]


def _of_scalars(kind: Kind) -> list[Slot]:
    value = Value()
    return [
        Slot("half-lines", 3.0, partial(half_line, value)),
        Slot("half-lines of a fitted normal law", 3.0, partial(normal, value)),
        Slot("half-lines of a fitted Laplace law", 1.0, partial(laplace, value)),
        Slot("intervals and their complements", 1.0, partial(interval, value)),
        Slot("unions of ranges", 1.0, partial(ranges, value)),
        *_atoms(),
        *_bits(kind),
    ]


def _of_words() -> list[Slot]:
    value = Value()
    return [*_atoms(), Slot("half-lines", 1.0, partial(half_line, value))]


def _of_rows(kind: Kind) -> list[Slot]:
    score = Learned()
    return [
        Slot("half-lines of a learned score", 3.0, score.half_line, plain=False),
        Slot("half-lines of a learned score's normal law", 3.0, score.normal, plain=False),
        Slot("half-lines of entries", 1.5, partial(_screened, [half_line], _entries)),
        Slot("half-lines of entries' normal law", 1.0, partial(_screened, [normal], _entries)),
        Slot("intervals of entries", 1.0, partial(_screened, [interval], _entries)),
        Slot("differences of entries", 1.0, partial(_screened, [half_line, interval, one_value], partial(_pairs, -1))),
        Slot("sums of entries", 1.0, partial(_screened, [half_line, interval], partial(_pairs, +1))),
        Slot("place of the largest or smallest entry", 0.5, partial(_best_of, [some_values, one_value], _PLACES)),
        Slot("number, sum and extremes of the entries", 1.0, partial(_best_of, [half_line, interval], _SIZES)),
        *_atoms(),
        Slot("low bits of entries", 0.5, partial(_screened, [interval], partial(_entry_bits, kind))),
    ]


def _of_densities(given: Given) -> list[Slot]:
    def exact(past: Past, claim: Claim) -> Pair:
        """The event of Neyman and Pearson: the ratio is above e^epsilon."""
        found = [_counted(event, past, way) for way, event in enumerate(_likelier(given, claim))]
        return found[0], found[1]

    return [
        Slot("likelihood ratio above the claim", 12.0, exact),
        Slot("half-lines of the likelihood ratio", 4.0, partial(half_line, given)),
    ]


def _likelier(given: Given, claim: Claim) -> tuple[HalfLine, HalfLine]:
    return HalfLine(given, claim.epsilon, above=True), HalfLine(given, -claim.epsilon, above=False)


def _counted(event: HalfLine, past: Past, way: int) -> Choice:
    counts = [float(event.holds(reports).sum()) for reports in (past.x, past.y)]
    return Choice(event, counts[way] / len(past.x), (counts[1 - way] + 1.0) / (len(past.x) + 1.0), 0.0)


def _atoms() -> list[Slot]:
    same = Identity()
    return [
        Slot("single values", 1.0, partial(one_value, same)),
        Slot("sets of values", 1.0, partial(some_values, same)),
        Slot("special values", 0.5, partial(one_value, Special())),
    ]


def _bits(kind: Kind) -> list[Slot]:
    slots = [
        Slot("grids of powers of two", 0.5, partial(interval, LowestBit())),
        Slot("low bits", 0.5, partial(_low_bits, None)),
        Slot("lattices", 1.0, _on_lattice),
    ]
    if kind is Kind.FLOAT:
        slots.append(Slot("zeros at the end of the mantissa", 0.5, partial(interval, TrailingZeros())))
    return slots


def _low_bits(index: int | None, past: Past, claim: Claim) -> Pair:
    found = NOTHING
    for bits in (1, 3, 8):
        found = better(found, some_values(LowBits(bits, index), past, claim))
    return found


def _on_lattice(past: Past, claim: Claim) -> Pair:
    """Residues on the lattices of both inputs, and on coarser ones."""
    steps = {spacing_of(reports.values[:_SCREEN, 0]) for reports in (past.x, past.y)} - {0.0}
    found = NOTHING
    for step in sorted(steps):
        for multiple in (1, 2, 3):
            found = better(found, interval(Residue(step * multiple), past, claim))
    return found


def _best_of(choosers: list[Chooser], figures: tuple[str, ...], past: Past, claim: Claim) -> Pair:
    found = NOTHING
    for figure in figures:
        for choose in choosers:
            found = better(found, choose(Figure(figure), past, claim))
    return found


def _screened(choosers: list[Chooser], lines: Callable[[Past], list[Line]], past: Past, claim: Claim) -> Pair:
    """The best event of many lines: all are tried on some of the past, the best for each direction on all of it."""
    some = Past(past.x.take(slice(_SCREEN)), past.y.take(slice(_SCREEN)), np.random.default_rng(0))
    candidates = lines(past)
    found = NOTHING
    for choose in choosers:
        tried = [choose(line, some, claim) for line in candidates]
        for way in (0, 1):
            merits = [-np.inf if pair[way] is None else pair[way].merit for pair in tried]  # type: ignore[union-attr]
            if merits:
                found = better(found, choose(candidates[int(np.argmax(merits))], past, claim))
    return found


def _entries(past: Past) -> list[Line]:
    x, y = past.x.values[:_SCREEN], past.y.values[:_SCREEN]
    return [Entry(int(index), past.x.width) for index in telling_entries(x, y, _MOST_LINES)]


def _entry_bits(kind: Kind, past: Past) -> list[Line]:
    entries = [line.index for line in _entries(past)[:8] if isinstance(line, Entry)]
    if kind is Kind.WHOLE:
        return [LowBits(2, index, past.x.width) for index in entries]
    width = past.x.width
    return [line for index in entries for line in (LowestBit(index, width), TrailingZeros(index, width))]


def _pairs(sign: int, past: Past) -> list[Line]:
    """Pairs of entries: all where there are few, else those that hang together most, and neighbours."""
    width = past.x.width
    pairs = list(combinations(range(width), 2)) if width <= 7 else _related(past.x.values[:_SCREEN])
    return [Combination(first, second, sign, width) for first, second in pairs[:_MOST_LINES]]


def _related(rows: FloatArray) -> list[tuple[int, int]]:
    columns = np.arange(min(rows.shape[1], 256))
    with np.errstate(all="ignore"):
        related = np.abs(np.corrcoef(np.where(np.isfinite(rows[:, columns]), rows[:, columns], 0.0).T))
    first, second = np.triu_indices(len(columns), 1)
    strength = np.nan_to_num(related[first, second])
    best = np.argsort(-strength, kind="stable")[: _MOST_LINES // 2]
    beside = [(int(k), int(k) + 1) for k in columns[:-1][: _MOST_LINES // 2]]
    chosen = [(int(first[k]), int(second[k])) for k in best]
    return list(dict.fromkeys([*chosen, *beside]))


class Learned:
    """A learned score, shared by the slots that cut it: fitted on one half of the past, cut on the other."""

    def __init__(self) -> None:
        self._line: Line | None = None
        self._learned_at = 0

    def half_line(self, past: Past, claim: Claim) -> Pair:
        return half_line(self.line(past), past.every_other(1), claim)

    def normal(self, past: Past, claim: Claim) -> Pair:
        return normal(self.line(past), past.every_other(1), claim)

    def line(self, past: Past) -> Line:
        """The score, fitted again when there is half as much more to learn from."""
        if self._line is None or past.seen >= 1.5 * self._learned_at:
            self._line, self._learned_at = learn(past.every_other(0)), past.seen
        return self._line
