"""What the draws of some sweeps say about the sources of one frame."""

from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.tracking.motion import Single
from cloakwork.recovery.tracking.path_kernels import add_cells


@dataclass(eq=False)
class TrackMarginals:
    """Sums of probabilities over sweeps.

    `cells` (2, tracks, n) is the probability of each cell for each track, in two halves of the chains. `counts` is that
    of each number of sources; `strength` (tracks,) the strength of each track times the probability that it exists.
    """

    cells: Single
    counts: FloatArray
    strength: FloatArray
    sweeps: int = 0

    @classmethod
    def empty(cls, slots: int, n: int) -> "TrackMarginals":
        return cls(np.zeros((2, slots, n), dtype=np.float32), np.zeros(slots + 1), np.zeros(slots))

    def __add__(self, other: "TrackMarginals | None") -> "TrackMarginals":
        if other is None:
            return self
        sums = (self.cells + other.cells, self.counts + other.counts, self.strength + other.strength)
        return TrackMarginals(*sums, self.sweeps + other.sweeps)

    def add_count(self, absent: Single, others: IntArray) -> None:
        """Add the distribution of the count: one source is absent with a probability, next to `others`, per chain."""
        np.add.at(self.counts, others, absent)
        np.add.at(self.counts, others + 1, 1 - absent)

    def add(self, slot: int, beliefs: Single, strengths: FloatArray, order: IntArray) -> None:
        """Add the beliefs (chains, 2n + 1) about a slot; `order` (chains, tracks) is the slot of each track."""
        add_cells(beliefs, order, slot, self.cells)
        existing = (1 - beliefs[:, -1]) * strengths[:, slot] / len(beliefs)
        np.add.at(self.strength, np.argmax(order == slot, axis=1), existing)

    @property
    def tracks(self) -> FloatArray:
        """The probability of each cell for each track, (tracks, n)."""
        return np.asarray(self.cells.sum(axis=0) / (2 * max(self.sweeps, 1)), dtype=np.float64)

    @property
    def halves(self) -> FloatArray:
        """The same in each half of the chains, (2, tracks, n)."""
        return np.asarray(self.cells / max(self.sweeps, 1))

    @property
    def mean_strength(self) -> FloatArray:
        """The mean strength of each track while it exists, (tracks,)."""
        return np.asarray(self.strength / np.maximum(self.sweeps * self.tracks.sum(axis=1), 0.1))

    @property
    def count_probabilities(self) -> FloatArray:
        """The probability of 0, 1, 2, ... sources."""
        return np.asarray(self.counts / max(self.counts.sum(), 1e-300))
