"""Private time series: filters of a series of events, published with the least noise that hides each event."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cloakwork.series.bins import HOUR, Bins, choose_bins, parse_span, span_text, utc_text
from cloakwork.series.bounded import BoundedSeries, Losses, mean_levels, tally
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
from cloakwork.series.marginals import Marginals, MarginalsCloak, marginals
from cloakwork.series.mechanisms import Fourier, Least, Mechanism, SquareRoot
from cloakwork.series.publish import convolve, publish
from cloakwork.series.series_cloak import Published, SeriesCloak
from cloakwork.series.stream import Moment, Outputs, Stream
from cloakwork.series.walsh import Convolved, WalshCloak, walsh_convolve

if TYPE_CHECKING:
    from cloakwork.series.counting import CountedSeries, FileRequest, count_file
    from cloakwork.series.filter_texts import describe_coefficients, parse_filters
    from cloakwork.series.picture import draw_series, true_output
    from cloakwork.series.published_file import FilterCost, filter_costs, write_published
    from cloakwork.series.visits import RecoveredSources, SourceCount, count_visits

_LAZY = {  # for the command line; these load Arrow, Matplotlib or a site
    "counting": "CountedSeries FileRequest count_file",
    "filter_texts": "describe_coefficients parse_filters",
    "picture": "draw_series true_output",
    "published_file": "FilterCost filter_costs write_published",
    "visits": "RecoveredSources SourceCount count_visits",
}
_LAZY_HOMES = {name: home for home, names in _LAZY.items() for name in names.split()}

__all__ = [
    "HOUR",
    "Bins",
    "BoundedSeries",
    "Coefficients",
    "Convolved",
    "CountedSeries",
    "Decay",
    "FileRequest",
    "Filter",
    "FilterCost",
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
    "RecoveredSources",
    "RunningSum",
    "Seasonal",
    "SeriesCloak",
    "SourceCount",
    "SquareRoot",
    "Stream",
    "Taps",
    "Trend",
    "WalshCloak",
    "WindowSum",
    "choose_bins",
    "convolve",
    "count_file",
    "count_visits",
    "describe_coefficients",
    "draw_series",
    "filter_costs",
    "marginals",
    "mean_levels",
    "parse_filters",
    "parse_span",
    "publish",
    "span_text",
    "tally",
    "true_output",
    "utc_text",
    "walsh_convolve",
    "write_published",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY_HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"cloakwork.series.{_LAZY_HOMES[name]}"), name)
