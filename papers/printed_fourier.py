"""The Fourier mechanism of Fawaz, Muthukrishnan and Nikolov as it is printed, and who sees through it."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import CalibrationError
from cloakwork.privacy import largest_mu
from cloakwork.series import Filter, PaperLaplace, SeriesCloak
from papers.trials import Mean

_NEGLIGIBLE = 1e-12  # of the largest coefficient: what a Fourier transform leaves of a zero


@dataclass(frozen=True, eq=False)
class PrintedFourier:
    """Algorithm 1 as printed, but for h^ = F x, which is read as F h: real noise on complex coefficients.

    `kernel` is h, on the whole circle. It is here to be looked at and to publish nothing with.

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
        """Theorem 5."""
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

    def exact(self, outputs: FloatArray) -> FloatArray:
        """Numbers that follow from the outputs with no noise on them: imaginary parts of coefficients of x."""
        half = self.exact_places
        released = np.fft.fft(outputs, norm="ortho", axis=-1)[..., half]
        return np.asarray((released / (math.sqrt(len(self.kernel)) * self.spectrum[half])).imag)

    @property
    def exact_places(self) -> IntArray:
        """The frequencies, each with one of its two signs, whose imaginary part goes out as it is."""
        size = len(self.kernel)
        places = np.arange(1, (size + 1) // 2)
        return places[np.abs(self.spectrum[places]) > 0]


@dataclass(frozen=True)
class Leak:
    """How often someone who knows all but whether one event took place says rightly whether it did.

    `exact` is how many numbers go out without noise. `printed` is for the algorithm as printed, by looking at these
    numbers alone; `allowed` is what the claim allows anyone, `ours` what our noise at the same claim leaves to the best
    of all tests. `mse` is the mean squared error of the same runs, next to `formula`, the papers'.
    """

    n: int
    exact: int
    runs: int
    printed: float
    allowed: float
    ours: float
    mse: Mean
    formula: float


def leak(n: int, runs: int, epsilon: float, delta: float, rng: np.random.Generator) -> Leak:
    """Try it on running sums of `n` counts, padded to 2n, and an event at any time but the first."""
    kernel = np.repeat([1.0, 0.0], n)
    mechanism = PrintedFourier(kernel, epsilon, delta)
    x = np.zeros((runs, 2 * n), dtype=np.int64)
    x[:, :n] = rng.poisson(3.0, (runs, n))
    event = np.zeros_like(x)
    event[np.arange(runs), rng.integers(1, n, runs)] = 1
    took_place = rng.random(runs) < 0.5
    truth = x + np.where(took_place[:, None], event, 0)
    outputs = mechanism.outputs(truth, rng)
    seen = mechanism.exact(outputs)
    places = mechanism.exact_places
    without, shift = (np.fft.fft(each, norm="ortho", axis=-1).imag[:, places] for each in (x, event))
    says = ((seen - without) * shift).sum(axis=1) > (shift**2).sum(axis=1) / 2
    wanted = np.fft.ifft(np.fft.fft(kernel) * np.fft.fft(truth, axis=-1), axis=-1).real
    return Leak(
        n=n,
        exact=len(places),
        runs=runs,
        printed=float((says == took_place).mean()),
        allowed=(math.exp(epsilon) + delta) / (1 + math.exp(epsilon)),
        ours=float(ndtr(largest_mu(epsilon, delta) / 2)),
        mse=Mean.of((np.abs(outputs - wanted) ** 2).mean(axis=1)),
        formula=mechanism.expected_mse,
    )


def mended_delta(filter_: Filter, n: int, epsilon: float, delta: float, *, circular: bool) -> float:
    """The delta that the mended mechanism really has where it claims `delta`, rounded up by about 1 %."""
    try:
        cloak = SeriesCloak(filter_, n, epsilon=epsilon, delta=delta, circular=circular, mechanism=PaperLaplace())
    except CalibrationError as refused:
        found = refused.values.get("found")
        if not isinstance(found, float):
            raise
        return found
    return cloak.noise.delta(epsilon)
