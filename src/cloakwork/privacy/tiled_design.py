"""Noise design on floors with thousands of sensors: tile by tile, with one certificate for the whole."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import CalibrationError
from cloakwork.privacy.design import MAX_SLOPES, Search, SearchResult, best_weights
from cloakwork.privacy.interior_point import Bounds, Optimum
from cloakwork.privacy.variance import LocationError

MAX_TOGETHER = 1_000  # sensors whose noise is searched for in one piece
IN_A_TILE = 150  # sensors of a tile, without its margin
ENOUGH = 3e-3  # relative gap at which the search of a tile stops
REDUCTIONS = 20  # rounds in which weights that exceed a condition are reduced
PRICINGS = 400  # rounds in which the prices of all conditions improve
_ROUNDS, _SLACK = 8, 1e-3  # of adding conditions, and how far one may be exceeded before it is added
Places = NDArray[np.bool_]


def searched(search: Search) -> SearchResult:
    """The best weights: of all sensors together, or of a large floor tile by tile.

    Notes
    -----
    A steady field fades over its reach. So a tile of the floor with a margin of some reaches has nearly the best
    weights of the whole floor in its middle. Those of all tiles are put together, and reduced at the seams until they
    meet every condition of the whole. The lower bound is that of the whole as well, from prices of its conditions that
    begin as those of the tiles (see `interior_point`): any prices prove a bound, and a price grows as long as its
    sensors are charged too little.
    """
    physics = search.family.physics
    if physics.sensors <= MAX_TOGETHER or physics.near is None or physics.sensor_positions is None:
        return search.run()
    if search.family.timing.travel == math.inf:  # one condition for all sensors, so there are no tiles
        return search.run()
    if search.family.tolerance.position or search.family.tolerance.memory:
        raise CalibrationError(
            f'design="least-error" with {physics.sensors:,} sensors: a floor as large as that takes no tolerance of '
            'position or memory. Leave it out, or use design="equal".',
            sensors=physics.sensors,
        )
    return _Tiles.of(search, physics.sensor_positions).result()


@dataclass(frozen=True, eq=False)
class _Tiles:
    """The conditions rows @ w <= 1 and moves of a whole floor, both sparse, where the sensors are, and the margin."""

    rows: sparse.csr_array
    moves: LocationError
    owners: IntArray  # the sensor that each condition concerns most
    sensors_at: FloatArray
    places_at: FloatArray
    margin: float

    @classmethod
    def of(cls, search: Search, sensors_at: FloatArray) -> "_Tiles":
        physics = search.family.physics
        squares = sparse.vstack(list(search.family.rows()), format="csr").power(2)
        shares = search.shares([squares], np.ones(physics.sensors))
        rows = sparse.csr_array(squares / (shares[0] * search.reach**2))
        return cls(
            rows,
            LocationError.of(physics),
            np.asarray(rows.argmax(axis=1)).ravel(),
            sensors_at,
            physics.space.places,
            physics.fade,
        )

    def result(self) -> SearchResult:
        """The weights of all tiles, with their bound."""
        weights, prices = np.zeros(len(self.sensors_at)), np.zeros(self.rows.shape[0])
        for low, high in _boxes(self.sensors_at, np.full(2, -np.inf), np.full(2, np.inf)):
            sensors = np.flatnonzero(_within(self.sensors_at, low - self.margin, high + self.margin))
            places = np.flatnonzero(_within(self.places_at, low - self.margin, high + self.margin))
            conditions = np.flatnonzero(np.isin(self.owners, sensors))
            best = _best(self.moves.of_blocks(places).of_sensors(sensors), self.rows[conditions][:, sensors].toarray())
            core = _within(self.sensors_at[sensors], low, high)
            weights[sensors[core]] = best.weights[core]
            owned = np.isin(self.owners[conditions], sensors[core])
            prices[conditions[owned]] = best.prices[owned]
        weights = self._reduced(weights)
        return SearchResult(self._certified(weights, prices), Bounds.of(self.rows))

    def _reduced(self, weights: FloatArray) -> FloatArray:
        """The weights, reduced until they meet all conditions, most for sensors that count most in one exceeded."""
        for _ in range(REDUCTIONS):
            parts = self.rows @ sparse.diags_array(weights)
            excess = np.maximum(0.0, np.asarray(parts.sum(axis=1)).ravel() - 1)
            largest = np.maximum(parts.max(axis=1).toarray().ravel(), 1e-300)
            factors = (sparse.diags_array(excess / largest) @ parts).max(axis=0).toarray().ravel()
            weights = weights / (1 + factors)
        return np.asarray(weights / float((self.rows @ weights).max()))

    def _certified(self, weights: FloatArray, prices: FloatArray) -> Optimum:
        """The weights, with a bound from the prices of the tiles, improved for the whole."""
        gradient, value = self.moves.gradient(weights), self.moves.mean(weights)
        priced = np.flatnonzero(prices)
        rows, y = self.rows[priced], prices[priced]
        used = rows @ weights
        for _ in range(PRICINGS):
            missing = -gradient / (rows.T @ y)  # above 1 for a sensor that is charged too little
            y = y * ((rows @ (weights * missing**4)) / used) ** 0.25
        return Optimum(weights, value, Bounds.of(rows).certified(value, gradient, weights, y), prices)


def _best(moves: LocationError, rows: FloatArray) -> Optimum:
    """The best weights of one tile, from few conditions at first; prices are for all of them."""
    few = moves.thinned(MAX_SLOPES)
    each = np.arange(rows.shape[1])
    steepest = np.argsort(rows.sum(axis=1))[-3 * len(each) :]
    chosen = np.union1d(steepest, rows.argmax(axis=0))
    for _ in range(_ROUNDS):
        optimum = best_weights(few, Bounds.of(rows[chosen]), each, enough=ENOUGH)
        shifts = rows @ optimum.weights
        more = np.setdiff1d(np.flatnonzero(shifts > 1 + _SLACK), chosen)
        if not len(more):
            break
        chosen = np.concatenate([chosen, more[np.argsort(shifts[more])[-len(each) :]]])
    prices = np.zeros(len(rows))
    prices[chosen] = optimum.prices
    return Optimum(optimum.weights, optimum.value, optimum.bound, prices)


def _boxes(points: FloatArray, low: FloatArray, high: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Cut a box in halves until each has few points; together they cover it."""
    inside = points[_within(points, low, high)]
    if len(inside) <= IN_A_TILE:
        yield low, high
        return
    axis = int(np.argmax(np.ptp(inside, axis=0)))
    middle = float(np.median(inside[:, axis]))
    below, above = high.copy(), low.copy()
    below[axis] = above[axis] = middle
    yield from _boxes(points, low, below)
    yield from _boxes(points, above, high)


def _within(points: FloatArray, low: FloatArray, high: FloatArray) -> Places:
    return np.asarray(((points >= low) & (points < high)).all(axis=1))
