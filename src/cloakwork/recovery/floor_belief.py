"""The belief about many sources on a large floor, from one frame to the next.

A source that is likely enough is a track: a probability for each place near it, and that it is not there. All others
together are a Poisson process, of whom only the expected number at each place is known (a Poisson multi-Bernoulli
filter: Williams, 2015). The posterior of a frame is sampled from all tracks and the others together; then the law of
each is kept, and what they say about each other is forgotten.
"""

import itertools
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._method_cache import memoize
from cloakwork.physics import FloorPlan
from cloakwork.recovery.floor_chain import run_floor_chain
from cloakwork.recovery.floor_motion import MAX_NEAR, MAX_PATCHES, FloorMotion, ball, predict_tracks
from cloakwork.recovery.goodness_of_fit import Misfit
from cloakwork.recovery.problem import Problem
from cloakwork.recovery.vicinity import Source, position

CHAINS = 8  # run in parallel, each with random numbers of its own: results do not depend on the number of cores
HOT, COLD, WARM = 30, 15, 5  # sweeps before the first that counts: from nothing, first hot ones; from the frame before
SWEEPS = 8  # that count
GATHERED = 3.0  # metres around the likeliest place of one of the others within which it becomes a track
BEGUN = 0.2  # expected others there that become a track
RECYCLED = 0.05  # a track below this probability becomes one of the others
NEARBY = 4.0  # metres around a track whose places are weighed one by one
NEGLIGIBLE = 1e-3  # a place this much less likely than the likeliest of a track is left out
MAX_CELLS = MAX_NEAR // 2  # of the law of a track
FAINT = 3e-3  # of the noise: a sensor that a source warms by less does not count for it


@dataclass(frozen=True, eq=False)
class FloorTrack:
    """One source: the places where it may be, with the probabilities that it sits and that it walks there."""

    cells: IntArray
    sits: FloatArray
    walks: FloatArray
    label: int = 0  # of a track that was likelier than not at some time
    jumped: float = 0.0  # the probability that it has just come from farther away than `NEARBY`

    @classmethod
    def of(cls, cells: IntArray, law: FloatArray, sitting: FloatArray, **known: Any) -> "FloorTrack":
        """A track of this law, of which a part sits at each place; what is negligible is left out."""
        order = np.argsort(-law)[:MAX_CELLS]
        kept = order[law[order] > NEGLIGIBLE * law[order[0]]]
        scaled = law[kept] * (law.sum() / law[kept].sum())
        return cls(cells[kept], scaled * sitting[kept], scaled * (1 - sitting[kept]), **known)

    @property
    def law(self) -> FloatArray:
        """The probability of each of the places."""
        return np.asarray(self.sits + self.walks)

    @cached_property
    def probability(self) -> float:
        """The probability that the source exists."""
        return float(min(1.0, self.law.sum()))

    def source(self, plan: FloorPlan, strength: float, level: float) -> Source:
        """The source at its most central place, with the likeliest places that hold it with a probability."""
        where, law = plan.space.places[self.cells], self.law
        apart = np.abs(where[:, None] - where).sum(axis=2)
        centre = int(np.argmin(apart @ law))
        order = np.lexsort((apart[centre], -law))
        held = order[: int(np.searchsorted(np.cumsum(law[order]), level * law.sum())) + 1]
        place, radius = int(self.cells[centre]), float(apart[centre][held].max())
        at = position(where[centre], place, plan.space)
        return Source(place, at, strength, radius, np.sort(self.cells[held]), self.probability)


@dataclass(frozen=True, eq=False)
class FloorBelief:
    """The belief after a frame: tracks, the expected others (2, n) who sit and who walk, and the last draws.

    `states` has, for each chain, the place of each track, -1 if absent, and the places of the others.
    """

    tracks: tuple[FloorTrack, ...]
    others: FloatArray
    states: tuple[tuple[IntArray, IntArray], ...] = ()

    @classmethod
    def before(cls, plan: FloorPlan, expected: float, sitting: float) -> "FloorBelief":
        """Nothing but the expected number of sources."""
        return cls((), np.outer([sitting, 1 - sitting], np.full(plan.places, expected / plan.places)))

    def in_order(self, motion: FloorMotion) -> "FloorBelief":
        """The same, with tracks in the order in which a sweep comes to them."""
        order = np.argsort(motion.sweep_order[_likeliest(self.tracks)], kind="stable").astype(np.int64)
        states = tuple((at[order], free) for at, free in self.states)
        return replace(self, tracks=tuple(self.tracks[k] for k in order), states=states)

    def intensity(self) -> FloatArray:
        """The expected number of sources at each place."""
        total: FloatArray = self.others.sum(axis=0)
        for track in self.tracks:
            total[track.cells] += track.law
        return total


@dataclass(frozen=True, eq=False)
class FloorPrior:
    """The belief before a frame: the tracks after an interval, as the chain takes them, and the others (2, n)."""

    tracks: tuple[FloorTrack, ...]
    near: Any
    patch: IntArray
    settle: float
    others: FloatArray

    @classmethod
    def after(cls, belief: FloorBelief, motion: FloorMotion, seconds: float | None, most: int) -> "FloorPrior":
        """The belief after an interval; without one, as it is, and then there are no tracks."""
        near = _no_tracks(len(belief.tracks))
        if seconds is None:
            return cls((), near, np.zeros(belief.others.shape[1], dtype=np.int64), 0.0, belief.others)
        step, expected = motion.over(seconds), belief.others.sum() + sum(t.probability for t in belief.tracks)
        patch, reach, flow, leave, arrive = (*step.step[:4], step.arrive)
        links = (reach.indptr.astype(np.int64), reach.indices.astype(np.int64), reach.data)
        terms = (patch, *links, flow.astype(np.float64), leave.astype(np.float64), step.begin)
        if belief.tracks:
            laws = (_joined(belief.tracks, name) for name in ("cells", "sits", "walks"))
            starts = np.cumsum([0, *(len(track.cells) for track in belief.tracks)])
            predict_tracks(terms, motion.graph, (starts, *laws), motion.hops(NEARBY), near)
        sits, walks = belief.others
        moved = reach @ np.bincount(patch, (step.begin * sits + walks) * flow, reach.shape[0])
        came = moved[patch] + max(0.0, most - expected) * step.appear * arrive
        stayed = sits * (1 - step.begin) * (1 - leave)
        others = np.stack([stayed + step.settle * came, (1 - step.settle) * came])
        return cls(belief.tracks, near, patch, step.settle, others)

    @property
    def arrays(self) -> Any:
        """The prior as the compiled chain takes it."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.near[2])
        return (*self.near[:7], self.patch, self.others.sum(axis=0), logs, _likeliest(self.tracks))


def _no_tracks(number: int) -> Any:
    places, patches = (number, MAX_NEAR), (number, MAX_PATCHES)
    whole, sizes = (np.zeros(shape, dtype=np.int64) for shape in (places, number))
    return (
        *(whole, sizes, np.zeros(places), np.zeros(number)),
        *(np.zeros(patches, dtype=np.int64), np.zeros(number, dtype=np.int64), np.zeros(patches), np.zeros(places)),
    )


def _likeliest(tracks: Iterable[FloorTrack]) -> IntArray:
    """The likeliest place of each track."""
    return np.array([track.cells[0] for track in tracks], dtype=np.int64)


def _joined(tracks: Iterable[FloorTrack], name: str) -> Any:
    return np.concatenate([getattr(track, name) for track in tracks])


@dataclass(frozen=True, eq=False)
class FloorDraws:
    """Sums over the sweeps of each chain.

    `near` (chains, tracks, places) is the probability of each place near each track, `far` (chains) the draws (track,
    place) elsewhere, `others` (chains, n) the expected others, `totals` (chains, sweeps) the number of sources, and
    `states` the last draws.
    """

    near: FloatArray
    far: tuple[IntArray, ...]
    others: FloatArray
    totals: IntArray
    misfit: Misfit
    states: tuple[tuple[IntArray, IntArray], ...]

    def updated(self, prior: FloorPrior, motion: FloorMotion) -> FloorBelief:
        """The belief after the frame: likely others become tracks, and unlikely tracks become others."""
        sitting = prior.others[0] / np.maximum(prior.others.sum(axis=0), 1e-300)
        others = self.others.mean(axis=0)
        drawn = np.concatenate([np.zeros((0, 2), dtype=np.int64), *self.far])
        drawn = drawn[np.argsort(drawn[:, 0], kind="stable")]
        ends = np.searchsorted(drawn[:, 0], np.arange(len(prior.tracks) + 1))
        far = [drawn[first:last, 1] for first, last in itertools.pairwise(ends)]
        tracks = [self._track(prior, number, places) for number, places in enumerate(far)]
        kept = [k for k, track in enumerate(tracks) if track.probability >= RECYCLED]
        begun = _begun(others, sitting, motion)
        rest = np.stack([others * sitting, others * (1 - sitting)])
        for k in set(range(len(tracks))) - set(kept):
            rest[:, tracks[k].cells] += np.stack([tracks[k].sits, tracks[k].walks])
        claims = [set(track.cells.tolist()) for track in begun]
        states = tuple(_numbered(at, free, kept, claims) for at, free in self.states)
        return FloorBelief((*(tracks[k] for k in kept), *begun), rest, states).in_order(motion)

    def _track(self, prior: FloorPrior, number: int, far: IntArray) -> FloorTrack:
        core, size, weight, *_, stay = prior.near
        here = slice(size[number])
        cells, law = core[number, here], self.near[:, number, here].mean(axis=0)
        stayed, chance = stay[number, here], np.maximum(weight[number, here], 1e-300)
        sitting = (stayed + prior.settle * (chance - stayed)) / chance
        jumped = len(far) / self.totals.size
        if len(far):
            places, often = np.unique(far, return_counts=True)
            cells, law = np.append(cells, places), np.append(law, often / self.totals.size)
            sitting = np.append(sitting, np.full(len(places), prior.settle))
        if not law.sum() > 0:
            cells, law, sitting = cells[:1], np.array([1e-12]), sitting[:1]
        label = prior.tracks[number].label
        return FloorTrack.of(cells, law, sitting, label=label, jumped=jumped / max(law.sum(), jumped))

    def counts(self, most: int) -> FloatArray:
        """The probability of each number of sources, (most + 1,)."""
        return np.bincount(self.totals.ravel(), minlength=most + 1) / self.totals.size

    def apart(self, prior: FloorPrior, track: int, plan: FloorPlan) -> float:
        """The distance between the mean positions of a track in two halves of the chains."""
        core = prior.near[0][track, : prior.near[1][track]]
        return apart(self.near[:, track, : len(core)], plan.space.places[core])


def apart(laws: FloatArray, where: FloatArray) -> float:
    """The distance between the mean positions of a source in two halves of the chains: `laws` (chains, places)."""
    middle = len(laws) // 2
    one, other = (half.sum(axis=0) @ where / max(half.sum(), 1e-300) for half in (laws[:middle], laws[middle:]))
    return float(np.linalg.norm(one - other))


def _begun(others: FloatArray, sitting: FloatArray, motion: FloorMotion) -> list[FloorTrack]:
    """Take sources that are likely enough out of the others, as tracks."""
    found, search, radius = [], others.copy(), motion.hops(GATHERED)
    least = BEGUN / (2 * radius * (radius + 1) + 1)
    while search[peak := int(np.argmax(search))] > least:
        cells = ball(motion.graph, peak, radius)
        law = others[cells]
        taken = np.minimum(law, np.maximum(1.0 - (np.cumsum(law) - law), 0.0))  # the nearest, up to one source
        if taken.sum() < BEGUN:
            search[cells] = 0.0
            continue
        found.append(FloorTrack.of(cells, taken, sitting[cells]))
        others[cells] -= taken
        search[cells] = np.minimum(search[cells], others[cells])
    return found


def _numbered(at: IntArray, free: IntArray, kept: list[int], claims: list[set[int]]) -> tuple[IntArray, IntArray]:
    """The state of a chain for the tracks kept and those begun, each of which claims some cells."""
    gone = np.delete(at, kept)
    left = [*free.tolist(), *gone[gone >= 0].tolist()]
    new = []
    for cells in claims:
        mine = next((place for place in left if place in cells), -1)
        if mine >= 0:
            left.remove(mine)
        new.append(mine)
    return np.append(at[kept], np.array(new, dtype=np.int64)), np.array(left, dtype=np.int64)


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

    def scale(self, aside: frozenset[int], inflation: float) -> FloatArray:
        """Factor on the readings, so that their noise is 1; 0 for sensors that do not count."""
        scale = 1 / (inflation * self.problem.effective_sigma)
        scale[list(aside)] = 0.0
        return np.asarray(scale)

    @memoize(1)
    def arrays(self, aside: frozenset[int], inflation: float) -> Any:
        """The field as the compiled chain takes it."""
        columns, rooms = self.plan.nearby.columns, self.plan.rooms
        values = columns.data * (self.strength * self.scale(aside, inflation))[columns.indices]
        felt = np.abs(values) >= FAINT
        starts = np.append(0, np.cumsum(felt))[columns.indptr]
        values, sensors = values[felt].astype(np.float32), columns.indices[felt].astype(np.int32)
        squares = np.add.reduceat(np.append(values.astype(float) ** 2, 0.0), starts[:-1]) * (np.diff(starts) > 0)
        row, column = (np.ascontiguousarray(axis) for axis in rooms.grid_positions.T)
        return (starts, sensors, values, squares, np.array(rooms.grid), row, column)

    def draw(
        self,
        values: FloatArray,
        prior: FloorPrior,
        states: tuple[tuple[IntArray, IntArray], ...],
        most: int,
        seed: list[int],
        *,
        aside: frozenset[int] = frozenset(),
        inflation: float = 1.0,
        factor: int = 1,
    ) -> FloorDraws:
        """Draw from the posterior of readings (m,), starting from the states of the chains, or from nothing."""
        scale, arrays, terms = self.scale(aside, inflation), self.arrays(aside, inflation), prior.arrays
        white = np.where(scale > 0, values, 0.0) * scale
        lengths = (most, *(factor * k for k in ((0, WARM, SWEEPS) if states else (HOT, COLD, SWEEPS))))
        number, n = len(prior.tracks), self.plan.places
        near, others = np.zeros((CHAINS, number, MAX_NEAR)), np.zeros((CHAINS, n))
        totals, rests = np.zeros((CHAINS, lengths[-1]), dtype=np.int64), np.zeros((CHAINS, len(white)))

        def run(chain: int) -> tuple[IntArray, tuple[IntArray, IntArray]]:
            at, free = states[chain] if states else (np.full(number, -1), np.zeros(0, dtype=np.int64))
            free = free[: max(0, most - (at >= 0).sum())]
            places = np.full(number + most + 1, -1)
            places[: number + len(free)] = np.append(at, free)
            far, used = np.zeros((number * lengths[-1], 2), dtype=np.int64), np.zeros(1, dtype=np.int64)
            sums, rng = (near[chain], others[chain], far, used), np.random.default_rng([*seed, chain])
            k = run_floor_chain(
                arrays, terms, white, lengths, rng, places, len(free), sums, totals[chain], rests[chain]
            )
            return far[: used[0]], (places[:number].copy(), places[number : number + k].copy())

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            far, last = zip(*pool.map(run, range(CHAINS)), strict=True)
        rest = rests[int(np.argmin((rests**2).sum(axis=1)))]
        counted = int((scale > 0).sum())
        misfit = Misfit(rest, rest, counted, float(rest @ rest), counted)
        return FloorDraws(near, far, others, totals, misfit, last)
