"""How pictures look, in one place."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

INK, FAINT = "#222222", "#9a9a9a"
SERIES = ("#1f5fa8", "#e07b39", "#2a7f4f", "#7b4fa0", "#8a6d1f")
MARKERS = ("o", "s", "D", "^", "v")
LOOK: Any = {
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


def styled() -> AbstractContextManager[None]:
    """The look of every picture; the same input gives the same file."""
    return mpl.rc_context(LOOK)


@dataclass(frozen=True)
class Dots:
    """Values with their standard errors, one a row."""

    name: str
    values: Sequence[float]
    errors: Sequence[float]
    color: str
    marker: str = "o"

    @classmethod
    def of_count(cls, count: int, values: Sequence[float], errors: Sequence[float]) -> "Dots":
        """Values for a number of sources, in the colour that this number has in every picture."""
        return cls(counted(count), values, errors, SERIES[(count - 1) % 5], MARKERS[(count - 1) % 5])


def draw_dots(axes: Any, rows: Sequence[str], series: Sequence[Dots]) -> None:
    """One row a name, from the top; each value a dot with two standard errors either way.

    Series are a little below each other, so that none hides another.
    """
    gap = 0.5 / max(len(series), 1)
    for number, one in enumerate(series):
        shift = (number - (len(series) - 1) / 2) * gap
        heights = [row + shift for row in range(len(rows))]
        bars = [2 * error for error in one.errors]
        axes.errorbar(one.values, heights, xerr=bars, fmt=one.marker, color=one.color, elinewidth=1.2, label=one.name)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x")


def log_scale(axes: Any, ticks: Sequence[float]) -> None:
    """A logarithmic axis with the given numbers written out."""
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def legend_below(figure: Figure, axes: Any) -> None:
    """The legend of one panel in a row under all of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def counted(number: int) -> str:
    """A number of sources in words.

    >>> counted(1), counted(2)
    ('1 source', '2 sources')
    """
    return f"{number} source{'' if number == 1 else 's'}"
