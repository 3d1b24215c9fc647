"""The Bayes risk of locating a lone source: no method does better on average."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray, count
from cloakwork.accuracy.whitening import Whitened, refuse_one_place, whiten
from cloakwork.physics import Metric, Physics, Space

CONFIDENCE = 0.9999  # that a bound holds, over the simulated readings
MIN_FRAMES, MAX_FRAMES, WORK = 2_000, 8_000, 5_000_000  # frames to simulate: WORK / places, within these limits
PILOT = 1 / 8  # share of the frames that only choose where to clip the others
CLIPS = (1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 30.0)  # candidates, in means of the pilot
CHUNK = 500_000  # probabilities in memory at once
MAX_TABLE = 1_000  # places whose distances are tabulated
DIRECTIONS = 4  # on a plane; a vector is at least sin(pi/8) times the sum of its shadows along them
DOWN = 1 - 1e-6  # covers float32 distances and the rounding of sums

_Risks = Callable[[FloatArray], FloatArray]
"""From probabilities (frames, n) to the least mean distance of any answer, (frames,)."""


@dataclass(frozen=True)
class BayesRisk:
    """Bounds that hold for every method if a lone unit source is equally likely at each place, and stays there.

    No method has a smaller mean distance to the source than `mean_distance`, in units of the space, and none names its
    place with a probability above `right_place`. An observer who knows more than that about the source can do better.
    """

    mean_distance: float
    right_place: float


def bayes_risk(physics: Physics, sigma: ArrayLike, *, readings: int = 1) -> BayesRisk:
    """Bound how well any method locates a lone source of unit strength that stays where it is.

    `sigma` is the standard deviation of the noise: one number, or one per sensor. `readings` is how often each sensor
    reads while the source stays; all readings are used together.

    Notes
    -----
    With p_j(y) the probability of place j given the readings y, no method is better, on average over places and noise,
    than

        mean distance    E min over answers a of sum_j p_j(y) d(a, j)
        right place      E max over places j of p_j(y)

    The posterior median and the likeliest place attain them. The expectation is a mean over 2,000 to 8,000 simulated
    frames, always the same ones, moved outward to a limit that holds with a confidence of 0.9999: the empirical
    Bernstein bound of Maurer and Pontil (Theorem 11) for values that are clipped at a level chosen from other frames.

    The minimum over answers is exact on a line (the median) and on graphs of up to 1,000 nodes. In rooms it is the
    median along each axis, which ignores detours around walls. On a plane the medians along four directions give a
    bound at most 8 % lower. On larger graphs a wrong answer counts as the shortest distance between two nodes.

    >>> from cloakwork.physics import HeatLine
    >>> risk = bayes_risk(HeatLine(n=100, m=50, T=0.05), sigma=0.1476)
    >>> round(risk.mean_distance, 4), round(risk.right_place, 2)
    (0.0094, 0.33)
    """
    count("readings", readings)
    whitened = whiten(physics, sigma)
    refuse_one_place(physics)
    return risk_of(replace(whitened, sigma=whitened.sigma / math.sqrt(readings)))


def risk_of(whitened: Whitened) -> BayesRisk:
    """Return the `bayes_risk` of a whitened model."""
    extent, risks = _best_answers(whitened.physics.space)
    rng, (n, m) = np.random.default_rng(0), whitened.columns.shape
    rows, left = list[FloatArray](), int(np.clip(WORK // n, MIN_FRAMES, MAX_FRAMES))
    while left > 0:
        frames = min(left, max(1, CHUNK // n))
        readings = whitened.columns[rng.integers(0, n, frames)] + rng.standard_normal((frames, m))
        logs = readings @ whitened.columns.T - whitened.squares / 2
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        rows.append(np.stack([risks(posterior), 1 - posterior.max(axis=1)]))
        left -= frames
    mean, wrong = (_lower_limit(values) for values in np.concatenate(rows, axis=1))
    slip = whitened.error  # columns that are off by this change the readings' distribution by less, in total variation
    mean = max(0.0, mean - slip * extent) * DOWN
    return BayesRisk(mean, min(1.0, 1 - (wrong - slip) * DOWN))


def _best_answers(space: Space) -> tuple[float, _Risks]:
    """Return a bound on the error of any answer, and the errors of the best ones."""
    apart = np.abs(space.places[space.pairs[:, 0]] - space.places[space.pairs[:, 1]])
    straight = np.sqrt((apart**2).sum(axis=1))
    axes = space.places.shape[1]
    if axes in {1, 2} and (space.lengths >= straight * (1 - 1e-9)).all():
        if axes == 1 or (space.metric is not Metric.PLANE and (space.lengths >= apart.sum(axis=1) * (1 - 1e-9)).all()):
            return _by_shadows(space.places, np.eye(axes), 1.0)
        angles = np.arange(DIRECTIONS) * np.pi / DIRECTIONS
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return _by_shadows(space.places, directions, math.sin(np.pi / (2 * DIRECTIONS)))
    if len(space) <= MAX_TABLE:
        return _by_table(space)
    shortest = float(space.lengths.min())
    return shortest, lambda posterior: (1 - posterior.max(axis=1)) * shortest


def _by_shadows(places: FloatArray, directions: FloatArray, share: float) -> tuple[float, _Risks]:
    """Answers anywhere: a distance is at least `share` times the sum of its shadows along these directions."""

    def risks(posterior: FloatArray) -> FloatArray:
        mean = np.zeros(len(posterior))
        for direction in directions:
            along = places @ direction
            order = np.argsort(along, kind="stable")
            levels, starts = np.unique(along[order], return_index=True)
            below = np.cumsum(np.add.reduceat(posterior[:, order], starts, axis=1), axis=1)[:, :-1]
            mean += np.minimum(below, 1 - below) @ np.diff(levels)  # the mean distance from the median
        return share * mean

    return float(np.ptp(places, axis=0).sum()), risks


def _by_table(space: Space) -> tuple[float, _Risks]:
    """Answers that are places, by all distances; places without a path are as far apart as any others."""
    table = space.distance_table
    distances = np.where(np.isfinite(table), table, table[np.isfinite(table)].max())

    def risks(posterior: FloatArray) -> FloatArray:
        return np.asarray((posterior.astype(np.float32) @ distances).min(axis=1).astype(np.float64))

    return float(distances.max()), risks


def _lower_limit(values: FloatArray) -> float:
    """Return a lower limit on the mean of independent values that are not negative, at `CONFIDENCE`."""
    pilot, rest = np.split(values, [int(PILOT * len(values))])
    clips = [clip * float(pilot.mean()) for clip in CLIPS]
    best = max(clips, key=lambda clip: _bernstein(pilot, clip, len(rest)))
    return max(0.0, _bernstein(rest, best, len(rest)))


def _bernstein(values: FloatArray, clip: float, number: int) -> float:
    clipped = np.minimum(values, clip)
    doubt = math.log(2 / (1 - CONFIDENCE))
    width = math.sqrt(2 * float(clipped.var(ddof=1)) * doubt / number) + 7 * clip * doubt / (3 * (number - 1))
    return float(clipped.mean()) - width
