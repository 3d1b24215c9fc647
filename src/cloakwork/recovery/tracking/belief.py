"""What all frames before the window say about each source, and how the window's first frame joins them.

Readings of two sources that sit near each other say more about both together than about each: the farther left one is,
the farther right the other. Beliefs about each alone forget this. The same readings would then count again with every
frame, and both beliefs would become too sure. A *tie* keeps the ratio of the joint distribution of two sitting sources
to the product of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.tracking.motion import Single, Step
from cloakwork.recovery.tracking.path_kernels import Scores, predict, weigh

BEGIN, KEEP = 0.5, 0.1  # two sources are tied once each sits with the first probability, until below the second
NEAR = 0.05  # cosine of the columns of their likeliest cells above which two sources are near each other
FAINT = 1e-4  # cells less likely than this part of the likeliest are not tied
MAX_RATIO = 1e6
MAX_GAIN = 300.0


@dataclass(frozen=True, eq=False)
class Tie:
    """The ratio (a, b) of a joint distribution to the product of two, at the cells `first` (a,) and `second` (b,)."""

    first: IntArray
    second: IntArray
    ratio: Single

    @property
    def turned(self) -> "Tie":
        """The same tie with the sources in the other order."""
        return Tie(self.second, self.first, self.ratio.T)

    def at(self, first: IntArray, second: IntArray) -> "Tie":
        """Return the tie at other cells; where it was unknown, the ratio is 1."""
        ratio = np.ones((len(first), len(second)), dtype=np.float32)
        _, rows, known_rows = np.intersect1d(first, self.first, assume_unique=True, return_indices=True)
        _, columns, known_columns = np.intersect1d(second, self.second, assume_unique=True, return_indices=True)
        ratio[np.ix_(rows, columns)] = self.ratio[np.ix_(known_rows, known_columns)]
        return Tie(first, second, ratio)

    def updated(self, one: Single, other: Single, gain: FloatArray) -> tuple[FloatArray, FloatArray, "Tie"]:
        """Return the beliefs about both after a frame, each summed over the cells of the other, and their new tie.

        `one` (chains, a) and `other` (chains, b) are the beliefs if the other source were in a reference cell; `gain`
        (a, b) is how much likelier the readings are than these beliefs say. The tie is that of the mean over chains.
        """
        first, second = one.astype(np.float64), other.astype(np.float64)
        weight = self.ratio * np.exp(np.minimum(gain, MAX_GAIN))
        own, others = first * (second @ weight.T), second * (first @ weight)
        totals = np.maximum(own.sum(axis=1), 1e-300)[:, None]
        joint = (first / totals).T @ second * weight / len(first)
        product = joint.sum(axis=1)[:, None] * joint.sum(axis=0)
        ratio = np.where(product > 1e-12, joint / np.maximum(product, 1e-12), 1.0)
        return own / totals, others / totals, replace(self, ratio=np.minimum(ratio, MAX_RATIO).astype(np.float32))


@dataclass(frozen=True, eq=False)
class Ties:
    """The ties between slots a < b just before a window."""

    pairs: dict[tuple[int, int], Tie] = field(default_factory=dict)

    def of(self, slot: int) -> Iterator[tuple[int, Tie]]:
        """Yield the slots tied to one, and its tie with each."""
        for (a, b), tie in self.pairs.items():
            if slot in (a, b):
                yield (b, tie) if slot == a else (a, tie.turned)

    def weigh(self, beliefs: Single, slot: int, states: IntArray, *, but: int | None) -> None:
        """Turn the beliefs (chains, 2n + 1) about a slot into those given the states of the slots tied to it."""
        for other, tie in self.of(slot):
            if other != but:
                for chain, column in zip(*np.nonzero(states[:, other, None] == tie.second), strict=True):
                    beliefs[chain, tie.first] *= tie.ratio[:, column]

    def after_interval(self, begin: float, before: Single, after: Single) -> "Ties":
        """Return the ties after an interval in which a sitting source starts to walk with probability `begin`.

        `before` and `after` (slots, 2n + 1) are the beliefs at its ends. A pair of which one has moved is not tied.
        """
        n = before.shape[1] // 2
        sat, sits = before[:, :n].sum(axis=1), np.maximum(after[:, :n].sum(axis=1), 1e-30)
        stayed = np.minimum((1 - begin) * sat / sits, 1)
        return Ties(
            {
                (a, b): replace(tie, ratio=1 + stayed[a] * stayed[b] * (tie.ratio - 1))
                for (a, b), tie in self.pairs.items()
            }
        )

    def renumbered(self, order: Sequence[int]) -> "Ties":
        """Return the ties when slot k was slot `order[k]` before."""
        now = {old: new for new, old in enumerate(order)}
        moved = {(now[a], now[b]): tie for (a, b), tie in self.pairs.items()}
        return Ties({(a, b) if a < b else (b, a): tie if a < b else tie.turned for (a, b), tie in moved.items()})

    def candidates(self, beliefs: Single, overlap: Single) -> "Ties":
        """Return the ties to keep and to begin: of all pairs that sit near each other, at their likely cells."""
        sitting = beliefs[:, : len(overlap)]
        sits, at = sitting.sum(axis=1), sitting.argmax(axis=1)
        near = overlap[np.ix_(at, at)] > NEAR * np.sqrt(np.outer(overlap[at, at], overlap[at, at]))
        likely = [np.flatnonzero(cells > FAINT * cells.max()) if cells.any() else np.arange(0) for cells in sitting]
        found = {}
        for a, b in np.argwhere(np.triu(near, 1)).tolist():
            tie = self.pairs.get((a, b))
            if min(sits[a], sits[b]) > (KEEP if tie else BEGIN):
                none = np.ones((len(likely[a]), len(likely[b])), dtype=np.float32)
                found[a, b] = tie.at(likely[a], likely[b]) if tie else Tie(likely[a], likely[b], none)
        return Ties(found)


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
