"""A bound that no method can beat: Le Cam's comparison of two places."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy.information import covariances_of_one, radius_90
from cloakwork.accuracy.slopes import AxisNeighbours, Slopes, axis_neighbours, columns_of, slopes_at
from cloakwork.accuracy.whitening import Whitened, refuse_one_place, spread_places, two_point_errors, whiten
from cloakwork.physics import Physics

ALL_PAIRS = 50_000_000  # most numbers read for trying every pair of places
STARTS = 24
STARTS_EACH = 2
BEST_SEPARATION = 1.5036  # maximises x Phi(-x/2)
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75)
DOWN = 1 - 1e-12


@dataclass(frozen=True)
class LeCam:
    """Lower bounds on the mean earth mover distance of every method, for single unit sources, rounded down.

    No method has a smaller mean distance than `value` at its worst place, or than `average` over all places. `pair`
    holds the two places that cannot be distinguished, `distance` apart; one place twice if both positions are near it.
    """

    value: float
    pair: tuple[int, int]
    distance: float
    average: float


def le_cam(physics: Physics, sigma: ArrayLike) -> LeCam:
    """Bound the mean earth mover distance of every method from below, in units of the space.

    `sigma` is the standard deviation of the noise: one number, or one per sensor.

    Notes
    -----
    For every estimator f^ and any two places i, j (Le Cam's two-point method; it replaces Gilbert and McMillan,
    Theorem 15, whose use of Fano's inequality does not hold):

        max over e in {e_i, e_j} of E[EMD(e, f^)]  >=  d(i, j) Phi(-||(M_i - M_j) / sigma|| / 2)

    since EMD(e_i, f^) + EMD(e_j, f^) >= d(i, j): the mean of the two risks is at least d(i, j)/2 times the integral of
    the smaller density, which is 2 Phi(-separation/2) for normal noise. `value` is the largest bound over all pairs,
    or over those that a search finds if there are many; each is valid.

    `average`: with weights c_ij >= 0 on pairs, sum_j c_ij <= 1 for each i, the risks r_i >= 0 have
    mean r_i >= (1/n) sum over pairs of c_ij (r_i + r_j), and r_i + r_j is at least twice the two-point bound. Pairs are
    those at the best distance along an axis, or the edges of a graph; c = 1 / (how often i or j occurs).

    Sources are at the places. If they may be anywhere (`HeatPlane`, and `HeatLine` with that placement), pairs less
    than a step apart count too, and `average` includes the places moved by less than a step. With sources at the
    places only, both bounds vanish once the noise is too small to confuse two places.

    >>> from cloakwork.physics import HeatLine
    >>> limit = le_cam(HeatLine(n=100, m=50, T=0.05), sigma=0.15)
    >>> round(limit.value, 4), round(limit.average, 4)
    (0.0048, 0.0042)
    """
    whitened = whiten(physics, sigma)
    refuse_one_place(physics)
    return two_point_limit(whitened, slopes_at(whitened))


def two_point_limit(whitened: Whitened, slopes: Slopes | None) -> LeCam:
    """`le_cam` for whitened columns and their slopes at all places, if there are any."""
    n, m = whitened.columns.shape
    straight = axis_neighbours(whitened.space)
    sweeps = list(_edges(whitened) if straight is None else _runs(whitened, straight))
    between = list(_between_places(whitened, slopes))
    starts: Iterable[int] = range(n)
    if n * n * m > ALL_PAIRS:
        worst = [sweep.first[np.argsort(-sweep.errors)[:STARTS_EACH]] for sweep in sweeps]
        starts = np.unique(np.concatenate([*worst, _hardest(slopes), spread_places(n, STARTS)])).tolist()
    i, j = _worst_pair(whitened, starts)
    distance = float(whitened.space.distances(i)[j])
    separation = whitened.separations(np.array([i]), np.array([j]))
    value = float(two_point_errors(np.array([distance]), separation)[0])
    average = max((sweep.average for sweep in [*sweeps, *between]), default=0.0)
    for sweep in between:
        k = int(np.argmax(sweep.errors))
        if sweep.errors[k] > value:
            value, i, j, distance = float(sweep.errors[k]), k, k, sweep.distance
    return LeCam(value * DOWN, (i, j), distance, average * DOWN)


def _hardest(slopes: Slopes | None) -> IntArray:
    """The places where the readings hold the least information about the position of a source."""
    if slopes is None:
        return np.empty(0, dtype=np.int64)
    return np.argsort(-radius_90(covariances_of_one(slopes, strengths_known=True)), kind="stable")[:STARTS]


def _worst_pair(whitened: Whitened, starts: Iterable[int]) -> tuple[int, int]:
    """From each start, go to the place most easily confused with it, and on while the bound grows."""
    pair, worst, visited = (0, 1), -np.inf, set[int]()
    for start in starts:
        place, reached = start, -np.inf
        while place not in visited:
            visited.add(place)
            logs = _log_errors(whitened.space.distances(place), whitened.separations_from(place))
            partner = int(np.argmax(logs))
            if logs[partner] <= reached:
                break
            reached = float(logs[partner])
            if reached > worst:
                pair, worst = (place, partner), reached
            place = partner
    return pair


def _log_errors(distances: FloatArray, separations: FloatArray) -> FloatArray:
    """Logarithm of the two-point bounds, which ranks pairs even if all bounds underflow to 0."""
    reached = np.isfinite(distances) & (distances > 0)
    logs = np.full(len(distances), -np.inf)
    logs[reached] = np.log(distances[reached]) + special.log_ndtr(-separations[reached] / 2)
    return logs


@dataclass(frozen=True, eq=False)
class _Sweep:
    """Two-point bounds of many pairs, and the bound on the average over places that they give."""

    first: IntArray
    errors: FloatArray
    average: float
    distance: float = 0.0


def _runs(whitened: Whitened, straight: AxisNeighbours) -> Iterator[_Sweep]:
    """Compare each place with the one some steps ahead, for growing numbers of steps along each axis."""
    n = len(whitened.space)
    for ray in straight.ahead:
        ends, distances, steps, due, best = np.arange(n), np.zeros(n), 0, 1, 0.0
        while (ends >= 0).any():
            distances = distances + ray.length[ends]
            ends, steps = ray.step(ends), steps + 1
            if steps < due:
                continue
            due = steps + max(1, steps // 3)
            first = np.flatnonzero(ends >= 0)
            errors = two_point_errors(distances[first], whitened.separations(first, ends[first]))
            average = _average(n, first, ends[first], errors)
            yield _Sweep(first, errors, average)
            best = max(best, average)
            if average < best / 4:
                break


def _between_places(whitened: Whitened, slopes: Slopes | None) -> Iterator[_Sweep]:
    """Compare each place with a position less than a step before it, if sources may be anywhere.

    With slope s the bound d Phi(-s d / 2) is largest at s d = 1.504.
    """
    places = whitened.space.places
    if slopes is None or columns_of(whitened, places[:1]) is None:
        return
    for axis, along in enumerate(slopes.along):
        step = float(places[:, axis].min())  # the first place is one step from the end
        steepness = np.quantile(np.linalg.norm(along, axis=1), QUANTILES)
        for distance in np.unique(BEST_SEPARATION / np.maximum(steepness, BEST_SEPARATION / step)).tolist():
            moved = places.copy()
            moved[:, axis] -= distance
            columns = columns_of(whitened, moved)
            if columns is not None:
                errors = distance * special.ndtr(-whitened.rounded_up(slopes.columns - columns) / 2)
                yield _Sweep(np.arange(len(places)), errors, float(errors.mean()), distance)


def _edges(whitened: Whitened) -> Iterator[_Sweep]:
    """Compare neighbours on a graph; a path is at least as long as the shortest edge at either end."""
    i, j = whitened.space.pairs.T
    n, lengths = len(whitened.space), whitened.space.lengths
    shortest = np.full(n, np.inf)
    for ends in (i, j):
        np.minimum.at(shortest, ends, lengths)
    errors = two_point_errors(np.maximum(shortest[i], shortest[j]), whitened.separations(i, j))
    yield _Sweep(i, errors, _average(n, i, j, errors))


def _average(n: int, first: IntArray, second: IntArray, errors: FloatArray) -> float:
    """(2/n) sum of c_ij times the bound of the pair, c_ij = 1 / (the larger number of pairs that i or j is in)."""
    pairs = np.bincount(np.concatenate([first, second]), minlength=n)
    return float(2 / n * (errors / np.maximum(np.maximum(pairs[first], pairs[second]), 1)).sum())
