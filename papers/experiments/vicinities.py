"""How often the 90 % vicinities of the posterior contain their source."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import FloorPlan, Physics, Rooms, Space, Steady
from cloakwork.privacy import Cloak
from cloakwork.recovery import PointSources, Source, recover
from papers.drawing import FAINT, INK, Dots, draw_dots, legend_below
from papers.experiment import Experiment, Run, stream
from papers.result import Finding, Goal, Measure
from papers.trials import Setting, Strengths

LEVEL, TOLERATED = 0.9, 0.02
MOST = 3
FRAMES = 4000
QUICK_FRAMES = {("line", Strengths.UNIT): 200, ("line", Strengths.FREE): 130, ("rooms", Strengths.UNIT): 80}
PROBE_FRAMES = {("line", Strengths.UNIT): 6, ("line", Strengths.FREE): 2, ("rooms", Strengths.UNIT): 2}
PIECE = 500  # frames with random numbers of their own


@cache
def flat_cloak() -> Cloak:
    """Three rooms of 10 m x 10 m in 400 cells, 100 sensors, people with a reach of 1 m and a footprint of 0.5 m.

    A move by 0.3 m is hidden at (4, 1e-5).
    """
    walls = [((5, 0), (5, 10)), ((0, 5), (5, 5))]
    doors = [((5, 4), (5, 6)), ((2, 5), (3, 5))]
    rooms = Rooms.from_walls((10, 10), cell=0.5, walls=walls, doors=doors)
    along = np.arange(0.5, 10, 1.0)
    plan = FloorPlan(rooms, [(x, y) for x in along for y in along], Steady(1.0), footprint=0.5)
    return Cloak(plan, epsilon=4.0, delta=1e-5, alpha=0.3)


CLOAKS: dict[str, Callable[[], Cloak]] = {"line": lambda: Setting().cloak(), "rooms": flat_cloak}


@dataclass(frozen=True)
class Tally:
    """Of frames with `count` sources: all sources, those contained, vicinities listed, and the places in these.

    `error` is the standard error of the share that is contained.
    """

    count: int
    sources: int
    held: int
    error: float
    listed: int
    places: int

    @property
    def share(self) -> float:
        return self.held / max(self.sources, 1)


@dataclass(frozen=True)
class Coverage:
    """One setting: its tallies, and the standard error of the share of sources that is contained."""

    setting: str
    strengths: Strengths
    places: int
    frames: int
    tallies: tuple[Tally, ...]
    error: float
    frames_per_second: float = field(compare=False)

    @property
    def name(self) -> str:
        return f"{self.setting}, {self.strengths}"

    @property
    def held(self) -> float:
        return sum(tally.held for tally in self.tallies) / sum(tally.sources for tally in self.tallies)

    @property
    def percent(self) -> str:
        return f"{100 * self.held:.1f} ± {100 * self.error:.1f}"

    @property
    def mean_size(self) -> float:
        return sum(tally.places for tally in self.tallies) / max(sum(tally.listed for tally in self.tallies), 1)


@dataclass(frozen=True)
class Calibrated(Finding):
    """How often 90 % vicinities contain their source, when the truth is drawn from the estimator's prior."""

    size: ClassVar[tuple[float, float]] = (10.0, 3.8)
    settings: tuple[Coverage, ...]

    def measures(self) -> tuple[Measure, ...]:
        return tuple(
            Measure(f"{one.name}: contained", one.held, max(one.error, 0.5 / one.frames), share=True)
            for one in self.settings
        )

    def text(self) -> str:
        return (
            "`PointSources` gives each source a vicinity and a level: how often such vicinities contain their source. "
            f"Here the truth is drawn from its prior: one to {MOST} sources, anywhere on a line or in three rooms. The "
            "level holds on average over all numbers of sources, not for each number."
        )

    def goals(self) -> tuple[Goal, ...]:
        return tuple(
            Goal(f"{one.name}: 88 to 92 % contained", f"{one.percent} %", abs(one.held - LEVEL) <= TOLERATED)
            for one in self.settings
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        low, high = 100 * (LEVEL - TOLERATED), 100 * (LEVEL + TOLERATED)
        left.axvspan(low, high, color="#e8f0e4", label=f"{low:.0f} to {high:.0f} %")
        left.axvline(100 * LEVEL, color=FAINT, linewidth=1)
        shares, errors = [100 * one.held for one in self.settings], [100 * one.error for one in self.settings]
        series = [Dots("all sources", shares, errors, INK, "o")]
        for k in range(MOST):
            tallies = [one.tallies[k] for one in self.settings]
            series.append(
                Dots.for_count(k + 1, [100 * one.share for one in tallies], [100 * one.error for one in tallies])
            )
        draw_dots(left, [f"{one.setting}, {one.places} places\n{one.strengths}" for one in self.settings], series)
        left.set_title("How often a 90 % vicinity contains its source")
        left.set_xlabel("percent of sources contained (bars: two standard errors)")
        for row, one in enumerate(self.settings):
            percent = 100 * one.mean_size / one.places
            right.barh(row, percent, height=0.45, color=FAINT)
            right.text(percent, row, f"  {one.mean_size:.1f} of {one.places}", va="center", color=INK, fontsize=9)
        right.set_title("How large it is")
        right.set_xlabel("percent of all places, mean")
        right.margins(x=0.4)
        legend_below(figure, [left])


@dataclass(frozen=True)
class Tried:
    """For each frame of one setting: sources, sources contained, vicinities, places in them; and the time it took."""

    setting: str
    strengths: Strengths
    counts: tuple[int, ...]
    held: tuple[int, ...]
    listed: tuple[int, ...]
    places: tuple[int, ...]
    seconds: float


def try_frames(setting: str, strengths: Strengths, frames: int, key: tuple[int, ...]) -> Tried:
    """Draw frames from the prior, recover them, and count the sources that are contained."""
    cloak, rng = CLOAKS[setting](), stream(*key)
    places, readings = draw_truth(cloak.physics, strengths, frames, rng)
    noisy = cloak.simulate(readings, rng=rng)
    estimator = PointSources(strengths.prior, max_sources=MOST, min_sources=1, confidence=LEVEL)
    recover(noisy[:1], cloak, estimator=estimator)  # compiles and fills caches before the clock starts
    began = time.perf_counter()
    found = recover(noisy, cloak, estimator=estimator).sources
    seconds = time.perf_counter() - began
    return Tried(
        setting,
        strengths,
        counts=tuple(len(at) for at in places),
        held=tuple(count_contained(at, listed, cloak.physics.space) for at, listed in zip(places, found, strict=True)),
        listed=tuple(len(listed) for listed in found),
        places=tuple(sum(len(source.vicinity) for source in listed) for listed in found),
        seconds=seconds,
    )


def draw_truth(
    physics: Physics, strengths: Strengths, frames: int, rng: np.random.Generator
) -> tuple[list[IntArray], FloatArray]:
    """Draw the places of the sources of each frame, and the true readings (frames, m).

    Counts are uniform from 1 to 3, places uniform, and anywhere in their cells where the physics allows positions
    between places.
    """
    places, readings = [], np.empty((frames, physics.sensors))
    along = physics.space.places
    step = float(physics.space.lengths.min())
    for frame in range(frames):
        count = int(rng.integers(1, MOST + 1))
        at = rng.integers(0, physics.places, count)
        columns = physics.columns_at(along[at] + step * rng.uniform(-0.5, 0.5, (count, along.shape[1])))
        readings[frame] = (physics.matrix[:, at] if columns is None else columns) @ strengths.draw(rng, count)
        places.append(at)
    return places, readings


def count_contained(places: IntArray, listed: Sequence[Source], space: Space) -> int:
    """Count the sources in their own vicinity; the two are matched one to one by the distance between centres."""
    if not listed:
        return 0
    centres = np.array([source.place for source in listed], dtype=np.int64)
    apart = np.nan_to_num(space.distance_table[np.ix_(places, centres)], posinf=1e9)
    pairs = zip(*linear_sum_assignment(apart), strict=True)
    return sum(int(places[i]) in listed[int(j)].vicinity for i, j in pairs)


def coverage(tried: Sequence[Tried]) -> Coverage:
    """How often vicinities contain their source in one setting."""
    setting, strengths = tried[0].setting, tried[0].strengths
    names = ("counts", "held", "listed", "places")
    counts, held, listed, places = (np.concatenate([getattr(one, name) for one in tried]) for name in names)
    tallies = []
    for count in range(1, MOST + 1):
        mine = counts == count
        sums = [int(values[mine].sum()) for values in (held, listed, places)]
        error = _error(held[mine], counts[mine])
        tallies.append(Tally(count, count * int(mine.sum()), sums[0], error, sums[1], sums[2]))
    speed = len(counts) / sum(one.seconds for one in tried)
    all_places = CLOAKS[setting]().physics.places
    return Coverage(setting, strengths, all_places, len(counts), tuple(tallies), _error(held, counts), speed)


def _error(held: IntArray, counts: IntArray) -> float:
    """The standard error of the share contained; sources of one frame depend on each other, so frames count."""
    total = max(int(counts.sum()), 1)
    return float(np.sqrt(((held - counts * (held.sum() / total)) ** 2).sum()) / total)


def _work(run: Run) -> Calibrated:
    everything = {(name, strengths): FRAMES for name in CLOAKS for strengths in Strengths}
    chosen = run.choose(everything, QUICK_FRAMES, PROBE_FRAMES)
    pieces = [(*case, start, frames) for case, frames in chosen.items() for start in range(0, frames, PIECE)]
    tried: dict[tuple[str, Strengths], list[Tried]] = {}
    for name, strengths, start, frames in run.each(pieces):
        number = start // PIECE
        key = (run.seed, list(CLOAKS).index(name), list(Strengths).index(strengths), number)
        part = try_frames(name, strengths, min(PIECE, frames - start), key)
        tried.setdefault((name, strengths), []).append(part)
    return Calibrated(tuple(coverage(parts) for parts in tried.values()))


EXPERIMENT = Experiment("vicinities", "How often a 90 % vicinity contains its source", Calibrated, _work, minutes=20.0)
