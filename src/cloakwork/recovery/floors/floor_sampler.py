"""The posterior of one frame of a large floor, from chains that run in parallel."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._method_cache import memoize
from cloakwork.physics import FloorPlan
from cloakwork.recovery.floors.floor_chain import run_floor_chain
from cloakwork.recovery.floors.floor_weights import ChainSums, FloorColumns, Whereabouts
from cloakwork.recovery.goodness_of_fit import Misfit
from cloakwork.recovery.problem import Problem

CHAINS = 8  # run in parallel, each with random numbers of its own: results do not depend on the number of cores
HOT, COLD, WARM = 30, 15, 5  # sweeps before the first that counts: from nothing, first hot ones; from the frame before
SWEEPS = 8  # that count
FAINT = 3e-3  # of the noise: a sensor that a source warms by less does not count for it

Placement = tuple[IntArray, IntArray]
"""The place of each track in a chain, -1 if absent, and the places of the others."""


@dataclass(frozen=True, eq=False)
class FloorDraws:
    """Sums over the sweeps of each chain.

    `near` (chains, tracks, places) is the probability of each place near each track, `far` the draws (track, place)
    elsewhere, `others` (chains, n) the expected others, `totals` (chains, sweeps) the number of sources, and
    `placements` the last draw of each chain.
    """

    near: FloatArray
    far: IntArray
    others: FloatArray
    totals: IntArray
    misfit: Misfit
    placements: tuple[Placement, ...]

    def counts(self, max_sources: int) -> FloatArray:
        """The probability of each number of sources, (max_sources + 1,)."""
        return np.bincount(self.totals.ravel(), minlength=max_sources + 1) / self.totals.size


def disagreement(laws: FloatArray, where: FloatArray) -> float:
    """The distance between the mean positions of a source in two halves of the chains: `laws` (chains, places)."""
    middle = len(laws) // 2
    one, other = (half.sum(axis=0) @ where / max(half.sum(), 1e-300) for half in (laws[:middle], laws[middle:]))
    return float(np.linalg.norm(one - other))


@dataclass(frozen=True, eq=False)
class FloorField:
    """The whitened columns of sources of one strength on a floor."""

    problem: Problem
    strength: float

    @property
    def plan(self) -> FloorPlan:
        plan = self.problem.physics
        assert isinstance(plan, FloorPlan)  # noqa: S101 - for the type checker
        return plan

    def _scale(self, ignored: frozenset[int], inflation: float) -> FloatArray:
        """Factor on the readings, so that their noise is 1; 0 for sensors that do not count."""
        scale = 1 / (inflation * self.problem.effective_sigma)
        scale[list(ignored)] = 0.0
        return np.asarray(scale)

    @memoize(1)
    def _columns(self, ignored: frozenset[int], inflation: float) -> FloorColumns:
        columns, rooms = self.plan.nearby.columns, self.plan.rooms
        values = columns.data * (self.strength * self._scale(ignored, inflation))[columns.indices]
        felt = np.abs(values) >= FAINT
        starts = np.append(0, np.cumsum(felt))[columns.indptr]
        values, sensors = values[felt].astype(np.float32), columns.indices[felt].astype(np.int32)
        squares = np.add.reduceat(np.append(values.astype(float) ** 2, 0.0), starts[:-1]) * (np.diff(starts) > 0)
        row, column = (np.ascontiguousarray(axis) for axis in rooms.grid_positions.T)
        return FloorColumns(starts, sensors, values, squares, np.array(rooms.grid), row, column)

    def draw(
        self,
        values: FloatArray,
        where: Whereabouts,
        before: tuple[Placement, ...],
        max_sources: int,
        seed: list[int],
        *,
        ignored: frozenset[int] = frozenset(),
        inflation: float = 1.0,
        factor: int = 1,
    ) -> FloorDraws:
        """Draw from the posterior of readings (m,), starting from the draws `before` of the chains, or from nothing."""
        scale, columns = self._scale(ignored, inflation), self._columns(ignored, inflation)
        white = np.where(scale > 0, values, 0.0) * scale
        hot, warm, sweeps = (factor * k for k in ((0, WARM, SWEEPS) if before else (HOT, COLD, SWEEPS)))
        tracks, n = len(where.size), self.plan.places
        near, others = np.zeros((CHAINS, *where.core.shape)), np.zeros((CHAINS, n))
        totals, rests = np.zeros((CHAINS, sweeps), dtype=np.int64), np.zeros((CHAINS, len(white)))

        def run(chain: int) -> tuple[IntArray, Placement]:
            at, free = before[chain] if before else (np.full(tracks, -1), np.zeros(0, dtype=np.int64))
            free = free[: max(0, max_sources - (at >= 0).sum())]
            places = np.full(tracks + max_sources + 1, -1)
            places[: tracks + len(free)] = np.append(at, free)
            far, used = np.zeros((tracks * sweeps, 2), dtype=np.int64), np.zeros(1, dtype=np.int64)
            sums = ChainSums(near[chain], others[chain], far, used, totals[chain], rests[chain])
            rng, lengths = np.random.default_rng([*seed, chain]), (hot, warm, sweeps)
            k = run_floor_chain(columns, where, white, max_sources, lengths, rng, places, len(free), sums)
            return far[: used[0]], (places[:tracks].copy(), places[tracks : tracks + k].copy())

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            elsewhere, placements = zip(*pool.map(run, range(CHAINS)), strict=True)
        rest = rests[int(np.argmin((rests**2).sum(axis=1)))]
        counted = int((scale > 0).sum())
        misfit = Misfit(rest, rest, counted, float(rest @ rest), counted)
        return FloorDraws(near, np.concatenate(elsewhere), others, totals, misfit, placements)
