"""Sources side by side: how the belief about one depends on where the other is.

Readings of two sources that sit near each other say more about both together than about each: the farther left one is,
the farther right the other. A belief about each alone forgets this, so the same readings would be counted again with
every frame, and both beliefs would become too sure. A *tie* keeps it for two sources that sit: the ratio of their joint
law to the product of their own laws.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.path_steps import Beliefs

Pair = tuple[int, int]
SITS, KEPT = 0.5, 0.1  # two sources are tied once each sits with this probability, and stay so while above the second
NEAR = 0.05  # and while the columns of their likeliest places overlap as much as this, as a cosine
FAINT = 1e-4  # places less likely than this part of the likeliest are not tied
LARGEST = 1e6  # of a ratio
HIGHEST = 300.0  # of a gain


@dataclass(frozen=True, eq=False)
class Tie:
    """The ratio of the joint law of two sources to the product of their own: `ratio` (a, b) at their likely places.

    `first` (a,) and `second` (b,) are these places; elsewhere the ratio is 1.
    """

    first: IntArray
    second: IntArray
    ratio: Beliefs

    @property
    def turned(self) -> "Tie":
        return Tie(self.second, self.first, self.ratio.T)

    def at(self, first: IntArray, second: IntArray) -> "Tie":
        """The same tie at other places."""
        ratio = np.ones((len(first), len(second)), dtype=np.float32)
        _, rows, known_rows = np.intersect1d(first, self.first, assume_unique=True, return_indices=True)
        _, columns, known_columns = np.intersect1d(second, self.second, assume_unique=True, return_indices=True)
        ratio[np.ix_(rows, columns)] = self.ratio[np.ix_(known_rows, known_columns)]
        return Tie(first, second, ratio)

    def after(self, one: Beliefs, other: Beliefs, gain: FloatArray) -> tuple[FloatArray, FloatArray, "Tie"]:
        """The laws of both after a frame, each summed over all places of the other, and their new tie.

        `one` (chains, a) and `other` (chains, b) are the laws of each if the other were at some place of reference, and
        `gain` (a, b) is how much likelier the readings are where they are than these two laws say. The new laws are
        those of each chain; the tie is that of their mean.
        """
        first, second = one.astype(np.float64), other.astype(np.float64)
        weight = self.ratio * np.exp(np.minimum(gain, HIGHEST))
        own, others = first * (second @ weight.T), second * (first @ weight)
        totals = np.maximum(own.sum(axis=1), 1e-300)[:, None]
        law = (first / totals).T @ second * weight / len(first)
        product = law.sum(axis=1)[:, None] * law.sum(axis=0)
        ratio = np.where(product > 1e-12, law / np.maximum(product, 1e-12), 1.0)
        return own / totals, others / totals, replace(self, ratio=np.minimum(ratio, LARGEST).astype(np.float32))


@dataclass(frozen=True, eq=False)
class Ties:
    """The ties between slots a < b just before a window."""

    of: Mapping[Pair, Tie] = field(default_factory=dict)

    def between(self, one: int, other: int) -> Tie | None:
        """The tie of two slots, None if there is none."""
        return dict(self.tied_to(one)).get(other)

    def tied_to(self, slot: int) -> Iterator[tuple[int, Tie]]:
        """The slots that one is tied to, and the tie of this one with each."""
        for (a, b), tie in self.of.items():
            if slot in (a, b):
                yield (b, tie) if slot == a else (a, tie.turned)

    def weigh(self, law: Beliefs, slot: int, states: IntArray, but: int | None = None) -> None:
        """Turn the law (chains, 2n + 1) of a slot into that given the states (chains, slots) of those tied to it."""
        for other, tie in self.tied_to(slot):
            if other != but:
                for chain, column in zip(*np.nonzero(states[:, other, None] == tie.second), strict=True):
                    law[chain, tie.first] *= tie.ratio[:, column]

    def after_interval(self, begin: float, before: Beliefs, after: Beliefs) -> "Ties":
        """The ties after an interval in which sources that sit begin to walk with some probability.

        `before` and `after` (slots, 2n + 1) are the laws at its ends. A pair of which one has moved is not tied.
        """
        n = before.shape[1] // 2
        sat, sits = before[:, :n].sum(axis=1), np.maximum(after[:, :n].sum(axis=1), 1e-30)
        stayed = np.minimum((1 - begin) * sat / sits, 1)
        return Ties(
            {(a, b): replace(tie, ratio=1 + stayed[a] * stayed[b] * (tie.ratio - 1)) for (a, b), tie in self.of.items()}
        )

    def renumbered(self, order: Sequence[int]) -> "Ties":
        """The ties when slot k was slot `order[k]` before."""
        now = {old: new for new, old in enumerate(order)}
        moved = {(now[a], now[b]): tie for (a, b), tie in self.of.items()}
        return Ties({(a, b) if a < b else (b, a): tie if a < b else tie.turned for (a, b), tie in moved.items()})

    def continued(self, beliefs: Beliefs, overlap: Beliefs) -> "Ties":
        """The ties to keep and to begin: of all who sit near each other, at the places where they are likely."""
        sitting = beliefs[:, : len(overlap)]
        sits, at = sitting.sum(axis=1), sitting.argmax(axis=1)
        near = overlap[np.ix_(at, at)] > NEAR * np.sqrt(np.outer(overlap[at, at], overlap[at, at]))
        likely = [np.flatnonzero(law > FAINT * law.max()) if law.any() else np.arange(0) for law in sitting]
        found = {}
        for a, b in np.argwhere(np.triu(near, 1)).tolist():
            tie = self.between(a, b)
            if min(sits[a], sits[b]) > (KEPT if tie else SITS):
                none = np.ones((len(likely[a]), len(likely[b])), dtype=np.float32)
                found[a, b] = tie.at(likely[a], likely[b]) if tie else Tie(likely[a], likely[b], none)
        return Ties(found)
