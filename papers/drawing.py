"""How pictures look: colours, axes, dots with error bars, and legends."""

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

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


@dataclass(frozen=True)
class Dots:
    """Values with their standard errors, one for each row of a dot plot."""

    name: str
    values: Sequence[float]
    errors: Sequence[float]
    color: str
    marker: str = "o"

    @classmethod
    def for_count(cls, count: int, values: Sequence[float], errors: Sequence[float]) -> "Dots":
        """Values for a number of sources, in the colour that this number has in every picture."""
        return cls(sources_text(count), values, errors, SERIES[(count - 1) % 5], MARKERS[(count - 1) % 5])


def draw_dots(axes: Any, rows: Sequence[str], series: Sequence[Dots]) -> None:
    """Draw a dot plot: a row for each name, from the top, with bars of two standard errors.

    Series are slightly offset, so that none hides another.
    """
    gap = 0.5 / max(len(series), 1)
    for number, dots in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * gap
        heights = [row + shift for row in range(len(rows))]
        bars = [2 * error for error in dots.errors]
        look = {"fmt": dots.marker, "color": dots.color, "elinewidth": 1.2, "label": dots.name}
        axes.errorbar(dots.values, heights, xerr=bars, **look)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x")


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


def sources_text(number: int) -> str:
    """A number of sources in words.

    >>> sources_text(1), sources_text(2)
    ('1 source', '2 sources')
    """
    return f"{number} source{'' if number == 1 else 's'}"
