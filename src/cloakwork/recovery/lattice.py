"""Candidate positions of point sources: the places, finer candidates around them, and which are near each other."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial import cKDTree

from cloakwork._checks import FloatArray, IntArray
from cloakwork._method_cache import memoize
from cloakwork.errors import InputError
from cloakwork.physics import Metric, Space
from cloakwork.recovery.chain_moves import Candidates
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.summary import CandidateMetric

FINE = 5  # candidates along each axis around a place, if sources may be between places
REACH = 2.0  # length of a local move, in least standard deviations
MAX_NEAR = 64
FARTHER = 4  # unconnected parts are so many times as far apart as places within one
MAX_COARSE = 4_000  # coarse candidates, if the noise allows finer ones
MAX_PATH_PLACES = 6_000  # above this, a table of all distances along paths is too large


@dataclass(frozen=True, eq=False)
class Lattice:
    """Candidate positions of sources of strength up to `strongest`, with whitened columns in the range of the physics.

    `deviation` is the least standard deviation of a position that the noise allows (alpha / mu for a cloak). Sums over
    candidates that close together equal integrals over the space to many digits. `heat` multiplies the noise.
    """

    problem: Problem
    strongest: float
    heat: float = 1.0

    def whiten(self, inside: FloatArray) -> FloatArray:
        """Readings in the basis of the range, in units of the noise."""
        return np.asarray(inside / self._noise)

    @property
    def space(self) -> Space:
        return self.problem.physics.space

    @cached_property
    def deviation(self) -> float:
        """Least standard deviation of the position of one source along one axis."""
        columns, space = self.problem.range.reduced / self.problem.noise, self.space
        if not len(space.pairs):
            return math.inf
        i, j = space.pairs.T
        steepest = float((np.sqrt(((columns[:, i] - columns[:, j]) ** 2).sum(axis=0)) / space.lengths).max())
        return self.heat / (steepest * self.strongest) if steepest > 0 else math.inf

    @cached_property
    def warmer(self) -> "list[Lattice]":
        """Lattices for 2, 4, 8, ... times the noise, the noisiest first, where a source could be almost anywhere."""
        levels = math.ceil(math.log2(max(self.diameter / 8 / self.deviation, 2.0)))
        return [replace(self, heat=2.0**k * self.heat) for k in range(levels, 0, -1)]

    def nearest(self, candidates: IntArray, other: "Lattice") -> IntArray:
        """The candidates of another lattice over the same places that are nearest to those of this one."""
        if not other.between:
            return self.place[candidates]
        return np.asarray(other.tree.query(self.positions[candidates])[1], dtype=np.int64)

    @cached_property
    def tree(self) -> cKDTree:
        """The fine candidates, for searches by distance."""
        return cKDTree(self.positions)

    @cached_property
    def between(self) -> bool:
        """Whether sources may be between places."""
        spaced = bool(np.isfinite(self._spacing).all())
        return spaced and self.problem.physics.columns_at(self.space.places[:1]) is not None

    @cached_property
    def _spacing(self) -> FloatArray:
        """Distance between consecutive places along each axis."""
        return np.array([float(np.diff(np.unique(axis)).min(initial=math.inf)) for axis in self.space.places.T])

    @cached_property
    def parts(self) -> int:
        """Number of parts along each axis into which the cell of a place is cut, so that sums equal integrals."""
        if not self.between:
            return 1
        needed = math.ceil(min(float(self._spacing.max()) / self.deviation, 1e9) - 0.2)
        affordable = (MAX_COARSE / len(self.space)) ** (1 / self.space.dimension)
        return max(1, min(needed, int(affordable)))

    @property
    def blur(self) -> float:
        """Factor on the noise if it allows closer candidates than are affordable, else 1."""
        return max(1.0, float(self._spacing.max()) / self.parts / self.deviation / 1.2) if self.between else 1.0

    @cached_property
    def coarse_positions(self) -> FloatArray:
        """Coordinates of the coarse candidates: the places, unless the noise is very small."""
        return _cut(self.space.places, self._spacing, self.parts) if self.parts > 1 else self.space.places

    @cached_property
    def positions(self) -> FloatArray:
        """Coordinates of the fine candidates, grouped by coarse candidate."""
        if not self.between:
            return self.space.places
        return _cut(self.coarse_positions, self._spacing / self.parts, FINE)

    @cached_property
    def along(self) -> FloatArray:
        """First coordinate of the fine candidates: their position on a line."""
        return np.ascontiguousarray(self.positions[:, 0])

    @cached_property
    def place(self) -> IntArray:
        """The place of each fine candidate."""
        finer = len(self.positions) // len(self.space) if self.between else 1
        return np.repeat(np.arange(len(self.space)), finer)

    def columns(self, positions: FloatArray) -> FloatArray:
        """Whitened columns of sources at these positions, one per row; of the places if sources are at places only."""
        problem = self.problem
        columns = problem.physics.columns_at(positions)
        if columns is None:
            return self._of_places
        return np.ascontiguousarray(problem.whiten(columns.T) @ problem.range.basis / self._noise)

    @property
    def _noise(self) -> float:
        return self.problem.noise * self.heat

    @property
    def _of_places(self) -> FloatArray:
        return np.ascontiguousarray(self.problem.range.reduced.T / self._noise)

    @cached_property
    def coarse(self) -> FloatArray:
        """Whitened columns of the coarse candidates, one per row."""
        return self._of_places if self.parts == 1 else self.columns(self.coarse_positions)

    @cached_property
    def fine(self) -> FloatArray:
        """Whitened columns of the fine candidates, one per row."""
        return self.columns(self.positions) if self.between else self.coarse

    @cached_property
    def arrays(self) -> Candidates:
        """The lattice as the compiled chain takes it."""
        finer = len(self.fine) // len(self.coarse)
        members = np.arange(len(self.fine)).reshape(len(self.coarse), finer)
        cell = np.repeat(np.arange(len(self.coarse)), finer)
        near = self.near
        squares = tuple(np.asarray((columns**2).sum(axis=1)) for columns in (self.coarse, self.fine))
        starts, indices = near.indptr.astype(np.int64), near.indices.astype(np.int64)
        return Candidates(self.coarse, squares[0], self.fine, squares[1], cell, members, starts, indices)

    @cached_property
    def metric(self) -> CandidateMetric:
        """Distances for compiled functions: a table over places, or coordinates, and the order on a line."""
        unordered = np.empty(0, dtype=np.int64)
        if self.space.metric is not Metric.PATH:
            order = np.argsort(self.along) if self.space.metric is Metric.LINE else unordered
            # a copy, so that one compiled version serves read-only positions too
            return CandidateMetric(np.empty((0, 0), dtype=np.float32), np.array(self.positions), self.place, order)
        if len(self.space) > MAX_PATH_PLACES:
            raise InputError(
                f"{len(self.space):,} places with distances along paths: PointSources takes at most "
                f"{MAX_PATH_PLACES:,}. Use larger cells, or BasisPursuit.",
                places=len(self.space),
            )
        return CandidateMetric(finite_distances(self.space), np.empty((0, 0)), self.place, unordered)

    @memoize(1)
    def gram(self, strength: float) -> FloatArray:
        """Inner products of the coarse columns of sources of this strength."""
        return np.asarray(strength**2 * (self.coarse @ self.coarse.T))

    @cached_property
    def diameter(self) -> float:
        """At most twice the farthest distance from one place."""
        return 2 * float(self.distances(0).max())

    def apart(self, a: int, b: int) -> float:
        table, positions, place, _ = self.metric
        return float(table[place[a], place[b]]) if len(table) else float(np.linalg.norm(positions[a] - positions[b]))

    def distances(self, at: int) -> FloatArray:
        table, positions, place, _ = self.metric
        if len(table):
            return np.asarray(table[place[at], place], dtype=np.float64)
        return np.asarray(np.sqrt(((positions - positions[at]) ** 2).sum(axis=1)))

    def on_places(self, where: FloatArray) -> FloatArray:
        """One unit of weight per position on a line, split between the two nearest places; shape (n,)."""
        along = self.space.places[:, 0]
        order = np.argsort(along)
        steps = np.interp(where, along[order], np.arange(len(along)))
        before = np.minimum(steps.astype(np.int64), max(len(along) - 2, 0))
        weights = np.zeros(len(along))
        np.add.at(weights, order[before], 1 - (steps - before))
        if len(along) > 1:
            np.add.at(weights, order[before + 1], steps - before)
        return weights

    @cached_property
    def near(self) -> sparse.csr_array:
        """The fine candidates within a local move of each, itself included."""
        reach = REACH * self.deviation
        if self.space.metric is Metric.PATH:
            table = self.metric.table
            crowd = min(MAX_NEAR, len(table)) - 1
            widest = float(np.partition(table, crowd, axis=1)[:, crowd].min())
            reach = min(max(reach, float(self.space.lengths.min(initial=0.0))), widest)
            return sparse.csr_array(table <= reach * (1 + 1e-6))
        step = float(self._spacing.max()) / self.parts / FINE
        widest = step * (MAX_NEAR / 2 if self.space.dimension == 1 else math.sqrt(MAX_NEAR / math.pi))
        return _within(self.tree, min(max(reach, step), widest))


def finite_distances(space: Space) -> NDArray[np.float32]:
    """Distances between all places; unconnected parts are farther apart than any two places within one."""
    table = space.distance_table
    apart = np.isinf(table)
    return np.where(apart, FARTHER * table[~apart].max(initial=1.0), table) if apart.any() else table


def _within(tree: cKDTree, reach: float) -> sparse.csr_array:
    n = tree.n
    pairs = tree.query_pairs(reach * (1 + 1e-9), output_type="ndarray")
    rows = np.concatenate([pairs[:, 0], pairs[:, 1], np.arange(n)])
    columns = np.concatenate([pairs[:, 1], pairs[:, 0], np.arange(n)])
    return sparse.csr_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(n, n))


def _cut(positions: FloatArray, cell: FloatArray, parts: int) -> FloatArray:
    """The middles of the parts into which the cell around each position is cut along each axis."""
    offsets = (np.arange(parts) - (parts - 1) / 2) / parts
    grid = np.stack(np.meshgrid(*[offsets * side for side in cell], indexing="ij"), axis=-1).reshape(-1, len(cell))
    return np.ascontiguousarray((positions[:, None, :] + grid).reshape(-1, len(cell)))
