"""How pictures look: colours, axes, dots with error bars, and legends."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from papers.rows import Mean

INK, FAINT = "#222222", "#9a9a9a"
SERIES = ("#1f5fa8", "#e07b39", "#2a7f4f", "#7b4fa0", "#8a6d1f")
OURS, PAPERS = SERIES[0], SERIES[1]
MARKERS = ("o", "s", "D", "^", "v")
_LOOK: Any = {
    "svg.hashsalt": "cloakwork",
    "font.size": 10,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "xtick.color": INK,
    "ytick.color": INK,
    "ytick.major.size": 0,
    "legend.frameon": False,
}
_LEGEND_ROW = 5  # names in one row of a legend


def styled() -> AbstractContextManager[None]:
    """Apply the look of every picture; the same input gives the same file."""
    return mpl.rc_context(_LOOK)


def _split(values: Sequence[Mean | float | None], scale: float) -> tuple[list[float], list[float]]:
    """Values, NaN where there is none, and bars of two standard errors."""
    means = [one if isinstance(one, Mean) else Mean(math.nan if one is None else one, 0.0) for one in values]
    return [scale * one.value for one in means], [2 * scale * one.error for one in means]


def curve(
    axes: Any, x: Sequence[float], y: Sequence[Mean | float | None], number: int = 0, *, scale: float = 1.0, **look: Any
) -> None:
    """Draw one series, with bars of two standard errors if it has means; `number` chooses its colour and marker."""
    values, bars = _split(y, scale)
    look = {"color": SERIES[number % 5], "marker": MARKERS[number % 5], "markersize": 5} | look
    if any(bars):
        axes.errorbar(x, values, yerr=bars, **({"elinewidth": 1, "capsize": 2} | look))
    else:
        axes.plot(x, values, **look)


def draw_bars(
    axes: Any,
    names: Sequence[str],
    series: Mapping[str, Sequence[Mean | float]],
    *,
    scale: float = 1.0,
    colors: Sequence[str] = SERIES,
) -> None:
    """Draw a group of bars for each name, one of each series."""
    width = 0.8 / len(series)
    for number, (label, heights) in enumerate(series.items()):
        values, bars = _split(heights, scale)
        x = [place + (number - (len(series) - 1) / 2) * width for place in range(len(names))]
        look = {"color": colors[number], "capsize": 2, "label": label}
        axes.bar(x, values, 0.9 * width, yerr=bars if any(bars) else None, **look)
    axes.set_xticks(range(len(names)), names)


def draw_dots(
    axes: Any,
    rows: Sequence[str],
    series: Mapping[str, Sequence[Mean | float | None]],
    *,
    scale: float = 1.0,
    markers: Sequence[str] = MARKERS,
) -> None:
    """Draw a row of dots for each name, from the top, with bars of two standard errors.

    Series are slightly offset, so that none hides another.
    """
    gap = 0.5 / max(len(series), 1)
    for number, (label, values) in enumerate(series.items()):
        x, bars = _split(values, scale)
        shift = (number - (len(series) - 1) / 2) * gap
        look = {"fmt": markers[number], "color": SERIES[number], "elinewidth": 1.2, "label": label}
        axes.errorbar(x, [row + shift for row in range(len(rows))], xerr=bars, **look)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x")


def finish(
    axes: Any,
    title: str = "",
    x: str = "",
    y: str = "",
    *,
    ticks: Sequence[float] = (),
    legend: float = 0,
    where: str = "best",
    **limits: Any,
) -> None:
    """Set title, labels and limits, draw the grid, and a legend of a font size; `ticks` are of a logarithmic x axis."""
    axes.set(title=title, xlabel=x, ylabel=y, **limits)
    if ticks:
        log_x(axes, ticks)
    axes.grid(visible=True)
    if legend:
        axes.legend(fontsize=legend, loc=where)


def log_x(axes: Any, ticks: Sequence[float]) -> None:
    """Make the x axis logarithmic, with the given ticks."""
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def log_axes(axes: Any) -> None:
    """Make both axes logarithmic, with ticks at round numbers."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        ticks = round_numbers(low, high)
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(visible=True)


def round_numbers(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5, or over a long range only 1, times the powers of ten within a range.

    >>> round_numbers(0.04, 0.6), round_numbers(0.004, 30)
    ([0.05, 0.1, 0.2, 0.5], [0.01, 0.1, 1.0, 10.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    parts = (1, 2, 5) if high / low < 50 else (1, 3) if high / low < 500 else (1,)
    ticks = [float(f"{part}e{power}") for power in powers for part in parts]
    return [tick for tick in ticks if low <= tick <= high]


def greek(text: str) -> str:
    r"""Replace names of Greek letters by the letters.

    >>> greek("n = 100, sigma = 0.1")
    'n = 100, $\\sigma$ = 0.1'
    """
    for name in ("sigma", "epsilon", "delta"):
        text = text.replace(name, rf"$\{name}$")
    return text


def legend_below(figure: Figure, panels: Iterable[Any], *, first: Sequence[str] = (), **options: Any) -> None:
    """Draw one legend for all panels under them, each name once; names in `first` come first."""
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    names = sorted(handles, key=lambda name: first.index(name) if name in first else len(first))
    columns = len(names) if len(names) <= _LEGEND_ROW else math.ceil(len(names) / 2)
    options.setdefault("ncols", columns)
    figure.legend([handles[name] for name in names], names, loc="outside lower center", **options)
