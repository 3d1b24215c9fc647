"""Readings in units of their noise, and how far apart those of two places are: the base of every statistical limit."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.physics import Physics, Space

CHUNK = 250_000  # numbers held at once, few enough to stay in a processor's cache
SHARE = 0.9  # of errors that a radius holds
UNSURE = 2 * float(special.ndtri(SHARE))  # 2.563: closer readings than this are mixed up more often than 10 %
NOTHING = 1e-9  # readings this close, in units of the noise, are the same
MOST_WORK = 40_000_000  # numbers gone through when a sample of the places is taken


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


@dataclass(frozen=True, eq=False)
class PlaceComparison:
    """How far every other place is, and how far its readings are from those of one place.

    Parameters
    ----------
    distances
        Along the space, shape (n,); infinite where no path leads.
    separations
        ||(s M_i - t M_j) / sigma||, rounded up, shape (n,).
    """

    distances: FloatArray
    separations: FloatArray

    @property
    def std(self) -> float:
        """Least standard deviation of an unbiased estimate of how far the source is from the place.

        Notes
        -----
        sup over j of d(i, j) / sqrt(exp(separation^2) - 1), the bound of Hammersley and of Chapman and Robbins: the
        chi-square divergence of two normal laws is exp(separation^2) - 1. Infinite where another place reads the same.
        """
        others = np.isfinite(self.distances) & (self.distances > 0)
        separations = np.where(self.separations[others] > NOTHING, self.separations[others], 0.0)
        with np.errstate(over="ignore", divide="ignore"):
            bounds = self.distances[others] / np.sqrt(np.expm1(separations**2))
        return float(bounds.max(initial=0.0))

    @property
    def radius(self) -> float:
        """No method finds the source to within less than this nine times in ten, both here and at the other place.

        Notes
        -----
        To be within d/2 of the truth at i and at j is to tell i from j, and the best test errs with Phi(-separation/2).
        """
        mixed = np.isfinite(self.distances) & (self.separations < UNSURE)
        return float(self.distances[mixed].max(initial=0.0) / 2)

    @property
    def mean_error(self) -> float:
        """No method has a smaller mean distance to the truth both here and at the other place (Le Cam)."""
        return float(two_point_errors(self.distances, self.separations).max(initial=0.0))


def two_point_errors(distances: FloatArray, separations: FloatArray) -> FloatArray:
    """D Phi(-separation / 2), and 0 where no path leads."""
    return np.where(np.isfinite(distances), distances, 0.0) * special.ndtr(-separations / 2)


def compare_places(
    whitened: Whitened, place: int, *, strength: float = 1.0, strengths_known: bool = True
) -> PlaceComparison:
    """One place against all; an unknown strength may differ at the other place, which makes it harder to tell."""
    here, columns = whitened.columns[place], whitened.columns
    others = np.ones(len(columns))
    if not strengths_known:
        others = np.maximum(columns @ here, 0.0) / np.where(whitened.squares > 0, whitened.squares, 1.0)
    found = np.empty(len(columns))
    step = max(1, CHUNK // len(here))
    for start in range(0, len(columns), step):
        piece = slice(start, start + step)
        apart = here - others[piece, None] * columns[piece]
        found[piece] = np.einsum("ij,ij->i", apart, apart)
    rounded = (np.sqrt(found) + np.hypot(1, others) * whitened.error) * (1 + 1e-12)
    return PlaceComparison(whitened.space.distances(place), strength * rounded)


def spread_places(n: int, most: int) -> IntArray:
    """Up to `most` of n places, spread evenly: multiples of the golden ratio hit no row or column of a grid twice."""
    if n <= most:
        return np.arange(n)
    golden = (np.sqrt(5) - 1) / 2
    return np.unique((n * ((np.arange(most) * golden) % 1)).astype(np.int64))


def sample_size(whitened: Whitened) -> int:
    """How many places can be compared with all others in a moment."""
    return int(np.clip(MOST_WORK // whitened.columns.size, 12, 256))
