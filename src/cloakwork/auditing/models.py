"""Half-lines far out, where no report may have fallen yet: placed by a law that is fitted to the past."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.auditing.choosing import NOTHING, Choice, Claim, Pair
from cloakwork.auditing.events import HalfLine
from cloakwork.auditing.lines import Entry, Value
from cloakwork.auditing.reports import Kind, Line, Past

Tail: TypeAlias = Callable[[FloatArray], FloatArray]
_REACH = np.linspace(-8.0, 8.0, 641)  # in standard deviations
_FEWEST = 50
_ENOUGH = 25
_NARROWEST, _WIDEST = 1e-150, 1e150  # beyond these, squares and products lose their digits


@dataclass(frozen=True)
class Law:
    """A family of laws of the same shape: where it lies, how wide it is, and what lies above z widths."""

    centre: Callable[[FloatArray], float]
    width: Callable[[FloatArray, float], float]
    error: float  # of the logarithm of a fitted width, times the root of the number of reports
    tail: Tail


def _normal_tail(z: FloatArray) -> FloatArray:
    return np.asarray(special.ndtr(-z))


def _laplace_tail(z: FloatArray) -> FloatArray:
    return np.where(z > 0, 0.5 * np.exp(-np.maximum(z, 0.0)), 1 - 0.5 * np.exp(np.minimum(z, 0.0)))


NORMAL = Law(
    centre=lambda values: float(values.mean()),
    width=lambda values, centre: float(values.std()) if math.isfinite(centre) else math.nan,
    error=math.sqrt(0.5),
    tail=_normal_tail,
)
LAPLACE = Law(
    centre=lambda values: float(np.median(values)),
    width=lambda values, centre: float(np.abs(values - centre).mean()),
    error=1.0,
    tail=_laplace_tail,
)


def model_half_line(law: Law, line: Line, past: Past, claim: Claim) -> Pair:
    """The half-line that would be best if the reports followed the law.

    One width for both inputs, unless they differ by more than chance explains.
    """
    sides = [_finite(reports.line(line)) for reports in (past.x, past.y)]
    if min(len(side) for side in sides) < _FEWEST:
        return NOTHING
    with np.errstate(all="ignore"):  # huge values overflow; then there is no model
        centres = [law.centre(side) for side in sides]
        widths = [law.width(side, centre) for side, centre in zip(sides, centres, strict=True)]
    if not all(abs(number) < _WIDEST for number in (*centres, *widths)) or min(widths) < _NARROWEST:
        return NOTHING
    few = min(len(side) for side in sides)
    if abs(math.log(widths[0] / widths[1])) < 3 * law.error * math.sqrt(2 / few):
        widths = [math.sqrt(widths[0] * widths[1])] * 2
    found = [_best(law, line, past, claim, centres, widths, way) for way in (0, 1)]
    return found[0], found[1]


def _best(
    law: Law, line: Line, past: Past, claim: Claim, centres: list[float], widths: list[float], way: int
) -> Choice:
    favoured, other = way, 1 - way
    cuts = centres[other] + widths[other] * _REACH
    if past.x.kind is Kind.WHOLE and isinstance(line, Value | Entry):
        cuts = np.floor(cuts)
    tails = [[law.tail(s * (cuts - centres[side]) / widths[side]) for side in (favoured, other)] for s in (1, -1)]
    merits = [_merit(claim, p, q) for p, q in tails]
    side = 0 if merits[0].max() >= merits[1].max() else 1
    place = int(np.argmax(merits[side]))
    event = HalfLine(line, float(cuts[place]), above=side == 0)
    p, q = (float(tail[place]) for tail in tails[side])
    return _seen(Choice(event, p, q, float(merits[side][place])), past, way)


def _seen(choice: Choice, past: Past, way: int) -> Choice:
    """Believe the counts rather than the law where there are enough of them."""
    counts = [int(choice.event.holds(reports).sum()) for reports in (past.x, past.y)]
    if min(counts) < _ENOUGH:
        return choice
    return replace(choice, p=counts[way] / len(past.x), q=counts[1 - way] / len(past.y))


def _merit(claim: Claim, p: FloatArray, q: FloatArray) -> FloatArray:
    factor = math.exp(claim.epsilon)
    mean = (p - claim.delta) / factor - q
    return np.asarray(mean / np.sqrt(p * (1 - p) / factor / factor + q * (1 - q) + 1e-18))


def _finite(values: FloatArray) -> FloatArray:
    return values[np.isfinite(values)]
