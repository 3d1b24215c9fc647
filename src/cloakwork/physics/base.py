"""The interface of every model: how sources become readings, and how fast readings change with place."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse

from cloakwork._checks import FloatArray, IntArray, frames, read_only
from cloakwork._method_cache import memoize
from cloakwork.errors import InputError, PhysicsError
from cloakwork.physics.diffusion import CertifiedRows
from cloakwork.physics.later_readings import LaterMoves, SlopeBounds
from cloakwork.physics.moves import Moves, RowMoves, Steps, TravellingMoves, pieces_of, shortest
from cloakwork.physics.space import Metric, Space

if TYPE_CHECKING:
    from cloakwork.physics.rooms import Rooms

MAX_RANGES = 32  # cached ranges of differently weighted models
RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class NumericalRange:
    """M = basis @ reduced, without singular values below 1e-10 of the largest.

    `basis` (m, rank) has orthonormal columns; `reduced` = S V' (rank, n) is much smaller than M.
    """

    basis: FloatArray
    reduced: FloatArray

    @classmethod
    def of_matrix(cls, matrix: FloatArray) -> "NumericalRange":
        """Compute the range of a matrix; a matrix of zeros has rank 0."""
        left, values, right = linalg.svd(matrix, full_matrices=False, lapack_driver="gesdd")
        rank = int((values > RANK_TOLERANCE * values[0]).sum()) if values[0] > 0 else 0
        basis, reduced = left[:, :rank], values[:rank, None] * right[:rank]
        return cls(read_only(np.ascontiguousarray(basis)), read_only(np.ascontiguousarray(reduced)))

    @property
    def rank(self) -> int:
        """Number of singular values above 1e-10 of the largest."""
        return int(self.reduced.shape[0])


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

    only_listed: ClassVar[bool] = True
    """Whether the model has readings of its places and does not know how they change on the way between them."""
    stretch: ClassVar[float] = 1.0
    """The factor by which a straight line can be longer when measured in the metric of the space."""

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
    def near(self) -> sparse.csc_array | None:
        """The entries of M that matter, shape (m, n), where M is too large to form; None where it is formed."""
        return None

    @property
    def fade(self) -> float:
        """The distance beyond which hardly anything of a source is left in the readings; infinite if not known."""
        return math.inf

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

    def columns_at(self, positions: FloatArray) -> FloatArray | None:
        """Columns of M for unit sources at any `positions` (p, dimension), shape (m, p); None without a formula."""
        del positions
        return None

    def columns_near(self, positions: FloatArray, places: IntArray) -> FloatArray:
        """`columns_at` these positions (p, dimension) or, without a formula, those of their `places` (p,)."""
        columns = self.columns_at(positions)
        return self.matrix[:, places] if columns is None else columns

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

    def rows(self, sensors: IntArray) -> CertifiedRows:
        """Rows of M for sensors at other places, shape (len(sensors), n), with their error."""
        raise PhysicsError(f"{type(self).__name__} has fixed sensors: they cannot move.", sensors=sensors)

    def moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        """How fast readings change as a source moves.

        `position` is the largest distance of a sensor from its modelled position, and `travel` the longest way of a
        source between the readings of one frame.
        """
        still, regions = self.steps(position), partial(self.regions, position=position)
        if not travel:
            return still
        if self.convex:
            return replace(regions(travel), alone=still.each)
        return TravellingMoves(still, regions, travel, self.stretch)

    def later_moves(self, *, position: float = 0.0, travel: float = 0.0) -> Moves:
        """The moves at the model's time after the emission of a pulse and at all later times.

        With an infinite `travel`, sensors count one by one: only `each` has a meaning.
        """
        del travel  # shortest paths may jump, so that sensors count one by one
        if self.slope_bounds(position) is None:
            raise PhysicsError(
                f"{type(self).__name__} is not known to be a pulse: leave `later` out of the tolerance.", later=True
            )
        return LaterMoves(self, position)

    def slope_bounds(self, position: float) -> SlopeBounds | None:
        """Bounds on all slopes from now on, with sensors within `position` of theirs; None if not a fading pulse."""
        del position
        return None

    def steps(self, position: float = 0.0) -> Steps:
        """The steps between neighbours, with each sensor at its steepest within `position` of its own."""
        n, distinct = len(self.space), self.space.adjacency.nnz // 2
        if self.space.metric is Metric.PLANE and distinct < n * (n - 1) // 2 and not self.anywhere:
            raise PhysicsError(
                f"{type(self).__name__} over a plane needs all pairs of places: with Euclidean distance, neighbours "
                "alone understate the sensitivity by up to sqrt 2. Give all pairs, or use Metric.PATH.",
                pairs=distinct,
            )
        if self.floor is None:
            self.space.refuse_parts("space", "Connect them by neighbour pairs.")
        if position > 0:
            return self._displaced(position)
        return RowMoves.between_neighbours(self.matrix, self.space, self.move_error)

    def regions(self, travel: float, *, position: float = 0.0) -> RowMoves:
        """Each sensor at its steepest within each region.

        Every set of positions with a diameter of at most `travel` lies within one region. Between neighbours a source
        counts as shared by both.

        Notes
        -----
        A region is a place with all pairs that have an end within `travel` of it. Of the positions of a set and the
        ends of their pairs, take those closest to each other: p and its end k, say. From k to the nearer end of the
        pair of any other position q the way is at most that from p to q, plus p to k, minus q to that end, so at most
        `travel`.
        """
        steps, slopes = self._listed(position)
        steepest = np.zeros((self.places, self.sensors))  # over the pairs of each place
        for end in self.space.pairs.T:
            np.maximum.at(steepest, end, slopes)
        near = self.space.distance_table <= travel * (1 + 1e-6)
        table = np.stack([steepest[row].max(axis=0) for row in near])
        return RowMoves.of(table, each_error=steps.each_error + steps.row_error)

    def _listed(self, position: float) -> tuple[RowMoves, FloatArray]:
        """The steps, and the magnitudes of all of their slopes, shape (steps, m)."""
        steps = self.steps(position)
        if not isinstance(steps, RowMoves):
            raise PhysicsError(
                f"{self.places:,} places are too many for sources that move while a frame is measured: use Timing().",
                places=self.places,
            )
        return steps, np.abs(np.concatenate(list(steps.rows())))

    @property
    def ages(self) -> "tuple[tuple[float, Physics], ...]":
        """Models of what sources of each age contribute to a reading, each with its share; empty if not known."""
        return ()

    @property
    def convex(self) -> bool:
        """Whether straight lines are shortest, so that points between two paths travel no further than the paths."""
        return self.space.metric is Metric.LINE

    @memoize(1)
    def _displaced(self, position: float) -> RowMoves:
        nearby, space = self.nearby_places(position), self.space
        places = np.unique(np.concatenate(nearby))
        moved, table = self.rows(places), np.zeros((len(space.pairs), self.sensors))
        for part in pieces_of(len(space.pairs), len(places)):
            i, j = space.pairs[part].T
            change = np.abs(moved.values[:, i] - moved.values[:, j])
            for sensor, cells in enumerate(nearby):
                table[part, sensor] = change[np.searchsorted(places, cells)].max(axis=0) / space.lengths[part]
        return RowMoves.of(table, each_error=math.sqrt(2) * moved.error / shortest(space), pairs=space.pairs)

    def nearby_places(self, distance: float) -> list[IntArray]:
        """The places within `distance` of each sensor."""
        raise PhysicsError(f"position={distance:g}: {type(self).__name__} has no sensor positions.", position=distance)


def _scaled(columns: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Columns (m, p) times factors (m,) or a matrix (m, m)."""
    if weights is None:
        return columns
    return weights @ columns if weights.ndim == 2 else columns * weights[:, None]


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
