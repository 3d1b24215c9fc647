"""How the sensitivity of the line grows with sensors, places and time, against the printed rate."""

import math
from enum import StrEnum
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cloakwork.physics import HeatLine
from cloakwork.privacy import sensitivity
from papers.drawing import FAINT, INK, SERIES, curve, finish
from papers.experiment import Experiment, Run
from papers.result import Agreement, Claim, Finding
from papers.rows import Mean, Row, pick
from papers.statistics import fit_slope, near

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


class Sensitivities(Finding):
    """The three panels of the papers' figure: the sensitivity to a move to the next place (alpha = 1/n)."""

    size = (11.0, 4.0)

    def points(self, axis: Axis) -> tuple[Row, ...]:
        points: tuple[Row, ...] = pick(self.sweeps, axis=axis).points
        return points

    def slope(self, axis: Axis, low: float = 0.0, high: float = math.inf) -> Mean:
        kept = [point for point in self.points(axis) if low <= point.x <= high]
        return fit_slope([point.x for point in kept], [point.delta for point in kept])

    @property
    def ratios(self) -> list[float]:
        """The sensitivity over sqrt(m) / (n T^1.5), by time."""
        scale = Axis.TIME.places / math.sqrt(M)
        return [point.delta * scale * math.pow(point.x, 1.5) for point in self.points(Axis.TIME)]

    @property
    def constant(self) -> float:
        """The mean of Delta n T^0.75 / sqrt(m) at early times."""
        early = [point.delta * point.x**0.75 for point in self.points(Axis.TIME) if point.x <= EARLY]
        return float(np.mean(early)) * Axis.TIME.places / math.sqrt(M)

    @property
    def valid_until(self) -> float:
        """The largest T up to which Delta = 0.2233 sqrt(m) T^-0.75 / n is accurate within 3 %."""
        valid = 0.0
        for point in self.points(Axis.TIME):
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
        late = self.slope(Axis.TIME, low=LATE)
        slopes = (
            (Axis.SENSORS, "a", self.slope(Axis.SENSORS), ""),
            (Axis.PLACES, "b", self.slope(Axis.PLACES), ""),
            (Axis.TIME, "c", self.slope(Axis.TIME, high=EARLY), f", for T up to {EARLY:g}; {late:+.2f} from {LATE:g}"),
        )
        tight = [
            Claim(
                f"the rate is tight in {axis}",
                f"Gilbert and McMillan, Figure 2{panel}",
                f"fitted exponent {slope:+.2f}, printed {axis.claimed:+g}{note}",
                Agreement.of(near(slope, axis.claimed, allowed=ALLOWED)),
            )
            for axis, panel, slope, note in slopes
        ]
        return (bound, *tight)

    def text(self) -> str:
        return (
            "Each panel divides the sensitivity by the printed rate in its variable, so a tight rate gives a level "
            f"line. In T it is tight only from T = {LATE:g} on, after the heat has filled the line. Up to T = "
            f"{EARLY:g}, Delta = {self.constant:.4f} sqrt(m) T^-0.75 / n, within 3 % up to T = {self.valid_until:.2g}. "
            "Noise calibrated by the printed rate, with the constant that it needs at late times, is "
            f"{LATE_CONSTANT / self.ratios[0]:.3g} times what is needed at T = {self.points(Axis.TIME)[0].x:g}. "
            "Cloakwork computes Delta from the matrix and never from a rate."
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        looks = (
            ("a  number of sensors", "m", r"$\Delta_2(A)\,/\,\sqrt{m}$", (10, 100, 1000)),
            ("b  number of places", "n", r"$n\,\Delta_2(A)$", (50, 200, 1000)),
            ("c  time", r"$T = \mu t$", r"$T^{1.5}\,\Delta_2(A)$", (1e-4, 1e-3, 0.01, 0.1, 1, 10)),
        )
        for axes, axis, (title, across, up, ticks) in zip(panels, Axis, looks, strict=True):
            points = self.points(axis)
            scaled = [point.delta / point.x**axis.claimed for point in points]
            look: Any = {"linestyle": "", "markersize": 4, "label": "computed from the matrix"}
            curve(axes, [point.x for point in points], scaled, **look)
            finish(axes, title, across, up, ticks=ticks)
        for axes, axis in zip(panels[:2], (Axis.SENSORS, Axis.PLACES), strict=True):
            axes.set_ylim(0, 1.4 * axes.get_ylim()[1])
            text = f"exponent {self.slope(axis):+.2f}\nprinted {axis.claimed:+g}"
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


def _judge_bound(ratios: list[float]) -> Agreement:
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
    return Sensitivities(
        sweeps=tuple(
            Row(axis=axis, points=tuple(Row(x=x, delta=_delta(axis, x)) for x in _values(axis, run))) for axis in Axis
        )
    )


EXPERIMENT = Experiment(
    "sensitivity",
    "How far a move shifts the readings of the line, against the printed rate",
    Sensitivities,
    _work,
    shows="Gilbert and McMillan, Figure 2a-c; Gilbert and McMillan, first version, Figure 4a-c; McMillan, Figure 8.2",
    minutes=0.1,
)
