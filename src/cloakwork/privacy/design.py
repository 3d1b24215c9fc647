"""Noise design: one sigma per sensor that locates a source best at the same guarantee."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, member_of
from cloakwork.errors import CalibrationError
from cloakwork.physics import (
    Drift,
    Family,
    HeatLine,
    HeatPlane,
    Nuisance,
    Physics,
    Placement,
    column_differences,
    pieces_of,
)
from cloakwork.privacy.interior_point import Optimum, least, lower_bound
from cloakwork.privacy.noise_table import DEVICE_TABLES
from cloakwork.privacy.variance import Moves

MOST_SENSORS = 2_000
ENOUGH, ROUGHLY = 1e-3, 1e-2  # relative gap at which a search stops, and one for a search that is repeated
FAINTEST = 1e-4  # weight of a sensor that is not needed, as a fraction of the weight it could have alone
FLOOR_COST = 0.01  # fraction of the budget that all such sensors together may take
BLIND = 1e-6  # a sensor whose slope is below this fraction of the largest is blind
TABLES_PER_OCTAVE = 8  # noise tables for given steps, which keep sensors from sharing one table
MOST_SLOPES = 3_000_000  # places times axes times sensors; beyond, the search samples the places
MOST_BOUNDS = 4_000_000  # moves times sensors to begin with; beyond, the search starts with the steepest moves
DIRECTIONS = 12  # of moves on a plane, over half a turn
POINTS = 4  # per width of the kernel, for sources that may be anywhere
MOST_POINTS = 10_000_000  # such points times sensors
_ROUNDS = 8
_SLACK = 1e-3  # fraction by which a move outside the bounds may exceed the budget before it becomes a bound
_MOST_INFORMATION = 0.99


class Design(StrEnum):
    """How the sensors share the noise; the guarantee is the same."""

    EQUAL = "equal"
    """The same noise for all."""
    LEAST_ERROR = "least-error"
    """More noise where the readings reveal most, which locates a lone source best on average."""


@dataclass(frozen=True)
class DesignReport:
    """How well one window of readings locates a lone source, against equal noise at the same guarantee.

    Attributes
    ----------
    equal_variance, variance
        `mean_variance` with equal noise and with the noise of the cloak, in squared length.
    equal_vicinity, vicinity
        Standard deviation of the place along one axis at a typical place (the median), likewise.
    bound
        Lower bound on `mean_variance` for any noise at this guarantee, whatever its steps; None if the noise was not
        designed.
    carrying
        Number of sensors that carry 99 % of the information.

    >>> from cloakwork.physics import HeatLine
    >>> from cloakwork.privacy import Cloak
    >>> cloak = Cloak(HeatLine(n=40, m=20, T=0.01), epsilon=2, delta=1e-5, alpha=0.02, design="least-error")
    >>> report = cloak.design_report
    >>> report.bound <= report.variance <= report.equal_variance, round(report.gain, 1)
    (True, 1.3)
    """

    equal_variance: float
    variance: float
    equal_vicinity: float
    vicinity: float
    bound: float | None
    carrying: int

    @property
    def gap(self) -> float | None:
        """Upper bound on how far the variance is above the best possible one, as a fraction."""
        return None if self.bound is None else max(0.0, self.variance - self.bound) / self.variance

    @property
    def gain(self) -> float:
        """The variance with equal noise, divided by this variance."""
        return self.equal_variance / self.variance


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best weights, the moves they were optimised over, and the conditions rows @ w <= 1, dense or sparse."""

    optimum: Optimum
    moves: Moves
    rows: Any

    @property
    def sigma(self) -> FloatArray:
        """Noise of each sensor, before scaling; a sensor that is not needed has much noise, but a finite amount."""
        weights = self.optimum.weights
        seeing = sensors_that_see(self.rows)
        floor = min(FAINTEST, FLOOR_COST / len(weights)) / _largest_of_each(self.rows)[seeing]
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
        The declared set of models; the error is that of the stated model.
    reach
        How fast the readings may change along any move: standard deviations per unit of length.
    rounding
        Square of each sensor's step over alpha for given steps. None if the steps follow sigma; `reach` then excludes
        the cost of rounding.
    drift
        Offsets of the readings that the error takes into account; the conditions on the weights do not know them.

    Notes
    -----
    Minimises the mean variance over w >= 0 with sum_l w_l D_le <= reach^2 for all moves e, D the squared slopes: convex
    in w. With given steps q the condition sqrt(max_e w.D_e) + sqrt(w.q^2)/alpha <= reach is implied, for any share t,
    by w.D_e/t + w.(q/alpha)^2/(1 - t) <= reach^2, and is the same at the best t; w and t are improved in turn.
    """

    family: Family
    reach: float
    rounding: FloatArray | None = None
    drift: Drift | Nuisance | None = None

    def run(self) -> SearchResult:
        """Find the best weights, before any rounding."""
        equal = np.ones(self.family.physics.sensors)
        _refuse_too_many(len(equal))
        moves = Moves.of(self.family.physics, drift=self.drift)
        few = moves.thinned(MOST_SLOPES)
        slopes, complete = steepest(self.family, equal)
        share = self.share(slopes, equal)
        seeing = sensors_that_see(slopes)
        for _ in range(_ROUNDS):
            rows = self.rows(slopes, share)
            optimum = best_weights(few, rows, seeing, enough=ENOUGH if complete else ROUGHLY)
            limit = share * self.reach**2 * (1 + _SLACK)
            more = slopes[:0] if complete else exceeding(self.family, optimum.weights, limit)
            before, share = share, self.share(slopes, optimum.weights)
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

    def share(self, slopes: Any, weights: FloatArray) -> float:
        """The best share of the budget for moves."""
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
    """Minimise the mean variance under rows @ w <= 1 with these sensors; the others have weight zero.

    The search starts from equal weights, mixed with the weights `like` that are near the expected result.
    """
    alone = 1 / rows[:, sensors].max(axis=0)
    bounds, start = rows[:, sensors] * alone, 1 / alone
    if like is not None:
        start = start / float((bounds @ start).max()) + 9 * like[sensors] / alone
    inner = least(moves.of_sensors(sensors, alone), bounds, start, enough=enough, hopeless=hopeless)
    weights = np.zeros(rows.shape[1])
    weights[sensors] = inner.weights * alone
    return replace(inner, weights=weights)


def _largest_of_each(slopes: Any) -> FloatArray:
    """The largest value of each column, dense or sparse."""
    largest = slopes.max(axis=0)
    return np.asarray(largest if isinstance(largest, np.ndarray) else largest.toarray().ravel())


def sensors_that_see(slopes: Any) -> IntArray:
    """The sensors whose reading changes with some move."""
    steepest_of_each = _largest_of_each(slopes)
    return np.flatnonzero(steepest_of_each > BLIND**2 * steepest_of_each.max())


def few_ratios(sigma: FloatArray, step: FloatArray) -> FloatArray:
    """Nearly the same noise with few distinct ratios of sigma to step, so that few tables serve all sensors."""
    ratios = 2.0 ** (np.rint(TABLES_PER_OCTAVE * np.log2(sigma / step)) / TABLES_PER_OCTAVE)
    return np.asarray(step * np.minimum(ratios, max(DEVICE_TABLES.ratio / 2, float(ratios.min()))))


def report(
    physics: Physics,
    *,
    sigma: FloatArray,
    equal: FloatArray,
    bound: float | None,
    drift: Drift | Nuisance | None,
) -> DesignReport:
    """Compare this noise with equal noise, both for one whole window."""
    moves = Moves.of(physics, drift=drift)
    weights = 1 / sigma**2
    places, before = (moves.members @ moves.variances(each) for each in (weights, 1 / equal**2))
    carried = np.sort(-moves.gradient(weights) * weights)[::-1]
    carrying = int(np.searchsorted(np.cumsum(carried), _MOST_INFORMATION * carried.sum())) + 1
    return DesignReport(
        equal_variance=float(before.mean()),
        variance=float(places.mean()),
        equal_vicinity=math.sqrt(float(np.median(before))),
        vicinity=math.sqrt(float(np.median(places))),
        bound=bound,
        carrying=min(carrying, physics.sensors),
    )


def steepest(family: Family, weights: FloatArray) -> tuple[FloatArray, bool]:
    """Squared slopes of the moves that shift the readings most, one row per move; and whether these are all moves.

    Of many moves, it keeps the steepest at these weights, and for each sensor the move that shifts it most.
    """
    m = family.physics.sensors
    room = _room(m)
    top, own = np.empty((0, m)), np.zeros((m, m))
    seen = 0
    for piece in squared_slopes(family):
        seen += len(piece)
        top = _largest(np.concatenate([top, piece]), weights, room)
        better = piece.max(axis=0) > own.diagonal()
        own[better] = piece[piece.argmax(axis=0)[better]]
    return (top, True) if seen <= room else (np.concatenate([top, own]), False)


def exceeding(family: Family, weights: FloatArray, limit: float) -> FloatArray:
    """The moves whose squared slope at these weights is above `limit`; of many, the steepest."""
    rows = np.empty((0, family.physics.sensors))
    for piece in squared_slopes(family):
        rows = _largest(np.concatenate([rows, piece[piece @ weights > limit]]), weights, _room(len(weights)) // 2)
    return rows


def squared_slopes(family: Family) -> Iterator[FloatArray]:
    """Every move of every model of the set, in pieces: (dM_l / length)^2, one row per move, one column per sensor.

    If sources move between the readings of a frame, a row has the steepest slopes within one region. Where shortest
    paths may jump, regions twice as wide as the travel come closest to `Family.frame_slope`.
    """
    travel = family.timing.travel
    if travel == math.inf:
        yield family.sensor_slopes()[None] ** 2
        return
    for member in family.members:
        shares, parts = zip(*family.parts(member), strict=True)
        if travel:
            width = travel if member.convex else 2 * travel
            swept = [part.swept_slopes(width, displacement=family.tolerance.position).values for part in parts]
            together = sum(share * slopes for share, slopes in zip(shares, swept, strict=True)).T
            for piece in pieces_of(*together.shape):
                part = together[piece]
                yield (part if isinstance(part, np.ndarray) else part.toarray()) ** 2
            continue
        for pieces in zip(*(_slopes(part, family.tolerance.position) for part in parts), strict=True):
            slopes = sum(share * np.abs(piece) for share, piece in zip(shares, pieces, strict=True))
            yield np.ascontiguousarray(slopes.T**2)


def _slopes(model: Physics, displacement: float) -> Iterator[FloatArray]:
    """Slopes along moves, in pieces of shape (m, moves)."""
    if isinstance(model, HeatPlane) or (isinstance(model, HeatLine) and model.placement is Placement.ANYWHERE):
        yield from _all_round(model)
    elif displacement > 0 and not isinstance(model, HeatLine):  # which adds the same for all moves
        yield from _displaced(model, displacement)
    else:
        for which, columns in model.pair_columns():
            yield columns / model.space.lengths[which]


def _all_round(model: HeatLine | HeatPlane) -> Iterator[FloatArray]:
    """Slopes in all directions from each point of a space whose sources may be anywhere."""
    along = Moves.of(_finer(model)).slopes
    angles = math.pi * np.arange(DIRECTIONS) / DIRECTIONS
    turns = np.stack([np.cos(angles), np.sin(angles)], axis=1) if along.shape[1] == 2 else np.ones((1, 1))
    for piece in pieces_of(len(along), len(turns) * along.shape[2]):
        yield (turns @ along[piece]).reshape(-1, along.shape[2]).T


def _finer(model: HeatLine | HeatPlane) -> HeatLine | HeatPlane:
    """The same model with enough places to resolve its kernel, unless that takes too many."""
    density = POINTS / math.sqrt(2 * model.T)
    if isinstance(model, HeatLine):
        points = max(model.n, math.ceil(density * model.length))
        return replace(model, n=points) if points * model.sensors <= MOST_POINTS else model
    x, y = (max(k, math.ceil(density * side)) for k, side in zip(model.n, model.size, strict=True))
    return replace(model, n=(x, y)) if x * y * model.sensors <= MOST_POINTS else model


def _displaced(model: Physics, distance: float) -> Iterator[FloatArray]:
    """The largest slope of each sensor over all its positions within `distance`."""
    nearby = model.nearby_places(distance)
    positions = np.unique(np.concatenate(nearby))
    for which, columns in column_differences(model.rows(positions).values, model.space):
        largest = [np.abs(columns[np.searchsorted(positions, places)]).max(axis=0) for places in nearby]
        yield np.stack(largest) / model.space.lengths[which]


def _room(sensors: int) -> int:
    return max(MOST_BOUNDS // sensors, 4 * sensors)


def _largest(rows: FloatArray, weights: FloatArray, most: int) -> FloatArray:
    if len(rows) <= most:
        return rows
    return np.asarray(rows[np.argpartition(rows @ weights, -most)[-most:]])


def _refuse_too_many(sensors: int) -> None:
    if sensors > MOST_SENSORS:
        raise CalibrationError(
            f'design="least-error" with {sensors:,} sensors: the search handles at most {MOST_SENSORS:,}. '
            'Use design="equal", or fewer sensors.',
            sensors=sensors,
            most=MOST_SENSORS,
        )


def stated_design(design: Design | str | None, sigma: ArrayLike | None, *, few: bool = False) -> Design | None:
    """The design that a caller names; None if the noise is given. For an observer of `few` sensors, noise is equal."""
    if few and design not in (None, Design.EQUAL):
        raise CalibrationError(
            f'design="{design}" is not known for an observer of some sensors: leave design out.',
            design=design,
        )
    if sigma is None:
        return Design.EQUAL if design is None else member_of("design", design, Design, error=CalibrationError)
    if design is not None:
        raise CalibrationError(
            f"design={design!r} together with sigma: the noise is either designed or given. Leave out one of them.",
            design=design,
        )
    return None
