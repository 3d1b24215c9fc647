"""Draws from the posterior of the sources of one frame.

A few slots are each empty or hold a source, and are redrawn in turn from all places at once, given the other slots: an
exact step of a Gibbs sampler. Independent chains start with a small part of the log likelihood, which grows to all of
it, so that they end where the posterior is.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork._compile import compiled, compiled_part
from cloakwork.recovery.lattice import Lattice
from cloakwork.recovery.source_strength import draw_strength, gain
from cloakwork.recovery.vectors import add, correlate, dot

DRAWS = 400
CHAINS = 8
COOLING = 8  # sweeps for each factor of two between the noise at first and that of the frame
LEAST_COOLING = 20
WARM_UP = 10  # sweeps before the first draw
SWEEPS = 3  # per draw, fewer if they are slow
QUICK = 60_000  # numbers in the columns of all places that one sweep reads quickly
NEGLIGIBLE = 50.0  # a place e^-50 times less likely than the best is never drawn
EXCHANGED = 0.5  # part of the moves between sources of different strengths
STUCK = 30.0  # a chain this much less likely than the best, in log probability, is stuck
LISTED = 0.95  # share of all expected sources to list
WITHIN = 3  # times that each source is redrawn among the candidates around its place


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

    def part(self, first: int, last: int) -> "Draws":
        """Some of the draws."""
        which = slice(first, last)
        return Draws(self.at[which], self.strength[which], self.counts[which], self.misfit[which])

    @property
    def present(self) -> Any:
        """Which entries hold a source, shape (draws, slots)."""
        return np.arange(self.at.shape[1]) < self.counts[:, None]

    @property
    def best(self) -> int:
        return int(np.argmin(self.misfit))


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws, the first half from other chains than the second.

    `counts` are the probabilities of 0, 1, 2, ... sources, and `intensity` (n,) their expected number at each place.
    """

    draws: Draws
    counts: FloatArray
    intensity: FloatArray

    @property
    def expected(self) -> float:
        return float(self.counts @ np.arange(len(self.counts)))

    def listed(self) -> int:
        """Number of sources to list: none if that is more likely than not, else nearly all that are expected."""
        if self.counts[0] > 0.5:
            return 0
        numbers = np.arange(len(self.counts))
        held = np.minimum(numbers, numbers[:, None]) @ self.counts
        return int(np.argmax(held >= LISTED * self.expected))


class Chain(NamedTuple):
    """A chain over the places of a lattice, as compiled functions take it.

    `columns` (rank, n) are those of the places and `squares` (n,) their squared norms. `odds` (slots,) are those of a
    source at one place against none, next to 0, 1, 2, ... others; infinite where there must be one. The first `held[0]`
    entries of `at` and `strength` (slots,) are the sources, and `rest` (rank,) is what they leave of the readings.
    `counts` (slots + 1,) and `intensity` (n,) add up the probabilities of each number of sources and each place. The
    last four are scratch, of readings and of places.
    """

    columns: FloatArray
    squares: FloatArray
    odds: FloatArray
    held: IntArray
    at: IntArray
    strength: FloatArray
    rest: FloatArray
    counts: FloatArray
    intensity: FloatArray
    rng: np.random.Generator
    base: FloatArray
    match: FloatArray
    bend: FloatArray
    weight: FloatArray


@compiled_part
def _add_place(chain: Chain, target: FloatArray, place: int, factor: float) -> None:
    """Add a multiple of the column of a place."""
    columns = chain.columns
    for t in range(len(target)):
        target[t] += factor * columns[t, place]


@compiled_part
def _relative(weight: FloatArray, top: float) -> float:
    """Turn logarithms of weights into weights relative to exp(top); returns their sum."""
    total = 0.0
    for i in range(len(weight)):
        weight[i] = math.exp(weight[i] - top) if weight[i] > top - NEGLIGIBLE else 0.0
        total += weight[i]
    return total


@compiled_part
def _weigh(chain: Chain, empty: float, low: float, high: float, beta: float) -> float:
    """Weigh a source at each place, its strength integrated out, and none; returns the probability of none.

    `empty` is the logarithm of the weight of none. A source of strength s at place i explains s (base + column i).
    """
    rest, base, squares = chain.rest, chain.base, chain.squares
    match, bend, weight = chain.match, chain.bend, chain.weight
    along, square, best, top = dot(base, rest), dot(base, base), empty, empty
    correlate(chain.columns, rest, match)
    if square > 0:
        correlate(chain.columns, base, bend)
    for i in range(len(match)):
        match[i] = beta * (match[i] + along)
        bend[i] = beta * (squares[i] + square + (2 * bend[i] if square > 0 else 0.0))
        strength = min(max(match[i] / bend[i], low), high) if bend[i] > 0 else low
        weight[i] = strength * (match[i] - strength * bend[i] / 2)  # at the best strength
        best = max(best, weight[i])
    for i in range(len(weight)):
        weight[i] = gain(match[i], bend[i], low, high) if weight[i] > best - NEGLIGIBLE else -np.inf
        top = max(top, weight[i])
    none = math.exp(empty - top)
    total = none + _relative(weight, top)
    add(chain.intensity, weight, 1 / total)
    return none / total


@compiled_part
def _pick(weight: FloatArray, rng: np.random.Generator) -> int:
    """A number in proportion to its weight."""
    left = rng.random() * weight.sum()
    for i in range(len(weight)):
        left -= weight[i]
        if left < 0:
            return i
    return len(weight) - 1


@compiled_part
def _take(chain: Chain, i: int, shared: bool) -> int:
    """Remove source i, and if sources share a strength all others, from what is explained; returns how many are left.

    Fills `base` with the columns of those others.
    """
    at, strength, rest, base, k = chain.at, chain.strength, chain.rest, chain.base, chain.held[0]
    base[:] = 0.0
    if i < k:
        _add_place(chain, rest, at[i], strength[i])
    for other in range(k if shared else 0):
        if other != i:
            _add_place(chain, base, at[other], 1.0)
    add(rest, base, strength[0])
    return int(k - 1 if i < k else k)


@compiled_part
def _put(chain: Chain, i: int, place: int, strength: float) -> None:
    """Source i, which may be new, is at a place now, or nowhere if that is -1."""
    at, held = chain.at, chain.held
    if place >= 0:
        at[i], chain.strength[i] = place, strength
        held[0] = max(held[0], i + 1)
        _add_place(chain, chain.rest, place, -strength)
    elif i < held[0]:
        held[0] -= 1
        at[i], chain.strength[i] = at[held[0]], chain.strength[held[0]]


@compiled_part
def _redraw(chain: Chain, prior: Any, i: int, beta: float) -> None:
    """Draw the place and strength of source i, or none, given the others; a new one if i is the number of sources.

    If all sources share a strength, it is integrated out and drawn as well.
    """
    low, high, shared = prior
    others = _take(chain, i, shared)
    along, square = beta * dot(chain.base, chain.rest), beta * dot(chain.base, chain.base)
    together = shared and others > 0
    alone = gain(along, square, low, high) if together else 0.0
    none = _weigh(chain, alone - math.log(chain.odds[others]), low, high, beta)
    chain.counts[others] += none
    chain.counts[others + 1] += 1 - none
    place, drawn = -1, 0.0
    if chain.rng.random() >= none:
        place = _pick(chain.weight, chain.rng)
        drawn = draw_strength(chain.match[place], chain.bend[place], low, high, chain.rng)
    elif together:
        drawn = draw_strength(along, square, low, high, chain.rng)
    _put(chain, i, place, drawn)
    if shared:
        add(chain.rest, chain.base, -drawn)
        chain.strength[:] = drawn


@compiled_part
def _exchange(chain: Chain, prior: Any, i: int, beta: float) -> None:
    """Draw source i again, or none, where what strength it gains another source loses: sources also split and merge."""
    (low, high, _), k, strength = prior, chain.held[0], chain.strength
    mate = (i + 1 + int(chain.rng.random() * (k - 1 if i < k else k))) % (k if i < k else k + 1)
    total = strength[mate] + (strength[i] if i < k else 0.0)
    least, most = max(low, total - high), min(high, total - low)
    if most <= least:
        return
    others = _take(chain, i, False)
    odds = chain.odds[others] * (most - least) / (high - low) if total <= high else np.inf
    _add_place(chain, chain.rest, chain.at[mate], strength[mate] - total)
    _add_place(chain, chain.base, chain.at[mate], -1.0)
    place, drawn = -1, 0.0
    if chain.rng.random() >= _weigh(chain, -math.log(odds), least, most, beta):
        place = _pick(chain.weight, chain.rng)
        drawn = draw_strength(chain.match[place], chain.bend[place], least, most, chain.rng)
    strength[mate] = total - drawn
    add(chain.rest, chain.base, -drawn)
    _put(chain, i, place, drawn)


@compiled_part
def _sweep(chain: Chain, prior: Any, beta: float) -> None:
    """Redraw as many sources as there can be, at random: one of those there are, or a new one."""
    (low, high, shared), held, rng = prior, chain.held, chain.rng
    for _ in range(len(chain.at)):
        i = int(rng.random() * len(chain.at))
        if i > held[0]:
            chain.counts[held[0]] += 1.0
        elif low < high and not shared and max(held[0], i + 1) > 1 and rng.random() < EXCHANGED:
            _exchange(chain, prior, i, beta)
        else:
            _redraw(chain, prior, i, beta)


@compiled
def run_chain(chain: Chain, prior: Any, betas: FloatArray, between: int, drawn: Draws) -> None:
    """Sweep once with each part `betas` of the log likelihood, then write a draw of places every few sweeps.

    `prior` is (low, high, shared).
    """
    drawn_at, drawn_strength, numbers = drawn.at, drawn.strength, drawn.counts
    for beta in betas:
        _sweep(chain, prior, beta)
    chain.counts[:], chain.intensity[:] = 0.0, 0.0
    for row in range(len(numbers)):
        for _ in range(between):
            _sweep(chain, prior, 1.0)
        drawn_at[row], drawn_strength[row], numbers[row] = chain.at, chain.strength, chain.held[0]


@compiled
def refine(fine: FloatArray, squares: FloatArray, finer: int, data: FloatArray, rng: Any, drawn: Draws) -> None:
    """Turn draws of places into draws of the `finer` candidates around each, and fill in the misfits."""
    at, strength, counts, misfit = drawn.at, drawn.strength, drawn.counts, drawn.misfit
    rest, weight = np.empty(len(data)), np.empty(finer)
    for row in range(len(counts)):
        rest[:] = data
        for i in range(counts[row]):
            at[row, i] = at[row, i] * finer + finer // 2  # the middle one
            add(rest, fine[at[row, i]], -strength[row, i])
        for _ in range(WITHIN if finer > 1 else 0):
            for i in range(counts[row]):
                s, first, top = strength[row, i], at[row, i] // finer * finer, -np.inf
                add(rest, fine[at[row, i]], s)
                for k in range(finer):
                    weight[k] = s * (dot(rest, fine[first + k]) - s * squares[first + k] / 2)
                    top = max(top, weight[k])
                _relative(weight, top)
                at[row, i] = first + _pick(weight, rng)
                add(rest, fine[at[row, i]], -s)
        misfit[row] = dot(rest, rest)


def posterior(lattice: Lattice, data: FloatArray, prior: Prior, rng: np.random.Generator) -> Posterior:
    """The posterior for whitened readings in the basis of the range, sampled by independent chains."""
    most, columns, n = prior.max_sources, np.ascontiguousarray(lattice.coarse.T), len(lattice.coarse)
    squares = (columns**2).sum(axis=0)
    odds = np.array([(k + 1) / n if k >= prior.min_sources else np.inf for k in range(most)])
    kind = (float(prior.low), float(prior.high), prior.shared)
    levels = math.ceil(math.log2(max(lattice.diameter / 8 / lattice.deviation, 2.0)))
    betas = 4.0 ** np.linspace(-levels, 0.0, max(LEAST_COOLING, COOLING * levels))
    chains, nothing = [], Draws.empty(0, most)
    for _ in range(CHAINS):
        least, at, strength = prior.min_sources, rng.integers(0, n, most), np.full(most, (prior.low + prior.high) / 2)
        rest = data - strength[:least] @ lattice.coarse[at[:least]]
        sums, scratch = (np.zeros(most + 1), np.zeros(n)), (np.empty(len(data)), *np.empty((3, n)))
        chains.append(Chain(columns, squares, odds, np.array([least]), at, strength, rest, *sums, rng, *scratch))
        run_chain(chains[-1], kind, betas, 0, nothing)
    _revive_stuck(chains)
    between = min(SWEEPS, max(1, SWEEPS * QUICK // max(1, columns.size)))
    draws, share = Draws.empty(DRAWS, most), DRAWS // CHAINS
    for number, chain in enumerate(chains):
        mine = draws.part(number * share, (number + 1) * share)
        run_chain(chain, kind, np.ones(WARM_UP), between, mine)
    fine = lattice.fine
    refine(fine, (fine**2).sum(axis=1), len(fine) // n, data, rng, draws)
    counts, landed = (np.sum(each, axis=0) for each in zip(*((c.counts, c.intensity) for c in chains), strict=True))
    counts /= counts.sum()
    shares = np.bincount(lattice.place[:: len(fine) // n], weights=landed, minlength=len(lattice.space))
    return Posterior(draws, counts, shares * (counts @ np.arange(most + 1)) / max(landed.sum(), 1e-300))


def _revive_stuck(chains: list[Chain]) -> None:
    """Replace chains with far less likely sources by copies of the likeliest."""
    scores = [-float(c.rest @ c.rest) / 2 - math.log(len(c.squares)) * c.held[0] for c in chains]
    best = chains[int(np.argmax(scores))]
    for chain, score in zip(chains, scores, strict=True):
        if score < max(scores) - STUCK:
            for mine, its in zip(chain[3:7], best[3:7], strict=True):
                mine[:] = its
