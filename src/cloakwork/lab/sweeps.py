"""Sweeps on the line: one quantity is varied, several methods see the same random numbers, means have errors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork.lab.experiment import Progress, stream
from cloakwork.lab.result import Measure, Table
from cloakwork.lab.slopes import Slope, fitted
from cloakwork.lab.trials import PLACES, Distances, Method, Score, Setting, score
from cloakwork.measure import cramer_rao, le_cam
from cloakwork.physics import HeatLine
from cloakwork.privacy import Calibration


@dataclass(frozen=True)
class Point:
    """One setting: what was varied, how each method did, and what can be reached.

    `limit` is the mean Cramer-Rao limit, `floor` what no method at all can beat on average over the places (Le Cam);
    both are for the exact noise, and left out where they mean nothing. `guess` is the mean error of the uniform map.
    """

    x: float
    scores: tuple[Score, ...]
    limit: float | None
    floor: float | None
    guess: float

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
            ("Cramer-Rao limit", [point.limit for point in self.points]),
            ("floor for any method", [point.floor for point in self.points]),
        ):
            if any(value is not None for value in values):
                rows.append((name, *("-" if value is None else f"{value:.4f}" for value in values)))
        rows.append(("uniform guess", *(f"{point.guess:.4f}" for point in self.points)))
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
    scores = [score(setting, method, truth[:count], key) for method, count in trials.items()]
    sigma = setting.channel(Calibration.EXACT).sigma
    guess = float(Distances.of(truth, np.zeros_like(truth)).emd.mean())
    return Point(x, tuple(scores), limit_of(setting, sigma), floor_of(setting, sigma), guess)


def limit_of(setting: Setting, sigma: float) -> float | None:
    """Mean Cramer-Rao limit: of the given sources, or of one source over all places; of more it has no mean."""
    if setting.at:
        return cramer_rao(setting.line, setting.at, sigma).expected_emd
    if setting.count > 1:
        return None
    along = setting.line.space.places[:, 0].tolist()
    return float(np.mean([cramer_rao(setting.line, [x], sigma).expected_emd for x in along]))


def floor_of(setting: Setting, sigma: float) -> float | None:
    """What no method can beat, averaged over the places of one source that may be anywhere."""
    if setting.at or setting.count > 1:
        return None
    return le_cam(HeatLine(setting.n, setting.m, setting.T, placement="anywhere"), sigma).average
