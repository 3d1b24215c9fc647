"""Sweeps on a line: one quantity varies, all methods see the same random numbers; and how sweeps are drawn."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork._checks import FloatArray
from cloakwork.accuracy import cramer_rao
from cloakwork.physics import HeatLine
from papers.calibration import Calibration
from papers.drawing import FAINT, INK, SERIES, log_axes
from papers.experiment import pick, stream
from papers.le_cam import le_cam
from papers.result import Measure
from papers.statistics import Mean, Slope, fit_slope
from papers.trials import PAPERS_TRIALS, PLACES, Method, Score, Setting, try_method, uniform_errors

LIMIT, PAPERS_LIMIT = "Cramer-Rao bound (unbiased methods)", "Cramer-Rao bound, papers' noise"
FLOOR, GUESS = "lower bound for any method", "uniform map"
RIVALS = (Method.PAPERS, Method.POSTERIOR)
SCENES = 100  # sets of several sources, for their Cramer-Rao bound
COLORS = {Method.PAPERS: SERIES[1], Method.PURSUIT: SERIES[3], Method.POSTERIOR: SERIES[0]}
SHAPES = {Method.PAPERS: "s", Method.PURSUIT: "^", Method.POSTERIOR: "o"}
BAND = f"95 % of means of {PAPERS_TRIALS} trials"
LEGEND = (*Method, BAND, LIMIT, PAPERS_LIMIT, FLOOR, GUESS)
LINES: dict[str, Any] = {
    LIMIT: {"color": INK, "linestyle": "--", "linewidth": 1.2},
    PAPERS_LIMIT: {"color": COLORS[Method.PAPERS], "linestyle": "--", "linewidth": 1.2},
    FLOOR: {"color": INK, "linestyle": ":", "linewidth": 1},
    GUESS: {"color": FAINT, "linewidth": 1},
}


@dataclass(frozen=True)
class Point:
    """One setting: the value of x, the score of each method, and the bounds.

    `limit` is the mean Cramer-Rao bound of unbiased methods, `floor` Le Cam's bound for any method, averaged over the
    places. Both are for the exact noise; None where they do not apply. `papers_limit` is the Cramer-Rao bound for the
    papers' noise, where that differs. `guess` is the mean error of the uniform map, `gain` the papers' error divided by
    ours.
    """

    x: float
    scores: tuple[Score, ...]
    limit: float | None
    floor: float | None
    guess: float
    papers_limit: float | None = None
    gain: Mean | None = None

    def of(self, method: Method) -> Score:
        """The score of one method."""
        return pick(self.scores, method=method)

    def has(self, method: Method) -> bool:
        """Whether the method was tried here."""
        return any(score.method is method for score in self.scores)

    def bounds(self) -> dict[str, float | None]:
        """What the methods are compared with, by name."""
        return {LIMIT: self.limit, PAPERS_LIMIT: self.papers_limit, FLOOR: self.floor, GUESS: self.guess}


@dataclass(frozen=True)
class Sweep:
    """All points of one curve, for growing x."""

    name: str
    points: tuple[Point, ...]

    def at(self, x: float) -> Point:
        """The point at x."""
        return pick(self.points, x=x)

    def within(self, low: float = 0.0, high: float = math.inf) -> "Sweep":
        """The part between two values of x, both included."""
        return Sweep(self.name, tuple(point for point in self.points if low <= point.x <= high))

    def of(self, method: Method) -> tuple[Point, ...]:
        """The points where a method was tried."""
        return tuple(point for point in self.points if point.has(method))

    def slope(self, method: Method) -> Slope:
        """The exponent of a method's error."""
        points = self.of(method)
        means = [point.of(method).emd for point in points]
        return fit_slope([point.x for point in points], [one.value for one in means], [one.error for one in means])

    def bound_slope(self, name: str = LIMIT) -> Slope:
        """The exponent of a bound."""
        known = [(point.x, value) for point in self.points if (value := point.bounds()[name])]
        return fit_slope([x for x, _ in known], [value for _, value in known])

    def measures(self, kind: str, xs: Sequence[float]) -> tuple[Measure, ...]:
        """Mean errors and Cramer-Rao bounds at some of the points."""
        measures = []
        for point in self.points:
            if point.x in xs:
                name = f"{kind}, {self.name} = {point.x:g}"
                measures += [Measure(f"{name}, {one.method}", one.emd.value, one.emd.error) for one in point.scores]
                if point.limit is not None:
                    measures.append(Measure(f"{name}, {LIMIT}", point.limit))
        return tuple(measures)


def run_sweep(
    name: str, settings: Mapping[float, Setting], trials: Mapping[Method, int], key: tuple[int, ...]
) -> Sweep:
    """Try methods on settings; `trials` gives the number of frames of each method."""
    with threadpool_limits(1, user_api="blas"):  # the matrices are small: threads would only wait for each other
        return Sweep(name, tuple(try_point(x, setting, trials, key) for x, setting in settings.items()))


def try_point(x: float, setting: Setting, trials: Mapping[Method, int], key: tuple[int, ...]) -> Point:
    """Try methods on one setting. The same key gives all methods the same places, and the same noise up to scale."""
    truth = setting.truth(max(trials.values()), stream(*key, PLACES))
    tried = {method: try_method(setting, method, truth[:count], key) for method, count in trials.items()}
    papers, exact = (setting.noise(one) for one in (Calibration.PAPER, Calibration.EXACT))
    limit = limit_of(setting, exact, truth)
    return Point(
        x=x,
        scores=tuple(Score.of(method, trial) for method, trial in tried.items()),
        limit=limit,
        floor=floor_of(setting, exact),
        guess=float(uniform_errors(truth).mean()),
        # for one source it is proportional to the noise
        papers_limit=limit * papers / exact if papers != exact and setting.count == 1 else None,
        gain=Mean.ratio(*(tried[one].distances.emd for one in RIVALS)) if set(RIVALS) <= set(tried) else None,
    )


def limit_of(setting: Setting, sigma: float, truth: FloatArray) -> float:
    """The mean Cramer-Rao bound: of the given sources, of one source over all places, or of several over true maps.

    The bound of several sources that are close together has no limit: in each scene it counts as at most the error of
    the uniform map. The mean of that error over all maps is known, so the bound is estimated as a share of it.
    """
    along = setting.line.space.places[:, 0]
    if setting.at:
        return cramer_rao(setting.line, setting.at, sigma).expected_emd
    if setting.count == 1:
        return float(np.mean([cramer_rao(setting.line, [x], sigma).expected_emd for x in along.tolist()]))
    guesses = uniform_errors(truth)
    limits = [cramer_rao(setting.line, along[scene > 0].tolist(), sigma).expected_emd for scene in truth[:SCENES]]
    least = np.minimum(limits, guesses[:SCENES])
    return float(least.mean() / guesses[:SCENES].mean() * guesses.mean())


def floor_of(setting: Setting, sigma: float) -> float | None:
    """Le Cam's bound for any method, averaged over the places of one source that may be anywhere."""
    if setting.at or setting.count > 1:
        return None
    return le_cam(HeatLine(setting.n, setting.m, setting.T, placement="anywhere"), sigma)


def draw_methods(axes: Any, sweep: Sweep) -> None:
    """Draw the error of each method; the band around the papers' shows what as few trials as theirs give."""
    for method in Method:
        points = sweep.of(method)
        if not points:
            continue
        xs, scores = [point.x for point in points], [point.of(method) for point in points]
        bands = [score.band for score in scores if score.band is not None]
        if method is Method.PAPERS and len(bands) == len(scores):
            low, high = [band.low for band in bands], [band.high for band in bands]
            axes.fill_between(xs, low, high, color=COLORS[method], alpha=0.15, linewidth=0, label=BAND)
        means, bars = [score.emd.value for score in scores], [2 * score.emd.error for score in scores]
        look = {"color": COLORS[method], "marker": SHAPES[method], "markersize": 4, "linewidth": 1.5}
        axes.errorbar(xs, means, yerr=bars, elinewidth=1, label=str(method), **look)


def draw_bounds(axes: Any, sweep: Sweep) -> None:
    """Draw the bounds and the uniform map; the Cramer-Rao bounds only where they are below the uniform map."""
    for name, look in LINES.items():
        known = [(point.x, min(value, point.guess)) for point in sweep.points if (value := point.bounds()[name])]
        if len(known) > 1:
            axes.plot(*zip(*known, strict=True), label=name, **look)


def draw_sweep(axes: Any, sweep: Sweep, label: str) -> None:
    """Draw mean errors and bounds against x, both axes logarithmic."""
    draw_methods(axes, sweep)
    draw_bounds(axes, sweep)
    log_axes(axes)
    axes.set_xlabel(label)
