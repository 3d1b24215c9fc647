"""What the readings say about point sources, for one frame: draws from the posterior, and what they come to."""

import math
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Metric
from cloakwork.recovery.chain import settle
from cloakwork.recovery.enumeration import enumerate_placements
from cloakwork.recovery.lattice import Lattice
from cloakwork.recovery.sampling import Draws, PreviousFrame, Prior, sample
from cloakwork.recovery.summary import centre, quantiles, spread
from cloakwork.recovery.vicinity import Source, position

AFFORDABLE = 400_000  # placements of one count that are enumerated rather than sampled
MOST_ENUMERATED = 3_000  # places of which inner products are held
LARGEST_SQUARE = 1e13  # of readings in units of noise: beyond, differences of scores lose their digits
DRAWS = 400
SETTLED = 4  # local moves of each source after enumeration, from the places to the candidates between them
LEVELS = 60  # quantiles of a map on a line: a multiple of 2, 3, 4, 5 and 6, so that equal sources share evenly
LISTED = 0.95  # sources are listed until they are this share of all that are expected


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


def posterior(
    lattice: Lattice, data: FloatArray, law: Prior, rng: np.random.Generator, before: PreviousFrame | None = None
) -> Posterior:
    """The posterior for whitened readings in the basis of the range, enumerated if that is cheap, else sampled.

    From `before`, the frame before, one of the two chains may go on.
    """
    draws = Draws.empty(DRAWS, law.most)
    square = float(data @ data)
    if law.known and len(lattice.coarse) <= MOST_ENUMERATED and square < LARGEST_SQUARE:
        counts = np.zeros(law.most + 1)
        seen, gram = law.low * (lattice.coarse @ data), lattice.gram(law.low)
        terms = (seen, seen - np.diag(gram) / 2, gram, square)
        left_out = enumerate_placements(terms, law.least, AFFORDABLE, 0.5, counts, draws.at)
        if math.isfinite(left_out):
            draws.at[:] = np.concatenate([draws.at[0::2], draws.at[1::2]])
            draws.counts[:] = (draws.at >= 0).sum(axis=1)
            settle(lattice.arrays, data, law.low, SETTLED, rng, draws.arrays)
            return Posterior(draws, counts, left_out)
    sample(lattice, data, law, rng, before, draws)
    return Posterior(draws, np.bincount(draws.counts, minlength=law.most + 1) / DRAWS, math.nan)


@dataclass(frozen=True, eq=False)
class PosteriorSummary:
    """What is reported of a posterior: a map (n,), expected sources at each place (n,), sources, and the error."""

    map: FloatArray
    intensity: FloatArray
    sources: tuple[Source, ...]
    gap: float


def summarise(found: Posterior, lattice: Lattice, level: float) -> PosteriorSummary:
    """Map, intensity and sources with vicinities that hold a share `level` of all expected sources."""
    draws, n = found.draws, len(lattice.space)
    intensity = np.bincount(lattice.place[draws.at[draws.present]], minlength=n) / len(draws.counts)
    listed = found.listed()
    if not draws.counts.any():
        return PosteriorSummary(np.zeros(n), intensity, (), 0.0)
    centres = _first_centres(draws, max(listed, 1))
    labels = np.empty(draws.at.shape, dtype=np.int64)
    centre(lattice.metric, centres, draws.at, draws.counts, labels)
    held = float(np.minimum(np.arange(len(found.counts)), listed) @ found.counts)
    share = min(1.0, level * found.expected / max(held, 1e-300))
    sources = tuple(_source(j, centres[j], labels, draws, lattice, share) for j in range(listed))
    order = sorted(sources, key=lambda source: -source.weight * source.probability)
    return PosteriorSummary(
        _map(draws, centres, labels, lattice), intensity, tuple(order), _gap(found, lattice, centres)
    )


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
