"""Private convolution: the error of running sums and filters, against the papers' formula and lower bound."""

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cloakwork.series import Decay, Filter, MovingAverage, PowerDecay, RunningSum, Seasonal, Trend, WindowSum
from papers.drawing import FAINT, INK, SERIES, finish, legend_below
from papers.experiment import Experiment, Run, stream
from papers.filters import DELTA, EPSILON, errors, gain_at, leak
from papers.paper_laplace import repaired_delta
from papers.result import Agreement, Claim, Finding, Goal
from papers.rows import Row

PAPER = "Fawaz, Muthukrishnan and Nikolov"
COMMON = 1024  # the longest series of a quick run, and the length at which filters are compared
FILTERS: tuple[Filter, ...] = (
    RunningSum(),
    WindowSum(64),
    Decay(0.95),
    PowerDecay(0.5),
    Seasonal(24),
    MovingAverage(24),
    Trend(25),
)
CLAIMS = ((0.1, 1e-8), (1.0, 1e-6), (1.0, 0.01), (4.0, 1e-5), (10.0, 0.01))
MENDED = ((RunningSum(), False), (PowerDecay(1.0), True))  # filters with the papers' noise, and whether on a circle
MENDED_AT, MENDED_LENGTHS = (10.0, 0.01), (64, 256)
TRIALS, QUICK_TRIALS = 400, 60  # releases of each filter
STRAIGHT = 0.01  # a line that misses by less is straight
LEVEL = 1.1  # a quantity that grows by less over the whole range does not grow
BETTER = 3.0


def best(one: Row) -> float:
    """The least of our errors of a filter."""
    return float(one.whole if one.live is None else min(one.whole, one.live))


class Convolutions(Finding):
    """Errors of running sums of growing length and of filters of one length; what the papers' noise reveals."""

    size = (11.0, 5.0)

    @property
    def growth(self) -> Row:
        """The root of the papers' error of running sums as first + slope ln N, and the largest relative deviation."""
        x = np.log([one.n for one in self.sums])
        y = np.sqrt([one.papers for one in self.sums])
        slope, first = np.polyfit(x, y, 1)
        return Row(first=float(first), slope=float(slope), misses=float(np.abs((first + slope * x) / y - 1).max()))

    def claims(self) -> tuple[Claim, ...]:
        first, last, growth = self.sums[0], self.sums[-1], self.growth
        replaced = self.filters[0].papers / self.filters[0].whole  # by exact Gaussian noise in the same place
        ratio = max(one.true for one in self.mended) / MENDED_AT[1]
        return (
            Claim(
                "running sums have a mean squared error of O(1)",
                f"{PAPER}, section 5.1",
                f"it grows {last.papers / first.papers:.2f} times from N = {first.n} to {last.n:,}, like "
                f"({growth.first:.1f} + {growth.slope:.2f} ln N)^2 within {100 * growth.misses:.1g} %",
                _judge_constant(self.sums, growth),
            ),
            Claim(
                "the mean squared error is 4 ln(1/delta) ||h^||_1^2 / (epsilon^2 N)",
                f"{PAPER}, Theorem 5",
                f"{self.leak.mse.value:.0f} ± {self.leak.mse.error:.0f} measured, {self.leak.formula:.0f} by the "
                f"formula; exact Gaussian noise in the same place has {replaced:.2f} times less",
                _judge_formula(self.leak, replaced),
            ),
            Claim(
                "Algorithm 1 is (epsilon, delta)-private",
                f"{PAPER}, Theorem 5",
                f"an attacker decides correctly whether an event happened in {100 * self.leak.printed:.1f} % of "
                f"{self.leak.runs} runs; the claim allows {100 * self.leak.allowed:.1f} %",
                Agreement.WRONG if _exceeds(self.leak) else Agreement.UNDECIDED,
            ),
            Claim(
                "Laplace noise of that size would be private on real coefficients",
                f"{PAPER}, Theorem 5 mended",
                f"delta is up to {ratio:.2f} times the claim at ({MENDED_AT[0]:g}, {MENDED_AT[1]:g})",
                Agreement.WRONG if ratio > 1.02 else Agreement.UNDECIDED,
            ),
        )

    def goals(self) -> tuple[Goal, ...]:
        one = min(self.sums + self.filters, key=lambda one: one.papers / best(one))
        least = one.papers / best(one)
        reached = f"{least:.2f} ({one.name}, {one.n:,} values)"
        text = f"papers/ours at least {BETTER:g} at ({EPSILON:g}, {DELTA:g}), everywhere"
        return (Goal(text, reached, least >= BETTER),)

    def text(self) -> str:
        growth = self.growth
        unit = math.sqrt(4 * math.log(1 / DELTA)) / EPSILON  # the papers' root error if the mean of |h^| is 1
        return (
            "Left: the root of the mean squared error of running sums, over the logarithm of their length. An O(1) "
            "error would be level; one that grows like log^2 N is a straight line. The papers' formula is straight "
            f"within {100 * growth.misses:.1g} % and grows by {growth.slope / unit:.3f} noise units for each factor e "
            f"in N; the spectrum of a step gives 1/pi = {1 / math.pi:.3f}."
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
        _draw_sums(left, self.sums)
        _draw_filters(right, self.filters)
        legend_below(figure, [left])


def _judge_constant(sums: tuple[Row, ...], growth: Row) -> Agreement:
    """Whether an error stays level; it must follow the other law closely to be called wrong."""
    if sums[-1].papers <= LEVEL * sums[0].papers:
        return Agreement.AGREES
    return Agreement.WRONG if growth.misses < STRAIGHT and growth.slope > 0 else Agreement.UNDECIDED


def _judge_formula(found: Row, better: float) -> Agreement:
    if abs(found.mse.value - found.formula) > 5 * found.mse.error:
        return Agreement.WRONG
    return Agreement.LOOSER if better > LEVEL else Agreement.AGREES


def _exceeds(found: Row) -> bool:
    """Whether the attacker exceeds the claim by more than chance explains (five standard errors)."""
    spread = math.sqrt(found.allowed * (1 - found.allowed) / found.runs)
    return bool(found.printed > found.allowed + 5 * spread)


def _draw_sums(axes: Any, sums: tuple[Row, ...]) -> None:
    n = [one.n for one in sums]
    axes.plot(n, [math.sqrt(one.papers) for one in sums], "s-", color=SERIES[1], label="papers' formula")
    for color, marker, label, aside, name in (
        (SERIES[0], "o", "ours, at once", 0.95, "whole"),
        (SERIES[2], "D", "ours, live", 1.05, "live"),
    ):
        axes.plot(n, [math.sqrt(getattr(one, name)) for one in sums], color=color)
        seen = [getattr(one, f"{name}_seen") for one in sums]
        bars = [one.error / math.sqrt(one.value) for one in seen]
        look = {"fmt": marker, "color": color, "label": label}
        axes.errorbar([aside * one for one in n], [math.sqrt(one.value) for one in seen], yerr=bars, **look)
    axes.axhline(math.sqrt(sums[0].papers), color=SERIES[1], linewidth=1, linestyle="--", label="O(1), as printed")
    scaled = best(sums[0]) / sums[0].shape
    axes.plot(n, [math.sqrt(scaled * one.shape) for one in sums], ":", color=FAINT, label="specLB, scaled")
    across, up = "N, values in the series (logarithmic)", "root of the mean squared error"
    finish(axes, f"Running sums at ({EPSILON:g}, {DELTA:g})", across, up, ticks=n)
    axes.set_ylim(0)


def _draw_filters(axes: Any, filters: tuple[Row, ...]) -> None:
    scaled = best(filters[0]) / filters[0].shape
    for row, one in enumerate(filters):
        axes.plot(math.sqrt(one.papers), row, "s", color=SERIES[1])
        root, bar = math.sqrt(one.whole_seen.value), one.whole_seen.error / math.sqrt(one.whole_seen.value)
        axes.errorbar(root, row - 0.1, xerr=bar, fmt="o", color=SERIES[0])
        if one.live is not None:
            axes.plot(math.sqrt(one.live), row + 0.15, "D", color=SERIES[2], markersize=5)
        axes.plot(math.sqrt(scaled * one.shape), row, "|", color=FAINT, markersize=12)
        times = f"{one.papers / best(one):.1f} x"
        axes.text(math.sqrt(one.papers) * 1.12, row, times, va="center", fontsize=9, color=INK)
    axes.set_yticks(range(len(filters)), [one.name for one in filters])
    axes.invert_yaxis()
    axes.margins(x=0.15)
    title = f"Filters of {filters[0].n:,} values (numbers: papers/ours, squared errors)"
    finish(axes, title, "root of the mean squared error", ticks=(0.3, 1, 3, 10, 30))
    axes.grid(visible=False, axis="y")


def _work(run: Run) -> Convolutions:
    lengths = run.choose((64, 256, 1024, 4096, 16384), (64, 256, 1024), (64, 256))
    trials = run.choose(TRIALS, QUICK_TRIALS, 3)
    counts, runs = run.choose((256, 400), (64, 100), (64, 100))
    jobs: list[tuple[Filter, int]] = [(RunningSum(), n) for n in lengths]
    jobs += [(one, run.choose(COMMON, COMMON, 128)) for one in FILTERS]
    found = [errors(filter_, n, trials, (run.seed, number)) for number, (filter_, n) in enumerate(jobs)]
    leaked = leak(counts, runs, EPSILON, DELTA, stream(run.seed, len(jobs)))
    mended = [
        Row(name=one.name, n=n, claimed=MENDED_AT[1], true=repaired_delta(one, n, *MENDED_AT, circular=circular))
        for one, circular in MENDED
        for n in run.choose(MENDED_LENGTHS, MENDED_LENGTHS, (64,))
    ]
    return Convolutions(
        sums=tuple(found[: len(lengths)]),
        filters=tuple(found[len(lengths) :]),
        claims_tried=tuple(Row(epsilon=one, delta=delta, better=gain_at(one, delta)) for one, delta in CLAIMS),
        leak=leaked,
        mended=tuple(mended),
    )


EXPERIMENT = Experiment(
    "convolution",
    "The cost of private running sums and filters, against the papers' formula",
    Convolutions,
    _work,
    shows=f"{PAPER}, Theorem 5; {PAPER}, section 5.1 (running sums); {PAPER}, section 5.2 (linear filters)",
    minutes=0.5,
)
