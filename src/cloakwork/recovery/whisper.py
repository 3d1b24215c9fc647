"""Find where a rumour began from the randomised answers of everyone on a network."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cloakwork._checks import FloatArray, frozen
from cloakwork.errors import InputError
from cloakwork.physics import Physics
from cloakwork.recovery.presence import FlipLike

MOST_NODES = 10_000  # all pairs of nodes are compared
_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class Whisper:
    """Where a rumour began: the probability of each node (n,) and of each community, and how many know it.

    `beginner` is the most likely node, and `chance` the probability that it is right.

    >>> import networkx as nx
    >>> from cloakwork.physics import Graph
    >>> from cloakwork.privacy import Flip
    >>> path = Graph(nx.path_graph(9), tau=1.0)
    >>> found = whisper(path, [0, 0, 1, 1, 1, 0, 0, 0, 0], Flip(epsilon=6.0, readings_per_window=1))
    >>> found.beginner, 0 < found.chance <= 1, round(found.knowing)
    (3, True, 3)
    """

    probability: FloatArray
    communities: dict[Hashable, float]
    knowing: float

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


def whisper(
    graph: Physics,
    answers: ArrayLike,
    flip: FlipLike,
    *,
    communities: Sequence[Hashable] | None = None,
    knowing: float | None = None,
) -> Whisper:
    """Find the node and the community where a rumour began, from everyone's randomised answer to "do you know it?".

    Parameters
    ----------
    graph
        How the rumour spreads: a `Graph` with a sensor at every node, or any model with as many sensors as places.
    answers
        Randomised bits, one for each node; -1 where there is none.
    flip
        The flip that released them. Whether one person knows is hidden by its epsilon.
    communities
        The community of each node; left out, all nodes are one.
    knowing
        How many know the rumour; left out, the estimate from the answers.

    Notes
    -----
    If s began, node i knows with probability k_i(s) = 1 - exp(-c M_is): it has heard the rumour a Poisson number of
    times, in proportion to the diffusion M. The factor c makes `knowing` the average number of nodes that know.
    Every node is equally likely to have begun, so the probability of s is proportional to the product over i of the
    probability of i's answer, q + (p - q) k_i(s) for a yes. A community has the sum of its nodes'. This uses answers
    only and costs no privacy.

    >>> import networkx as nx
    >>> from cloakwork.physics import Graph
    >>> from cloakwork.privacy import Flip
    >>> path = Graph(nx.path_graph(9), tau=1.0)
    >>> found = whisper(path, [0, 0, 1, 1, 1, 0, 0, 0, 0], Flip(epsilon=6.0, readings_per_window=1))
    >>> found.beginner
    3
    """
    bits = _checked(graph, answers, flip)
    wrong, right = float(flip.likelihood[0, 1]), float(flip.likelihood[1, 1])
    heard = np.maximum(graph.matrix, 0.0)
    asked = bits >= 0
    if knowing is None:
        share = (float(bits[asked].mean()) - wrong) / (right - wrong) if asked.any() else 0.5
        knowing = graph.places * min(max(share, 1 / graph.places), 0.99)
    if not 0 < knowing < graph.places:
        raise InputError(f"knowing={knowing:g}: give a number above 0 and below {graph.places}.", knowing=knowing)
    knows = knowing_chances(heard, knowing)
    yes = wrong + (right - wrong) * knows
    rows = np.where((bits == 1)[:, None], np.log(yes), np.log1p(-yes))[asked]
    probability = special.softmax(rows.sum(axis=0))
    names = [None] * graph.places if communities is None else list(communities)
    if len(names) != graph.places:
        raise InputError(f"communities: give one for each of {graph.places} nodes.", communities=len(names))
    sums: dict[Hashable, float] = {}
    for name, chance in zip(names, probability.tolist(), strict=True):
        sums[name] = sums.get(name, 0.0) + chance
    return Whisper(frozen(probability), sums, float(knowing))


def knowing_chances(heard: FloatArray, number: float) -> FloatArray:
    """Return k_i(s) = 1 - exp(-c M_is), where c makes `number` the average over s of how many nodes know.

    The average is concave in c, so Newton's steps from the left approach it from below.
    """
    c, places = number, heard.shape[1]
    for _ in range(60):
        left = np.exp(-c * heard)
        gap, slope = number - (1 - left).sum() / places, float((heard * left).sum()) / places
        if gap < 1e-6 * number or slope < _SMALLEST:
            break
        c += gap / slope
    return np.asarray(1 - left)


def _checked(graph: Physics, answers: ArrayLike, flip: FlipLike) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    bits = np.asarray(answers)
    if graph.sensors != graph.places or not 1 < graph.places <= MOST_NODES:
        raise InputError(
            f"whisper compares all nodes: give a model with a sensor at each of 2 to {MOST_NODES:,} places.",
            places=graph.places,
        )
    if len(flip.likelihood) != 2:
        raise InputError("whisper takes a flip with two values.", values=len(flip.likelihood))
    if bits.shape != (graph.places,) or bits.dtype.kind not in "biu" or not np.isin(bits, (-1, 0, 1)).all():
        raise InputError(f"answers: give 0, 1 or -1 (none) for each of {graph.places} nodes.")
    return bits.astype(np.int64)
