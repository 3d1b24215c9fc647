"""Paths of several sources over a window of frames, drawn from their posterior one source at a time.

Given the paths of the others, the path of one source is a hidden Markov chain: a forward pass weighs all its paths, and
a backward pass draws one (blocked Gibbs sampling). Several independent chains do so at once. The window begins with a
belief about each source, which holds what all earlier frames say about it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.alignment import Alignment
from cloakwork.recovery.drifting_offsets import KalmanStep, OffsetLaw
from cloakwork.recovery.joint_belief import Ties
from cloakwork.recovery.motion import Transitions
from cloakwork.recovery.observation import Observer
from cloakwork.recovery.path_steps import (
    Beliefs,
    add_facts,
    chances_between,
    draw,
    draw_before,
    draw_strengths,
    exchange,
    look_back,
    predict,
    weigh,
)
from cloakwork.recovery.sampling import Prior

IDLE = 0.001  # a slot this unlikely to hold a source is left alone
STUCK = 30.0  # a chain this much less likely than another, in units of log probability, is stuck


@dataclass(frozen=True, eq=False)
class WeighedFrame:
    """A frame as the paths see it.

    `white` (m,) are the readings times `scale` (m,), in units of their noise, and `offsets`
    (chains, m) is the part of them that drift explains. `seen` (chains, n) is the product of the rest with the column
    of each candidate. Both have one row if they are the same in all chains. `overlap` (n, n) is the product of two
    columns, `squares` (n,) its diagonal. `transitions` lead from the frame before to this one; nothing reads those of
    the first.
    """

    time: float
    white: FloatArray
    scale: FloatArray
    offsets: FloatArray
    seen: Beliefs
    squares: Beliefs
    overlap: Beliefs
    transitions: Transitions


@dataclass(eq=False)
class PathSampler:
    """The posterior of the paths of several sources over the frames of a window.

    `states` (chains, slots, frames) are the drawn paths, one slot for each source that there can be, and `strengths`
    (chains, slots) those of the sources, within the `prior`. `tracks` (chains, slots, frames) are the numbers of the
    tracks that the sources belong to, and `origins` (kinds, chains, slots) the labels of the tracks that began with
    them, 0 if none. `beliefs` (slots, 2n + 1) are the laws of the sources just before the window, `ties` how those of
    sources side by side depend on each other, and `facts` (chains, slots, 2) what earlier frames say about their
    strengths. Where there was nothing before, `first` (2n,) is the law of a source that is there, and `odds` those of
    one more source beside 0, 1, 2, ... others. `columns` (n, m) are the readings of a unit source at each candidate,
    `drift` is the law of the offsets just before the window.
    """

    first: Beliefs
    chains: int
    prior: Prior
    rng: np.random.Generator
    columns: Beliefs
    drift: OffsetLaw | None = None
    frames: list[WeighedFrame] = field(default_factory=list)
    beliefs: Beliefs | None = None
    ties: Ties = field(default_factory=Ties)
    odds: FloatArray = field(init=False)
    states: IntArray = field(init=False)
    tracks: IntArray = field(init=False)
    origins: IntArray = field(init=False)
    strengths: FloatArray = field(init=False)
    facts: FloatArray = field(init=False)
    factors: list[Beliefs] = field(init=False)

    def __post_init__(self) -> None:
        most = self.prior.max_sources  # before the first frame, any number of sources is as likely as any other
        self.odds = np.array([math.comb(most, k) / math.comb(most, k + 1) for k in range(most)])
        self.states = np.full((self.chains, len(self.odds), 0), self.absent, dtype=np.int64)
        self.tracks = np.empty((*self.states.shape[:2], 0), dtype=np.int64)
        self.origins = np.zeros((2, *self.states.shape[:2]), dtype=np.int64)
        self.strengths = np.empty((self.chains, len(self.odds)))
        self.begin()

    def begin(self) -> None:
        """Forget what came before the window."""
        self.beliefs, self.ties, self.facts = None, Ties(), np.zeros((*self.strengths.shape, 2))
        if self.drift is not None:
            self.drift = OffsetLaw.stationary(self.drift.offsets, self.chains)
        drawn = self.rng.uniform(self.prior.low, self.prior.high, self.strengths.shape)
        self.strengths[:] = drawn[:, :1] if self.prior.shared else drawn

    @property
    def slots(self) -> int:
        return int(self.states.shape[1])

    @property
    def places(self) -> int:
        return len(self.first) // 2

    @property
    def absent(self) -> int:
        """The state of a source that is not there."""
        return len(self.first)

    def candidates(self, t: int) -> IntArray:
        """The candidate of each source at frame t, -1 if absent: shape (chains, slots)."""
        states = self.states[:, :, t]
        return np.where(states < self.absent, states % self.places, -1)

    def others(self, slot: int, t: int) -> IntArray:
        """How many sources other than this one are there at frame t, shape (chains,)."""
        there = self.states[:, :, t] < self.absent
        return np.asarray(there.sum(axis=1) - there[:, slot])

    def active(self, *, one_spare: bool = True) -> IntArray:
        """The slots that any chain uses, and one more, or all."""
        used = (self.states < self.absent).any(axis=(0, 2))
        if self.beliefs is not None:
            used |= self.beliefs[:, -1] < 1 - IDLE
        spare = np.flatnonzero(~used)
        return np.concatenate([np.flatnonzero(used), spare[:1] if one_spare else spare])

    def insert(self, index: int, frame: WeighedFrame) -> None:
        """Insert a frame into the window; each source first stays in the state before it."""
        self.frames.insert(index, frame)
        before = self.states[:, :, index - 1] if index else np.full(self.states.shape[:2], self.absent)
        self.states = np.insert(self.states, index, before, axis=2)
        near = [max(index - 1, 0)] if self.tracks.size else []
        numbers = self.tracks[:, :, near[0]] if near else np.arange(self.slots)
        self.tracks = np.insert(self.tracks, index, numbers, axis=2)

    def redraw(self, slot: int, start: int = 0) -> list[Beliefs]:
        """Draw the path of one source from frame `start` on; returns its laws there given the readings up to each."""
        laws: list[Beliefs] = []
        self.factors = []
        for t in range(start, len(self.frames)):
            law = self._predicted(laws[-1], t) if laws else self._before(t, slot)
            self.factors.append(self._weigh(law, t, slot))
            laws.append(law)
        aims = self.rng.random((len(laws), self.chains))
        draw(laws[-1], aims[-1], self.states[:, slot, -1])
        for back_to in range(len(laws) - 2, -1, -1):
            t = start + back_to
            step = self.frames[t + 1].transitions.step
            draw_before(step, laws[back_to], self.states[:, slot, t + 1], aims[back_to], self.states[:, slot, t])
        if not self.prior.known:
            self._draw_strength(slot)
        return laws

    def draw_offsets(self) -> None:
        """Draw the offsets of all frames given the paths."""
        if self.drift is None:
            return
        steps = self._kalman_steps(self.drift)
        rests = [self._rest(t) for t in range(len(self.frames))]
        drawn = self.drift.draw(steps, rests, self.rng)
        for t, (frame, step) in enumerate(zip(self.frames, steps, strict=True)):
            offsets = drawn[t] @ step.seen.T
            seen = ((frame.white - offsets) * frame.scale).astype(np.float32) @ self.columns.T
            self.frames[t] = replace(frame, offsets=offsets, seen=seen)

    def _kalman_steps(self, drift: OffsetLaw) -> list[KalmanStep]:
        return drift.steps([frame.time for frame in self.frames], [frame.scale for frame in self.frames])

    def _rest(self, t: int) -> FloatArray:
        """The whitened readings of a frame less the sources of each chain, (chains, m)."""
        there = self.states[:, :, t] < self.absent
        at, strength = np.where(there, self.states[:, :, t] % self.places, 0), np.where(there, self.strengths, 0.0)
        explained = np.einsum("cs,csm->cm", strength, self.columns[at])
        return np.asarray(self.frames[t].white - explained * self.frames[t].scale)

    def _draw_strength(self, slot: int) -> None:
        """Draw the strength of one source given all paths, or that of all sources if they share it."""
        among, changed = (-1, slice(None)) if self.prior.shared else (slot, slice(slot, slot + 1))
        facts, drawn = self.facts[:, max(among, 0)].copy(), np.empty(self.chains)
        for t, frame in enumerate(self.frames):
            add_facts((frame.seen, frame.overlap), self.states[:, :, t], self.strengths, among, facts)
        draw_strengths(facts, self.prior.low, self.prior.high, self.rng, drawn)
        self.strengths[:, changed] = drawn[:, None]

    def _keep_facts(self) -> None:
        """Take the first frame into the facts; those of a source that was absent are forgotten."""
        frame, states = (self.frames[0].seen, self.frames[0].overlap), self.states[:, :, 0]
        if self.prior.shared:
            add_facts(frame, states, self.strengths, -1, self.facts[:, 0])
            return
        for slot in range(self.slots):
            add_facts(frame, states, self.strengths, slot, self.facts[:, slot])
        self.facts[states == self.absent] = 0.0

    def smoothed(self, laws: Sequence[Beliefs]) -> list[Beliefs]:
        """The laws of the source last redrawn at the last frames given all readings, from those up to each."""
        later = np.ones_like(laws[-1])
        smoothed = [laws[-1]]
        for back in range(1, len(laws)):
            step, result = self.frames[-back].transitions.step, np.empty_like(later)
            look_back(step, laws[-1 - back], self.factors[-back], later, result)
            smoothed.append(result)
        return smoothed[::-1]

    def _predicted(self, law: Beliefs, t: int) -> Beliefs:
        after = np.empty_like(law)
        predict(self.frames[t].transitions.step, law, after)
        return after

    def _before(self, t: int, slot: int, but: int | None = None) -> Beliefs:
        """The law of a source at frame t before its readings: given its state before, or what began the window.

        At the first frame this depends on the sources that it is tied to, `but` one.
        """
        if t > 0:
            known = np.zeros((self.chains, self.absent + 1), dtype=np.float32)
            known[np.arange(self.chains), self.states[:, slot, t - 1]] = 1.0
            return self._predicted(known, t)
        if self.beliefs is not None:
            law = np.repeat(self._predicted(self.beliefs[slot : slot + 1], 0), self.chains, axis=0)
            self.ties.weigh(law, slot, self.states[:, :, 0], but)
            return law
        chance = self.odds[self.others(slot, 0)][:, None] * np.append(self.first, 0)
        chance[:, -1] = 1
        return np.asarray(chance, dtype=np.float32)

    def _weigh(self, law: Beliefs, t: int, slot: int, states: IntArray | None = None) -> Beliefs:
        """Turn the law of a source into that after the readings of frame t, given the others; returns their factors."""
        frame, factors = self.frames[t], np.empty((len(law), self.places + 1), dtype=np.float32)
        readings = (frame.seen, frame.squares, frame.overlap)
        weigh(law, readings, self.states[:, :, t] if states is None else states, self.strengths, slot, law, factors)
        return factors

    def exchange(self) -> None:
        """Exchange the paths of two sources from each frame on, as likely as their steps to that frame allow."""
        if len(self.frames) < 2 or self.slots < 2 or not (self.prior.known or self.prior.shared):
            return  # sources of different strengths are never exchanged
        pairs, order = self.slots * (self.slots - 1) // 2, np.tile(np.arange(self.slots), (self.chains, 1))
        for _, run in groupby(range(1, len(self.frames)), key=lambda t: id(self.frames[t].transitions)):
            turns = tuple(run)  # frames that are equally far apart, in one call
            step, aims = self.frames[turns[0]].transitions.step, self.rng.random((len(turns), self.chains, pairs))
            exchange(step, self.states, self.tracks, turns[0], aims, order)

    def revive(self) -> None:
        """Replace chains that are stuck with far less likely paths by copies of the likeliest."""
        rests, step = [self._rest(t) for t in range(len(self.frames))], np.empty(self.chains)
        if self.drift is None:
            scores = -(np.stack(rests) ** 2).sum(axis=(0, 2)) / 2
        else:
            scores = self.drift.log_likelihood(self._kalman_steps(self.drift), rests)
        for t, frame in enumerate(self.frames):
            for slot in range(self.slots if t else 0):
                chances_between(frame.transitions.step, self.states[:, slot, t - 1], self.states[:, slot, t], step)
                scores += np.log(np.maximum(step, 1e-300))
        best = int(np.argmax(scores))
        stuck = scores < scores[best] - STUCK
        for drawn in (self.states, self.tracks, self.strengths, self.facts):
            drawn[stuck] = drawn[best]
        if self.drift is not None:
            self.drift.mean[stuck] = self.drift.mean[best]
        self.origins[:, stuck] = self.origins[:, [best]]

    def align(self, t: int, observer: Observer) -> IntArray:
        """Number the sources at frame t, so that each track is at one place in all chains; returns their order.

        A source that was there when the window began has the track of its slot, unless chains exchanged sources.
        """
        slots = np.tile(np.arange(self.slots), (self.chains, 1))
        recent = np.argsort(self.tracks[:, :, t], axis=1)
        order = Alignment.of(self.candidates(t), slots, recent, observer).order
        self.tracks[:, :, t] = np.argsort(order, axis=1)
        return order

    def number_new(self, order: IntArray) -> None:
        """Move sources that began within the window to the slots of their tracks.

        Two slots without a source at the first frame may exchange their paths, which leaves all probabilities alike.
        """
        new = self.states[:, :, 0] == self.absent
        moved = np.tile(np.arange(self.slots), (self.chains, 1))
        for row in range(self.chains):
            for track in np.flatnonzero(new[row]).tolist():
                slot = int(np.flatnonzero(moved[row] == order[row, track])[0])
                if new[row, order[row, track]]:
                    moved[row, [track, slot]] = moved[row, [slot, track]]
        self.relabel(moved)

    def relabel(self, order: IntArray) -> None:
        """Renumber the slots of each chain: `order` (chains, slots) lists the old numbers."""
        self.states = np.take_along_axis(self.states, order[:, :, None], axis=1)
        self.tracks = np.take_along_axis(self.tracks, order[:, :, None], axis=1)
        self.origins = np.take_along_axis(self.origins, order[None], axis=2)
        self.strengths = np.take_along_axis(self.strengths, order, axis=1)
        if not self.prior.shared:
            self.facts = np.take_along_axis(self.facts, order[:, :, None], axis=1)

    def drop_first(self, order: IntArray) -> IntArray:
        """Drop the first frame of the window and take its readings into the beliefs; returns its states.

        Each slot then follows a track: `order` (chains, slots) has the slot of each before.
        """
        laws = np.stack([self._before(0, slot) for slot in range(self.slots)])
        for slot, law in enumerate(laws):
            self._weigh(law, 0, slot)
        laws = np.take_along_axis(laws, order.T[:, :, None], axis=0)
        # with drift, offsets are drawn given the drawn places, and say nothing about other places: no ties
        ties = self._tied(laws, order) if self.drift is None else Ties()
        self.beliefs = np.ascontiguousarray(laws.mean(axis=1))
        if len(self.frames) > 1:
            after = self._predicted(self.beliefs, 1)
            ties = ties.after_interval(self.frames[1].transitions.begin, self.beliefs, after)
        self.ties = ties
        self.relabel(order)
        dropped = self.states[:, :, 0].copy()
        self._share_origins(dropped == self.absent)
        self._keep_facts()
        if self.drift is not None:
            self.drift = self.drift.after(self._kalman_steps(self.drift)[0], self._rest(0), self.frames[0].time)
        del self.frames[0]
        self.states, self.tracks = self.states[:, :, 1:].copy(), self.tracks[:, :, 1:].copy()
        return dropped

    def _tied(self, laws: Beliefs, order: IntArray) -> Ties:
        """The ties of the slots in a new order, after the readings of the first frame.

        In chains where two that are tied sit, their `laws` (slots, chains, 2n + 1), given the drawn place of the other,
        become the sums over all its places.
        """
        rows, often = np.unique(order, axis=0, return_counts=True)
        usual, n, overlap = rows[often.argmax()].tolist(), self.places, self.frames[0].overlap
        begun, sits = self.ties.renumbered(usual), self.states[:, :, 0] < n
        ties, sums, times = {}, np.zeros((self.slots, self.chains, n)), np.zeros((self.slots, self.chains, 1))
        for (a, b), tie in begun.continued(laws.mean(axis=1), overlap).of.items():
            pair = (usual[a], usual[b])
            alike = (np.sort(order[:, [a, b]], axis=1) == np.sort(pair)).all(axis=1)  # or the two exchanged
            both = alike & sits[:, pair].all(axis=1)
            ties[a, b] = tie
            if begun.between(a, b) is None or not both.any():
                continue
            at = laws[[a, b], :, :n].sum(axis=1).argmax(axis=1)
            one = self._beside(pair[0], pair[1], at[1])[both][:, tie.first]
            other = self._beside(pair[1], pair[0], at[0])[both][:, tie.second]
            strength = np.mean(self.strengths[both, pair[0]] * self.strengths[both, pair[1]])
            beside = overlap[tie.first, at[1], None] + overlap[at[0], tie.second] - overlap[at[0], at[1]]
            gain = strength * (beside - overlap[np.ix_(tie.first, tie.second)])
            own, others, ties[a, b] = tie.after(one, other, gain)
            for slot, places, law in ((a, tie.first, own), (b, tie.second, others)):
                sums[slot, np.flatnonzero(both)[:, None], places] += law
                times[slot, both] += 1
        tied = times[:, :, 0] > 0
        laws[tied, :n] = laws[tied][:, :n].sum(axis=1, keepdims=True) * sums[tied] / times[tied]
        return Ties(ties)

    def _beside(self, slot: int, other: int, place: int) -> Beliefs:
        """The law (chains, 2n + 1) of a source after the first frame, if another to which it is tied were at a place.

        All that the readings say is in it, but not the tie.
        """
        law, states = self._before(0, slot, other), self.states.copy()
        states[:, other] = place
        self._weigh(law, 0, slot, states[:, :, 0])
        return law

    def _share_origins(self, gone: NDArray[np.bool_]) -> None:
        """Give sources that are not there in a chain the origins of another: their belief is that of all chains."""
        for slot in np.flatnonzero(gone.any(axis=0)).tolist():
            here, there = np.flatnonzero(~gone[:, slot]), np.flatnonzero(gone[:, slot])
            taken = self.origins[:, self.rng.choice(here, len(there)), slot] if len(here) else 0
            self.origins[:, there, slot] = taken
