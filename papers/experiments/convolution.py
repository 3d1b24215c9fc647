"""Private convolution: the error of running sums and filters, against the papers' formula and shape."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork.series import (
    Decay,
    Filter,
    MovingAverage,
    PowerDecay,
    RunningSum,
    Seasonal,
    Trend,
    WindowSum,
)
from papers.experiment import Experiment, Progress, stream
from papers.printed_fourier import Leak, leak, mended_delta
from papers.result import Agreement, Claim, Finding, Goal, Measure, Table
from papers.series_errors import DELTA, EPSILON, Errors, at_claim, errors
from papers.style import FAINT, INK, SERIES, legend_below, log_scale
from papers.trials import Mean

LENGTHS, QUICK_LENGTHS = (64, 256, 1024, 4096, 16384), (64, 256, 1024)
COMMON = 1024  # up to which every run goes, and the length that filters are compared at
TRIALS, QUICK_TRIALS = 400, 240
LEAK, QUICK_LEAK = (256, 400), (64, 100)  # counts, runs
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
MENDED = ((RunningSum(), False), (PowerDecay(1.0), True))  # where the papers' budget is worked out, and if on a circle
MENDED_AT, MENDED_LENGTHS = (10.0, 0.01), (64, 256)
STRAIGHT = 0.01  # what a line misses by less is straight
LEVEL = 1.1  # what grows by less over the whole range does not grow
BETTER = 3.0


@dataclass(frozen=True)
class AtClaim:
    """How many times less our noise is than the papers' at one claim, in mean squared error."""

    epsilon: float
    delta: float
    better: float


@dataclass(frozen=True)
class Mended:
    """The delta that the papers' noise really has on real coefficients, where it claims another."""

    name: str
    n: int
    claimed: float
    true: float


@dataclass(frozen=True)
class Growth:
    """The root of the error as first + slope ln N, and by how much the line misses at the most, relatively."""

    first: float
    slope: float
    misses: float


@dataclass(frozen=True)
class Convolutions(Finding):
    """Errors of running sums of growing length and of filters of one length; what the papers' noise gives away."""

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
        """How many times less the error of running sums is with exact Gaussian noise in the place of the papers'."""
        return self.filters[0].papers / self.filters[0].whole

    @property
    def unit(self) -> float:
        """The root of the papers' error where the mean size of the coefficients of h is 1."""
        return math.sqrt(4 * math.log(1 / DELTA)) / EPSILON

    def tables(self) -> tuple[Table, ...]:
        names = ("papers' formula", "at once", "measured", "as it arrives", "measured", "papers/ours")
        claim = f"({EPSILON:g}, {DELTA:g})"
        sums = Table(
            f"Running sums: mean squared error at {claim}",
            ("N", *names),
            tuple((f"{one.n:,}", *_row(one)) for one in self.sums),
        )
        filters = Table(
            f"Filters of {COMMON:,} values: mean squared error at {claim}",
            ("filter", *names, "specLB / running sum's"),
            tuple((one.name, *_row(one), f"{one.shape / self.filters[0].shape:.3g}") for one in self.filters),
        )
        tried = Table(
            "At other claims: papers' mean squared error over that of exact Gaussian noise in the same place",
            ("epsilon, delta", "papers/ours"),
            tuple((f"{one.epsilon:g}, {one.delta:g}", f"{one.better:.2f}") for one in self.claims_tried),
        )
        return (sums, filters, tried, self._leaks(), self._deltas())

    def _leaks(self) -> Table:
        one = self.leak
        return Table(
            f"Who tells from {one.n} running sums whether one event took place, knowing all others",
            ("", "right"),
            (
                (f"as printed, from {one.exact} numbers without noise", f"{100 * one.printed:.1f} %"),
                ("anyone at all, by the claim", f"at most {100 * one.allowed:.1f} %"),
                ("the best test of all, our noise", f"{100 * one.ours:.1f} %"),
            ),
        )

    def _deltas(self) -> Table:
        rows = [
            (f"{one.name}, {one.n}", f"{one.claimed:g}", f"{one.true:.4f}", f"{one.true / one.claimed:.2f}")
            for one in self.mended
        ]
        title = f"The same noise on real coefficients: delta at epsilon {MENDED_AT[0]:g}"
        return Table(title, ("filter, values", "claimed", "true", "ratio"), tuple(rows))

    def claims(self) -> tuple[Claim, ...]:
        source = "Fawaz, Muthukrishnan and Nikolov"
        first, last, growth, worst = self.sums[0], self.sums[-1], self.growth, max(one.true for one in self.mended)
        return (
            Claim(
                "running sums have a mean squared error of O(1)",
                f"{source}, section 5.1",
                f"it grows {last.papers / first.papers:.2f} times from N = {first.n} to {last.n:,}, like "
                f"({growth.first:.1f} + {growth.slope:.2f} ln N)^2 off by {100 * growth.misses:.1g} % at the most",
                _constant(self.sums, growth),
            ),
            Claim(
                "the mean squared error is 4 ln(1/delta) ||h^||_1^2 / (epsilon^2 N)",
                f"{source}, Theorem 5",
                f"{self.leak.mse.value:.0f} ± {self.leak.mse.error:.0f} measured, {self.leak.formula:.0f} by the "
                f"formula; exact Gaussian noise in the same place has {self.replaced:.2f} times less",
                _formula(self.leak, self.replaced),
            ),
            Claim(
                "Algorithm 1 is (epsilon, delta)-private",
                f"{source}, Theorem 5",
                f"whether an event took place is told rightly in {100 * self.leak.printed:.1f} % of {self.leak.runs} "
                f"runs; the claim allows {100 * self.leak.allowed:.1f} %",
                Agreement.WRONG if _told(self.leak) else Agreement.UNDECIDED,
            ),
            Claim(
                "Laplace noise of that size is private, were it on real coefficients",
                f"{source}, Theorem 5 mended",
                f"delta is up to {worst / MENDED_AT[1]:.2f} times the claim at ({MENDED_AT[0]:g}, {MENDED_AT[1]:g})",
                Agreement.WRONG if worst > 1.02 * MENDED_AT[1] else Agreement.UNDECIDED,
            ),
        )

    def goals(self) -> tuple[Goal, ...]:
        least = min(self.sums + self.filters, key=lambda one: one.better)
        said = f"{least.better:.2f} ({least.name}, {least.n:,} values)"
        return (
            Goal(
                f"papers/ours at least {BETTER:g} at ({EPSILON:g}, {DELTA:g}), everywhere", said, least.better >= BETTER
            ),
        )

    def measures(self) -> tuple[Measure, ...]:
        common = [one for one in self.sums if one.n <= COMMON]
        found = [Measure(f"running sums of {one.n}, as they arrive", float(one.live or 0.0)) for one in common]
        found += [Measure(f"running sums of {one.n}, at once", one.whole) for one in common]
        found += [Measure(f"{one.name}, papers/ours", one.better) for one in self.filters]
        for one in self.filters:
            seen = one.whole_seen
            found.append(Measure(f"{one.name}, measured over expected", seen.value / one.whole, seen.error / one.whole))
        found += [Measure(f"{one.name}, {one.n}: true delta", one.true) for one in self.mended]
        return (*found, Measure("told rightly, as printed", self.leak.printed, slack=0.01, share=True))

    def words(self) -> tuple[str, ...]:
        first, last, growth = self.sums[0], self.sums[-1], self.growth
        worst = max(self.mended, key=lambda one: one.true)
        return (
            f"On the left the root of the mean squared error of running sums, against the logarithm of their length: "
            f"what is O(1) is level, what grows like log^2 N is a straight line. {_shape(growth)} From N = "
            f"{first.n} to {last.n:,} the papers' mean squared error grows {last.papers / first.papers:.1f} times, and "
            f"its root by {growth.slope / self.unit:.3f} of the noise unit for each factor e in N; 1/pi = "
            f"{1 / math.pi:.3f} is what the spectrum of a step gives.",
            f"Ours has {min(one.better for one in self.filters):.2f} to "
            f"{max(one.better for one in self.filters):.2f} times less mean squared error at "
            f"({EPSILON:g}, {DELTA:g}) for the filters on the right. {_arriving(last)} Dots with bars were measured. "
            "The faint line is the papers' spectral shape, scaled to meet ours at its first point: its constant is "
            "unknown, and it bounds nothing that is drawn.",
            f"The algorithm as printed adds real noise to complex coefficients, so that of {self.leak.n} running sums "
            f"{self.leak.exact} numbers go out exactly: whether an event took place is told rightly "
            f"{100 * self.leak.printed:.1f} % of the time, where the claim allows {100 * self.leak.allowed:.1f} %. On "
            f"real coefficients the same noise has, at ({MENDED_AT[0]:g}, {MENDED_AT[1]:g}), a delta that is "
            f"{worst.true / worst.claimed:.2f} times the claim for {worst.name} over {worst.n} values.",
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.1))
        _draw_sums(left, self.sums)
        _draw_filters(right, self.filters)
        legend_below(figure, left)


def _row(one: Errors) -> tuple[str, ...]:
    live = "-" if one.live is None else f"{one.live:.4g}"
    return (
        f"{one.papers:.4g}",
        f"{one.whole:.4g}",
        _text(one.whole_seen),
        live,
        _text(one.live_seen),
        f"{one.better:.2f}",
    )


def _shape(growth: Growth) -> str:
    straight = growth.misses < STRAIGHT
    return f"It is {'' if straight else 'not '}straight: the best line misses it by {100 * growth.misses:.1g} %."


def _arriving(one: Errors) -> str:
    """What it costs to publish running sums as data arrives."""
    live = one.live or 0.0
    cost = "costs nothing here" if live <= one.whole else f"costs {100 * (live / one.whole - 1):.0f} % here"
    return (
        f"Publishing as data arrives {cost}: running sums of {one.n:,} have {live:.0f} as they arrive and "
        f"{one.whole:.0f} at once."
    )


def _text(seen: Mean | None) -> str:
    return "-" if seen is None else f"{seen.value:.3g} ± {seen.error:.2g}"


def _constant(sums: Sequence[Errors], growth: Growth) -> Agreement:
    """Whether an error stays level; it must follow the other law closely to be called wrong."""
    if sums[-1].papers <= LEVEL * sums[0].papers:
        return Agreement.AGREES
    return Agreement.WRONG if growth.misses < STRAIGHT and growth.slope > 0 else Agreement.UNDECIDED


def _formula(found: Leak, better: float) -> Agreement:
    if abs(found.mse.value - found.formula) > 5 * found.mse.error:
        return Agreement.WRONG
    return Agreement.LOOSER if better > LEVEL else Agreement.AGREES


def _told(found: Leak) -> bool:
    """Whether more is told than a claim allows, by more than chance explains (five standard errors)."""
    spread = math.sqrt(found.allowed * (1 - found.allowed) / found.runs)
    return found.printed > found.allowed + 5 * spread


def _draw_sums(axes: Any, sums: Sequence[Errors]) -> None:
    n = [one.n for one in sums]
    axes.plot(n, [math.sqrt(one.papers) for one in sums], "s-", color=SERIES[1], label="papers' formula")
    for color, marker, name, aside, expected, seen in (
        (SERIES[0], "o", "ours, at once", 0.95, [one.whole for one in sums], [one.whole_seen for one in sums]),
        (SERIES[2], "D", "ours, as it arrives", 1.05, [one.live or 0 for one in sums], [one.live_seen for one in sums]),
    ):
        axes.plot(n, np.sqrt(expected), color=color)
        means = [one or Mean(0.0, 0.0) for one in seen]
        bars = [one.error / math.sqrt(one.value) for one in means]
        beside, roots = [aside * one for one in n], [math.sqrt(one.value) for one in means]
        axes.errorbar(beside, roots, yerr=bars, fmt=marker, color=color, label=name)
    axes.axhline(math.sqrt(sums[0].papers), color=SERIES[1], linewidth=1, linestyle="--", label="O(1), as they say")
    scaled = sums[0].best / sums[0].shape
    axes.plot(n, [math.sqrt(scaled * one.shape) for one in sums], ":", color=FAINT, label="specLB, scaled: a shape")
    log_scale(axes, n)
    axes.set_ylim(0)
    axes.set_title(f"Running sums at ({EPSILON:g}, {DELTA:g})")
    axes.set_xlabel("N, values in the series (logarithmic)")
    axes.set_ylabel("root of the mean squared error")
    axes.grid()


def _draw_filters(axes: Any, filters: Sequence[Errors]) -> None:
    scaled = filters[0].best / filters[0].shape
    for row, one in enumerate(filters):
        axes.plot(math.sqrt(one.papers), row, "s", color=SERIES[1])
        seen = one.whole_seen
        axes.errorbar(
            math.sqrt(seen.value), row - 0.1, xerr=seen.error / math.sqrt(seen.value), fmt="o", color=SERIES[0]
        )
        if one.live is not None:
            axes.plot(math.sqrt(one.live), row + 0.15, "D", color=SERIES[2], markersize=5)
        axes.plot(math.sqrt(scaled * one.shape), row, "|", color=FAINT, markersize=12)
        axes.text(math.sqrt(one.papers) * 1.12, row, f"{one.better:.1f} x", va="center", fontsize=9, color=INK)
    axes.set_yticks(range(len(filters)), [one.name for one in filters])
    axes.invert_yaxis()
    log_scale(axes, (0.1, 0.3, 1, 3, 10, 30))
    axes.margins(x=0.15)
    axes.set_title(f"Filters of {filters[0].n:,} values (3 x: a third of their mean squared error)")
    axes.set_xlabel("root of the mean squared error")
    axes.grid(axis="x")


def _work(*, quick: bool, seed: int, progress: Progress) -> Convolutions:
    lengths, trials = (QUICK_LENGTHS, QUICK_TRIALS) if quick else (LENGTHS, TRIALS)
    jobs: list[tuple[Filter, int]] = [(RunningSum(), n) for n in lengths] + [(one, COMMON) for one in FILTERS]
    total = len(jobs) + 2
    found = []
    for number, (filter_, n) in enumerate(jobs):
        progress(number, total)
        found.append(errors(filter_, n, trials, (seed, number)))
    progress(len(jobs), total)
    runs = leak(*(QUICK_LEAK if quick else LEAK), EPSILON, DELTA, stream(seed, len(jobs)))
    mended = [
        Mended(filter_.name, n, MENDED_AT[1], mended_delta(filter_, n, *MENDED_AT, circular=circular))
        for filter_, circular in MENDED
        for n in MENDED_LENGTHS
    ]
    progress(total, total)
    tried = tuple(AtClaim(epsilon, delta, at_claim(epsilon, delta)) for epsilon, delta in CLAIMS)
    sums = tuple(found[: len(lengths)])
    return Convolutions(sums, tuple(found[len(lengths) :]), tried, runs, tuple(mended))


EXPERIMENT = Experiment(
    "convolution",
    "What private running sums and filters cost, against the papers' formula",
    Convolutions,
    _work,
    shows=(
        "Fawaz, Muthukrishnan and Nikolov, Theorem 5",
        "Fawaz, Muthukrishnan and Nikolov, section 5.1 (running sums)",
        "Fawaz, Muthukrishnan and Nikolov, section 5.2 (linear filters)",
    ),
    minutes=0.5,
)
