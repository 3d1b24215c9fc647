"""Draws from the posterior of point sources by two chains, started where the readings are explained well."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.chain import run_chain
from cloakwork.recovery.lattice import Lattice

WARM = 15  # sweeps at each level of noise before
FEW_LEVELS = 6  # up to 64 times the noise: a chain finds its way
STARTS = 8
BURN_IN = 100  # sweeps before the first draw
SWEEPS = 6  # for each draw, fewer where they take long
QUICK = 60_000  # numbers in the columns of all places that a sweep goes through quickly
LONGER = 4  # times as many sweeps, if the two chains disagree
DISAGREE = 0.2  # about the probability of a count


@dataclass(frozen=True)
class Prior:
    """What is assumed before the readings are seen: counts uniform from `least` to `most`, strengths in [low, high]."""

    low: float
    high: float
    shared: bool
    least: int
    most: int

    @property
    def known(self) -> bool:
        """Whether all strengths are known."""
        return self.low == self.high


@dataclass(frozen=True, eq=False)
class Draws:
    """Equally likely sets of sources: candidates (draws, most), strengths, counts (draws,) and squared misfits."""

    at: IntArray
    strength: FloatArray
    counts: IntArray
    misfit: FloatArray

    @classmethod
    def empty(cls, number: int, most: int) -> "Draws":
        """Room for draws."""
        at = np.zeros((number, most), dtype=np.int64)
        return cls(at, np.zeros((number, most)), np.zeros(number, dtype=np.int64), np.zeros(number))

    def half(self, second: int) -> "Draws":
        """The first (0) or second (1) half: two chains, or every other one of draws at evenly spaced quantiles."""
        middle = len(self.counts) // 2
        which = slice(middle, None) if second else slice(None, middle)
        return Draws(self.at[which], self.strength[which], self.counts[which], self.misfit[which])

    @property
    def arrays(self) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
        """All four."""
        return (self.at, self.strength, self.counts, self.misfit)

    @property
    def present(self) -> Any:
        """Which entries hold a source, shape (draws, most)."""
        return np.arange(self.at.shape[1]) < self.counts[:, None]

    @property
    def best(self) -> int:
        """The draw that fits best."""
        return int(np.argmin(self.misfit))


@dataclass(frozen=True, eq=False)
class PreviousFrame:
    """What is kept of a frame for the next one: draws, and the lattice that their candidates belong to."""

    lattice: Lattice
    draws: Draws


@dataclass
class _State:
    """Where a chain is: candidates, strengths and number of its sources."""

    at: IntArray
    strength: FloatArray
    k: int


@dataclass(frozen=True, eq=False)
class _Sampler:
    """The posterior of one frame: candidates, whitened readings, assumptions and random numbers."""

    lattice: Lattice
    data: FloatArray
    law: Prior
    rng: np.random.Generator

    def run(self, state: _State, into: Draws, before: int, factor: int = 1) -> None:
        """Go on from a state for `before` sweeps, then fill `into`."""
        law, lattice = self.law, self.lattice
        if len(state.at) != law.most or state.at.min() < 0 or state.at.max() >= len(lattice.fine):
            raise IndexError("a state of another lattice")  # compiled loops do not check
        sweeps = factor * min(SWEEPS, max(2, SWEEPS * QUICK // max(1, lattice.coarse.size)))
        terms, arrays = (law.low, law.high, law.shared), lattice.arrays
        sources = (state.at, state.strength, state.k)
        state.k = run_chain(arrays, self.data, terms, law.least, (before, sweeps), self.rng, *sources, into.arrays)

    def annealed(self) -> _State:
        """A first state; with so little noise that one may be in the wrong place, the best of several."""
        few = len(self.lattice.warmer) <= FEW_LEVELS
        return min((self._cooled() for _ in range(1 if few else STARTS)), key=self.badness)

    def _cooled(self) -> _State:
        """From chains with less and less noise: with little noise a chain would stay where it began."""
        law, lattice = self.law, self.lattice
        at = self.rng.integers(0, len(lattice.warmer[0].fine), law.most)
        state = _State(at, np.full(law.most, (law.low + law.high) / 2), law.least)
        for warm, cooler in pairwise([*lattice.warmer, lattice]):
            data = self.data * (lattice.heat / warm.heat)
            _Sampler(warm, data, law, self.rng).run(state, Draws.empty(1, law.most), WARM)
            state.at = warm.nearest(state.at, cooler)
        self.run(state, Draws.empty(1, law.most), WARM)
        return state

    def badness(self, state: _State) -> float:
        """Half the squared misfit, and for each source as much as its place and strength are worth."""
        lattice, law = self.lattice, self.law
        worth = lattice.space.dimension * math.log(2.0) * len(lattice.warmer)
        if not law.known:
            worth += math.log(max(2.0, (law.high - law.low) * math.sqrt(float(np.median(lattice.arrays[1])))))
        rest = self.data - state.strength[: state.k] @ lattice.fine[state.at[: state.k]]
        return float(rest @ rest) / 2 + worth * state.k

    def carried(self, kept: PreviousFrame) -> _State | None:
        """The last state of the frame before, on these candidates and within these assumptions."""
        law, lattice = self.law, self.lattice
        if kept.lattice.space is not lattice.space:
            return None
        k = min(int(kept.draws.counts[-1]), law.most)
        at = self.rng.integers(0, len(lattice.fine), law.most)
        at[:k] = kept.lattice.nearest(kept.draws.at[-1, :k], lattice)
        strength = np.full(law.most, (law.low + law.high) / 2)
        strength[:k] = np.clip(kept.draws.strength[-1, :k], law.low, law.high)
        if law.shared and k:
            strength[:] = strength[:k].mean()
        return _State(at, strength, max(k, law.least))


def sample(
    lattice: Lattice, data: FloatArray, law: Prior, rng: np.random.Generator, before: PreviousFrame | None, into: Draws
) -> None:
    """Fill `into` from two chains, one for each half; longer ones if they disagree about the number of sources."""
    sampler = _Sampler(lattice, data, law, rng)
    states = [sampler.annealed(), sampler.annealed()]
    carried = None if before is None else sampler.carried(before)
    if carried is not None and sampler.badness(carried) < sampler.badness(states[1]):
        states[1] = carried
    _both(sampler, states, into, BURN_IN, 1)
    if lattice.coarse.size <= QUICK and _disagreement(into, law) > DISAGREE:
        _both(sampler, states, into, 0, LONGER)


def _both(sampler: _Sampler, states: list[_State], into: Draws, before: int, factor: int) -> None:
    for half, state in enumerate(states):
        sampler.run(state, into.half(half), before, factor)


def _disagreement(draws: Draws, law: Prior) -> float:
    shares = [np.bincount(draws.half(half).counts, minlength=law.most + 1) for half in range(2)]
    return float(np.abs(shares[0] - shares[1]).max()) / (len(draws.counts) // 2)
