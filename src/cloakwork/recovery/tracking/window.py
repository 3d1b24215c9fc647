"""The window of a tracker: its frames, what each chain has drawn over them, and what the draws say of a frame."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.goodness_of_fit import Fit
from cloakwork.recovery.tracking.motion import Single, Step
from cloakwork.recovery.tracking.observation import Observation
from cloakwork.recovery.tracking.path_kernels import Scores, add_cells


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


@dataclass(eq=False)
class WindowFrame:
    """One frame of the window: its observation, the step that leads to it, and what is known about it so far.

    `offsets` (chains, m) is the part of the whitened readings that drift explains, `scores` are those of the rest.
    `marginals` sums what earlier steps of the tracker found, until the frame is `final`. `states` (chains, slots) are
    the cells that were drawn when the frame left the window.
    """

    time: float
    step: Step
    observation: Observation
    offsets: FloatArray = field(init=False)
    scores: Scores = field(init=False)
    fit: Fit = field(default_factory=Fit)
    marginals: TrackMarginals | None = None
    final: bool = False
    states: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.observe(self.observation)

    def observe(self, observation: Observation) -> None:
        """Take an observation in place of the last, without offsets until they are drawn."""
        self.observation, self.scores = observation, observation.scores
        self.offsets = np.zeros((1, len(observation.white)))

    def set_offsets(self, offsets: FloatArray, columns: Single) -> None:
        """Subtract drawn offsets (chains, m) from the readings."""
        rest = ((self.observation.white - offsets) * self.observation.scale).astype(np.float32)
        self.offsets, self.scores = offsets, self.scores._replace(readings=rest @ columns.T)


@dataclass(eq=False)
class Chains:
    """What each chain has drawn; a slot holds one of the sources that there can be.

    `states` (chains, slots, frames) are the paths and `strengths` (chains, slots) those of the sources. `numbers`
    (chains, slots, frames) is the track of each source in each frame. `origins` (chains, slots) is the label of the
    track that began with the source, 0 if none. `evidence` (chains, slots, 2) is what frames before the window say
    about each strength.
    """

    states: IntArray
    numbers: IntArray
    origins: IntArray
    strengths: FloatArray
    evidence: FloatArray

    @classmethod
    def empty(cls, chains: int, slots: int) -> "Chains":
        """Return chains over no frame."""
        none, zero = np.empty((chains, slots, 0), dtype=np.int64), np.zeros((chains, slots))
        return cls(none, none, zero.astype(np.int64), zero.copy(), np.zeros((chains, slots, 2)))

    def reorder(self, order: IntArray) -> None:
        """Renumber the slots of each chain: `order` (chains, slots) lists the old numbers."""
        for name, values in vars(self).items():
            where = order if values.ndim == 2 else order[:, :, None]
            setattr(self, name, np.take_along_axis(values, where, axis=1))

    def copy_best(self, best: int, stuck: NDArray[np.bool_]) -> None:
        """Replace stuck chains by copies of the best one."""
        for values in vars(self).values():
            values[stuck] = values[best]

    def insert(self, t: int, absent: int) -> None:
        """Insert a frame; each source first stays in the state before it."""
        shape, frames = self.origins.shape, self.states.shape[2]
        states = self.states[:, :, t - 1] if t else np.full(shape, absent)
        numbers = self.numbers[:, :, max(t - 1, 0)] if frames else np.broadcast_to(np.arange(shape[1]), shape)
        self.states = np.insert(self.states, t, states, axis=2)
        self.numbers = np.insert(self.numbers, t, numbers, axis=2)

    def drop_first(self) -> None:
        self.states, self.numbers = self.states[:, :, 1:].copy(), self.numbers[:, :, 1:].copy()
