"""Errors of one private filter, and the Fourier mechanism of Fawaz, Muthukrishnan and Nikolov as printed."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import fft
from scipy.special import ndtr

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.privacy import largest_mu
from cloakwork.series import Filter, RunningSum, SeriesCloak, Stream, factor
from papers.experiment import stream
from papers.rows import Mean, Row

EPSILON, DELTA = 1.0, 1e-6
_NEGLIGIBLE = 1e-12  # of the largest coefficient: what a Fourier transform leaves of a zero


def errors(filter_: Filter, n: int, trials: int, key: tuple[int, ...]) -> Row:
    """Mean squared errors of one filter of `n` values: by the papers' formula, ours, and ours on random counts.

    `whole` is for a series that is published at once (`Fourier`), `live` for one that is published as it arrives
    (`Stream`; None for a filter that looks ahead). `shape` is the papers' specLB, which is known up to a constant.
    """
    cloak = SeriesCloak(filter_, n, epsilon=EPSILON, delta=DELTA, strategy=factor([filter_], n, mechanism="fourier"))
    x = stream(*key).poisson(3.0, n)
    truth = filtered(filter_, x)
    rng = stream(*key, 1)
    seen = np.array([((cloak.simulate(x, rng=rng).values - truth) ** 2).mean() for _ in range(trials)])
    live, live_seen = None, None
    try:
        live = Stream(filter_, n, epsilon=EPSILON, delta=DELTA)
    except InputError:  # the filter looks ahead
        pass
    else:
        outputs = live.simulate(np.tile(x, (trials, 1)), rng=stream(*key, 2))
        live_seen = Mean.of(((outputs.values - truth) ** 2).mean(axis=1))
    return Row(
        name=filter_.name,
        n=n,
        papers=papers_mse(filter_, n, EPSILON, DELTA),
        whole=cloak.expected_mse,
        whole_seen=Mean.of(seen),
        live=None if live is None else live.expected_mse,
        live_seen=live_seen,
        shape=spectral_shape(filter_, n),
    )


def magnitudes(filter_: Filter, n: int, *, circular: bool = False) -> FloatArray:
    """|H_k| of a filter at every frequency of a circle: of `n` values, or long enough that nothing wraps around."""
    cut = filter_.cut(n)
    ahead, back = max(0, -cut.first), max(0, cut.first + len(cut.values) - 1)
    period = n if circular else int(fft.next_fast_len(n + ahead + back, real=True))
    placed = np.zeros(period)
    np.add.at(placed, (cut.first + np.arange(len(cut.values))) % period, cut.values)
    sizes = np.abs(fft.fft(placed))
    return np.asarray(np.where(sizes > _NEGLIGIBLE * sizes.max(), sizes, 0.0))


def papers_mse(filter_: Filter, n: int, epsilon: float, delta: float) -> float:
    """The error by the papers' formula, 4 ln(1/delta) ||h^||_1^2 / (epsilon^2 N), with the scale of averages."""
    scale, mean = filter_.cut(n).scale(n), float(magnitudes(filter_, n).mean())
    return 4 * math.log(1 / delta) / epsilon**2 * mean**2 * float((scale**2).mean())


def spectral_shape(filter_: Filter, n: int) -> float:
    """specLB(h) = max over K of K^2 |h^_(K)|^2 / (N log2(N)^2), with the unitary coefficients from large to small.

    The mean squared error of any private convolution is at least this times an unknown constant, for small epsilon and
    delta (Fawaz, Muthukrishnan and Nikolov, Theorem 2): it serves to compare filters, never as a bound.
    """
    sizes = np.sort(magnitudes(filter_, n))[::-1]
    period = len(sizes)
    if period == 1:
        return float(sizes[0] ** 2)
    places = np.arange(1, period + 1)
    return float((places**2 * sizes**2 / period).max() / (period * math.log2(period) ** 2))


def filtered(filter_: Filter, x: IntArray) -> FloatArray:
    """The true output of a filter, directly from its taps."""
    cut = filter_.cut(len(x))
    whole = np.convolve(cut.values, x)
    places = np.arange(len(x)) - cut.first
    inside = (places >= 0) & (places < len(whole))
    return np.asarray(np.where(inside, whole[np.clip(places, 0, len(whole) - 1)], 0.0) * cut.scale(len(x)))


def gain_at(epsilon: float, delta: float) -> float:
    """The mean squared error of the papers' formula over that of exact Gaussian noise at one guarantee."""
    circle = factor([RunningSum()], 64, mechanism="fourier")
    cloak = SeriesCloak(RunningSum(), 64, epsilon=epsilon, delta=delta, strategy=circle)
    return papers_mse(RunningSum(), 64, epsilon, delta) / cloak.expected_mse


@dataclass(frozen=True, eq=False)
class PrintedFourier:
    """Algorithm 1 as printed, with h^ = F x read as F h: real noise on complex coefficients.

    `kernel` is h, on the whole circle. Never publish anything with it.

    Notes
    -----
    z_i ~ Lap(sqrt(gamma / |h^_i|)), gamma = 2 ln(1/delta) ||h^||_1 / (epsilon^2 N), x~ = F x + z,
    y = F^H diag(sqrt(N) h^) x~, with the unitary Fourier transform F; no noise where h^_i = 0.
    """

    kernel: FloatArray
    epsilon: float
    delta: float

    @property
    def spectrum(self) -> FloatArray:
        """h^, complex, shape (N,), with zeros where only rounding is left."""
        found = np.fft.fft(self.kernel, norm="ortho")
        return np.asarray(np.where(np.abs(found) > _NEGLIGIBLE * np.abs(found).max(), found, 0.0))

    @property
    def expected_mse(self) -> float:
        total = float(np.abs(self.spectrum).sum())
        return 4 * math.log(1 / self.delta) / (self.epsilon**2 * len(self.kernel)) * total**2

    def outputs(self, x: IntArray, rng: np.random.Generator) -> FloatArray:
        """What it would publish, complex: shape (runs, N) in and out."""
        size, height = len(self.kernel), np.abs(self.spectrum)
        gamma = 2 * math.log(1 / self.delta) * height.sum() / (self.epsilon**2 * size)
        used = height > 0
        scale = np.sqrt(gamma / np.where(used, height, 1.0))
        noise = np.where(used, rng.laplace(size=x.shape) * scale, 0.0)
        coefficients = np.fft.fft(x, norm="ortho", axis=-1) + noise
        return np.asarray(np.fft.ifft(math.sqrt(size) * self.spectrum * coefficients, norm="ortho", axis=-1))

    @property
    def exact_places(self) -> IntArray:
        """The frequencies, one of each pair of signs, whose imaginary part is released without noise."""
        places = np.arange(1, (len(self.kernel) + 1) // 2)
        return places[np.abs(self.spectrum[places]) > 0]

    def exact(self, outputs: FloatArray) -> FloatArray:
        """The imaginary parts of coefficients of x that follow from the outputs without noise."""
        half = self.exact_places
        released = np.fft.fft(outputs, norm="ortho", axis=-1)[..., half]
        return np.asarray((released / (math.sqrt(len(self.kernel)) * self.spectrum[half])).imag)


def leak(n: int, runs: int, epsilon: float, delta: float, rng: np.random.Generator) -> Row:
    """How often an attacker who knows all events but one decides correctly whether that one happened.

    Tried on running sums of `n` counts, padded to 2n, and an event at any time but the first. `exact` counts the
    numbers that are released without noise. `printed` is for the algorithm as printed, from these numbers alone;
    `allowed` is what the claim allows anyone, `ours` what our noise at the same claim allows the best test. `mse` is
    the mean squared error of the same runs, `formula` the papers'.
    """
    kernel = np.repeat([1.0, 0.0], n)
    mechanism = PrintedFourier(kernel, epsilon, delta)
    x = np.zeros((runs, 2 * n), dtype=np.int64)
    x[:, :n] = rng.poisson(3.0, (runs, n))
    event = np.zeros_like(x)
    event[np.arange(runs), rng.integers(1, n, runs)] = 1
    happened = rng.random(runs) < 0.5
    truth = x + np.where(happened[:, None], event, 0)
    outputs = mechanism.outputs(truth, rng)
    places = mechanism.exact_places
    without, shift = (np.fft.fft(each, norm="ortho", axis=-1).imag[:, places] for each in (x, event))
    decided = ((mechanism.exact(outputs) - without) * shift).sum(axis=1) > (shift**2).sum(axis=1) / 2
    sums = np.fft.ifft(np.fft.fft(kernel) * np.fft.fft(truth, axis=-1), axis=-1).real
    return Row(
        n=n,
        exact=len(places),
        runs=runs,
        printed=float((decided == happened).mean()),
        allowed=(math.exp(epsilon) + delta) / (1 + math.exp(epsilon)),
        ours=float(ndtr(largest_mu(epsilon, delta) / 2)),
        mse=Mean.of((np.abs(outputs - sums) ** 2).mean(axis=1)),
        formula=mechanism.expected_mse,
    )
