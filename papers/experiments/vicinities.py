"""Does a vicinity hold its source as often as it says?"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment

from cloakwork._checks import FloatArray, IntArray
from cloakwork.physics import Physics, Space
from cloakwork.privacy import Cloak
from cloakwork.recovery import PointSources, Source, recover
from papers.experiment import Experiment, Progress, stream
from papers.pieces import Piece, Pieces
from papers.result import Finding, Goal, Measure, Table
from papers.scenes import Strengths, flat_cloak, line_cloak
from papers.style import FAINT, INK, Dots, counted, draw_dots, legend_below

LEVEL, TOLERATED = 0.9, 0.02
MOST = 3
FRAMES = 4000
QUICK_FRAMES = {"line, unit": 200, "line, free": 130, "rooms, unit": 80}  # the slowest is left out
CLEAR = 2.0  # standard errors that a share must be off before it is said to be
PIECE = 500  # frames, with random numbers of their own
CLOAKS: dict[str, Callable[[], Cloak]] = {"line": line_cloak, "rooms": flat_cloak}


@dataclass(frozen=True)
class Tally:
    """Of frames with `count` sources: sources in all, those held, vicinities listed, and places in these together.

    `error` is the standard error of the share that is held.
    """

    count: int
    sources: int
    held: int
    error: float
    listed: int
    places: int

    @property
    def share(self) -> float:
        """Share of the sources that were held."""
        return self.held / max(self.sources, 1)


@dataclass(frozen=True)
class Coverage:
    """One setting: its tallies, and the standard error of the share of sources that were held."""

    setting: str
    strengths: Strengths
    places: int
    frames: int
    tallies: tuple[Tally, ...]
    error: float
    frames_per_second: float = field(compare=False)

    @property
    def name(self) -> str:
        """The setting in a few words."""
        return name_of(self.setting, self.strengths)

    @property
    def held(self) -> float:
        """Share of all sources that were held."""
        return sum(tally.held for tally in self.tallies) / sum(tally.sources for tally in self.tallies)

    @property
    def mean_size(self) -> float:
        """Mean number of places in a vicinity."""
        return sum(tally.places for tally in self.tallies) / max(sum(tally.listed for tally in self.tallies), 1)

    @property
    def said(self) -> str:
        """The share that is held, and how far that is from what was promised."""
        off = self.held - LEVEL
        share = f"{self.name} {100 * self.held:.1f} ± {100 * self.error:.1f} %"
        if abs(off) <= CLEAR * self.error:
            return f"{share}, as promised within the error"
        return f"{share}, that is {100 * abs(off):.1f} {'above' if off > 0 else 'below'}"


@dataclass(frozen=True)
class Calibrated(Finding):
    """How often 90 % vicinities hold their source, when the truth is drawn from what the estimator assumes."""

    size: ClassVar[tuple[float, float]] = (10.0, 3.8)
    settings: tuple[Coverage, ...]

    def tables(self) -> tuple[Table, ...]:
        rows = [
            (
                one.name,
                f"{100 * one.held:.1f} ± {100 * one.error:.1f}",
                *(f"{100 * tally.share:.1f}" for tally in one.tallies),
                f"{one.mean_size:.1f} of {one.places}",
                f"{one.frames:,}",
                f"{one.frames_per_second:.0f}",
            )
            for one in self.settings
        ]
        names = ("held", "of 1", "of 2", "of 3", "places in it", "frames", "frames/s by the clock of this run")
        title = f"Percent of sources held by their {100 * LEVEL:.0f} % vicinity"
        return (Table(title, ("", *names), tuple(rows)),)

    def measures(self) -> tuple[Measure, ...]:
        return tuple(
            Measure(f"{one.name}: held", one.held, max(one.error, 0.5 / one.frames), share=True)
            for one in self.settings
        )

    def words(self) -> tuple[str, ...]:
        worst = min((tally for one in self.settings for tally in one.tallies), key=lambda tally: tally.share)
        best = max((tally for one in self.settings for tally in one.tallies), key=lambda tally: tally.share)
        return (
            "`PointSources` gives each source a vicinity and says how often such vicinities hold their source. Here "
            f"the truth is drawn from what it assumes: one to {MOST} sources, anywhere on a line or in three rooms, of "
            f"strength 1 or any up to it. {100 * LEVEL:.0f} % of all sources are promised to be held. Found: "
            f"{'; '.join(one.said for one in self.settings)}.",
            "What is promised is a mean over all numbers of sources, and not the same for each: in frames "
            f"with {counted(best.count)} up to {100 * best.share:.1f} % were held, in frames with "
            f"{counted(worst.count)} as few as {100 * worst.share:.1f} %.",
        )

    def goals(self) -> tuple[Goal, ...]:
        return tuple(
            Goal(
                f"{one.name}: held 88 to 92 %",
                f"{100 * one.held:.1f} ± {100 * one.error:.1f} %",
                abs(one.held - LEVEL) <= TOLERATED,
            )
            for one in self.settings
        )

    def draw(self, figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        low, high = 100 * (LEVEL - TOLERATED), 100 * (LEVEL + TOLERATED)
        left.axvspan(low, high, color="#e8f0e4", label=f"{low:.0f} to {high:.0f} %")
        left.axvline(100 * LEVEL, color=FAINT, linewidth=1)
        rows = [f"{one.setting}, {one.places} places\n{one.strengths}" for one in self.settings]
        shares, errors = [100 * one.held for one in self.settings], [100 * one.error for one in self.settings]
        series = [Dots("all sources", shares, errors, INK, "o")]
        for k in range(MOST):
            own = [one.tallies[k] for one in self.settings]
            series.append(Dots.of_count(k + 1, [100 * t.share for t in own], [100 * t.error for t in own]))
        draw_dots(left, rows, series)
        left.set_title("How often a 90 % vicinity holds its source")
        left.set_xlabel("percent of sources held (bars: two standard errors)")
        for row, one in enumerate(self.settings):
            percent = 100 * one.mean_size / one.places
            right.barh(row, percent, height=0.45, color=FAINT)
            right.text(percent, row, f"  {one.mean_size:.1f} of {one.places}", va="center", color=INK, fontsize=9)
        right.set_title("How large it is")
        right.set_xlabel("percent of all places, mean")
        right.margins(x=0.4)
        legend_below(figure, left)


@dataclass(frozen=True, eq=False)
class Truth:
    """Places of the sources of each frame, and the true readings (frames, m)."""

    places: tuple[IntArray, ...]
    readings: FloatArray


def _cut(*, quick: bool, seed: int) -> list[Piece["Tried"]]:
    cells = [
        (name, strengths, (seed, which, how))
        for which, name in enumerate(CLOAKS)
        for how, strengths in enumerate(Strengths)
        if not quick or name_of(name, strengths) in QUICK_FRAMES
    ]
    return [
        piece
        for name, strengths, key in cells
        for piece in pieces(name, strengths, QUICK_FRAMES[name_of(name, strengths)] if quick else FRAMES, key)
    ]


def _join(tried: Sequence["Tried"]) -> Calibrated:
    settings = dict.fromkeys((one.setting, one.strengths) for one in tried)
    return Calibrated(
        tuple(coverage([one for one in tried if (one.setting, one.strengths) == setting]) for setting in settings)
    )


def name_of(setting: str, strengths: Strengths) -> str:
    """A setting in a few words."""
    return f"{setting}, {strengths.short}"


def pieces(setting: str, strengths: Strengths, frames: int, key: tuple[int, ...]) -> Iterator[Piece["Tried"]]:
    """Frames of one setting, so many at once."""
    for number, start in enumerate(range(0, frames, PIECE)):
        size = min(PIECE, frames - start)
        make = partial(try_some, setting, strengths, size, (*key, number))
        yield Piece(f"{setting}-{strengths.short}-{number}", size, make)


def coverage(tried: Sequence["Tried"]) -> Coverage:
    """How often vicinities hold their source in one setting."""
    setting, strengths = tried[0].setting, tried[0].strengths
    tallies = tuple(_tally(tried, count) for count in range(1, MOST + 1))
    counts, held = (_joined(tried, name) for name in ("counts", "held"))
    seconds = sum(one.seconds for one in tried)
    places = CLOAKS[setting]().physics.places
    return Coverage(setting, strengths, places, len(counts), tallies, _error(held, counts), len(counts) / seconds)


@dataclass(frozen=True)
class Tried:
    """For each frame of one setting: sources, sources held, vicinities listed, places in them; and the time it took."""

    setting: str
    strengths: Strengths
    counts: tuple[int, ...]
    held: tuple[int, ...]
    listed: tuple[int, ...]
    places: tuple[int, ...]
    seconds: float


def _joined(tried: Sequence[Tried], name: str) -> IntArray:
    return np.concatenate([np.array(getattr(one, name), dtype=np.int64) for one in tried])


def _tally(tried: Sequence[Tried], count: int) -> Tally:
    """Of the frames with so many sources."""
    counts = _joined(tried, "counts")
    mine = counts == count
    held, listed, places = (_joined(tried, name)[mine] for name in ("held", "listed", "places"))
    error = _error(held, counts[mine])
    return Tally(count, count * int(mine.sum()), int(held.sum()), error, int(listed.sum()), int(places.sum()))


def try_some(setting: str, strengths: Strengths, frames: int, key: tuple[int, ...], progress: Progress) -> Tried:
    """Draw frames from the prior, recover them and look which sources are held."""
    cloak, rng = CLOAKS[setting](), stream(*key)
    truth = draw_truth(cloak.physics, strengths, frames, rng)
    noisy = cloak.simulate(truth.readings, rng=rng)
    estimator = PointSources(strengths.told, most=MOST, least=1, level=LEVEL)
    recover(noisy[:1], cloak, estimator=estimator)  # what is compiled or cached is not timed
    began = time.perf_counter()
    found = recover(noisy, cloak, estimator=estimator, progress=progress).sources
    seconds = time.perf_counter() - began
    pairs = zip(truth.places, found, strict=True)
    return Tried(
        setting,
        strengths,
        counts=tuple(len(places) for places in truth.places),
        held=tuple(held_in(places, listed, cloak.physics.space) for places, listed in pairs),
        listed=tuple(len(listed) for listed in found),
        places=tuple(sum(len(source.vicinity) for source in listed) for listed in found),
        seconds=seconds,
    )


def draw_truth(physics: Physics, strengths: Strengths, frames: int, rng: np.random.Generator) -> Truth:
    """Counts uniform from 1 to 3, places uniform, anywhere in their cells where the physics knows a between."""
    places, readings = [], np.empty((frames, physics.sensors))
    along = physics.space.places
    step = float(physics.space.lengths.min())
    for frame in range(frames):
        count = int(rng.integers(1, MOST + 1))
        at = rng.integers(0, physics.places, count)
        columns = physics.columns_at(along[at] + step * rng.uniform(-0.5, 0.5, (count, along.shape[1])))
        readings[frame] = (physics.matrix[:, at] if columns is None else columns) @ strengths.draw(rng, count)
        places.append(at)
    return Truth(tuple(places), readings)


def held_in(places: IntArray, listed: Sequence[Source], space: Space) -> int:
    """How many sources are in the vicinity that is theirs: matched one to one by the distance between centres."""
    if not listed:
        return 0
    centres = np.array([source.place for source in listed], dtype=np.int64)
    apart = np.nan_to_num(space.distance_table[np.ix_(places, centres)], posinf=1e9)
    mine, theirs = linear_sum_assignment(apart)
    return sum(int(places[i]) in listed[j].vicinity for i, j in zip(mine.tolist(), theirs.tolist(), strict=True))


def _error(held: IntArray, counts: IntArray) -> float:
    """Standard error of the share held; sources of one frame are held or missed together, so frames count."""
    total = max(int(counts.sum()), 1)
    return float(np.sqrt(((held - counts * (held.sum() / total)) ** 2).sum()) / total)


EXPERIMENT = Experiment(
    "vicinities",
    "How often a 90 % vicinity holds its source",
    Calibrated,
    Pieces(_cut, _join, Tried),
    minutes=20.0,
)
