"""The map and the sources that summarise draws from the posterior of one frame."""

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Metric
from cloakwork.recovery.assignment import match_draws
from cloakwork.recovery.estimator import FrameSolution, Status
from cloakwork.recovery.frame_sampler import Draws, Posterior
from cloakwork.recovery.goodness_of_fit import Fit
from cloakwork.recovery.lattice import Lattice
from cloakwork.recovery.vicinity import Source, position

LEVELS = 60  # quantiles of a map on a line: a multiple of 2 to 6, so equal sources share evenly
ROUNDS = 4  # of matching draws to centres and moving the centres
SMOOTHED = 3  # rounds of spreading each draw over nearby candidates
TRIED = 48  # draws tried as the new centre of a source


def summarise(result: Posterior, lattice: Lattice, confidence: float, fit: Fit) -> FrameSolution:
    """Compute the map, intensity and sources, with vicinities that hold a share `confidence` of those expected."""
    draws, n = result.draws, len(lattice.space)
    listed = result.listed()
    if not draws.counts.any():
        return FrameSolution(np.zeros(n), Status.NOBODY, 0.0, (), fit, result.counts, result.intensity)
    centres, labels = _centred(draws, _first_centres(draws, max(listed, 1)), lattice)
    held = float(np.minimum(np.arange(len(result.counts)), listed) @ result.counts)
    share = min(1.0, confidence * result.expected / max(held, 1e-300))
    sources = tuple(_source(j, centres[j], labels, draws, lattice, share) for j in range(listed))
    return FrameSolution(
        map=_map(draws, centres, labels, lattice),
        status=Status.SAMPLED if sources else Status.NOBODY,
        gap=_gap(draws, labels, centres, lattice),
        sources=tuple(sorted(sources, key=lambda source: -source.weight * source.probability)),
        fit=fit,
        counts=result.counts,
        intensity=result.intensity,
    )


def _first_centres(draws: Draws, listed: int) -> IntArray:
    """The sources of the best draw with enough sources, strongest first."""
    enough = np.flatnonzero(draws.counts >= listed)
    row = enough[int(np.argmin(draws.misfit[enough]))]
    strongest = np.argsort(-draws.strength[row, : draws.counts[row]], kind="stable")[:listed]
    return np.array(draws.at[row, strongest])


def _centred(draws: Draws, centres: IntArray, lattice: Lattice) -> tuple[IntArray, IntArray]:
    """Move each centre to the middle of its sources; also returns the number of the centre of each source."""
    labels = np.empty(draws.at.shape, dtype=np.int64)
    for _ in range(ROUNDS):
        match_draws(lattice.apart(draws.at[:, :, None], centres), draws.counts, labels)
        before, centres = centres, _middles(draws.at, labels, centres, lattice)
        if (centres == before).all():
            break
    return centres, labels


def _middles(at: IntArray, labels: IntArray, centres: IntArray, lattice: Lattice) -> IntArray:
    """The drawn candidate with the least total distance to all sources of each centre, or the centre without any."""
    middles = centres.copy()
    for j in range(len(centres)):
        mine = at[labels == j]
        if len(mine):
            tried = mine[np.linspace(0, len(mine) - 1, min(TRIED, len(mine))).astype(np.int64)]
            middles[j] = tried[lattice.apart(tried[:, None], mine).sum(axis=1).argmin()]
    return middles


def _source(j: int, at: int, labels: IntArray, draws: Draws, lattice: Lattice, share: float) -> Source:
    mine = (labels == j) & draws.present
    middle = len(draws.counts) // 2
    shaping, cutting = draws.at[:middle][mine[:middle]], draws.at[middle:][mine[middle:]]
    if min(len(shaping), len(cutting)) < 10:  # too few draws to split
        shaping = cutting = draws.at[mine]
    far = lattice.distances(at)
    density = _spread(lattice, shaping) - 1e-9 * far / max(float(far.max()), 1e-300)  # ties go to the nearer one
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


def _spread(lattice: Lattice, drawn: IntArray) -> FloatArray:
    """A smoothed count of draws for each candidate."""
    density, near = np.bincount(drawn, minlength=len(lattice.fine)).astype(np.float64), lattice.near
    for _ in range(SMOOTHED):
        held = np.flatnonzero(density)
        density = near[held].T @ (density[held] / np.diff(near.indptr)[held])
    return density


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


def _gap(draws: Draws, labels: IntArray, centres: IntArray, lattice: Lattice) -> float:
    """The mean distance between the middles of the same sources in two halves of the draws, which are independent."""
    middle = len(labels) // 2
    one, other = (_middles(draws.at[half], labels[half], centres, lattice) for half in (np.s_[:middle], np.s_[middle:]))
    return float(lattice.apart(one, other).mean())


def _median_quantiles(draws: Draws, lattice: Lattice) -> FloatArray:
    """The median over draws, at each level, of the position below which that share of the strength lies.

    These are the quantiles of the place-wise median of the cumulative maps: the median at x is at least t if and only
    if half the draws have their t-quantile at x or before.
    """
    used = draws.counts > 0
    at = np.where(draws.present, lattice.along[draws.at], np.inf)[used]
    order = np.argsort(at, axis=1)
    passed = np.cumsum(np.take_along_axis(np.where(draws.present, draws.strength, 0.0)[used], order, axis=1), axis=1)
    levels = (np.arange(LEVELS) + 0.5) / LEVELS * passed[:, -1:]
    number = np.minimum((passed[:, :, None] < levels[:, None]).sum(axis=1), draws.counts[used, None] - 1)
    return np.asarray(np.median(np.take_along_axis(np.sort(at, axis=1), number, axis=1), axis=0))
