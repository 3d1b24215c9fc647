"""Pictures of floors, maps, tracks and walks, as PNG, SVG or PDF."""

from collections.abc import Callable, Iterable, Sequence
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
from cloakwork.cli.files import is_special, part_of
from cloakwork.cli.recover_report import EARLIEST, RecoverySummary, TrackRecord
from cloakwork.errors import InputError
from cloakwork.physics import HeatPlane, Physics, Rooms
from cloakwork.privacy import Cloak
from cloakwork.recovery import Source
from cloakwork.site import Site

if TYPE_CHECKING:
    from cloakwork.fitting import WalkFit

INK, ACCENT, WARM, WOOD = "#222222", "#b3261e", "OrRd", "#b5803c"
COLOURS = ("#1f5fa8", "#1b7837", "#762a83", "#8c510a", "#01665e", "#ad1457")  # of tracks, legible on a warm map
PALE = 20.0  # times the weight of one source spread over all places: below, nothing has the full colour
FAINTEST = 0.08
LISTED = 8  # tracks in the legend
BARS = 20  # places of a network
NAMED_SENSORS = 40  # more names than these overlap
VERBATIM: Any = {"text.parse_math": False}  # names appear as they are


@mpl.rc_context(VERBATIM)
def draw_recovery(path: Path, summary: RecoverySummary) -> None:
    """Draw the map of all frames, the sources of the last frame, and the paths of those that are followed."""
    site, last = summary.site, summary.recent[-1]
    figure = Figure(figsize=(8.5, 6.5), layout="constrained")
    axes = figure.add_subplot()
    label = "weight" if last.counts is None else "expected sources"
    map_on(axes, site.physics, summary.mean_map, label)
    named = f"{site.name} at {clock_text(last.time, '%Y-%m-%d %H:%M UTC')}"
    if not summary.followed:
        named = "Recovered map" + (f", average of {summary.frames:,} frames" if summary.frames > 1 else "")
    axes.set_title(named if last.sources or summary.heaviest else f"{named}: no source found", loc="left", fontsize=12)
    sources_on(axes, site, summary.trails, zip(last.labels, last.sources, strict=True))
    _legend(figure, summary)
    save(figure, path)


def sources_on(
    axes: Any, site: Site, trails: Sequence[TrackRecord], sources: Iterable[tuple[int | None, Source]]
) -> None:
    """Draw the names of zones, the paths of sources, and a mark with its area for each source of now."""
    if site.physics.space.places.shape[1] == 2:
        _name_zones(axes, site)
        times = [time for trail in trails for time, _ in trail.points]
        for trail in trails:
            _path(axes, trail, min(times), max(times))
    for label, source in sources:
        _mark(axes, site.physics, label, source)


def map_on(axes: Any, physics: Physics, weights: FloatArray, label: str) -> None:
    """Draw the weight of each place in the form that suits the space."""
    top, space = max(float(weights.max()), PALE / len(weights)), physics.space
    if physics.floor is not None:
        mesh, label = floor(axes, physics.floor, weights, limit=top), f"{label} in a cell"
    elif isinstance(physics, HeatPlane):
        image = weights.reshape(physics.n).T
        look = {"extent": (0, physics.size[0], 0, physics.size[1]), "cmap": WARM, "vmin": 0, "vmax": top}
        mesh = axes.imshow(image, origin="lower", **look)
    elif space.places.shape[1] == 1:
        axes.bar(space.places[:, 0], weights, width=space.lengths.min(initial=1.0), color="#e07b39")
        axes.set(xlabel="place", ylabel=label, ylim=(0, 1.05 * top))
        return
    else:
        heaviest = np.argsort(weights)[-BARS:]
        axes.barh([space.name(int(k)) for k in heaviest], weights[heaviest], color="#e07b39")
        axes.set_xlabel(f"{label}, at the {len(heaviest)} heaviest of {len(space):,} places")
        return
    axes.figure.colorbar(mesh, cax=axes.inset_axes([1.04, 0, 0.04, 1]), label=label)


@mpl.rc_context(VERBATIM)
def draw_site(path: Path, site: Site, cloak: Cloak) -> None:
    """Draw a floor with its doors, entrances, zones and sensors; the more noise a sensor adds, the paler it is."""
    physics = site.physics
    if physics.floor is None or physics.sensor_positions is None:
        raise InputError(f"--picture: {site.name} is no floor plan, so there is no floor to draw.")
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    axes, at = figure.add_subplot(), physics.sensor_positions
    floor(axes, physics.floor, None)
    if doors := getattr(site.spec.physics, "doors", ()):
        axes.add_collection(LineCollection(list(np.array(doors)), colors=WOOD, linewidths=4, zorder=3, label="door"))
    _name_zones(axes, site)
    look: Any = {"cmap": "Blues_r", "norm": LogNorm(), "edgecolors": INK, "linewidths": 0.6, "s": 60, "zorder": 4}
    dots = axes.scatter(at[:, 0], at[:, 1], c=cloak.sigmas, label="sensor", **look)
    unit = f", {site.unit}" if site.unit else ""
    bar = figure.colorbar(dots, ax=axes, shrink=0.8, label=f"noise of a sensor (standard deviation{unit})")
    bar.ax.yaxis.set_major_formatter("{x:.2g}")
    bar.ax.yaxis.set_minor_formatter("{x:.2g}")
    if len(at) <= NAMED_SENSORS:
        _name_sensors(axes, site, at)
    if site.spec.entrance:
        space = physics.space
        entrances = space.places[[space.index(entrance.at) for entrance in site.spec.entrance]]
        axes.plot(*entrances.T, "^", color=ACCENT, markersize=10, zorder=5, label="entrance")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3, frameon=False)
    axes.set_title(f"{site.name}: moves of up to {cloak.alpha:g} m are hidden (epsilon {cloak.epsilon:g})", loc="left")
    save(figure, path)


@mpl.rc_context(VERBATIM)
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
    line.set(xlabel=f"above the baseline in the model{unit}", ylabel=f"above the baseline in the readings{unit}")
    line.spines[["top", "right"]].set_visible(False)
    line.set_title(f"{fit.site.name}: reach {fit.reach.value:.3g} m, strength {fit.strength.value:.3g}", fontsize=10)
    at = fit.site.physics.sensor_positions
    if fit.site.physics.floor is not None and at is not None:
        floor(plan, fit.site.physics.floor, None)
        worst = np.sqrt(fit.squares.sum(axis=0) / np.maximum(known.sum(axis=0) - 2, 1))
        marks = plan.scatter(at[:, 0], at[:, 1], c=worst, cmap=WARM, vmin=0, vmax=max(3.0, float(worst.max())))
        figure.colorbar(marks, ax=plan, label="residual of a sensor, in standard deviations")
        _name_sensors(plan, fit.site, at)
        plan.plot(*fit.walk.at.T, "+", color=INK, markersize=6)
        plan.set_title("sensors, and the spots of the walk (+)", fontsize=10)
    save(figure, path, private=True)


def save(figure: Figure, path: Path, *, private: bool = False) -> None:
    """Write a picture in the format of its name; only its owner may read a private one."""
    with part_of(path) as part, mpl.rc_context({"svg.hashsalt": "cloakwork"}):
        if private and not is_special(path):
            part.touch(0o600, exist_ok=False)
        figure.savefig(part, dpi=150, format=path.suffix[1:] or "png")


def floor(axes: Any, rooms: Rooms, values: FloatArray | None, *, limit: float | None = None) -> Any:
    """Draw rooms and their walls, with cells coloured by `values`; return the coloured mesh."""
    width, height = rooms.size
    mesh = None
    if values is not None:
        grid = np.full(rooms.grid.shape, np.nan)
        grid[rooms.grid >= 0] = values[rooms.grid[rooms.grid >= 0]]
        top = limit if limit is not None else max(float(np.nanmax(grid)), 1e-12)
        mesh = axes.imshow(grid, origin="lower", extent=(0, width, 0, height), cmap=WARM, vmin=0, vmax=top)
    count, look = len(rooms.space), {"color": INK, "linewidth": 2, "solid_capstyle": "round"}
    linked = [-count - 1, *(rooms.pairs.min(axis=1) * count + rooms.pairs.max(axis=1))]  # or both are no cell
    _borders(axes, rooms, lambda a, b: ~np.isin(np.minimum(a, b) * count + np.maximum(a, b), linked), look)
    axes.set(xlim=(-0.1, width + 0.1), ylim=(-0.1, height + 0.1), aspect="equal", xlabel="metres")
    axes.spines[:].set_visible(False)
    return mesh


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


def clock_text(time: int, form: str = "%H:%M") -> str:
    """A moment in UTC, or in seconds if the time is not that of a clock."""
    return datetime.fromtimestamp(time / 1000, UTC).strftime(form) if time >= EARLIEST else f"{time / 1000:,.0f} s"


def _name_zones(axes: Any, site: Site) -> None:
    """Write the name of each zone into its upper left corner."""
    space = site.physics.space
    half = float(space.lengths.min(initial=1.0)) / 2
    look = {"textcoords": "offset points", "va": "top", "fontsize": 10, "color": "#777777", "zorder": 2}
    for zone in site.zones:
        x, y = min(space.places[zone.places].tolist(), key=lambda at: (-at[1], at[0]))
        axes.annotate(zone.label, (x - half, y + half), xytext=(6, -6), **look)


def _name_sensors(axes: Any, site: Site, at: FloatArray) -> None:
    look = {"xytext": (0, 6), "textcoords": "offset points", "ha": "center", "fontsize": 7, "color": INK, "zorder": 5}
    for name, place in zip(site.sensor_ids, at.tolist(), strict=True):
        axes.annotate(name, place, **look)


def _colour(label: int | None) -> str:
    return ACCENT if label is None else COLOURS[(label - 1) % len(COLOURS)]


def _path(axes: Any, trail: TrackRecord, first: int, now: int) -> None:
    """Draw the path of a source, the fainter the longer ago."""
    segments, colours = [], []
    for (_, before), (time, after) in pairwise(trail.points):
        if isinstance(before.at, tuple) and isinstance(after.at, tuple) and before.at != after.at:
            segments.append([before.at, after.at])
            alpha = FAINTEST + (0.9 - FAINTEST) * (time - first) / max(now - first, 1)
            colours.append((*to_rgb(_colour(trail.label)), alpha))
    axes.add_collection(LineCollection(segments, colors=colours, linewidths=2, joinstyle="round", zorder=3))


def _mark(axes: Any, physics: Physics, label: int | None, source: Source) -> None:
    """Draw a mark at a source, with the number of its track if it has one, and its area."""
    at, colour = source.at, _colour(label)
    if physics.floor is not None:
        outline(axes, physics.floor, source, colour)
    elif isinstance(at, tuple):
        axes.add_patch(Circle(at, source.radius, fill=False, color=colour, linestyle="--"))
    elif isinstance(at, float):
        axes.axvspan(at - source.radius, at + source.radius, color=colour, alpha=0.15)
        at = (at, axes.get_ylim()[1])
    if isinstance(at, tuple):
        look = {"markeredgecolor": "white", "markeredgewidth": 1.5, "zorder": 5, "clip_on": False}
        axes.plot(*at, "o", color=colour, markersize=9 if label is None else 17, **look)
        number = "" if label is None else str(label)
        axes.text(*at, number, ha="center", va="center_baseline", color="white", fontsize=9, zorder=6)


def _legend(figure: Figure, summary: RecoverySummary) -> None:
    """Name each source that is followed with its zone and since when, and explain the outlines."""
    site, last, entries = summary.site, summary.recent[-1], []
    present = [trail for trail in summary.trails if trail.until == last.time]
    for trail in sorted(present[:LISTED], key=lambda trail: trail.label):
        where = next((f"{zone.label}, " for zone in site.zones if trail.last.place in zone.places), "")
        sure = f"{100 * trail.last.probability:.0f} %"
        text = f"{trail.label}: {where}followed since {clock_text(trail.since)}, {sure}"
        entries.append(Line2D([], [], marker="o", color=_colour(trail.label), linestyle="", markersize=9, label=text))
    if last.sources and site.physics.space.places.shape[1]:
        text = f"{100 * getattr(site.estimator().estimator, 'confidence', 0.9):.0f} % credible region"
        entries.append(Line2D([], [], color=INK, linewidth=1.2, linestyle="--", label=text))
    figure.legend(handles=entries, loc="outside lower left", ncols=2, frameon=False, fontsize=9)
