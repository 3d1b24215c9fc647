"""How the sensitivity of the line grows with sensors, places and time, against the printed rate."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork.physics import HeatLine
from cloakwork.privacy import sensitivity
from papers.drawing import FAINT, INK, SERIES, log_x
from papers.experiment import Experiment, Run, pick
from papers.result import Agreement, Claim, Finding, Measure
from papers.statistics import Slope, fit_slope

M, T = 500, 0.05  # of the caption: m = 500 and t = 0.1, with a diffusion constant of 1/2
EARLY, LATE = 0.01, 2.0  # below and above which the exponent of T is fitted
EARLY_CONSTANT = (2 * math.pi) ** 0.25 / (4 * math.sqrt(math.pi))  # before the heat reaches an end of the line
LATE_CONSTANT = 1 / (4 * math.sqrt(3 * math.pi))  # after it has filled the line
ALLOWED = 0.05  # by how much an exponent over a finite range may miss its limit


class Axis(StrEnum):
    """The variable of a panel."""

    SENSORS = "m"
    PLACES = "n"
    TIME = "T"

    @property
    def claimed(self) -> float:
        """Its exponent in sqrt(m) / (n T^1.5)."""
        return {Axis.SENSORS: 0.5, Axis.PLACES: -1.0, Axis.TIME: -1.5}[self]

    @property
    def places(self) -> int:
        """The number of places in its panel; 0 where that varies."""
        return {Axis.SENSORS: 500, Axis.PLACES: 0, Axis.TIME: 1000}[self]


@dataclass(frozen=True)
class Point:
    """The sensitivity to a move to the next place (alpha = 1/n), at one value of the variable."""

    x: float
    delta: float


@dataclass(frozen=True)
class Sweep:
    """One panel: the sensitivity against one variable."""

    axis: Axis
    points: tuple[Point, ...]

    def slope(self, low: float = 0.0, high: float = math.inf) -> Slope:
        kept = [point for point in self.points if low <= point.x <= high]
        return fit_slope([point.x for point in kept], [point.delta for point in kept])

    def over_rate(self, point: Point) -> float:
        """The sensitivity over sqrt(m) / (n T^1.5)."""
        values = {"m": float(M), "n": float(self.axis.places), "T": T} | {self.axis.value: point.x}
        return point.delta * values["n"] * math.pow(values["T"], 1.5) / math.sqrt(values["m"])


@dataclass(frozen=True)
class Sensitivities(Finding):
    """The three panels of the papers' figure."""

    size: ClassVar[tuple[float, float]] = (11.0, 4.0)
    sweeps: tuple[Sweep, ...]

    def of(self, axis: Axis) -> Sweep:
        return pick(self.sweeps, axis=axis)

    @property
    def early(self) -> Slope:
        """The exponent of T before the heat reaches an end of the line."""
        return self.of(Axis.TIME).slope(high=EARLY)

    @property
    def late(self) -> Slope:
        """The exponent of T after the heat has filled the line."""
        return self.of(Axis.TIME).slope(low=LATE)

    @property
    def ratios(self) -> tuple[float, ...]:
        time = self.of(Axis.TIME)
        return tuple(time.over_rate(point) for point in time.points)

    @property
    def constant(self) -> float:
        """The mean of Delta n T^0.75 / sqrt(m) at early times."""
        early = [point.delta * point.x**0.75 for point in self.of(Axis.TIME).points if point.x <= EARLY]
        return float(np.mean(early)) * Axis.TIME.places / math.sqrt(M)

    @property
    def valid_until(self) -> float:
        """The largest T up to which Delta = 0.2233 sqrt(m) T^-0.75 / n is accurate within 3 %."""
        valid = 0.0
        for point in self.of(Axis.TIME).points:
            law = EARLY_CONSTANT * math.sqrt(M) * point.x**-0.75 / Axis.TIME.places
            if abs(point.delta / law - 1) > 0.03:
                break
            valid = point.x
        return valid

    def claims(self) -> tuple[Claim, ...]:
        bound = Claim(
            "Delta = O(sqrt(m) / (n T^1.5))",
            "Gilbert and McMillan, Proposition 13 (alpha = 1/n)",
            f"Delta over the rate is at most {max(self.ratios):.4f}, and {min(self.ratios):.1e} at small T",
            _judge_bound(self.ratios),
        )
        slopes = (
            (Axis.SENSORS, "a", self.of(Axis.SENSORS).slope(), ""),
            (Axis.PLACES, "b", self.of(Axis.PLACES).slope(), ""),
            (Axis.TIME, "c", self.early, f", for T up to {EARLY:g}; {self.late} from {LATE:g}"),
        )
        tight = [
            Claim(
                f"the rate is tight in {axis}",
                f"Gilbert and McMillan, Figure 2{panel}",
                f"fitted exponent {slope}, printed {axis.claimed:+g}{note}",
                Agreement.AGREES if slope.near(axis.claimed, allowed=ALLOWED) else Agreement.WRONG,
            )
            for axis, panel, slope, note in slopes
        ]
        return (bound, *tight)

    def measures(self) -> tuple[Measure, ...]:
        return (
            Measure("exponent of m", self.of(Axis.SENSORS).slope().value, slack=0.005),
            Measure("exponent of n", self.of(Axis.PLACES).slope().value, slack=0.005),
            Measure("exponent of T, early", self.early.value, slack=0.005),
            Measure("exponent of T, late", self.late.value, slack=0.03),
            Measure("constant, early", self.constant, slack=1e-4),
        )

    def text(self) -> str:
        return (
            "Each panel divides the sensitivity by the printed rate in its variable, so a tight rate gives a level "
            f"line. In T it is tight only from T = {LATE:g} on, after the heat has filled the line. Up to T = "
            f"{EARLY:g}, Delta = {self.constant:.4f} sqrt(m) T^-0.75 / n, within 3 % up to T = {self.valid_until:.2g}. "
            "Noise calibrated by the printed rate, with the constant that it needs at late times, is "
            f"{LATE_CONSTANT / self.ratios[0]:.3g} times what is needed at T = {self.of(Axis.TIME).points[0].x:g}. "
            "Cloakwork computes Delta from the matrix and never from a rate."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        looks = (
            ("a  number of sensors", "m", r"$\Delta_2(A)\,/\,\sqrt{m}$", (10, 100, 1000)),
            ("b  number of places", "n", r"$n\,\Delta_2(A)$", (50, 200, 1000)),
            ("c  time", r"$T = \mu t$", r"$T^{1.5}\,\Delta_2(A)$", (1e-4, 1e-3, 0.01, 0.1, 1, 10)),
        )
        for axes, sweep, (title, across, up, ticks) in zip(panels, self.sweeps, looks, strict=True):
            scaled = [point.delta / point.x**sweep.axis.claimed for point in sweep.points]
            x = [point.x for point in sweep.points]
            axes.plot(x, scaled, "o", color=SERIES[0], markersize=4, label="computed from the matrix")
            axes.grid()
            log_x(axes, ticks)
            axes.set(title=title, xlabel=across, ylabel=up)
        for axes, axis in zip(panels[:2], (Axis.SENSORS, Axis.PLACES), strict=True):
            axes.set_ylim(0, 1.4 * axes.get_ylim()[1])
            text = f"exponent {self.of(axis).slope()}\nprinted {axis.claimed:+g}"
            axes.text(0.05, 0.05, text, transform=axes.transAxes, fontsize=9, color=INK)
        _draw_guides(panels[2])


def _draw_guides(axes: Any) -> None:
    """Draw the laws of early and late times, and mark the time of the other panels."""
    at = np.geomspace(1e-4, 10.0, 50)
    factor = math.sqrt(M) / Axis.TIME.places
    axes.plot(at, EARLY_CONSTANT * factor * at**0.75, color=SERIES[1], label=r"early: exponent $-3/4$")
    axes.axhline(LATE_CONSTANT * factor, color=SERIES[2], linestyle="--", label=r"the printed $-3/2$, late")
    axes.axvline(T, color=FAINT, linewidth=1)
    axes.text(T * 0.85, 3.5e-3, "T of a and b", color=INK, fontsize=8, ha="right")
    axes.set_yscale("log")
    axes.set_ylim(3e-6, 6e-3)
    axes.legend(loc="lower right", fontsize=8, frameon=True, facecolor="white", edgecolor="none", framealpha=1.0)


def _judge_bound(ratios: tuple[float, ...]) -> Agreement:
    """A rate is a bound if its ratio stays below its limit, and a good one if the ratio does not fall far below."""
    if max(ratios) > 1.05 * LATE_CONSTANT:
        return Agreement.WRONG
    return Agreement.LOOSER if max(ratios) > 3 * min(ratios) else Agreement.AGREES


def _values(axis: Axis, run: Run) -> list[float]:
    """Where the sensitivity is computed."""
    if axis is Axis.TIME:
        return [float(x) for x in np.geomspace(1e-4, 10.0, run.choose(41, 11, 6))]
    low, high = (10, 1000) if axis is Axis.SENSORS else (50, 2000)
    return [float(round(x)) for x in np.geomspace(low, high, run.choose(20, 5, 3))]


def _delta(axis: Axis, x: float) -> float:
    n = axis.places or round(x)
    line = HeatLine(n=n, m=round(x) if axis is Axis.SENSORS else M, T=x if axis is Axis.TIME else T)
    return sensitivity(line, alpha=1 / n)


def _work(run: Run) -> Sensitivities:
    points = {axis: tuple(Point(x, _delta(axis, x)) for x in _values(axis, run)) for axis in run.each(Axis)}
    return Sensitivities(tuple(Sweep(axis, found) for axis, found in points.items()))


EXPERIMENT = Experiment(
    "sensitivity",
    "How far a move shifts the readings of the line, against the printed rate",
    Sensitivities,
    _work,
    shows="Gilbert and McMillan, Figure 2a-c; Gilbert and McMillan, first version, Figure 4a-c; McMillan, Figure 8.2",
    minutes=0.1,
)
