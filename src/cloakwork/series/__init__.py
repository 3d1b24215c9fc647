"""Private time series: filters of a series of events, published with the least noise that hides each event."""

from cloakwork.series.bounded import Bins, BoundedSeries, Losses
from cloakwork.series.causal import SquareRoot
from cloakwork.series.cloak import SeriesCloak
from cloakwork.series.events import tally
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
from cloakwork.series.laplace import PaperLaplace
from cloakwork.series.levels import mean_levels
from cloakwork.series.marginals import Marginals, MarginalsCloak, marginals
from cloakwork.series.mechanisms import Fourier, Least, Mechanism
from cloakwork.series.moments import Moment, Outputs
from cloakwork.series.publish import convolve, publish
from cloakwork.series.published import Published
from cloakwork.series.stream import Stream
from cloakwork.series.walsh import Convolved, WalshCloak, walsh_convolve

__all__ = [
    "Bins",
    "BoundedSeries",
    "Coefficients",
    "Convolved",
    "Decay",
    "Filter",
    "Fourier",
    "Least",
    "Losses",
    "Marginals",
    "MarginalsCloak",
    "Mechanism",
    "Moment",
    "MovingAverage",
    "Outputs",
    "PaperLaplace",
    "PowerDecay",
    "Published",
    "RunningSum",
    "Seasonal",
    "SeriesCloak",
    "SquareRoot",
    "Stream",
    "Taps",
    "Trend",
    "WalshCloak",
    "WindowSum",
    "convolve",
    "marginals",
    "mean_levels",
    "publish",
    "tally",
    "walsh_convolve",
]
