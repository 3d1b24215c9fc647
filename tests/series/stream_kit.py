"""What tests of streams share."""

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.series import (
    Coefficients,
    Decay,
    Filter,
    MovingAverage,
    PowerDecay,
    RunningSum,
    Seasonal,
    Stream,
    WindowSum,
)
from cloakwork.series.release_noise import GaussianNoise

CASES: list[tuple[Filter, int | None, int | None]] = [
    (RunningSum(), 200, None),
    (RunningSum(), 200, 16),
    (WindowSum(24), 200, None),
    (WindowSum(24), None, None),
    (WindowSum(24), None, 30),
    (Decay(0.9), 200, None),
    (Decay(0.9), None, None),
    (Decay(0.9), None, 6),
    (PowerDecay(0.5), 200, None),
    (MovingAverage(7), 200, None),
    (MovingAverage(7), None, 20),
    (Seasonal(12, 3), None, None),
    (Coefficients([1.0, -0.5, 0.25]), None, None),
    (Coefficients([0.05, 0.25, 0.4, 0.25, 0.05]), None, None),
    (Coefficients([1.0, 3.0]), 200, None),
    (Coefficients([-1.0, 0.0, 2.0], first=3), None, None),
]
NAMES = [f"{one.name}-{horizon}-{band}" for one, horizon, band in CASES]


def stream(what: Filter, horizon: int | None, band: int | None = None, **options: float) -> Stream:
    claim: dict[str, float] = {"epsilon": 1.0, "delta": 1e-6} | options
    return Stream(what, horizon, band=band, epsilon=claim["epsilon"], delta=claim["delta"])


def dense(what: Filter, n: int) -> FloatArray:
    """The filter as a matrix, entry by entry."""
    taps = what.taps(n)
    matrix = np.zeros((n, n))
    for t in range(n):
        for k, value in enumerate(taps.values):
            if 0 <= t - taps.first - k < n:
                matrix[t, t - taps.first - k] = value
        if taps.averaging:
            matrix[t] *= taps.values.sum() / matrix[t].sum()
    return matrix


def ratio(one: Stream) -> float:
    assert isinstance(one.noise, GaussianNoise)
    return one.noise.table.ratio
