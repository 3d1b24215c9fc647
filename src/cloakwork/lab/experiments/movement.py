"""People who really moved, through the whole chain: readings, noise, recovery; a film and its errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from cloakwork.lab.experiment import Experiment, Progress, part, stream
from cloakwork.lab.recorded import POSITIONS, Position, data_file, needed
from cloakwork.lab.result import Finding, Goal, Measure, Table
from cloakwork.lab.style import FAINT, INK, MARKERS, SERIES
from cloakwork.lab.trials import Mean
from cloakwork.lab.walks import Movement, recorded, walking
from cloakwork.measure import cramer_rao, emd
from cloakwork.physics import FloorPlan, Rooms, Steady
from cloakwork.privacy import Calibration, Cloak, Design
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, Radius, recover

WALLS = (((6.0, 0.0), (6.0, 8.0)), ((6.0, 4.0), (10.0, 4.0)))
DOORS = (((6.0, 1.5), (6.0, 3.0)), ((6.0, 5.0), (6.0, 6.5)))
EPSILON, DELTA, ALPHA = 8.0, 1e-5, 0.1
EVERY_MS, READINGS = 3_000, 20  # a reading every three seconds; the claim covers those of a minute together
MOST = 4
DRAWS, QUICK_MOMENTS = 4, 8  # of noise, for each moment; a quick run has one
STILLS = 7
BETTER = 2.5


class Method(StrEnum):
    """A way from people to a map."""

    PAPERS = "papers: their noise, R"
    EQUAL = "equal noise, posterior"
    OURS = "designed noise, posterior (ours)"

    @property
    def estimator(self) -> Estimator:
        """What it recovers with; the posterior knows that a person has strength 1, and that there are at most four."""
        return BasisPursuit(radius=Radius.PAPER) if self is Method.PAPERS else PointSources(1.0, most=MOST)


@cache
def flat() -> FloorPlan:
    """Three rooms of 10 m x 8 m in cells of half a metre, a sensor on each square metre, and people with 1 m reach."""
    rooms = Rooms.from_walls((10.0, 8.0), cell=0.5, walls=WALLS, doors=DOORS)
    at = [(x, y) for x in np.arange(0.5, 10).tolist() for y in np.arange(0.5, 8).tolist()]
    return FloorPlan(rooms, at, Steady(1.0), footprint=0.5)


@cache
def cloak_of(method: Method) -> Cloak:
    """The noise that a method adds; the claim is the same for all."""
    return Cloak(
        flat(),
        epsilon=EPSILON,
        delta=DELTA,
        alpha=ALPHA,
        readings_per_window=READINGS,
        calibration=Calibration.PAPER if method is Method.PAPERS else Calibration.EXACT,
        design=Design.LEAST_ERROR if method is Method.OURS else Design.EQUAL,
    )


@dataclass(frozen=True)
class Track:
    """How far the maps of one method are from the truth, in metres: at each moment, mean over draws of the noise."""

    method: Method
    sigma: float
    empty: float
    distances: tuple[float, ...]

    @property
    def mean(self) -> Mean:
        """Over all moments."""
        return Mean.of(np.array(self.distances))


@dataclass(frozen=True)
class Still:
    """One moment of the film: when, where people were, and the map of each method, one weight a cell."""

    seconds: float
    people: tuple[Position, ...]
    maps: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Film(Finding):
    """What becomes of people's movement; `recorded` says whether it is real, `told` where it comes from.

    `control` are the methods on made-up walks, which are the same in every run and need no recordings.
    """

    size: ClassVar[tuple[float, float]] = (12.0, 7.6)
    recorded: bool
    told: str
    seconds: tuple[float, ...]
    people: tuple[int, ...]
    draws: int
    tracks: tuple[Track, ...]
    guess: tuple[float, ...]
    limit: tuple[float, ...]
    stills: tuple[Still, ...]
    control: tuple[Track, ...]

    def of(self, method: Method) -> Track:
        """How one method did."""
        return next(track for track in self.tracks if track.method is method)

    @property
    def better(self) -> float:
        """The papers' mean distance over ours."""
        return self.of(Method.PAPERS).mean.value / self.of(Method.OURS).mean.value

    def tables(self) -> tuple[Table, ...]:
        rows = [
            (
                str(one.method),
                f"{one.mean.value:.2f} ± {one.mean.error:.2f}",
                f"{one.sigma:.3f}",
                f"{100 * one.empty:.0f} %",
            )
            for one in self.tracks
        ]
        rows.append(("a map that is the same everywhere", f"{np.mean(self.guess):.2f}", "-", "-"))
        rows.append(("Cramer-Rao limit, designed noise", f"{np.mean(self.limit):.2f}", "-", "-"))
        title = f"Mean earth mover distance in metres over {len(self.seconds)} moments, {self.draws} draws of the noise"
        walks = [(str(one.method), f"{one.mean.value:.2f} ± {one.mean.error:.2f}") for one in self.control]
        return (
            Table(title, ("", "distance", "median noise of a reading", "empty maps"), tuple(rows)),
            Table("The same on made-up walks of three people", ("", "distance"), tuple(walks)),
        )

    def goals(self) -> tuple[Goal, ...]:
        ours, guess = self.of(Method.OURS).mean.value, float(np.mean(self.guess))
        return (
            Goal(f"papers/ours at least {BETTER:g}", f"{self.better:.2f}", self.better >= BETTER),
            Goal("ours is at most half of a guess", f"{ours / guess:.2f}", ours <= guess / 2),
        )

    def measures(self) -> tuple[Measure, ...]:
        found = [_measure(f"made-up walks, {one.method}", one.distances) for one in self.control]
        if self.recorded:
            found += [_measure(f"recorded movement, {one.method}", one.distances) for one in self.tracks]
            found.append(_measure("recorded movement, a guess", self.guess))
        return tuple(found)

    def words(self) -> tuple[str, ...]:
        papers, equal, ours = (self.of(method).mean for method in Method)
        source = (
            f"People move {self.told}, as labelled by hand in the pictures of a camera on the ceiling, which are laid "
            "over three rooms; the walls are made up, and so people walk through them."
            if self.recorded
            else f"This run had no recordings, and so people move {self.told}. {needed(POSITIONS)}"
        )
        return (
            f"{source} {min(self.people)} to {max(self.people)} people at a time warm {flat().sensors} sensors, which "
            f"send a reading every {EVERY_MS // 1000} s; all readings of a minute together hide a move by {ALPHA:g} m "
            f"at ({EPSILON:g}, {DELTA:g}).",
            f"In the film strip crosses are where people were and shades are what an analyst recovers from one reading "
            f"of each sensor. Below, how far the maps are from the truth, walking: {papers.value:.2f} ± "
            f"{papers.error:.2f} m for the papers' noise and R, {ours.value:.2f} ± {ours.error:.2f} m for ours, "
            f"{self.better:.1f} times less. A map that is the same everywhere has {np.mean(self.guess):.2f} m, so the "
            f"papers' map says {'nothing' if papers.value >= float(np.mean(self.guess)) else 'little'} here.",
            f"With the exact noise, equal for all sensors, the posterior has {equal.value:.2f} m; sharing the noise "
            f"among sensors by design, at the same claim, gives the rest. The dotted line is the Cramer-Rao limit for "
            f"an analyst who knows how many people there are, {np.mean(self.limit):.2f} m on average: ours does not "
            "know, and from one reading it sometimes counts wrongly. An empty map counts as the same everywhere.",
        )

    def draw(self, figure: Figure) -> None:
        grid = figure.add_gridspec(4, len(self.stills), height_ratios=(1, 1, 1, 1.5))
        for column, still in enumerate(self.stills):
            panels = [figure.add_subplot(grid[row, column]) for row in range(3)]
            _draw_rooms(panels[0], still, None)
            for axes, shades, color in zip(panels[1:], still.maps, ("Oranges", "Blues"), strict=True):
                _draw_rooms(axes, still, np.array(shades), color)
            panels[0].set_title(f"{still.seconds:.0f} s", fontsize=9)
            if column == 0:
                for axes, name in zip(panels, ("truth", "papers", "ours"), strict=True):
                    axes.set_ylabel(name)
        self._draw_distances(figure.add_subplot(grid[3, :]))
        what = "recorded in an office" if self.recorded else "MADE UP: there were no recordings"
        figure.suptitle(
            f"Movement {what}; crosses are people, shades what is recovered", x=0.01, ha="left", fontsize=11
        )

    def _draw_distances(self, axes: Any) -> None:
        colors = (SERIES[1], FAINT, SERIES[0])
        for track, color, marker in zip(self.tracks, colors, MARKERS, strict=False):
            name = f"{track.method}: {track.mean.value:.2f} m"
            axes.plot(self.seconds, track.distances, marker=marker, markersize=3, linewidth=1, color=color, label=name)
        axes.plot(self.seconds, self.guess, "--", color=INK, linewidth=1, label="the same everywhere")
        axes.plot(self.seconds, self.limit, ":", color=INK, linewidth=1, label="Cramer-Rao limit")
        axes.set_ylim(0)
        axes.set_xlabel("seconds")
        axes.set_ylabel("distance to the truth, m")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=5, fontsize=8)
        axes.grid()


def _measure(name: str, distances_seen: Sequence[float]) -> Measure:
    mean = Mean.of(np.array(distances_seen))
    return Measure(name, mean.value, mean.error, slack=0.1)


def _draw_rooms(axes: Any, still: Still, shades: FloatArray | None, color: str = "Blues") -> None:
    rooms = flat().rooms
    width, height = rooms.size
    if shades is not None:
        picture = np.sqrt(shades / max(float(shades.max()), 1e-12))[rooms.grid]
        axes.imshow(picture, origin="lower", extent=(0, width, 0, height), cmap=color, vmin=0, vmax=1.2)
    for (x, y), (far_x, far_y) in WALLS:
        axes.plot((x, far_x), (y, far_y), color=INK, linewidth=1)
    for (x, y), (far_x, far_y) in DOORS:
        axes.plot((x, far_x), (y, far_y), color="white", linewidth=2)
    if shades is not None and not shades.any():
        axes.text(width / 3, height / 2, "empty", ha="center", fontsize=8, color=INK)
    axes.plot([at[0] for at in still.people], [at[1] for at in still.people], "x", color=INK, markersize=5)
    axes.set(xlim=(0, width), ylim=(0, height), xticks=(), yticks=(), aspect="equal")
    axes.spines[["top", "right"]].set_visible(True)


def _work(*, quick: bool, seed: int, progress: Progress) -> Film:
    path = data_file(POSITIONS)
    rooms = flat().rooms
    movement = walking(rooms, minutes=4, seed=seed) if path is None else recorded(path, rooms, most=MOST)
    return film(movement, quick=quick, seed=seed, progress=progress, real=path is not None)


def film(movement: Movement, *, quick: bool, seed: int, progress: Progress, real: bool) -> Film:
    """Send a movement through the chain of each method, all with random numbers of the same streams."""
    times = _times(movement, few=quick)
    people = [movement.at(time) for time in times]
    truth = np.array([_map_of(one) for one in people])
    draws, shown = 1 if quick else DRAWS, np.linspace(0, len(times) - 1, min(STILLS, len(times))).astype(int)
    tracks, maps = [], []
    for number, method in enumerate(Method):
        share = part(progress, 100 * number, 100, 100 * (len(Method) + 1))
        track, seen = _track(method, truth, draws, (seed, 1), share)
        tracks.append(track)
        maps.append(seen[shown])
    control = _control(draws, (seed, 2))
    progress(100 * (len(Method) + 1), 100 * (len(Method) + 1))
    stills = [
        Still(times[k] / 1000, people[k], (_rounded(maps[0][j]), _rounded(maps[-1][j]))) for j, k in enumerate(shown)
    ]
    uniform = np.ones_like(truth)
    return Film(
        recorded=real,
        told=movement.told,
        seconds=tuple(time / 1000 for time in times),
        people=tuple(len(one) for one in people),
        draws=draws,
        tracks=tuple(tracks),
        guess=tuple(distances(truth, uniform).round(4).tolist()),
        limit=tuple(round(_limit(one), 4) for one in people),
        stills=tuple(stills),
        control=control,
    )


def _times(movement: Movement, *, few: bool) -> range:
    """When readings are taken, in milliseconds; a few of those moments, evenly spread, or all."""
    times = range(0, len(movement.frames) * movement.frame_ms, EVERY_MS)
    return times[:: max(1, len(times) // QUICK_MOMENTS)] if few else times


def _control(draws: int, key: tuple[int, ...]) -> tuple[Track, ...]:
    """The papers' way and ours on a few moments of walks that are the same in every run."""
    walks = walking(flat().rooms, minutes=4)
    truth = np.array([_map_of(walks.at(time)) for time in _times(walks, few=True)])
    return tuple(_track(method, truth, draws, key, _quietly)[0] for method in (Method.PAPERS, Method.OURS))


def _quietly(done: int, total: int) -> None:
    """Tell nobody."""


def _track(
    method: Method, truth: FloatArray, draws: int, key: tuple[int, ...], progress: Progress
) -> tuple[Track, FloatArray]:
    """How one method does, and its maps of the first draw."""
    cloak, readings = cloak_of(method), flat().apply(truth)
    found = []
    for draw in range(draws):
        progress(draw, draws)
        noisy = cloak.simulate(readings, rng=stream(*key, draw))
        found.append(recover(noisy, cloak, estimator=method.estimator).map)
    each = np.mean([distances(truth, maps) for maps in found], axis=0)
    empty = float(np.mean([~maps.any(axis=1) for maps in found]))
    return Track(method, float(np.median(cloak.sigmas)), empty, tuple(each.round(4).tolist())), found[0]


def distances(truth: FloatArray, maps: FloatArray) -> FloatArray:
    """Walking earth mover distance of each map to its truth, in metres; an empty map counts as the uniform one."""
    uniform = np.ones(truth.shape[1])
    pairs = zip(maps, truth, strict=True)
    return np.array([emd(found if found.any() else uniform, scene, flat().space) for found, scene in pairs])


def _map_of(people: Sequence[Position]) -> FloatArray:
    cells = [flat().rooms.cell_at(*at) for at in people]
    return np.bincount(cells, minlength=flat().places).astype(np.float64)


def _limit(people: Sequence[Position]) -> float:
    """What an analyst who knows the number of people can reach, where the readings hold the information."""
    limit = cramer_rao(flat(), people, cloak_of(Method.OURS).sigma).expected_emd
    return float(min(limit, sum(flat().rooms.size)))


def _rounded(shades: FloatArray) -> tuple[float, ...]:
    return tuple((shades / max(float(shades.sum()), 1e-12)).round(4).tolist())


EXPERIMENT = Experiment(
    "movement",
    "People who really moved: what an analyst sees of them, by the papers' way and by ours",
    Film,
    _work,
    minutes=1.0,
)
