"""Networks with communities, and how well the source of what spreads over them is found."""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Graph
from cloakwork.privacy import Calibration, Cloak
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, Radius, recover

DELTA, ALPHA = 0.1, 1.0  # of the papers' figure; alpha is one step from neighbour to neighbour
ATTEMPTS = 100


class Way(StrEnum):
    """Noise and recovery together."""

    PAPERS = "papers: their noise, R"
    LESS_NOISE = "exact noise, R"
    POSTERIOR = "their noise, posterior"
    OURS = "ours: exact noise, posterior"

    @property
    def calibration(self) -> Calibration:
        """How its noise is made."""
        return Calibration.PAPER if self in {Way.PAPERS, Way.POSTERIOR} else Calibration.EXACT

    @property
    def weighs(self) -> bool:
        """Whether it weighs who it was; R cannot be told that there is one source of strength 1."""
        return self in {Way.POSTERIOR, Way.OURS}

    @property
    def estimator(self) -> Estimator:
        """How it recovers."""
        return PointSources(1.0, most=1, least=1) if self.weighs else BasisPursuit(radius=Radius.PAPER)


RIVALS = (Way.PAPERS, Way.OURS)


@dataclass(frozen=True, eq=False)
class Network:
    """A graph and the number of the community that each node is in."""

    name: str
    graph: "nx.Graph[int]"
    communities: IntArray

    def physics(self, tau: float) -> Graph:
        """What spreads over it, seen at every node; made once for each time."""
        if tau not in self._made:
            self._made[tau] = Graph(self.graph, tau=tau)
        return self._made[tau]

    @cached_property
    def _made(self) -> dict[float, Graph]:
        return {}

    @property
    def members(self) -> FloatArray:
        """Which node is in which community, shape (nodes, communities)."""
        return np.asarray(np.eye(int(self.communities.max()) + 1)[self.communities])

    @property
    def guess(self) -> float:
        """How often the largest community is right."""
        return float(np.bincount(self.communities).max() / len(self.communities))


def block_model(n: int, inside: float, between: float, seed: int) -> Network:
    """Two communities of n/2 nodes, joined at random; drawn again until no part is cut off."""
    half = n // 2
    chances = [[inside, between], [between, inside]]
    for attempt in range(ATTEMPTS):
        graph = nx.stochastic_block_model([half, n - half], chances, seed=1000 * seed + attempt)
        if nx.is_connected(graph):
            plain: nx.Graph[int] = nx.Graph()
            plain.add_nodes_from(range(n))
            plain.add_edges_from(graph.edges)
            return Network("block model", plain, np.repeat([0, 1], [half, n - half]))
    raise ValueError(f"{ATTEMPTS} draws of the block model all had parts that no edge connects.")


def named_networks() -> tuple[Network, ...]:
    """Networks that people have drawn by hand, every tie counting the same."""
    club = nx.karate_club_graph()
    sides = np.array([data["club"] != "Mr. Hi" for _, data in club.nodes(data=True)], dtype=np.int64)
    return (
        Network("karate club", _plain(club), sides),
        _by_modularity("Florentine families", nx.florentine_families_graph()),
        _by_modularity("Southern women", nx.davis_southern_women_graph()),
        _by_modularity("Les Miserables", nx.les_miserables_graph()),
    )


def _plain(graph: "nx.Graph[Any]") -> "nx.Graph[int]":
    """Nodes by number and ties without weights."""
    numbered = nx.convert_node_labels_to_integers(graph)
    plain: nx.Graph[int] = nx.Graph()
    plain.add_nodes_from(range(len(numbered)))
    plain.add_edges_from(numbered.edges)
    return plain


def _by_modularity(name: str, graph: "nx.Graph[Any]") -> Network:
    plain = _plain(graph)
    communities = np.zeros(len(plain), dtype=np.int64)
    for number, members in enumerate(nx.community.greedy_modularity_communities(plain)):
        communities[list(members)] = number
    return Network(name, plain, communities)


def heat_at_home(network: Network, tau: float) -> float:
    """The share of what spreads that is still in the community where it began, averaged over the nodes."""
    matrix = network.physics(tau).matrix
    same = network.communities[:, None] == network.communities
    return float((matrix * same).sum() / len(same))


@dataclass(frozen=True)
class Score:
    """Over so many frames: how often the right community and the right node are named, and how far off the node is.

    `hops` is the mean number of steps from the source to the node that is named; errors are standard errors. As a
    string, the percentage with the right community.
    """

    frames: int
    right: float
    right_error: float
    person: float
    hops: float
    hops_error: float
    empty: int

    def __str__(self) -> str:
        return f"{100 * self.right:.0f} ± {100 * self.right_error:.0f}"

    def clearly_below(self, other: "Score") -> bool:
        """Whether it is right less often, by more than chance."""
        return self.right + 2 * math.hypot(self.right_error, other.right_error) < other.right


@dataclass(frozen=True, eq=False)
class Tried:
    """Maps found for known sources; how likely each node is (for R: its weight); the same summed over communities."""

    sources: IntArray
    maps: FloatArray
    likely: FloatArray
    weights: FloatArray


def cloak_of(physics: Graph, epsilon: float, way: Way) -> Cloak:
    """The cloak of the papers' figure at some epsilon."""
    return Cloak(physics, epsilon=epsilon, delta=DELTA, alpha=ALPHA, calibration=way.calibration)


def attempt(network: Network, cloak: Cloak, way: Way, sources: IntArray, rng: np.random.Generator) -> Tried:
    """One frame for each source, recovered."""
    readings = cloak.physics.matrix.T[sources]
    found = recover(cloak.simulate(readings, rng=rng), cloak, estimator=way.estimator)
    likely = found.intensity if way.weighs else found.map
    return Tried(sources, found.map, likely, likely @ network.members)


def score(network: Network, tried: Tried, distances: NDArray[np.floating[Any]]) -> Score:
    """How often a map names the right community and node; what is equally likely shares the credit."""
    own = network.communities[tried.sources]
    right, person = _credit(tried.weights, own), _credit(tried.maps, tried.sources)
    hops = steps_off(tried, distances)
    frames, share = len(own), float(right.mean())
    return Score(
        frames,
        share,
        share_error(share, frames),
        float(person.mean()),
        float(hops.mean()),
        float(hops.std(ddof=1) / np.sqrt(frames)),
        int((~tried.maps.any(axis=1)).sum()),
    )


def steps_off(tried: Tried, distances: NDArray[np.floating[Any]]) -> FloatArray:
    """Steps from the source to the node that is named, for each frame; the mean over those that are equally likely."""
    return np.asarray((_named(tried.maps) * distances[tried.sources]).sum(axis=1))


def share_error(share: float, count: int) -> float:
    """Standard error of a share; one of 0 or 1 has an error too, as if of two more one were right and one wrong."""
    smooth = (share * count + 1) / (count + 2)
    return float(np.sqrt(smooth * (1 - smooth) / count))


def _named(weights: FloatArray) -> FloatArray:
    """For each frame a share for all that have the largest weight."""
    best = weights >= weights.max(axis=1, keepdims=True)
    return np.asarray(best / best.sum(axis=1, keepdims=True))


def _credit(weights: FloatArray, right: IntArray) -> FloatArray:
    return np.asarray(_named(weights)[np.arange(len(right)), right])
