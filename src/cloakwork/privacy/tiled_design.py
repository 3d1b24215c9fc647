"""Noise design on floors with thousands of sensors: tile by tile."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import CalibrationError
from cloakwork.privacy.design import MAX_SLOPES, Search, best_weights, finite_noise
from cloakwork.privacy.interior_point import Bounds
from cloakwork.privacy.variance import LocationError

MAX_TOGETHER = 1_000  # sensors whose noise is searched for in one piece
IN_A_TILE = 150  # sensors of a tile, without its margin
ENOUGH = 3e-3  # relative gap at which the search of a tile stops
REDUCTIONS = 20  # rounds in which weights that exceed a condition are reduced
_ROUNDS, _SLACK = 8, 1e-3  # of adding conditions, and how far one may be exceeded before it is added
Places = NDArray[np.bool_]


def searched(search: Search) -> FloatArray:
    """The noise of each sensor, before scaling, from all sensors together or on a large floor tile by tile.

    Notes
    -----
    A steady field fades over its reach. So a tile of the floor with a margin of some reaches has nearly the best
    weights of the whole floor in its middle. Those of all tiles are put together, and reduced at the seams until they
    meet every condition of the whole.
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
    return _Tiles.of(search, physics.sensor_positions).noise()


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

    def noise(self) -> FloatArray:
        """The noise of each sensor, before scaling, from the weights of all tiles."""
        weights = np.zeros(len(self.sensors_at))
        for low, high in _boxes(self.sensors_at, np.full(2, -np.inf), np.full(2, np.inf)):
            sensors = np.flatnonzero(_within(self.sensors_at, low - self.margin, high + self.margin))
            places = np.flatnonzero(_within(self.places_at, low - self.margin, high + self.margin))
            conditions = np.flatnonzero(np.isin(self.owners, sensors))
            best = _best(self.moves.of_blocks(places).of_sensors(sensors), self.rows[conditions][:, sensors].toarray())
            core = _within(self.sensors_at[sensors], low, high)
            weights[sensors[core]] = best[core]
        return finite_noise(self._reduced(weights), self.rows)

    def _reduced(self, weights: FloatArray) -> FloatArray:
        """The weights, reduced until they meet all conditions, most for sensors that count most in one exceeded."""
        for _ in range(REDUCTIONS):
            parts = self.rows @ sparse.diags_array(weights)
            excess = np.maximum(0.0, np.asarray(parts.sum(axis=1)).ravel() - 1)
            largest = np.maximum(parts.max(axis=1).toarray().ravel(), 1e-300)
            factors = (sparse.diags_array(excess / largest) @ parts).max(axis=0).toarray().ravel()
            weights = weights / (1 + factors)
        return np.asarray(weights / float((self.rows @ weights).max()))


def _best(moves: LocationError, rows: FloatArray) -> FloatArray:
    """The best weights of one tile, from few conditions at first."""
    few = moves.thinned(MAX_SLOPES)
    each = np.arange(rows.shape[1])
    steepest = np.argsort(rows.sum(axis=1))[-3 * len(each) :]
    chosen = np.union1d(steepest, rows.argmax(axis=0))
    for _ in range(_ROUNDS):
        weights = best_weights(few, Bounds.of(rows[chosen]), each, enough=ENOUGH).weights
        shifts = rows @ weights
        more = np.setdiff1d(np.flatnonzero(shifts > 1 + _SLACK), chosen)
        if not len(more):
            break
        chosen = np.concatenate([chosen, more[np.argsort(shifts[more])[-len(each) :]]])
    return weights


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
