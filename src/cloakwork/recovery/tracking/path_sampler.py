"""Draw the paths of several sources over a window of frames from their joint posterior.

Given the paths of the others, the path of one source is a hidden Markov chain: a forward pass weighs all its paths, and
a backward pass draws one (blocked Gibbs sampling). Several independent chains do so at once.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import IntArray
from cloakwork.recovery.sampling import Prior
from cloakwork.recovery.tracking import path_kernels as kernels
from cloakwork.recovery.tracking.alignment import Aligner
from cloakwork.recovery.tracking.belief import Belief, SourceStates, predicted, weigh_readings
from cloakwork.recovery.tracking.drifting_offsets import OffsetBelief, Residual
from cloakwork.recovery.tracking.motion import MotionModel, Single
from cloakwork.recovery.tracking.observation import DrawnSources, Observation
from cloakwork.recovery.tracking.path_kernels import Scores
from cloakwork.recovery.tracking.window import Chains, TrackMarginals, WindowFrame

IDLE = 0.001  # a slot less likely to hold a source is left alone
STUCK = 30.0  # a chain this much less likely than the best, in log probability, is stuck
STARTING = 3  # frames over which the chains start from nothing
FIRST_SWEEPS = 40  # for each of them
RECENT = 3  # frames that the first sweep after a new frame draws again
DRIFT_SWEEPS = 2  # that count if offsets are drawn too: paths wait for offsets, and offsets for paths


class Drawing(NamedTuple):
    """The sources drawn in one frame, and the marginals of the frames that were watched."""

    sources: DrawnSources
    marginals: dict[int, TrackMarginals]


@dataclass(eq=False)
class PathSampler:
    """The joint posterior of the paths of several sources over the frames of a window.

    `columns` (n, m) are the readings of a unit source in each cell, `size` is the number of chains, and `taken` that of
    frames so far. `belief` and `drift` are what frames before the window say about the sources and about the offsets;
    `before` is the time of the last of those frames.
    """

    moves: MotionModel
    prior: Prior
    columns: Single
    aligner: Aligner
    rng: np.random.Generator
    size: int
    drift: OffsetBelief | None = None
    before: float | None = None
    taken: int = 0
    frames: list[WindowFrame] = field(default_factory=list)
    belief: Belief = field(init=False)
    chains: Chains = field(init=False)

    def __post_init__(self) -> None:
        most = self.prior.max_sources  # before the first frame, any number of sources is as likely as any other
        odds = np.array([math.comb(most, k) / math.comb(most, k + 1) for k in range(most)])
        self.belief, self.chains = Belief(self.moves.first, odds), Chains.empty(self.size, most)
        self.forget()

    def forget(self) -> None:
        """Forget what frames before the window said."""
        self.belief, self.chains.evidence[:] = Belief(self.belief.first, self.belief.odds), 0
        if self.drift is not None:
            self.drift = OffsetBelief.stationary(self.drift.offsets, self.size)
        drawn = self.rng.uniform(self.prior.low, self.prior.high, self.chains.strengths.shape)
        self.chains.strengths[:] = drawn[:, :1] if self.prior.shared else drawn

    @property
    def slots(self) -> int:
        """The number of sources that there can be."""
        return len(self.belief.odds)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which sources are there in which frame, (chains, slots, frames)."""
        return self.chains.states < self.belief.absent

    def cells(self, t: int) -> IntArray:
        """Return the cell of each source in a frame, -1 if absent: (chains, slots)."""
        states = self.chains.states[:, :, t]
        return np.where(states < self.belief.absent, states % len(self.columns), -1)

    def sources(self, t: int) -> SourceStates:
        return SourceStates(self.chains.states[:, :, t], self.chains.strengths)

    def insert(self, index: int, time: float, observation: Observation) -> None:
        before = self.frames[index - 1].time if index else self.before
        step = self.moves.over(1.0 if before is None else time - before)
        self.frames.insert(index, WindowFrame(time, step, observation))
        if index + 1 < len(self.frames):
            self.frames[index + 1].step = self.moves.over(self.frames[index + 1].time - time)
        self.chains.insert(index, self.belief.absent)
        self.taken += 1

    def draw(self, index: int, watched: Collection[int]) -> Drawing:
        """Draw paths, and return the sources of frame `index` with the marginals of the `watched` frames.

        Only beliefs over the whole window count for marginals. Those over recent frames alone are given one drawn cell
        in each chain, and areas would become too small.
        """
        starting, drifts = self.taken <= STARTING, self.drift is not None
        sweeps = FIRST_SWEEPS // 2 if starting else 1
        drawn = []
        for _ in range(sweeps):  # take up the new frame
            self._sweep({}, 0 if starting or drifts else max(0, len(self.frames) - RECENT))
            drawn.append(self._draws(index))
        self._revive_stuck_chains()
        marginals = {t: self.no_marginals() for t in watched}
        for _ in range(max(sweeps, DRIFT_SWEEPS) if drifts else sweeps):
            self._sweep(marginals)
            drawn.append(self._draws(index))
        return Drawing(DrawnSources(*map(np.concatenate, zip(*drawn, strict=True))), marginals)

    def no_marginals(self) -> TrackMarginals:
        return TrackMarginals.empty(self.slots, len(self.columns))

    def _draws(self, t: int) -> DrawnSources:
        offsets = np.broadcast_to(self.frames[t].offsets, (self.size, self.columns.shape[1]))
        return DrawnSources(self.cells(t), self.chains.strengths.copy(), offsets)

    def _sweep(self, marginals: dict[int, TrackMarginals], start: int = 0) -> None:
        """Draw all paths from frame `start` on, and add what they say about each frame of `marginals`."""
        self.exchange()
        if self.drift is not None:
            self.redraw_under_offsets(self.drift)  # offsets drawn without a source would explain it away
        self.draw_offsets()
        beliefs: dict[int, list[tuple[int, Single]]] = {t: [] for t in marginals}
        for slot, t, smoothed in self.redraw_all(start, min(marginals, default=len(self.frames))):
            if t in marginals:
                marginals[t].add_count(smoothed[:, -1], self.others(slot, t))
                beliefs[t].append((slot, smoothed))
        order = self.align(len(self.frames) - 1)
        for t, sums in marginals.items():
            tracks = self.align(t) if t < len(self.frames) - 1 else order
            for slot, smoothed in beliefs[t]:
                sums.add(slot, smoothed, self.chains.strengths, tracks)
            sums.sweeps += 1
        if self.belief.slots is None:  # slots mean nothing yet, so all chains number them alike
            self.chains.reorder(order)
        else:
            self._move_new_sources(order)

    def redraw_all(self, start: int, first: int) -> Iterator[tuple[int, int, Single]]:
        """Draw each path from frame `start` on; yield (slot, frame, smoothed beliefs) from frame `first` on."""
        for slot in self.rng.permutation(self._active()).tolist():
            filtered, likelihoods = self._redraw(slot, start)
            smoothed = [] if first >= len(self.frames) else self._smooth(filtered[first - start :], likelihoods)
            for t, beliefs in enumerate(smoothed, start=first):
                yield slot, t, beliefs

    def others(self, slot: int, t: int) -> IntArray:
        """Return how many other sources are there in a frame, (chains,)."""
        there = self.chains.states[:, :, t] < self.belief.absent
        return np.asarray(there.sum(axis=1) - there[:, slot])

    def _active(self) -> IntArray:
        """The slots that any chain uses and one spare; at the start, all."""
        used = self.present.any(axis=(0, 2)) | (self.belief.present > IDLE)
        spare = np.flatnonzero(~used)
        return np.concatenate([np.flatnonzero(used), spare[:1] if self.taken > STARTING else spare])

    def _redraw(self, slot: int, start: int, alone: Sequence[Scores] = ()) -> tuple[list[Single], list[Single]]:
        """Draw one path from frame `start` on, by scores of it `alone` if given; returns beliefs and likelihoods."""
        filtered, likelihoods = list[Single](), list[Single]()
        for t, scores in enumerate(alone or [frame.scores for frame in self.frames[start:]], start=start):
            beliefs = predicted(self.frames[t].step, filtered[-1]) if filtered else self._before(slot, t)
            likelihoods.append(weigh_readings(beliefs, scores, self.sources(t), slot))
            filtered.append(beliefs)
        aims, path = self.rng.random((len(filtered), self.size)), self.chains.states[:, slot]
        kernels.draw(filtered[-1], aims[-1], path[:, -1])
        for back, t in zip(range(len(filtered) - 2, -1, -1), range(len(self.frames) - 1, start, -1), strict=True):
            kernels.draw_before(self.frames[t].step, filtered[back], path[:, t], aims[back], path[:, t - 1])
        if not (self.prior.known or alone):
            self._redraw_strength(slot)
        return filtered, likelihoods

    def _before(self, slot: int, t: int) -> Single:
        """The beliefs about a slot in frame t before its readings, given what came before it."""
        if t == 0:
            return self.belief.at_first_frame(self.frames[0].step, slot, self.chains.states[:, :, 0])
        known = np.zeros((self.size, self.belief.absent + 1), dtype=np.float32)
        known[np.arange(self.size), self.chains.states[:, slot, t - 1]] = 1.0
        return predicted(self.frames[t].step, known)

    def _smooth(self, filtered: Sequence[Single], likelihoods: Sequence[Single]) -> list[Single]:
        """Turn beliefs about the last frames given the readings up to each into those given all readings."""
        later, smoothed = np.ones_like(filtered[-1]), [filtered[-1]]
        for back in range(1, len(filtered)):
            result = np.empty_like(later)
            kernels.look_back(self.frames[-back].step, filtered[-1 - back], likelihoods[-back], later, result)
            smoothed.append(result)
        return smoothed[::-1]

    def draw_offsets(self) -> None:
        if self.drift is not None:
            drawn = self.drift.draw(self._residuals(), self.rng)
            for frame, offsets in zip(self.frames, drawn, strict=True):
                frame.set_offsets(offsets, self.columns)

    def redraw_under_offsets(self, drift: OffsetBelief) -> None:
        """Draw each path from some frame on with offsets integrated out, if they may hide half of what a source shows.

        Proposes as if frames had offsets of their own, down to the weight of one frame; accepts by the joint law.
        """
        columns = self.columns * self.frames[0].observation.scale
        if ((columns @ drift.step.precision) * columns).sum() >= (columns**2).sum() / 2:
            return
        for slot in self.rng.permutation(self._active()).tolist():
            start, path, alone = int(self.rng.integers(len(self.frames))), self.chains.states[:, slot], []
            old, before, power = path.copy(), self._residuals(), self.rng.uniform(1 / (len(self.frames) - start), 1)
            known = reduce(OffsetBelief.after, before[:start], drift)
            path[:, start:] = self.belief.absent
            for residual, frame in zip(self._residuals()[start:], self.frames[start:], strict=True):
                [(step, _, surprise)] = known.filter([residual])
                seen: Single = (self.columns * residual.scale).astype(np.float32)
                weighed = seen @ (power * step.precision).astype(np.float32)
                readings, nothing = surprise.astype(np.float32) @ weighed.T, np.zeros_like(frame.scores.overlap)
                alone.append(Scores(readings, (weighed * seen).sum(axis=1), nothing))
            self._redraw(slot, start, alone)
            gain = known.persistence(self._residuals()[start:], power) - known.persistence(before[start:], power)
            path[:] = np.where((self.rng.random(self.size) < np.exp(np.minimum(gain, 0)))[:, None], path, old)

    def _residuals(self) -> list[Residual]:
        """The readings of each frame less the sources of each chain."""
        weights, residuals = np.where(self.present, self.chains.strengths[:, :, None], 0.0), []
        for t, frame in enumerate(self.frames):
            explained = np.einsum("cs,csm->cm", weights[:, :, t], self.columns[self.cells(t)])
            observed = frame.observation
            residuals.append(Residual(frame.time, observed.scale, observed.white - explained * observed.scale))
        return residuals

    def _redraw_strength(self, slot: int) -> None:
        """Draw the strength of one source given all paths, or that of all sources if they share it."""
        among, changed = (-1, slice(None)) if self.prior.shared else (slot, slice(slot, slot + 1))
        evidence, drawn = self.chains.evidence[:, max(among, 0)].copy(), np.empty(self.size)
        for t, frame in enumerate(self.frames):
            kernels.add_evidence(frame.scores, *self.sources(t), among, evidence)
        kernels.draw_strengths(evidence, self.prior.low, self.prior.high, self.rng, drawn)
        self.chains.strengths[:, changed] = drawn[:, None]

    def exchange(self) -> None:
        """Exchange the paths of two sources from each frame on, with the probability that their steps imply."""
        if len(self.frames) < 2 or self.slots < 2 or not (self.prior.known or self.prior.shared):
            return  # sources of different strengths are never exchanged
        pairs, order = self.slots * (self.slots - 1) // 2, np.tile(np.arange(self.slots), (self.size, 1))
        for _, run in groupby(range(1, len(self.frames)), key=lambda t: id(self.frames[t].step)):
            turns = tuple(run)  # equally long intervals, in one call
            aims = self.rng.random((len(turns), self.size, pairs))
            step = self.frames[turns[0]].step
            kernels.exchange(step, self.chains.states, self.chains.numbers, turns[0], aims, order)

    def _revive_stuck_chains(self) -> None:
        """Replace chains with far less likely paths by copies of the likeliest."""
        residuals, chance = self._residuals(), np.empty(self.size)
        if self.drift is None:
            scores = -sum((rest**2).sum(axis=1) for _, _, rest in residuals) / 2
        else:
            scores = self.drift.log_likelihood(residuals)
        for t, frame in enumerate(self.frames[1:], start=1):
            for slot in range(self.slots):
                path = self.chains.states[:, slot]
                kernels.transitions(frame.step, path[:, t - 1], path[:, t], chance)
                scores += np.log(np.maximum(chance, 1e-300))
        best = int(np.argmax(scores))
        stuck = scores < scores[best] - STUCK
        self.chains.copy_best(best, stuck)
        if self.drift is not None:
            self.drift.means[stuck] = self.drift.means[best]

    def align(self, t: int) -> IntArray:
        """Number the sources of a frame so that each track is in one place in all chains; returns the slot of each.

        A source that was there when the window began has the track of its slot, unless chains exchanged sources.
        """
        slots = np.tile(np.arange(self.slots), (self.size, 1))
        recent = np.argsort(self.chains.numbers[:, :, t], axis=1)
        order, _ = self.aligner.align(self.cells(t), slots, recent)
        self.chains.numbers[:, :, t] = np.argsort(order, axis=1)
        return order

    def _move_new_sources(self, order: IntArray) -> None:
        """Move sources that began within the window to the slots of their tracks.

        Two slots without a source in the first frame may exchange their paths: all probabilities stay the same.
        """
        new = ~self.present[:, :, 0]
        moved = np.tile(np.arange(self.slots), (self.size, 1))
        for row in range(self.size):
            for track in np.flatnonzero(new[row]).tolist():
                slot = int(np.flatnonzero(moved[row] == order[row, track])[0])
                if new[row, order[row, track]]:
                    moved[row, [track, slot]] = moved[row, [slot, track]]
        self.chains.reorder(moved)

    def drop_first(self, order: IntArray) -> None:
        """Take the first frame out of the window and into the belief.

        Each slot then follows a track: `order` (chains, slots) is the slot of each before.
        """
        frame, following = self.frames[0], self.frames[1].step if len(self.frames) > 1 else None
        # with drift, offsets are drawn given the drawn cells and say nothing about other cells: no ties
        self.belief = self.belief.after_first_frame(
            frame.step, frame.scores, self.sources(0), order, following, tie=self.drift is None
        )
        self.chains.reorder(order)
        frame.states = states = self.chains.states[:, :, 0].copy()
        self._share_origins(states == self.belief.absent)
        self._keep_evidence(frame, states)
        if self.drift is not None:
            self.drift = self.drift.after(self._residuals()[0])
        self.before = self.frames.pop(0).time
        self.chains.drop_first()

    def _keep_evidence(self, frame: WindowFrame, states: IntArray) -> None:
        """Add what the first frame says about strengths; what is known about absent sources is forgotten."""
        evidence = self.chains.evidence
        if self.prior.shared:
            kernels.add_evidence(frame.scores, states, self.chains.strengths, -1, evidence[:, 0])
            evidence[:] = evidence[:, :1]
            return
        for slot in range(self.slots):
            kernels.add_evidence(frame.scores, states, self.chains.strengths, slot, evidence[:, slot])
        evidence[states == self.belief.absent] = 0.0

    def _share_origins(self, gone: NDArray[np.bool_]) -> None:
        """Give sources that are absent in a chain the origins of another chain: their belief is that of all chains."""
        origins = self.chains.origins
        for slot in np.flatnonzero(gone.any(axis=0)).tolist():
            here, there = np.flatnonzero(~gone[:, slot]), np.flatnonzero(gone[:, slot])
            origins[there, slot] = origins[self.rng.choice(here, len(there)), slot] if len(here) else 0
