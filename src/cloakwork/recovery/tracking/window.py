"""The window of a tracker: its frames, and what each chain has drawn over them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.goodness_of_fit import Fit
from cloakwork.recovery.tracking.motion import Single, Step
from cloakwork.recovery.tracking.observation import Observation
from cloakwork.recovery.tracking.path_kernels import Scores
from cloakwork.recovery.tracking.track_marginals import TrackMarginals


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
