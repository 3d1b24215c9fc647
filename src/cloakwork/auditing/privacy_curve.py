"""The privacy profile: the delta that each epsilon needs, with a band that holds for all epsilons at once."""

import math

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.auditing.event_search import AuditedClaim, edges_of
from cloakwork.auditing.features import IDENTITY, VALUE
from cloakwork.auditing.learned_score import learn
from cloakwork.auditing.report_samples import Feature, Past, ReportKind, Reports
from cloakwork.auditing.result import PrivacyCurve

FRESH = (0, 1_000, 4_000, 16_000)  # reports per input after which an order is learned, and better ones
NEARLY = 0.75  # of the reports of the first order
_FEWEST = 20  # reports that say on which side a cell is
_CUTS = 512
_POINTS = 61


class CellCounts:
    """Counts over cells of the output, ordered by how much they favour input 0, which is fixed before reports come.

    Cells lie between `cuts` of a feature; where `exact`, each is one of these values, and the last has all others.
    """

    def __init__(self, feature: Feature, cuts: FloatArray, events: str, *, exact: bool = False) -> None:
        self.events = events
        self._feature, self._cuts, self._exact = feature, cuts, exact
        self._ranks = np.arange(len(cuts) + 1)
        self.counts = np.zeros((2, len(self._ranks)))
        self.looks = 0

    def order(self, past: Past) -> "CellCounts":
        """Order the cells by their ratio in past reports."""
        first, second = self._count(past.x), self._count(past.y)
        self._ranks = np.argsort(np.argsort((first + 0.5) / (second + 0.5), kind="stable"))
        return self

    def add(self, x: Reports, y: Reports) -> None:
        """Count a batch."""
        self.counts += [self._count(x), self._count(y)]
        self.looks += 1

    def _count(self, reports: Reports) -> IntArray:
        values = reports.feature(self._feature)
        cells = np.searchsorted(self._cuts, values)
        if self._exact:
            known = np.minimum(cells, len(self._cuts) - 1)
            cells = np.where(self._cuts[known] == values, known, len(self._cuts))
        return np.bincount(self._ranks[cells], minlength=len(self._ranks))

    @property
    def reports(self) -> int:
        """Reports of each input."""
        return int(self.counts[0].sum())


class CurveBand:
    """The bands of an order that is learned at once, and of better ones when there is more to learn from."""

    def __init__(self, *, confidence: float, given: Feature | None) -> None:
        self._level = (1 - confidence) / len(FRESH) / 2  # for each order and each input
        self._given = given
        self._counts: list[CellCounts] = []

    def add(self, past: Past, x: Reports, y: Reports) -> None:
        """Count a batch; `past` is what came before it."""
        known = len(self._counts)
        if known < len(FRESH) and past.seen >= FRESH[known]:
            self._counts.append(_learn_order(past, self._given))
        for counted in self._counts:
            counted.add(x, y)

    def _best(self) -> CellCounts | None:
        """The newest order that rests on nearly as many reports as the first: its band is hardly wider.

        All bands hold at once, so that whichever is shown may be chosen by what was seen.
        """
        for counted in reversed(self._counts):
            if counted.reports >= NEARLY * self._counts[0].reports:
                return counted
        return None

    def profile(self, claim: AuditedClaim) -> PrivacyCurve:
        """The profile for the events that this band holds for.

        Notes
        -----
        delta(eps) = max over E of P(E) - e^eps Q(E), and the same with P and Q exchanged. Frequencies of all events of
        a monotone family are within r of their probabilities at once (Dvoretzky, Kiefer and Wolfowitz; Massart), at
        look k at level a / (k (k + 1)), so delta is within (1 + e^eps) r; it falls as epsilon rises.
        """
        epsilons = _epsilons(claim.epsilon)
        counted = self._best()
        if counted is None:
            nothing = np.zeros(len(epsilons))
            return PrivacyCurve(
                epsilons=epsilons, estimate=nothing, lower=nothing, upper=nothing + 1, events="none yet", reports=0
            )
        level = self._level / (counted.looks * (counted.looks + 1))
        radius = math.sqrt(math.log(2 / level) / (2 * counted.reports))
        factor = np.exp(epsilons)
        estimate = _estimate(counted.counts / counted.reports, factor)
        off = (1 + factor) * radius
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
    """The largest difference over beginnings and ends of the order; never below 0, which the empty event has."""
    best = np.zeros(len(factor))
    for p, q in ((frequencies[0], frequencies[1]), (frequencies[1], frequencies[0])):
        for first, second in ((p, q), (p[::-1], q[::-1])):
            best = np.maximum(best, (np.cumsum(first) - factor[:, None] * np.cumsum(second)).max(axis=1))
    return best


def _learn_order(past: Past, given: Feature | None) -> CellCounts:
    if given is not None:
        return _cut(given, past, "half-lines of the given likelihood ratio")
    if past.x.kind is ReportKind.TEXT:
        return _by_ratio(IDENTITY, past, "sets of words, ordered by how much they spoke for one input")
    if past.x.width == 1:
        return _by_ratio(VALUE, past, "unions of ranges of the output, ordered by how much they spoke for one input")
    return _cut(learn(past).feature, past, "half-lines of a learned score of the row")


def _cut(feature: Feature, past: Past, events: str) -> CellCounts:
    pooled = np.concatenate([past.x.feature(feature), past.y.feature(feature)])
    usable = pooled[~np.isnan(pooled)]
    cuts = np.unique(np.quantile(usable, np.linspace(0, 1, _CUTS), method="nearest")) if len(usable) else np.zeros(1)
    return CellCounts(feature, cuts, events)


def _by_ratio(feature: Feature, past: Past, events: str) -> CellCounts:
    exact = feature == IDENTITY
    pooled = np.concatenate([past.x.feature(feature), past.y.feature(feature)])
    cuts = _frequent(pooled) if exact else _apart(edges_of(feature, past), pooled)
    if not len(cuts):
        cuts = np.zeros(1, dtype=pooled.dtype)
    return CellCounts(feature, cuts, events, exact=exact).order(past)


def _apart(cuts: FloatArray, values: FloatArray) -> FloatArray:
    """Those cuts between which enough reports lie."""
    kept: list[float] = []
    last = 0
    for cut, below in zip(cuts, np.searchsorted(np.sort(values), cuts, side="right"), strict=True):
        if below - last >= _FEWEST:
            kept.append(float(cut))
            last = int(below)
    return np.array(kept)


def _frequent(codes: FloatArray) -> FloatArray:
    values, numbers = np.unique(codes, return_counts=True)
    return np.asarray(np.sort(values[np.argsort(-numbers, kind="stable")[:_CUTS]]))


def _epsilons(epsilon: float) -> FloatArray:
    last = min(max(2 * epsilon, epsilon + 2), 705.0)
    return np.unique(np.concatenate([np.linspace(0.0, last, _POINTS), [epsilon]]))
