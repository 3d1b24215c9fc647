"""Readings in units of their noise, and how far apart those of two places are: the base of every statistical limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.physics import Drift, FloorPlan, Physics, Space, pieces_of, whitener

CHUNK = 250_000  # numbers in memory at once: they fit into a processor's cache
SHARE = 0.9  # of errors within a radius
UNSURE = 2 * float(special.ndtri(SHARE))  # 2.563: closer readings are confused more often than 10 %
NOTHING = 1e-9  # readings this close, in units of the noise, are equal
MOST_WORK = 40_000_000  # numbers read for a sample of the places


@dataclass(frozen=True, eq=False)
class Whitened:
    """The readings of a unit source at each place in units of the noise: `columns` = M' / sigma (n, m).

    With offsets that drift, `weights` (m, m) whitens them and the noise `sigma` (m,) together.
    """

    physics: Physics
    sigma: FloatArray
    weights: FloatArray | None = None

    @cached_property
    def columns(self) -> FloatArray:
        return self.whiten(self.physics.matrix.T)

    def at(self, places: IntArray) -> FloatArray:
        """The rows of `columns` for some places, shape (k, m); a large floor forms no others."""
        if isinstance(self.physics, FloorPlan) and self.physics.local is not None:
            return self.whiten(self.physics.local.columns[:, places].toarray().T)
        return self.columns[places]

    def whiten(self, readings: FloatArray) -> FloatArray:
        """Readings (..., m) in units of the noise."""
        return np.asarray(readings / self.sigma if self.weights is None else readings @ self.weights.T)

    @property
    def space(self) -> Space:
        return self.physics.space

    @cached_property
    def squares(self) -> FloatArray:
        """Squared norm of the readings of each place, shape (n,)."""
        return np.asarray(np.einsum("ij,ij->i", self.columns, self.columns))

    @cached_property
    def error(self) -> float:
        """Bound on the error of the readings of a place from computing M, in units of the noise."""
        error = self.physics.error if self.physics.explicit else self.physics.move_error
        return float(error / self.sigma.min())

    def separations(self, first: IntArray, second: IntArray) -> FloatArray:
        """||(M_i - M_j) / sigma|| for pairs of places, rounded up, shape (pairs,)."""
        separations = np.empty(len(first))
        for piece in pieces_of(len(first), self.columns.shape[1], CHUNK):
            separations[piece] = self.rounded_up(self.columns[first[piece]] - self.columns[second[piece]])
        return separations

    def rounded_up(self, apart: FloatArray) -> FloatArray:
        """Norm of each difference of two columns plus the error of both, shape (pairs,)."""
        lengths = np.sqrt(np.einsum("ij,ij->i", apart, apart))
        return np.asarray((lengths + np.sqrt(2) * self.error) * (1 + 1e-12))

    def separations_from(self, place: int) -> FloatArray:
        """Separations from one place to all, not rounded, shape (n,): for searching."""
        squared = self.squares + self.squares[place] - 2 * (self.columns @ self.columns[place])
        return np.asarray(np.sqrt(np.maximum(squared, 0.0)))


def whiten(physics: Physics, sigma: ArrayLike, drift: Drift | None = None) -> Whitened:
    """Divide the columns of a model by the noise: one number, one per sensor, or a root (m, m) of its covariance."""
    sigmas = sigma_of_each_sensor(physics, sigma)
    if sigmas.ndim == 2:
        weights = np.asarray(np.linalg.inv(sigmas), dtype=np.float64)
        if drift is not None:
            weights = whitener(np.ones(len(sigmas)), weights @ drift.on(physics).factor) @ weights
        return Whitened(physics, np.full(len(sigmas), 1 / np.linalg.norm(weights, 2)), weights)
    return Whitened(physics, sigmas, None if drift is None else whitener(sigmas, drift.on(physics).factor))


def sigma_of_each_sensor(physics: Physics, sigma: ArrayLike) -> FloatArray:
    """`sigma` as an array with one value per sensor, shape (m,); or as a root (m, m) of its covariance."""
    if not isinstance(physics, Physics):
        raise InputError(
            f"{type(physics).__name__} is no model: give a HeatLine or FloorPlan, say (of a cloak, its `physics`).",
            physics=type(physics).__name__,
        )
    m = physics.sensors
    advice = f"give one number above 0, or one for each of the {m} sensors."
    if isinstance(sigma, bool | str | bytes):
        raise InputError(f"sigma={sigma!r}: {advice}", sigma=sigma)
    try:
        sigmas = np.asarray(sigma, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"sigma is not made of numbers: {advice}", sigma=sigma) from None
    if sigmas.shape == (m, m) and m > 1 and np.isfinite(sigmas).all() and np.linalg.matrix_rank(sigmas) == m:
        return sigmas
    if sigmas.shape not in {(), (1,), (m,)}:
        raise InputError(f"sigma has shape {sigmas.shape}: {advice}", sigma=sigma, sensors=m)
    bad = np.flatnonzero(~(np.isfinite(sigmas.ravel()) & (sigmas.ravel() > 0)))
    if len(bad):
        which = "sigma" if sigmas.size == 1 else f"sigma[{bad[0]}]"
        raise InputError(f"{which}={float(sigmas.ravel()[bad[0]])}: {advice}", sigma=sigma)
    return np.array(np.broadcast_to(sigmas, (m,)))


def check_positions(at: Sequence[object]) -> Sequence[object]:
    """`at`, refused unless it is a list of one position or more."""
    if isinstance(at, str) or not isinstance(at, Sequence | np.ndarray) or not len(at):
        raise InputError(f"at={at!r}: give a list of one position or more.", at=at)
    return at


def refuse_one_place(physics: Physics) -> None:
    """Refuse a space with a single place, where there is nothing to locate."""
    if len(physics.space) < 2:
        raise InputError("the space has one place: give a model with two places or more.", places=len(physics.space))


@dataclass(frozen=True, eq=False)
class PlaceComparison:
    """One place against all: `distances` along the space (infinite without a path) and `separations`, shape (n,).

    A separation is ||(s M_i - t M_j) / sigma||, rounded up.
    """

    distances: FloatArray
    separations: FloatArray

    @property
    def std(self) -> float:
        """Least standard deviation of an unbiased estimate of the distance of the source from the place.

        sup over j of d(i, j) / sqrt(exp(separation^2) - 1), the bound of Hammersley and of Chapman and Robbins: the
        chi-square divergence of two normal laws is exp(separation^2) - 1. Infinite if another place reads the same.
        """
        others = np.isfinite(self.distances) & (self.distances > 0)
        separations = np.where(self.separations[others] > NOTHING, self.separations[others], 0.0)
        with np.errstate(over="ignore", divide="ignore"):
            bounds = self.distances[others] / np.sqrt(np.expm1(separations**2))
        return float(bounds.max(initial=0.0))

    @property
    def radius(self) -> float:
        """No method locates the source more exactly nine times in ten, both here and at the other place.

        An estimate within d/2 of the truth at both i and j separates i from j; the best test errs with
        Phi(-separation/2).
        """
        mixed = np.isfinite(self.distances) & (self.separations < UNSURE)
        return float(self.distances[mixed].max(initial=0.0) / 2)

    @property
    def mean_error(self) -> float:
        """No method has a smaller mean distance to the truth, both here and at the other place (Le Cam)."""
        return float(two_point_errors(self.distances, self.separations).max(initial=0.0))


def two_point_errors(distances: FloatArray, separations: FloatArray) -> FloatArray:
    """Two-point bounds d Phi(-separation / 2); 0 without a path."""
    return np.where(np.isfinite(distances), distances, 0.0) * special.ndtr(-separations / 2)


def compare_places(
    whitened: Whitened, place: int, *, strength: float = 1.0, strengths_known: bool = True
) -> PlaceComparison:
    """Compare one place with all; an unknown strength may differ at the other place, which makes it harder."""
    here, columns = whitened.columns[place], whitened.columns
    others = np.ones(len(columns))
    if not strengths_known:
        others = np.maximum(columns @ here, 0.0) / np.where(whitened.squares > 0, whitened.squares, 1.0)
    squares = np.empty(len(columns))
    for piece in pieces_of(len(columns), len(here), CHUNK):
        apart = here - others[piece, None] * columns[piece]
        squares[piece] = np.einsum("ij,ij->i", apart, apart)
    rounded = (np.sqrt(squares) + np.hypot(1, others) * whitened.error) * (1 + 1e-12)
    return PlaceComparison(whitened.space.distances(place), strength * rounded)


def longest_path(space: Space) -> float:
    """About the largest distance of two places along the space: from the place that is farthest from the first."""
    far = space.distances(0)
    reached = space.distances(int(np.argmax(np.where(np.isfinite(far), far, -1.0))))
    return float(reached[np.isfinite(reached)].max())


def spread_places(n: int, most: int) -> IntArray:
    """Up to `most` of n places, spread evenly by multiples of the golden ratio."""
    if n <= most:
        return np.arange(n)
    golden = (np.sqrt(5) - 1) / 2
    return np.unique((n * ((np.arange(most) * golden) % 1)).astype(np.int64))


def sample_size(whitened: Whitened) -> int:
    """The number of places that can be compared with all others quickly."""
    return int(np.clip(MOST_WORK // whitened.columns.size, 12, 256))
