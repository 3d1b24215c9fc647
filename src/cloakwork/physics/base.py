"""What every model of physics offers: how sources become readings, and how fast readings change with place."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, IntArray, frames
from cloakwork.errors import InputError, PhysicsError
from cloakwork.physics.diffusion import CertifiedRows
from cloakwork.physics.space import Metric, Space
from cloakwork.physics.spectrum import Description, NumericalRange, SpectralBound, describe

MOST_RANGES = 32  # ranges of differently weighted models that are kept
CHUNK = 2_000_000  # numbers held at once while columns of neighbouring places are compared


@dataclass(frozen=True)
class Slope:
    """The fastest change of the readings per unit of distance that a unit source moves.

    `value` is rounded outward; `pair` are the two places between which it happens
    (the nearest two where the maximum is taken over a continuum).
    """

    value: float
    pair: tuple[int, int]


class Physics(ABC):
    """A linear map from n places to m sensors, y = M f.

    A concrete model gives `space`, `matrix` and `error`; everything else follows. Arrays of
    sources have places on the last axis, arrays of readings have sensors there; any axes
    before it are frames.
    """

    @property
    @abstractmethod
    def space(self) -> Space:
        """Where sources may be."""

    @property
    @abstractmethod
    def matrix(self) -> FloatArray:
        """M, one row a sensor and one column a place, read-only."""

    @property
    @abstractmethod
    def error(self) -> float:
        """Bound on the spectral norm of (computed M - exact M)."""

    @abstractmethod
    def with_spread(self, factor: float) -> Self:
        """The same model with its diffusion (T, tau, or the square of a length) multiplied by `factor`."""

    @property
    def covers_the_plane(self) -> bool:
        """Whether this model finds its slopes over all of a plane itself, and not from pairs of neighbours."""
        return False

    def columns_at(self, positions: FloatArray) -> FloatArray | None:
        """Columns of M for unit sources anywhere, shape (m, p) for positions (p, dimension).

        None where a source can only be at one of the places.
        """
        del positions
        return None

    @property
    def places(self) -> int:
        """Number of places, n."""
        return int(self.matrix.shape[1])

    @property
    def sensors(self) -> int:
        """Number of sensors, m."""
        return int(self.matrix.shape[0])

    def apply(self, sources: ArrayLike) -> FloatArray:
        """The true readings that sources cause: shape (..., n) in, (..., m) out."""
        return np.asarray(frames("sources", sources, self.places) @ self.matrix.T)

    def adjoint(self, readings: ArrayLike) -> FloatArray:
        """M' y: shape (..., m) in, (..., n) out."""
        return np.asarray(frames("readings", readings, self.sensors) @ self.matrix)

    def range(self, weights: FloatArray | None = None) -> NumericalRange:
        """The numerical range of M (of diag(weights) M when given), computed once for each `weights`."""
        key = None if weights is None else weights.tobytes()
        if key not in self._ranges:
            if len(self._ranges) >= MOST_RANGES:
                self._ranges.pop(next(iter(self._ranges)), None)
            scaled = self.matrix if weights is None else self.matrix * weights[:, None]
            self._ranges[key] = NumericalRange.of_matrix(scaled)
        return self._ranges[key]

    @cached_property
    def _ranges(self) -> dict[bytes | None, NumericalRange]:
        return {}

    def describe(self) -> Description:
        """Rank, spectrum, condition number, coherence, steepest slope, and the spectral bounds that hold."""
        return describe(self.matrix, self.space, self.joint_slope().value, self.range(), self.bounds())

    def bounds(self) -> tuple[SpectralBound, ...]:
        """Bounds on the slope that this kind of model has beyond the general ones."""
        return ()

    def rows(self, sensors: IntArray) -> CertifiedRows:
        """Rows of M for sensors placed at the given places instead, shape (len(sensors), n), with their error."""
        raise PhysicsError(
            f"{type(self).__name__} has fixed sensors: rows for {len(sensors)} other places are not known."
        )

    def pair_columns(self) -> Iterator[tuple[slice, FloatArray]]:
        """Go through the neighbour pairs in pieces: (which pairs, columns M_i - M_j with shape (m, pairs))."""
        n, distinct = len(self.space), self.space.adjacency.nnz // 2
        if self.space.metric is Metric.PLANE and distinct < n * (n - 1) // 2 and not self.covers_the_plane:
            raise PhysicsError(
                f"{type(self).__name__} over a plane needs all pairs of places: with Euclidean distance, neighbours "
                "alone understate the sensitivity by up to sqrt 2. Give all pairs, or use Metric.PATH."
            )
        yield from column_differences(self.matrix, self.space)

    def pair_slopes(self, weights: FloatArray | None = None) -> FloatArray:
        """||diag(weights) (M_i - M_j)||_2 / d(i, j) for each neighbour pair, shape (p,)."""
        slopes = np.empty(len(self.space.pairs))
        for which, columns in self.pair_columns():
            scaled = columns if weights is None else columns * weights[:, None]
            slopes[which] = np.sqrt((scaled**2).sum(axis=0)) / self.space.lengths[which]
        return slopes

    def joint_slope(self, weights: FloatArray | None = None, *, displacement: float = 0.0) -> Slope:
        """Steepest change of all readings together: the largest slope in the l2 norm, rounded outward.

        `weights` multiplies the sensors first (1/sigma when they differ); `displacement` is how far
        each sensor may be from where the model puts it.
        """
        largest = 1.0 if weights is None else float(np.max(weights))
        if displacement == 0:
            return self._outward(self.pair_slopes(weights), largest * self.error)
        moved = self._displaced(displacement)
        columns = moved.values if weights is None else moved.values * weights[:, None]
        slopes = np.sqrt((columns**2).sum(axis=0)) / self.space.lengths
        return self._outward(slopes, largest * moved.error * math.sqrt(self.sensors))

    def sensor_slopes(self, *, displacement: float = 0.0) -> FloatArray:
        """Steepest change of each sensor's own reading, shape (m,), rounded outward."""
        steepest, error = np.zeros(self.sensors), self.error
        if displacement > 0:
            moved = self._displaced(displacement)
            steepest, error = (moved.values / self.space.lengths).max(axis=1, initial=0.0), moved.error
        else:
            for which, columns in self.pair_columns():
                steepest = np.maximum(steepest, (np.abs(columns) / self.space.lengths[which]).max(axis=1))
        return np.asarray((steepest + self._slack(error)) * (1 + 1e-12))

    def _slack(self, error: float) -> float:
        """What an error of M in the spectral norm can do to a slope."""
        return float(np.sqrt(2) * error / self.space.lengths.min(initial=np.inf))

    def _outward(self, slopes: FloatArray, error: float) -> Slope:
        if not len(slopes):
            return Slope(0.0, (0, 0))
        steepest = int(np.argmax(slopes))
        i, j = (int(k) for k in self.space.pairs[steepest])
        return Slope(float((slopes[steepest] + self._slack(error)) * (1 + 1e-12)), (i, j))

    def _displaced(self, distance: float) -> CertifiedRows:
        """Largest |M_li - M_lj| when sensor l may stand at any place within `distance`, shape (m, p)."""
        nearby = self.nearby_places(distance)
        stood = np.unique(np.concatenate(nearby))
        moved = self.rows(stood)
        largest = np.zeros((self.sensors, len(self.space.pairs)))
        for which, columns in column_differences(moved.values, self.space):
            for sensor, places in enumerate(nearby):
                largest[sensor, which] = np.abs(columns[np.searchsorted(stood, places)]).max(axis=0)
        return CertifiedRows(largest, moved.error)

    def nearby_places(self, distance: float) -> list[IntArray]:
        """For each sensor the places within `distance` of it."""
        raise PhysicsError(
            f"{type(self).__name__} does not know where its sensors are: leave out position errors ({distance:g})."
        )


def column_differences(matrix: FloatArray, space: Space) -> Iterator[tuple[slice, FloatArray]]:
    """Columns of neighbours subtracted, a bounded piece at a time."""
    step = max(1, CHUNK // max(1, matrix.shape[0]))
    for start in range(0, len(space.pairs), step):
        which = slice(start, start + step)
        i, j = space.pairs[which].T
        yield which, matrix[:, i] - matrix[:, j]


def sources(physics: Physics, at: Sequence[object], weights: ArrayLike | None = None) -> FloatArray:
    """A map with sources at the given positions (or nodes), shape (n,).

    Parameters
    ----------
    at
        Positions: numbers on a line, (x, y) on a plane or floor plan, node names on a graph.
        Each source is put on the nearest place.
    weights
        Strength of each source; 1 when left out. Zero or more.

    Examples
    --------
    >>> from cloakwork.physics import HeatLine
    >>> sources(HeatLine(n=4, m=2, T=0.1), [0.25, 1.0]).tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    if isinstance(at, str) or not isinstance(at, Sequence | np.ndarray):
        raise InputError(f"at={at!r}: give a list of positions, such as [{at!r}].", at=at)
    given = np.ones(len(at)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != (len(at),):
        raise InputError(f"{len(at)} positions but weights of shape {given.shape}: give one weight a position.")
    bad = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
    if len(bad):
        raise InputError(f"weights[{bad[0]}] is {given[bad[0]]}: a source's weight is finite and 0 or above.")
    places = [physics.space.index(position) for position in at]
    return np.bincount(np.array(places, dtype=np.int64), weights=given, minlength=physics.places).astype(np.float64)
