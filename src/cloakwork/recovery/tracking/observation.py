"""What one frame says about sources in each cell, with sensors missing or excluded."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from cloakwork._checks import FloatArray, IntArray
from cloakwork._method_cache import memoize
from cloakwork.errors import InputError
from cloakwork.physics import Metric
from cloakwork.recovery.goodness_of_fit import Misfit
from cloakwork.recovery.lattice import MAX_COARSE, Lattice, finite_distances
from cloakwork.recovery.point_sources import lattice_for
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.tracking.motion import Single
from cloakwork.recovery.tracking.path_kernels import Scores
from cloakwork.recovery.vicinity import position


class DrawnSources(NamedTuple):
    """Drawn sources of one frame: cells (draws, slots), -1 if absent, strengths, and drifting offsets (draws, m).

    Offsets are what drift adds to the whitened readings.
    """

    cells: IntArray
    strengths: FloatArray
    offsets: FloatArray

    @classmethod
    def none(cls) -> "DrawnSources":
        return cls(np.empty((0, 0), dtype=np.int64), np.empty((0, 0)), np.empty((0, 0)))

    def newest(self, number: int) -> "DrawnSources":
        return DrawnSources(self.cells[-number:], self.strengths[-number:], self.offsets[-number:])

    @property
    def weights(self) -> FloatArray:
        """The strengths, 0 for absent sources."""
        return np.where(self.cells < 0, 0.0, self.strengths)

    def explained(self, columns: FloatArray | Single) -> FloatArray:
        """Return the readings (draws, m) of the drawn sources, from those of a unit source in each cell (n, m)."""
        return np.asarray(np.einsum("ds,dsm->dm", self.weights, columns[self.cells]))


@dataclass(frozen=True, eq=False)
class Observation:
    """One frame: whitened readings (m,), what whitened them, the number of sensors excluded, and scores of sources.

    `scale` (m,) is the inverse of the noise, 0 for sensors that do not count.
    """

    white: FloatArray
    scale: FloatArray
    excluded: int
    scores: Scores


@dataclass(frozen=True, eq=False)
class Observer:
    """Turns readings into observations of sources of a strength up to `strongest`.

    Cells are the candidate positions of sources: the places of the space, or finer ones if the noise is small.
    """

    problem: Problem
    strongest: float

    def __post_init__(self) -> None:
        places = len(self.problem.physics.space)
        if places > MAX_COARSE:
            raise InputError(
                f"{places:,} places: a tracker takes at most {MAX_COARSE:,}. Use larger cells.", places=places
            )

    @cached_property
    def lattice(self) -> Lattice:
        """The cells, with all sensors."""
        return lattice_for(self.problem, self.strongest, 1.0)

    @property
    def places(self) -> int:
        return len(self.problem.physics.space)

    @property
    def positions(self) -> FloatArray:
        """The coordinates of each cell, (n, dimension)."""
        return self.lattice.coarse_positions

    @cached_property
    def place(self) -> IntArray:
        """The place that each cell lies in, (n,)."""
        return np.repeat(np.arange(self.places), max(1, len(self.positions) // self.places))

    @cached_property
    def columns(self) -> Single:
        """Readings of a unit source in each cell, (n, m)."""
        columns = self.problem.physics.columns_near(self.positions, self.place)
        return np.ascontiguousarray(columns.T, dtype=np.float32)

    @cached_property
    def distances(self) -> Single:
        space = self.problem.physics.space
        if space.metric is not Metric.PATH:
            return np.asarray(cdist(self.positions, self.positions), dtype=np.float32)
        return finite_distances(space)

    def distances_to(self, entrances: Sequence[object]) -> Single:
        """Return the distance of each cell from the nearest of some positions or labels."""
        places = self.problem.physics.space.indices(list(entrances))
        return np.asarray(self.distances[np.isin(self.place, places)].min(axis=0))

    @property
    def spacing(self) -> float:
        """The usual distance between neighbouring cells."""
        lengths = self.problem.physics.space.lengths
        return float(np.median(lengths)) / self.lattice.parts if len(lengths) else 1.0

    def where(self, cell: int) -> tuple[int, object]:
        """Return the place of a cell, and its position as people read it."""
        place = int(self.place[cell])
        return place, position(self.positions[cell], place, self.problem.physics.space)

    def on_places(self, cells: FloatArray) -> FloatArray:
        """Add up values of cells (..., cells) over the places, (..., places)."""
        return np.asarray(np.add.reduceat(cells, np.searchsorted(self.place, np.arange(self.places)), axis=-1))

    def observe(self, readings: FloatArray, excluded: frozenset[int], inflation: float = 1.0) -> Observation:
        """Weigh the readings of one frame (m,) without some sensors, with the noise times `inflation`."""
        problem, counts = self.problem.without(excluded), ~np.isin(np.arange(len(readings)), list(excluded))
        columns, overlap = self._columns(excluded, inflation)
        scale, seen = np.zeros(len(readings)), np.zeros(len(columns))
        known = np.where(counts, readings, 0.0)
        if counts.any():
            lattice = lattice_for(problem, self.strongest, inflation)
            scale = counts / (self.problem.effective_sigma * lattice.heat)
            seen = columns @ lattice.whiten(problem.project(known[None])[0])
        scores = Scores(seen[None].astype(np.float32), np.ascontiguousarray(np.diagonal(overlap)), overlap)
        return Observation(known * scale, scale, len(excluded), scores)

    @memoize(4)
    def _columns(self, excluded: frozenset[int], inflation: float) -> tuple[FloatArray, Single]:
        """The whitened columns of the cells, and their inner products."""
        columns = np.zeros((len(self.positions), 1))
        if len(excluded) < self.problem.physics.sensors:
            lattice = lattice_for(self.problem.without(excluded), self.strongest, inflation)
            columns = lattice.columns(self.positions)
        return columns, np.asarray(columns @ columns.T, dtype=np.float32)

    def misfit(self, observation: Observation, draws: DrawnSources) -> Misfit:
        """Return the misfit of the best of some draws."""
        explained = draws.explained(self.columns) * observation.scale
        rests = observation.white - draws.offsets - explained
        best = int(np.argmin((rests**2).sum(axis=1)))
        rest, problem = rests[best], self.problem
        inside = rest @ problem.range.basis
        fitted = int((draws.cells[best] >= 0).sum()) * problem.physics.space.dimension
        degrees = problem.physics.sensors - observation.excluded - fitted
        return Misfit(rest, rest, degrees, float(inside @ inside), problem.range.rank, fitted)
