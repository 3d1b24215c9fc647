"""Trials on a line: true sources, noise on the readings, a method of recovery, and the distance of its maps."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.physics import HeatLine, sources
from cloakwork.privacy import Cloak
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, Recovery, Status, recover
from papers.calibration import Calibration, PapersPursuit, calibrated
from papers.experiment import stream
from papers.rows import Mean, Row

PAPERS_TRIALS = 10
MIN_BATCHES = 40  # fewer do not have a 2.5 % quantile
PLACES, NOISE = 0, 1  # parts of a stream of random numbers


class Place(StrEnum):
    """Where a single source is."""

    MIDDLE = "source at 0.5"
    ANYWHERE = "source anywhere"

    @property
    def at(self) -> tuple[float, ...]:
        """Its position; empty for random places."""
        return (0.5,) if self is Place.MIDDLE else ()


class Strengths(StrEnum):
    """How strong sources are."""

    UNIT = "known strength 1"
    FREE = "unknown strength in [0, 1]"

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw the strengths of some sources."""
        return np.ones(count) if self is Strengths.UNIT else rng.uniform(0.0, 1.0, count)

    @property
    def prior(self) -> float | tuple[float, float]:
        """What estimators that use strengths assume."""
        return 1.0 if self is Strengths.UNIT else (0.0, 1.0)


class Method(StrEnum):
    """A calibration of the noise together with a way of recovery."""

    PAPERS = "papers' method"
    PURSUIT = "basis pursuit, calibrated"
    POSTERIOR = "posterior (ours)"

    def estimator(self, most: int) -> Estimator:
        """Its estimator; the posterior knows that sources have strength 1 and how many there are at most."""
        made: dict[Method, Callable[[], Estimator]] = {
            Method.PAPERS: PapersPursuit,
            Method.PURSUIT: BasisPursuit,
            Method.POSTERIOR: lambda: PointSources(1.0, max_sources=most),
        }
        return made[self]()

    @property
    def calibration(self) -> Calibration:
        """How its noise is calibrated to (epsilon, delta)."""
        return Calibration.PAPER if self is Method.PAPERS else Calibration.EXACT


@dataclass(frozen=True)
class Setting:
    """A line, the noise on its readings, and its sources, all of strength 1.

    Parameters
    ----------
    n, m, T
        Places, sensors and diffusion time, as for `HeatLine`.
    sigma
        Noise of each reading. None: as much as hides a move by one place at (`epsilon`, `delta`).
    at
        Positions of the sources. If empty, they are at `count` distinct random places, different in each trial.
    most
        The largest number of sources that the posterior considers.
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

    def describe(self, *without: str) -> str:
        """List its parameters, except for some.

        >>> Setting(sigma=0.1).describe(), Setting().describe("n", "m")
        ('n = 100, m = 50, T = 0.05, sigma = 0.1', 'T = 0.05, epsilon = 1, delta = 0.1')
        """
        names = ("n", "m", "T", *(("epsilon", "delta") if self.sigma is None else ("sigma",)))
        return ", ".join(f"{name} = {getattr(self, name):g}" for name in names if name not in without)

    def truth(self, trials: int, rng: np.random.Generator) -> FloatArray:
        """True maps, shape (trials, n).

        A single random source has the same positions in all settings, whatever their n; with several, the places of
        fewer sources are among those of more.
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

    def cloak(self, calibration: Calibration = Calibration.EXACT) -> Cloak:
        """The cloak that hides a move by one place; for settings without a sigma of their own."""
        return _cloak(self, calibration)

    def noise(self, calibration: Calibration) -> float:
        """The standard deviation of the noise of a reading."""
        return float(self.cloak(calibration).sigma) if self.sigma is None else self.sigma


@lru_cache(maxsize=32)
def _line(n: int, m: int, T: float) -> HeatLine:
    return HeatLine(n=n, m=m, T=T)


@lru_cache(maxsize=16)
def _cloak(setting: Setting, calibration: Calibration) -> Cloak:
    epsilon, delta, alpha = setting.epsilon, setting.delta, 1 / setting.n
    return calibrated(setting.line, calibration, epsilon=epsilon, delta=delta, alpha=alpha)


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances of maps to the true ones, all scaled to a total of 1; an empty map counts as the uniform one."""

    emd: FloatArray
    l1: FloatArray
    l2: FloatArray

    @classmethod
    def between(cls, truth: FloatArray, maps: FloatArray) -> "Distances":
        """For maps on a line of length 1, shape (trials, n) both."""
        difference = scaled(maps) - scaled(truth)
        carried = np.abs(np.cumsum(difference, axis=1)[:, :-1])
        return cls(
            emd=carried.sum(axis=1) / truth.shape[1],
            l1=np.abs(difference).sum(axis=1),
            l2=np.sqrt((difference**2).sum(axis=1)),
        )


def scaled(maps: FloatArray) -> FloatArray:
    """Scale each map to a total of 1; empty ones become uniform.

    >>> scaled(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    filled = np.where(maps.any(axis=1, keepdims=True), maps, 1.0)
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))


def uniform_errors(truth: FloatArray) -> FloatArray:
    """The earth mover distance of the uniform map to each true one."""
    return Distances.between(truth, np.zeros_like(truth)).emd


def band(values: FloatArray) -> Row | None:
    """The range of 95 % of the means of consecutive batches, as large as the papers took; None with too few of them.

    >>> band(np.ones(1000)), band(np.ones(50))
    (Row(low=1.0, high=1.0), None)
    """
    batches = len(values) // PAPERS_TRIALS
    if batches < MIN_BATCHES:
        return None
    means = values[: batches * PAPERS_TRIALS].reshape(batches, PAPERS_TRIALS).mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975)).tolist()
    return Row(low=low, high=high)


@dataclass(frozen=True, eq=False)
class Trial:
    """What a calibration and an estimator made of true maps."""

    sigma: float
    recovery: Recovery
    distances: Distances


def try_with(
    setting: Setting, calibration: Calibration, estimator: Estimator, truth: FloatArray, key: tuple[int, ...]
) -> Trial:
    """Add noise to the readings of true maps and recover them; the same key gives the same noise up to its scale."""
    readings, rng = setting.line.apply(truth), stream(*key, NOISE)
    sigma = setting.noise(calibration)
    if setting.sigma is None:
        cloak = setting.cloak(calibration)
        recovery = recover(cloak.simulate(readings, rng=rng), cloak, estimator=estimator)
    else:
        noisy = readings + sigma * rng.standard_normal(readings.shape)
        recovery = recover(noisy, setting.line, sigma=sigma, estimator=estimator)
    return Trial(sigma, recovery, Distances.between(truth, recovery.map))


def try_method(setting: Setting, method: Method, truth: FloatArray, key: tuple[int, ...]) -> Trial:
    """Try one of the methods on true maps."""
    return try_with(setting, method.calibration, method.estimator(setting.most), truth, key)


def score(method: Method, trial: Trial) -> Row:
    """How one method did: three mean distances, its noise, and the shares of frames where nothing fit or all was empty.

    A frame is one reading of each sensor.
    """
    distances, recovery = trial.distances, trial.recovery
    return Row(
        method=method,
        trials=len(distances.emd),
        sigma=trial.sigma,
        emd=Mean.of(distances.emd),
        l1=Mean.of(distances.l1),
        l2=Mean.of(distances.l2),
        unfitted=sum(status is Status.BEST_FIT for status in recovery.status) / len(distances.emd),
        empty=float((~recovery.map.any(axis=1)).mean()),
        band=band(distances.emd),
    )
