"""A mistake about private convolution; the others have an experiment of their own."""

import math
from collections.abc import Iterator

import numpy as np

from papers.errata.erratum import Erratum, Part, Promise

PART = Part.CONVOLUTION
LENGTH = 64


def errata(*, quick: bool, key: tuple[int, ...]) -> Iterator[Erratum]:
    """Worked out, not measured."""
    del quick, key
    yield _spectrum()


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
        "Fawaz, Muthukrishnan and Nikolov, Algorithm 1",
        "h^ = F x",
        f"first value of h * x without noise, h a mean over 4 of {LENGTH}, x one event",
        Promise.EQUAL,
        float(answers[0][0]),
        float(answers[1][0]),
        "read h^ = F h: the print convolves x with itself",
    )
