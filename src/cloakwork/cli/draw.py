"""Pictures of maps and tracks, as PNG, SVG or PDF."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from cloakwork._checks import FloatArray, IntArray
from cloakwork.cli.output import is_special
from cloakwork.cli.recover_report import EARLIEST, Trail
from cloakwork.errors import InputError
from cloakwork.physics import HeatPlane, Physics, Rooms
from cloakwork.privacy import Cloak
from cloakwork.recovery import Source
from cloakwork.site import Site

if TYPE_CHECKING:
    from cloakwork.fitting import WalkFit

INK, ACCENT, WARM = "#222222", "#b3261e", "OrRd"
MAX_DRAWN_NODES = 400
PALE = 20.0  # times the weight of one source spread over all places: below, nothing has the full colour
COLOURS = ("#1f5fa8", "#1b7837", "#762a83", "#8c510a", "#01665e", "#ad1457")  # of tracks, legible on a warm map
FAINTEST = 0.08
LISTED = 8  # tracks in the legend
WOOD = "#b5803c"
NAMED_SENSORS = 40  # more names than these overlap


@mpl.rc_context({"text.parse_math": False})  # names appear verbatim
def draw_map(
    path: Path, physics: Physics, weights: FloatArray, sources: Sequence[Source], *, title: str, label: str = "weight"
) -> None:
    """Draw a map with the vicinities of its sources, in the form that suits its space; `label` names the values."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title if sources or weights.any() else "Recovered map: no source found")
    coloured_map(axes, physics, weights, label=label)
    if sources and physics.space.places.shape[1]:
        explanation = "marks: sources of the last frame and their vicinities"
        figure.text(0.99, 0.01, explanation, ha="right", va="bottom", fontsize=8, color=INK)
    for source in sources:
        vicinity(axes, physics, source)
        if isinstance(source.at, tuple):
            cross(axes, source.at)
    save(figure, path)


def _scale(axes: Any, mesh: Any, label: str) -> None:
    """Explain the colours beside a map, at its height."""
    axes.figure.colorbar(mesh, cax=axes.inset_axes([1.04, 0, 0.04, 1]), label=label)


def coloured_map(
    axes: Any, physics: Physics, weights: FloatArray, *, label: str, colours: str = WARM
) -> dict[int, Sequence[float]]:
    """Draw the weight of each place in the form that suits the space; return where the places of a network are."""
    top = max(float(weights.max()), PALE / len(weights))
    if physics.floor is not None:
        mesh = floor(axes, physics.floor, weights, limit=top, colours=colours)
        _scale(axes, mesh, f"{label} in a cell")
    elif isinstance(physics, HeatPlane):
        image = weights.reshape(physics.n).T
        look = {"extent": (0, physics.size[0], 0, physics.size[1]), "cmap": colours, "vmin": 0, "vmax": top}
        mesh = axes.imshow(image, origin="lower", **look)
        _scale(axes, mesh, label)
    elif physics.space.places.shape[1] == 1:
        axes.bar(physics.space.places[:, 0], weights, width=physics.space.lengths.min(initial=1.0), color="#e07b39")
        axes.set_xlabel("place")
        axes.set_ylabel(label)
        axes.set_ylim(0, 1.05 * top)
    else:
        return _network(axes, physics, weights)
    return {}


@mpl.rc_context({"text.parse_math": False})  # names appear verbatim
def draw_site(path: Path, site: Site, cloak: Cloak) -> None:
    """Draw a floor with its doors, entrances, zones and sensors; the more noise a sensor adds, the paler it is."""
    physics = site.physics
    if physics.floor is None or physics.sensor_positions is None:
        raise InputError(f"--picture: {site.name} is no floor plan, so there is no floor to draw.")
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    axes, at = figure.add_subplot(), physics.sensor_positions
    floor(axes, physics.floor, None)
    doors = np.array(getattr(site.spec.physics, "doors", ()) or np.empty((0, 2, 2)))
    axes.add_collection(LineCollection(list(doors), colors=WOOD, linewidths=4, zorder=3))
    _name_zones(axes, site)
    dots = axes.scatter(
        at[:, 0],
        at[:, 1],
        c=cloak.sigmas,
        cmap="Blues_r",
        norm=LogNorm(),
        edgecolors=INK,
        linewidths=0.6,
        s=60,
        zorder=4,
    )
    unit = f", {site.unit}" if site.unit else ""
    bar = figure.colorbar(dots, ax=axes, shrink=0.8, label=f"noise of a sensor (standard deviation{unit})")
    bar.ax.yaxis.set_major_formatter("{x:.2g}")
    bar.ax.yaxis.set_minor_formatter("{x:.2g}")
    if len(at) <= NAMED_SENSORS:
        for name, (x, y) in zip(site.sensor_ids, at.tolist(), strict=True):
            axes.annotate(name, (x, y), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=7, zorder=5)
    marks = [Line2D([], [], color=WOOD, linewidth=4, label="door")] if len(doors) else []
    for entrance in site.spec.entrance:
        x, y = physics.space.places[physics.space.index(entrance.at)].tolist()
        [mark] = axes.plot(x, y, "^", color=ACCENT, markersize=10, zorder=5, label="entrance")
        marks = [*marks, mark] if mark.get_label() not in {each.get_label() for each in marks} else marks
    marks.append(Line2D([], [], color=INK, marker="o", linestyle="", fillstyle="none", label="sensor"))
    axes.legend(handles=marks, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3, frameon=False)
    axes.set_title(f"{site.name}: moves of up to {cloak.alpha:g} m are hidden (epsilon {cloak.epsilon:g})", loc="left")
    save(figure, path)


def draw_walk(path: Path, fit: "WalkFit") -> None:
    """Draw each sensor's rise at each spot against the model, and the misfit of each sensor on the floor.

    It shows true readings, so only its owner may read the file.
    """
    figure = Figure(figsize=(11, 5), layout="constrained")
    line, plan = figure.subplots(1, 2)
    known = fit.walk.counts > 0
    expected, read = ((values - fit.baselines)[known] for values in (fit.expected, fit.walk.means))
    error = np.sqrt(fit.walk.variances[known])
    line.errorbar(expected, read, error, fmt=".", color=INK, ecolor="#bbbbbb", markersize=4)
    top = float(max(expected.max(), read.max()))
    line.plot([0, top], [0, top], color=ACCENT, linewidth=1)
    unit = f", {fit.site.unit}" if fit.site.unit else ""
    line.set_xlabel(f"above the baseline in the model{unit}")
    line.set_ylabel(f"above the baseline in the readings{unit}")
    line.spines[["top", "right"]].set_visible(False)
    line.set_title(f"{fit.site.name}: reach {fit.reach.value:.3g} m, strength {fit.strength.value:.3g}", fontsize=10)
    at = fit.site.physics.sensor_positions
    if fit.site.physics.floor is not None and at is not None:
        floor(plan, fit.site.physics.floor, None)
        worst = np.sqrt(fit.squares.sum(axis=0) / np.maximum(known.sum(axis=0) - 2, 1))
        marks = plan.scatter(at[:, 0], at[:, 1], c=worst, cmap="OrRd", vmin=0, vmax=max(3.0, float(worst.max())))
        figure.colorbar(marks, ax=plan, label="residual of a sensor, in standard deviations")
        for name, (x, y) in zip(fit.site.sensor_ids, at.tolist(), strict=True):
            plan.annotate(name, (x, y), xytext=(0, 5), textcoords="offset points", ha="center", fontsize=6, color=INK)
        plan.plot(*fit.walk.at.T, "+", color=INK, markersize=6)
        plan.set_title("sensors, and the spots of the walk (+)", fontsize=10)
    save(figure, path, private=True)


def save(figure: Figure, path: Path, *, private: bool = False) -> None:
    """Write a picture in the format of its name; only its owner may read a private one."""
    if private and not is_special(path):
        path.unlink(missing_ok=True)
        path.touch(0o600, exist_ok=False)
    with mpl.rc_context({"svg.hashsalt": "cloakwork"}):
        figure.savefig(path, dpi=150)


def floor(
    axes: Any, rooms: Rooms, values: FloatArray | None, *, limit: float | None = None, colours: str = WARM
) -> Any:
    """Draw rooms and their walls, with cells coloured by `values`; return the coloured mesh."""
    width, height = rooms.size
    mesh = None
    if values is not None:
        grid = np.full(rooms.grid.shape, np.nan)
        grid[rooms.grid >= 0] = values[rooms.grid[rooms.grid >= 0]]
        top = limit if limit is not None else max(float(np.nanmax(grid)), 1e-12)
        mesh = axes.imshow(grid, origin="lower", extent=(0, width, 0, height), cmap=colours, vmin=0, vmax=top)
    walls(axes, rooms)
    axes.set_xlim(-0.1, width + 0.1)
    axes.set_ylim(-0.1, height + 0.1)
    axes.set_aspect("equal")
    axes.set_xlabel("metres")
    axes.spines[:].set_visible(False)
    return mesh


def walls(axes: Any, rooms: Rooms) -> None:
    """Draw a line between touching cells that are not connected, and around the floor."""
    count, look = len(rooms.space), {"color": INK, "linewidth": 2, "solid_capstyle": "round"}
    linked = [-count - 1, *(rooms.pairs.min(axis=1) * count + rooms.pairs.max(axis=1))]  # or both are no cell
    _borders(axes, rooms, lambda a, b: ~np.isin(np.minimum(a, b) * count + np.maximum(a, b), linked), look)


def outline(axes: Any, rooms: Rooms, source: Source, colour: str = ACCENT) -> None:
    """Draw a dashed line around the vicinity of a source in rooms."""
    look = {"color": colour, "linewidth": 1.2, "linestyle": "--"}
    _borders(axes, rooms, lambda a, b: np.isin(a, source.vicinity) != np.isin(b, source.vicinity), look)


def _borders(axes: Any, rooms: Rooms, apart: Callable[[IntArray, IntArray], Any], look: dict[str, Any]) -> None:
    """Draw the sides between touching cells that are apart; -1 stands for what is no cell."""
    h, grid = rooms.cell, np.pad(rooms.grid, 1, constant_values=-1)
    for row, column in np.argwhere(apart(grid[:-1], grid[1:])):
        axes.plot([(column - 1) * h, column * h], [row * h, row * h], **look)
    for row, column in np.argwhere(apart(grid[:, :-1], grid[:, 1:])):
        axes.plot([column * h, column * h], [(row - 1) * h, row * h], **look)


def vicinity(axes: Any, physics: Physics, source: Source, colour: str = ACCENT) -> None:
    """Draw the vicinity of a source: an outline in rooms, a circle on a plane, a stretch of a line."""
    if physics.floor is not None:
        outline(axes, physics.floor, source, colour)
    elif isinstance(source.at, tuple):
        axes.add_patch(Circle(source.at, source.radius, fill=False, color=colour, linestyle="--"))
    elif isinstance(source.at, float):
        axes.axvspan(source.at - source.radius, source.at + source.radius, color=colour, alpha=0.15)


def cross(axes: Any, at: Sequence[float]) -> None:
    """Draw a cross that is visible on light and dark."""
    axes.plot(*at, "x", color="white", markersize=11, markeredgewidth=5)
    axes.plot(*at, "x", color=ACCENT, markersize=9, markeredgewidth=2)


def _network(axes: Any, physics: Physics, weights: FloatArray) -> dict[int, Sequence[float]]:
    space = physics.space
    if len(space) > MAX_DRAWN_NODES:
        order = np.argsort(weights)[::-1][:20][::-1]
        axes.barh([space.name(int(k)) for k in order], weights[order], color="#e07b39")
        axes.set_title(f"Recovered map: the 20 heaviest of {len(space):,} places")
        return {}
    import networkx as nx  # noqa: PLC0415 - slow to load, and rarely needed

    graph = nx.Graph([(int(a), int(b)) for a, b in space.pairs])
    graph.add_nodes_from(range(len(space)))
    layout = nx.spring_layout(graph, seed=1)
    nx.draw_networkx_edges(graph, layout, ax=axes, edge_color="#bbbbbb")
    drawn = nx.draw_networkx_nodes(
        graph,
        layout,
        ax=axes,
        nodelist=range(len(space)),
        node_color=weights,
        cmap=mpl.colormaps[WARM],
        node_size=220,
    )
    drawn.set_edgecolor(INK)
    dark = weights > 0.5 * max(float(weights.max()), 1e-300)
    for colour, chosen in (("white", np.flatnonzero(dark)), (INK, np.flatnonzero(~dark))):
        names = {int(k): space.name(int(k)) for k in chosen}
        nx.draw_networkx_labels(graph, layout, names, ax=axes, font_size=7, font_color=colour)
    axes.set_axis_off()
    return {node: at.tolist() for node, at in layout.items()}


@mpl.rc_context({"text.parse_math": False})  # names appear verbatim
def draw_tracks(path: Path, site: Site, weights: FloatArray, trails: Sequence[Trail], now: int) -> None:
    """Draw the expected sources of all frames, the trails of the last frames, and a mark for each source of `now`."""
    figure = Figure(figsize=(8.5, 6.5), layout="constrained")
    axes, first = figure.add_subplot(), min((trail.points[0][0] for trail in trails), default=now)
    tracks_on(axes, site, weights, trails, now)
    axes.set_title(f"{site.name} at {clock_text(now, '%Y-%m-%d %H:%M UTC')}", loc="left", fontsize=12)
    _legend(figure, site, [trail for trail in trails if trail.points[-1][0] == now], first)
    save(figure, path)


def tracks_on(axes: Any, site: Site, weights: FloatArray, trails: Sequence[Trail], now: int) -> None:
    """Draw weights, trails and a mark for each source of `now`."""
    physics = site.physics
    layout = coloured_map(axes, physics, weights, label="expected sources", colours="Oranges")
    if physics.space.places.shape[1] == 2:
        _name_zones(axes, site)
        first = min((trail.points[0][0] for trail in trails), default=now)
        for trail in trails:
            _draw_trail(axes, physics, trail, first, now)
    for trail in trails:
        if trail.points[-1][0] == now:
            _mark(axes, physics, trail, layout)


def clock_text(time: int, form: str = "%H:%M") -> str:
    """A moment in UTC, or in seconds if the time is not that of a clock."""
    return datetime.fromtimestamp(time / 1000, UTC).strftime(form) if time >= EARLIEST else f"{time / 1000:,.0f} s"


def _name_zones(axes: Any, site: Site) -> None:
    """Write the name of each zone into its upper left corner."""
    space = site.physics.space
    half = float(space.lengths.min(initial=1.0)) / 2
    for zone in site.zones:
        x, y = min(space.places[zone.places].tolist(), key=lambda at: (-at[1], at[0]))
        axes.annotate(
            zone.label,
            (x - half, y + half),
            xytext=(6, -6),
            textcoords="offset points",
            ha="left",
            va="top",
            fontsize=10,
            color="#777777",
            zorder=2,
        )


def _colour(trail: Trail) -> str:
    return COLOURS[(trail.label - 1) % len(COLOURS)]


def _draw_trail(axes: Any, physics: Physics, trail: Trail, first: int, now: int) -> None:
    """Draw the way of a source, the fainter the longer ago, and never through a wall."""
    ways = None if physics.floor is None else FreeWays(physics.floor)
    segments, colours = [], []
    for (_, before), (time, after) in pairwise(trail.points):
        if isinstance(before.at, tuple) and isinstance(after.at, tuple) and before.at != after.at:
            turns = [] if ways is None else ways.turns(before.place, after.place)
            segments.append([before.at, *turns, after.at])
            alpha = FAINTEST + (0.9 - FAINTEST) * (time - first) / max(now - first, 1)
            colours.append((*to_rgb(_colour(trail)), alpha))
    axes.add_collection(LineCollection(segments, colors=colours, linewidths=2, joinstyle="round", zorder=3))


class FreeWays:
    """Short ways through rooms."""

    def __init__(self, rooms: Rooms) -> None:
        self.rooms = rooms
        self.near: list[set[int]] = [set() for _ in range(len(rooms.space))]
        for a, b in rooms.pairs.tolist():
            self.near[a].add(b)
            self.near[b].add(a)

    def turns(self, start: int, end: int) -> list[tuple[float, float]]:
        """Return the turns of a short way from one cell to another: at doors and corners."""
        space, back = self.rooms.space, self.rooms.space.distances(end)
        turns: list[tuple[float, float]] = []
        while not self._free(start, end):
            there = space.distances(start)
            between = np.flatnonzero(there + back < back[start] + self.rooms.cell / 2)
            ahead = between[np.lexsort((there[between], back[between]))].tolist()
            start = next(cell for cell in ahead if cell != start and self._free(start, cell))
            turns.append(tuple(space.places[start].tolist()))
        return turns

    def _free(self, start: int, end: int) -> bool:
        """Whether a straight line between two cells crosses no wall."""
        a, b = self.rooms.space.places[[start, end]]
        number = int(np.ceil(np.hypot(*(b - a)) / (self.rooms.cell / 8))) + 1
        columns, rows = np.floor(np.linspace(a, b, number) / self.rooms.cell).astype(np.int64).T
        cells = self.rooms.grid[rows, columns].tolist()
        return all(k >= 0 and (k == j or j in self.near[k] or self.near[k] & self.near[j]) for k, j in pairwise(cells))


def _mark(axes: Any, physics: Physics, trail: Trail, layout: dict[int, Sequence[float]]) -> None:
    """Draw a numbered mark at a source, and its vicinity."""
    source = trail.points[-1][1]
    vicinity(axes, physics, source, _colour(trail))
    at: Sequence[float] | None = layout.get(source.place)
    if isinstance(source.at, tuple):
        at = source.at
    elif isinstance(source.at, float):
        at = (source.at, axes.get_ylim()[1])
    if at is not None:
        style = {"markeredgecolor": "white", "markeredgewidth": 1.5, "zorder": 5, "clip_on": False}
        axes.plot(*at, "o", color=_colour(trail), markersize=17, **style)
        axes.text(*at, str(trail.label), ha="center", va="center_baseline", color="white", fontsize=9, zorder=6)


def _legend(figure: Figure, site: Site, present: Sequence[Trail], first: int) -> None:
    """Name each source with its zone and since when it is followed, and explain the lines."""
    entries = []
    for trail in sorted(present[:LISTED], key=lambda trail: trail.label):
        source = trail.points[-1][1]
        where = next((f"{zone.label}, " for zone in site.zones if source.place in zone.places), "")
        text = f"{trail.label}: {where}followed since {clock_text(trail.since)}, {100 * source.probability:.0f} %"
        entries.append(Line2D([], [], marker="o", color=_colour(trail), linestyle="", markersize=9, label=text))
    if len(present) > LISTED:
        entries.append(Line2D([], [], linestyle="", label=f"and {len(present) - LISTED} more"))
    if site.physics.space.places.shape[1] == 2:
        entries.append(Line2D([], [], color=INK, linewidth=2.2, alpha=0.5, label=f"trails since {clock_text(first)}"))
    level = 100 * getattr(site.estimator().estimator, "confidence", 0.9)
    if present and site.physics.space.places.shape[1]:
        label = f"{level:.0f} % credible region"
        entries.append(Line2D([], [], color=INK, linewidth=1.2, linestyle="--", label=label))
    figure.legend(handles=entries, loc="outside lower left", ncols=2, frameon=False, fontsize=9)
