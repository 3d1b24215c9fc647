"""McMillan's table of query complexities, measured: what each test of privacy needs, plans, and at least takes."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from papers import complexity
from papers.complexity import Along, Cell, Setting, claimed, proved, slope
from papers.drawing import FAINT, INK, SERIES, curve, log_x
from papers.experiment import Experiment, Run, stream
from papers.queries import spread
from papers.query_limits import BLINDNESS
from papers.result import Agreement, Claim, Finding
from papers.rows import Mean, Row, pick
from papers.statistics import fit_slope, judge_lower, judge_upper, near

GAP, PURE_GAP = 0.1, 0.5  # alpha where it is fixed
FIXED_N, PURE_N = 64, 16
RARE = 1 / 64
QUICK_COUNTS = (16, 64, 256)
SLACKS = (0.4, 0.2, 0.1, 0.05)
# a diamond is hollow and larger than a dot, so that neither hides the other
_DIAMOND: Any = {"marker": "D", "linestyle": "", "color": SERIES[2], "markerfacecolor": "none", "markersize": 8}


# searches for each size, tests in each step of a search, audits, and runs of printed tests
FULL, QUICK, PROBE = (5, 300, 5, 300), (2, 40, 1, 10), (2, 20, 1, 4)
# numbers of outcomes, gaps, how many values of beta, and values of A
FULL_GRID = ((16, 64, 256, 1024, 4096), (0.05, 0.1, 0.2, 0.4), 3, (4, 6, 8, 10, 12))
QUICK_GRID, PROBE_GRID = (QUICK_COUNTS, (0.1, 0.4), 2, (4, 6)), ((16, 64), (0.2, 0.4), 2, (4, 6))


class Complexities(Finding):
    """What tests need, and where the printed ones fail."""

    size = (12.5, 6.5)

    def of(self, tester: Cell, along: Along) -> Row:
        sweep: Row = pick(self.sweeps, tester=tester, along=along)
        return sweep

    @property
    def hidden(self) -> Mean:
        """How the queries for pure privacy without information grow with e^A."""
        return fit_slope([math.exp(one.depth) for one in self.rares], [float(one.needed) for one in self.rares])

    def claims(self) -> tuple[Claim, ...]:
        first, last = self.rares[0], self.rares[-1]
        unverifiable = Claim(
            "pure, no information: no finite number of queries",
            "McMillan, Table 9.1 and Theorem 10.5",
            f"two pairs that differ in an outcome of probability e^-A take {first.needed:,} queries at "
            f"A = {first.depth:g} and {last.needed:,} at A = {last.depth:g}, exponent {self.hidden:+.2f} in e^A",
            Agreement.AGREES if near(self.hidden, 1.0) else Agreement.UNDECIDED,
        )
        return (unverifiable, *self._upper_bounds(), *self._lower_bounds(), *self._failures())

    def _upper_bounds(self) -> Iterable[Claim]:
        rates = {Cell.UNKNOWN: "n / alpha^2", Cell.KNOWN: "sqrt n / alpha^2", Cell.PURE: "ln n / (alpha^2 beta^2)"}
        for tester, rate in rates.items():
            for along in (Along.LEAST if tester is Cell.PURE else Along.OUTCOMES, Along.GAP):
                one = self.of(tester, along)
                yield Claim(
                    f"{tester}: {rate} queries, in {along}",
                    f"McMillan, Table 9.1 and {tester.source}",
                    f"exponent {slope(one):+.2f}, printed {claimed(one):+.1f}; {_overestimate(one)}",
                    judge_upper(slope(one), claimed(one), growing=along is Along.OUTCOMES),
                )

    def _lower_bounds(self) -> Iterable[Claim]:
        for tester, along, text, rate, theorem in (
            (Cell.PURE, Along.LEAST, "1 / (beta alpha^2) queries, in beta", -1.0, "10.12"),
            (Cell.UNKNOWN, Along.GAP, "1 / alpha^2 queries, in alpha", -2.0, "10.7"),
            (Cell.UNKNOWN, Along.OUTCOMES, "n^(1-o(1)) queries, in n", 1.0, "10.7"),
        ):
            one = self.of(tester, along)
            verdict = lower_verdict(one, rate, elsewhere=along is Along.OUTCOMES)
            cited = f"; {BLINDNESS}" if along is Along.OUTCOMES else ""
            yield Claim(
                f"{tester}: at least {text}",
                f"McMillan, Table 9.1 and Theorem {theorem}",
                f"the number needed has exponent {slope(one):+.2f}, our lower bound {proved(one).value:+.2f}{cited}",
                verdict,
            )

    def _failures(self) -> tuple[Claim, ...]:
        one, worst = self.mistakes, max(self.shares, key=lambda share: share.left / share.allowed)
        return (
            Claim(
                "Algorithm 4 rejects what is far from the claim two times in three",
                "McMillan, Theorem 10.8",
                f"as printed it accepts delta {one.one_way_delta:.2f} in the other direction in "
                f"{100 * one.one_way_printed:.0f} % of {one.runs} tests",
                _judge_promise(1 - one.one_way_printed, one.runs),
            ),
            Claim(
                "Algorithm 6 accepts a private device that is as stated two times in three",
                "McMillan, Theorem 10.11",
                "as printed, with counts in the place of frequencies, it accepts it in "
                f"{100 * one.honest_printed:.0f} % of {one.runs} tests",
                _judge_promise(one.honest_printed, one.runs),
            ),
            Claim(
                "log(2 lambda/alpha) repetitions bring the failure from 1/3 to alpha/(2 lambda)",
                "McMillan, Theorem 10.3",
                f"{worst.printed_votes} votes leave {100 * worst.left:.1f} %, {worst.needed_votes} are needed for "
                f"{100 * worst.allowed:.2g} %",
                Agreement.of(worst.left <= worst.allowed),
            ),
        )

    def text(self) -> str:
        unknown = self.of(Cell.UNKNOWN, Along.OUTCOMES)
        return (
            "Each dot is the least number of queries on each input with which a test was right two times in three, on "
            "hard private pairs and on hard far pairs, with the best threshold for that number; found by bisection "
            "over simulated tests. The line above the dots is what our tester plans, from inequalities that hold for "
            "every pair. The dashed line is printed; where no constant is printed, the rate goes through the first "
            "dot. An unknown harder pair would raise the dots, but not above the plan. No test goes below the dotted "
            f"line. Without information it grows with exponent {proved(unknown).value:+.2f} in n; the number needed "
            f"grows faster; {BLINDNESS}."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(2, 4)
        for column, tester in enumerate(Cell):
            first = Along.LEAST if tester is Cell.PURE else Along.OUTCOMES
            for row, along in enumerate((first, Along.GAP)):
                _draw_sweep(panels[row, column], self.of(tester, along))
            panels[0, column].set_title(str(tester).capitalize(), fontsize=10)
        _draw_rares(panels[0, 3], self.rares, self.hidden)
        named: dict[str, Any] = {}
        for panel in panels[:, :3].flat:
            handles, labels = panel.get_legend_handles_labels()
            named |= dict(zip(labels, handles, strict=True))
        panels[1, 3].axis("off")
        panels[1, 3].legend(list(named.values()), list(named), loc="center left")
        for row in panels:
            row[0].set_ylabel("queries on each input")


def _draw_sweep(axes: Any, sweep: Row) -> None:
    x, points = [one.x for one in sweep.points], sweep.points
    printed = [one.printed for one in points if one.printed is not None]
    if printed:
        axes.plot(x, printed, "--", color=SERIES[1], label="printed")
    else:
        label = "printed rate, through the\nfirst dot (no constant)"
        first = points[0]
        scaled = [first.needed.value * one.rate / first.rate for one in points]
        axes.plot(x, scaled, "-.", color=SERIES[1], label=label)
    axes.plot(x, [one.planned for one in points], "-", color=SERIES[0], label="planned here")
    curve(axes, x, [one.needed for one in points], linestyle="", capsize=0, label="needed")
    seen = [one for one in points if one.found > 0.5]
    axes.plot([one.x for one in seen], [one.audited for one in seen], label="audit", **_DIAMOND)
    axes.plot(x, [one.limit for one in points], ":", color=INK, label="lower bound")
    log_x(axes, x)
    axes.set_xticks(x, [f"1/{1 / value:.0f}" if value < 0.03 else f"{value:g}" for value in x])
    _finish(axes, f"{sweep.along}\nexponent {slope(sweep):+.2f}, printed {claimed(sweep):+.1f}")


def _draw_rares(axes: Any, rares: Sequence[Row], growth: Mean) -> None:
    depths = [one.depth for one in rares]
    seen = [one for one in rares if one.found > 0.5]
    axes.plot(depths, [one.needed for one in rares], "o", color=SERIES[0], markersize=5)
    axes.plot(depths, [one.printed for one in rares], ":", color=INK)
    axes.plot([one.depth for one in seen], [one.audited for one in seen], **_DIAMOND)
    axes.set_xticks(depths)
    axes.set_title("Pure, no information", fontsize=10)
    _finish(axes, f"A (an outcome has probability $e^{{-A}}$)\nexponent {growth:+.2f} of $e^A$")


def _finish(axes: Any, label: str) -> None:
    axes.set_xlabel(label, fontsize=9)
    axes.set_yscale("log")
    axes.grid(color=FAINT, alpha=0.3)


def lower_verdict(sweep: Row, rate: float, *, elsewhere: bool = False) -> Agreement:
    """Judge a lower bound: the number needed must not grow more slowly, and a proof of the rate has to exist.

    The proof is our own bound, or one `elsewhere`.
    """
    seen = judge_lower(slope(sweep), rate, growing=sweep.along == Along.OUTCOMES)
    return seen if seen is Agreement.WRONG or elsewhere or near(proved(sweep), rate) else Agreement.UNDECIDED


def _judge_promise(right: float, runs: int) -> Agreement:
    """Judge a promise of two times in three by how often a test was right."""
    return Agreement.of(2 / 3 - right <= 5 * math.sqrt(2 / 9 / runs))


def _overestimate(sweep: Row) -> str:
    ratios = [one.printed / one.needed.value for one in sweep.points if one.printed is not None]
    if not ratios:
        return "no constant is printed"
    return f"printed is {min(ratios):,.0f} to {max(ratios):,.0f} times what is needed"


def _settings(counts: Sequence[int], gaps: Sequence[float], betas: int) -> list[tuple[Along, list[Setting]]]:
    settings: list[tuple[Along, list[Setting]]] = []
    for tester in (Cell.UNKNOWN, Cell.KNOWN):
        settings.append((Along.OUTCOMES, [Setting(tester, n, GAP) for n in counts]))
        settings.append((Along.GAP, [Setting(tester, FIXED_N, alpha) for alpha in gaps]))
    rare = [RARE / 4**k for k in range(betas)]
    settings.append((Along.LEAST, [Setting(Cell.PURE, PURE_N, PURE_GAP, beta) for beta in rare]))
    settings.append((Along.GAP, [Setting(Cell.PURE, PURE_N, PURE_GAP * alpha / max(gaps), RARE) for alpha in gaps]))
    settings.append((Along.OUTCOMES, [Setting(Cell.PURE, n, PURE_GAP) for n in counts[:betas]]))
    return settings


def _work(run: Run) -> Complexities:
    searches, runs, audits, printed = run.choose(FULL, QUICK, PROBE)
    counts, gaps, betas, depths = run.choose(FULL_GRID, QUICK_GRID, PROBE_GRID)
    plan = _settings(counts, gaps, betas)
    total = sum(len(settings) for _, settings in plan)
    searched: list[FloatArray] = []
    cells: dict[Cell, list[FloatArray]] = {cell: [] for cell in Cell}
    for number, setting in enumerate(one for _, settings in plan for one in settings):
        searched.append(setting.search(searches, runs, (run.seed, number)))
        cells[setting.tester].append(searched[-1])
    relative = {cell: spread(sizes) / math.sqrt(searches) for cell, sizes in cells.items()}
    sweeps, done = [], 0
    for along, settings in plan:
        points = []
        for setting in settings:
            size = float(np.exp(np.log(searched[done]).mean()))
            needed = Mean(size, size * relative[setting.tester])
            points.append(setting.point(along, needed, audits, (run.seed, done)))
            done += 1
        sweeps.append(Row(tester=settings[0].tester, along=along, points=tuple(points)))
    rares = tuple(complexity.rare(depth, audits, (run.seed, total + 1 + k)) for k, depth in enumerate(depths))
    wrong = complexity.mistakes(printed, stream(run.seed, total))
    shares = tuple(complexity.share(slack) for slack in SLACKS)
    return Complexities(sweeps=tuple(sweeps), rares=rares, shares=shares, mistakes=wrong)


EXPERIMENT = Experiment(
    "testers",
    "How many queries tests of privacy need, against McMillan's table",
    Complexities,
    _work,
    shows="McMillan, Table 9.1",
    minutes=3.0,
)
