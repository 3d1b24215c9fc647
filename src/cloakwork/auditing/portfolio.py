"""The portfolio: the kinds of events that an audit bets on, and their shares of the stake."""

from collections.abc import Iterator
from dataclasses import dataclass

from cloakwork.auditing.events import (
    AuditedClaim,
    Choice,
    best_of,
    half_line,
    normal_half_line,
    ranges,
    some_values,
)
from cloakwork.auditing.features import (
    MAX_ENTRIES,
    OUTPUT,
    differences,
    differing,
    entries,
    entry,
    low_bits,
    residues,
    run_digits,
    summaries,
)
from cloakwork.auditing.reports import ReportPair
from cloakwork.auditing.score import learn_score

_HIGHEST = 16.0  # e^16 reports are more than anyone draws


@dataclass(frozen=True, eq=False)
class Bet:
    """A kind of event, its share of the stake, and the events that it chose from past reports.

    Events of `span` > 1 are about this many reports of a run, and are bets against what the claim says of them
    together. A `plain` event is one that a person can check by eye.
    """

    source: str
    share: float
    choice: Choice
    span: int = 1
    plain: bool = True


def portfolio(past: ReportPair, claim: AuditedClaim) -> list[Bet]:
    """Choose events of every kind from past reports. The kinds and shares depend only on the width of a report."""
    width = past.x.width
    kinds = _of_numbers(past, claim) if width == 1 else _of_rows(past, claim)
    bets = [*kinds, Bet("values and sets of values", 2.0, some_values(OUTPUT, past, claim))]
    if 2 * claim.epsilon < _HIGHEST:
        runs = past.runs()
        chosen = best_of(run_digits(runs, width), [some_values], runs, claim.times(2))
        bets.append(Bet("last digits of two reports", 0.5, chosen, span=2))
    return bets


def _of_numbers(past: ReportPair, claim: AuditedClaim) -> Iterator[Bet]:
    output = entry(0, 1)
    yield Bet("half-lines", 3.0, half_line(output, past, claim))
    yield Bet("half-lines of a fitted normal distribution", 3.0, normal_half_line(output, past, claim))
    yield Bet("unions of ranges", 2.0, ranges(output, past, claim))
    digits = [*low_bits(0, 1), *residues(past)]
    yield Bet("last digits and lattices", 2.0, best_of(digits, [ranges], past, claim))


def _of_rows(past: ReportPair, claim: AuditedClaim) -> Iterator[Bet]:
    width, rest = past.x.width, past.take(slice(1, None, 2))
    score = learn_score(past.take(slice(0, None, 2)))  # fitted on one half, cut on the other
    yield Bet("half-lines of a learned score", 3.0, half_line(score, rest, claim), plain=False)
    yield Bet("normal half-lines of a learned score", 3.0, normal_half_line(score, rest, claim), plain=False)
    single = [*entries(past), *summaries()]
    yield Bet("entries, extremes and counts", 4.0, best_of(single, [half_line, ranges], past, claim))
    yield Bet("differences of entries", 2.0, best_of(differences(past), [half_line, ranges], past, claim))
    few = map(int, differing(past, MAX_ENTRIES // 2))
    digits = [feature for index in few for feature in low_bits(index, width)]
    yield Bet("last digits of entries", 0.5, best_of(digits, [ranges], past, claim))
