"""Trials on the line: sources, noise on the readings, a method, and how far its maps are from the truth."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.physics import HeatLine, sources
from cloakwork.privacy import Calibration, Cloak
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, Radius, Recovery, Status, recover
from papers.experiment import stream

PAPERS_TRIALS = 10
LEAST_BATCHES = 40  # below, there is no 2.5 % quantile
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

    def words(self, *without: str) -> str:
        """Its parameters, but for some.

        >>> Setting(sigma=0.1).words(), Setting().words("n", "m")
        ('n = 100, m = 50, T = 0.05, sigma = 0.1', 'T = 0.05, epsilon = 1, delta = 0.1')
        """
        names = ("n", "m", "T", *(("epsilon", "delta") if self.sigma is None else ("sigma",)))
        return ", ".join(f"{name} = {getattr(self, name):g}" for name in names if name not in without)

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

    @classmethod
    def ratio(cls, over: FloatArray, under: FloatArray) -> "Mean":
        """One mean over another; what they have in common on the first frames, which both have, is no error.

        >>> Mean.ratio(np.array([2.0, 6.0]), np.array([1.0, 3.0]))
        Mean(value=2.0, error=0.0)
        """
        shared, most = sorted((len(over), len(under)))
        above, below = cls.of(over / over.mean()), cls.of(under / under.mean())
        common = float(np.cov(over[:shared], under[:shared])[0, 1] / over.mean() / under.mean()) / most
        value = float(over.mean() / under.mean())
        return cls(value, value * math.sqrt(max(above.error**2 + below.error**2 - 2 * common, 0.0)))

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.error:.4f}"


@dataclass(frozen=True)
class Band:
    """What 95 % of means of as many trials as the papers took lie between."""

    low: float
    high: float

    @classmethod
    def of(cls, values: FloatArray) -> "Band | None":
        """The quantiles of means of consecutive batches; None with too few of them.

        >>> Band.of(np.ones(1000)), Band.of(np.ones(50))
        (Band(low=1.0, high=1.0), None)
        """
        batches = len(values) // PAPERS_TRIALS
        if batches < LEAST_BATCHES:
            return None
        means = values[: batches * PAPERS_TRIALS].reshape(batches, PAPERS_TRIALS).mean(axis=1)
        low, high = np.quantile(means, (0.025, 0.975)).tolist()
        return cls(low, high)


@dataclass(frozen=True, eq=False)
class Trial:
    """What noise of some size and a way of recovery made of true maps."""

    sigma: float
    found: Recovery
    distances: Distances


def try_with(
    setting: Setting, calibration: Calibration, estimator: Estimator, truth: FloatArray, key: tuple[int, ...]
) -> Trial:
    """Noise on the readings of true maps, and what is recovered; the same key gives the same noise up to its size."""
    channel = setting.channel(calibration)
    found = channel.recover(channel.send(setting.line.apply(truth), stream(*key, NOISE)), estimator)
    return Trial(channel.sigma, found, Distances.of(truth, found.map))


def try_method(setting: Setting, method: Method, truth: FloatArray, key: tuple[int, ...]) -> Trial:
    """The same for one of the methods."""
    return try_with(setting, method.calibration, method.estimator(setting.most), truth, key)


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
    band: Band | None = None

    @classmethod
    def of(cls, method: Method, trial: Trial) -> "Score":
        """Of all its frames."""
        distances, found = trial.distances, trial.found
        return cls(
            method=method,
            trials=len(distances.emd),
            sigma=trial.sigma,
            emd=Mean.of(distances.emd),
            l1=Mean.of(distances.l1),
            l2=Mean.of(distances.l2),
            unfitted=sum(status is Status.BEST_FIT for status in found.status) / len(distances.emd),
            empty=float((~found.map.any(axis=1)).mean()),
            band=Band.of(distances.emd),
        )
