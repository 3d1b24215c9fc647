"""The picture of a published series: the values, their error bands, and what is hidden. No true value gets in here."""

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork._extras import optional_parts
from cloakwork.series.bins import span_text
from cloakwork.series.counts import Counts
from cloakwork.series.series_cloak import Published

with optional_parts():
    import matplotlib as mpl
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.figure import Figure

_WIDEST, _LINE = 112, 0.19  # letters in a line, and its height in inches
_INK = "#222222"
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


def write_picture(counts: Counts, published: Published, path: Path, suffix: str) -> None:
    """Draw a panel for each filter, with a line and a 95 % band for each series, as .png, .svg or .pdf.

    The same values always make the same file.
    """
    cloak = published.cloak
    values = published.values.reshape(len(cloak.filters), -1, published.values.shape[-1])
    notes = textwrap.wrap(
        f"{counts.hides} Guarantee: epsilon {cloak.epsilon:g}, delta {cloak.delta:g}. Bands hold the value of the "
        "series, after any limits, in 95 % of cases.",
        _WIDEST,
    )
    with mpl.rc_context(_STYLE):
        heights = [2.9] * len(values) + [_LINE * len(notes)]
        figure = Figure(figsize=(9.0, 1.0 + sum(heights)), layout="constrained")
        *panels, foot = figure.subplots(len(heights), height_ratios=heights, squeeze=False)[:, 0]
        rows = zip(panels, cloak.filters, values, np.atleast_2d(published.band()), cloak.expected_mses, strict=True)
        for axes, made, lines, within, mse in rows:
            _draw_panel(axes, lines, within, counts)
            axes.set_title(f"{made.name}: off by {mse**0.5:.3g} (root mean square)")
        title = f"{counts.title[:80]}, in bins of {span_text(counts.bins.every)} (UTC)"
        figure.suptitle(title, x=0.01, ha="left", color=_INK)
        foot.set_axis_off()
        foot.text(0, 1, "\n".join(notes), va="top", fontsize=9, color=_INK, in_layout=False)
        figure.savefig(path, dpi=150, format=suffix.lstrip("."))


def _draw_panel(axes: Any, values: FloatArray, within: FloatArray, counts: Counts) -> None:
    times: Any = counts.bins.times.astype("datetime64[ms]")
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.set_ylabel(textwrap.shorten(counts.unit, 24, placeholder="..."))
    lines = []
    for row, colour in zip(values, _COLOURS, strict=False):
        axes.fill_between(times, row - within, row + within, color=colour, alpha=0.18, linewidth=0)
        lines += axes.plot(times, row, color=colour)
    axes.grid(axis="y")
    axes.margins(x=0.01)
    if len(values) > 1:
        more = f" (and {len(values) - len(lines)} more, not drawn)" if len(values) > len(lines) else ""
        legend = axes.legend(lines, ["line"] * len(lines), loc="best", fontsize=8, ncols=2)
        names = [*counts.names[: len(lines) - 1], counts.names[len(lines) - 1] + more]
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_text(name)  # Matplotlib itself would leave out names that begin with an underscore
