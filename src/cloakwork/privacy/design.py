"""One sigma per sensor: the noise that locates a source best at the same guarantee."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import CalibrationError
from cloakwork.physics import Family, Physics
from cloakwork.privacy.interior import Optimum, least, lower_bound
from cloakwork.privacy.noise_table import DEVICE_TABLES
from cloakwork.privacy.steepest import exceeding, steepest
from cloakwork.privacy.variance import Moves

MOST_SENSORS = 2_000
ENOUGH, ROUGHLY = 1e-3, 1e-2  # relative gap at which a search stops, and one that has to be made several times
FAINTEST = 1e-4  # weight of a sensor that is not needed, in units of what it could have alone
FLOOR_COST = 0.01  # what all such sensors together may take of the budget
BLIND = 1e-6  # a sensor whose slope is below this part of the largest tells nothing
TABLES = 8  # noise tables an octave, where the step is given and sensors cannot share one
MOST_SLOPES = 3_000_000  # of places, axes and sensors; of more, some places stand for the others while searching
_ROUNDS = 8
_SLACK = 1e-3  # part by which a move outside the bounds may exceed the budget before it is taken in
_MOST = 0.99


class Design(StrEnum):
    """How the noise is shared among the sensors; the guarantee is the same."""

    EQUAL = "equal"
    """The same noise for all."""
    LEAST_ERROR = "least-error"
    """More noise where the readings give most away, such that a lone source is located best on average."""


@dataclass(frozen=True)
class DesignReport:
    """What sharing the noise achieves: one window of readings, at the same guarantee.

    Attributes
    ----------
    equal_variance, variance
        `mean_variance` with the same noise for all, and with the noise of the cloak, in squared length.
    equal_vicinity, vicinity
        Standard deviation of the place along one axis at a typical place (the median), likewise.
    bound
        What no noise at this guarantee can go below in `mean_variance`, whatever its steps, or None where the noise was
        not designed.
    carrying
        How many sensors carry 99 % of the information.
    """

    equal_variance: float
    variance: float
    equal_vicinity: float
    vicinity: float
    bound: float | None
    carrying: int

    @property
    def gap(self) -> float | None:
        """How far the variance is above the bound at the most, relative to it."""
        return None if self.bound is None else max(0.0, self.variance - self.bound) / self.variance

    @property
    def gain(self) -> float:
        """How many times less the variance is than with the same noise for all."""
        return self.equal_variance / self.variance


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best weights, the moves over which they are best, and the conditions rows @ w <= 1 that they meet."""

    optimum: Optimum
    moves: Moves
    rows: FloatArray

    @property
    def sigma(self) -> FloatArray:
        """Noise of each sensor, still to be scaled; one that is not needed has a lot, but not endlessly much."""
        weights = self.optimum.weights
        seeing = sensors_that_see(self.rows)
        floor = min(FAINTEST, FLOOR_COST / len(weights)) / self.rows[:, seeing].max(axis=0)
        kept = np.maximum(weights[seeing], floor)
        full = np.full(len(weights), kept.min())
        full[seeing] = kept
        return np.asarray(1 / np.sqrt(full))


@dataclass(frozen=True, eq=False)
class Search:
    """The search for the best weights w = 1/sigma^2.

    Parameters
    ----------
    family
        The declared set of models; the error is that of the stated one.
    reach
        How fast the readings may change along any move: standard deviations a unit of length.
    rounding
        Square of each sensor's step over alpha where steps are given; None where they follow sigma and `reach` is what
        rounding leaves.

    Notes
    -----
    Minimises the mean variance over w >= 0 with sum_l w_l D_le <= reach^2 for all moves e, D the squared slopes: convex
    in w. With given steps q the condition sqrt(max_e w.D_e) + sqrt(w.q^2)/alpha <= reach is implied, for any share t,
    by w.D_e/t + w.(q/alpha)^2/(1 - t) <= reach^2, and is the same at the best t; w and t are improved in turn.
    """

    family: Family
    reach: float
    rounding: FloatArray | None = None

    def found(self) -> SearchResult:
        """The best weights, before anything is rounded."""
        equal = np.ones(self.family.physics.sensors)
        _refuse_too_many(len(equal))
        moves = Moves.of(self.family.physics)
        few = moves.thinned(MOST_SLOPES)
        bounds = steepest(self.family, equal)
        slopes, share = bounds.rows, self._share(bounds.rows, equal)
        seeing = sensors_that_see(slopes)
        for _ in range(_ROUNDS):
            rows = self.rows(slopes, share)
            optimum = best_weights(few, rows, seeing, enough=ENOUGH if bounds.whole else ROUGHLY)
            limit = share * self.reach**2 * (1 + _SLACK)
            more = slopes[:0] if bounds.whole else exceeding(self.family, optimum.weights, limit)
            before, share = share, self._share(slopes, optimum.weights)
            if not len(more) and abs(share - before) < _SLACK:
                break
            slopes = np.concatenate([slopes, more])
        if few is not moves:
            bound = lower_bound(moves.of_sensors(seeing), rows[:, seeing], optimum.weights[seeing], optimum.prices)
            optimum = replace(optimum, bound=bound)
        return SearchResult(optimum, few, rows)

    def rows(self, slopes: FloatArray, share: float) -> FloatArray:
        """The conditions rows @ w <= 1, with `share` of the budget for moves and the rest for rounding."""
        part = slopes / (share * self.reach**2)
        return part if self.rounding is None else part + self.rounding / ((1 - share) * self.reach**2)

    def _share(self, slopes: FloatArray, weights: FloatArray) -> float:
        """The best part of the budget for moves."""
        if self.rounding is None:
            return 1.0
        moved, rounded = math.sqrt(float((slopes @ weights).max())), math.sqrt(float(self.rounding @ weights))
        return moved / (moved + rounded)


def best_weights(
    moves: Moves,
    rows: FloatArray,
    sensors: IntArray,
    *,
    like: FloatArray | None = None,
    enough: float = ENOUGH,
    hopeless: float = math.inf,
) -> Optimum:
    """The least mean variance under rows @ w <= 1 with some of the sensors; the others have weight zero.

    The search begins with equal weights, mixed with weights `like` which it is expected to end.
    """
    alone = 1 / rows[:, sensors].max(axis=0)
    bounds, start = rows[:, sensors] * alone, 1 / alone
    if like is not None:
        start = start / float((bounds @ start).max()) + 9 * like[sensors] / alone
    inner = least(moves.of_sensors(sensors, alone), bounds, start, enough=enough, hopeless=hopeless)
    weights = np.zeros(rows.shape[1])
    weights[sensors] = inner.weights * alone
    return replace(inner, weights=weights)


def sensors_that_see(slopes: FloatArray) -> IntArray:
    """The sensors that some move shifts by more than nothing."""
    steepest_of_each = slopes.max(axis=0)
    return np.flatnonzero(steepest_of_each > BLIND**2 * steepest_of_each.max())


def few_ratios(sigma: FloatArray, step: FloatArray) -> FloatArray:
    """Nearly the same noise with few different ratios of sigma to step, so that few tables serve all sensors."""
    ratios = 2.0 ** (np.rint(TABLES * np.log2(sigma / step)) / TABLES)
    return np.asarray(step * np.minimum(ratios, max(DEVICE_TABLES.ratio / 2, float(ratios.min()))))


def report(physics: Physics, *, sigma: FloatArray, equal: FloatArray, bound: float | None) -> DesignReport:
    """Compare noise with the same noise for all; both for one whole window."""
    moves = Moves.of(physics)
    places, before = (moves.members @ moves.variances(1 / noise**2) for noise in (sigma, equal))
    weights = 1 / sigma**2
    carried = np.sort(-moves.gradient(weights) * weights)[::-1]
    carrying = int(np.searchsorted(np.cumsum(carried), _MOST * carried.sum())) + 1
    return DesignReport(
        equal_variance=float(before.mean()),
        variance=float(places.mean()),
        equal_vicinity=math.sqrt(float(np.median(before))),
        vicinity=math.sqrt(float(np.median(places))),
        bound=bound,
        carrying=min(carrying, physics.sensors),
    )


def _refuse_too_many(sensors: int) -> None:
    if sensors > MOST_SENSORS:
        raise CalibrationError(
            f'design="least-error" with {sensors:,} sensors: the search is made for {MOST_SENSORS:,} at the most. '
            'Use design="equal", or fewer sensors.',
            sensors=sensors,
        )
