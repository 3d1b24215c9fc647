"""The picture of a published series: the values, their error bands, and what is hidden."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork._extras import optional_parts
from cloakwork.series.bins import span_text
from cloakwork.series.series_cloak import Published

with optional_parts():
    import matplotlib as mpl
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure

if TYPE_CHECKING:
    from cloakwork.series.counts import Counts

NOT_PRIVATE = "NOT PRIVATE: the thin line is the true series. Do not share this picture."
_WIDEST, _LINE = 112, 0.19  # letters in a line, and its height in inches
_LONGEST_UNIT = 24  # letters of a column's name beside an axis
_INK, _WARNING = "#222222", "#b3261e"
_COLOURS = ("#1f5fa8", "#e07b39", "#2a7f4f", "#7b4fa0", "#8a6d1f")
_STYLE: Any = {
    "svg.hashsalt": "cloakwork",
    "text.parse_math": False,  # names of columns and series are not formulas
    "axes.edgecolor": "#9a9a9a",
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
}


def draw(counts: "Counts", published: Published, *, compare: bool) -> "Figure":
    """Draw a panel for each filter, with a line and a 95 % band for each series.

    `compare` adds the true outputs of the counts, which are not private.
    """
    cloak = published.cloak
    values = published.values.reshape(len(cloak.filters), -1, published.values.shape[-1])
    within = np.atleast_2d(published.band())
    true = cloak.without_noise(counts.values) if compare else None
    guarantee = f"Guarantee: epsilon {cloak.epsilon:g}, delta {cloak.delta:g}."
    notes = textwrap.wrap(
        f"{counts.hides} {guarantee} Bands hold the value of the series, after any limits, in 95 % of cases.", _WIDEST
    )
    with mpl.rc_context(_STYLE):
        below = _LINE * (len(notes) + 2)
        heights = [2.9] * len(values) + [below]
        figure = Figure(figsize=(9.0, 1.0 + sum(heights)), layout="constrained")
        *panels, foot = figure.subplots(len(heights), height_ratios=heights, squeeze=False)[:, 0]
        for number, (axes, made) in enumerate(zip(panels, cloak.filters, strict=True)):
            _draw_panel(axes, values[number], within[number], None if true is None else true[number], counts)
            root = float(np.sqrt((published.standard_deviation.reshape(len(values), -1)[number] ** 2).mean()))
            axes.set_title(f"{made.title or made.name}: off by {root:.3g} (root mean square)")
        title = f"{counts.title[:80]}, in bins of {span_text(counts.bins.every)} (UTC)"
        figure.suptitle(title, x=0.01, ha="left", color=_INK)
        foot.set_axis_off()
        foot.text(0, 1, "\n".join(notes), va="top", fontsize=9, color=_INK, in_layout=False)
        if true is not None:
            foot.text(0, 0, NOT_PRIVATE, va="bottom", fontsize=9, color=_WARNING, weight="bold", in_layout=False)
    return figure


def write_picture(counts: "Counts", published: Published, path: Path, suffix: str, *, compare: bool) -> None:
    """Write the picture as .png, .svg or .pdf; the same values always make the same file."""
    figure = draw(counts, published, compare=compare)
    with mpl.rc_context(_STYLE):
        figure.savefig(path, dpi=150, format=suffix.lstrip("."))


def _draw_panel(axes: Any, values: FloatArray, within: FloatArray, true: FloatArray | None, counts: "Counts") -> None:
    times: Any = counts.bins.times.astype("datetime64[ms]")
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.set_ylabel(textwrap.shorten(counts.unit, _LONGEST_UNIT, placeholder="..."))
    names = counts.names or ("",)
    lines: list[tuple[Any, str]] = []
    for place, colour in zip(range(len(values)), _COLOURS, strict=False):
        axes.fill_between(times, values[place] - within, values[place] + within, color=colour, alpha=0.18, linewidth=0)
        lines += [(line, names[place]) for line in axes.plot(times, values[place], color=colour)]
        if true is not None:
            axes.plot(times, true[place], color=_INK, linewidth=0.7)
    axes.grid(axis="y")
    axes.margins(x=0.01)
    if len(values) > 1:
        more = f" (and {len(values) - len(lines)} more, not drawn)" if len(values) > len(lines) else ""
        legend = axes.legend([line for line, _ in lines], ["line"] * len(lines), loc="best", fontsize=8, ncols=2)
        for text, (line, name) in zip(legend.get_texts(), lines, strict=True):
            # Matplotlib itself would leave out names that begin with an underscore
            text.set_text(name + more * (line is lines[-1][0]))
