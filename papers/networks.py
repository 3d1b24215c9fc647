"""Networks with communities, and how well the source of a rumour that spreads over them is found."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np
from scipy import special

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Graph
from cloakwork.privacy import Cloak, Hardware
from cloakwork.recovery import Estimator, PointSources, recover
from papers.calibration import Calibration, PapersPursuit, calibrated
from papers.experiment import stream
from papers.rows import Mean, Row

DELTA, ALPHA = 0.1, 1.0  # of the papers' figure; alpha is one step from neighbour to neighbour
TAU, EPSILON = 2.0, 4.0  # of the papers' figure
SOURCE = 0  # the node on the left that the picture shows
BEST_FRAMES = 1000  # that estimate how often the best rule is right
ATTEMPTS = 100


class Way(StrEnum):
    """A noise together with a way of recovery."""

    PAPERS = "papers' noise, basis pursuit"
    LESS_NOISE = "exact noise, basis pursuit"
    POSTERIOR = "papers' noise, posterior"
    OURS = "exact noise, posterior (ours)"

    @property
    def calibration(self) -> Calibration:
        return Calibration.PAPER if self in {Way.PAPERS, Way.POSTERIOR} else Calibration.EXACT

    @property
    def is_posterior(self) -> bool:
        """Whether it gives each node a probability; it knows that there is one source of strength 1."""
        return self in {Way.POSTERIOR, Way.OURS}

    @property
    def estimator(self) -> Estimator:
        return PointSources(1.0, max_sources=1, min_sources=1) if self.is_posterior else PapersPursuit()


RIVALS = (Way.PAPERS, Way.OURS)


@dataclass(frozen=True, eq=False)
class Network:
    """A graph and the number of the community of each node."""

    name: str
    graph: "nx.Graph[int]"
    communities: IntArray

    def physics(self, tau: float) -> Graph:
        """A rumour that spreads over it, seen at every node; made once for each time."""
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

    def heat_at_home(self, tau: float) -> float:
        """The share of the heat that is still in the community where it started, averaged over the nodes."""
        same = self.communities[:, None] == self.communities
        return float((self.physics(tau).matrix * same).sum() / len(same))


def block_model(n: int, inside: float, between: float, seed: int, *, parts: int = 2) -> Network:
    """Communities of n/parts nodes, joined at random; drawn again until the graph is connected."""
    sizes = [n * (part + 1) // parts - n * part // parts for part in range(parts)]
    chances = [[inside if i == j else between for j in range(parts)] for i in range(parts)]
    for attempt in range(ATTEMPTS):
        graph = nx.stochastic_block_model(sizes, chances, seed=1000 * seed + attempt)
        if nx.is_connected(graph):
            return Network("block model", _plain(graph), np.repeat(np.arange(parts), sizes))
    raise ValueError(f"none of {ATTEMPTS} draws of the block model is connected.")


def named_networks() -> tuple[Network, ...]:
    """Social networks of the literature; all ties count the same."""
    club = nx.karate_club_graph()
    sides = np.array([data["club"] != "Mr. Hi" for _, data in club.nodes(data=True)], dtype=np.int64)
    return (
        Network("karate club", _plain(club), sides),
        _by_modularity("Florentine families", nx.florentine_families_graph()),
        _by_modularity("Southern women", nx.davis_southern_women_graph()),
        _by_modularity("Les Miserables", nx.les_miserables_graph()),
    )


def _plain(graph: "nx.Graph[Any]") -> "nx.Graph[int]":
    """Number the nodes and drop the weights of ties."""
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


def cloak_of(network: Network, tau: float, epsilon: float, calibration: Calibration) -> Cloak:
    """The cloak of the papers' figure at some time and epsilon."""
    return calibrated(network.physics(tau), calibration, epsilon=epsilon, delta=DELTA, alpha=ALPHA)


@dataclass(frozen=True, eq=False)
class Tried:
    """Maps recovered for known sources; the probability (for basis pursuit: the weight) of each node and community."""

    network: Network
    sources: IntArray
    maps: FloatArray
    likely: FloatArray
    weights: FloatArray

    def steps_off(self, tau: float) -> FloatArray:
        """Steps from the source to the peak of the map in each frame; the mean over nodes that are equally high."""
        table = np.asarray(self.network.physics(tau).space.distance_table, dtype=np.float64)
        return np.asarray((_named(self.maps) * table[self.sources]).sum(axis=1))

    def score(self, tau: float) -> Row:
        """How often the right community and node are named, and how many steps away the peak of the map is.

        The named ones are the most likely ones, and equally likely ones share the credit. The peak is a node in the
        middle of the likely ones, which is closer on average and less often right.
        """
        right = credit(self.weights, self.network.communities[self.sources])
        return Row(
            frames=len(right),
            right=Mean.share(float(right.mean()), len(right)),
            person=float(credit(self.likely, self.sources).mean()),
            hops=Mean.of(self.steps_off(tau)),
            empty=int((~self.maps.any(axis=1)).sum()),
        )


def _named(weights: FloatArray) -> FloatArray:
    """For each frame equal shares for all that have the largest weight."""
    best = weights >= weights.max(axis=1, keepdims=True)
    return np.asarray(best / best.sum(axis=1, keepdims=True))


def credit(weights: FloatArray, right: IntArray) -> FloatArray:
    """1 for each frame whose right column has the largest weight, shared among equals."""
    return np.asarray(_named(weights)[np.arange(len(right)), right])


def attempt(network: Network, cloak: Cloak, way: Way, sources: IntArray, rng: np.random.Generator) -> Tried:
    """Recover one frame for each source."""
    readings = cloak.physics.matrix.T[sources]
    recovery = recover(cloak.simulate(readings, rng=rng), cloak, estimator=way.estimator)
    likely = recovery.intensity if way.is_posterior else recovery.map
    return Tried(network, sources, recovery.map, likely, likely @ network.members)


def best_rules(network: Network, cloak: Cloak, rng: np.random.Generator) -> Row:
    """How often the best rules are right about the community and about the node, which all are equally likely.

    Notes
    -----
    A rule names the likeliest community (or node), and is right with that probability: the mean of max_c P(c |
    readings).
    """
    matrix, sigma = cloak.physics.matrix, cloak.sigma
    sources = rng.integers(0, cloak.physics.places, BEST_FRAMES)
    noisy = matrix.T[sources] + sigma * rng.standard_normal((BEST_FRAMES, cloak.physics.sensors))
    logs = (noisy @ matrix - (matrix**2).sum(axis=0) / 2) / sigma**2
    likely = special.softmax(logs, axis=1)
    return Row(right=Mean.of((likely @ network.members).max(axis=1)), person=Mean.of(likely.max(axis=1)))


@dataclass(frozen=True, eq=False)
class Scene:
    """A network at one time and epsilon; `number` is the network's part of the random streams."""

    network: Network
    number: int
    tau: float
    epsilon: float

    def _stream(self, seed: int, part: int) -> np.random.Generator:
        return stream(seed, self.number, round(1000 * self.tau), round(1000 * self.epsilon), part)

    def _cloak(self, way: Way) -> Cloak:
        if way.calibration not in self._made:
            self._made[way.calibration] = cloak_of(self.network, self.tau, self.epsilon, way.calibration)
        return self._made[way.calibration]

    @cached_property
    def _made(self) -> dict[Calibration, Cloak]:
        return {}

    def tried(self, way: Way, frames: int, seed: int) -> Tried:
        """Recover rumours from all nodes; all ways have the same sources, from the first on."""
        sources = np.resize(self._stream(seed, 0).permutation(len(self.network.communities)), frames)
        return attempt(self.network, self._cloak(way), way, sources, self._stream(seed, 1))

    def cell(self, way: Way, tried: Tried) -> Row:
        """The score of one way."""
        place = {"network": self.network.name, "way": way, "tau": self.tau, "epsilon": self.epsilon}
        return Row(**place, score=tried.score(self.tau))

    def best(self, way: Way, seed: int) -> Row:
        """The best rules with the noise of one way."""
        rules = best_rules(self.network, self._cloak(way), self._stream(seed, 2))
        place = {"network": self.network.name, "calibration": way.calibration, "tau": self.tau, "epsilon": self.epsilon}
        return Row(**place, rules=rules)

    def ratio(self, papers: Tried, ours: Tried) -> Row:
        """Steps from the source to the peak of the map, the papers' over ours, in the frames that both have."""
        common = min(len(papers.sources), len(ours.sources))
        above, below = (one.steps_off(self.tau)[:common] for one in (papers, ours))
        return Row(network=self.network.name, steps=Mean.ratio(above, below))


def picture_of(network: Network, way: Way, frames: int, key: tuple[int, ...]) -> Row:
    """The mean over frames with one source on the left: each node's share of all weight or probability.

    `right` is how often a single frame had more on the left.
    """
    cloak = cloak_of(network, TAU, EPSILON, way.calibration)
    tried = attempt(network, cloak, way, np.full(frames, SOURCE), stream(*key))
    mean: FloatArray = tried.likely.mean(axis=0)
    shares = tuple(float(f"{share:.3g}") for share in mean / max(float(mean.sum()), 1e-300))
    return Row(way=way, frames=frames, right=tried.score(TAU).right.value, shares=shares)


def left(picture: Row) -> float:
    """The share of the weight in the community of the source."""
    return float(sum(picture.shares[: len(picture.shares) // 2]))


def spread_of(networks: Sequence[Network], way: Way, frames: int, key: tuple[int, ...]) -> Row:
    """The same picture for at least two other random graphs: means over the graphs, and standard deviations.

    `right` is how often a single frame had more on the left, `left` the share of all weight there.
    """
    found = [picture_of(one, way, frames, (*key, number)) for number, one in enumerate(networks)]
    right, home = np.array([one.right for one in found]), np.array([left(one) for one in found])
    return Row(
        way=way,
        graphs=len(found),
        right=float(right.mean()),
        right_deviation=float(right.std(ddof=1)),
        left=float(home.mean()),
        left_deviation=float(home.std(ddof=1)),
    )


def reading_of(network: Network, inside: float, between: float, rng: np.random.Generator) -> Row:
    """One interpretation of the caption: the heat that stays at home, and how often the best rule is right.

    The block model was made with these probabilities; the papers' epsilon has exact noise.
    """
    rules = best_rules(network, cloak_of(network, TAU, EPSILON, Calibration.EXACT), rng)
    return Row(inside=inside, between=between, home=network.heat_at_home(TAU), right=rules.right)


def coarse_of(network: Network, tau: float, key: tuple[int, ...]) -> Row:
    """A late time with the rounding steps of the papers' time instead of steps that follow the noise.

    `before` and `sensitivity` are the sensitivities at the two times; `noise` is the factor by which the coarse steps
    raise the noise; `fine` and `coarse` are how often the best rule is right.
    """
    figure, fine = (cloak_of(network, time, EPSILON, Calibration.EXACT) for time in (TAU, tau))
    coarse = Cloak(fine.physics, epsilon=EPSILON, delta=DELTA, alpha=ALPHA, hardware=Hardware(step=figure.step))
    shares = [best_rules(network, cloak, stream(*key)).right for cloak in (fine, coarse)]
    return Row(
        tau=tau,
        before=figure.sensitivity,
        sensitivity=fine.sensitivity,
        noise=coarse.sigma / fine.sigma,
        fine=shares[0],
        coarse=shares[1],
    )
