"""Readings in units of their noise: what every statistical limit is made of."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.physics import Physics, Space

CHUNK = 250_000  # numbers held at once, few enough to stay in a processor's cache


@dataclass(frozen=True, eq=False)
class Whitened:
    """The readings of a unit source at each place, divided by the noise of each sensor.

    Parameters
    ----------
    sigma
        Standard deviation of each sensor's noise, shape (m,).
    columns
        M' / sigma, one row a place, shape (n, m).
    """

    physics: Physics
    sigma: FloatArray
    columns: FloatArray

    @property
    def space(self) -> Space:
        """Where the sources are."""
        return self.physics.space

    @cached_property
    def squares(self) -> FloatArray:
        """Squared length of each place's readings, shape (n,)."""
        return np.asarray(np.einsum("ij,ij->i", self.columns, self.columns))

    @cached_property
    def error(self) -> float:
        """How far the readings of one place can be off because M is computed, in units of the noise."""
        return float(self.physics.error / self.sigma.min())

    def separations(self, first: IntArray, second: IntArray) -> FloatArray:
        """||(M_i - M_j) / sigma|| for pairs of places, rounded up, shape (pairs,)."""
        found = np.empty(len(first))
        step = max(1, CHUNK // self.columns.shape[1])
        for start in range(0, len(first), step):
            piece = slice(start, start + step)
            found[piece] = self.rounded_up(self.columns[first[piece]] - self.columns[second[piece]])
        return found

    def rounded_up(self, apart: FloatArray) -> FloatArray:
        """Length of each difference of two columns, with the error of both, shape (pairs,)."""
        lengths = np.sqrt(np.einsum("ij,ij->i", apart, apart))
        return np.asarray((lengths + np.sqrt(2) * self.error) * (1 + 1e-12))

    def separations_from(self, place: int) -> FloatArray:
        """The same from one place to all, not rounded, shape (n,): for searching."""
        squared = self.squares + self.squares[place] - 2 * (self.columns @ self.columns[place])
        return np.asarray(np.sqrt(np.maximum(squared, 0.0)))


def whiten(physics: Physics, sigma: ArrayLike) -> Whitened:
    """`physics` with its columns divided by the noise: one number for all sensors, or one each."""
    sigmas = sigma_of_each_sensor(physics, sigma)
    columns = np.empty((physics.places, physics.sensors))
    return Whitened(physics, sigmas, np.divide(physics.matrix.T, sigmas, out=columns))


def sigma_of_each_sensor(physics: Physics, sigma: ArrayLike) -> FloatArray:
    """`sigma` as an array with one value a sensor, shape (m,)."""
    _refuse_other_things(physics)
    m = physics.sensors
    advice = f"give one number above 0, or one for each of the {m} sensors."
    if isinstance(sigma, bool | str | bytes):
        raise InputError(f"sigma={sigma!r}: {advice}", sigma=sigma)
    try:
        given = np.asarray(sigma, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"sigma is not made of numbers: {advice}", sigma=sigma) from None
    if given.shape not in {(), (1,), (m,)}:
        raise InputError(f"sigma has shape {given.shape}: {advice}", sigma=sigma, sensors=m)
    bad = np.flatnonzero(~(np.isfinite(given.ravel()) & (given.ravel() > 0)))
    if len(bad):
        which = "sigma" if given.size == 1 else f"sigma[{bad[0]}]"
        raise InputError(f"{which}={float(given.ravel()[bad[0]])}: {advice}", sigma=sigma)
    return np.array(np.broadcast_to(given, (m,)))


def _refuse_other_things(physics: Any) -> None:
    if not isinstance(physics, Physics):
        raise InputError(
            f"the first argument is a {type(physics).__name__}: give a model such as HeatLine or FloorPlan "
            "(of a cloak, its `physics` and `sigma`)."
        )


def refuse_one_place(physics: Physics) -> None:
    """Where there is one place only, there is nothing to find out."""
    if len(physics.space) < 2:
        raise InputError("the space has one place: there is nothing to locate. Give a model with two places or more.")
