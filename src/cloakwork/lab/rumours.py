"""Rumours in the papers' block model and in other networks: where they began, and where they seem to have begun."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.lab.experiment import stream
from cloakwork.lab.networks import RIVALS, Network, Score, Way, attempt, block_model, cloak_of, heat_at_home, score

NODES, HIGH, LOW = 500, 0.05, 0.001
TAU, EPSILON = 2.0, 4.0  # of the papers' figure
SOURCE = 0  # the node on the left that the picture shows
GRAPH = 1  # which block model: a part of the setting, like n


@dataclass(frozen=True)
class Picture:
    """The mean over frames with one source on the left: the share of all weight, or probability, of each node.

    `right` is how often a single frame had more on the left.
    """

    way: Way
    frames: int
    right: float
    shares: tuple[float, ...]

    @property
    def left(self) -> float:
        """Share of the weight in the community of the source."""
        return sum(self.shares[: len(self.shares) // 2])


@dataclass(frozen=True)
class Cell:
    """How one way did on one network, at one time and epsilon."""

    network: str
    way: Way
    tau: float
    epsilon: float
    score: Score


@dataclass(frozen=True)
class Reading:
    """The block model with one reading of the caption: heat that stays at home, and how often the best rule is right.

    `right` is for the rule that compares the readings with the mean of each community, at the papers' epsilon and
    exact noise: half of the time is a coin.
    """

    inside: float
    between: float
    home: float
    right: float


def picture_of(network: Network, way: Way, frames: int, key: tuple[int, ...]) -> Picture:
    """What is recovered on average from frames of one rumour."""
    cloak = cloak_of(network.physics(TAU), EPSILON, way)
    tried = attempt(network, cloak, way, np.full(frames, SOURCE), stream(*key))
    mean: FloatArray = tried.likely.mean(axis=0)
    right = score(network, tried, network.physics(TAU).space.distance_table).right
    return Picture(way, frames, right, tuple(float(f"{share:.3g}") for share in mean / max(float(mean.sum()), 1e-300)))


def cells_of(network: Network, tau: float, epsilons: tuple[float, ...], each: int, key: tuple[int, ...]) -> list[Cell]:
    """Every epsilon at one time, the same sources for both ways; as many sources as `each`, or each node so often."""
    physics = network.physics(tau)
    distances, n = physics.space.distance_table, physics.places
    block = network.name == "block model"
    found = []
    for number, epsilon in enumerate(epsilons):
        sources = stream(*key, number, 0).integers(0, n, each) if block else np.tile(np.arange(n), each)
        for way in Way if block and (tau, epsilon) == (TAU, EPSILON) else RIVALS:
            tried = attempt(network, cloak_of(physics, epsilon, way), way, sources, stream(*key, number, 1))
            found.append(Cell(network.name, way, tau, epsilon, score(network, tried, distances)))
    return found


def reading_of(inside: float, between: float) -> Reading:
    """The block model with these probabilities."""
    network = block_model(NODES, inside, between, GRAPH)
    matrix, cloak = network.physics(TAU).matrix, cloak_of(network.physics(TAU), EPSILON, Way.OURS)
    means = [matrix[:, network.communities == side].mean(axis=1) for side in (0, 1)]
    apart = float(np.linalg.norm(means[0] - means[1])) / cloak.sigma
    return Reading(inside, between, heat_at_home(network, TAU), float(special.ndtr(apart / 2)))
