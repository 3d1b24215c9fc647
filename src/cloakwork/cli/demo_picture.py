"""One picture of the demonstration: a morning, and what an analyst learns of it from noisy readings."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import duration
from cloakwork.cli.draw import clock_text, floor, map_on, save, sources_on
from cloakwork.cli.plan_report import answer, over_time
from cloakwork.cli.recover_report import RecoverySummary
from cloakwork.cli.report import Row, Table
from cloakwork.demo import Household, Position, SimulatedFlat, sensors_of
from cloakwork.physics import FloorPlan
from cloakwork.privacy import Cloak, Guarantee
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


def follow_morning(
    site: Site, cloak: Cloak, people: Household, began: int, *, progress: Callable[[int], object]
) -> list[MorningFrame]:
    """Follow a site's people through the first frames of a day, from simulated noisy readings.

    The noise has the distribution of the devices' noise but comes from a seed, so that the picture can be drawn again.
    """
    world = SimulatedFlat(site, people, began, lambda: began)
    everyone = np.ones(site.physics.sensors, dtype=np.bool_)
    tracker = FrameTracker(site, cloak, lag=cloak.readings_per_window)
    first = -(-began // site.period_ms) * site.period_ms
    times = range(first, first + FRAMES * site.period_ms, site.period_ms)
    frames = cloak.to_steps(cloak.simulate([world.readings(t) for t in times], rng=np.random.default_rng(1)))
    live: list[FrameRecovery] = []
    settled: dict[int, FrameRecovery] = {}
    for time, steps in zip(times, frames, strict=True):
        live.append(tracker.step(Frame(time, steps, everyone)))
        settled |= {found.time: found for found in tracker.settled}
        progress(len(live))
    return [MorningFrame(found.time, world.people(found.time), found, settled.get(found.time)) for found in live]


def explain(site: Site, cloak: Cloak, morning: Sequence[MorningFrame]) -> Iterator[Row]:
    """How often the map was right, what the sensors add, what that hides, and what an observer learns over time."""
    yield f"A morning of {len(morning)} readings of {len(site.sensor_ids)} sensors"
    yield _scores(site, morning)
    guarantee, unit = Guarantee.of(cloak, spans=spans_of(site), sensor_names=site.sensor_ids), site.unit
    yield ""
    yield sensors_of(site)
    yield (
        f"Each of the {site.physics.sensors} sensors adds noise to its own reading before it sends it: "
        f"from {cloak.sigmas.min():.2g} {unit} for the most useful sensors up to {cloak.sigmas.max():.3g} {unit} for "
        "those that would reveal too much."
    )
    yield f"One person warms the sensor above by {site.physics.matrix.max():.2f} {unit}."
    yield ""
    yield from answer(site, cloak, guarantee)
    yield ""
    yield over_time(site, guarantee)


def _scores(site: Site, morning: Sequence[MorningFrame]) -> Table:
    """How often the right room and the right number of people were found."""
    settled = [(one.people, one.settled) for one in morning if one.settled is not None]
    live = [(one.people, one.live) for one in morning]
    rows = []
    for name, views in (("at once", live), (f"final, {duration(site.window)} later", settled)):
        counts = [len(people) == int(np.argmax(found.counts)) for people, found in views if found.counts is not None]
        rows.append((name, _percent(_rooms_right(site, views)), _percent(float(np.mean(counts)))))
    rooms = Counter(room for people, _ in live for room in _rooms(site, people))
    numbers = Counter(len(people) for people, _ in live)
    guesses = (max(each.values(), default=0) / max(1, each.total()) for each in (rooms, numbers))
    return Table.of(
        ("judged", "right room", "right count"), [*rows, ("always the commonest answer", *map(_percent, guesses))]
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _rooms_right(site: Site, views: Sequence[tuple[tuple[Position, ...], FrameRecovery]]) -> float:
    """The share of people for whom a source is found in their room, one source for each."""
    right = everyone = 0
    for people, found in views:
        there, named = _rooms(site, people), _rooms(site, [source.at for source in found.sources])
        right += (there & named).total()
        everyone += there.total()
    return right / max(1, everyone)


def _rooms(site: Site, positions: Sequence[object]) -> Counter[str]:
    """How many of these are in each room."""
    places = [site.physics.space.index(at) for at in positions]
    return Counter(next((zone.id for zone in site.zones if place in zone.places), "elsewhere") for place in places)


def draw_morning(path: Path, site: Site, morning: Sequence[MorningFrame]) -> None:
    """Draw the truth and the map at one moment, and when someone was in which room."""
    if not isinstance(site.physics, FloorPlan):
        raise TypeError("the demonstration is of people on a floor plan")
    figure = Figure(figsize=(12, 7.9), layout="constrained")
    axes = figure.subplot_mosaic([["truth", "found"], ["when", "when"]], height_ratios=[5, 2.4])
    truth, found = axes["truth"], axes["found"]
    moment, summary = morning[SHOWN_FRAME], RecoverySummary(site)
    for one in morning[SHOWN_FRAME - TRAIL : SHOWN_FRAME + 1]:
        summary.add(one.settled or one.live)
        truth.plot(*np.array(one.people).reshape(-1, 2).T, ".", color="#9db8d6", markersize=4)
    floor(truth, site.physics.rooms, None)
    truth.set_title(f"The truth at {clock_text(moment.time)} UTC, and the {TRAIL} frames before")
    shown = moment.settled or moment.live
    map_on(found, site.physics, shown.shown, "expected sources")
    sources_on(found, site, summary.trails, zip(shown.labels, shown.sources, strict=True))
    found.set_title("What an analyst learns (dots: the truth)")
    for panel, size in ((truth, 10), (found, 5)):
        panel.plot(*np.array(moment.people).reshape(-1, 2).T, "o", color="#1f5fa8", markersize=size, zorder=7)
    _timeline(axes["when"], site, morning)
    save(figure, path)


def _timeline(axes: Any, site: Site, morning: Sequence[MorningFrame]) -> None:
    """Draw the probability that each room is occupied as a shade, and the truth as a line above."""
    minutes = np.array([(one.time - morning[0].time) / 60_000 for one in morning])
    for row, zone in enumerate(reversed(site.zones)):
        known = [(one.settled or one.live).tracked for one in morning]
        odds = [0.0 if estimate is None else estimate.anyone(zone.places) for estimate in known]
        axes.fill_between(minutes, row, row + 0.7 * np.array(odds), color="#e07b39", alpha=0.8, linewidth=0)
        inside = [any(site.physics.space.index(at) in zone.places for at in one.people) for one in morning]
        axes.plot(minutes, np.where(inside, row + 0.8, np.nan), color="#1f5fa8", linewidth=3)
    axes.axvline(minutes[SHOWN_FRAME], color="#777777", linewidth=1, linestyle=":")
    axes.set_yticks(np.arange(len(site.zones)) + 0.35, [zone.label for zone in reversed(site.zones)])
    axes.set(xlim=(minutes[0], minutes[-1]), xlabel=f"minutes after {clock_text(morning[0].time)} UTC")
    axes.set_title("Someone in the room: how likely (shade), and the truth (line)")
    axes.spines[:].set_visible(False)
