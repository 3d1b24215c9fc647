"""Expectation maximisation for heat on a line, which is a Gaussian mixture."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from cloakwork._checks import FloatArray, count
from cloakwork.errors import InputError
from cloakwork.recovery import Estimator, Problem, Solution
from papers.experiment import Progress
from papers.gallery.descent import Strength, descend
from papers.gallery.points import PointModel, Points, answer, in_pieces

ROUNDS = 30  # of expectation and maximisation from each start


@final
@dataclass(frozen=True)
class Mixture(Estimator):
    """The readings as a mixture of Gaussian bumps of known width: centres and weights by EM, their number by BIC.

    Parameters
    ----------
    strength
        One number if the weight of every source is known, or a pair (low, high).
    most
        Largest number of sources.

    Notes
    -----
    A pulse at x gives readings w g(s_j - x), a Gaussian of variance 2 T around x: sources are components, their weights
    the mixing weights. Textbook EM takes readings for counts of particles. These may be negative, and the sensors see
    only a part of the line, so EM is done in the likelihood that holds, with normal noise (Feder and Weinstein, 1988):
    the readings of one component are the missing data. In the expectation step each of k components accounts at
    every sensor for its own bump and for a share 1/k of the residual of the mixture,

        y_k = w_k g(. - x_k) + (y - sum_l w_l g(. - x_l)) / k ;

    in the maximisation step each is fitted alone: x_k = argmin_x min_w ||y_k - w g(. - x)|| over a grid four times
    finer than the places, then between its points by a parabola. The likelihood never falls. Bumps cut
    off by the end of the line and negative readings need no special treatment. Bumps overlap so much here that EM
    converges slowly; `descend` makes the last steps to the same maximum.

    EM for k components starts three times: from the previous k - 1 and one at the largest residual, from the k - 1
    with the heaviest split in two, and from evenly spaced ones. The number is the k from 1 to `most` with the least
    misfit + k p ln(m), p the unknowns of a component (the Bayesian information criterion).

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> from cloakwork.recovery import recover
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> readings = line.columns_at(np.array([[0.305]]))[:, 0]
    >>> found = recover(readings, line, sigma=0.01, estimator=Mixture(strength=1.0))
    >>> found.map[29:31].round(2).tolist()
    [0.5, 0.5]
    """

    strength: float | tuple[float, float] = (0.0, 1.0)
    most: int = 4

    def __post_init__(self) -> None:
        count("most", self.most)
        low, high = self._bounds.low, self._bounds.high
        if not (0 <= low <= high < math.inf and high > 0):
            raise self._refusal()

    @property
    def _bounds(self) -> Strength:
        given = self.strength if isinstance(self.strength, tuple) else (self.strength, self.strength)
        try:
            low, high = (float(value) for value in given)
        except (TypeError, ValueError):
            raise self._refusal() from None
        return Strength(low, high)

    def _refusal(self) -> InputError:
        text = f"strength={self.strength!r}: give one number above 0, or a pair (low, high) with 0 <= low <= high."
        return InputError(text, strength=self.strength)

    def solve(
        self, problem: Problem, readings: FloatArray, progress: Progress | None, after: object = None
    ) -> Solution:
        del after  # every frame is solved on its own
        model = PointModel(problem)
        data = model.data(readings)
        return answer(model, data, in_pieces(lambda piece: self.fit(model, data[piece]), len(data), progress))

    def fit(self, model: PointModel, data: FloatArray) -> Points:
        """The sources of each frame, in the number that BIC prefers; the rest of its row has weight 0."""
        price = (1 if self._bounds.known else 2) * math.log(model.problem.physics.sensors)
        best, points = Points.none(len(data), self.most), Points.none(len(data), 0)
        least = np.full(len(data), np.inf)
        for k in range(1, self.most + 1):
            points = self._with(model, data, points)
            cost = model.misfit(data, points) + k * price
            best = best.better(points.padded(self.most), cost < least)
            least = np.minimum(least, cost)
        return best

    def _with(self, model: PointModel, data: FloatArray, fewer: Points) -> Points:
        """The best fit with one more source, over three starts."""
        strength = self._bounds
        starts = [_born(model, data, fewer, strength), _spread(model, data, fewer.number + 1, strength)]
        if fewer.number:
            starts.append(_cut(model, fewer, strength))
        best, least = starts[0], np.full(len(data), np.inf)
        for start in starts:
            fitted = descend(model, data, expect_and_maximise(model, data, start, strength), strength)
            misfit = model.misfit(data, fitted)
            best = best.better(fitted, misfit < least)
            least = np.minimum(least, misfit)
        return best


def expect_and_maximise(
    model: PointModel, data: FloatArray, start: Points, strength: Strength, rounds: int = ROUNDS
) -> Points:
    """Rounds of EM from a start; the misfit never grows."""
    points = start
    for _ in range(rounds):
        own = points.weight[:, :, None] * model.columns(points.at)
        missing = own + ((data - own.sum(axis=1)) / points.number)[:, None, :]
        points = _alone(model, missing, strength)
    return points


def _alone(model: PointModel, data: FloatArray, strength: Strength) -> Points:
    """The single source that fits best, for data of shape (..., rank)."""
    table, candidates = model.table, model.candidates
    squares = (table**2).sum(axis=1)
    match = data @ table.T
    weight = np.clip(match / squares, strength.low, strength.high)
    gain = weight * (2 * match - weight * squares)
    middle = np.clip(gain.argmax(axis=-1), 1, len(candidates) - 2)
    before, here, after = (np.take_along_axis(gain, (middle + d)[..., None], -1)[..., 0] for d in (-1, 0, 1))
    bend = before - 2 * here + after
    shift = np.divide(before - after, 2 * bend, out=np.zeros_like(bend), where=bend < 0)
    step = candidates[1] - candidates[0]
    at = np.clip(candidates[middle] + np.clip(shift, -1, 1) * step, *model.ends)
    columns = model.columns(at)
    best = (data * columns).sum(axis=-1) / (columns**2).sum(axis=-1)
    return Points(at, np.clip(best, strength.low, strength.high))


def _born(model: PointModel, data: FloatArray, fewer: Points, strength: Strength) -> Points:
    new = _alone(model, model.left(data, fewer), strength)
    return fewer.with_one_more(new.at, np.maximum(new.weight, strength.high / 100))


def _cut(model: PointModel, fewer: Points, strength: Strength) -> Points:
    """Split the heaviest source into two that are an eighth of the line apart."""
    frames, heaviest = np.arange(len(fewer)), fewer.weight.argmax(axis=1)
    half = np.ptp(model.ends) / 16
    at, weight = fewer.at.copy(), fewer.weight.copy()
    middle, shared = at[frames, heaviest], np.clip(weight[frames, heaviest] / 2, strength.low, strength.high)
    at[frames, heaviest] = np.clip(middle - half, *model.ends)
    weight[frames, heaviest] = shared
    return Points(at, weight).with_one_more(np.clip(middle + half, *model.ends), shared)


def _spread(model: PointModel, data: FloatArray, k: int, strength: Strength) -> Points:
    at = model.ends[0] + np.ptp(model.ends) * (np.arange(k) + 0.5) / k
    weight = np.full(k, (strength.low + strength.high) / 2)
    return Points(np.tile(at, (len(data), 1)), np.tile(weight, (len(data), 1)))
