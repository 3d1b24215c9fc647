"""Private convolution: the error of running sums and filters, against the papers' formula and lower bound."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork.series import Decay, Filter, MovingAverage, PowerDecay, RunningSum, Seasonal, Trend, WindowSum
from papers.drawing import FAINT, INK, SERIES, legend_below, log_x
from papers.experiment import Experiment, Run, stream
from papers.filters import DELTA, EPSILON, Errors, Leak, errors, gain_at, leak
from papers.paper_laplace import repaired_delta
from papers.result import Agreement, Claim, Finding, Goal, Measure
from papers.statistics import Mean

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
TRIALS, QUICK_TRIALS = 400, 240  # releases of each filter
STRAIGHT = 0.01  # a line that misses by less is straight
LEVEL = 1.1  # a quantity that grows by less over the whole range does not grow
BETTER = 3.0


@dataclass(frozen=True)
class AtClaim:
    """The papers' mean squared error over that of exact Gaussian noise at one claim."""

    epsilon: float
    delta: float
    better: float


@dataclass(frozen=True)
class Mended:
    """The true delta of the papers' noise on real coefficients, and the one that it claims."""

    name: str
    n: int
    claimed: float
    true: float


@dataclass(frozen=True)
class Growth:
    """The root of the error as first + slope ln N, and the largest relative deviation from that line."""

    first: float
    slope: float
    misses: float


@dataclass(frozen=True)
class Convolutions(Finding):
    """Errors of running sums of growing length and of filters of one length; what the papers' noise reveals."""

    size: ClassVar[tuple[float, float]] = (11.0, 5.0)
    sums: tuple[Errors, ...]
    filters: tuple[Errors, ...]
    claims_tried: tuple[AtClaim, ...]
    leak: Leak
    mended: tuple[Mended, ...]

    @property
    def growth(self) -> Growth:
        """How the root of the papers' error of running sums grows."""
        x = np.log([one.n for one in self.sums])
        y = np.sqrt([one.papers for one in self.sums])
        slope, first = np.polyfit(x, y, 1)
        return Growth(float(first), float(slope), float(np.abs((first + slope * x) / y - 1).max()))

    @property
    def replaced(self) -> float:
        """The papers' error of running sums over that of exact Gaussian noise in the same place."""
        return self.filters[0].papers / self.filters[0].whole

    @property
    def worst(self) -> Mended:
        """The case where the papers' noise misses its claim most."""
        return max(self.mended, key=lambda one: one.true)

    def claims(self) -> tuple[Claim, ...]:
        first, last, growth, ratio = self.sums[0], self.sums[-1], self.growth, self.worst.true / MENDED_AT[1]
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
                f"formula; exact Gaussian noise in the same place has {self.replaced:.2f} times less",
                _judge_formula(self.leak, self.replaced),
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
        least = min(self.sums + self.filters, key=lambda one: one.better)
        reached = f"{least.better:.2f} ({least.name}, {least.n:,} values)"
        text = f"papers/ours at least {BETTER:g} at ({EPSILON:g}, {DELTA:g}), everywhere"
        return (Goal(text, reached, least.better >= BETTER),)

    def measures(self) -> tuple[Measure, ...]:
        common = [one for one in self.sums if one.n <= COMMON]
        measures = [Measure(f"running sums of {one.n}, live", float(one.live or 0.0)) for one in common]
        measures += [Measure(f"running sums of {one.n}, at once", one.whole) for one in common]
        measures += [Measure(f"{one.name}, papers/ours", one.better) for one in self.filters]
        for one in self.filters:
            seen, name = one.whole_seen, f"{one.name}, measured over expected"
            measures.append(Measure(name, seen.value / one.whole, seen.error / one.whole))
        measures += [Measure(f"{one.name}, {one.n}: true delta", one.true) for one in self.mended]
        return (*measures, Measure("detected, as printed", self.leak.printed, slack=0.01, share=True))

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


def _judge_constant(sums: Sequence[Errors], growth: Growth) -> Agreement:
    """Whether an error stays level; it must follow the other law closely to be called wrong."""
    if sums[-1].papers <= LEVEL * sums[0].papers:
        return Agreement.AGREES
    return Agreement.WRONG if growth.misses < STRAIGHT and growth.slope > 0 else Agreement.UNDECIDED


def _judge_formula(found: Leak, better: float) -> Agreement:
    if abs(found.mse.value - found.formula) > 5 * found.mse.error:
        return Agreement.WRONG
    return Agreement.LOOSER if better > LEVEL else Agreement.AGREES


def _exceeds(found: Leak) -> bool:
    """Whether the attacker exceeds the claim by more than chance explains (five standard errors)."""
    spread = math.sqrt(found.allowed * (1 - found.allowed) / found.runs)
    return found.printed > found.allowed + 5 * spread


def _draw_sums(axes: Any, sums: Sequence[Errors]) -> None:
    n = [one.n for one in sums]
    axes.plot(n, [math.sqrt(one.papers) for one in sums], "s-", color=SERIES[1], label="papers' formula")
    for color, marker, name, aside, expected, seen in (
        (SERIES[0], "o", "ours, at once", 0.95, [one.whole for one in sums], [one.whole_seen for one in sums]),
        (SERIES[2], "D", "ours, live", 1.05, [one.live or 0 for one in sums], [one.live_seen for one in sums]),
    ):
        axes.plot(n, np.sqrt(expected), color=color)
        means = [one or Mean(0.0, 0.0) for one in seen]
        roots, bars = zip(*((math.sqrt(one.value), one.error / math.sqrt(one.value)) for one in means), strict=True)
        axes.errorbar([aside * one for one in n], roots, yerr=bars, fmt=marker, color=color, label=name)
    axes.axhline(math.sqrt(sums[0].papers), color=SERIES[1], linewidth=1, linestyle="--", label="O(1), as printed")
    scaled = sums[0].best / sums[0].shape
    axes.plot(n, [math.sqrt(scaled * one.shape) for one in sums], ":", color=FAINT, label="specLB, scaled")
    log_x(axes, n)
    axes.set_ylim(0)
    axes.set(title=f"Running sums at ({EPSILON:g}, {DELTA:g})", xlabel="N, values in the series (logarithmic)")
    axes.set_ylabel("root of the mean squared error")
    axes.grid()


def _draw_filters(axes: Any, filters: Sequence[Errors]) -> None:
    scaled = filters[0].best / filters[0].shape
    for row, one in enumerate(filters):
        axes.plot(math.sqrt(one.papers), row, "s", color=SERIES[1])
        root, bar = math.sqrt(one.whole_seen.value), one.whole_seen.error / math.sqrt(one.whole_seen.value)
        axes.errorbar(root, row - 0.1, xerr=bar, fmt="o", color=SERIES[0])
        if one.live is not None:
            axes.plot(math.sqrt(one.live), row + 0.15, "D", color=SERIES[2], markersize=5)
        axes.plot(math.sqrt(scaled * one.shape), row, "|", color=FAINT, markersize=12)
        axes.text(math.sqrt(one.papers) * 1.12, row, f"{one.better:.1f} x", va="center", fontsize=9, color=INK)
    axes.set_yticks(range(len(filters)), [one.name for one in filters])
    axes.invert_yaxis()
    log_x(axes, (0.1, 0.3, 1, 3, 10, 30))
    axes.margins(x=0.15)
    axes.set_title(f"Filters of {filters[0].n:,} values (numbers: papers/ours, squared errors)")
    axes.set_xlabel("root of the mean squared error")
    axes.grid(axis="x")


def _work(run: Run) -> Convolutions:
    lengths = run.choose((64, 256, 1024, 4096, 16384), (64, 256, 1024), (64, 256))
    trials = run.choose(TRIALS, QUICK_TRIALS, 3)
    counts, runs = run.choose((256, 400), (64, 100), (64, 100))
    jobs: list[tuple[Filter, int]] = [(RunningSum(), n) for n in lengths]
    jobs += [(one, run.choose(COMMON, COMMON, 128)) for one in FILTERS]
    each = enumerate(run.each(jobs, after=2))
    found = [errors(filter_, n, trials, (run.seed, number)) for number, (filter_, n) in each]
    leaked = leak(counts, runs, EPSILON, DELTA, stream(run.seed, len(jobs)))
    mended = [
        Mended(filter_.name, n, MENDED_AT[1], repaired_delta(filter_, n, *MENDED_AT, circular=circular))
        for filter_, circular in MENDED
        for n in run.choose(MENDED_LENGTHS, MENDED_LENGTHS, (64,))
    ]
    tried = tuple(AtClaim(epsilon, delta, gain_at(epsilon, delta)) for epsilon, delta in CLAIMS)
    run.progress(1, 1)
    sums, filters = tuple(found[: len(lengths)]), tuple(found[len(lengths) :])
    return Convolutions(sums, filters, tried, leaked, tuple(mended))


EXPERIMENT = Experiment(
    "convolution",
    "The cost of private running sums and filters, against the papers' formula",
    Convolutions,
    _work,
    shows=f"{PAPER}, Theorem 5; {PAPER}, section 5.1 (running sums); {PAPER}, section 5.2 (linear filters)",
    minutes=0.5,
)
