"""Pictures of rumours: two discs of people, and how often the right community is named."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cloakwork.privacy import Calibration
from papers.networks import Score, Way
from papers.rumours import Picture
from papers.style import FAINT, INK, MARKERS, SERIES, log_scale

NETWORKS = (INK, SERIES[2], SERIES[3], SERIES[4])  # blue and orange are ours and the papers'


def draw_discs(axes: Any, picture: Picture, hops: Sequence[int], shades: str, *, darkest: float) -> None:
    """Two discs of dots, in each the nodes nearest to the source in the middle; `darkest` is in even shares."""
    half = len(hops) // 2
    for side, nodes in enumerate((range(half), range(half, len(hops)))):
        order = sorted(nodes, key=lambda node: hops[node])
        k = np.arange(len(order))
        radius, angle = np.sqrt((k + 0.5) / len(order)), k * math.pi * (3 - math.sqrt(5))
        x, y = radius * np.cos(angle) + 2.3 * side, radius * np.sin(angle)
        colour = [picture.shares[node] for node in order]
        look = {"cmap": shades, "vmin": 0.0, "vmax": darkest / len(hops), "edgecolors": FAINT, "linewidths": 0.3}
        axes.scatter(x, y, c=colour, s=22, **look)
        share = picture.left if side == 0 else 1 - picture.left
        axes.text(2.3 * side, -1.3, f"{100 * share:.0f} % of the weight", ha="center", fontsize=9, color=INK)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(str(picture.way))


def draw_shares(axes: Any, x: Sequence[float], way: Way, scores: Sequence[Score], best: Sequence[float]) -> None:
    """How often one way is right, in percent, and dashed what is best possible with its noise."""
    colour, marker = (SERIES[0], MARKERS[1]) if way is Way.OURS else (SERIES[1], MARKERS[0])
    up, bars = [100 * one.right for one in scores], [200 * one.right_error for one in scores]
    axes.errorbar(x, up, yerr=bars, label=str(way), marker=marker, color=colour, elinewidth=1, capsize=2)
    noise = "exact noise" if way.calibration is Calibration.EXACT else "their noise"
    axes.plot(x, [100 * one for one in best], "--", color=colour, linewidth=1.2, label=f"best possible, {noise}")
    log_scale(axes, x)
    axes.grid(visible=True)


def draw_network(axes: Any, x: Sequence[float], up: Sequence[float], way: Way, network: tuple[int, str]) -> None:
    """One way on one network, given by number and name: filled marks are ours."""
    number, name = network
    colour = NETWORKS[number]
    line, fill, label = ("-", colour, name) if way is Way.OURS else ("--", "white", None)
    look = {"marker": MARKERS[number + 1], "markersize": 5, "markerfacecolor": fill}
    axes.plot(x, up, line, color=colour, label=label, **look)
    log_scale(axes, x)
    axes.grid(visible=True)


def legend_of_both(figure: Figure, *panels: Any) -> None:
    """The legends of some panels in two rows under all of them."""
    handles, labels = [], []
    for axes in panels:
        own = axes.get_legend_handles_labels()
        handles += own[0]
        labels += own[1]
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
