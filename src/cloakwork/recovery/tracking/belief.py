"""What all frames before the window say about each source, and how the window's first frame joins them."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.tracking.motion import Single, Step
from cloakwork.recovery.tracking.path_kernels import Scores, predict, weigh
from cloakwork.recovery.tracking.ties import Ties


class SourceStates(NamedTuple):
    """The drawn sources of one frame: states and strengths (chains, slots)."""

    states: IntArray
    strengths: FloatArray


def predicted(step: Step, beliefs: Single) -> Single:
    """Return beliefs after an interval."""
    after = np.empty_like(beliefs)
    predict(step, beliefs, after)
    return after


def weigh_readings(beliefs: Single, scores: Scores, sources: SourceStates, slot: int) -> Single:
    """Turn beliefs about a slot into those after the readings of a frame; returns the likelihood of each cell."""
    likelihoods = np.empty((len(beliefs), len(scores.squares) + 1), dtype=np.float32)
    weigh(beliefs, scores, *sources, slot, likelihoods)
    return likelihoods


@dataclass(frozen=True, eq=False)
class Belief:
    """The belief about the source of each slot just before the window.

    `slots` (slots, 2n + 1) are the probabilities of its states, None before the first frame; `ties` says how those of
    sources side by side depend on each other. At first, `first` (2n,) are the probabilities of the states of a source
    that is there, and `odds` (slots,) those of one more source next to 0, 1, 2, ... others.
    """

    first: Single
    odds: FloatArray
    slots: Single | None = None
    ties: Ties = field(default_factory=Ties)

    @property
    def absent(self) -> int:
        """The state of a source that is not there."""
        return len(self.first)

    @property
    def present(self) -> FloatArray:
        """The probability (slots,) that the source of each slot was there just before the window."""
        return np.zeros(len(self.odds)) if self.slots is None else np.asarray(1 - self.slots[:, -1])

    def at_first_frame(self, step: Step, slot: int, states: IntArray, *, but: int | None = None) -> Single:
        """Return the beliefs (chains, 2n + 1) about a slot at the window's first frame, before its readings.

        They depend on the `states` (chains, slots) of the sources tied to it there, `but` one.
        """
        if self.slots is None:
            others = (np.delete(states, slot, axis=1) < self.absent).sum(axis=1)
            chance = self.odds[others][:, None] * np.append(self.first, 0)
            chance[:, -1] = 1
            return np.asarray(chance, dtype=np.float32)
        beliefs = np.repeat(predicted(step, self.slots[slot : slot + 1]), len(states), axis=0)
        self.ties.weigh(beliefs, slot, states, but=but)
        return beliefs

    def after_first_frame(
        self, step: Step, scores: Scores, sources: SourceStates, order: IntArray, following: Step | None, *, tie: bool
    ) -> "Belief":
        """Return the belief once the window's first frame has left it.

        Each slot then follows a track: `order` (chains, slots) is the slot of each track before. `step` leads to the
        frame, `following` to the next one. SourceStates are tied if `tie`.
        """
        chains = np.stack([self.at_first_frame(step, slot, sources.states) for slot in range(len(self.odds))])
        for slot, beliefs in enumerate(chains):
            weigh_readings(beliefs, scores, sources, slot)
        chains = np.take_along_axis(chains, order.T[:, :, None], axis=0)
        ties = self._update_ties(chains, step, scores, sources, order) if tie else Ties()
        slots = np.ascontiguousarray(chains.mean(axis=1))
        if following is not None:
            ties = ties.after_interval(following.begin, slots, predicted(following, slots))
        return replace(self, slots=slots, ties=ties)

    def _update_ties(self, beliefs: Single, step: Step, scores: Scores, sources: SourceStates, order: IntArray) -> Ties:
        """Return the ties after the first frame's readings.

        Where two tied sources sit, turns their `beliefs` (slots, chains, 2n + 1), given the drawn cell of the other,
        into sums over all its cells.
        """
        rows, frequency = np.unique(order, axis=0, return_counts=True)
        usual, overlap, n = rows[frequency.argmax()].tolist(), scores.overlap, len(scores.overlap)
        before, sits = self.ties.renumbered(usual), sources.states < n
        ties = dict(before.candidates(beliefs.mean(axis=1), overlap).pairs)
        sums, times = np.zeros((*beliefs.shape[:2], n)), np.zeros(beliefs.shape[:2])
        for (a, b), tie in ties.items():
            slots = [usual[a], usual[b]]
            same_pair = (np.sort(order[:, [a, b]], axis=1) == np.sort(slots)).all(axis=1)  # or the two exchanged
            both = same_pair & sits[:, slots].all(axis=1)
            if (a, b) not in before.pairs or not both.any():
                continue
            at = beliefs[[a, b], :, :n].sum(axis=1).argmax(axis=1)  # reference cells
            one, other = (
                self._next_to(at[1 - k], slots[1 - k], step, scores, sources, slots[k])[both][:, cells]
                for k, cells in enumerate((tie.first, tie.second))
            )
            strength = np.mean(sources.strengths[both][:, slots].prod(axis=1))
            reference = overlap[tie.first, at[1], None] + overlap[at[0], tie.second] - overlap[at[0], at[1]]
            gain = strength * (reference - overlap[np.ix_(tie.first, tie.second)])
            own, others, ties[a, b] = tie.updated(one, other, gain)
            for slot, cells, summed in ((a, tie.first, own), (b, tie.second, others)):
                sums[slot, np.flatnonzero(both)[:, None], cells] += summed
                times[slot, both] += 1
        tied = times > 0
        beliefs[tied, :n] = beliefs[tied][:, :n].sum(axis=1, keepdims=True) * sums[tied] / times[tied][:, None]
        return Ties(ties)

    def _next_to(self, cell: int, other: int, step: Step, scores: Scores, sources: SourceStates, slot: int) -> Single:
        """Return the beliefs about a slot after the first frame if a slot tied to it sat in `cell`, the tie ignored."""
        beliefs, states = self.at_first_frame(step, slot, sources.states, but=other), sources.states.copy()
        states[:, other] = cell
        weigh_readings(beliefs, scores, SourceStates(states, sources.strengths), slot)
        return beliefs
