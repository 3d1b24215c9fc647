"""The picture and report of one frame of the demonstration: the truth, the noisy readings and two recoveries."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy import optimize

from cloakwork._checks import FloatArray, rounded_up
from cloakwork.accuracy import bayes_risk, emd
from cloakwork.cli.draw import cross, floor, save
from cloakwork.cli.output import say, table
from cloakwork.collect import CollectedSite, Result
from cloakwork.physics import FloorPlan, sources
from cloakwork.privacy import Cloak
from cloakwork.recovery import Recovery, recover
from cloakwork.site import clock_ms

Position = tuple[float, float]
PEOPLE: dict[str, Position] = {"reading on the sofa": (2.1, 2.4), "asleep": (8.6, 6.6), "at the desk": (8.4, 1.6)}
FURNITURE = {
    "sofa": (1.2, 1.5, 1.8, 0.7),
    "table": (2.6, 5.2, 1.6, 1.0),
    "kitchen": (0.1, 7.3, 4.0, 0.6),
    "bed ": (7.2, 5.9, 1.8, 1.4),
    "bed": (8.1, 2.4, 1.8, 1.4),
    "desk": (7.6, 0.7, 1.6, 0.7),
}


@dataclass(frozen=True)
class _Mark:
    """A recovered source, and the radius of its vicinity."""

    at: Position
    radius: float


@dataclass(frozen=True, eq=False)
class _View:
    """One recovery of the frame: its name, its sources, its map, and the values that the picture shows."""

    name: str
    marks: Sequence[_Mark]
    map: FloatArray
    shown: FloatArray


def show_picture(path: Path, watched: CollectedSite, result: Result, steps: Mapping[str, int]) -> None:
    """Print a table, draw a picture, and explain both. `steps` are the noisy readings of `result`."""
    flat, cloak = watched.site.physics, watched.cloak
    if not isinstance(flat, FloorPlan) or result.map is None or result.counts is None:
        raise TypeError("the demonstration is of point sources on a floor plan")
    noisy = np.array([steps[name] for name in watched.ids]) * cloak.steps - watched.baselines
    chances = np.frombuffer(zlib.decompress(result.map), "<f4").astype(np.float64)
    marks = [_Mark((spot.at[0], spot.at[1]), spot.radius) for spot in result.sources]
    ours = _View("posterior", marks, sources(flat, [mark.at for mark in marks]), chances / flat.rooms.cell**2)
    papers = _by_the_papers(recover(noisy, cloak), flat.places)
    _draw(path, flat, noisy / cloak.sigmas, papers, ours)
    _report(flat, papers, ours)
    likely = ", ".join(f"{k}: {100 * p:.0f} %" for k, p in enumerate(result.counts) if p >= 0.005)
    say(f"Number of people, by the posterior: {likely}.")
    say(f"Both use the same noisy readings. The site file leads to the posterior: {watched.estimator.reason}.")
    _explain(watched, float(flat.matrix.max()))


def _by_the_papers(found: Recovery, places: int) -> _View:
    """The smallest total that fits, shown as the weight that may be in each cell."""
    spread = np.zeros(places)
    for source in found.sources:
        spread[source.vicinity] += source.weight
    marks = [_Mark((float(x), float(y)), source.radius) for source in found.sources for x, y in [np.asarray(source.at)]]
    return _View("smallest total", marks, found.map, spread)


def _explain(watched: CollectedSite, warmth: float) -> None:
    claim, cloak = watched.plan.claim, watched.cloak
    say(
        f"What this means: each of {len(watched.ids)} devices added noise to its own reading before sending it, with a "
        f"standard deviation from {cloak.sigmas.min():.2f} degrees for the most useful sensors up to "
        f"{cloak.sigmas.max():.0f} for those that would reveal too much (one person warms the sensor above by "
        f"{warmth:.2f}). An observer who sees all {claim.readings_per_window} readings of all devices in "
        f"{claim.window:.0f} s cannot be sure whether a person moved by {claim.alpha:g} m: any event is at most "
        f"e^{claim.epsilon:g} times likelier either way, plus {claim.delta:g}. The observer still learns roughly where "
        "people are. Presence, the number of people and the side of a wall they are on are not hidden."
    )
    hour, day = (watched.schedule.most(clock_ms(seconds)) for seconds in (3_600, 86_400))
    now, hour_later, day_later = (_right(cloak, readings) for readings in (claim.readings_per_window, hour, day))
    say(
        "Someone who stays is found: if there is one person, who sits, the best guess names the right one of "
        f"{cloak.physics.places:,} cells in up to {now} % of cases from that time, {hour_later} % from an hour and "
        f"{day_later} % from a day."
    )
    equal, own = cloak.design_report.equal_vicinity, cloak.design_report.vicinity
    say(
        f"At the same guarantee, equal noise for all sensors would locate a lone person who stays in place to "
        f"{equal:.2f} m (Cramer-Rao bound at a typical place, from all readings) instead of {own:.2f} m."
    )
    say("The readings passed from the devices through a broker to the collector, which recovered this result.")


def _right(cloak: Cloak, readings: int) -> str:
    return rounded_up(100 * bayes_risk(cloak.physics, cloak.sigmas, readings=readings).right_place, 3)


def _report(flat: FloorPlan, papers: _View, ours: _View) -> None:
    matched = [_matched(view.marks) for view in (papers, ours)]
    rows = []
    for number, (who, at) in enumerate(PEOPLE.items()):
        theirs, mine = (_cells(marks.get(number), at) for marks in matched)
        rows.append((who, f"{at[0]:.1f}, {at[1]:.1f}", theirs[0], *mine))
    table("Three people in a flat", ("person", "is at", papers.name, ours.name, "within"), rows)
    truth = sources(flat, list(PEOPLE.values()))
    for view in (papers, ours):
        if view.map.sum() > 0:
            far = emd(view.map, truth, flat.space)
            say(f"{view.name}: its map is {far:.2f} m from the truth (earth mover distance).")


def _matched(marks: Sequence[_Mark]) -> dict[int, _Mark]:
    """The recovered source of each person, if any, matched one to one."""
    apart = np.array([[_apart(mark, at) for mark in marks] for at in PEOPLE.values()]).reshape(len(PEOPLE), -1)
    pairs = zip(*optimize.linear_sum_assignment(apart), strict=True)
    return {int(person): marks[int(mark)] for person, mark in pairs}


def _cells(mark: _Mark | None, at: Position) -> tuple[str, str]:
    """The position and error of a recovered source, and the radius of its vicinity."""
    if mark is None:
        return "not found", ""
    return f"{mark.at[0]:.1f}, {mark.at[1]:.1f}: {_apart(mark, at):.2f} m", f"{mark.radius:.2f} m"


def _apart(mark: _Mark, at: Position) -> float:
    return float(np.hypot(mark.at[0] - at[0], mark.at[1] - at[1]))


def _draw(path: Path, flat: FloorPlan, noisy: FloatArray, papers: _View, ours: _View) -> None:
    """`noisy` has the readings divided by the noise of each sensor."""
    figure = Figure(figsize=(12, 10.4), layout="constrained")
    (first, second), (third, fourth) = figure.subplots(2, 2)
    floor(first, flat.rooms, None)
    first.set_title("The truth: three people at home")
    floor(second, flat.rooms, None)
    second.set_title("What the sensors send: temperature plus noise")
    size = float(np.abs(noisy).max())
    x, y = flat.sensor_positions.T
    dots = second.scatter(
        x, y, c=noisy, cmap="coolwarm", vmin=-size, vmax=size, s=90, edgecolors="#555555", linewidths=0.5
    )
    figure.colorbar(dots, ax=second, label="reading over its noise", shrink=0.8)
    mesh = floor(third, flat.rooms, papers.shown)
    third.set_title("Smallest total that fits (the papers' recovery)")
    figure.colorbar(mesh, ax=third, label="weight that may be here", shrink=0.8)
    mesh = floor(fourth, flat.rooms, ours.shown)
    fourth.set_title("What an analyst learns: the posterior of point sources")
    figure.colorbar(mesh, ax=fourth, label="people per square metre", shrink=0.8)
    for axes, view in ((third, papers), (fourth, ours)):
        for mark in view.marks:
            cross(axes, mark.at)
        axes.plot([], [], "x", color="#b3261e", markeredgewidth=2, label="recovered; shaded: possible places")
    for axes in (first, third, fourth):
        _furnish(axes)
        for number, at in enumerate(PEOPLE.values()):
            axes.plot(*at, "o", color="#1f5fa8", markersize=9, label="person" if number == 0 else None)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False)
    save(figure, path)


def _furnish(axes: Any) -> None:
    for name, (x, y, width, height) in FURNITURE.items():
        axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="#999999", linewidth=1))
        axes.text(x + width / 2, y + height / 2, name.strip(), ha="center", va="center", fontsize=7, color="#777777")
