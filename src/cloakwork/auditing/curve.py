"""The privacy curve: the delta that each epsilon needs, with a band that holds for all epsilons at once."""

import math
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.auditing.events import COARSE, FINE, AuditedClaim, Cells, cut, values_of
from cloakwork.auditing.features import OUTPUT, entry
from cloakwork.auditing.reports import ReportPair
from cloakwork.auditing.score import learn_score

FRESH = (0, 1_000, 4_000, 16_000)  # reports on each input after which an order of the cells is learned
_NEARLY = 0.75  # of the reports of the first order
_POINTS = 61
_FEW_LEVELS = np.linspace(0.0, 1.0, 12)  # of cells with enough reports to be ordered after the first draw


@dataclass(frozen=True, kw_only=True)
class PrivacyCurve:
    """The delta that each epsilon needs: an `estimate`, and a band from `lower` to `upper`, each of shape (k,).

    The band rests on `reports` on each input. It holds for the `events` that it names: `lower` bounds the true curve,
    `upper` says nothing about other events. There are no `epsilons` where the verdict is withheld.
    """

    epsilons: FloatArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    events: str
    reports: int


NO_CURVE = PrivacyCurve(
    epsilons=np.zeros(0), estimate=np.zeros(0), lower=np.zeros(0), upper=np.zeros(0), events="none", reports=0
)


class _Counts:
    """Counts of the cells of a feature, in an order that was fixed before the reports came."""

    def __init__(self, past: ReportPair) -> None:
        self.cells, self.events = _cells(past)
        x, y = map(self.cells.counts, past)
        learned = not self.events.startswith("half-lines")
        self._order = np.argsort((x + 0.5) / (y + 0.5), kind="stable") if learned else np.arange(len(x))
        self.counts = np.zeros((2, self.cells.number))
        self.looks = 0

    def add(self, batch: ReportPair) -> None:
        self.counts += [self.cells.counts(reports)[self._order] for reports in batch]
        self.looks += 1

    @property
    def reports(self) -> int:
        return int(self.counts[0].sum())


class CurveBand:
    """Learns orders of the cells as reports come, and keeps the counts of the next ones for each."""

    def __init__(self, confidence: float) -> None:
        self._level = (1 - confidence) / len(FRESH) / 2  # for each order and each input
        self._counts: list[_Counts] = []

    def add(self, past: ReportPair, seen: int, batch: ReportPair) -> None:
        """Count a batch, where `seen` reports came before it and `past` is what is remembered of them."""
        if len(self._counts) < len(FRESH) and seen >= FRESH[len(self._counts)]:
            self._counts.append(_Counts(past))
        for counted in self._counts:
            counted.add(batch)

    def curve(self, claim: AuditedClaim) -> PrivacyCurve:
        """Return the curve of the newest order that rests on nearly as many reports as the first.

        Notes
        -----
        delta(eps) = max over E of P(E) - e^eps Q(E), and the same with P and Q exchanged. The frequencies of all
        beginnings of an order are within r of their probabilities at once (Dvoretzky, Kiefer and Wolfowitz, with
        Massart's constant), at look k at level a / (k (k + 1)). So delta is within (1 + e^eps) r.
        """
        if not self._counts:
            return NO_CURVE
        counted = next(c for c in reversed(self._counts) if c.reports >= _NEARLY * self._counts[0].reports)
        last = min(max(2 * claim.epsilon, claim.epsilon + 2), 705.0)
        epsilons = np.unique([*np.linspace(0.0, last, _POINTS), claim.epsilon])
        level = self._level / (counted.looks * (counted.looks + 1))
        factor = np.exp(epsilons)
        off = (1 + factor) * math.sqrt(math.log(2 / level) / (2 * counted.reports))
        estimate = _estimate(counted.counts / counted.reports, factor)
        lower = np.maximum.accumulate(np.clip(estimate - off, 0.0, 1.0)[::-1])[::-1]
        upper = np.minimum.accumulate(np.clip(estimate + off, 0.0, 1.0))
        return PrivacyCurve(
            epsilons=epsilons,
            estimate=np.clip(estimate, lower, upper),
            lower=lower,
            upper=upper,
            events=counted.events,
            reports=counted.reports,
        )


def _estimate(frequencies: FloatArray, factor: FloatArray) -> FloatArray:
    best = np.zeros(len(factor))
    for p, q in (frequencies, frequencies[::-1]):
        for first, second in ((p, q), (p[::-1], q[::-1])):
            best = np.maximum(best, (np.cumsum(first) - factor[:, None] * np.cumsum(second)).max(axis=1))
    return best


def _cells(past: ReportPair) -> tuple[Cells, str]:
    if past.x.width > 1:
        return cut(learn_score(past), past, FINE), "half-lines of a learned score of the row"
    if np.isnan(past.x.values).mean() > 0.5:
        return values_of(OUTPUT, past), "sets of words, ordered by how much they favoured one input"
    levels = COARSE if len(past.x) >= FRESH[1] else _FEW_LEVELS
    return cut(entry(0, 1), past, levels), "unions of ranges of the output, ordered by how much they favoured one input"
