"""The likelihood of sources at each place given one frame, with sensors missing or set aside."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.physics import Metric
from cloakwork.recovery.goodness_of_fit import Misfit
from cloakwork.recovery.lattice import MAX_COARSE, Lattice, finite_distances
from cloakwork.recovery.path_steps import Beliefs
from cloakwork.recovery.point_sources import lattice_for
from cloakwork.recovery.problem import Problem

KEPT = 4  # sets of missing sensors whose columns are at hand


@dataclass(frozen=True, eq=False)
class Observer:
    """Turns readings into gains of log likelihood, for sources of a strength up to `strongest` at candidate places."""

    problem: Problem
    strongest: float
    _known: LRUCache[tuple[frozenset[int], float], tuple[FloatArray, Beliefs]] = field(
        default_factory=lambda: LRUCache(KEPT)
    )

    def __post_init__(self) -> None:
        places = len(self.problem.physics.space)
        if places > MAX_COARSE:
            raise InputError(
                f"{places:,} places: a tracker takes at most {MAX_COARSE:,}. Use larger cells.", places=places
            )

    @cached_property
    def lattice(self) -> Lattice:
        """The candidates, with all sensors."""
        return self._lattice(self.problem, 1.0)

    @property
    def positions(self) -> FloatArray:
        """Coordinates of the candidates."""
        return self.lattice.coarse_positions

    @cached_property
    def columns(self) -> Beliefs:
        """Readings of a unit source at each candidate, shape (candidates, m)."""
        physics = self.problem.physics
        columns = physics.columns_at(self.positions)
        return np.ascontiguousarray((physics.matrix if columns is None else columns).T, dtype=np.float32)

    @cached_property
    def place(self) -> IntArray:
        """The place of each candidate."""
        places = len(self.problem.physics.space)
        return np.repeat(np.arange(places), max(1, len(self.positions) // places))

    @cached_property
    def distances(self) -> NDArray[np.float32]:
        """Distances between all candidates."""
        space = self.problem.physics.space
        if space.metric is not Metric.PATH:
            return np.asarray(cdist(self.positions, self.positions), dtype=np.float32)
        return finite_distances(space)

    def distances_to(self, entrances: Sequence[object]) -> Beliefs:
        """The distance of each candidate from the nearest of some positions or labels."""
        places = self.problem.physics.space.indices(list(entrances))
        return np.asarray(self.distances[np.isin(self.place, places)].min(axis=0))

    @cached_property
    def strange(self) -> float:
        """Half the largest distance."""
        return float(self.distances.max()) / 2

    @property
    def spacing(self) -> float:
        """The usual distance between neighbouring candidates."""
        lengths = self.problem.physics.space.lengths
        return float(np.median(lengths)) / self.lattice.parts if len(lengths) else 1.0

    def observe(self, readings: FloatArray, aside: frozenset[int], inflation: float = 1.0) -> "Observation":
        """Weigh the readings of one frame (m,); those of sensors in `aside` do not count."""
        problem = self._without(aside)
        columns, overlap = self._columns(aside, inflation)
        counts = ~np.isin(np.arange(len(readings)), list(aside))
        kept, scale = np.where(counts, readings, 0.0), np.zeros(len(readings))
        seen = np.zeros((1, len(self.positions)), dtype=np.float32)
        if problem is not None:
            lattice = self._lattice(problem, inflation)
            scale = counts / (self.problem.effective_sigma * lattice.heat)
            seen[0] = columns @ lattice.whiten(problem.project(kept[None])[0])
        return Observation(self, kept * scale, scale, len(aside), seen, overlap)

    def _columns(self, aside: frozenset[int], inflation: float) -> tuple[FloatArray, Beliefs]:
        """The whitened columns of the candidates, and their inner products."""
        key = (aside, inflation)
        if key not in self._known:
            problem = self._without(aside)
            if problem is None:
                columns = np.zeros((len(self.positions), 1))
            else:
                columns = self._lattice(problem, inflation).columns(self.positions)
            self._known[key] = (columns, np.asarray(columns @ columns.T, dtype=np.float32))
        return self._known[key]

    def _without(self, aside: frozenset[int]) -> Problem | None:
        """The problem without some sensors; None without any sensor."""
        if len(aside) == self.problem.physics.sensors:
            return None
        return self.problem.without(aside)

    def _lattice(self, problem: Problem, inflation: float) -> Lattice:
        return lattice_for(problem, self.strongest, inflation)


@dataclass(frozen=True, eq=False)
class Observation:
    """One frame: its whitened readings (m,), by which factors they are, how many are missing, and gains of sources.

    `scale` (m,) is the inverse of the noise, 0 for sensors that do not count.
    `seen` (1, n) is the product of the readings with the column of each candidate, `overlap` (n, n) of two columns.
    """

    observer: Observer
    white: FloatArray
    scale: FloatArray
    missing: int
    seen: Beliefs
    overlap: Beliefs

    @cached_property
    def squares(self) -> Beliefs:
        """The square of the column of each candidate."""
        return np.ascontiguousarray(np.diagonal(self.overlap))

    def misfit(self, placements: IntArray, strengths: FloatArray, offsets: FloatArray) -> Misfit:
        """The misfit of the best of some draws.

        `placements` (draws, slots) are the candidates of sources, -1 if absent, `strengths` (draws, slots) theirs, and
        `offsets` (draws, m) what drift adds to the whitened readings.
        """
        strength = np.where(placements < 0, 0.0, strengths)
        explained = np.einsum("ds,dsm->dm", strength, self.observer.columns[placements])
        rests = self.white - offsets - explained * self.scale
        best = int(np.argmin((rests**2).sum(axis=1)))
        rest, problem = rests[best], self.observer.problem
        inside = rest @ problem.range.basis
        fitted = int((placements[best] >= 0).sum()) * problem.physics.space.dimension
        degrees = problem.physics.sensors - self.missing - fitted
        return Misfit(rest, rest, degrees, float(inside @ inside), problem.range.rank, fitted)
