"""Sources side by side: how the belief about one depends on where the other is.

Readings of two sources that sit near each other say more about both together than about each: the farther left one is,
the farther right the other. A belief about each alone forgets this, so the same readings would be counted again with
every frame, and both beliefs would become too sure. A *tie* keeps it for two sources that sit: the ratio of their joint
law to the product of their own laws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.path_steps import Beliefs

Pair = tuple[int, int]
SITS, KEPT = 0.5, 0.1  # two sources are tied once each sits with this probability, and stay so while above the second
NEAR = 0.05  # and while their columns overlap as much as this, as a cosine
LARGEST = 1e6  # of a ratio
HIGHEST = 300.0  # of a gain


@dataclass(frozen=True, eq=False)
class Ties:
    """The ties (n, n) between slots a < b: ratios at the places of a and b, just before a window."""

    ratios: Mapping[Pair, Beliefs] = field(default_factory=dict)

    def of(self, slot: int, but: int | None = None) -> list[tuple[int, Beliefs]]:
        """The slots that one is tied to, and the ratio for each place of theirs and of this one; `but` left out."""
        tied = [(b, ratio.T) if a == slot else (a, ratio) for (a, b), ratio in self.ratios.items() if slot in (a, b)]
        return [(other, ratio) for other, ratio in tied if other != but]

    def between(self, one: int, other: int) -> Beliefs | None:
        """The ratio at the places of two slots, None if they are not tied."""
        return dict(self.of(other)).get(one)

    def weigh(self, law: Beliefs, slot: int, states: IntArray, but: int | None = None) -> None:
        """Turn the law (chains, 2n + 1) of a slot into that given the states (chains, slots) of those tied to it."""
        for other, ratio in self.of(slot, but):
            sits = states[:, other] < len(ratio)
            law[sits, : len(ratio)] *= ratio[states[sits, other]]

    def after_interval(self, begin: float, before: Beliefs, after: Beliefs) -> "Ties":
        """The ties after an interval in which sources that sit begin to walk with some probability.

        `before` and `after` (slots, 2n + 1) are the laws at its ends. A pair of which one has moved is not tied.
        """
        n = before.shape[1] // 2
        sat, sits = before[:, :n].sum(axis=1), np.maximum(after[:, :n].sum(axis=1), 1e-30)
        stayed = np.minimum((1 - begin) * sat / sits, 1)
        kept = {(a, b): 1 + stayed[a] * stayed[b] * (ratio - 1) for (a, b), ratio in self.ratios.items()}
        return Ties({pair: np.asarray(ratio, dtype=np.float32) for pair, ratio in kept.items()})

    def renumbered(self, order: Sequence[int]) -> "Ties":
        """The ties when slot k was slot `order[k]` before."""
        now = {old: new for new, old in enumerate(order)}
        moved = {(now[a], now[b]): ratio for (a, b), ratio in self.ratios.items()}
        return Ties({(a, b) if a < b else (b, a): ratio if a < b else ratio.T for (a, b), ratio in moved.items()})

    def pairs(self, beliefs: Beliefs, overlap: Beliefs) -> list[Pair]:
        """The slots to tie from now on: both sit, near each other."""
        n = len(overlap)
        sits, squares = beliefs[:, :n].sum(axis=1), beliefs[:, :n] @ overlap.diagonal()
        found = []
        for b in range(len(beliefs)):
            for a in range(b):
                least = KEPT if (a, b) in self.ratios else SITS
                if min(sits[a], sits[b]) > least:
                    shared = beliefs[a, :n] @ overlap @ beliefs[b, :n]
                    norm = np.sqrt(squares[a] * sits[a] * squares[b] * sits[b])
                    found += [(a, b)] if shared > NEAR * norm else []
        return found


def joint_law(one: Beliefs, other: Beliefs, tie: Beliefs, gain: FloatArray) -> FloatArray:
    """The joint law (n, n) of two sources that sit, the mean over the chains.

    `one` and `other` (chains, 2n + 1) are the laws of each if the other were at some place of reference, and `gain`
    (n, n) is how much likelier the readings are where they are than these two laws say.
    """
    n = len(tie)
    first, second = one[:, :n].astype(np.float64), other[:, :n].astype(np.float64)
    weight = tie * np.exp(np.minimum(gain, HIGHEST))
    totals = np.einsum("ci,ci->c", first @ weight, second)
    law = (first / np.maximum(totals, 1e-300)[:, None]).T @ second * weight
    return np.asarray(law / law.sum())


def ratio_of(law: FloatArray) -> Beliefs:
    """The tie of a joint law (n, n): 1 where it has no weight to speak of."""
    product = law.sum(axis=1)[:, None] * law.sum(axis=0)
    ratio = np.where(product > 1e-12, law / np.maximum(product, 1e-12), 1.0)
    return np.minimum(ratio, LARGEST).astype(np.float32)
