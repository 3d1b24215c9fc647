"""The belief about many sources on a large floor, before a frame and after it.

A source that is likely enough is a track: a probability for each place near it, and that it is not there. All others
together are a Poisson process, of which only the expected number at each place is known (a Poisson multi-Bernoulli
filter: Williams, 2015).
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import FloorPlan
from cloakwork.recovery.floors.floor_motion import FloorMotion, FloorStep, ball, predict_tracks
from cloakwork.recovery.floors.floor_sampler import FloorDraws, Placement, disagreement
from cloakwork.recovery.floors.floor_weights import MAX_NEAR, Whereabouts, no_tracks
from cloakwork.recovery.vicinity import Source, position

GATHERED = 3.0  # metres around the likeliest place of one of the others within which it becomes a track
BEGUN = 0.2  # expected others there that become a track
RECYCLED = 0.05  # a track below this probability becomes one of the others
NEARBY = 4.0  # metres around a track whose places are weighed one by one
NEGLIGIBLE = 1e-3  # a place this much less likely than the likeliest of a track is left out
MAX_CELLS = MAX_NEAR // 2  # of the distribution of a track


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
        """A track of this distribution, of which a part sits at each place; what is negligible is left out."""
        order = np.argsort(-law)[:MAX_CELLS]
        likely = order[law[order] > NEGLIGIBLE * law[order[0]]]
        scaled = law[likely] * (law.sum() / law[likely].sum())
        return cls(cells[likely], scaled * sitting[likely], scaled * (1 - sitting[likely]), **known)

    @property
    def law(self) -> FloatArray:
        """The probability of each of the places, the likeliest first."""
        return np.asarray(self.sits + self.walks)

    @cached_property
    def probability(self) -> float:
        """The probability that the source exists."""
        return float(min(1.0, self.law.sum()))

    def source(self, plan: FloorPlan, strength: float, confidence: float) -> Source:
        """The source at its most central place, with the likeliest places that hold it with a probability."""
        where, law = plan.space.places[self.cells], self.law
        apart = np.abs(where[:, None] - where).sum(axis=2)
        centre = int(np.argmin(apart @ law))
        order = np.lexsort((apart[centre], -law))
        held = order[: int(np.searchsorted(np.cumsum(law[order]), confidence * law.sum())) + 1]
        place, radius = int(self.cells[centre]), float(apart[centre][held].max())
        at = position(where[centre], place, plan.space)
        return Source(place, at, strength, radius, np.sort(self.cells[held]), self.probability)


@dataclass(frozen=True, eq=False)
class FloorBelief:
    """The belief after a frame: tracks, the expected others (2, n) who sit and who walk, and the last draws."""

    tracks: tuple[FloorTrack, ...]
    others: FloatArray
    placements: tuple[Placement, ...] = ()

    @classmethod
    def before(cls, plan: FloorPlan, expected: float, sitting: float) -> "FloorBelief":
        """Nothing but the expected number of sources."""
        return cls((), np.outer([sitting, 1 - sitting], np.full(plan.places, expected / plan.places)))

    def in_order(self, motion: FloorMotion) -> "FloorBelief":
        """The same, with tracks in the order in which a sweep comes to them."""
        order = np.argsort(motion.sweep_order[_likeliest(self.tracks)], kind="stable").astype(np.int64)
        placements = tuple((at[order], free) for at, free in self.placements)
        return replace(self, tracks=tuple(self.tracks[k] for k in order), placements=placements)

    def intensity(self) -> FloatArray:
        """The expected number of sources at each place."""
        total: FloatArray = self.others.sum(axis=0)
        for track in self.tracks:
            total[track.cells] += track.law
        return total


@dataclass(frozen=True, eq=False)
class FloorPrior:
    """The belief before a frame: the tracks, where they may be after an interval, and the others (2, n).

    `settle` is the probability that whoever walked in the interval sits now.
    """

    tracks: tuple[FloorTrack, ...]
    where: Whereabouts
    settle: float
    others: FloatArray

    @classmethod
    def after(cls, belief: FloorBelief, motion: FloorMotion, seconds: float | None, max_sources: int) -> "FloorPrior":
        """The belief after an interval; without one, as it is, and then there are no tracks."""
        if seconds is None:
            nowhere = np.zeros(belief.others.shape[1], dtype=np.int64)
            return cls((), no_tracks(_likeliest(()), nowhere, belief.others.sum(axis=0)), 0.0, belief.others)
        step, expected = motion.over(seconds), belief.others.sum() + sum(t.probability for t in belief.tracks)
        patch, reach, flow, leave, arrive = step.patch, step.reach, step.flow, step.leave, step.arrive
        sits, walks = belief.others
        moved = reach @ np.bincount(patch, (step.begin * sits + walks) * flow, reach.shape[0])
        came = moved[patch] + max(0.0, max_sources - expected) * step.appear * arrive
        stayed = sits * (1 - step.begin) * (1 - leave)
        others = np.stack([stayed + step.settle * came, (1 - step.settle) * came])
        where = no_tracks(_likeliest(belief.tracks), patch, others.sum(axis=0))
        if belief.tracks:
            laws = joined(belief.tracks, "cells", "sits", "walks")
            links = (reach.indptr.astype(np.int64), reach.indices.astype(np.int64), reach.data)
            walk = FloorStep(patch, *links, flow.astype(np.float64), leave.astype(np.float64), step.begin)
            predict_tracks(walk, motion.graph, laws, motion.hops(NEARBY), where)
            with np.errstate(divide="ignore"):
                np.log(where.weight, out=where.logs)
        return cls(belief.tracks, where, step.settle, others)

    def updated(self, draws: FloorDraws, motion: FloorMotion) -> FloorBelief:
        """The belief after the frame: likely others become tracks, and unlikely tracks become others."""
        sitting = self.others[0] / np.maximum(self.others.sum(axis=0), 1e-300)
        others = draws.others.mean(axis=0)
        drawn = draws.far[np.argsort(draws.far[:, 0], kind="stable")]
        ends = np.searchsorted(drawn[:, 0], np.arange(len(self.tracks) + 1))
        far = [drawn[first:last, 1] for first, last in itertools.pairwise(ends)]
        tracks = [self._track(number, draws, places) for number, places in enumerate(far)]
        likely = [k for k, track in enumerate(tracks) if track.probability >= RECYCLED]
        begun = _begun(others, sitting, motion)
        rest = np.stack([others * sitting, others * (1 - sitting)])
        for k in set(range(len(tracks))) - set(likely):
            rest[:, tracks[k].cells] += np.stack([tracks[k].sits, tracks[k].walks])
        claims = [set(track.cells.tolist()) for track in begun]
        placements = tuple(_renumbered(at, free, likely, claims) for at, free in draws.placements)
        return FloorBelief((*(tracks[k] for k in likely), *begun), rest, placements).in_order(motion)

    def _track(self, number: int, draws: FloorDraws, far: IntArray) -> FloorTrack:
        here = slice(self.where.size[number])
        cells, law = self.where.core[number, here], draws.near[:, number, here].mean(axis=0)
        stayed, chance = self.where.stayed[number, here], np.maximum(self.where.weight[number, here], 1e-300)
        sitting = (stayed + self.settle * (chance - stayed)) / chance
        jumped = len(far) / draws.totals.size
        if len(far):
            places, often = np.unique(far, return_counts=True)
            cells, law = np.append(cells, places), np.append(law, often / draws.totals.size)
            sitting = np.append(sitting, np.full(len(places), self.settle))
        if not law.sum() > 0:
            cells, law, sitting = cells[:1], np.array([1e-12]), sitting[:1]
        label = self.tracks[number].label
        return FloorTrack.of(cells, law, sitting, label=label, jumped=jumped / max(law.sum(), jumped))

    def disagreement(self, draws: FloorDraws, track: int, plan: FloorPlan) -> float:
        """The distance between the mean positions of a track in two halves of the chains."""
        cells = self.where.core[track, : self.where.size[track]]
        return disagreement(draws.near[:, track, : len(cells)], plan.space.places[cells])


def _likeliest(tracks: Iterable[FloorTrack]) -> IntArray:
    return np.array([track.cells[0] for track in tracks], dtype=np.int64)


def joined(tracks: Sequence[FloorTrack], *names: str) -> tuple[Any, ...]:
    """Return where the places of each track start, and attributes of all tracks, one after the other."""
    starts = np.cumsum([0, *(len(track.cells) for track in tracks)])
    return starts, *(np.concatenate([getattr(track, name) for track in tracks] or [starts[:0]]) for name in names)


def _begun(others: FloatArray, sitting: FloatArray, motion: FloorMotion) -> list[FloorTrack]:
    """Take sources that are likely enough out of the others, as tracks."""
    tracks, search, radius = [], others.copy(), motion.hops(GATHERED)
    least = BEGUN / (2 * radius * (radius + 1) + 1)
    while search[peak := int(np.argmax(search))] > least:
        cells = ball(motion.graph, peak, radius)
        law = others[cells]
        taken = np.minimum(law, np.maximum(1.0 - (np.cumsum(law) - law), 0.0))  # the nearest, up to one source
        if taken.sum() < BEGUN:
            search[cells] = 0.0
            continue
        tracks.append(FloorTrack.of(cells, taken, sitting[cells]))
        others[cells] -= taken
        search[cells] = np.minimum(search[cells], others[cells])
    return tracks


def _renumbered(at: IntArray, free: IntArray, likely: list[int], claims: list[set[int]]) -> Placement:
    """The draw of a chain for the tracks that go on and those begun, each of which claims some cells."""
    gone = np.delete(at, likely)
    left = [*free.tolist(), *gone[gone >= 0].tolist()]
    new = []
    for cells in claims:
        mine = next((place for place in left if place in cells), -1)
        if mine >= 0:
            left.remove(mine)
        new.append(mine)
    return np.append(at[likely], np.array(new, dtype=np.int64)), np.array(left, dtype=np.int64)
