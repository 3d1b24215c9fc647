"""The sources of basis pursuit, moved off the grid of places."""

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.recovery import BasisPursuit, Estimator, Problem, Solution, Source, extract_sources
from papers.experiment import Progress
from papers.gallery.descent import Strength, descend
from papers.gallery.points import PointModel, Points, answer, in_pieces

WEIGHTS = Strength(0.0, 1.0)


@final
@dataclass(frozen=True)
class Refined(Estimator):
    """The sources of basis pursuit, refitted without shrinkage and off the grid, then merged.

    Parameters
    ----------
    pursuit
        The estimator whose sources it starts from.

    Notes
    -----
    The sources of basis pursuit start a least-squares fit of their positions (anywhere on the line) and weights (up to
    1; heavier sources are split). Then the two neighbours whose merger costs least are merged, or the source that
    matters least is dropped, and the rest is fitted again, as long as the squared misfit in units of the noise grows by
    less than 2 ln(m), the price of a position and a weight under BIC. Each weight is split between the two places next
    to it. Where basis pursuit finds nothing, neither does this estimator.

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> from cloakwork.recovery import recover
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> readings = 0.8 * line.columns_at(np.array([[0.305]]))[:, 0]
    >>> found = recover(readings, line, sigma=0.01, estimator=Refined())
    >>> found.map[29:31].round(2).tolist()
    [0.4, 0.4]
    """

    pursuit: BasisPursuit = field(default_factory=BasisPursuit)

    def solve(
        self, problem: Problem, readings: FloatArray, progress: Progress | None, after: object = None
    ) -> Solution:
        model = PointModel(problem)
        data = model.data(readings)
        coarse = self.pursuit.solve(problem, readings, None, after)

        def fit(piece: slice) -> Points:
            found = zip(coarse.maps[piece], problem.project(readings[piece]), strict=True)
            sets = [_start(model, extract_sources(weights, seen, problem)) for weights, seen in found]
            return refine(model, data[piece], sets)

        return answer(model, data, in_pieces(fit, len(data), progress))


def _start(model: PointModel, sources: tuple[Source, ...]) -> Points:
    """The sources of one frame as points; those heavier than 1 are split into adjacent parts."""
    at: list[float] = []
    weight: list[float] = []
    along = model.problem.physics.space.places[:, 0]
    for source in sources:
        parts = max(1, math.ceil(source.weight - 1e-9))
        offsets = (np.arange(parts) - (parts - 1) / 2) * np.ptp(model.ends) / 16
        at += np.clip(along[source.place] + offsets, *model.ends).tolist()
        weight += [source.weight / parts] * parts
    return Points(np.array([at]), np.array([weight]))


def refine(model: PointModel, data: FloatArray, starts: list[Points]) -> Points:
    """Fit each frame from its start, those with the most sources first."""
    numbers = np.array([start.number for start in starts], dtype=np.int64)
    room = int(numbers.max(initial=0))
    points = Points.joined([Points.none(0, room), *(start.padded(room) for start in starts)])
    price = 2 * math.log(model.problem.physics.sensors)
    for k in range(room, 0, -1):
        here = np.flatnonzero(numbers == k)
        fitted = descend(model, data[here], points[here].first(k), WEIGHTS)
        points = points.replaced(here, fitted.padded(room))
        if k > 1 and len(here):
            fewer = _one_less(model, data[here], fitted)
            pays = model.misfit(data[here], fewer) < model.misfit(data[here], fitted) + price
            points = points.replaced(here[pays], fewer[pays].padded(room))
            numbers[here[pays]] = k - 1
    return points


def _one_less(model: PointModel, data: FloatArray, points: Points) -> Points:
    """The best fit with one source fewer: two neighbours merged, or one dropped."""
    ordered = points.ordered()
    options = [ordered.without(i) for i in range(points.number)]
    options += [ordered.merged(i) for i in range(points.number - 1)]
    best, least = options[0], np.full(len(data), np.inf)
    for option in options:
        fitted = descend(model, data, option, WEIGHTS)
        misfit = model.misfit(data, fitted)
        best, least = best.better(fitted, misfit < least), np.minimum(least, misfit)
    return best
