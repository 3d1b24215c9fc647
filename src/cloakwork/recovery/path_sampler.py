"""Paths of several sources over a window of frames, drawn from their posterior one source at a time.

Given the paths of the others, the path of one source is a hidden Markov chain: a forward pass weighs all its paths, and
a backward pass draws one (blocked Gibbs sampling). Several independent chains do so at once. The window begins with a
belief about each source, which holds what all earlier frames say about it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.motion import Beliefs, Transitions

SMALLEST = np.float32(1e-37)


@dataclass(frozen=True, eq=False)
class WeighedFrame:
    """A frame as the paths see it: what a source at each place adds to its log likelihood.

    `alone` (n,) is the gain of a lone source at each place, `overlap` (n, n) what two sources lose together.
    `transitions` lead from the frame before to this one; nothing reads those of the first frame.
    """

    time: float
    alone: Beliefs
    overlap: Beliefs
    transitions: Transitions


@dataclass(eq=False)
class PathSampler:
    """The posterior of the paths of several sources over the frames of a window.

    `states` (chains, slots, frames) are the drawn paths, one slot for each source that there can be. `beliefs`
    (slots, 2n + 1) are the laws of the sources just before the window. Where there was nothing before, `first` (2n,) is
    the law of a source that is there, and `odds` those of one more source beside 0, 1, 2, ... others.
    """

    first: Beliefs
    odds: FloatArray
    chains: int
    rng: np.random.Generator
    frames: list[WeighedFrame] = field(default_factory=list)
    beliefs: Beliefs | None = None
    states: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.states = np.full((self.chains, len(self.odds), 0), self.absent, dtype=np.int64)

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
        return np.asarray((np.delete(self.states[:, :, t], slot, axis=1) < self.absent).sum(axis=1))

    def insert(self, index: int, frame: WeighedFrame) -> None:
        """Insert a frame into the window; each source first stays in the state before it."""
        self.frames.insert(index, frame)
        before = self.states[:, :, index - 1] if index else np.full(self.states.shape[:2], self.absent)
        self.states = np.insert(self.states, index, before, axis=2)

    def redraw(self, slot: int, start: int = 0) -> list[Beliefs]:
        """Draw the path of one source from frame `start` on; returns its laws there given the readings up to each."""
        laws = self._forward(slot, start)
        self._backward(slot, start, laws)
        return laws

    def smoothed(self, slot: int, laws: Sequence[Beliefs]) -> list[Beliefs]:
        """The laws of one source at the last frames given all readings, from those given the readings up to each."""
        later = np.ones_like(laws[-1])
        smoothed = [laws[-1]]
        for back in range(1, len(laws)):
            t = len(self.frames) - back
            later = self.frames[t].transitions.back(self._weighed(later, t, slot))
            product = laws[-1 - back] * later
            smoothed.append(product / np.maximum(product.sum(axis=1, keepdims=True), SMALLEST))
        return smoothed[::-1]

    def _forward(self, slot: int, start: int) -> list[Beliefs]:
        """The law of a source at each frame from `start` on, given the readings up to it."""
        laws: list[Beliefs] = []
        for t in range(start, len(self.frames)):
            prior = self.frames[t].transitions.predict(laws[-1]) if laws else self._before(t, slot)
            laws.append(self._weighed(prior, t, slot))
        return laws

    def _backward(self, slot: int, start: int, laws: list[Beliefs]) -> None:
        """Draw a path, from the last frame back."""
        last = len(self.frames) - 1
        self.states[:, slot, last] = self._pick(laws[-1])
        for t in range(last - 1, start - 1, -1):
            towards = self.frames[t + 1].transitions.towards(self.states[:, slot, t + 1])
            self.states[:, slot, t] = self._pick(laws[t - start] * towards)

    def _before(self, t: int, slot: int) -> Beliefs:
        """The law of a source at frame t before its readings: given its state before, or what began the window."""
        if t > 0:
            known = np.zeros((self.chains, self.absent + 1), dtype=np.float32)
            known[np.arange(self.chains), self.states[:, slot, t - 1]] = 1.0
            return self.frames[t].transitions.predict(known)
        if self.beliefs is not None:
            return np.repeat(self.frames[0].transitions.predict(self.beliefs[slot : slot + 1]), self.chains, axis=0)
        chance = self.odds[self.others(slot, 0)][:, None] * np.append(self.first, 0)
        chance[:, -1] = 1
        return np.asarray(chance, dtype=np.float32)

    def _weighed(self, prior: Beliefs, t: int, slot: int) -> Beliefs:
        """The law of a source after the readings of frame t, given the others."""
        frame, n = self.frames[t], self.places
        gain = np.repeat(frame.alone[None], self.chains, axis=0)
        for other in range(self.slots):
            there = np.flatnonzero(self.states[:, other, t] < self.absent) if other != slot else ()
            if len(there):
                gain[there] -= frame.overlap[self.states[there, other, t] % n]
        possible = (prior[:, :n] > 0) | (prior[:, n:-1] > 0)
        top = np.where(possible, gain, -np.inf).max(axis=1, keepdims=True)
        top = np.where(prior[:, -1:] > 0, np.maximum(top, 0), top)
        factor = np.exp(np.minimum(gain - top, 0))
        after = np.empty_like(prior)
        np.multiply(prior[:, :n], factor, out=after[:, :n])
        np.multiply(prior[:, n:-1], factor, out=after[:, n:-1])
        after[:, -1:] = prior[:, -1:] * np.exp(-top)
        after /= np.maximum(after.sum(axis=1, keepdims=True), SMALLEST)
        return after

    def _pick(self, weights: Beliefs) -> IntArray:
        """Draw a state from each row of weights."""
        sums = np.cumsum(weights, axis=1, dtype=np.float64)
        aims = self.rng.random(len(sums)) * sums[:, -1]
        return np.array([np.searchsorted(row, aim, side="right") for row, aim in zip(sums, aims, strict=True)])

    def exchange(self) -> None:
        """Exchange the paths of two sources from a frame on, as likely as their steps to that frame allow."""
        if len(self.frames) < 2 or self.slots < 2:
            return
        t = int(self.rng.integers(1, len(self.frames)))
        pair = self.rng.choice(self.slots, 2, replace=False)
        a, b = self.states[:, pair, t - 1].T
        to_a, to_b = map(self.frames[t].transitions.towards, self.states[:, pair, t].T)
        rows = np.arange(self.chains)
        kept, crossed = to_a[rows, a] * to_b[rows, b], to_a[rows, b] * to_b[rows, a]
        swapped = np.flatnonzero(self.rng.random(self.chains) * (kept + crossed) < crossed)
        for chain in swapped:
            self.states[chain, pair, t:] = self.states[chain, pair[::-1], t:]

    def relabel(self, order: IntArray) -> None:
        """Renumber the slots of each chain: `order` (chains, slots) lists the old numbers."""
        self.states = np.take_along_axis(self.states, order[:, :, None], axis=1)

    def drop_first(self) -> IntArray:
        """Drop the first frame of the window and take its readings into the beliefs; returns its states."""
        laws = [self._weighed(self._before(0, slot), 0, slot).mean(axis=0) for slot in range(self.slots)]
        dropped = self.states[:, :, 0].copy()
        self.beliefs = np.stack(laws)
        del self.frames[0]
        self.states = self.states[:, :, 1:].copy()
        return dropped


def chances(beliefs: Beliefs) -> Beliefs:
    """The probability of each place, whether sitting or walking there: shape (..., n)."""
    n = beliefs.shape[-1] // 2
    return np.asarray(beliefs[..., :n] + beliefs[..., n:-1])
