"""The picture of a published series: what anyone may see of it, how far it may be off, and what that cost."""

import sys
import textwrap
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from scipy import signal

from cloakwork._checks import FloatArray
from cloakwork.cli.series_filters import per_bin, readable, shown_span
from cloakwork.cli.series_given import Given
from cloakwork.cli.series_output import Cost, costs
from cloakwork.series import Filter, Published

WIDEST = 112  # letters in a line
LINE = 0.19  # inches
LONGEST_WHAT = 24  # letters of a column's name beside an axis
MOST_POINTS = 2000  # across the picture: more than there are pixels
INK, WARNING = "#222222", "#b3261e"
SERIES = ("#1f5fa8", "#e07b39", "#2a7f4f", "#7b4fa0", "#8a6d1f")
LOOK: Any = {
    "svg.hashsalt": "cloakwork",
    "text.parse_math": False,  # names of columns and series are no formulas
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
NOT_PRIVATE = "NOT PRIVATE: the thin line is the true series{}. This picture is not to be shared."
DAY = "%#d %b" if sys.platform == "win32" else "%-d %b"  # 5 Oct
TICKS = ("%Y", "%b", DAY, "%H:%M", "%H:%M", "%H:%M:%S")  # from years to seconds, as matplotlib has them
FIRST_TICKS = ("", "%b\n%Y", DAY, DAY, "%H:%M", "%H:%M")  # where the next unit begins
OFFSETS = ("", "%Y", "%Y", f"{DAY} %Y", f"{DAY} %Y", f"{DAY} %Y")


def draw_series(part: Path, form: str, given: Given, published: Published, *, compare: bool) -> None:
    """Draw one panel for each filter, with a line and a band for each series; with `compare` the truth as well."""
    told, words = costs(published), _words(given, published)
    below = LINE * (len(words) + 1.5 * compare)
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(9.0, 1.0 + below + 2.9 * len(told)), layout="constrained")
        grid = figure.add_gridspec(len(told) + 1, 1, height_ratios=[*(2.9 for _ in told), below])
        first = figure.add_subplot(grid[0])
        panels = [first, *(figure.add_subplot(grid[row], sharex=first) for row in range(1, len(told)))]
        for number, (axes, cost) in enumerate(zip(panels, told, strict=True)):
            _panel(axes, cost, given, published, number, compare=compare)
            axes.tick_params(labelbottom=axes is panels[-1])
        every = "" if given.bins is None else f", in bins of {shown_span(given.bins.every)} (UTC)"
        figure.suptitle(f"{given.title[:80]}{every}", x=0.01, ha="left", fontsize=13, color=INK)
        warning = NOT_PRIVATE.format(" after limits" if given.limited else "") if compare else ""
        _foot(figure.add_subplot(grid[len(told)]), words, warning)
        figure.savefig(part, dpi=150, format=form.lstrip("."))


def _panel(axes: Any, cost: Cost, given: Given, published: Published, number: int, *, compare: bool) -> None:
    n = published.values.shape[-1]
    times = np.arange(1, n + 1) if given.bins is None else given.bins.times.astype("datetime64[ms]")
    within = published.band()[number]
    names = given.names or (cost.name,)
    lines = []
    for place, name in list(enumerate(names))[: len(SERIES)]:
        values = published.values[number, place]
        picked = _picked(values)
        axes.fill_between(
            times[picked],
            (values - within)[picked],
            (values + within)[picked],
            color=SERIES[place],
            alpha=0.18,
            linewidth=0,
        )
        drawn = axes.plot(times[picked], values[picked], color=SERIES[place], linewidth=1.4)
        lines.append((drawn[0], _label(name, names)))
        if compare:
            true = true_output(published, given.series.values[place], number)
            seen = _picked(true)
            drawn = axes.plot(times[seen], true[seen], color=INK, linewidth=0.7)
            lines += [] if place else [(drawn[0], _true(given))]
    one, every = published.cloak.filters[number], None if given.bins is None else shown_span(given.bins.every)
    axes.set_title(f"{readable(one, every)}: {cost}".split(": take a longer", maxsplit=1)[0])
    axes.set_ylabel(_unit(given, one, every))
    axes.grid(axis="y")
    axes.margins(x=0.01)
    axes.set_ylim(_limits(published.values[number, : len(SERIES)], within))
    _axis(axes, given)
    if number == 0:
        _legend(axes, lines)


def _legend(axes: Any, lines: list[tuple[Any, str]]) -> None:
    """Say which line is which; matplotlib itself would leave out names that begin with an underscore."""
    legend = axes.legend([line for line, _ in lines], ["line"] * len(lines), loc="best", fontsize=8, ncols=2)
    for text, (_, name) in zip(legend.get_texts(), lines, strict=True):
        text.set_text(name)


def _true(given: Given) -> str:
    return f"true{' after limits' if given.limited else ''}: not private"


def _unit(given: Given, one: Filter, every: str | None) -> str:
    """What the values of a filter are: events per 1h, or just events where they are of several bins together."""
    what = given.what if len(given.what) <= LONGEST_WHAT else f"{given.what[: LONGEST_WHAT - 3]}..."
    return f"{what} per {every or 'row'}" if per_bin(one) and given.level != "visit" else what


def _limits(values: FloatArray, within: FloatArray) -> tuple[float, float]:
    """What heights to show: all but the ends of a band that is far wider there than elsewhere."""
    edges = np.concatenate([values - within, values + within], axis=None)
    low, high = np.quantile(edges, [0.01, 0.99])
    room = 0.4 * (high - low) + 1e-9
    return max(low - room, float(edges.min()) - room / 8), min(high + room, float(edges.max()) + room / 8)


def _label(name: str, names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return "published"
    return (
        f"{name} (and {len(names) - len(SERIES)} more, not drawn)"
        if name == names[: len(SERIES)][-1] != names[-1]
        else name
    )


def _axis(axes: Any, given: Given) -> None:
    if given.bins is None:
        axes.set_xlabel("row")
        return
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(
        ConciseDateFormatter(  # type: ignore[no-untyped-call]
            locator, formats=list(TICKS), zero_formats=list(FIRST_TICKS), offset_formats=list(OFFSETS), show_offset=True
        )
    )


def _words(given: Given, published: Published) -> list[str]:
    """What one must know to read the picture, in lines."""
    cloak = published.cloak
    true = "the true value of the series after limits" if given.limited else "the true value"
    claim = f"The claim: epsilon {cloak.epsilon:g}, delta {cloak.delta:g}. Bands hold {true} in 95 % of cases."
    return textwrap.wrap(f"{given.hides} {claim}", WIDEST)


def _foot(foot: Any, words: list[str], warning: str) -> None:
    foot.set_axis_off()
    foot.text(0, 1, "\n".join(words), va="top", fontsize=9, color=INK, in_layout=False)
    if warning:
        foot.text(0, 0, warning, va="bottom", fontsize=9, color=WARNING, weight="bold", in_layout=False)


def _picked(values: FloatArray) -> Any:
    """Places to draw: all of a short series; of a long one the lowest and the highest in each of many stretches."""
    if len(values) <= MOST_POINTS:
        return np.arange(len(values))
    parts = np.array_split(np.arange(len(values)), MOST_POINTS // 2)
    ends = [(part[np.argmin(values[part])], part[np.argmax(values[part])]) for part in parts]
    return np.unique(np.array(ends))


def true_output(published: Published, x: FloatArray, number: int) -> FloatArray:
    """What a filter makes of the true series, shape (n,). Not private: for the eyes of whoever has the data."""
    task = published.cloak.task
    taps = task.taps[number]
    full = signal.convolve(x, taps.values)
    at = np.arange(task.n) - taps.first
    inside = (at >= 0) & (at < len(full))
    return np.asarray(np.where(inside, full[np.clip(at, 0, len(full) - 1)], 0.0) * task.scales[number])
