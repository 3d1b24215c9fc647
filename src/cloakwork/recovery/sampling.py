"""Draws from the posterior of point sources by two chains, each started at a good fit."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.recovery.jump_chain import Draws, run_chain
from cloakwork.recovery.lattice import Lattice

WARM = 15  # sweeps at each higher level of noise
FEW_LEVELS = 6  # up to 64 times the noise, one start is enough
STARTS = 8
BURN_IN = 100  # sweeps before the first draw
SWEEPS = 6  # per draw, fewer if they are slow
QUICK = 60_000  # numbers in the columns of all places that one sweep reads quickly
LONGER = 4  # factor on the sweeps if the two chains disagree
DISAGREE = 0.2  # on the probability of a count


@dataclass(frozen=True)
class Prior:
    """The prior: uniform counts between two bounds, strengths uniform in [low, high], maybe `shared` by all."""

    low: float
    high: float
    shared: bool
    min_sources: int
    max_sources: int

    @property
    def known(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True, eq=False)
class PreviousFrame:
    """The draws of the frame before, and the lattice of their candidates."""

    lattice: Lattice
    draws: Draws


@dataclass(frozen=True, eq=False)
class _Sampler:
    """The posterior of one frame: candidates, whitened readings, prior and random numbers.

    The state of a chain is a single draw.
    """

    lattice: Lattice
    data: FloatArray
    prior: Prior
    rng: np.random.Generator

    def run(self, state: Draws, into: Draws, before: int, factor: int = 1) -> None:
        """Continue from a state for `before` sweeps, then fill `into`."""
        prior, lattice, [at], [strength] = self.prior, self.lattice, state.at, state.strength
        if len(at) != prior.max_sources or at.min() < 0 or at.max() >= len(lattice.fine):
            raise IndexError("the state belongs to another lattice")  # compiled loops do not check
        sweeps = factor * min(SWEEPS, max(2, SWEEPS * QUICK // max(1, lattice.coarse.size)))
        terms = (prior.low, prior.high, prior.shared), prior.min_sources, (before, sweeps), self.rng
        k = int(state.counts[0])
        state.counts[0] = run_chain(lattice.arrays, self.data, *terms, at, strength, k, into)

    def annealed(self) -> Draws:
        """A first state; with very little noise, the best of several."""
        few = len(self.lattice.warmer) <= FEW_LEVELS
        return min((self._cooled() for _ in range(1 if few else STARTS)), key=self.badness)

    def _started(self, lattice: Lattice) -> Draws:
        """As few sources as there may be, of mean strength, at random candidates of a lattice."""
        prior, state = self.prior, Draws.empty(1, self.prior.max_sources)
        state.at[:] = self.rng.integers(0, len(lattice.fine), prior.max_sources)
        state.strength[:], state.counts[:] = (prior.low + prior.high) / 2, prior.min_sources
        return state

    def _cooled(self) -> Draws:
        """Anneal over decreasing noise: with little noise alone, a chain would stay where it began."""
        prior, lattice = self.prior, self.lattice
        state = self._started(lattice.warmer[0])
        for warm, cooler in pairwise([*lattice.warmer, lattice]):
            data = self.data * (lattice.heat / warm.heat)
            _Sampler(warm, data, prior, self.rng).run(state, Draws.empty(1, prior.max_sources), WARM)
            state.at[0] = warm.nearest(state.at[0], cooler)
        self.run(state, Draws.empty(1, prior.max_sources), WARM)
        return state

    def badness(self, state: Draws) -> float:
        """Half the squared misfit, plus a cost per source for its place and strength."""
        lattice, prior = self.lattice, self.prior
        worth = lattice.space.dimension * math.log(2.0) * len(lattice.warmer)
        if not prior.known:
            worth += math.log(
                max(2.0, (prior.high - prior.low) * math.sqrt(float(np.median(lattice.arrays.coarse_squares))))
            )
        k = int(state.counts[0])
        rest = self.data - state.strength[0, :k] @ lattice.fine[state.at[0, :k]]
        return float(rest @ rest) / 2 + worth * k

    def carried(self, kept: PreviousFrame) -> Draws | None:
        """The last state of the frame before, moved to these candidates and this prior."""
        prior, lattice = self.prior, self.lattice
        if kept.lattice.space is not lattice.space:
            return None
        state, k = self._started(lattice), min(int(kept.draws.counts[-1]), prior.max_sources)
        state.at[0, :k] = kept.lattice.nearest(kept.draws.at[-1, :k], lattice)
        state.strength[0, :k] = np.clip(kept.draws.strength[-1, :k], prior.low, prior.high)
        if prior.shared and k:
            state.strength[:] = state.strength[0, :k].mean()
        state.counts[:] = max(k, prior.min_sources)
        return state


def sample(
    lattice: Lattice,
    data: FloatArray,
    prior: Prior,
    rng: np.random.Generator,
    before: PreviousFrame | None,
    into: Draws,
) -> None:
    """Fill `into` from two chains, one per half; run them longer if they disagree on the number of sources."""
    sampler = _Sampler(lattice, data, prior, rng)
    states = [sampler.annealed(), sampler.annealed()]
    carried = None if before is None else sampler.carried(before)
    if carried is not None and sampler.badness(carried) < sampler.badness(states[1]):
        states[1] = carried
    for before_draws, factor in ((BURN_IN, 1), (0, LONGER)):
        for half, state in enumerate(states):
            sampler.run(state, into.half(half), before_draws, factor)
        if lattice.coarse.size > QUICK or _disagreement(into, prior) <= DISAGREE:
            break


def _disagreement(draws: Draws, prior: Prior) -> float:
    shares = [np.bincount(draws.half(half).counts, minlength=prior.max_sources + 1) for half in range(2)]
    return float(np.abs(shares[0] - shares[1]).max()) / (len(draws.counts) // 2)
