"""From a map to a list of sources, each with the vicinity that the noise leaves it."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Space
from cloakwork.recovery.problem import Problem

LEAST_SHARE = 0.15  # lighter than this share of the heaviest source: a crumb of the fit, not a source
GROUPED = 0.5  # weights that a source of this strength could not tell apart are one source
LEVEL = 0.9


@dataclass(frozen=True)
class Source:
    """One recovered source.

    `place` is the index of the place nearest to its centre, `at` that place's coordinates (or a graph's node),
    `weight` its total weight, `radius` how far around it the readings cannot tell places apart, in units of the space.
    """

    place: int
    at: object
    weight: float
    radius: float


def read_off(found: FloatArray, problem: Problem) -> tuple[Source, ...]:
    """Group the weights of one map into sources, heaviest first.

    Notes
    -----
    The vicinity of a source of weight w at i are the places j with w ||M_j - M_i|| / sigma below the 90 % quantile for
    the dimension of the space: those to which it could have been moved without the readings showing it. Starting from
    the heaviest place, all weights within the vicinity of a source of weight 0.5 there are one source; its radius is
    that of the vicinity for the weight that they have together. It is a guide, not a calibrated interval.
    """
    space = problem.physics.space
    left = found.copy()
    sources: list[Source] = []
    while left.max(initial=0.0) > 0:
        heaviest = int(np.argmax(left))
        around = vicinity(heaviest, GROUPED, problem)
        members = around[left[around] > 0]
        weight = float(left[members].sum())
        centre = _centre(members, left[members], space)
        sources.append(_source(centre, weight, problem))
        left[members] = 0.0
    least = LEAST_SHARE * max((source.weight for source in sources), default=0.0)
    return tuple(sorted((s for s in sources if s.weight >= least), key=lambda source: -source.weight))


def vicinity(place: int, weight: float, problem: Problem) -> IntArray:
    """The places that a source of this weight at `place` cannot be told from, itself included."""
    columns = problem.range.reduced
    shift = np.sqrt(((columns - columns[:, [place]]) ** 2).sum(axis=0))
    limit = math.sqrt(float(stats.chi2.ppf(LEVEL, problem.physics.space.dimension)))
    close = weight * shift <= limit * problem.noise
    close[place] = True
    return np.flatnonzero(close)


def _source(place: int, weight: float, problem: Problem) -> Source:
    space = problem.physics.space
    around = vicinity(place, weight, problem)
    distances = space.distances(place)[around]
    radius = float(distances[np.isfinite(distances)].max())
    return Source(place, _where(place, space), weight, radius)


def _centre(members: IntArray, weights: FloatArray, space: Space) -> int:
    if len(members) == 1:
        return int(members[0])
    if space.places.shape[1] == 0:
        costs = [float(weights @ space.distances(int(member))[members]) for member in members]
        return int(members[int(np.argmin(costs))])
    middle = weights @ space.places[members] / weights.sum()
    return int(np.argmin(((space.places - middle) ** 2).sum(axis=1)))


def _where(place: int, space: Space) -> object:
    if space.labels is not None:
        return space.labels[place]
    if space.places.shape[1] == 0:
        return place
    at = tuple(float(value) for value in space.places[place])
    return at[0] if len(at) == 1 else at
