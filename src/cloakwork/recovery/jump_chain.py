"""A reversible-jump chain over the number, places and strengths of point sources; `chain_moves` describes its moves."""

from typing import Any, NamedTuple

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery import chain_moves
from cloakwork.recovery.chain_moves import Candidates, ChainState
from cloakwork.recovery.vectors import add, dot


class Draws(NamedTuple):
    """Equally likely sets of sources: candidates and strengths (draws, slots), counts and squared misfits (draws,)."""

    at: IntArray
    strength: FloatArray
    counts: IntArray
    misfit: FloatArray

    @classmethod
    def empty(cls, number: int, max_sources: int) -> "Draws":
        at = np.zeros((number, max_sources), dtype=np.int64)
        return cls(at, np.zeros((number, max_sources)), np.zeros(number, dtype=np.int64), np.zeros(number))

    def half(self, second: int) -> "Draws":
        """The first (0) or second (1) half: one chain, or every other draw at evenly spaced quantiles."""
        middle = len(self.counts) // 2
        which = slice(middle, None) if second else slice(None, middle)
        return Draws(self.at[which], self.strength[which], self.counts[which], self.misfit[which])

    @property
    def present(self) -> Any:
        """Which entries hold a source, shape (draws, slots)."""
        return np.arange(self.at.shape[1]) < self.counts[:, None]

    @property
    def best(self) -> int:
        return int(np.argmin(self.misfit))


@compiled_part
def _move(lattice: Candidates, state: ChainState, k: int, low: float, high: float, shared: bool) -> None:
    """Moves that keep the number of sources."""
    lowest, highest = low, high
    if shared and k > 1:
        lowest = highest = state.strength[0]
    for i in range(k):
        if lowest == highest:
            chain_moves.shift(lattice, state, i)
        else:
            chain_moves.local(lattice, state, i, lowest, highest)
        if k > 1:
            j = chain_moves.other(i, k, state.rng)
            chain_moves.pair(lattice, state, i, j)
            if low < high and not shared:
                chain_moves.exchange(lattice, state, i, j, low, high)
    if k > 0:
        chain_moves.anywhere(lattice, state, chain_moves.below(k, state.rng), lowest, highest)
        if shared:
            chain_moves.common(lattice, state, k, low, high)


@compiled_part
def _jump(lattice: Candidates, state: ChainState, k: int, least: int, low: float, high: float, shared: bool) -> int:
    """Moves to one source more or less; each of two opposite moves is tried half the time."""
    most, up = len(state.at), state.rng.random() < 0.5
    if up and k < most:
        k = chain_moves.birth(lattice, state, k, low, high, shared)
    elif not up and k > least:
        k = chain_moves.death(lattice, state, k, low, high, shared)
    if low < high and not shared:
        up = state.rng.random() < 0.5
        if up and 0 < k < most:
            k = chain_moves.split(lattice, state, k, low, high)
        elif not up and k > max(least, 1):
            k = chain_moves.merge(lattice, state, k, low, high)
    return k


@compiled
def run_chain(
    lattice: Candidates,
    data: FloatArray,
    prior: tuple[float, float, bool],
    least: int,
    lengths: tuple[int, int],
    rng: np.random.Generator,
    at: IntArray,
    strength: FloatArray,
    k: int,
    drawn: Draws,
) -> int:
    """Start from k >= `least` sources (`at`, `strength`) and write a draw to `drawn` every few sweeps; the final k.

    `prior` is (low, high, shared), and `lengths` (sweeps before the first draw, sweeps per draw).
    """
    low, high, shared = prior
    before, between = lengths
    state = ChainState(at, strength, data.copy(), np.empty(len(data)), np.empty(len(lattice.coarse)), rng)
    drawn_at, drawn_strength, counts, misfits = drawn.at, drawn.strength, drawn.counts, drawn.misfit
    for i in range(k):
        add(state.rest, lattice.fine[at[i]], -strength[i])
    for row in range(len(counts)):
        for _ in range(between if row else before):
            _move(lattice, state, k, low, high, shared)
            k = _jump(lattice, state, k, least, low, high, shared)
        for i in range(len(at)):
            drawn_at[row, i] = at[i]
            drawn_strength[row, i] = strength[i]
        counts[row] = k
        misfits[row] = dot(state.rest, state.rest)
    return k


@compiled
def settle(
    lattice: Candidates,
    data: FloatArray,
    strength: float,
    sweeps: int,
    rng: np.random.Generator,
    drawn: Draws,
) -> None:
    """Turn draws of places into draws of candidates around them, by local moves."""
    members = lattice.members
    nothing = np.empty(0)
    drawn_at, drawn_strength, counts, misfits = drawn.at, drawn.strength, drawn.counts, drawn.misfit
    for row in range(len(counts)):
        state = ChainState(drawn_at[row], drawn_strength[row], data.copy(), nothing, nothing, rng)
        k = counts[row]
        for i in range(k):
            state.at[i] = members[state.at[i], chain_moves.below(members.shape[1], rng)]
            state.strength[i] = strength
            add(state.rest, lattice.fine[state.at[i]], -strength)
        for _ in range(sweeps):
            for i in range(k):
                chain_moves.shift(lattice, state, i)
        misfits[row] = dot(state.rest, state.rest)
