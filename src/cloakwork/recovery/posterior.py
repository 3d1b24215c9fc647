"""The posterior of point sources for one frame: draws, and the map and sources that summarise them."""

import math
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Metric
from cloakwork.recovery.enumeration import Terms, enumerate_placements
from cloakwork.recovery.estimator import FrameSolution, Status
from cloakwork.recovery.goodness_of_fit import Fit
from cloakwork.recovery.jump_chain import Draws, settle
from cloakwork.recovery.lattice import Lattice
from cloakwork.recovery.sampling import PreviousFrame, Prior, sample
from cloakwork.recovery.summary import centre, quantiles, spread
from cloakwork.recovery.vicinity import Source, position

AFFORDABLE = 400_000  # most placements of one count to enumerate rather than sample
MAX_ENUMERATED = 3_000  # places, for a table of inner products
LARGEST_SQUARE = 1e13  # of readings in units of noise; above, differences of scores lose their digits
DRAWS = 400
SETTLED = 4  # local moves per source after enumeration, from the places to candidates between them
LEVELS = 60  # quantiles of a map on a line: a multiple of 2 to 6, so equal sources share evenly
LISTED = 0.95  # share of all expected sources to list


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws, the probability of each count, and a bound on the probability left out (NaN if sampled)."""

    draws: Draws
    counts: FloatArray
    left_out: float

    @property
    def expected(self) -> float:
        return float(self.counts @ np.arange(len(self.counts)))

    @property
    def status(self) -> Status:
        return Status.WEIGHED if math.isfinite(self.left_out) else Status.SAMPLED

    def listed(self) -> int:
        """Number of sources to list: none if that is more likely than not, else nearly all that are expected."""
        if self.counts[0] > 0.5:
            return 0
        numbers = np.arange(len(self.counts))
        held = np.minimum(numbers, numbers[:, None]) @ self.counts
        return int(np.argmax(held >= LISTED * self.expected))


def posterior(
    lattice: Lattice, data: FloatArray, prior: Prior, rng: np.random.Generator, before: PreviousFrame | None = None
) -> Posterior:
    """The posterior for whitened readings in the basis of the range, enumerated if that is cheap, else sampled.

    One of the two chains may continue from `before`, the frame before.
    """
    draws = Draws.empty(DRAWS, prior.max_sources)
    square = float(data @ data)
    if prior.known and len(lattice.coarse) <= MAX_ENUMERATED and square < LARGEST_SQUARE:
        counts = np.zeros(prior.max_sources + 1)
        seen, gram = prior.low * (lattice.coarse @ data), lattice.gram(prior.low)
        terms = Terms(seen, seen - np.diag(gram) / 2, gram, square)
        left_out = enumerate_placements(terms, prior.min_sources, AFFORDABLE, 0.5, counts, draws.at)
        if math.isfinite(left_out):
            draws.at[:] = np.concatenate([draws.at[0::2], draws.at[1::2]])
            draws.counts[:] = (draws.at >= 0).sum(axis=1)
            settle(lattice.arrays, data, prior.low, SETTLED, rng, draws)
            return Posterior(draws, counts, left_out)
    sample(lattice, data, prior, rng, before, draws)
    return Posterior(draws, np.bincount(draws.counts, minlength=prior.max_sources + 1) / DRAWS, math.nan)


def summarise(result: Posterior, lattice: Lattice, confidence: float, fit: Fit) -> FrameSolution:
    """Compute the map, intensity and sources, with vicinities that hold a share `confidence` of those expected."""
    draws, n = result.draws, len(lattice.space)
    intensity = np.bincount(lattice.place[draws.at[draws.present]], minlength=n) / len(draws.counts)
    listed = result.listed()
    if not draws.counts.any():
        return FrameSolution(np.zeros(n), Status.NOBODY, 0.0, (), fit, result.counts, intensity)
    centres = _first_centres(draws, max(listed, 1))
    labels = np.empty(draws.at.shape, dtype=np.int64)
    centre(lattice.metric, centres, draws.at, draws.counts, labels)
    held = float(np.minimum(np.arange(len(result.counts)), listed) @ result.counts)
    share = min(1.0, confidence * result.expected / max(held, 1e-300))
    sources = tuple(_source(j, centres[j], labels, draws, lattice, share) for j in range(listed))
    return FrameSolution(
        map=_map(draws, centres, labels, lattice),
        status=result.status if sources else Status.NOBODY,
        gap=_gap(result, lattice, centres),
        sources=tuple(sorted(sources, key=lambda source: -source.weight * source.probability)),
        fit=fit,
        counts=result.counts,
        intensity=intensity,
    )


def _first_centres(draws: Draws, listed: int) -> IntArray:
    """The sources of the best draw with enough sources, strongest first."""
    enough = np.flatnonzero(draws.counts >= listed)
    row = enough[int(np.argmin(draws.misfit[enough]))]
    strongest = np.argsort(-draws.strength[row, : draws.counts[row]], kind="stable")[:listed]
    return np.array(draws.at[row, strongest])


def _source(j: int, at: int, labels: IntArray, draws: Draws, lattice: Lattice, share: float) -> Source:
    mine = (labels == j) & draws.present
    middle = len(draws.counts) // 2
    shaping, cutting = draws.at[:middle][mine[:middle]], draws.at[middle:][mine[middle:]]
    if min(len(shaping), len(cutting)) < 10:  # too few draws to split
        shaping = cutting = draws.at[mine]
    density, far = np.empty(len(lattice.fine)), lattice.distances(at)
    spread(lattice.arrays.starts, lattice.arrays.near, shaping, far, density)
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
    """The value reached by a share of all values."""
    kept = min(max(round(share * len(values)), 1), len(values))
    return float(np.partition(values, len(values) - kept)[len(values) - kept])


def _map(draws: Draws, centres: IntArray, labels: IntArray, lattice: Lattice) -> FloatArray:
    """The map of least expected earth mover distance, scaled to the expected total strength.

    On a line it is exact: the place-wise median of the cumulative maps. Elsewhere each listed source is at the draw
    with the least total distance to its draws, with its mean share. No map is nearer to a random draw than half the
    mean distance between two draws, so the result is at most twice the best if it is no worse than a draw.
    """
    present = draws.present
    strength = np.where(present, draws.strength, 0.0)
    total = strength.sum(axis=1)
    if lattice.space.metric is Metric.LINE:
        return np.asarray(total.mean() * lattice.on_places(_median_quantiles(draws, lattice)) / LEVELS)
    shares = np.divide(strength, total[:, None], out=np.zeros_like(strength), where=total[:, None] > 0)
    weights = np.array([shares[(labels == j) & present].sum() for j in range(len(centres))])
    shared = np.bincount(lattice.place[centres], weights=weights, minlength=len(lattice.space))
    return np.asarray(total.mean() * shared / max(weights.sum(), 1e-300))


def _gap(result: Posterior, lattice: Lattice, centres: IntArray) -> float:
    """Estimate of the earth mover distance between the map and that of the exact posterior."""
    if math.isfinite(result.left_out):
        return result.left_out * lattice.diameter
    if lattice.space.metric is Metric.LINE:
        halves = [_median_quantiles(result.draws.half(half), lattice) for half in range(2)]
        return float(np.abs(halves[0] - halves[1]).mean()) if len(halves[0]) == len(halves[1]) else lattice.diameter
    moved = [centres.copy(), centres.copy()]
    for half in range(2):
        draws = result.draws.half(half)
        centre(lattice.metric, moved[half], draws.at, draws.counts, np.empty(draws.at.shape, dtype=np.int64))
    apart = [lattice.apart(int(a), int(b)) for a, b in zip(*moved, strict=True)]
    return float(np.mean(apart))


def _median_quantiles(draws: Draws, lattice: Lattice) -> FloatArray:
    """The median over draws, at each level, of the position below which that share of the strength lies.

    These are the quantiles of the place-wise median of the cumulative maps: the median at x is at least t if and only
    if half the draws have their t-quantile at x or before.
    """
    positions = np.empty((LEVELS, len(draws.counts)))
    order = np.empty(draws.at.shape[1], dtype=np.int64)
    used = quantiles(lattice.along, draws.at, draws.strength, draws.counts, positions, order)
    return np.asarray(np.median(positions[:, :used], axis=1)) if used else np.zeros(0)
