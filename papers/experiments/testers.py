"""McMillan's table of query complexities, measured: what each test of privacy needs, plans, and can be spared."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from papers.complexity import (
    DELTA,
    GAMMA,
    MOST_REPORTS,
    Along,
    Cell,
    Point,
    Rare,
    Setting,
    Share,
    Sweep,
    audited,
    rare,
    share,
)
from papers.complexity_panels import draw_legend, draw_rares, draw_sweep
from papers.experiment import Experiment, Progress, stream
from papers.printed_testers import Mistakes, mistakes
from papers.queries import spread
from papers.rates import judged, opposite
from papers.result import Agreement, Claim, Finding, Measure, Table
from papers.slopes import Slope, fitted

GAP, PURE_GAP = 0.1, 0.5  # alpha where it is not what is varied
FIXED_N, PURE_N = 64, 16
RARE = 1 / 64
COUNTS, QUICK_COUNTS = (16, 64, 256, 1024, 4096), (16, 64, 256)
GAPS, QUICK_GAPS = (0.05, 0.1, 0.2, 0.4), (0.1, 0.4)
SLACKS = (0.4, 0.2, 0.1, 0.05)
DEPTHS, QUICK_DEPTHS = (4, 6, 8, 10, 12), (4, 6)


@dataclass(frozen=True)
class Effort:
    """Searches for each size, tests in each step of a search, and audits."""

    searches: int
    runs: int
    audits: int


FULL, QUICK = Effort(5, 300, 5), Effort(5, 120, 1)


@dataclass(frozen=True)
class Complexities(Finding):
    """What tests need, and where the printed ones go wrong."""

    size: ClassVar[tuple[float, float]] = (12.5, 6.5)
    sweeps: tuple[Sweep, ...]
    rares: tuple[Rare, ...]
    shares: tuple[Share, ...]
    mistakes: Mistakes

    def of(self, tester: Cell, along: Along) -> Sweep:
        """One sweep."""
        return next(one for one in self.sweeps if one.tester is tester and one.along is along)

    @property
    def hidden(self) -> Slope:
        """How the queries that pure privacy takes without information grow with e^A."""
        return fitted([math.exp(one.depth) for one in self.rares], [float(one.needed) for one in self.rares])

    def tables(self) -> tuple[Table, ...]:
        sweeps = (_numbers(one) for one in self.sweeps)
        return (self._slopes(), self._rares(), *sweeps, self._shares(), self._mistakes())

    def _rares(self) -> Table:
        rows = [
            (
                f"{one.depth:g}",
                f"{one.far:.0f}",
                f"{one.needed:,}",
                f"{one.printed:,.0f}",
                _reports(one.audited, one.found),
            )
            for one in self.rares
        ]
        names = ("A", "epsilon of the far pair", "needed, exactly", "at least, by the proof", "an audit")
        return Table("Queries on each input, pure, no information: an outcome of probability e^-A", names, tuple(rows))

    def _slopes(self) -> Table:
        rows = [
            (
                f"{one.tester}: {one.along}",
                f"{one.claimed:+.2f}",
                str(one.slope),
                f"{one.proved.value:+.2f}",
                str(one.audited or "-"),
            )
            for one in self.sweeps
        ]
        names = ("test, and in", "printed", "needed", "no test below", "an audit")
        return Table("Exponents of the number of queries", names, tuple(rows))

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
        return (self._unverifiable(), *self._uppers(), *self._lowers(), *self._wrong())

    def _unverifiable(self) -> Claim:
        first, last = self.rares[0], self.rares[-1]
        return Claim(
            "pure, no information: no finite number of queries",
            "McMillan, Table 9.1 and Theorem 10.5",
            f"two pairs that differ in an outcome of probability e^-A take {first.needed:,} queries at "
            f"A = {first.depth:g} and {last.needed:,} at A = {last.depth:g}, exponent {self.hidden} in e^A",
            Agreement.AGREES if self.hidden.near(1.0) else Agreement.UNDECIDED,
        )

    def _uppers(self) -> list[Claim]:
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
            where = f"McMillan, Table 9.1 and {tester.where}"
            found.append(Claim(f"{tester}: {text}", where, said, _judged(one, one.claimed)))
        return found

    def _lowers(self) -> list[Claim]:
        bounds = (
            (Cell.PURE, Along.LEAST, "1 / (beta alpha^2) queries, in beta", -1.0, "10.12"),
            (Cell.UNKNOWN, Along.GAP, "1 / alpha^2 queries, in alpha", -2.0, "10.7"),
            (Cell.UNKNOWN, Along.OUTCOMES, "n^(1-o(1)) queries, in n", 1.0, "10.7"),
        )
        found = []
        for tester, along, text, claimed, theorem in bounds:
            one = self.of(tester, along)
            verdict = lower_verdict(one, claimed)
            unproved = "; neither proves it" if verdict is Agreement.UNDECIDED else ""
            said = f"needed grows with exponent {one.slope}, our bound with {one.proved.value:+.2f}{unproved}"
            where = f"McMillan, Table 9.1 and Theorem {theorem}"
            found.append(Claim(f"{tester}: at least {text}", where, said, verdict))
        return found

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
                found.append(Measure(said, one.needed, one.error, slack=0.02 * one.needed))
        found += [Measure(f"pure, no information, needed at A = {one.depth:g}", one.needed) for one in self.rares]
        found += [Measure(f"random privacy, pairs at slack {one.slack:g}", float(one.pairs)) for one in self.shares]
        return (*found, self._spared())

    def _spared(self) -> Measure:
        """Printed over needed without information, the mean of the sizes that every run has."""
        points = [one for one in self.of(Cell.UNKNOWN, Along.OUTCOMES).points if one.x <= QUICK_COUNTS[-1]]
        ratios = [(one.printed or 0.0) / one.needed for one in points]
        errors = [ratio * one.error / one.needed for ratio, one in zip(ratios, points, strict=True)]
        mean, error = float(np.mean(ratios)), float(np.sqrt(np.square(errors).sum()) / len(points))
        return Measure(f"{Cell.UNKNOWN}, printed over needed", mean, error, slack=0.02 * mean)

    def words(self) -> tuple[str, ...]:
        unknown, known = self.of(Cell.UNKNOWN, Along.OUTCOMES), self.of(Cell.KNOWN, Along.OUTCOMES)
        pure, last = self.of(Cell.PURE, Along.LEAST), self.of(Cell.UNKNOWN, Along.OUTCOMES).points[-1]
        deepest = self.rares[-1]
        return (
            "Each dot is the least number of queries on each input with which a test was right two times in three, on "
            "hard private pairs and hard far ones alike, with the best threshold for that number: found by bisection "
            f"over simulated tests. Without information it grows with exponent {unknown.slope} in n, with full "
            f"information with {known.slope}, where n and sqrt n are printed. For pure privacy it grows with exponent "
            f"{pure.slope} in the least probability beta where {pure.claimed:+.1f} is printed.",
            f"The line above the dots is what the tester here plans, from inequalities that hold for every pair; the "
            f"dashed one is what is printed, or where no constant is printed its rate, through the first dot. At "
            f"n = {last.x:g} without information {last.needed:,.0f} are needed, {last.planned:,} planned and "
            f"{last.printed or 0.0:,.0f} printed. Dots are for the pairs that we know to be hard: an unknown harder "
            "one would raise them, but not above the plan. No test whatever goes below the dotted line. It is the "
            "same for tests with information and without, as it holds for both, and without information it grows "
            f"with exponent {unknown.proved.value:+.2f} in n: {_gap(unknown)}",
            "Pure privacy cannot be tested without information: an outcome that is rare enough hides any epsilon. "
            f"For the pairs in the proof of that the best of all tests takes {deepest.needed:,} queries to notice an "
            f"epsilon of {deepest.far:.0f} behind an outcome of probability e^-{deepest.depth:g}, and the number "
            f"grows with exponent {self.hidden} in e^A.",
            f"Diamonds are the reports at which `cw.audit` announced a violation on a far pair with its outcomes "
            f"shuffled, at 95 % confidence (median; {100 * self._found:.0f} % of the audits did, those of pure privacy "
            "without information not counted). It stops when it knows, so gross violations cost it little, and its "
            f"exponent in n is {unknown.audited or '-'}. But it promises nothing of mechanisms that it does not "
            "accuse, and a tester does.",
        )

    @property
    def _found(self) -> float:
        return float(np.mean([point.found for sweep in self.sweeps for point in sweep.points]))

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(2, 4)
        for column, tester in enumerate(Cell):
            first = Along.LEAST if tester is Cell.PURE else Along.OUTCOMES
            for row, along in enumerate((first, Along.GAP)):
                draw_sweep(panels[row, column], self.of(tester, along))
            panels[0, column].set_title(str(tester).capitalize(), fontsize=10)
        draw_rares(panels[0, 3], self.rares, self.hidden)
        draw_legend(panels[1, 3], panels[:, :3].flat)
        for row in panels:
            row[0].set_ylabel("queries on each input")


def lower_verdict(sweep: Sweep, claimed: float) -> Agreement:
    """What to say of a lower bound: what is needed must not grow less, and our own bound must grow as much."""
    seen = opposite(_judged(sweep, claimed))
    return seen if seen is Agreement.WRONG or sweep.proved.near(claimed) else Agreement.UNDECIDED


def _judged(sweep: Sweep, claimed: float) -> Agreement:
    """What is needed against an exponent; alpha and beta go to 0."""
    return judged(sweep.slope, claimed, growing=sweep.along is Along.OUTCOMES)


def _gap(sweep: Sweep) -> str:
    """What the difference between what is needed and what is proved leaves open."""
    if sweep.slope.near(sweep.proved.value):
        return "as much as what is needed."
    return "what is needed grows more, and that no test does with less is claimed, but proved neither there nor here."


def _promise(right: float, runs: int) -> Agreement:
    """A promise of two times in three, against how often a test was right."""
    short = 2 / 3 - right > 5 * math.sqrt(2 / 9 / runs)
    return Agreement.WRONG if short else Agreement.AGREES


def _spare(sweep: Sweep) -> str:
    ratios = [one.printed / one.needed for one in sweep.points if one.printed is not None]
    if not ratios:
        return "no constant is printed"
    return f"printed is {min(ratios):,.0f} to {max(ratios):,.0f} times what is needed"


def _numbers(sweep: Sweep) -> Table:
    rows = [
        (
            f"{one.x:.4g}",
            f"{one.needed:,.0f} ± {one.error:,.0f}",
            f"{one.planned:,}",
            "-" if one.printed is None else f"{one.printed:,.0f}",
            f"{one.limit:,}",
            _reports(one.audited, one.found),
        )
        for one in sweep.points
    ]
    names = (str(sweep.along), "needed", "planned here", "printed", "no test below", "an audit")
    return Table(f"Queries on each input, {sweep.tester}", names, tuple(rows))


def _reports(audited: float, found: float) -> str:
    return f"{audited:,.0f}" if found > 0.5 else f"above {MOST_REPORTS:,}"


def _settings(*, quick: bool) -> list[tuple[Along, list[Setting]]]:
    counts, gaps = (QUICK_COUNTS, QUICK_GAPS) if quick else (COUNTS, GAPS)
    found: list[tuple[Along, list[Setting]]] = []
    for tester in (Cell.UNKNOWN, Cell.KNOWN):
        found.append((Along.OUTCOMES, [Setting(tester, n, GAP) for n in counts]))
        found.append((Along.GAP, [Setting(tester, FIXED_N, alpha) for alpha in gaps]))
    least = [RARE / 4**k for k in range(2 if quick else 3)]
    found.append((Along.LEAST, [Setting(Cell.PURE, PURE_N, PURE_GAP, beta) for beta in least]))
    found.append((Along.GAP, [Setting(Cell.PURE, PURE_N, PURE_GAP * alpha / max(gaps), RARE) for alpha in gaps]))
    found.append((Along.OUTCOMES, [Setting(Cell.PURE, n, PURE_GAP) for n in counts[: 2 if quick else 3]]))
    return found


def _work(*, quick: bool, seed: int, progress: Progress) -> Complexities:
    effort, plan, depths = QUICK if quick else FULL, _settings(quick=quick), QUICK_DEPTHS if quick else DEPTHS
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
    rares = tuple(rare(depth, effort.audits, (seed, total + 1 + k)) for k, depth in enumerate(depths))
    shares = tuple(share(slack) for slack in SLACKS)
    progress(total + 1, total + 1)
    return Complexities(tuple(sweeps), rares, shares, mistakes(40 if quick else 300, stream(seed, total)))


def _search(setting: Setting, effort: Effort, key: tuple[int, ...]) -> FloatArray:
    contest, start = setting.contest, float(setting.planned()[1])
    return np.array([contest.needed(effort.runs, stream(*key, k), start=start) for k in range(effort.searches)])


def _point(setting: Setting, along: Along, size: float, error: float, audits: int, key: tuple[int, ...]) -> Point:
    x = {Along.OUTCOMES: float(setting.n), Along.GAP: setting.alpha, Along.LEAST: setting.least}[along]
    planned, limit = setting.planned()
    used = audited(setting.far, 0.0 if setting.tester is Cell.PURE else DELTA, audits, key)
    return Point(x, size, error, planned, setting.printed, setting.rate, limit, used.reports, used.found)


EXPERIMENT = Experiment(
    "testers",
    "How many queries tests of privacy need, against McMillan's table",
    Complexities,
    _work,
    shows=("McMillan, Table 9.1",),
    minutes=3.0,
)
