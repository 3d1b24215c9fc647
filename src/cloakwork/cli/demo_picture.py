"""One picture of the demonstration: a morning in the flat, and what an analyst learns of it from noisy readings."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cloakwork._checks import FloatArray, duration
from cloakwork.cli.draw import floor, save, tracks_on
from cloakwork.cli.plan_report import answer, over_time
from cloakwork.cli.recover_report import RecoverySummary
from cloakwork.cli.report import Row, table
from cloakwork.demo import FURNITURE, Household, Position, SimulatedFlat, sensors_of
from cloakwork.physics import FloorPlan
from cloakwork.privacy import Guarantee
from cloakwork.readings import Frame, FrameRecovery, FrameTracker
from cloakwork.site import Site, spans_of

FRAMES = 130
SHOWN_FRAME = 115  # in the flat, everyone is in another room
TRAIL = 30  # frames


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


def print_scores(morning: Morning) -> None:
    """Print how often the right room and the right number of people were found."""
    rows = []
    settled = [(one.people, one.settled) for one in morning.moments if one.settled is not None]
    live = [(one.people, one.live) for one in morning.moments]
    for name, views in (("at once", live), (f"final, {duration(morning.site.window)} later", settled)):
        counts = np.mean(
            [len(people) == int(np.argmax(found.counts)) for people, found in views if found.counts is not None]
        )
        rows.append((name, f"{100 * morning.rooms_right(views):.0f} %", f"{100 * counts:.0f} %"))
    rooms = Counter(morning.room(morning.flat.rooms.cell_at(*at)) for people, _ in live for at in people)
    numbers = Counter(len(people) for people, _ in live)
    guess = [f"{100 * max(each.values(), default=0) / max(1, each.total()):.0f} %" for each in (rooms, numbers)]
    rows.append(("always the commonest answer", guess[0], guess[1]))
    title = f"A morning of {len(morning.moments)} readings of {len(morning.site.sensor_ids)} sensors"
    table(title, ("judged", "right room", "right count"), rows)


def explain(morning: Morning) -> list[Row]:
    """What the sensors add, what that hides, and what an observer learns over time."""
    site, cloak, unit = morning.site, morning.cloak, morning.site.unit
    guarantee = Guarantee.of(cloak, spans=spans_of(site), sensor_names=site.sensor_ids)
    return [
        sensors_of(site),
        f"Each of the {morning.flat.sensors} sensors adds noise to its own reading before it sends it: "
        f"from {cloak.sigmas.min():.2g} {unit} for the most useful sensors up to {cloak.sigmas.max():.3g} {unit} for "
        "those that would reveal too much.",
        f"One person warms the sensor above by {morning.flat.matrix.max():.2f} {unit}.",
        "",
        *answer(site, cloak, guarantee),
        "",
        over_time(site, guarantee),
    ]


def draw_morning(path: Path, morning: Morning) -> None:
    """Draw the truth and the map at one moment, and when someone was in which room."""
    figure = Figure(figsize=(12, 7.9), layout="constrained")
    axes = figure.subplot_mosaic([["truth", "found"], ["when", "when"]], height_ratios=[5, 2.4])
    moment = morning.moments[SHOWN_FRAME]
    past = morning.moments[SHOWN_FRAME - TRAIL : SHOWN_FRAME + 1]
    _truth(axes["truth"], morning, moment, past)
    _found(axes["found"], morning, moment, past)
    _timeline(axes["when"], morning, moment)
    save(figure, path)


def _truth(axes: Any, morning: Morning, moment: MorningFrame, past: Sequence[MorningFrame]) -> None:
    floor(axes, morning.flat.rooms, None)
    axes.set_xlabel("")
    axes.set_title(f"The truth at {_clock(moment.time)}, and the {TRAIL} frames before")
    for name, (x, y, width, height) in FURNITURE.items() if morning.people.furnished else ():
        axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="#999999", linewidth=1))
        axes.text(x + width / 2, y + height / 2, name, ha="center", va="center", fontsize=7, color="#777777")
    for one in past:
        for x, y in one.people:
            axes.plot(x, y, ".", color="#9db8d6", markersize=4)
    for number, at in enumerate(moment.people):
        axes.plot(*at, "o", color="#1f5fa8", markersize=10, label="person" if not number else None)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.05), frameon=False)


def _found(axes: Any, morning: Morning, moment: MorningFrame, past: Sequence[MorningFrame]) -> None:
    summary = RecoverySummary(morning.site)
    for one in past:
        summary.add(one.settled or one.live)
    tracks_on(axes, morning.site, (moment.settled or moment.live).shown, summary.trails, moment.time)
    axes.set_title("What an analyst learns (dots: the truth)")
    for at in moment.people:
        axes.plot(*at, "o", color="#1f5fa8", markersize=5, zorder=7)


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


def _hour(time: int) -> float:
    moment = datetime.fromtimestamp(time / 1000)
    return moment.hour + moment.minute / 60 + moment.second / 3600


def _clock(time: int) -> str:
    return f"{datetime.fromtimestamp(time / 1000):%H:%M}"
