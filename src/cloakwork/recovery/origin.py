"""Find where a rumour began from the randomised answers of everyone on a network."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray, instance_of, positive, read_only, short_repr
from cloakwork.errors import InputError
from cloakwork.physics import Graph, Physics
from cloakwork.recovery.bit_presence import FlipLike
from cloakwork.recovery.origin_columns import Likelihoods, knowing_factor, wide_likelihoods

MAX_PLACES = 10_000  # of a model without edges
TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the stated one, if the time since the beginning is unknown


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a rumour began: the probability of each node (n,) and of each community, and how many know it.

    `beginner` is the most likely node, and `chance` the probability that it is right. `error` bounds how far the
    probabilities are from those of the stated law, as half the sum of the differences: 0 up to 2,000 nodes. An error
    of 1 means that only the likeliest nodes were computed exactly, and the others screened.

    All probabilities are conditional on the model: the network is the one on which the rumour spread, nodes learn
    independently of each other, and one node began. Where that is not so, they are too high: see `find_origin`.

    >>> import networkx as nx
    >>> from cloakwork.physics import Graph
    >>> from cloakwork.privacy import Flip
    >>> path = Graph(nx.path_graph(9), tau=1.0)
    >>> found = find_origin(path, [0, 0, 1, 1, 1, 0, 0, 0, 0], Flip(epsilon=6.0, readings_per_window=1))
    >>> found.beginner, 0 < found.chance <= 1, round(found.knowing)
    (3, True, 3)
    """

    probability: FloatArray
    communities: dict[Hashable, float]
    knowing: float
    error: float = 0.0

    __repr__ = short_repr

    @property
    def beginner(self) -> int:
        """Number of the most likely node."""
        return int(np.argmax(self.probability))

    @property
    def chance(self) -> float:
        """Probability of the most likely node."""
        return float(self.probability.max())

    @property
    def community(self) -> Hashable:
        """The most likely community."""
        return max(self.communities, key=lambda name: self.communities[name])


def find_origin(
    graph: Physics,
    answers: ArrayLike,
    flip: FlipLike,
    *,
    communities: Sequence[Hashable] | None = None,
    knowing: float | None = None,
    times: Sequence[float] | None = None,
) -> Origin:
    """Find the node and the community where a rumour began, from everyone's randomised answer to "do you know it?".

    Parameters
    ----------
    graph
        How the rumour spreads: a `Graph` with a sensor at every node, or any model with as many sensors as places, at
        most 10,000.
    answers
        Randomised bits, one for each node; -1 where there is none.
    flip
        The flip that released them. Whether one person knows is hidden by its epsilon.
    communities
        The community of each node; left out, all nodes are one.
    knowing
        How many know the rumour; left out, the estimate from the answers.
    times
        How long the rumour has spread, in times of the model's, each equally likely. Left out, that is unknown: from a
        quarter to four times as long. On networks of more than 2,000 nodes and for a `Matrix` it is the model's time.

    Notes
    -----
    If s began, node i knows with probability k_i(s) = 1 - exp(-c M_is): it has heard the rumour a Poisson number of
    times, in proportion to the diffusion M. The factor c makes `knowing` the average number of nodes that know.
    Every node is equally likely to have begun, so the probability of s is proportional to the sum over the times of the
    product over i of the probability of i's answer, q + (p - q) k_i(s) for a yes. A community has the sum of its
    nodes'. This uses answers only and costs no privacy. On networks of more than 2,000 nodes, `wide_likelihoods`
    computes the same without the matrix, and states the error.

    The probabilities hold if the model does. Real rumours and outbreaks pass from node to node, so those who know are
    near each other whoever began; cases are missing; and the network is not quite the real one. An unknown time allows
    for part of that. The laboratory's `origins` compares what is stated with how often it is right.

    >>> import networkx as nx
    >>> from cloakwork.physics import Graph
    >>> from cloakwork.privacy import Flip
    >>> path = Graph(nx.path_graph(9), tau=1.0)
    >>> found = find_origin(path, [0, 0, 1, 1, 1, 0, 0, 0, 0], Flip(epsilon=6.0, readings_per_window=1))
    >>> found.beginner
    3
    """
    bits = _checked(graph, answers, flip)
    wrong, right = float(flip.likelihood[0, 1]), float(flip.likelihood[1, 1])
    asked = bits >= 0
    if knowing is None:
        share = (float(bits[asked].mean()) - wrong) / (right - wrong) if asked.any() else 0.5
        knowing = graph.places * min(max(share, 1 / graph.places), 0.99)
    if not 0 < knowing < graph.places:
        raise InputError(f"knowing={knowing:g}: give a number above 0 and below {graph.places}.", knowing=knowing)
    names = [None] * graph.places if communities is None else list(communities)
    if len(names) != graph.places:
        raise InputError(f"communities: give one for each of {graph.places} nodes.", communities=len(names))
    odds = np.where(bits == 1, (right - wrong) / wrong, -(right - wrong) / (1 - wrong)) * asked
    likelihoods = [_likelihoods(model, odds, float(knowing)) for model in _models(graph, times)]
    logs = special.logsumexp([each.logs for each in likelihoods], axis=0)
    errors = np.max([each.errors for each in likelihoods], axis=0)
    probability = special.softmax(logs)
    sums: dict[Hashable, float] = {}
    for name, chance in zip(names, probability.tolist(), strict=True):
        sums[name] = sums.get(name, 0.0) + chance
    error = min(1.0, float(probability @ np.expm1(np.minimum(errors, 700.0))))
    return Origin(read_only(probability), sums, float(knowing), error)


def _models(graph: Physics, times: Sequence[float] | None) -> list[Physics]:
    """Return the model after each time; only as it is where time is not given and no part of it, or costs much."""
    if times is None:
        times = TIMES if graph.explicit and graph.pulse else (1.0,)
    for time in times:
        positive("times", time)
    if not len(times):
        raise InputError("times: give at least one.", times=0)
    return [graph if time == 1 else graph.with_spread(float(time)) for time in times]


def _likelihoods(graph: Physics, odds: FloatArray, knowing: float) -> Likelihoods:
    if isinstance(graph, Graph) and not graph.explicit:
        return wide_likelihoods(graph, odds, knowing)
    logs = np.log1p(odds[:, None] * knowing_chances(np.maximum(graph.matrix, 0.0), knowing)).sum(axis=0)
    return Likelihoods(logs, np.zeros(graph.places))


def knowing_chances(heard: FloatArray, number: float) -> FloatArray:
    """Return k_i(s) = 1 - exp(-c M_is), where c makes `number` the average over s of how many nodes know."""
    return np.asarray(-np.expm1(-knowing_factor(heard, heard.shape[1], number) * heard))


def _checked(graph: Physics, answers: ArrayLike, flip: FlipLike) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    bits = np.asarray(answers)
    instance_of("flip", flip, FlipLike, "the Flip that released the answers")  # type: ignore[type-abstract]
    most = math.inf if isinstance(graph, Graph) else MAX_PLACES
    if graph.sensors != graph.places or not 1 < graph.places <= most:
        raise InputError(
            f"find_origin compares all nodes: give a Graph with a sensor at each node, or a model with one at each of "
            f"2 to {MAX_PLACES:,} places.",
            places=graph.places,
        )
    if len(flip.likelihood) != 2:
        raise InputError("find_origin takes a flip with two values.", values=len(flip.likelihood))
    if bits.shape != (graph.places,) or bits.dtype.kind not in "biu" or not np.isin(bits, (-1, 0, 1)).all():
        raise InputError(f"answers: give 0, 1 or -1 (none) for each of {graph.places} nodes.")
    return bits.astype(np.int64)
