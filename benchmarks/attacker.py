"""The attacker's view of the demo: how often a mark of at least 90 % probability holds a person in its vicinity.

Days of the demo's people at a reading a minute, each with other noise, and what the tracker of `/attack` finds at many
of their moments. Unlike `/attack`, it has as much time as it needs, so a busy machine cuts no span short. Someone who
sits for hours is held or missed for hours, so one day says little: hours scatter from 55 to 100 %.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from rich.table import Table

from cloakwork.collect import CollectedSite
from cloakwork.collect.attack import Span
from cloakwork.demo import family
from cloakwork.physics import FloorPlan, sources
from cloakwork.readings import Frame, FrameRecovery, FrameTracker
from cloakwork.site import freeze
from scripts.plain_flat import plain_flat

SEEDS = (5, 6, 7)  # of the noise of each day
SURE = 0.9
ASKED = {Span.WINDOW: 20, Span.HOUR: 60}  # minutes from one question to the next
GOAL = (0.85, 0.95)
BLOCK = 60  # frames: moments of one hour are alike, hours hardly
DAY = 1440  # minutes


def run() -> tuple[Table, bool]:
    """The table, and whether the goals are met."""
    with ProcessPoolExecutor() as pool:
        days = list(pool.map(one_day, SEEDS))
    table = Table(title=f"Marks of at least {100 * SURE:.0f} % in the attacker's view of {len(days)} days of the demo")
    for name in ("readings kept", "moments", "marks", "with a person in the vicinity", "goal"):
        table.add_column(name, justify="left" if name == "readings kept" else "right")
    good = True
    for span in Span:
        marks = [(number * DAY + k, hit) for number, day in enumerate(days) for k, hit in day[span]]
        share, error = held(marks)
        met = GOAL[0] <= share <= GOAL[1]
        good &= met
        moments = len({k for k, _ in marks})
        goal = f"{100 * GOAL[0]:.0f} to {100 * GOAL[1]:.0f} %: {'met' if met else 'MISSED'}"
        table.add_row(span.value, str(moments), str(len(marks)), f"{100 * share:.1f} ± {100 * error:.1f} %", goal)
    table.caption = "± is one standard error, from the scatter between the hours of the days."
    return table, good


def one_day(seed: int) -> dict[Span, list[tuple[int, bool]]]:
    """The sure marks of each span through a day: at which minute, and whether a person is in the vicinity."""
    site = plain_flat()
    watched = CollectedSite(site, freeze(site, site.cloak()))
    frames, people = demo_day(watched, DAY, seed)
    asked = {span: list(_asked(watched, frames, people, span)) for span in ASKED}
    return asked | {Span.DAY: list(_day(watched, frames, people))}


def demo_day(watched: CollectedSite, minutes: int, seed: int) -> tuple[list[Frame], list[set[int]]]:
    """Noisy frames from the demo's morning on, and the places of everyone at home in each."""
    site, cloak, period = watched.site, watched.cloak, watched.schedule.period_ms
    assert isinstance(site.physics, FloorPlan)
    household, rng = family(site.physics.rooms), np.random.default_rng(seed)
    frames, people = [], []
    for k in range(minutes):
        there = household.at(k * period)
        clean = site.physics.apply(sources(site.physics, list(there))) + site.baselines
        steps = cloak.to_steps(cloak.simulate(clean, rng=rng))
        frames.append(Frame((k + 1) * period, steps, np.ones(len(steps), dtype=np.bool_)))
        people.append({site.physics.rooms.cell_at(*at) for at in there})
    return frames, people


def held(marks: Sequence[tuple[int, bool]]) -> tuple[float, float]:
    """The share of marks that hold a person, and its standard error by a jackknife over the hours."""
    hours = np.array([k // BLOCK for k, _ in marks])
    inside = np.array([hit for _, hit in marks], dtype=float)
    without = np.array([inside[hours != hour].mean() for hour in np.unique(hours)])
    return float(inside.mean()), float(np.sqrt((len(without) - 1) * without.var()))


def _asked(
    watched: CollectedSite, frames: Sequence[Frame], people: Sequence[set[int]], span: Span
) -> Iterator[tuple[int, bool]]:
    """The marks of `/attack` for a span, asked every few minutes."""
    size = round(span.milliseconds(watched) / watched.schedule.period_ms)
    for k in range(size - 1, len(frames), ASKED[span]):
        tracker = FrameTracker(watched.site, watched.cloak, lag=watched.lag)
        moments = [tracker.step(frame) for frame in frames[k + 1 - size : k + 1]]
        yield from _sure(k, moments[-1], people[k])


def _day(watched: CollectedSite, frames: Sequence[Frame], people: Sequence[set[int]]) -> Iterator[tuple[int, bool]]:
    """The same for everything since the first frame, at every moment."""
    tracker = FrameTracker(watched.site, watched.cloak, lag=watched.lag)
    for k, frame in enumerate(frames):
        yield from _sure(k, tracker.step(frame), people[k])


def _sure(k: int, moment: FrameRecovery, people: set[int]) -> Iterator[tuple[int, bool]]:
    for source in moment.sources:
        if source.probability >= SURE:
            yield k, bool(people & set(source.vicinity.tolist()))
