"""One picture of the demonstration: a morning in the flat, and what an analyst learns of it from noisy readings."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cloakwork._checks import FloatArray, duration, rounded_up
from cloakwork.cli.draw import INK, cross, floor, save, vicinity
from cloakwork.cli.output import say
from cloakwork.cli.report import table
from cloakwork.demo import FURNITURE, Household, Position, SimulatedFlat, open_path, sensors_of
from cloakwork.physics import FloorPlan
from cloakwork.privacy import exposures
from cloakwork.readings import Frame, FrameRecovery, FrameTracker
from cloakwork.site import Site, clock_ms

FRAMES = 130
SHOWN_FRAME = 115  # in the flat, everyone is in another room
TRAIL = 30  # frames
IN_ONE_ROOM = 0.8  # share of a vicinity
COLOURS = ("#1f5fa8", "#b3261e", "#2e7d32", "#8a4fbf", "#b07d12", "#00838f")


@dataclass(frozen=True)
class MorningFrame:
    """One frame: where people are, and what is known of it at once and a window later."""

    time: int
    people: tuple[Position, ...]
    live: FrameRecovery
    settled: FrameRecovery | None


class Morning:
    """The first frames of a site's people, followed from simulated noisy readings.

    The noise follows the law of the devices but comes from a seed, so that the picture can be drawn again.
    """

    def __init__(self, site: Site, people: Household, began: int, *, progress: Callable[[int], object]) -> None:
        self.site, self.cloak, self.people = site, site.cloak(), people
        if not isinstance(site.physics, FloorPlan):
            raise TypeError("the demonstration is of people on a floor plan")
        self.flat = site.physics
        world = SimulatedFlat(site, people, began, lambda: began)
        self.moments = self._follow(world, np.random.default_rng(1), progress)

    def _follow(
        self, world: SimulatedFlat, rng: np.random.Generator, progress: Callable[[int], object]
    ) -> list[MorningFrame]:
        period, everyone = self.site.period_ms, np.ones(self.flat.sensors, dtype=np.bool_)
        tracker = FrameTracker(self.site, self.cloak, lag=self.cloak.readings_per_window)
        first = -(-world.began // period) * period
        times = range(first, first + FRAMES * period, period)
        frames = self.cloak.to_steps(self.cloak.simulate([world.readings(time) for time in times], rng=rng))
        live: list[FrameRecovery] = []
        settled: dict[int, FrameRecovery] = {}
        for time, steps in zip(times, frames, strict=True):
            live.append(tracker.step(Frame(time, steps, everyone)))
            settled |= {found.time: found for found in tracker.settled}
            progress(len(live))
        return [MorningFrame(found.time, world.people(found.time), found, settled.get(found.time)) for found in live]

    def rooms_right(self, views: Sequence[tuple[tuple[Position, ...], FrameRecovery]]) -> float:
        """The share of people for whom a source is found in their room, one source for each."""
        right = everyone = 0
        for people, found in views:
            there = Counter(self.room(self.flat.rooms.cell_at(*at)) for at in people)
            said = Counter(self.room(self.flat.space.index(source.at)) for source in found.sources)
            right += (there & said).total()
            everyone += there.total()
        return right / max(1, everyone)

    def room(self, place: int) -> str:
        """The id of the room of a place."""
        return next((zone.id for zone in self.site.zones if place in zone.places), "elsewhere")


def show_picture(path: Path, morning: Morning) -> None:
    """Print a table, draw a picture, and explain both."""
    _report(morning)
    _draw(path, morning)
    _explain(morning)


def _report(morning: Morning) -> None:
    rows = []
    settled = [(one.people, one.settled) for one in morning.moments if one.settled is not None]
    live = [(one.people, one.live) for one in morning.moments]
    for name, views in (("at once", live), (f"final, {duration(morning.site.window)} later", settled)):
        counts = np.mean(
            [len(people) == int(np.argmax(found.counts)) for people, found in views if found.counts is not None]
        )
        rows.append((name, f"{100 * morning.rooms_right(views):.0f} %", f"{100 * counts:.0f} %"))
    title = f"A morning of {len(morning.moments)} readings of {len(morning.site.sensor_ids)} sensors"
    table(title, ("judged", "right room", "right count"), rows)


def _explain(morning: Morning) -> None:
    cloak, claim = morning.cloak, morning.site.spec.privacy
    say(
        f"{sensors_of(morning.site)} What this means: each of {morning.flat.sensors} sensors adds noise to its own "
        "reading before sending it. Its "
        f"standard deviation is from {cloak.sigmas.min():.2f} {morning.site.unit} for the most useful sensors up to "
        f"{cloak.sigmas.max():.0f} for those that would reveal too much; one person warms the sensor above by "
        f"{morning.flat.matrix.max():.2f}. An observer who sees all {claim.readings_per_window} readings of all "
        f"sensors in {duration(claim.window)} cannot be sure whether a person moved by {claim.alpha:g} m: any "
        f"event is at most e^{claim.epsilon:g} = {np.exp(claim.epsilon):.1f} times likelier either way, plus "
        f"{claim.delta:g}. The observer still learns in which rooms people probably are. Presence and the number of "
        "people are not hidden."
    )
    spans = {"ten minutes": 600, "an hour": 3_600, "eight hours": 28_800, "a day": 86_400}
    kept = {name: morning.site.schedule.most(clock_ms(span)) for name, span in spans.items()}
    found = ", ".join(
        f"{rounded_up(100 * each.right_place, 2)} % from {each.time}"
        for each in exposures(cloak, kept)
        if each.right_place is not None
    )
    say(
        f"Someone who stays is found. If one person sits in one place, the best guess names the right one of "
        f"{morning.flat.places:,} cells of {100 * morning.flat.rooms.cell:.0f} cm in up to {found}."
    )


def _draw(path: Path, morning: Morning) -> None:
    figure = Figure(figsize=(12, 7.9), layout="constrained")
    axes = figure.subplot_mosaic([["truth", "found"], ["when", "when"]], height_ratios=[5, 2.4])
    moment = morning.moments[SHOWN_FRAME]
    past = morning.moments[SHOWN_FRAME - TRAIL : SHOWN_FRAME + 1]
    _truth(axes["truth"], morning, moment, past)
    _found(axes["found"], morning, moment)
    _timeline(axes["when"], morning, moment)
    save(figure, path)


def _truth(axes: Any, morning: Morning, moment: MorningFrame, past: Sequence[MorningFrame]) -> None:
    _flat(axes, morning, None, f"The truth at {_clock(moment.time)}, and the {TRAIL} frames before")
    for one in past:
        for x, y in one.people:
            axes.plot(x, y, ".", color="#9db8d6", markersize=4)
    for number, at in enumerate(moment.people):
        axes.plot(*at, "o", color="#1f5fa8", markersize=10, label="person" if not number else None)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.05), frameon=False)


def _found(axes: Any, morning: Morning, moment: MorningFrame) -> None:
    found = moment.settled or moment.live
    _flat(
        axes,
        morning,
        found.shown / morning.flat.rooms.cell**2,
        "What an analyst learns (shade: people per square metre)",
    )
    tracks = {track.label: track for track in found.tracks}
    rng = np.random.default_rng(0)
    for label, source in zip(found.labels, found.sources, strict=True):
        rooms = Counter(morning.room(int(place)) for place in source.vicinity)
        if label is None or not isinstance(source.at, tuple) or max(rooms.values()) < IN_ONE_ROOM * rooms.total():
            continue  # its law spreads over several rooms, and its centre may lie between them: the shade says more
        colour = COLOURS[label % len(COLOURS)]
        places = tracks[label].places[-TRAIL:]
        steps = [open_path(morning.flat.rooms, here, there, rng) for here, there in pairwise(places)]
        trail = morning.flat.space.places[[place for step in steps for place in step] or list(places)]
        axes.plot(*trail.T, "-", color=colour, linewidth=1.2, alpha=0.45)
        vicinity(axes, morning.flat, source, colour)
        cross(axes, source.at, colour)
        axes.annotate(
            str(label), source.at, (8, 8), textcoords="offset points", color=colour, fontsize=12, weight="bold"
        )
    for number, at in enumerate(moment.people):
        axes.plot(*at, "o", color="#1f5fa8", markersize=5, label="person" if not number else None)
    axes.plot([], [], "x", color=INK, label="found, with its trail")
    axes.plot([], [], "--", color=INK, label="where it is with 90 %")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.05), ncols=3, frameon=False)


def _timeline(axes: Any, morning: Morning, moment: MorningFrame) -> None:
    """Draw the probability that each room is occupied as a shade, and the truth as a line above."""
    views = [(one, (one.settled or one.live).tracked) for one in morning.moments]
    hours = np.array([_hour(one.time) for one in morning.moments])
    labels = []
    for row, zone in enumerate(reversed(morning.site.zones)):
        odds = np.array([0.0 if known is None else known.anyone(zone.places) for _, known in views])
        axes.fill_between(hours, row, row + 0.7 * odds, color="#e07b39", alpha=0.8, linewidth=0)
        inside: FloatArray = np.array(
            [any(morning.flat.rooms.cell_at(*at) in zone.places for at in one.people) for one, _ in views],
            dtype=np.float64,
        )
        axes.plot(hours, np.where(inside > 0, row + 0.8, np.nan), color="#1f5fa8", linewidth=3)
        labels.append(zone.label)
    axes.axvline(_hour(moment.time), color="#777777", linewidth=1, linestyle=":")
    axes.set_yticks(np.arange(len(labels)) + 0.35, labels)
    ticks = np.arange(np.ceil(2 * hours[0]) / 2, hours[-1] + 0.01, 0.5)
    axes.set_xticks(ticks, [f"{int(hour)}:{round(60 * (hour % 1)):02d}" for hour in ticks])
    axes.set_xlim(hours[0], hours[-1])
    axes.set_title("Someone in the room: how likely (shade), and the truth (line)")
    axes.spines[:].set_visible(False)


def _flat(axes: Any, morning: Morning, values: FloatArray | None, title: str) -> None:
    floor(axes, morning.flat.rooms, values)
    axes.set_title(title)
    axes.set_xlabel("")
    for name, (x, y, width, height) in FURNITURE.items() if morning.people.furnished else ():
        axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="#999999", linewidth=1))
        axes.text(x + width / 2, y + height / 2, name, ha="center", va="center", fontsize=7, color="#777777")
    for zone in morning.site.zones:
        x, y = morning.flat.space.places[zone.places].min(axis=0)
        axes.text(x, y, zone.label, ha="left", va="bottom", fontsize=11, color="#555555")


def _hour(time: int) -> float:
    moment = datetime.fromtimestamp(time / 1000)
    return moment.hour + moment.minute / 60 + moment.second / 3600


def _clock(time: int) -> str:
    return f"{datetime.fromtimestamp(time / 1000):%H:%M}"
