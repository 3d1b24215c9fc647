"""Mean squared errors of one private filter: by the papers' formula, ours, and measured."""

from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.series import Filter, Fourier, RunningSum, SeriesCloak, Stream
from papers.experiment import stream
from papers.trials import Mean

EPSILON, DELTA = 1.0, 1e-6


@dataclass(frozen=True)
class Errors:
    """Mean squared errors of one filter of `n` values: the papers' formula, ours, and what was measured of ours.

    `whole` is for a series that is published at once (`Fourier`), `live` for one that is published as it arrives
    (`Stream`; None for a filter that looks ahead). `shape` is the papers' specLB, known up to a constant only.
    """

    name: str
    n: int
    papers: float
    whole: float
    whole_seen: Mean
    live: float | None
    live_seen: Mean | None
    shape: float

    @property
    def best(self) -> float:
        """The smaller of ours."""
        return self.whole if self.live is None else min(self.whole, self.live)

    @property
    def better(self) -> float:
        """How many times less ours is than the papers'."""
        return self.papers / self.best


def errors(filter_: Filter, n: int, trials: int, key: tuple[int, ...]) -> Errors:
    """The errors of one filter, and those of `trials` simulated releases of random counts."""
    cloak = SeriesCloak(filter_, n, epsilon=EPSILON, delta=DELTA, mechanism=Fourier())
    x = stream(*key).poisson(3.0, n)
    truth = filtered(filter_, x)
    rng = stream(*key, 1)
    seen = np.array([((cloak.simulate(x, rng=rng).values - truth) ** 2).mean() for _ in range(trials)])
    live = _live(filter_, n)
    live_seen = None
    if live is not None:
        outputs = live.simulate(np.tile(x, (trials, 1)), rng=stream(*key, 2))
        live_seen = Mean.of(((outputs.values - truth) ** 2).mean(axis=1))
    return Errors(
        name=filter_.name,
        n=n,
        papers=cloak.papers_mse,
        whole=cloak.expected_mse,
        whole_seen=Mean.of(seen),
        live=None if live is None else live.expected_mse,
        live_seen=live_seen,
        shape=cloak.spectral_shape,
    )


def filtered(filter_: Filter, x: IntArray) -> FloatArray:
    """The true output of a filter, directly by its taps."""
    taps = filter_.taps(len(x))
    whole = np.convolve(taps.values, x)
    places = np.arange(len(x)) - taps.first
    inside = (places >= 0) & (places < len(whole))
    return np.asarray(np.where(inside, whole[np.clip(places, 0, len(whole) - 1)], 0.0) * taps.scale(len(x)))


def at_claim(epsilon: float, delta: float) -> float:
    """How many times less mean squared error exact Gaussian noise has than the papers' formula at one claim."""
    cloak = SeriesCloak(RunningSum(), 64, epsilon=epsilon, delta=delta, mechanism=Fourier())
    return cloak.papers_mse / cloak.expected_mse


def _live(filter_: Filter, n: int) -> Stream | None:
    try:
        return Stream(filter_, n, epsilon=EPSILON, delta=DELTA)
    except InputError:
        return None
