"""How the sensitivity of the line grows with sensors, places and time, against the printed rate."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork.physics import HeatLine
from cloakwork.privacy import sensitivity
from papers.experiment import Experiment, Progress
from papers.result import Agreement, Claim, Finding, Measure, Table
from papers.slopes import Slope, fitted
from papers.style import FAINT, INK, SERIES, log_scale

M, T = 500, 0.05  # of the caption: m = 500 and t = 0.1, with a diffusion constant of 1/2
EARLY, LATE = 0.01, 2.0  # below and above which the slope in T is fitted
EARLY_CONSTANT = (2 * math.pi) ** 0.25 / (4 * math.sqrt(math.pi))  # the heat has met no end of the line yet
LATE_CONSTANT = 1 / (4 * math.sqrt(3 * math.pi))  # it has filled the line
ALLOWED = 0.05  # by how much a slope over a finite range may miss its limit


class Axis(StrEnum):
    """What is varied."""

    SENSORS = "m"
    PLACES = "n"
    TIME = "T"

    @property
    def panel(self) -> str:
        """The letter of its panel in the papers."""
        return {Axis.SENSORS: "a", Axis.PLACES: "b", Axis.TIME: "c"}[self]

    @property
    def claimed(self) -> float:
        """Its exponent in sqrt(m) / (n T^1.5)."""
        return {Axis.SENSORS: 0.5, Axis.PLACES: -1.0, Axis.TIME: -1.5}[self]

    @property
    def places(self) -> int | None:
        """Number of places in this panel, where it is not what is varied."""
        return {Axis.SENSORS: 500, Axis.PLACES: None, Axis.TIME: 1000}[self]

    def values(self, *, quick: bool) -> tuple[float, ...]:
        """Where it is measured."""
        if self is Axis.TIME:
            return tuple(np.geomspace(1e-4, 10.0, 11 if quick else 41).tolist())
        low, high, count = (10, 1000, 5) if self is Axis.SENSORS else (50, 2000, 5)
        spread = np.geomspace(low, high, count if quick else 4 * count)
        return tuple(float(round(value)) for value in spread)


@dataclass(frozen=True)
class Point:
    """A sensitivity, where a source moves to the next place (alpha = 1/n), and what it was measured at."""

    x: float
    delta: float


@dataclass(frozen=True)
class Sweep:
    """One panel: the sensitivity against one variable."""

    axis: Axis
    points: tuple[Point, ...]

    def slope(self, low: float = 0.0, high: float = math.inf) -> Slope:
        """Its exponent between two values of the variable."""
        kept = [point for point in self.points if low <= point.x <= high]
        return fitted([point.x for point in kept], [point.delta for point in kept])

    def scaled(self) -> tuple[float, ...]:
        """The sensitivity over the rate in this variable alone, which is level where the rate is tight."""
        return tuple(point.delta / point.x**self.axis.claimed for point in self.points)

    def over_rate(self) -> tuple[float, ...]:
        """The sensitivity over sqrt(m) / (n T^1.5)."""
        fixed = {"m": float(M), "n": float(self.axis.places or 0), "T": T}
        return tuple(point.delta / _rate(**(fixed | {self.axis.value: point.x})) for point in self.points)


def _rate(*, m: float, n: float, T: float) -> float:
    return math.sqrt(m) / (n * math.pow(T, 1.5))


@dataclass(frozen=True)
class Sensitivities(Finding):
    """The three panels of the papers' figure."""

    size: ClassVar[tuple[float, float]] = (11.0, 4.0)
    sweeps: tuple[Sweep, ...]

    def of(self, axis: Axis) -> Sweep:
        """One panel."""
        return next(sweep for sweep in self.sweeps if sweep.axis is axis)

    @property
    def early(self) -> Slope:
        """The exponent of T while no heat has reached an end of the line."""
        return self.of(Axis.TIME).slope(high=EARLY)

    @property
    def late(self) -> Slope:
        """The exponent of T once the heat has filled the line."""
        return self.of(Axis.TIME).slope(low=LATE)

    @property
    def constant(self) -> float:
        """The mean of Delta n T^0.75 / sqrt(m) at early times."""
        time = self.of(Axis.TIME)
        early = [p.delta * p.x**0.75 for p in time.points if p.x <= EARLY]
        return float(np.mean(early)) * (time.axis.places or 0) / math.sqrt(M)

    @property
    def holds_until(self) -> float:
        """The largest T up to which Delta = 0.2233 sqrt(m) T^-0.75 / n is right within 3 %."""
        time = self.of(Axis.TIME)
        good = 0.0
        for point in time.points:
            law = EARLY_CONSTANT * math.sqrt(M) * point.x**-0.75 / (time.axis.places or 1)
            if abs(point.delta / law - 1) > 0.03:
                break
            good = point.x
        return good

    @property
    def wasted(self) -> float:
        """How many times too much noise the rate asks for at the smallest T, with the constant that it needs late."""
        return LATE_CONSTANT / self.of(Axis.TIME).over_rate()[0]

    def tables(self) -> tuple[Table, ...]:
        rows = [
            ("m, number of sensors", "+0.5", str(self.of(Axis.SENSORS).slope())),
            ("n, number of places", "-1", str(self.of(Axis.PLACES).slope())),
            (f"T up to {EARLY:g}", "-1.5", str(self.early)),
            (f"T from {LATE:g}", "-1.5", str(self.late)),
        ]
        slopes = Table("Exponents of the sensitivity, alpha = 1/n", ("in", "printed", "fitted"), tuple(rows))
        time = self.of(Axis.TIME)
        chosen = time.points[:: max(1, len(time.points) // 10)]
        ratios = dict(zip((point.x for point in time.points), time.over_rate(), strict=True))
        late = [
            (f"{p.x:.4g}", f"{p.delta:.4g}", f"{ratios[p.x]:.4f}", f"{LATE_CONSTANT / ratios[p.x]:.1f}") for p in chosen
        ]
        columns = ("T", "Delta", "over sqrt(m)/(n T^1.5)", "noise too large by")
        title = f"Time, n = {time.axis.places}, m = {M}: if the rate were used to calibrate"
        return (slopes, Table(title, columns, tuple(late)))

    def claims(self) -> tuple[Claim, ...]:
        ratios = self.of(Axis.TIME).over_rate()
        bound = Claim(
            "Delta = O(sqrt(m) / (n T^1.5))",
            "Gilbert and McMillan, Proposition 13 (alpha = 1/n)",
            f"Delta over the rate is at most {max(ratios):.4f}, and as little as {min(ratios):.1e} at small T",
            _bound(ratios),
        )
        tight = [
            Claim(
                f"the rate is tight in {axis}",
                f"Gilbert and McMillan, Figure 2{axis.panel}",
                f"fitted exponent {slope}, printed {axis.claimed:+g}{note}",
                _tight(slope, axis.claimed),
            )
            for axis, slope, note in (
                (Axis.SENSORS, self.of(Axis.SENSORS).slope(), ""),
                (Axis.PLACES, self.of(Axis.PLACES).slope(), ""),
                (Axis.TIME, self.early, f", for T up to {EARLY:g}; {self.late} from {LATE:g}"),
            )
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

    def words(self) -> tuple[str, ...]:
        sensors, places = self.of(Axis.SENSORS).slope(), self.of(Axis.PLACES).slope()
        return (
            "Each panel divides the sensitivity by the printed rate in the variable that it shows, so a tight rate is "
            f"a level line. In m it is {_level(sensors, Axis.SENSORS)} (fitted exponent {sensors}), in n "
            f"{_level(places, Axis.PLACES)} ({places}).",
            f"In T it is {_level(self.late, Axis.TIME)} from T = {LATE:g} on, once the heat has filled the line "
            f"(exponent {self.late}), and {_level(self.early, Axis.TIME)} up to T = {EARLY:g} ({self.early}): there "
            f"Delta = {self.constant:.4f} sqrt(m) T^-0.75 / n, within 3 % up to T = {self.holds_until:.2g}. Noise that "
            "is calibrated to the printed rate, with the constant that it needs at late times, is "
            f"{self.wasted:.3g} times what is needed at T = {self.of(Axis.TIME).points[0].x:g}. Cloakwork computes "
            "Delta from the matrix and never from a rate.",
        )

    def draw(self, figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        for axes, sweep in zip(panels, self.sweeps, strict=True):
            x = [point.x for point in sweep.points]
            axes.plot(x, sweep.scaled(), "o", color=SERIES[0], markersize=4, label="computed from the matrix")
            axes.grid()
        _dress(panels[0], "a  number of sensors", "m", r"$\Delta_2(A)\,/\,\sqrt{m}$", (10, 100, 1000))
        _dress(panels[1], "b  number of places", "n", r"$n\,\Delta_2(A)$", (50, 200, 1000))
        _dress(panels[2], "c  time", r"$T = \mu t$", r"$T^{1.5}\,\Delta_2(A)$", (1e-4, 1e-3, 0.01, 0.1, 1, 10))
        for axes, axis in zip(panels[:2], (Axis.SENSORS, Axis.PLACES), strict=True):
            axes.set_ylim(0, 1.4 * axes.get_ylim()[1])
            said = f"exponent {self.of(axis).slope()}\nprinted {axis.claimed:+g}"
            axes.text(0.05, 0.05, said, transform=axes.transAxes, fontsize=9, color=INK)
        self._guides(panels[2])

    def _guides(self, axes: Any) -> None:
        """What the sensitivity does early and late, and where the other panels are."""
        at = np.geomspace(1e-4, 10.0, 50)
        factor = math.sqrt(M) / (Axis.TIME.places or 1)
        axes.plot(at, EARLY_CONSTANT * factor * at**0.75, color=SERIES[1], label=r"early: exponent $-3/4$")
        axes.axhline(LATE_CONSTANT * factor, color=SERIES[2], linestyle="--", label=r"the printed $-3/2$, late")
        axes.axvline(T, color=FAINT, linewidth=1)
        axes.text(T * 0.85, 3.5e-3, "a and b are here", color=INK, fontsize=8, ha="right")
        axes.set_yscale("log")
        axes.set_ylim(3e-6, 6e-3)
        axes.legend(loc="lower right", fontsize=8, frameon=True, facecolor="white", edgecolor="none", framealpha=1.0)


def _dress(axes: Any, title: str, across: str, up: str, ticks: tuple[float, ...]) -> None:
    log_scale(axes, ticks)
    axes.set_title(title)
    axes.set_xlabel(across)
    axes.set_ylabel(up)


def _tight(slope: Slope, claimed: float) -> Agreement:
    return Agreement.AGREES if slope.near(claimed, allowed=ALLOWED) else Agreement.WRONG


def _level(slope: Slope, axis: Axis) -> str:
    return "level" if _tight(slope, axis.claimed) is Agreement.AGREES else "not level"


def _bound(ratios: tuple[float, ...]) -> Agreement:
    """A rate is a bound if its ratio stays below its limit, and a good one if it does not fall far below."""
    if max(ratios) > 1.05 * LATE_CONSTANT:
        return Agreement.WRONG
    return Agreement.LOOSER if max(ratios) > 3 * min(ratios) else Agreement.AGREES


def _work(*, quick: bool, seed: int, progress: Progress) -> Sensitivities:
    del seed  # nothing is drawn
    total = sum(len(axis.values(quick=quick)) for axis in Axis)
    sweeps: list[Sweep] = []
    for axis in Axis:
        points = []
        for x in axis.values(quick=quick):
            points.append(Point(x, _delta(axis, x)))
            progress(sum(len(sweep.points) for sweep in sweeps) + len(points), total)
        sweeps.append(Sweep(axis, tuple(points)))
    return Sensitivities(tuple(sweeps))


def _delta(axis: Axis, x: float) -> float:
    n = round(x) if axis.places is None else axis.places
    line = HeatLine(n=n, m=round(x) if axis is Axis.SENSORS else M, T=x if axis is Axis.TIME else T)
    return sensitivity(line, alpha=1 / n)


EXPERIMENT = Experiment(
    "sensitivity",
    "How far a move shifts the readings of the line, against the printed rate",
    Sensitivities,
    _work,
    shows=(
        "Gilbert and McMillan, Figure 2a-c",
        "Gilbert and McMillan, first version, Figure 4a-c",
        "McMillan, Figure 8.2",
    ),
    minutes=0.1,
)
