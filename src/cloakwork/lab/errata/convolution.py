"""Mistakes about private convolution."""

import math
from collections.abc import Iterator

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.lab.errata.erratum import Erratum, Part, Promise
from cloakwork.lab.experiment import stream
from cloakwork.series.accounting import largest_delta

PART = Part.CONVOLUTION
WHERE = "Fawaz, Muthukrishnan and Nikolov"
EPSILON, DELTA = 10.0, 0.01
USUAL = (1.0, 1e-6)
LENGTH = 64
LENGTHS = (64, 128, 256)


def errata(*, quick: bool, key: tuple[int, ...]) -> Iterator[Erratum]:
    """The algorithm as printed, its budget, and its running sums."""
    del quick
    yield _spectrum()
    yield _imaginary(key)
    for length in LENGTHS:
        yield _budget(length)
    yield _running()


def _scale(size: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """Scales of the Laplace noise on the Fourier coefficients, for the magnitudes of those of h."""
    gamma = 2 * math.log(1 / delta) * float(size.sum()) / (epsilon**2 * len(size))
    return np.asarray(np.sqrt(gamma / size))


def _spectrum() -> Erratum:
    """Algorithm 1 prints h^ = F x: with that, the noise and the answer depend on the secret alone."""
    h = np.zeros(LENGTH)
    h[:4] = 0.25
    one = np.zeros(LENGTH)
    one[0] = 1.0
    filtered, secret = (np.fft.fft(values, norm="ortho") for values in (h, one))
    answers = [np.fft.ifft(math.sqrt(LENGTH) * spectrum * secret, norm="ortho").real for spectrum in (secret, filtered)]
    return Erratum(
        PART,
        f"{WHERE}, Algorithm 1",
        "h^ = F x",
        f"first value of h * x without noise, h a mean over 4 of {LENGTH}, x one event",
        Promise.EQUAL,
        float(answers[0][0]),
        float(answers[1][0]),
        "read h^ = F h: the print convolves x with itself",
    )


def _imaginary(key: tuple[int, ...]) -> Erratum:
    """Real noise on complex coefficients: who takes the imaginary parts tells one event from none for sure."""
    rng, (epsilon, delta) = stream(*key, 0), USUAL
    h = np.zeros(LENGTH)
    h[:4] = 0.25
    h[0] += 0.25  # no coefficient of h is 0
    filtered = np.fft.fft(h, norm="ortho")
    scale = _scale(np.abs(filtered), epsilon, delta)
    events = np.zeros((2, LENGTH))
    events[1, 2] = 1.0
    seen, trials = 0, 100
    for _ in range(trials):
        which = int(rng.integers(2))
        noisy = np.fft.fft(events[which], norm="ortho") + rng.laplace(0.0, scale)
        output = np.fft.ifft(math.sqrt(LENGTH) * filtered * noisy, norm="ortho")
        leaked = np.fft.fft(output, norm="ortho") / (math.sqrt(LENGTH) * filtered)
        misfits = [np.abs((leaked - np.fft.fft(one, norm="ortho")).imag).max() for one in events]
        seen += int(np.argmin(misfits)) == which
    return Erratum(
        PART,
        f"{WHERE}, Algorithm 1",
        f"({epsilon:g}, {delta:g})-private with real noise on complex coefficients",
        f"how often one event is told from none, in {trials} tries",
        Promise.AT_MOST,
        1 - (1 - delta) / (1 + math.exp(epsilon)),
        seen / trials,
        "imaginary parts go out as they are: no privacy at all",
    )


def _real_basis(length: int) -> FloatArray:
    """Orthonormal constant, cosines and sines, one a row; the length is even."""
    t = np.arange(length)
    angles = 2 * math.pi * np.arange(1, length // 2)[:, None] * t / length
    ends = np.stack([np.ones(length), np.cos(math.pi * t)]) / math.sqrt(length)
    return np.vstack([ends, np.cos(angles) * math.sqrt(2 / length), np.sin(angles) * math.sqrt(2 / length)])


def _budget(length: int) -> Erratum:
    """Its noise in the real Fourier basis, for h * x = x: the exact delta of the worst event."""
    basis = _real_basis(length)
    scale = _scale(np.full(length, 1 / math.sqrt(length)), EPSILON, DELTA)
    return Erratum(
        PART,
        f"{WHERE}, Theorem 5",
        f"({EPSILON:g}, {DELTA:g})-private",
        f"delta with the noise in the real basis, {length} values",
        Promise.AT_MOST,
        DELTA,
        largest_delta(basis / scale[:, None], EPSILON),
        "the proof drops a term of second order",
    )


def _running() -> Erratum:
    """||h^||_1^2 / (2 N) of running sums, padded to 2 N."""
    errors = {}
    for length in (64, 4096):
        h = np.concatenate([np.ones(length), np.zeros(length)])
        errors[length] = float(np.abs(np.fft.fft(h, norm="ortho")).sum() ** 2 / (2 * length))
    short, long = errors.values()
    return Erratum(
        PART,
        f"{WHERE}, section 5.1",
        "running sums have a mean squared error of O(1)",
        f"error at N = 4096 over that at N = 64 ({long:.1f} over {short:.1f})",
        Promise.EQUAL,
        1.0,
        long / short,
        "it grows like log^2 N",
    )
