"""McMillan's table of query complexities, measured: what each test of privacy needs, plans, and can be spared."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from cloakwork.lab.complexity import (
    GAMMA,
    MOST_REPORTS,
    Along,
    Cell,
    Point,
    Setting,
    Share,
    Sweep,
    audited,
    share,
)
from cloakwork.lab.experiment import Experiment, Progress, stream
from cloakwork.lab.printed_testers import Mistakes, mistakes
from cloakwork.lab.queries import spread
from cloakwork.lab.result import Agreement, Claim, Finding, Measure, Table
from cloakwork.lab.slopes import Slope, fitted
from cloakwork.lab.style import FAINT, INK, SERIES, legend_below, log_scale

GAP, PURE_GAP = 0.1, 0.5  # alpha where it is not what is varied
FIXED_N, PURE_N = 64, 16
RARE = 1 / 64
COUNTS, QUICK_COUNTS = (16, 64, 256, 1024), (16, 64, 256)
GAPS, QUICK_GAPS = (0.05, 0.1, 0.2, 0.4), (0.1, 0.2, 0.4)
SLACKS = (0.4, 0.2, 0.1, 0.05)


@dataclass(frozen=True)
class Effort:
    """Searches for each size, tests in each step of a search, and audits."""

    searches: int
    runs: int
    audits: int


FULL, QUICK = Effort(8, 300, 5), Effort(3, 100, 1)


@dataclass(frozen=True)
class Complexities(Finding):
    """What tests need, and where the printed ones go wrong."""

    size: ClassVar[tuple[float, float]] = (12.0, 7.0)
    sweeps: tuple[Sweep, ...]
    shares: tuple[Share, ...]
    mistakes: Mistakes

    def of(self, tester: Cell, along: Along) -> Sweep:
        """One sweep."""
        return next(one for one in self.sweeps if one.tester is tester and one.along is along)

    def tables(self) -> tuple[Table, ...]:
        return (self._slopes(), *(_numbers(one) for one in self.sweeps), self._shares(), self._mistakes())

    def _slopes(self) -> Table:
        rows = [
            (f"{one.tester}: {one.along}", f"{one.claimed:+.2f}", str(one.slope), str(one.audited or "-"))
            for one in self.sweeps
        ]
        return Table(
            "Exponents of the number of queries", ("test, and in", "printed", "needed", "an audit"), tuple(rows)
        )

    def _shares(self) -> Table:
        rows = [
            (
                f"{one.slack:g}",
                f"{one.pairs:,}",
                f"{math.ceil(one.corrected):,}",
                f"{one.limit:,}",
                f"{one.printed_votes}, wrong {100 * one.left:.1f} %",
                f"{one.needed_votes}, wrong at most {100 * one.allowed:.2g} %",
            )
            for one in self.shares
        ]
        names = ("slack", "pairs here", "by Bernstein", "no test below", "votes as printed", "votes needed")
        return Table(f"Random privacy: all but a share {GAMMA:g} of the pairs of inputs", names, tuple(rows))

    def _mistakes(self) -> Table:
        one = self.mistakes
        rows = (
            (f"Algorithm 4, delta {one.one_way_delta:.2f} one way only", one.one_way_printed, one.one_way_here),
            ("Algorithm 6, a device exactly as stated", one.honest_printed, one.honest_here),
        )
        text = tuple((name, f"{100 * printed:.0f} %", f"{100 * here:.0f} %") for name, printed, here in rows)
        return Table(f"How often tests accept, of {one.runs}", ("", "as printed", "here"), text)

    def claims(self) -> tuple[Claim, ...]:
        return (*self._rates(), self._lower(), *self._wrong())

    def _rates(self) -> list[Claim]:
        rates = {
            (Cell.UNKNOWN, Along.OUTCOMES): "n / alpha^2 queries, in n",
            (Cell.UNKNOWN, Along.GAP): "n / alpha^2 queries, in alpha",
            (Cell.KNOWN, Along.OUTCOMES): "sqrt n / alpha^2 queries, in n",
            (Cell.KNOWN, Along.GAP): "sqrt n / alpha^2 queries, in alpha",
            (Cell.PURE, Along.LEAST): "ln n / (alpha^2 beta^2) queries, in beta",
            (Cell.PURE, Along.GAP): "ln n / (alpha^2 beta^2) queries, in alpha",
        }
        found = []
        for (tester, along), text in rates.items():
            one = self.of(tester, along)
            said = f"exponent {one.slope}, printed {one.claimed:+.1f}; {_spare(one)}"
            found.append(Claim(f"{tester}: {text}", _where(tester), said, rate_verdict(one.slope, one.claimed)))
        return found

    def _lower(self) -> Claim:
        one = self.of(Cell.PURE, Along.LEAST)
        limit = fitted([p.x for p in one.points], [float(p.limit) for p in one.points])
        kept = all(p.needed + 5 * p.error >= p.limit for p in one.points)
        near = kept and one.slope.near(-1.0)
        return Claim(
            "pure, full information: at least 1 / (beta alpha^2) queries",
            "McMillan, Table 9.1 and Theorem 10.12",
            f"needed grows with exponent {one.slope} in beta, our bound with {limit.value:+.2f}",
            Agreement.AGREES if near else Agreement.WRONG if not kept else Agreement.UNDECIDED,
        )

    def _wrong(self) -> list[Claim]:
        one, worst = self.mistakes, max(self.shares, key=lambda share: share.left / share.allowed)
        return [
            Claim(
                "Algorithm 4 rejects what is far from the claim two times in three",
                "McMillan, Theorem 10.8",
                f"as printed it accepts delta {one.one_way_delta:.2f} in the other direction in "
                f"{100 * one.one_way_printed:.0f} % of {one.runs} tests",
                _promise(1 - one.one_way_printed, one.runs),
            ),
            Claim(
                "Algorithm 6 accepts a private device that is as stated two times in three",
                "McMillan, Theorem 10.11",
                f"as printed, with counts in the place of frequencies, it accepts it in "
                f"{100 * one.honest_printed:.0f} % of {one.runs} tests",
                _promise(one.honest_printed, one.runs),
            ),
            Claim(
                "log(2 lambda/alpha) repetitions bring the failure from 1/3 to alpha/(2 lambda)",
                "McMillan, Theorem 10.3",
                f"{worst.printed_votes} votes leave {100 * worst.left:.1f} %, {worst.needed_votes} are needed for "
                f"{100 * worst.allowed:.2g} %",
                Agreement.WRONG if worst.left > worst.allowed else Agreement.AGREES,
            ),
        ]

    def measures(self) -> tuple[Measure, ...]:
        found = []
        for sweep in self.sweeps:
            for one in sweep.points:
                said = f"{sweep.tester}, needed at {sweep.along} = {one.x:g}"
                found.append(Measure(said, math.log(one.needed), one.error / one.needed, slack=0.1))
        found += [Measure(f"random privacy, pairs at slack {one.slack:g}", float(one.pairs)) for one in self.shares]
        return tuple(found)

    def words(self) -> tuple[str, ...]:
        unknown, known = self.of(Cell.UNKNOWN, Along.OUTCOMES), self.of(Cell.KNOWN, Along.OUTCOMES)
        pure, last = self.of(Cell.PURE, Along.LEAST), self.of(Cell.UNKNOWN, Along.OUTCOMES).points[-1]
        return (
            "Each dot is the least number of queries on each input with which a test was right two times in three, on "
            "hard private pairs and hard far ones alike, with the best threshold for that number: found by bisection "
            f"over simulated tests. Without information it grows with exponent {unknown.slope} in n, with full "
            f"information with {known.slope}, where n and sqrt n are printed. For pure privacy it grows with exponent "
            f"{pure.slope} in the least probability beta where {pure.claimed:+.1f} is printed.",
            f"The line above the dots is what the tester here plans, from inequalities that hold for every pair; the "
            f"dashed one is what is printed. At n = {last.x:g} without information {last.needed:,.0f} are needed, "
            f"{last.planned:,} planned and {last.printed:,.0f} printed. Dots are for the pairs that we know to be "
            "hard: an unknown harder one would raise them, but not above the plan. No test whatever goes below the "
            "dotted line.",
            f"Diamonds are the reports at which `cw.audit` announced a violation on a far pair with its outcomes "
            f"shuffled, at 95 % confidence (median; {100 * self._found:.0f} % of the audits did). It stops when it "
            f"knows, so gross violations cost it little, and its exponent in n is {unknown.audited}. But it "
            "promises nothing of mechanisms that it does not accuse, and a tester does.",
        )

    @property
    def _found(self) -> float:
        return float(np.mean([point.found for sweep in self.sweeps for point in sweep.points]))

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(2, 3)
        for column, tester in enumerate(Cell):
            first = Along.LEAST if tester is Cell.PURE else Along.OUTCOMES
            for row, along in enumerate((first, Along.GAP)):
                _draw(panels[row, column], self.of(tester, along))
            panels[0, column].set_title(str(tester).capitalize())
        for row in panels:
            row[0].set_ylabel("queries on each input")
        legend_below(figure, panels[0, 0])


def rate_verdict(found: Slope, claimed: float) -> Agreement:
    """An upper bound's exponent against the one that is needed: more is wrong, less is a bound that could be better."""
    if found.near(claimed):
        return Agreement.AGREES
    return Agreement.LOOSER if abs(found.value) < abs(claimed) else Agreement.WRONG


def _promise(right: float, runs: int) -> Agreement:
    """A promise of two times in three, against how often a test was right."""
    short = 2 / 3 - right > 5 * math.sqrt(2 / 9 / runs)
    return Agreement.WRONG if short else Agreement.AGREES


def _where(tester: Cell) -> str:
    return f"McMillan, Table 9.1 and Theorem {tester.theorem}"


def _spare(sweep: Sweep) -> str:
    low, high = (pick(one.printed / one.needed for one in sweep.points) for pick in (min, max))
    return f"printed is {low:,.0f} to {high:,.0f} times what is needed"


def _numbers(sweep: Sweep) -> Table:
    rows = [
        (
            f"{one.x:.4g}",
            f"{one.needed:,.0f} ± {one.error:,.0f}",
            f"{one.planned:,}",
            f"{one.printed:,.0f}",
            f"{one.limit:,}",
            f"{one.audited:,.0f}" if one.found > 0.5 else f"above {MOST_REPORTS:,}",
        )
        for one in sweep.points
    ]
    names = (str(sweep.along), "needed", "planned here", "printed", "no test below", "an audit")
    return Table(f"Queries on each input, {sweep.tester}", names, tuple(rows))


def _draw(axes: Any, sweep: Sweep) -> None:
    x = [one.x for one in sweep.points]
    label = "printed (in the middle: its rate)"
    axes.plot(x, [one.printed for one in sweep.points], "--", color=SERIES[1], label=label)
    axes.plot(x, [one.planned for one in sweep.points], "-", color=SERIES[0], label="planned here")
    bars = [2 * one.error for one in sweep.points]
    axes.errorbar(x, [one.needed for one in sweep.points], yerr=bars, fmt="o", color=SERIES[0], label="needed")
    axes.plot(x, [one.audited for one in sweep.points], "D", color=SERIES[2], markersize=5, label="an audit")
    axes.plot(x, [one.limit for one in sweep.points], ":", color=INK, label="no test below")
    log_scale(axes, x)
    axes.set_xticks(x, [_tick(value) for value in x])
    axes.set_yscale("log")
    axes.set_xlabel(f"{sweep.along} (needed: exponent {sweep.slope}, printed {sweep.claimed:+.1f})")
    axes.grid(color=FAINT, alpha=0.3)


def _tick(value: float) -> str:
    return f"1/{1 / value:.0f}" if value < 0.03 else f"{value:g}"


def _settings(*, quick: bool) -> list[tuple[Along, list[Setting]]]:
    counts, gaps = (QUICK_COUNTS, QUICK_GAPS) if quick else (COUNTS, GAPS)
    found: list[tuple[Along, list[Setting]]] = []
    for tester in (Cell.UNKNOWN, Cell.KNOWN):
        found.append((Along.OUTCOMES, [Setting(tester, n, GAP) for n in counts]))
        found.append((Along.GAP, [Setting(tester, FIXED_N, alpha) for alpha in gaps]))
    least = [RARE / 4**k for k in range(2 if quick else 3)]
    found.append((Along.LEAST, [Setting(Cell.PURE, PURE_N, PURE_GAP, beta) for beta in least]))
    found.append((Along.GAP, [Setting(Cell.PURE, PURE_N, PURE_GAP * alpha / max(gaps), RARE) for alpha in gaps]))
    found.append((Along.OUTCOMES, [Setting(Cell.PURE, n, PURE_GAP) for n in counts[:-1]]))
    return found


def _work(*, quick: bool, seed: int, progress: Progress) -> Complexities:
    effort, plan = QUICK if quick else FULL, _settings(quick=quick)
    total = sum(len(settings) for _, settings in plan)
    searched: list[FloatArray] = []
    cells: dict[Cell, list[FloatArray]] = {cell: [] for cell in Cell}
    for number, setting in enumerate(one for _, settings in plan for one in settings):
        progress(number, total + 1)
        searched.append(_search(setting, effort, (seed, number)))
        cells[setting.tester].append(searched[-1])
    relative = {cell: spread(sizes) / math.sqrt(effort.searches) for cell, sizes in cells.items()}
    sweeps, done = [], 0
    for along, settings in plan:
        points = []
        for setting in settings:
            size = float(np.exp(np.log(searched[done]).mean()))
            error = size * relative[setting.tester]
            points.append(_point(setting, along, size, error, effort.audits, (seed, done)))
            done += 1
        sweeps.append(Sweep(settings[0].tester, along, tuple(points)))
    shares = tuple(share(slack) for slack in SLACKS)
    progress(total + 1, total + 1)
    return Complexities(tuple(sweeps), shares, mistakes(40 if quick else 300, stream(seed, total)))


def _search(setting: Setting, effort: Effort, key: tuple[int, ...]) -> FloatArray:
    contest = setting.contest
    return np.array([contest.needed(effort.runs, stream(*key, k)) for k in range(effort.searches)])


def _point(setting: Setting, along: Along, size: float, error: float, audits: int, key: tuple[int, ...]) -> Point:
    x = {Along.OUTCOMES: float(setting.n), Along.GAP: setting.alpha, Along.LEAST: setting.least}[along]
    planned, limit = setting.planned()
    used = audited(setting, audits, key)
    median = float(np.median([min(one, MOST_REPORTS) for one in used]))
    found = float(np.mean([one <= MOST_REPORTS for one in used]))
    return Point(x, size, error, planned, setting.printed, limit, median, found)


EXPERIMENT = Experiment(
    "testers",
    "How many queries tests of privacy need, against McMillan's table",
    Complexities,
    _work,
    shows=("McMillan, Table 9.1",),
    minutes=2.5,
)
