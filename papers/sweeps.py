"""Sweeps on the line: one quantity is varied, several methods see the same random numbers, means have errors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork._checks import FloatArray
from cloakwork.accuracy import cramer_rao, le_cam
from cloakwork.physics import HeatLine
from cloakwork.privacy import Calibration
from papers.experiment import Progress, stream
from papers.result import Measure, Table
from papers.slopes import Slope, fitted
from papers.trials import PLACES, Distances, Mean, Method, Score, Setting, try_method

LIMIT, PAPERS_LIMIT = "Cramer-Rao limit (unbiased methods)", "the same with the papers' noise"
FLOOR, GUESS = "floor for any method", "uniform guess"
RIVALS = (Method.PAPERS, Method.POSTERIOR)
SCENES = 100  # of several sources each, for their limit


@dataclass(frozen=True)
class Point:
    """One setting: what was varied, how each method did, and what can be reached.

    `limit` is the mean Cramer-Rao limit of methods without a bias, `floor` what no method at all can beat on average
    over the places (Le Cam). Both are for the exact noise, and left out where they mean nothing. `papers_limit` is the
    limit for the papers' noise, where that is another. `guess` is the mean error of the uniform map. `gain` is the
    papers' error over ours.
    """

    x: float
    scores: tuple[Score, ...]
    limit: float | None
    floor: float | None
    guess: float
    papers_limit: float | None = None
    gain: Mean | None = None

    def of(self, method: Method) -> Score:
        """How one method did."""
        return next(score for score in self.scores if score.method is method)

    def has(self, method: Method) -> bool:
        """Whether it was tried here."""
        return any(score.method is method for score in self.scores)


@dataclass(frozen=True)
class Sweep:
    """All points of one curve, for growing x."""

    name: str
    points: tuple[Point, ...]

    def at(self, x: float) -> Point:
        """The point at x."""
        return next(point for point in self.points if point.x == x)

    def within(self, low: float = 0.0, high: float = math.inf) -> "Sweep":
        """The part between two values of x, both included."""
        return Sweep(self.name, tuple(point for point in self.points if low <= point.x <= high))

    def of(self, method: Method) -> tuple[Point, ...]:
        """The points where a method was tried."""
        return tuple(point for point in self.points if point.has(method))

    def slope(self, method: Method) -> Slope:
        """Exponent of a method's error."""
        points = self.of(method)
        scores = [point.of(method).emd for point in points]
        return fitted([point.x for point in points], [one.value for one in scores], [one.error for one in scores])

    def limit_slope(self) -> Slope:
        """Exponent of the Cramer-Rao limit."""
        points = [point for point in self.points if point.limit is not None]
        return fitted([point.x for point in points], [point.limit or 0.0 for point in points])

    def floor_slope(self) -> Slope:
        """Exponent of the floor under every method."""
        points = [point for point in self.points if point.floor]
        return fitted([point.x for point in points], [point.floor or 0.0 for point in points])

    def table(self, title: str) -> Table:
        """Mean earth mover distances, one column a point."""
        rows = [(str(method), *(_said(point, method) for point in self.points)) for method in Method]
        for name, values in (
            (LIMIT, [point.limit for point in self.points]),
            (PAPERS_LIMIT, [point.papers_limit for point in self.points]),
            (FLOOR, [point.floor for point in self.points]),
            (GUESS, [point.guess for point in self.points]),
        ):
            if any(value is not None for value in values):
                rows.append((name, *("-" if value is None else f"{value:.4f}" for value in values)))
        unfitted = [point.of(Method.PAPERS).unfitted for point in self.points]
        rows.append(("papers: nothing fits, %", *(f"{100 * share:.0f}" for share in unfitted)))
        return Table(title, (self.name, *(f"{point.x:g}" for point in self.points)), tuple(rows))

    def measures(self, kind: str, xs: Sequence[float]) -> tuple[Measure, ...]:
        """Mean errors at some of the points, to compare runs by."""
        points = [point for point in self.points if point.x in xs]
        means = [
            Measure(f"{kind}, {self.name} = {point.x:g}, {score.method}", score.emd.value, score.emd.error)
            for point in points
            for score in point.scores
        ]
        limits = [
            Measure(f"{kind}, {self.name} = {point.x:g}, Cramer-Rao limit", point.limit)
            for point in points
            if point.limit is not None
        ]
        return (*means, *limits)


def _said(point: Point, method: Method) -> str:
    return str(point.of(method).emd) if point.has(method) else "-"


def run_sweep(
    name: str,
    settings: Mapping[float, Setting],
    trials: Mapping[Method, int],
    key: tuple[int, ...],
    progress: Progress,
) -> Sweep:
    """Try methods on settings, by what is varied; `trials` says how many frames each method gets."""
    points = []
    for number, (x, setting) in enumerate(settings.items()):
        progress(number, len(settings))
        with threadpool_limits(1, user_api="blas"):  # matrices are small: threads would only wait for each other
            points.append(try_point(x, setting, trials, key))
    progress(len(settings), len(settings))
    return Sweep(name, tuple(points))


def try_point(x: float, setting: Setting, trials: Mapping[Method, int], key: tuple[int, ...]) -> Point:
    """One setting. The same key gives every method the same places, and the same noise up to its size."""
    truth = setting.truth(max(trials.values()), stream(*key, PLACES))
    tried = {method: try_method(setting, method, truth[:count], key) for method, count in trials.items()}
    papers, exact = (setting.channel(one).sigma for one in (Calibration.PAPER, Calibration.EXACT))
    limit = limit_of(setting, exact, truth)
    return Point(
        x=x,
        scores=tuple(Score.of(method, one) for method, one in tried.items()),
        limit=limit,
        floor=floor_of(setting, exact),
        guess=float(Distances.of(truth, np.zeros_like(truth)).emd.mean()),
        # of one source it is proportional to the noise
        papers_limit=limit * papers / exact if papers != exact and setting.count == 1 else None,
        gain=Mean.ratio(*(tried[one].distances.emd for one in RIVALS)) if set(RIVALS) <= set(tried) else None,
    )


def limit_of(setting: Setting, sigma: float, truth: FloatArray) -> float:
    """Mean Cramer-Rao limit: of the given sources, of one source over all places, or of several over true maps.

    Several that are close together have a limit beyond all bounds: in each scene it counts as at most the error of the
    uniform map. Of that error the mean over all maps is known, so that the limit is found as a share of it.
    """
    along = setting.line.space.places[:, 0]
    if setting.at:
        return cramer_rao(setting.line, setting.at, sigma).expected_emd
    if setting.count == 1:
        return float(np.mean([cramer_rao(setting.line, [x], sigma).expected_emd for x in along.tolist()]))
    guesses = Distances.of(truth, np.zeros_like(truth)).emd
    limits = [cramer_rao(setting.line, along[scene > 0].tolist(), sigma).expected_emd for scene in truth[:SCENES]]
    least = np.minimum(limits, guesses[:SCENES])
    return float(least.mean() / guesses[:SCENES].mean() * guesses.mean())


def floor_of(setting: Setting, sigma: float) -> float | None:
    """What no method can beat, averaged over the places of one source that may be anywhere."""
    if setting.at or setting.count > 1:
        return None
    return le_cam(HeatLine(setting.n, setting.m, setting.T, placement="anywhere"), sigma).average
