"""The posterior of many sources of known strength on a large floor, sampled by chains of local moves."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.physics import FloorPlan, Physics
from cloakwork.recovery.estimator import Progress, Solution, Status
from cloakwork.recovery.fit import Fit, Misfit
from cloakwork.recovery.floor_chain import run_floor_chain
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.sampling import Prior
from cloakwork.recovery.vicinity import Source, position

CHAINS = 8  # run in parallel, each with random numbers of its own: results do not depend on the number of cores
COLD, WARM = 60, 10  # sweeps before the first draw, from nothing and from the frame before
DRAWS, SWEEPS = 10, 2  # of each chain, and sweeps per draw
MATCHED = 3.0  # metres between a listed source and the same source in another draw, at most
LISTED = 0.05  # a source below this probability is not listed


def samples_locally(physics: Physics) -> bool:
    """Whether the sources of a model are sampled by local moves: those of a large floor with a steady field."""
    return isinstance(physics, FloorPlan) and physics.local is not None


@dataclass(frozen=True, eq=False)
class FloorStates:
    """The places of the sources in each chain after a frame, for the next frame to start from."""

    field: "FloorField"
    places: tuple[IntArray, ...]


@dataclass(frozen=True, eq=False)
class FloorDraws:
    """Equally likely sets of sources: places (draws, most), counts and squared misfits (draws,), the intensity (n,)."""

    at: IntArray
    counts: IntArray
    misfit: FloatArray
    intensity: FloatArray


@dataclass(frozen=True, eq=False)
class FloorField:
    """The whitened columns of sources of one strength on a floor."""

    problem: Problem
    strength: float

    @property
    def plan(self) -> FloorPlan:
        """The floor."""
        plan = self.problem.physics
        assert isinstance(plan, FloorPlan)  # noqa: S101 - for the type checker
        return plan

    @cached_property
    def columns(self) -> sparse.csc_array:
        """Whitened columns, (m, n)."""
        local = self.plan.local
        assert local is not None  # noqa: S101
        return sparse.csc_array(sparse.diags_array(self.strength / self.problem.effective_sigma) @ local.columns)

    @cached_property
    def arrays(self) -> Any:
        """The field as the compiled chain takes it."""
        columns, rooms = self.columns, self.plan.rooms
        squares = np.asarray(columns.power(2).sum(axis=0)).ravel()
        row, column = (np.ascontiguousarray(axis) for axis in rooms.grid_positions.T)
        starts, sensors = columns.indptr.astype(np.int64), columns.indices.astype(np.int32)
        return (starts, sensors, columns.data, squares, np.array(rooms.grid), row, column)

    def draw(
        self, data: FloatArray, prior: Prior, seed: list[int], start: "FloorStates | None", factor: int = 1
    ) -> Any:
        """Draw from the posterior of whitened readings (m,); the draws, and the states of the chains after them."""
        n, most, field = self.plan.places, prior.most, self.arrays
        at, counts = np.zeros((CHAINS * DRAWS, most), dtype=np.int64), np.zeros(CHAINS * DRAWS, dtype=np.int64)
        misfit, intensity = np.zeros(CHAINS * DRAWS), np.zeros((CHAINS, n))

        def run(chain: int) -> IntArray:
            rng = np.random.default_rng([*seed, chain])
            state = np.zeros(most + 1, dtype=np.int64)
            first = rng.integers(0, n, prior.least) if start is None else start.places[chain][:most]
            state[: len(first)] = first
            mine = slice(chain * DRAWS, (chain + 1) * DRAWS)
            lengths = ((COLD if start is None else WARM) * factor, SWEEPS * factor)
            drawn, limits = (at[mine], counts[mine], misfit[mine]), (prior.least, most)
            k = run_floor_chain(field, data, limits, lengths, rng, state, len(first), drawn, intensity[chain])
            return state[:k].copy()

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            states = tuple(pool.map(run, range(CHAINS)))
        return FloorDraws(at, counts, misfit, intensity.mean(axis=0)), FloorStates(self, states)


def solve_floor(
    problem: Problem,
    readings: FloatArray,
    prior: Prior,
    level: float,
    seed: int,
    progress: Progress | None,
    after: object,
) -> Solution:
    """Recover frames (frames, m) of a large floor, each from the one before."""
    if not prior.known or problem.offsets is not None:
        raise InputError(
            "this floor is too large for unknown strengths or drift: PointSources then takes at most 3,000,000 entries "
            "of sensors times places. Give one strength and no drift, larger cells or fewer sensors.",
            sensors=problem.physics.sensors,
            places=problem.physics.places,
        )
    field = FloorField(problem, prior.low)
    kept = after if isinstance(after, FloorStates) and after.field.plan is field.plan else None
    frames, n = len(readings), problem.physics.places
    maps, intensity = np.zeros((frames, n)), np.zeros((frames, n))
    counts, gap = np.zeros((frames, prior.most + 1)), np.zeros(frames)
    sources: list[tuple[Source, ...]] = []
    fits: list[Fit] = []
    for frame, values in enumerate(readings):
        white = values / problem.effective_sigma
        draws, kept = field.draw(white, prior, [seed, frame], kept)
        sources.append(listed(draws, field, level))
        fits.append(_fit(draws, field, white))
        intensity[frame], counts[frame] = draws.intensity, np.bincount(draws.counts, minlength=prior.most + 1)
        gap[frame] = _gap(draws, field)
        for source in sources[-1]:
            maps[frame, source.place] += source.weight * source.probability
        if progress is not None:
            progress(frame + 1, frames)
    return Solution(
        data=np.zeros((frames, 0)),
        maps=maps,
        status=tuple(Status.SAMPLED if each else Status.NOBODY for each in sources),
        gap=gap,
        violation=np.zeros(frames),
        radius=np.full(frames, np.nan),
        sources=tuple(sources),
        fits=tuple(fits),
        counts=counts / (CHAINS * DRAWS),
        intensity=intensity,
        last=kept,
    )


def listed(draws: FloorDraws, field: FloorField, level: float) -> tuple[Source, ...]:
    """The sources of the best draw, each with the places of its nearest source in all draws, likeliest first."""
    best = int(np.argmin(draws.misfit + 2 * draws.counts))
    first = draws.at[best, : draws.counts[best]]
    members = _matched(first, draws, field)
    sources = [_source(places, field, level, len(draws.counts)) for places in members]
    kept = [source for source in sources if source is not None and source.probability >= LISTED]
    return tuple(sorted(kept, key=lambda source: -source.probability))


def _matched(first: IntArray, draws: FloorDraws, field: FloorField) -> list[list[int]]:
    """For each first source, the places of the sources that are nearest to it in each draw."""
    members: list[list[int]] = [[] for _ in first]
    if not len(first):
        return members
    where = field.plan.space.places
    tree = cKDTree(where[first])
    nearby = min(4, len(first))
    for row, k in zip(draws.at, draws.counts, strict=True):
        if not k:
            continue
        far, which = (
            np.asarray(each)
            for each in tree.query(where[row[:k]], k=[*range(1, nearby + 1)], distance_upper_bound=MATCHED)
        )
        source, order = np.divmod(np.argsort(far, axis=None, kind="stable"), nearby)
        free, taken = np.ones(k, dtype=bool), np.zeros(len(first) + 1, dtype=bool)
        taken[-1] = True  # stands for none within reach
        for i, j in zip(source.tolist(), which[source, order].tolist(), strict=True):
            if free[i] and not taken[j]:
                free[i], taken[j] = False, True
                members[j].append(int(row[i]))
    return members


def _source(places: list[int], field: FloorField, level: float, draws: int) -> Source | None:
    if not places:
        return None
    space = field.plan.space
    cells, counts = np.unique(np.array(places), return_counts=True)
    where = space.places[cells]
    apart = np.abs(where[:, None] - where).sum(axis=2)
    centre = int(np.argmin(apart @ counts))
    order = np.lexsort((apart[centre], -counts))
    held = order[: int(np.searchsorted(np.cumsum(counts[order]), level * counts.sum())) + 1]
    place, radius = int(cells[centre]), float(apart[centre][held].max())
    at = position(space.places[place], place, space)
    return Source(place, at, field.strength, radius, np.sort(cells[held]), len(places) / draws)


def _fit(draws: FloorDraws, field: FloorField, white: FloatArray) -> Fit:
    best = int(np.argmin(draws.misfit))
    k = int(draws.counts[best])
    rest = white - np.asarray(field.columns[:, draws.at[best, :k]].sum(axis=1)).ravel()
    misfit = Misfit(rest, rest, len(rest), float(rest @ rest), len(rest))
    return Fit(misfit.p_value, float(rest @ rest), len(rest))


def _gap(draws: FloorDraws, field: FloorField) -> float:
    """The mean distance between the same sources in two halves of the chains."""
    middle = len(draws.counts) // 2
    halves = [
        FloorDraws(draws.at[half], draws.counts[half], draws.misfit[half], draws.intensity)
        for half in (slice(middle), slice(middle, None))
    ]
    places = [np.array([source.place for source in listed(half, field, 0.5)], dtype=np.int64) for half in halves]
    if not all(len(each) for each in places):
        return 0.0 if not any(len(each) for each in places) else MATCHED
    where = field.plan.space.places
    far = cKDTree(where[places[0]]).query(where[places[1]], distance_upper_bound=MATCHED)[0]
    return float(np.minimum(far, MATCHED).mean())
