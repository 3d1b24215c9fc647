"""Networks with communities, and how well the source of a rumour that spreads over them is found."""

import math
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
from papers.statistics import Mean, share_error

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


@dataclass(frozen=True)
class Score:
    """How often the right community and the right node are named, and how many steps away the peak of the map is.

    The named community and node are the most likely ones. The peak of the map is a node in the middle of the likely
    ones, which is closer on average and less often right. As a string, the percentage of frames with the right
    community.
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
        return self.right + 2 * math.hypot(self.right_error, other.right_error) < other.right


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

    def score(self, tau: float) -> Score:
        """The score; equally likely communities and nodes share the credit."""
        right = credit(self.weights, self.network.communities[self.sources])
        hops, frames, share = self.steps_off(tau), len(right), float(right.mean())
        return Score(
            frames,
            share,
            share_error(share, frames),
            float(credit(self.likely, self.sources).mean()),
            float(hops.mean()),
            float(hops.std(ddof=1) / np.sqrt(frames)),
            int((~self.maps.any(axis=1)).sum()),
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


@dataclass(frozen=True)
class BestRules:
    """How often the best rule names the right community, and how often the best rule names the right node."""

    right: Mean
    person: Mean


def best_rules(network: Network, cloak: Cloak, rng: np.random.Generator) -> BestRules:
    """How often the best rules are right, where every node is equally likely to be the source.

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
    return BestRules(Mean.of((likely @ network.members).max(axis=1)), Mean.of(likely.max(axis=1)))


@dataclass(frozen=True)
class Picture:
    """The mean over frames with one source on the left: each node's share of all weight or probability.

    `right` is how often a single frame had more on the left.
    """

    way: Way
    frames: int
    right: float
    shares: tuple[float, ...]

    @property
    def left(self) -> float:
        """The share of the weight in the community of the source."""
        return sum(self.shares[: len(self.shares) // 2])


@dataclass(frozen=True)
class Spread:
    """The same pictures for a number of other random graphs: means over the graphs, and standard deviations.

    `right` is how often a single frame had more on the left, `left` the share of all weight there.
    """

    way: Way
    graphs: int
    right: float
    right_deviation: float
    left: float
    left_deviation: float


@dataclass(frozen=True)
class Cell:
    """The score of one way on one network, at one time and epsilon."""

    network: str
    way: Way
    tau: float
    epsilon: float
    score: Score


@dataclass(frozen=True)
class Best:
    """How often the best rules name the right community and the right node, with either noise."""

    network: str
    calibration: Calibration
    tau: float
    epsilon: float
    rules: BestRules


@dataclass(frozen=True)
class Ratio:
    """Steps from the source to the peak of the map: the papers' over ours, for the same sources."""

    network: str
    steps: Mean


@dataclass(frozen=True)
class Reading:
    """One interpretation of the caption: the heat that stays at home, and how often the best rule is right."""

    inside: float
    between: float
    home: float
    right: Mean


@dataclass(frozen=True)
class Coarse:
    """A late time with the rounding steps of the papers' time instead of steps that follow the noise.

    `before` and `sensitivity` are the sensitivities at the two times; `noise` is the factor by which the coarse steps
    raise the noise; `fine` and `coarse` are how often the best rule is right.
    """

    tau: float
    before: float
    sensitivity: float
    noise: float
    fine: Mean
    coarse: Mean


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

    def cell(self, way: Way, tried: Tried) -> Cell:
        return Cell(self.network.name, way, self.tau, self.epsilon, tried.score(self.tau))

    def best(self, way: Way, seed: int) -> Best:
        rules = best_rules(self.network, self._cloak(way), self._stream(seed, 2))
        return Best(self.network.name, way.calibration, self.tau, self.epsilon, rules)

    def ratio(self, papers: Tried, ours: Tried) -> Ratio:
        """Steps off, the papers' over ours, in the frames that both have."""
        common = min(len(papers.sources), len(ours.sources))
        above, below = (one.steps_off(self.tau)[:common] for one in (papers, ours))
        return Ratio(self.network.name, Mean.ratio(above, below))


def picture_of(network: Network, way: Way, frames: int, key: tuple[int, ...]) -> Picture:
    """The mean of what is recovered from frames of one rumour."""
    cloak = cloak_of(network, TAU, EPSILON, way.calibration)
    tried = attempt(network, cloak, way, np.full(frames, SOURCE), stream(*key))
    mean: FloatArray = tried.likely.mean(axis=0)
    shares = tuple(float(f"{share:.3g}") for share in mean / max(float(mean.sum()), 1e-300))
    return Picture(way, frames, tried.score(TAU).right, shares)


def spread_of(networks: Sequence[Network], way: Way, frames: int, key: tuple[int, ...]) -> Spread:
    """Draw the picture of each of at least two networks."""
    found = [picture_of(one, way, frames, (*key, number)) for number, one in enumerate(networks)]
    right, left = (np.array([getattr(one, name) for one in found]) for name in ("right", "left"))
    spread = [float(value) for one in (right, left) for value in (one.mean(), one.std(ddof=1))]
    return Spread(way, len(found), *spread)


def reading_of(network: Network, inside: float, between: float, rng: np.random.Generator) -> Reading:
    """A block model that was made with these probabilities, at the papers' epsilon with exact noise."""
    rules = best_rules(network, cloak_of(network, TAU, EPSILON, Calibration.EXACT), rng)
    return Reading(inside, between, network.heat_at_home(TAU), rules.right)


def coarse_of(network: Network, tau: float, key: tuple[int, ...]) -> Coarse:
    """A late time with the rounding steps of the papers' time."""
    figure, fine = (cloak_of(network, time, EPSILON, Calibration.EXACT) for time in (TAU, tau))
    coarse = Cloak(fine.physics, epsilon=EPSILON, delta=DELTA, alpha=ALPHA, hardware=Hardware(step=figure.step))
    shares = [best_rules(network, cloak, stream(*key)).right for cloak in (fine, coarse)]
    return Coarse(tau, figure.sensitivity, fine.sensitivity, coarse.sigma / fine.sigma, *shares)
