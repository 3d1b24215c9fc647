"""Three auditors on the broken mechanisms of the literature, at equal reports: ours, and two that are common.

The thesis' histogram tester (McMillan, Algorithm 4 corrected) has the smallest gap alpha that the reports allow; a
continuous output is cut into outcomes by a pilot run of its own. The fixed-threshold audit spends a tenth of the
reports on choosing a half-line (of a linear score for rows), and takes Clopper and Pearson's bounds on the rest.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from scipy.stats import beta

from benchmarks.mechanisms import Case, Reports, Rng, literature_cases
from cloakwork.auditing import UnknownPair, Verdict, audit

REPORTS = 200_000
PILOT = 5_000
CONFIDENCE = 0.95
_MAX_OUTCOMES = 256


@dataclass(frozen=True)
class Found:
    """Whether a violation was claimed, and after how many reports per input."""

    violation: bool
    reports: int


def ours(case: Case, rng: Rng) -> Found:
    result = audit(
        case.mechanism, epsilon=case.epsilon, delta=case.delta, reports=REPORTS, confidence=CONFIDENCE, rng=rng
    )
    return Found(result.verdict is Verdict.VIOLATION, result.reports_used)


def histogram_tester(case: Case, rng: Rng) -> Found:
    outcomes, n = _outcomes(case, rng)
    allowed = REPORTS - PILOT
    for alpha in np.geomspace(0.001, 0.9, 60):
        if case.delta + alpha < 1:
            tester = UnknownPair(n=n, epsilon=case.epsilon, delta=case.delta, alpha=float(alpha), confidence=CONFIDENCE)
            if tester.plan.per_input <= allowed:
                answer = tester.test(lambda d, size, r: outcomes(case.mechanism(d, size, r)), rng)
                return Found(not answer.accepts, PILOT + answer.queries // 2)
    return Found(violation=False, reports=PILOT)


def fixed_threshold(case: Case, rng: Rng) -> Found:
    pilot = [_rows(case.mechanism(database, REPORTS // 10, rng)) for database in (0, 1)]
    weights = pilot[0].mean(axis=0) - pilot[1].mean(axis=0)
    rest = REPORTS - REPORTS // 10
    x, y = (np.sort(_rows(case.mechanism(database, rest, rng)) @ weights) for database in (0, 1))
    first, second = (np.sort(part @ weights) for part in pilot)
    cuts = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 200)))
    above = [1 - np.searchsorted(part, cuts, side="right") / len(part) for part in (first, second)]
    best, worst = np.argmax(_ratio(above[0], above[1])), np.argmax(_ratio(1 - above[1], 1 - above[0]))
    forward = int((x > cuts[best]).sum()), int((y > cuts[best]).sum())
    backward = int((y <= cuts[worst]).sum()), int((x <= cuts[worst]).sum())
    return Found(max(_bound(case, *counts, rest) for counts in (forward, backward)) > case.epsilon, REPORTS)


def run() -> tuple[Table, bool]:
    """The table, and whether ours finds all that is broken with no false alarm."""
    auditors: dict[str, Callable[[Case, Rng], Found]] = {
        "ours": ours,
        "histogram tester": histogram_tester,
        "fixed threshold": fixed_threshold,
    }
    table = Table(title=f"Auditors at up to {REPORTS:,} reports per input, confidence {CONFIDENCE}")
    table.add_column("mechanism")
    table.add_column("claim is")
    for name in auditors:
        table.add_column(name, justify="right")
    scores = {name: [0, 0, 0] for name in auditors}
    for case in literature_cases():
        found = {name: look(case, np.random.default_rng(1)) for name, look in auditors.items()}
        for name, one in found.items():
            scores[name][2 if case.private else (0 if one.violation else 1)] += one.violation or not case.private
        words = [_words(case, one) for one in found.values()]
        table.add_row(case.name, "true" if case.private else "false", *words)
    table.add_section()
    table.add_row("found, missed, false alarms", "", *[", ".join(map(str, score)) for score in scores.values()])
    return table, scores["ours"][1] == 0 and scores["ours"][2] == 0


def _words(case: Case, found: Found) -> str:
    verdict = (
        ("FALSE ALARM" if case.private else "found") if found.violation else ("quiet" if case.private else "MISSED")
    )
    return f"{verdict}, {found.reports:,}"


def _rows(reports: Reports) -> NDArray[np.float64]:
    return np.asarray(reports, dtype=np.float64).reshape(len(reports), -1)


def _ratio(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((p - 2 * np.sqrt(p / 1e4)) / (q + 2e-4))


def _bound(case: Case, often: int, rare: int, reports: int) -> float:
    """Clopper and Pearson's lower bound on epsilon from one event; two directions and two ends share the error."""
    level = (1 - CONFIDENCE) / 4
    low = beta.ppf(level, often, reports - often + 1) if often else 0.0
    high = beta.ppf(1 - level, rare + 1, reports - rare) if rare < reports else 1.0
    return math.log((low - case.delta) / high) if low > case.delta else 0.0


def _outcomes(case: Case, rng: Rng) -> tuple[Callable[[Reports], NDArray[np.int64]], int]:
    """Reports as whole numbers below n: the values of a pilot and "another", or cells between its quantiles."""
    pilot = np.concatenate([_rows(case.mechanism(database, PILOT, rng)) for database in (0, 1)])
    known, numbers = np.unique(pilot, axis=0, return_counts=True)
    if len(known) <= 2 * _MAX_OUTCOMES:
        kept = known[np.argsort(-numbers)[:_MAX_OUTCOMES]]
        places = {row.tobytes(): place for place, row in enumerate(kept)}
        return lambda reports: np.array([places.get(row.tobytes(), len(kept)) for row in _rows(reports)]), len(kept) + 1
    cells = 64 if pilot.shape[1] == 1 else 3
    cuts = np.quantile(pilot[:, :5], np.linspace(0, 1, cells + 1)[1:-1], axis=0)

    def cell(reports: Reports) -> NDArray[np.int64]:
        found = np.zeros(len(reports), dtype=np.int64)
        for column, edges in zip(_rows(reports).T, cuts.T, strict=False):
            found = found * cells + np.searchsorted(edges, column)
        return found

    return cell, cells ** cuts.shape[1]
