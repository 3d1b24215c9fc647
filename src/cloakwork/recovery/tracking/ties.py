"""Ties between sources side by side: how the belief about one depends on where the other is.

Readings of two sources that sit near each other say more about both together than about each: the farther left one is,
the farther right the other. Beliefs about each alone forget this. The same readings would then count again with every
frame, and both beliefs would become too sure. A *tie* keeps the ratio of the joint distribution of two sitting sources
to the product of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.tracking.motion import Single

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
