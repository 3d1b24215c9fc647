"""Pictures of tracks: trails that fade with age, numbered marks, and the names of zones."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cloakwork._checks import FloatArray
from cloakwork.cli.draw import INK, coloured_map, save, vicinity
from cloakwork.cli.recover_report import Trail
from cloakwork.physics import FloorPlan, Physics, Rooms
from cloakwork.site import Site

COLOURS = ("#1f5fa8", "#1b7837", "#762a83", "#8c510a", "#01665e", "#ad1457")  # of tracks, legible on a warm map
FAINTEST = 0.08
LISTED = 8  # tracks in the legend
EARLIEST = 10**11  # a smaller time is not that of a clock


def draw_tracks(path: Path, site: Site, weights: FloatArray, trails: Sequence[Trail], now: int) -> None:
    """Draw the expected sources of all frames, the trails of the last frames, and a mark for each source of `now`."""
    with mpl.rc_context({"text.parse_math": False}):  # names appear verbatim
        figure = Figure(figsize=(8.5, 6.5), layout="constrained")
        axes, physics = figure.add_subplot(), site.physics
        layout = coloured_map(axes, physics, weights, label="expected sources", colours="Oranges")
        first = min((trail.points[0][0] for trail in trails), default=now)
        if physics.space.places.shape[1] == 2:
            _name_zones(axes, site)
            for trail in trails:
                _draw_trail(axes, physics, trail, first, now)
        present = [trail for trail in trails if trail.points[-1][0] == now]
        for trail in present:
            _mark(axes, physics, trail, layout)
        axes.set_title(f"{site.name} at {clock_text(now, '%Y-%m-%d %H:%M UTC')}", loc="left", fontsize=12)
        _legend(figure, site, present, first)
        save(figure, path)


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
    ways = FreeWays(physics.rooms) if isinstance(physics, FloorPlan) else None
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
    level = 100 * getattr(site.estimator().estimator, "level", 0.9)
    if present and site.physics.space.places.shape[1]:
        label = f"vicinity, with the source inside at {level:.0f} %"
        entries.append(Line2D([], [], color=INK, linewidth=1.2, linestyle="--", label=label))
    figure.legend(handles=entries, loc="outside lower left", ncols=2, frameon=False, fontsize=9)
