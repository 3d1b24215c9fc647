"""From a map to a list of sources, each with its vicinity."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.sparse import csgraph

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Space
from cloakwork.recovery.problem import Problem

MIN_SHARE = 0.15  # a lighter group, relative to the heaviest, is an artefact of the fit
GROUPED = 0.5  # places between which a source of this strength can move unnoticed form one source
LEVEL = 0.9


@dataclass(frozen=True, repr=False)
class Source:
    """One recovered source.

    `place` is the index of the place nearest to its centre, `at` its coordinates (or a graph's node), `weight` its
    total weight, `vicinity` the places where it may be instead, `radius` the distance to the farthest of them in units
    of the space, and `probability` that of its existence (1 if the estimator does not compute it).

    >>> from cloakwork.physics import HeatLine, sources
    >>> from cloakwork.recovery import PointSources, recover
    >>> line = HeatLine(n=50, m=25, T=0.05)
    >>> [source] = recover(line.apply(sources(line, [0.3])), line, sigma=0.1, estimator=PointSources(1)).sources
    >>> print(source)
    weight 1.000 at 0.301, within 0.022
    >>> line.space.places[source.vicinity].ravel().tolist()
    [0.28, 0.3, 0.32]
    """

    place: int
    at: object
    weight: float
    radius: float
    vicinity: IntArray = field(compare=False)
    probability: float = 1.0

    def __repr__(self) -> str:
        return f"<Source of {self}>"

    def __str__(self) -> str:
        chance = "" if self.probability > 0.995 else f", with probability {self.probability:.2f}"
        return f"weight {self.weight:.3f} at {_short(self.at)}, within {self.radius:.3g}{chance}"


def _short(at: object) -> str:
    if isinstance(at, float):
        return f"{at:.4g}"
    return "(" + ", ".join(_short(value) for value in at) + ")" if isinstance(at, tuple) else str(at)


def extract_sources(weights: FloatArray, data: FloatArray, problem: Problem) -> tuple[Source, ...]:
    """Group the weights of one map into sources, heaviest first; `data` are the readings in the basis of the range.

    Notes
    -----
    Starting from the heaviest place i, one source consists of all weights connected to it from neighbour to neighbour,
    or at places j with ||M_j - M_i|| / (2 sigma) below the 90 % quantile for the dimension of the space (half a source
    moves from i to j unnoticed). The vicinity of a source holds the places where one source of any weight up to 1 fits
    the readings about as well as at the best place (within the same quantile of a likelihood ratio), while the other
    sources may change their weight and move a little: those directions are projected out. It is a guide, not a
    calibrated region.
    """
    left = weights.copy()
    parts = touching(weights, problem.physics.space)
    groups: list[tuple[float, IntArray]] = []
    while left.max(initial=0.0) > 0:
        heaviest = int(np.argmax(left))
        near = _alike(heaviest, problem) | (parts == parts[heaviest])
        members = np.flatnonzero(near & (left > 0))
        groups.append((float(left[members].sum()), members))
        left[members] = 0.0
    least = MIN_SHARE * max((weight for weight, _ in groups), default=0.0)
    kept = sorted((group for group in groups if group[0] >= least), key=lambda group: -group[0])
    space = problem.physics.space
    centres = [_centre(members, weights[members], space) for _, members in kept]
    vicinities = [_plausible(data, [c for c in centres if c != centre], problem) for centre in centres]
    sources = zip(kept, centres, vicinities, strict=True)
    return tuple(_source(weight, centre, around, space) for (weight, _), centre, around in sources)


def touching(weights: FloatArray, space: Space) -> IntArray:
    """The number of the connected patch of weight at each place; -1 without weight."""
    parts = np.full(len(weights), -1, dtype=np.int64)
    held = np.flatnonzero(weights)
    parts[held] = csgraph.connected_components(space.adjacency[held][:, held], directed=False)[1]
    return parts


def _alike(place: int, problem: Problem) -> NDArray[np.bool_]:
    """The places to which half a source can move from `place` unnoticed."""
    columns, squares = problem.range.reduced, problem.column_squares
    shift2 = squares + squares[place] - 2 * (columns[:, place] @ columns)
    return np.asarray(GROUPED**2 * shift2 <= _quantile(problem) * problem.noise**2)


def _source(weight: float, centre: int, around: IntArray, space: Space) -> Source:
    distances = space.distances(centre)[around]
    radius = float(distances[np.isfinite(distances)].max(initial=0.0))
    return Source(centre, position(space.places[centre], centre, space), weight, radius, around)


def _plausible(data: FloatArray, others: list[int], problem: Problem) -> IntArray:
    """The places where one source explains the rest beside `others` about as well as the best place does."""
    columns, squares = problem.range.reduced, problem.column_squares
    if others:
        free = np.linalg.qr(np.concatenate([_freedom(other, problem) for other in others], axis=1))[0]
        data = data - free @ (free.T @ data)
        columns = columns - free @ (free.T @ columns)
        squares = np.asarray((columns**2).sum(axis=0))
    match = data @ columns
    seen = squares > 1e-9 * problem.column_squares
    best = np.clip(np.divide(match, squares, out=np.zeros_like(match), where=seen), 0.0, 1.0)
    misfit2 = best * (best * squares - 2 * match)
    return np.flatnonzero(seen & (misfit2 <= misfit2.min() + _quantile(problem) * problem.noise**2))


def _freedom(place: int, problem: Problem) -> FloatArray:
    """Directions in which a source at `place` changes the readings: its weight, and a small move along each axis."""
    columns, space = problem.range.reduced, problem.physics.space
    neighbours = space.adjacency.indices[space.adjacency.indptr[place] : space.adjacency.indptr[place + 1]]
    here = columns[:, [place]]
    if not len(neighbours):
        return here
    moves = np.linalg.svd(columns[:, neighbours] - here, full_matrices=False)[0]
    return np.concatenate([here, moves[:, : space.dimension]], axis=1)


def _quantile(problem: Problem) -> float:
    return float(special.chdtri(problem.physics.space.dimension, 1 - LEVEL))


def _centre(members: IntArray, weights: FloatArray, space: Space) -> int:
    if len(members) == 1:
        return int(members[0])
    if space.places.shape[1] == 0:
        costs = [float(weights @ space.distances(int(member))[members]) for member in members]
        return int(members[int(np.argmin(costs))])
    middle = weights @ space.places[members] / weights.sum()
    return int(np.argmin(((space.places - middle) ** 2).sum(axis=1)))


def expected_map(sources: Iterable[Source], n: int) -> FloatArray:
    """The expected weight of sources at each of n places, if each is at its own."""
    weights = np.zeros(n)
    for source in sources:
        weights[source.place] += source.weight * source.probability
    return weights


def position(coordinates: FloatArray, place: int, space: Space) -> object:
    """A readable position: a label, the number of a place, or coordinates."""
    if space.labels is not None:
        return space.labels[place]
    if space.places.shape[1] == 0:
        return place
    at = tuple(float(value) for value in coordinates)
    return at[0] if len(at) == 1 else at
