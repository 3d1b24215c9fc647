"""What the readings say about point sources, for one frame: draws from the posterior, and what they come to."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Metric
from cloakwork.recovery.chain import run_chain, settle
from cloakwork.recovery.enumeration import enumerate_placements
from cloakwork.recovery.lattice import Lattice
from cloakwork.recovery.summary import centre, quantiles, spread
from cloakwork.recovery.vicinity import Source, position

AFFORDABLE = 400_000  # placements of one count that are enumerated rather than sampled
DRAWS = 400
SETTLED = 4  # local moves of each source after enumeration, from the places to the candidates between them
WARM = 15  # sweeps at each level of noise before
FEW_LEVELS = 6  # up to 64 times the noise: a chain finds its way
STARTS = 8
BURN_IN = 100  # sweeps before the first draw
SWEEPS = 6  # for each draw, fewer where they take long
QUICK = 25_000  # numbers in the columns of all places that a sweep goes through quickly
LEVELS = 60  # quantiles of a map on a line: a multiple of 2, 3, 4, 5 and 6, so that equal sources share evenly
LISTED = 0.95  # sources are listed until they are this share of all that are expected


@dataclass(frozen=True)
class Law:
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
        """The first (0) or second (1) half, which are independent of each other."""
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
class Posterior:
    """Draws, the probability of each count, and a bound on the probability of what was left out (NaN if sampled)."""

    draws: Draws
    counts: FloatArray
    left_out: float

    @property
    def expected(self) -> float:
        """Expected number of sources."""
        return float(self.counts @ np.arange(len(self.counts)))

    def listed(self) -> int:
        """How many sources to list: none if that is more likely than not, or until nearly all expected ones are."""
        if self.counts[0] > 0.5:
            return 0
        numbers = np.arange(len(self.counts))
        held = np.minimum(numbers, numbers[:, None]) @ self.counts
        return int(np.argmax(held >= LISTED * self.expected))


def posterior(lattice: Lattice, data: FloatArray, law: Law, rng: np.random.Generator, start: Draws | None) -> Posterior:
    """The posterior for whitened readings in the basis of the range, enumerated if that is cheap, else sampled.

    `start` are draws of the frame before, from which one of the two chains goes on.
    """
    draws = Draws.empty(DRAWS, law.most)
    if law.known:
        counts = np.zeros(law.most + 1)
        seen, gram = law.low * (lattice.coarse @ data), lattice.gram(law.low)
        terms = (seen, seen - np.diag(gram) / 2, gram, float(data @ data))
        left_out = enumerate_placements(terms, law.least, AFFORDABLE, 0.5, counts, draws.at)
        if math.isfinite(left_out):
            draws.at[:] = np.concatenate([draws.at[0::2], draws.at[1::2]])
            draws.counts[:] = (draws.at >= 0).sum(axis=1)
            settle(lattice.arrays, data, law.low, SETTLED, rng, draws.arrays)
            return Posterior(draws, counts, left_out)
    for half in range(2):
        state = _annealed(lattice, data, law, rng) if start is None or half == 0 else _state(start)
        _sample(lattice, data, law, rng, state, draws.half(half), BURN_IN)
    return Posterior(draws, np.bincount(draws.counts, minlength=law.most + 1) / DRAWS, math.nan)


@dataclass
class _State:
    """Where a chain is: candidates, strengths and number of its sources."""

    at: IntArray
    strength: FloatArray
    k: int


def _sample(
    lattice: Lattice, data: FloatArray, law: Law, rng: np.random.Generator, state: _State, into: Draws, before: int
) -> None:
    sweeps = min(SWEEPS, max(2, SWEEPS * QUICK // lattice.coarse.size))
    terms, lengths = (law.low, law.high, law.shared), (before, sweeps)
    state.k = run_chain(
        lattice.arrays, data, terms, law.least, lengths, rng, state.at, state.strength, state.k, into.arrays
    )


def _state(before: Draws) -> _State:
    return _State(before.at[-1].copy(), before.strength[-1].copy(), int(before.counts[-1]))


def _annealed(lattice: Lattice, data: FloatArray, law: Law, rng: np.random.Generator) -> _State:
    """A first state, from chains with less and less noise: with little noise a chain would stay where it began.

    With so little noise that a chain may settle in the wrong place, the best of several, a source more counting as much
    as its place and strength are worth.
    """
    levels = len(lattice.warmer)
    worth = lattice.space.dimension * math.log(2.0) * levels
    if not law.known:
        worth += math.log(max(2.0, (law.high - law.low) * math.sqrt(float(np.median(lattice.arrays[1])))))
    tries = [_cooled(lattice, data, law, rng) for _ in range(1 if levels <= FEW_LEVELS else STARTS)]
    return min(tries, key=lambda state: _misfit(lattice, data, state) / 2 + worth * state.k)


def _cooled(lattice: Lattice, data: FloatArray, law: Law, rng: np.random.Generator) -> _State:
    at = rng.integers(0, len(lattice.warmer[0].fine), law.most)
    state = _State(at, np.full(law.most, (law.low + law.high) / 2), law.least)
    for warm, cooler in pairwise([*lattice.warmer, lattice]):
        scale = lattice.problem.noise / warm.problem.noise
        _sample(warm, data * scale, law, rng, state, Draws.empty(1, law.most), WARM)
        state.at = warm.nearest(state.at, cooler)
    _sample(lattice, data, law, rng, state, Draws.empty(1, law.most), WARM)
    return state


def _misfit(lattice: Lattice, data: FloatArray, state: _State) -> float:
    rest = data - state.strength[: state.k] @ lattice.fine[state.at[: state.k]]
    return float(rest @ rest)


@dataclass(frozen=True, eq=False)
class Summary:
    """What is reported of a posterior: a map (n,), expected sources at each place (n,), sources, and the error."""

    map: FloatArray
    intensity: FloatArray
    sources: tuple[Source, ...]
    gap: float


def summarise(found: Posterior, lattice: Lattice, level: float) -> Summary:
    """Map, intensity and sources with vicinities that hold a share `level` of all expected sources."""
    draws, n = found.draws, len(lattice.space)
    intensity = np.bincount(lattice.place[draws.at[draws.present]], minlength=n) / len(draws.counts)
    listed = found.listed()
    if not draws.counts.any():
        return Summary(np.zeros(n), intensity, (), 0.0)
    centres = _first_centres(draws, max(listed, 1))
    labels = np.empty(draws.at.shape, dtype=np.int64)
    centre(lattice.metric, centres, draws.at, draws.counts, labels)
    held = float(np.minimum(np.arange(len(found.counts)), listed) @ found.counts)
    share = min(1.0, level * found.expected / max(held, 1e-300))
    sources = tuple(_source(j, centres[j], labels, draws, lattice, share) for j in range(listed))
    order = sorted(sources, key=lambda source: -source.weight * source.probability)
    return Summary(_map(draws, centres, labels, lattice), intensity, tuple(order), _gap(found, lattice, centres))


def _first_centres(draws: Draws, listed: int) -> IntArray:
    """The sources of the best draw that has enough, the strongest first."""
    enough = np.flatnonzero(draws.counts >= listed)
    row = enough[int(np.argmin(draws.misfit[enough]))]
    strongest = np.argsort(-draws.strength[row, : draws.counts[row]], kind="stable")[:listed]
    return np.array(draws.at[row, strongest])


def _source(j: int, at: int, labels: IntArray, draws: Draws, lattice: Lattice, share: float) -> Source:
    mine = (labels == j) & draws.present
    middle = len(draws.counts) // 2
    shaping, cutting = draws.at[:middle][mine[:middle]], draws.at[middle:][mine[middle:]]
    if min(len(shaping), len(cutting)) < 10:  # too unlikely a source to split its draws
        shaping = cutting = draws.at[mine]
    density, far = np.empty(len(lattice.fine)), lattice.distances(at)
    starts, near = lattice.arrays[6:8]
    spread(starts, near, shaping, far, density)
    held = density >= _cut(density[cutting], share)
    space, place = lattice.space, int(lattice.place[at])
    parts = np.bincount(lattice.place, minlength=len(space))
    vicinity = np.flatnonzero(2 * np.bincount(lattice.place, weights=held, minlength=len(space)) >= parts)
    if not len(vicinity):
        vicinity = np.array([place])
    return Source(
        place=place,
        at=position(lattice.positions[at], place, space),
        weight=float(draws.strength[mine].mean()),
        radius=float(far[held].max()),
        vicinity=vicinity,
        probability=float(mine.any(axis=1).mean()),
    )


def _cut(values: FloatArray, share: float) -> float:
    """The value that a share of all values reaches."""
    kept = min(max(round(share * len(values)), 1), len(values))
    return float(np.partition(values, len(values) - kept)[len(values) - kept])


def _map(draws: Draws, centres: IntArray, labels: IntArray, lattice: Lattice) -> FloatArray:
    """The map of least expected earth mover distance, scaled to the expected total strength.

    Notes
    -----
    On a line it is exact: the place-wise median of the cumulative maps. Elsewhere each listed source is put where
    its draws are least far in all, with its mean share; the distance of no map to a random draw can be below half the
    mean distance between two draws, so this is at most twice the best when it is no worse than a draw.
    """
    present = draws.present
    strength = np.where(present, draws.strength, 0.0)
    total = strength.sum(axis=1)
    if lattice.space.metric is Metric.LINE:
        return np.asarray(total.mean() * lattice.on_places(_median_quantiles(draws, lattice)) / LEVELS)
    shares = np.divide(strength, total[:, None], out=np.zeros_like(strength), where=total[:, None] > 0)
    weights = np.array([shares[(labels == j) & present].sum() for j in range(len(centres))])
    found = np.bincount(lattice.place[centres], weights=weights, minlength=len(lattice.space))
    return np.asarray(total.mean() * found / max(weights.sum(), 1e-300))


def _gap(found: Posterior, lattice: Lattice, centres: IntArray) -> float:
    """How far, in earth mover distance, the map may be from that of the exact posterior."""
    if math.isfinite(found.left_out):
        return found.left_out * lattice.diameter
    if lattice.space.metric is Metric.LINE:
        halves = [_median_quantiles(found.draws.half(half), lattice) for half in range(2)]
        return float(np.abs(halves[0] - halves[1]).mean()) if len(halves[0]) == len(halves[1]) else lattice.diameter
    moved = [centres.copy(), centres.copy()]
    for half in range(2):
        draws = found.draws.half(half)
        centre(lattice.metric, moved[half], draws.at, draws.counts, np.empty(draws.at.shape, dtype=np.int64))
    apart = [lattice.apart(int(a), int(b)) for a, b in zip(*moved, strict=True)]
    return float(np.mean(apart))


def _median_quantiles(draws: Draws, lattice: Lattice) -> FloatArray:
    """For each level the median over draws of the position below which that share of the strength lies.

    These are the quantiles of the place-wise median of the cumulative maps: the median at x is at least t exactly when
    half the draws have their t-quantile at x or before.
    """
    found = np.empty((LEVELS, len(draws.counts)))
    order = np.empty(draws.at.shape[1], dtype=np.int64)
    used = quantiles(lattice.along, draws.at, draws.strength, draws.counts, found, order)
    return np.asarray(np.median(found[:, :used], axis=1)) if used else np.zeros(0)
