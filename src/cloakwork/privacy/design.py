"""Noise design: one sigma per sensor that locates a source best at the same guarantee."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, member_of
from cloakwork.errors import CalibrationError
from cloakwork.physics import Drift, Family, Nuisance, Physics, largest_of_each, pieces_of
from cloakwork.privacy.interior_point import Bounds, Optimum, least
from cloakwork.privacy.noise_table import DEVICE_TABLES
from cloakwork.privacy.variance import LocationError

MAX_SENSORS = 2_000
ENOUGH, ROUGHLY = 1e-3, 1e-2  # relative gap at which a search stops, and one for a search that is repeated
FAINTEST = 1e-4  # weight of a sensor that is not needed, as a fraction of the weight it could have alone
FLOOR_COST = 0.01  # fraction of the budget that all such sensors together may take
BLIND = 1e-6  # a sensor whose slope is below this fraction of the largest is blind
MAX_STEPS = DEVICE_TABLES.ratio / 32  # of noise: draws of the offsets for long stays, in 256ths of a step, need tables
TABLES_PER_OCTAVE = 8  # noise tables for given steps, which keep sensors from sharing one table
MAX_SLOPES = 3_000_000  # places times axes times sensors; beyond, the search samples the places
MAX_BOUNDS = 4_000_000  # moves times sensors to begin with; beyond, the search starts with the steepest moves
_ROUNDS = 8
_SLACK = 1e-3  # fraction by which a move outside the bounds may exceed the budget before it becomes a bound
_MAX_INFORMATION = 0.99


class Design(StrEnum):
    """How noise differs between sensors; the guarantee is the same."""

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
        Mean of `place_variances` with equal noise and with the noise of the cloak, in squared length.
    equal_vicinity, vicinity
        Standard deviation of the place along one axis at a typical place (the median), likewise.
    carrying
        Number of sensors that carry 99 % of the information.

    >>> from cloakwork.physics import HeatLine
    >>> from cloakwork.privacy import Cloak
    >>> cloak = Cloak(HeatLine(n=40, m=20, T=0.01), epsilon=2, delta=1e-5, alpha=0.02, design="least-error")
    >>> round(cloak.design_report.gain, 1)
    1.3
    """

    equal_variance: float
    variance: float
    equal_vicinity: float
    vicinity: float
    carrying: int

    @property
    def gain(self) -> float:
        """The variance with equal noise, divided by this variance."""
        return self.equal_variance / self.variance


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
        Square of each sensor's step over alpha for given steps. 0 if the steps follow sigma; `reach` then excludes the
        cost of rounding.
    drift
        Offsets of the readings that the error takes into account; the conditions on the weights do not know them.

    Notes
    -----
    Minimises the mean variance over w >= 0 with

        sum_g sqrt(max over e in g of w . D_ge) <= reach

    where D_ge are the squared slopes along the moves e of group g. All moves are one group, or those of each age of the
    heat in rooms that remember, and rounding is one more, with a single row. With one group this is convex. Otherwise,
    for shares t_g > 0 of sum 1, the convex condition sum_g max_e w . D_ge / t_g <= reach^2 implies it, by Cauchy and
    Schwarz, and is the same at t_g in proportion to the roots. So w and t improve in turn, and the mean variance never
    grows.
    """

    family: Family
    reach: float
    rounding: FloatArray
    drift: Drift | Nuisance | None = None

    def run(self) -> FloatArray:
        """Find the noise of each sensor, before scaling and any rounding, shape (m,)."""
        equal = np.ones(self.family.physics.sensors)
        _refuse_too_many(len(equal))
        moves = LocationError.of(self.family.physics, drift=self.drift).thinned(MAX_SLOPES)
        groups, complete = steepest(self.family, equal)
        shares = self.shares(groups, equal)
        seeing = sensors_that_see(largest_of_each(np.concatenate(groups)))
        for _ in range(_ROUNDS):
            bounds = self.bounds(groups, shares)
            weights = best_weights(moves, bounds, seeing, enough=ENOUGH if complete else ROUGHLY).weights
            more = [] if complete else self._exceeding(groups, weights)
            before, shares = shares, self.shares(groups, weights)
            if not any(map(len, more)) and np.abs(shares - before).max() < _SLACK:
                break
            groups = [np.concatenate(pair) for pair in zip(groups, more, strict=True)] if more else groups
        return finite_noise(weights, bounds.rows)

    def bounds(self, groups: list[FloatArray], shares: FloatArray) -> Bounds:
        """The convex condition, with these shares of the reach for the groups of moves and for rounding."""
        parts = [*groups, self.rounding[None]] if self.rounding.any() else groups
        return Bounds.of(*(rows / (share * self.reach**2) for rows, share in zip(parts, shares, strict=True)))

    def shares(self, groups: Sequence[Any], weights: FloatArray) -> FloatArray:
        """The best shares of the reach at these weights."""
        squares = [float((rows @ weights).max()) for rows in groups]
        squares += [float(self.rounding @ weights)] if self.rounding.any() else []
        roots = np.sqrt(np.array(squares))
        return np.asarray(roots / roots.sum())

    def _exceeding(self, groups: list[FloatArray], weights: FloatArray) -> list[FloatArray]:
        """The moves of each group that are steeper at these weights than all that count so far; of many, some."""
        found = []
        for group, rows in enumerate(groups):
            limit, more, room = float((rows @ weights).max()) * (1 + _SLACK), rows[:0], _room(len(weights)) // 2
            for piece in squared_slopes(self.family, group):
                more = _largest(np.concatenate([more, piece[piece @ weights > limit]]), weights, room)
            found.append(more)
        return found


def best_weights(moves: LocationError, bounds: Bounds, sensors: IntArray, *, enough: float = ENOUGH) -> Optimum:
    """Minimise the mean variance under the bounds with these sensors; the others have weight zero."""
    rows = bounds.rows[:, sensors]
    alone = 1 / rows.max(axis=0)
    inner = least(moves.of_sensors(sensors, alone), Bounds(rows * alone, bounds.starts), 1 / alone, enough=enough)
    weights = np.zeros(bounds.rows.shape[1])
    weights[sensors] = inner.weights * alone
    return replace(inner, weights=weights)


def finite_noise(weights: FloatArray, rows: Any) -> FloatArray:
    """The noise of each sensor; one that these squared slopes do not need has much noise, but a finite amount."""
    largest = largest_of_each(rows)
    seeing = sensors_that_see(largest)
    floor = min(FAINTEST, FLOOR_COST / len(weights)) / largest[seeing]
    kept = np.maximum(weights[seeing], floor)
    full = np.full(len(weights), kept.min())
    full[seeing] = kept
    return np.asarray(1 / np.sqrt(full))


def sensors_that_see(largest: FloatArray) -> IntArray:
    """The sensors whose reading changes with some move, from the largest squared slope of each."""
    return np.flatnonzero(largest > BLIND**2 * largest.max())


def few_ratios(sigma: FloatArray, step: FloatArray) -> FloatArray:
    """Nearly the same noise with few distinct ratios of sigma to step, so that few tables serve all sensors."""
    ratios = 2.0 ** (np.rint(TABLES_PER_OCTAVE * np.log2(sigma / step)) / TABLES_PER_OCTAVE)
    return np.asarray(step * np.minimum(ratios, max(MAX_STEPS, float(ratios.min()))))


def report(physics: Physics, *, sigma: FloatArray, equal: FloatArray, drift: Drift | Nuisance | None) -> DesignReport:
    """Compare this noise with equal noise, both for one whole window."""
    moves = LocationError.of(physics, drift=drift)
    weights = 1 / sigma**2
    places, before = (moves.members @ moves.variances(each) for each in (weights, 1 / equal**2))
    carried = np.sort(-moves.gradient(weights) * weights)[::-1]
    carrying = int(np.searchsorted(np.cumsum(carried), _MAX_INFORMATION * carried.sum())) + 1
    return DesignReport(
        equal_variance=float(before.mean()),
        variance=float(places.mean()),
        equal_vicinity=math.sqrt(float(np.median(before))),
        vicinity=math.sqrt(float(np.median(places))),
        carrying=min(carrying, physics.sensors),
    )


def steepest(family: Family, weights: FloatArray) -> tuple[list[FloatArray], bool]:
    """Squared slopes of the moves that shift the readings most, by group; and whether these are all moves.

    Of many moves, it keeps the steepest at these weights, and for each sensor the move that shifts it most.
    """
    m, number = len(weights), family.groups
    room = _room(m) if number == 1 else 4 * m
    kept, complete = [], True
    for group in range(number):
        top, own, seen = np.empty((0, m)), np.zeros((m, m)), 0
        for piece in squared_slopes(family, group):
            seen += len(piece)
            top = _largest(np.concatenate([top, piece]), weights, room)
            better = piece.max(axis=0) > own.diagonal()
            own[better] = piece[piece.argmax(axis=0)[better]]
        complete &= seen <= room
        kept.append(top if seen <= room else np.concatenate([top, own]))
    return kept, complete


def squared_slopes(family: Family, group: int) -> Iterator[FloatArray]:
    """Every move of every model in a group, in pieces: (share dM_l / length)^2, a row per move, a column per sensor."""
    for rows in family.rows(group):
        for piece in pieces_of(*rows.shape):
            part = rows[piece]
            yield np.ascontiguousarray(part if isinstance(part, np.ndarray) else part.toarray()) ** 2


def _room(sensors: int) -> int:
    return max(MAX_BOUNDS // sensors, 4 * sensors)


def _largest(rows: FloatArray, weights: FloatArray, most: int) -> FloatArray:
    if len(rows) <= most:
        return rows
    return np.asarray(rows[np.argpartition(rows @ weights, -most)[-most:]])


def _refuse_too_many(sensors: int) -> None:
    if sensors > MAX_SENSORS:
        raise CalibrationError(
            f'design="least-error" with {sensors:,} sensors: the search handles at most {MAX_SENSORS:,}. '
            'Use design="equal", or fewer sensors.',
            sensors=sensors,
            most=MAX_SENSORS,
        )


def stated_design(design: Design | str, sigma: ArrayLike | None) -> Design | None:
    """The design that a caller names; None if the noise is given."""
    named = member_of("design", design, Design, error=CalibrationError)
    if sigma is None:
        return named
    if named is not Design.EQUAL:
        raise CalibrationError(
            f"design={design!r} together with sigma: the noise is either designed or given. Leave out one of them.",
            design=design,
        )
    return None
