"""How sweeps are drawn: one panel a sweep, both axes logarithmic, every method in its colour."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from papers.style import FAINT, INK, SERIES
from papers.sweeps import FLOOR, GUESS, LIMIT, PAPERS_LIMIT, Sweep
from papers.trials import PAPERS_TRIALS, Method

COLORS = {Method.PAPERS: SERIES[1], Method.PURSUIT: SERIES[3], Method.POSTERIOR: SERIES[0]}
BAND = f"95 % of means of {PAPERS_TRIALS} trials"
NAMES = (*Method, BAND, LIMIT, PAPERS_LIMIT, FLOOR, GUESS)
LINES: dict[str, Any] = {
    LIMIT: {"color": INK, "linestyle": "--", "linewidth": 1.2},
    PAPERS_LIMIT: {"color": COLORS[Method.PAPERS], "linestyle": "--", "linewidth": 1.2},
    FLOOR: {"color": INK, "linestyle": ":", "linewidth": 1},
    GUESS: {"color": FAINT, "linewidth": 1},
}
IN_A_ROW = 5  # names of a legend
SHAPES = {Method.PAPERS: "s", Method.PURSUIT: "^", Method.POSTERIOR: "o"}


def draw_panels(figure: Figure, rows: Mapping[str, Sequence[Sweep]], titles: Sequence[str]) -> None:
    """Sweeps beside each other, the same in every row but for what the row is called; titles are above the first."""
    panels = figure.subplots(len(rows), len(titles), squeeze=False)
    for number, (row, (name, sweeps)) in enumerate(zip(panels, rows.items(), strict=True)):
        for letter, axes, sweep, title in zip("abcdefgh", row, sweeps, titles, strict=False):
            draw_sweep(axes, sweep, label=symbols(sweep.name))
            axes.set_title("" if number else f"{letter})  {symbols(title)}", fontsize=9)
        row[0].set_ylabel(f"EMD error, {name}")
    legend_of_all(figure, panels.ravel().tolist())


def symbols(text: str) -> str:
    r"""Greek letters for their names.

    >>> symbols("n = 100, sigma = 0.1")
    'n = 100, $\\sigma$ = 0.1'
    """
    for name in ("sigma", "epsilon", "delta"):
        text = text.replace(name, rf"$\{name}$")
    return text


def draw_sweep(axes: Any, sweep: Sweep, *, label: str) -> None:
    """Mean errors against x, with the limits; around the papers' curve what so few trials as theirs give."""
    draw_methods(axes, sweep)
    draw_limits(axes, sweep)
    log_axes(axes)
    axes.set_xlabel(label)


def draw_limits(axes: Any, sweep: Sweep) -> None:
    """The Cramer-Rao limits, as far as a guess is not better; the floor and the guess."""
    points = sweep.points
    lines: dict[str, list[float | None]] = {
        LIMIT: [point.limit and min(point.limit, point.guess) for point in points],
        PAPERS_LIMIT: [point.papers_limit and min(point.papers_limit, point.guess) for point in points],
        FLOOR: [point.floor for point in points],
        GUESS: [point.guess for point in points],
    }
    for name, values in lines.items():
        shown = [(point.x, value) for point, value in zip(points, values, strict=True) if value]
        if len(shown) > 1:
            axes.plot(*zip(*shown, strict=True), label=name, **LINES[name])


def draw_methods(axes: Any, sweep: Sweep) -> None:
    """The curve of each method."""
    for method in Method:
        points = sweep.of(method)
        if not points:
            continue
        xs, scores = [point.x for point in points], [point.of(method) for point in points]
        means = [score.emd.value for score in scores]
        bands = [score.band for score in scores if score.band is not None]
        if method is Method.PAPERS and len(bands) == len(scores):
            low, high = [band.low for band in bands], [band.high for band in bands]
            axes.fill_between(xs, low, high, color=COLORS[method], alpha=0.15, linewidth=0, label=BAND)
        bars = [2 * score.emd.error for score in scores]
        look = {"color": COLORS[method], "marker": SHAPES[method], "markersize": 4, "linewidth": 1.5}
        axes.errorbar(xs, means, yerr=bars, elinewidth=1, label=str(method), **look)


def log_axes(axes: Any) -> None:
    """Both axes logarithmic, with numbers written out as 1, 2, 5 or, over a long range, 1 of each power of ten."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        ticks = ticks_between(low, high)
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(visible=True)


def ticks_between(low: float, high: float) -> list[float]:
    """Round numbers within a range.

    >>> ticks_between(0.04, 0.6), ticks_between(0.004, 30)
    ([0.05, 0.1, 0.2, 0.5], [0.01, 0.1, 1.0, 10.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    parts = (1, 2, 5) if high / low < 50 else (1, 3) if high / low < 500 else (1,)
    ticks = [float(f"{part}e{power}") for power in powers for part in parts]
    return [tick for tick in ticks if low <= tick <= high]


def legend_of_all(figure: Figure, panels: Sequence[Any]) -> None:
    """Every name once, in rows under the panels."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    names = sorted(found, key=lambda name: NAMES.index(name) if name in NAMES else len(NAMES))
    columns = len(names) if len(names) <= IN_A_ROW else math.ceil(len(names) / 2)
    figure.legend([found[name] for name in names], names, loc="outside lower center", ncols=columns)
