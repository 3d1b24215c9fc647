"""Private time series: filters of a series of events, published with the least noise that hides each event."""

from cloakwork.series.cloak import SeriesCloak
from cloakwork.series.filters import (
    Coefficients,
    Decay,
    Filter,
    MovingAverage,
    PowerDecay,
    RunningSum,
    Seasonal,
    Taps,
    Trend,
    WindowSum,
)
from cloakwork.series.mechanisms import Fourier, Least, Mechanism, SquareRoot
from cloakwork.series.publish import convolve, publish
from cloakwork.series.published import Published

__all__ = [
    "Coefficients",
    "Decay",
    "Filter",
    "Fourier",
    "Least",
    "Mechanism",
    "MovingAverage",
    "PowerDecay",
    "Published",
    "RunningSum",
    "Seasonal",
    "SeriesCloak",
    "SquareRoot",
    "Taps",
    "Trend",
    "WindowSum",
    "convolve",
    "publish",
]
