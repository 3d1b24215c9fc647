"""Rumours in the papers' block model and in other networks: where they began, and where they seem to have begun."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from cloakwork._checks import FloatArray
from cloakwork.privacy import Calibration, Cloak
from papers.experiment import stream
from papers.networks import (
    ALPHA,
    DELTA,
    Network,
    Score,
    Tried,
    Way,
    attempt,
    cloak_of,
    heat_at_home,
    score,
    steps_off,
)
from papers.trials import Mean

TAU, EPSILON = 2.0, 4.0  # of the papers' figure
SOURCE = 0  # the node on the left that the picture shows
BEST_FRAMES = 1000  # that say how often the best rule is right


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
class Best:
    """How often the best rule names the right community, with the noise of the papers or ours."""

    network: str
    calibration: Calibration
    tau: float
    epsilon: float
    right: Mean


@dataclass(frozen=True)
class Ratio:
    """Steps from the source to who is named: the papers' over ours, for the same sources."""

    network: str
    steps: Mean


@dataclass(frozen=True)
class Reading:
    """The block model with one reading of the caption: heat that stays at home, and how often the best rule is right.

    `right` is at the papers' epsilon with exact noise: half of the time is a coin.
    """

    inside: float
    between: float
    home: float
    right: Mean

    @property
    def level(self) -> bool:
        """Whether heat is as much in its own community as in the other."""
        return abs(self.home - 0.5) < 1e-3


@dataclass(frozen=True)
class Coarse:
    """A late time, where the steps of the papers' time are kept instead of steps that follow the noise.

    `sensitivity` is how far a hidden move shifts the readings then, `before` at the papers' time; `noise` is how many
    times more noise the coarse steps ask for; `fine` and `coarse` are how often the best rule is right.
    """

    tau: float
    before: float
    sensitivity: float
    noise: float
    fine: Mean
    coarse: Mean


@dataclass(frozen=True)
class Frames:
    """How many frames each kind of recovery has: R is quick."""

    pursuit: int
    posterior: int

    def of(self, way: Way) -> int:
        """Those of one way."""
        return self.posterior if way.weighs else self.pursuit


@dataclass(frozen=True, eq=False)
class Scene:
    """A network at one time and epsilon; `number` tells networks apart."""

    network: Network
    number: int
    tau: float
    epsilon: float

    def tried(self, way: Way, frames: int, seed: int) -> Tried:
        """Rumours from everywhere, recovered; all ways have the same sources, from the first on."""
        key = (self.number, round(1000 * self.tau), round(1000 * self.epsilon))
        sources = np.resize(stream(seed, *key, 0).permutation(len(self.network.communities)), frames)
        return attempt(self.network, self._cloak(way), way, sources, stream(seed, *key, 1))

    def cell(self, way: Way, tried: Tried) -> Cell:
        """How it went."""
        return Cell(self.network.name, way, self.tau, self.epsilon, score(self.network, tried, self._distances))

    def best(self, way: Way, seed: int) -> Best:
        """The best rule with the noise of one way."""
        rng = stream(seed, self.number, round(1000 * self.tau), round(1000 * self.epsilon), 2)
        right = best_share(self.network, self._cloak(way), rng)
        return Best(self.network.name, way.calibration, self.tau, self.epsilon, right)

    def ratio(self, papers: Tried, ours: Tried) -> Ratio:
        """Steps off, the papers' over ours, in the frames that both have."""
        common = min(len(papers.sources), len(ours.sources))
        return Ratio(self.network.name, ratio_of(*(steps_off(one, self._distances)[:common] for one in (papers, ours))))

    def _cloak(self, way: Way) -> Cloak:
        if way.calibration not in self._made:
            self._made[way.calibration] = cloak_of(self.network.physics(self.tau), self.epsilon, way)
        return self._made[way.calibration]

    @cached_property
    def _made(self) -> dict[Calibration, Cloak]:
        return {}

    @property
    def _distances(self) -> FloatArray:
        return np.asarray(self.network.physics(self.tau).space.distance_table, dtype=np.float64)


def ratio_of(above: FloatArray, below: FloatArray) -> Mean:
    """The ratio of two means over the same frames.

    >>> ratio_of(np.array([2.0, 4.0]), np.array([1.0, 2.0]))
    Mean(value=2.0, error=0.0)
    """
    value = float(above.mean() / below.mean())
    spread = float((above - value * below).std(ddof=1) / below.mean())
    return Mean(value, spread / math.sqrt(len(above)))


def best_share(network: Network, cloak: Cloak, rng: np.random.Generator) -> Mean:
    """How often the best rule names the right community, where every node is as likely to be the source.

    Notes
    -----
    It names the likeliest community, and is right with that likelihood: the mean of max_c P(c | readings).
    """
    matrix, sigma = cloak.physics.matrix, cloak.sigma
    sources = rng.integers(0, cloak.physics.places, BEST_FRAMES)
    noisy = matrix.T[sources] + sigma * rng.standard_normal((BEST_FRAMES, cloak.physics.sensors))
    logs = (noisy @ matrix - (matrix**2).sum(axis=0) / 2) / sigma**2
    return Mean.of((special.softmax(logs, axis=1) @ network.members).max(axis=1))


def picture_of(network: Network, way: Way, frames: int, key: tuple[int, ...]) -> Picture:
    """What is recovered on average from frames of one rumour."""
    cloak = cloak_of(network.physics(TAU), EPSILON, way)
    tried = attempt(network, cloak, way, np.full(frames, SOURCE), stream(*key))
    mean: FloatArray = tried.likely.mean(axis=0)
    right = score(network, tried, network.physics(TAU).space.distance_table).right
    return Picture(way, frames, right, tuple(float(f"{share:.3g}") for share in mean / max(float(mean.sum()), 1e-300)))


def reading_of(network: Network, inside: float, between: float, rng: np.random.Generator) -> Reading:
    """A block model that was made with these probabilities."""
    right = best_share(network, cloak_of(network.physics(TAU), EPSILON, Way.OURS), rng)
    return Reading(inside, between, heat_at_home(network, TAU), right)


def coarse_of(network: Network, tau: float, key: tuple[int, ...]) -> Coarse:
    """What becomes of a late time with the steps of the papers' time."""
    figure = cloak_of(network.physics(TAU), EPSILON, Way.OURS)
    fine = cloak_of(network.physics(tau), EPSILON, Way.OURS)
    coarse = Cloak(fine.physics, epsilon=EPSILON, delta=DELTA, alpha=ALPHA, resolution=figure.resolution)
    shares = [best_share(network, cloak, stream(*key)) for cloak in (fine, coarse)]
    return Coarse(tau, figure.sensitivity, fine.sensitivity, coarse.sigma / fine.sigma, *shares)
