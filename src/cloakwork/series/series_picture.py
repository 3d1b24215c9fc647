"""The picture of a published series: the values, their error bands, and what privacy cost."""

import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from scipy import signal

from cloakwork._checks import FloatArray
from cloakwork._extras import optional_parts
from cloakwork.series.bins import span_text
from cloakwork.series.count_files import CountedSeries
from cloakwork.series.filters import Decay, Filter, MovingAverage, PowerDecay, RunningSum, Seasonal, Trend, WindowSum
from cloakwork.series.published_file import FilterCost, filter_costs
from cloakwork.series.series_cloak import Published

with optional_parts():
    import matplotlib as mpl
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure

NOT_PRIVATE = "NOT PRIVATE: the thin line is the true series{}. Do not share this picture."
_WIDEST = 112  # letters in a line
_LINE = 0.19  # inches
_LONGEST_UNIT = 24  # letters of a column's name beside an axis
_MOST_POINTS = 2000  # across the picture: more than its pixels
_INK, _WARNING = "#222222", "#b3261e"
_COLOURS = ("#1f5fa8", "#e07b39", "#2a7f4f", "#7b4fa0", "#8a6d1f")
_STYLE: Any = {
    "svg.hashsalt": "cloakwork",
    "text.parse_math": False,  # names of columns and series are not formulas
    "font.size": 10,
    "axes.edgecolor": "#9a9a9a",
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
}
_DAY = "%#d %b" if sys.platform == "win32" else "%-d %b"  # 5 Oct
_TICKS = ("%Y", "%b", _DAY, "%H:%M", "%H:%M", "%H:%M:%S")  # from years to seconds, as Matplotlib orders them
_FIRST_TICKS = ("", "%b\n%Y", _DAY, _DAY, "%H:%M", "%H:%M")  # where the next larger unit begins
_OFFSETS = ("", "%Y", "%Y", f"{_DAY} %Y", f"{_DAY} %Y", f"{_DAY} %Y")


def draw_series(path: Path, suffix: str, counted: CountedSeries, published: Published, *, compare: bool) -> None:
    """Draw one panel for each filter, with a line and a band for each series; `compare` adds the true series."""
    costs, cloak = filter_costs(published), published.cloak
    true = "the true value of the series after limits" if counted.limited else "the true value"
    claim = f"The claim: epsilon {cloak.epsilon:g}, delta {cloak.delta:g}. Bands hold {true} in 95 % of cases."
    notes = textwrap.wrap(f"{counted.hides} {claim}", _WIDEST)
    below = _LINE * (len(notes) + 1.5 * compare)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.0, 1.0 + below + 2.9 * len(costs)), layout="constrained")
        grid = figure.add_gridspec(len(costs) + 1, 1, height_ratios=[*(2.9 for _ in costs), below])
        first = figure.add_subplot(grid[0])
        panels = [first, *(figure.add_subplot(grid[row], sharex=first) for row in range(1, len(costs)))]
        for number, (axes, cost) in enumerate(zip(panels, costs, strict=True)):
            _draw_panel(axes, cost, counted, published, number, compare=compare)
            axes.tick_params(labelbottom=axes is panels[-1])
        every = "" if counted.bins is None else f", in bins of {span_text(counted.bins.every)} (UTC)"
        figure.suptitle(f"{counted.title[:80]}{every}", x=0.01, ha="left", fontsize=13, color=_INK)
        foot = figure.add_subplot(grid[len(costs)])
        foot.set_axis_off()
        foot.text(0, 1, "\n".join(notes), va="top", fontsize=9, color=_INK, in_layout=False)
        if compare:
            warning = NOT_PRIVATE.format(" after limits" if counted.limited else "")
            foot.text(0, 0, warning, va="bottom", fontsize=9, color=_WARNING, weight="bold", in_layout=False)
        figure.savefig(path, dpi=150, format=suffix.lstrip("."))


def _draw_panel(
    axes: Any, cost: FilterCost, counted: CountedSeries, published: Published, number: int, *, compare: bool
) -> None:
    n = published.values.shape[-1]
    times = np.arange(1, n + 1) if counted.bins is None else counted.bins.times.astype("datetime64[ms]")
    within = published.band()[number]
    names = counted.names or (cost.name,)
    lines = []
    for place, name in list(enumerate(names))[: len(_COLOURS)]:
        values, colour = published.values[number, place], _COLOURS[place]
        drawn = _thinned(values)
        low, high = (values - within)[drawn], (values + within)[drawn]
        axes.fill_between(times[drawn], low, high, color=colour, alpha=0.18, linewidth=0)
        [line] = axes.plot(times[drawn], values[drawn], color=colour, linewidth=1.4)
        last_drawn = place == len(_COLOURS) - 1 and len(names) > len(_COLOURS)
        more = f" (and {len(names) - len(_COLOURS)} more, not drawn)" if last_drawn else ""
        lines.append((line, "published" if len(names) == 1 else f"{name}{more}"))
        if compare:
            true = true_output(published, counted.series.values[place], number)
            drawn = _thinned(true)
            [line] = axes.plot(times[drawn], true[drawn], color=_INK, linewidth=0.7)
            lines += [] if place else [(line, f"true{' after limits' if counted.limited else ''}: not private")]
    made, every = published.cloak.filters[number], None if counted.bins is None else span_text(counted.bins.every)
    axes.set_title(f"{filter_title(made, every)}: {cost}")
    axes.set_ylabel(_unit(counted, made, every))
    axes.grid(axis="y")
    axes.margins(x=0.01)
    axes.set_ylim(_limits(published.values[number, : len(_COLOURS)], within))
    _set_time_axis(axes, counted)
    if number == 0:
        # Matplotlib itself would leave out names that begin with an underscore
        legend = axes.legend([line for line, _ in lines], ["line"] * len(lines), loc="best", fontsize=8, ncols=2)
        for text, (_, label) in zip(legend.get_texts(), lines, strict=True):
            text.set_text(label)


def filter_title(filter: Filter, every: str | None) -> str:  # noqa: A002 - it is one
    """Describe a filter of bins of length `every`, or of rows, for a title.

    >>> filter_title(Trend(24), "1h"), filter_title(MovingAverage(7), None)
    ('mean of 24 x 1h, centred', 'mean of the last 7 rows')
    """
    unit = every or "row"

    def bins(number: int) -> str:
        return f"{number} rows" if every is None else f"{number} x {every}"

    match filter:
        case RunningSum():
            title = "sum of all so far"
        case WindowSum(width=1):
            title = f"each {unit}"
        case WindowSum(width=width):
            title = f"sum of the last {bins(width)}"
        case MovingAverage(width=width):
            title = f"mean of the last {bins(width)}"
        case Decay(rate=rate):
            title = f"fading sum, {rate:g} times as much each {unit} back"
        case PowerDecay(power=power):
            title = f"slowly fading sum, power {power:g}"
        case Trend(width=width):
            title = f"mean of {bins(width)}, centred"
        case Seasonal(period=period, cycles=cycles):
            title = f"mean of the same {unit} in {cycles} cycles of {bins(period)}"
        case _:
            title = filter.name
    return title


def _unit(counted: CountedSeries, made: Filter, every: str | None) -> str:
    """The unit of a filter's values: events per 1h, or just events if a value covers several bins."""
    unit = counted.unit if len(counted.unit) <= _LONGEST_UNIT else f"{counted.unit[: _LONGEST_UNIT - 3]}..."
    per_bin = isinstance(made, MovingAverage | Trend | Seasonal) or made == WindowSum(1)
    return f"{unit} per {every or 'row'}" if per_bin else unit


def _limits(values: FloatArray, within: FloatArray) -> tuple[float, float]:
    """The range of the vertical axis; it cuts off the ends of a band that is far wider there than elsewhere."""
    edges = np.concatenate([values - within, values + within], axis=None)
    low, high = np.quantile(edges, [0.01, 0.99])
    room = 0.4 * (high - low) + 1e-9
    return max(low - room, float(edges.min()) - room / 8), min(high + room, float(edges.max()) + room / 8)


def _set_time_axis(axes: Any, counted: CountedSeries) -> None:
    if counted.bins is None:
        axes.set_xlabel("row")
        return
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(
        ConciseDateFormatter(  # type: ignore[no-untyped-call]
            locator,
            formats=list(_TICKS),
            zero_formats=list(_FIRST_TICKS),
            offset_formats=list(_OFFSETS),
            show_offset=True,
        )
    )


def _thinned(values: FloatArray) -> Any:
    """Places to draw: all of a short series; the lowest and the highest in each of many stretches of a long one."""
    if len(values) <= _MOST_POINTS:
        return np.arange(len(values))
    parts = np.array_split(np.arange(len(values)), _MOST_POINTS // 2)
    ends = [(part[np.argmin(values[part])], part[np.argmax(values[part])]) for part in parts]
    return np.unique(np.array(ends))


def true_output(published: Published, x: FloatArray, number: int) -> FloatArray:
    """The true output of filter `number` for one series, shape (n,). Not private."""
    task = published.cloak.task
    taps = task.taps[number]
    full = signal.convolve(x, taps.values)
    at = np.arange(task.n) - taps.first
    inside = (at >= 0) & (at < len(full))
    return np.asarray(np.where(inside, full[np.clip(at, 0, len(full) - 1)], 0.0) * task.scales[number])
