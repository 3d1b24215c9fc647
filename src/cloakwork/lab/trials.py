"""Trials on the line: sources, noise on the readings, a method, and how far its maps are from the truth."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from scipy import stats

from cloakwork._checks import FloatArray
from cloakwork.lab.experiment import stream
from cloakwork.physics import HeatLine, sources
from cloakwork.privacy import Calibration, Cloak
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, Radius, Recovery, recover
from cloakwork.recovery.estimator import Status

PAPERS_TRIALS = 10
PLACES, NOISE = 0, 1  # parts of a stream


class Place(StrEnum):
    """Where a lone source is."""

    MIDDLE = "source at 0.5"
    ANYWHERE = "source anywhere"

    @property
    def at(self) -> tuple[float, ...]:
        """Its position; empty for random places."""
        return (0.5,) if self is Place.MIDDLE else ()


class Method(StrEnum):
    """A way from sources to a map: how much noise at an (epsilon, delta), and how it is seen through."""

    PAPERS = "papers"
    PURSUIT = "R, calibrated"
    POSTERIOR = "posterior (ours)"

    def estimator(self, most: int) -> Estimator:
        """What it recovers with; the posterior knows that sources have strength 1 and are at most so many."""
        made: dict[Method, Callable[[], Estimator]] = {
            Method.PAPERS: lambda: BasisPursuit(radius=Radius.PAPER),
            Method.PURSUIT: BasisPursuit,
            Method.POSTERIOR: lambda: PointSources(1.0, most=most),
        }
        return made[self]()

    @property
    def calibration(self) -> Calibration:
        """How much noise it takes at an (epsilon, delta)."""
        return Calibration.PAPER if self is Method.PAPERS else Calibration.EXACT


@dataclass(frozen=True)
class Setting:
    """A line, the noise on its readings, and where its sources are, each of strength 1.

    Parameters
    ----------
    n, m, T
        Places, sensors and diffusion time, as for `HeatLine`.
    sigma
        Noise of each reading. None: as much as hides a move by one place at (`epsilon`, `delta`).
    at
        Positions of the sources. If empty, they are at `count` distinct random places, others in each trial.
    most
        How many sources the posterior allows for.
    """

    n: int = 100
    m: int = 50
    T: float = 0.05
    sigma: float | None = None
    epsilon: float = 1.0
    delta: float = 0.1
    at: tuple[float, ...] = ()
    count: int = 1
    most: int = 4

    @property
    def line(self) -> HeatLine:
        """The physics."""
        return _line(self.n, self.m, self.T)

    def truth(self, trials: int, rng: np.random.Generator) -> FloatArray:
        """True maps, shape (trials, n).

        With one random source two settings have it at the same positions, whatever their n; with several, the places
        of fewer sources are among those of more.
        """
        if self.at:
            return np.tile(sources(self.line, self.at), (trials, 1))
        if self.count == 1:
            places = (rng.random((trials, 1)) * self.n).astype(np.int64)
        else:
            places = rng.random((trials, self.n)).argsort(axis=1)[:, : self.count]
        maps = np.zeros((trials, self.n))
        np.put_along_axis(maps, places, 1.0, axis=1)
        return maps

    def channel(self, calibration: Calibration) -> "Channel":
        """How readings become noisy."""
        if self.sigma is not None:
            return Channel(self.line, None, self.sigma)
        cloak = Cloak(self.line, epsilon=self.epsilon, delta=self.delta, alpha=1 / self.n, calibration=calibration)
        return Channel(self.line, cloak, float(cloak.sigma))


@dataclass(frozen=True, eq=False)
class Channel:
    """Noise of a known size: plain, or that of a cloak."""

    line: HeatLine
    cloak: Cloak | None
    sigma: float

    def send(self, readings: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Readings with noise on them."""
        if self.cloak is not None:
            return self.cloak.simulate(readings, rng=rng)
        return readings + self.sigma * rng.standard_normal(readings.shape)

    def recover(self, noisy: FloatArray, estimator: Estimator) -> Recovery:
        """What an analyst makes of them."""
        if self.cloak is not None:
            return recover(noisy, self.cloak, estimator=estimator)
        return recover(noisy, self.line, sigma=self.sigma, estimator=estimator)


@lru_cache(maxsize=32)
def _line(n: int, m: int, T: float) -> HeatLine:
    return HeatLine(n=n, m=m, T=T)


@dataclass(frozen=True, eq=False)
class Distances:
    """How far maps are from the true ones, all scaled to a total of 1; an empty map counts as the uniform one."""

    emd: FloatArray
    l1: FloatArray
    l2: FloatArray

    @classmethod
    def of(cls, truth: FloatArray, maps: FloatArray) -> "Distances":
        """For maps on a line of length 1, shape (trials, n) both."""
        difference = scaled(maps) - scaled(truth)
        carried = np.abs(np.cumsum(difference, axis=1)[:, :-1])
        return cls(
            emd=carried.sum(axis=1) / truth.shape[1],
            l1=np.abs(difference).sum(axis=1),
            l2=np.sqrt((difference**2).sum(axis=1)),
        )


def scaled(maps: FloatArray) -> FloatArray:
    """Maps with a total of 1 each; empty ones become uniform.

    >>> scaled(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    filled = np.where(maps.any(axis=1, keepdims=True), maps, 1.0)
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Mean:
    """The mean of independent trials, and its standard error."""

    value: float
    error: float

    @classmethod
    def of(cls, values: FloatArray) -> "Mean":
        """Of at least two trials.

        >>> Mean.of(np.array([1.0, 3.0]))
        Mean(value=2.0, error=1.0)
        """
        return cls(float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))))

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.error:.4f}"


@dataclass(frozen=True)
class Score:
    """How one method did: three distances, the noise it had, and in how many frames nothing fitted or all was empty."""

    method: Method
    trials: int
    sigma: float
    emd: Mean
    l1: Mean
    l2: Mean
    unfitted: float
    empty: float

    @property
    def papers_interval(self) -> float:
        """Half of the 95 % interval for the mean that the papers' 10 trials would give."""
        spread = self.emd.error * math.sqrt(self.trials)
        return float(stats.t.ppf(0.975, PAPERS_TRIALS - 1)) * spread / math.sqrt(PAPERS_TRIALS)


def score(setting: Setting, method: Method, truth: FloatArray, key: tuple[int, ...]) -> Score:
    """How one method does on these true maps."""
    channel = setting.channel(method.calibration)
    noisy = channel.send(setting.line.apply(truth), stream(*key, NOISE))
    found = channel.recover(noisy, method.estimator(setting.most))
    distances = Distances.of(truth, found.map)
    return Score(
        method=method,
        trials=len(truth),
        sigma=channel.sigma,
        emd=Mean.of(distances.emd),
        l1=Mean.of(distances.l1),
        l2=Mean.of(distances.l2),
        unfitted=sum(status is Status.BEST_FIT for status in found.status) / len(truth),
        empty=float((~found.map.any(axis=1)).mean()),
    )
