"""The interface of every model: how sources become readings, and how fast readings change with place."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray, frames
from cloakwork._method_cache import memoize
from cloakwork.errors import InputError, PhysicsError
from cloakwork.physics.diffusion import CertifiedRows
from cloakwork.physics.space import Metric, Space
from cloakwork.physics.spectrum import Description, NumericalRange, SpectralBound, describe

if TYPE_CHECKING:
    from cloakwork.physics.rooms import Rooms

MAX_RANGES = 32  # cached ranges of differently weighted models
CHUNK = 2_000_000  # numbers in memory at once while neighbouring columns are compared


@dataclass(frozen=True)
class Slope:
    """The steepest change of the readings per unit of distance that a unit source moves, rounded up.

    `pair` holds the two places between which it occurs, or the two nearest ones if sources may be anywhere.
    """

    value: float
    pair: tuple[int, int]


class Physics(ABC):
    """A linear map from n places to m sensors, y = M f.

    A model defines `space` and `matrix`. Everything else has a default that is safe: what a model does not know, it
    refuses. Add `from_site` to name it in a site file, `sensor_positions` to see its sensors on maps, and `with_spread`
    for a tolerance of diffusion. The last axis of an array of sources runs over places, that of readings over sensors;
    axes before it are frames.

    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=100, m=50, T=0.05)
    >>> isinstance(line, Physics), line.matrix.shape, line.apply(sources(line, [0.3])).shape
    (True, (50, 100), (50,))
    """

    @property
    @abstractmethod
    def space(self) -> Space:
        """The places where sources may be, and the distances between them."""

    @property
    @abstractmethod
    def matrix(self) -> FloatArray:
        """M, shape (m, n), read-only: one row per sensor, one column per place."""

    @property
    def error(self) -> float:
        """Bound on the spectral norm of (computed M - exact M); by default, of eight roundings of each entry."""
        return float(8 * np.finfo(float).eps * np.linalg.norm(self.matrix))

    @property
    def move_error(self) -> float:
        """Bound on the l2 norm of the error of M_i - M_j, for any neighbours i and j."""
        return math.sqrt(2) * self.error

    @classmethod
    def from_site(
        cls, options: Mapping[str, Any], *, sensors_at: Sequence[Any], gain: float, folder: Path
    ) -> "Physics":
        """Make the model of a site file that names this class as the `kind` of its physics.

        Parameters
        ----------
        options
            The other keys of `[physics]`.
        sensors_at
            `at` of each `[[sensor]]`.
        gain
            Strength of the strongest source, which is the unit source of the model.
        folder
            Where the site file is, with the files that it names.
        """
        del sensors_at, gain, folder
        raise PhysicsError(f"{cls.__name__} has no from_site: define it to use it in a site file.", options=options)

    def with_spread(self, factor: float) -> Self:
        """The same model with its diffusion (T, tau, or the square of a length) multiplied by `factor`."""
        raise PhysicsError(
            f"{type(self).__name__} has no diffusion to vary: give the tolerance as a gain.", factor=factor
        )

    @property
    def sensor_positions(self) -> FloatArray | None:
        """Coordinates of the sensors, shape (m, dimension); None if the model does not know them."""
        return None

    @property
    def sensor_places(self) -> IntArray | None:
        """The place of each sensor, shape (m,); None if sensors are not at places."""
        return None

    @property
    def floor(self) -> "Rooms | None":
        """The rooms of a floor plan, with their walls and doors; None elsewhere."""
        return None

    @property
    def extent(self) -> tuple[float, ...]:
        """The size of the space along each axis, which begins at 0; empty if it has none."""
        return ()

    @property
    def length_unit(self) -> str:
        """The unit of distances, such as "m"; empty if it is not known."""
        return "" if self.floor is None else "m"

    @property
    def anywhere(self) -> bool:
        """Whether sources may be between the places too."""
        return False

    @property
    def only_listed(self) -> bool:
        """Whether the model has readings of its places and does not know how they change on the way between them."""
        return True

    @property
    def near(self) -> sparse.csc_array | None:
        """The entries of M that matter, shape (m, n), where M is too large to form; None where it is formed."""
        return None

    @property
    def pulse(self) -> bool:
        """Whether the model is known to be that of a pulse, whose readings change with the time after its emission."""
        return False

    @property
    def lag(self) -> float:
        """Time constant, in seconds, with which readings follow the sources. Simulations use it; noise does not."""
        return 0.0

    @property
    def explicit(self) -> bool:
        """Whether M is small enough to be formed; otherwise only `apply` and `adjoint` are available."""
        return True

    def looseness(self) -> float:
        """How far the joint slope may exceed the steepest one, as a factor; more than 1 where it is sketched."""
        return 1.0

    @property
    def doubt(self) -> float:
        """The probability that a slope from a random sketch is understated; a cloak takes it off delta."""
        return 0.0

    @property
    def covers_the_plane(self) -> bool:
        """Whether the model computes slopes over a whole plane rather than from pairs of neighbours."""
        return False

    def columns_at(self, positions: FloatArray) -> FloatArray | None:
        """Columns of M for unit sources at any `positions` (p, dimension), shape (m, p); None without a formula."""
        del positions
        return None

    def gradients_at(self, positions: FloatArray) -> FloatArray | None:
        """Derivatives of `columns_at` along each axis, shape (p, dimension, m); None without a formula."""
        del positions
        return None

    def place_at(self, at: object) -> int:
        """Return the place of a position as a site file gives it: coordinates, a number or the label of a node."""
        return self.space.index(at)

    def with_doors_shut(self, doors: Sequence[int]) -> Self:
        """Return the model with some doors shut; only a floor plan has doors."""
        del doors
        raise PhysicsError(f"{type(self).__name__} has no doors: leave doors out of the tolerance.", doors=True)

    @property
    def rank(self) -> int:
        """The numerical rank of M."""
        return self.range().rank

    @property
    def peak(self) -> float:
        """The largest reading of a unit source."""
        return float(np.abs(self.matrix).max(initial=0.0))

    @property
    def places(self) -> int:
        """Number of places, n."""
        return len(self.space)

    @property
    def sensors(self) -> int:
        """Number of sensors, m."""
        return int(self.matrix.shape[0])

    def apply(self, sources: ArrayLike) -> FloatArray:
        """True readings of the sources: shape (..., n) in, (..., m) out."""
        return np.asarray(frames("sources", sources, self.places) @ self.matrix.T)

    def adjoint(self, readings: ArrayLike) -> FloatArray:
        """M' y: shape (..., m) in, (..., n) out."""
        return np.asarray(frames("readings", readings, self.sensors) @ self.matrix)

    @memoize(MAX_RANGES)
    def range(self, weights: FloatArray | None = None, /) -> NumericalRange:
        """The numerical range of M, of diag(weights) M or, with a matrix (m, m), of weights M; cached per `weights`."""
        return NumericalRange.of_matrix(_scaled(self.matrix, weights))

    def describe(self) -> Description:
        """Rank, spectrum, condition number, coherence, steepest slope and spectral bounds."""
        return describe(self.matrix, self.space, self.joint_slope().value, self.range(), self.bounds())

    def bounds(self) -> tuple[SpectralBound, ...]:
        """Bounds on the slope that are specific to this kind of model."""
        return ()

    def rows(self, sensors: IntArray) -> CertifiedRows:
        """Rows of M for sensors at other places, shape (len(sensors), n), with their error."""
        raise PhysicsError(f"{type(self).__name__} has fixed sensors: they cannot move.", sensors=sensors)

    def pair_columns(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield the neighbour pairs in chunks: (which pairs, columns M_i - M_j of shape (m, pairs))."""
        n, distinct = len(self.space), self.space.adjacency.nnz // 2
        if self.space.metric is Metric.PLANE and distinct < n * (n - 1) // 2 and not self.covers_the_plane:
            raise PhysicsError(
                f"{type(self).__name__} over a plane needs all pairs of places: with Euclidean distance, neighbours "
                "alone understate the sensitivity by up to sqrt 2. Give all pairs, or use Metric.PATH.",
                pairs=distinct,
            )
        if self.floor is None and self.space.components().max() > 0:
            raise PhysicsError("the space has unconnected parts: connect them by neighbour pairs.", space=self.space)
        yield from column_differences(self.matrix, self.space)

    def pair_slopes(self, weights: FloatArray | None = None) -> FloatArray:
        """||weights (M_i - M_j)||_2 / d(i, j) for each neighbour pair, shape (p,), with a factor for each sensor."""
        slopes = np.empty(len(self.space.pairs))
        for which, columns in self.pair_columns():
            slopes[which] = np.sqrt((_scaled(columns, weights) ** 2).sum(axis=0)) / self.space.lengths[which]
        return slopes

    def joint_slope(self, weights: FloatArray | None = None, *, displacement: float = 0.0) -> Slope:
        """The steepest change of all readings together, in the l2 norm, rounded up.

        `weights` scales the sensors first (1/sigma if they differ); `displacement` is the largest distance of a sensor
        from its modelled position.
        """
        largest = 1.0 if weights is None else float(weights.max())
        if displacement == 0:
            return self._outward(self.pair_slopes(weights), largest * self.move_error)
        moved = self._displaced(displacement)
        slopes = np.sqrt((_scaled(moved.values, weights) ** 2).sum(axis=0)) / self.space.lengths
        return self._outward(slopes, largest * moved.error * math.sqrt(2 * self.sensors))

    def sensor_slopes(self, *, displacement: float = 0.0) -> FloatArray:
        """The steepest change of each sensor's own reading, shape (m,), rounded up."""
        steepest, error = np.zeros(self.sensors), self.move_error
        if displacement > 0:
            moved = self._displaced(displacement)
            steepest, error = (moved.values / self.space.lengths).max(axis=1, initial=0.0), math.sqrt(2) * moved.error
        else:
            for which, columns in self.pair_columns():
                steepest = np.maximum(steepest, (np.abs(columns) / self.space.lengths[which]).max(axis=1))
        return np.asarray((steepest + self._slack(error)) * (1 + 1e-12))

    @property
    def ages(self) -> "tuple[tuple[float, Physics], ...]":
        """Models of what sources of each age contribute to a reading, each with its share; empty if not known."""
        return ()

    @property
    def convex(self) -> bool:
        """Whether straight lines are shortest, so that points between two paths travel no further than the paths."""
        return self.covers_the_plane or self.space.metric is Metric.LINE

    @property
    def stretch(self) -> float:
        """The factor by which a straight line can be longer when measured in the metric of the space."""
        return 1.0

    def swept_slopes(self, travel: float, *, displacement: float = 0.0) -> CertifiedRows:
        """The steepest change of each sensor's reading within each region, shape (m, regions), not rounded up.

        Every set of positions with a diameter of at most `travel` lies within one region. Between neighbours a source
        counts as shared by both. The error is that of a single slope.

        Notes
        -----
        A region is a place with all pairs that have an end within `travel` of it. Of the positions of a set and the
        ends of their pairs, take those closest to each other: p and its end k, say. From k to the nearer end of the
        pair of any other position q the way is at most that from p to q, plus p to k, minus q to that end, so at most
        `travel`.
        """
        slopes = self.sensor_pair_slopes(displacement)
        steepest = np.zeros((self.sensors, len(self.space)))  # over the pairs of each place
        for end in self.space.pairs.T:
            np.maximum.at(steepest.T, end, slopes.values.T)
        near = self.space.distance_table <= travel * (1 + 1e-6)
        return CertifiedRows(np.stack([steepest[:, row].max(axis=1) for row in near], axis=1), slopes.error)

    def sensor_pair_slopes(self, displacement: float = 0.0) -> CertifiedRows:
        """|M_li - M_lj| / d(i, j) of each sensor and neighbour pair, shape (m, p), with the error of one slope."""
        if displacement > 0:
            moved = self._displaced(displacement)
            return CertifiedRows(moved.values / self.space.lengths, self._slack(math.sqrt(2) * moved.error))
        slopes = np.empty((self.sensors, len(self.space.pairs)))
        for which, columns in self.pair_columns():
            slopes[:, which] = np.abs(columns) / self.space.lengths[which]
        return CertifiedRows(slopes, self._slack(self.move_error))

    def _slack(self, error: float) -> float:
        """The effect on a slope of an error of a move."""
        return float(error / self.space.lengths.min(initial=np.inf))

    def _outward(self, slopes: FloatArray, error: float) -> Slope:
        if not len(slopes):
            return Slope(0.0, (0, 0))
        steepest = int(np.argmax(slopes))
        i, j = (int(k) for k in self.space.pairs[steepest])
        return Slope(float((slopes[steepest] + self._slack(error)) * (1 + 1e-12)), (i, j))

    @memoize(1)
    def _displaced(self, distance: float) -> CertifiedRows:
        """Largest |M_li - M_lj| over all places of sensor l within `distance`, shape (m, p)."""
        nearby = self.nearby_places(distance)
        positions = np.unique(np.concatenate(nearby))
        moved = self.rows(positions)
        largest = np.zeros((self.sensors, len(self.space.pairs)))
        for which, columns in column_differences(moved.values, self.space):
            for sensor, places in enumerate(nearby):
                largest[sensor, which] = np.abs(columns[np.searchsorted(positions, places)]).max(axis=0)
        return CertifiedRows(largest, moved.error)

    def nearby_places(self, distance: float) -> list[IntArray]:
        """The places within `distance` of each sensor."""
        raise PhysicsError(f"position={distance:g}: {type(self).__name__} has no sensor positions.", position=distance)


def _scaled(columns: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Columns (m, p) times factors (m,) or a matrix (m, m)."""
    if weights is None:
        return columns
    return weights @ columns if weights.ndim == 2 else columns * weights[:, None]


def pieces_of(rows: int, width: int, most: int | None = None) -> Iterator[slice]:
    """Cut rows into pieces of at most so many numbers in memory, usually `CHUNK`."""
    step = max(1, (most or CHUNK) // max(1, width))
    return (slice(start, start + step) for start in range(0, rows, step))


def column_differences(matrix: FloatArray, space: Space) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the differences between columns of neighbouring places, in chunks of bounded size."""
    for which in pieces_of(len(space.pairs), matrix.shape[0]):
        i, j = space.pairs[which].T
        yield which, matrix[:, i] - matrix[:, j]


def sources(physics: Physics, at: Sequence[object], weights: ArrayLike | None = None) -> FloatArray:
    """Build a map with sources at the given positions, shape (n,).

    Parameters
    ----------
    at
        Numbers on a line, (x, y) on a plane or floor plan, node names on a graph. Each source moves to the nearest
        place.
    weights
        Strength of each source, 0 or more; 1 by default.

    >>> from cloakwork.physics import HeatLine
    >>> sources(HeatLine(n=4, m=2, T=0.1), [0.25, 1.0]).tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    places = physics.space.indices(at)
    strengths = np.ones(len(at)) if weights is None else np.asarray(weights, dtype=np.float64)
    if strengths.shape != (len(at),):
        raise InputError(f"weights has shape {strengths.shape}: give one per position, {len(at)}.", weights=weights)
    bad = np.flatnonzero(~(np.isfinite(strengths) & (strengths >= 0)))
    if len(bad):
        raise InputError(f"weights[{bad[0]}] is {strengths[bad[0]]}: give a finite one, 0 or above.", weights=weights)
    return np.bincount(places, weights=strengths, minlength=physics.places).astype(np.float64)


def follow(readings: ArrayLike, *, seconds: float, lag: float) -> FloatArray:
    """Return readings (frames, m), `seconds` apart, as sensors show them that follow with a time constant `lag`.

    Before the first frame nothing changed.

    Notes
    -----
    shown_k = r shown_(k-1) + (1 - r) readings_k with r = exp(-seconds / lag): exact where readings change right after a
    frame and stay so until the next one.

    >>> follow([[0.0], [1.0], [1.0]], seconds=60.0, lag=60.0).round(3).ravel().tolist()
    [0.0, 0.632, 0.865]
    """
    shown = np.array(readings, dtype=np.float64)
    left = math.exp(-seconds / lag) if lag > 0 else 0.0
    for k in range(1, len(shown)):
        shown[k] += left * (shown[k - 1] - shown[k])
    return shown
