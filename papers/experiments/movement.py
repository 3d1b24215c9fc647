"""People who really moved, through the whole chain: readings, noise, recovery; a film and its errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from cloakwork.demo.recorded import POSITIONS, Position, data_file, needed
from cloakwork.demo.walks import Movement, recorded, walking
from papers.experiment import Experiment, Progress, part
from papers.result import Finding, Goal, Measure, Table
from papers.style import FAINT, INK, MARKERS, SERIES
from papers.tracks import (
    ALPHA,
    DELTA,
    DOORS,
    EPSILON,
    EVERY_MS,
    MOST,
    READINGS,
    WALLS,
    Method,
    Track,
    distances,
    flat,
    follow,
    limit_of,
    map_of,
)
from papers.trials import Mean

DRAWS, QUICK_DRAWS = 4, 1  # of noise, for each moment
MOMENTS = 40  # of the made-up walks
STILLS = 7
BETTER = 2.5
DRAWN = (Method.PAPERS, Method.EQUAL, Method.OURS, Method.WINDOW)
QUICK = (Method.PAPERS, Method.PURSUIT, Method.OURS, Method.WINDOW)
CONTROL, QUICK_CONTROL = (Method.PAPERS, Method.PURSUIT, Method.OURS), (Method.PAPERS, Method.PURSUIT)


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
    tracks: tuple[Track, ...]
    guess: tuple[float, ...]
    limit: tuple[float, ...]
    stills: tuple[Still, ...]
    control: tuple[Track, ...]

    def of(self, method: Method) -> Track:
        """How one method did."""
        return next(track for track in self.tracks if track.method is method)

    def has(self, method: Method) -> bool:
        """Whether it was tried."""
        return any(track.method is method for track in self.tracks)

    def better(self, method: Method = Method.OURS) -> Mean:
        """The papers' mean distance over that of another method."""
        papers, other = self.of(Method.PAPERS).mean, self.of(method).mean
        ratio = papers.value / other.value
        return Mean(ratio, ratio * float(np.hypot(papers.error / papers.value, other.error / other.value)))

    @property
    def minutes(self) -> tuple[float, ...]:
        """For each minute, how far its mean map is from where people were in it."""
        minute = np.array(self.seconds) * 1000 // (EVERY_MS * READINGS)
        far = np.array(self.of(Method.WINDOW).distances)
        return tuple(float(far[minute == one].mean()) for one in np.unique(minute))

    def tables(self) -> tuple[Table, ...]:
        rows = [one.row for one in self.tracks]
        rows.append(("a map that is the same everywhere", f"{np.mean(self.guess):.2f}", "-", "-", "-"))
        rows.append(("Cramer-Rao limit, one reading, designed noise", f"{np.mean(self.limit):.2f}", "-", "-", "-"))
        names = ("", "distance", "median noise", "empty maps", "draws")
        return (
            Table(f"Mean earth mover distance in metres over {len(self.seconds)} moments", names, tuple(rows)),
            Table("The same on made-up walks of three people", names, tuple(one.row for one in self.control)),
        )

    def goals(self) -> tuple[Goal, ...]:
        ours, guess = self.of(Method.OURS).mean.value, float(np.mean(self.guess))
        return (
            Goal(f"papers/ours at least {BETTER:g}", f"{self.better().value:.2f}", self.better().value >= BETTER),
            Goal("ours is at most half of a guess", f"{ours / guess:.2f}", ours <= guess / 2),
        )

    def measures(self) -> tuple[Measure, ...]:
        found = [_measure("made-up walks", one) for one in self.control if one.method in QUICK_CONTROL]
        if self.recorded:
            found += [_measure("recorded movement", one) for one in self.tracks if one.method in QUICK]
            found.append(Measure("recorded movement, a guess", float(np.mean(self.guess))))
            for method in (Method.OURS, Method.WINDOW):
                ratio = self.better(method)
                found.append(Measure(f"recorded movement, papers over {method}", ratio.value, ratio.error))
        return tuple(found)

    def words(self) -> tuple[str, ...]:
        papers, ours = (self.of(method).mean for method in (Method.PAPERS, Method.OURS))
        guess = float(np.mean(self.guess))
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
            f"{self.better().value:.1f} times less. A map that is the same everywhere has {guess:.2f} m, so the "
            f"papers' map says {'nothing' if papers.value >= guess else 'little'} here.",
            *self._words_of_parts(),
            f"The dotted line is the Cramer-Rao limit for an analyst who knows how many people there are, "
            f"{np.mean(self.limit):.2f} m on average. The posterior is told that everyone has strength 1 and that "
            f"there are at most {MOST}, which R is not; it does not know how many, and from one reading it can count "
            "wrongly. An empty map counts as the same everywhere.",
            self._words_of_minutes(),
        )

    def _words_of_parts(self) -> tuple[str, ...]:
        """What is gained by the noise, and what by the recovery."""
        if not all(self.has(method) for method in Method):
            return ()
        far = {method: f"{self.of(method).mean.value:.2f} m" for method in Method}
        return (
            f"What the noise gives and what the recovery: with the papers' noise R has {far[Method.PAPERS]} and the "
            f"posterior {far[Method.PAPERS_NOISE]}; with the exact noise, equal for all sensors, R has "
            f"{far[Method.PURSUIT]} and the posterior {far[Method.EQUAL]}; with noise shared among sensors by design, "
            f"at the same claim, the posterior has {far[Method.OURS]}.",
        )

    def _words_of_minutes(self) -> str:
        """What becomes of it when all readings of a minute are used."""
        best, worst = min(self.minutes), max(self.minutes)
        far, ours = self.of(Method.WINDOW).mean, self.of(Method.OURS).mean
        than = "less than" if far.value < ours.value else "no less than"
        moving = (
            " People who sit are seen much better so, and those who walk are smeared: the mean of a minute is no "
            "picture of anyone who moved in it."
            if worst > 2 * best
            else ""
        )
        return (
            f"The claim is for all readings of a minute, and an analyst may well take their mean, which has "
            f"{np.sqrt(READINGS):.1f} times less noise. Such maps are {far.value:.2f} m from where people were at each "
            f"moment of their minute, {than} maps of one reading; {best:.2f} m in the best minute and {worst:.2f} m in "
            f"the worst.{moving}"
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
        looks = zip(DRAWN, (SERIES[1], FAINT, SERIES[0], SERIES[2]), (*MARKERS[:3], ""), strict=True)
        for method, color, marker in looks:
            if self.has(method):
                track = self.of(method)
                name = f"{method}: {track.mean.value:.2f} m"
                look: Any = {"marker": marker, "markersize": 3, "linewidth": 1 if marker else 1.6, "color": color}
                axes.plot(self.seconds, track.distances, label=name, **look)
        axes.plot(self.seconds, self.guess, "--", color=INK, linewidth=1, label="the same everywhere")
        axes.plot(self.seconds, self.limit, ":", color=INK, linewidth=1, label="Cramer-Rao limit, one reading")
        axes.set_ylim(0)
        axes.set_xlabel("seconds")
        axes.set_ylabel("distance to the truth, m")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3, fontsize=8)
        axes.grid()


def _measure(kind: str, one: Track) -> Measure:
    return Measure(f"{kind}, {one.method}", one.mean.value, one.mean.error)


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
    times = _times(movement)
    people = [movement.at(time) for time in times]
    truth = np.array([map_of(one) for one in people])
    draws, methods = (QUICK_DRAWS, QUICK) if quick else (DRAWS, tuple(Method))
    shown = np.linspace(0, len(times) - 1, min(STILLS, len(times))).astype(int)
    tracks: list[Track] = []
    maps: dict[Method, FloatArray] = {}
    for number, method in enumerate(methods):
        share = part(progress, 100 * number, 100, 100 * (len(methods) + 1))
        track, seen = follow(method, truth, draws, (seed, 1), share)
        tracks.append(track)
        maps[method] = seen[shown]
    control = _control(QUICK_CONTROL if quick else CONTROL, draws, (seed, 2))
    progress(100 * (len(methods) + 1), 100 * (len(methods) + 1))
    stills = [
        Still(times[k] / 1000, people[k], (_rounded(maps[Method.PAPERS][j]), _rounded(maps[Method.OURS][j])))
        for j, k in enumerate(shown)
    ]
    return Film(
        recorded=real,
        told=movement.told,
        seconds=tuple(time / 1000 for time in times),
        people=tuple(len(one) for one in people),
        tracks=tuple(tracks),
        guess=tuple(distances(truth, np.ones_like(truth)).round(4).tolist()),
        limit=tuple(round(limit_of(one), 4) for one in people),
        stills=tuple(stills),
        control=control,
    )


def _times(movement: Movement) -> range:
    """When readings are taken, in milliseconds."""
    return range(0, len(movement.frames) * movement.frame_ms, EVERY_MS)


def _control(methods: Sequence[Method], draws: int, key: tuple[int, ...]) -> tuple[Track, ...]:
    """Some methods on moments of walks that are the same in every run."""
    walks = walking(flat().rooms, minutes=4)
    times = _times(walks)
    truth = np.array([map_of(walks.at(time)) for time in times[:: max(1, len(times) // MOMENTS)]])
    return tuple(follow(method, truth, draws, key, _quietly)[0] for method in methods)


def _quietly(done: int, total: int) -> None:
    """Tell nobody."""


def _rounded(shades: FloatArray) -> tuple[float, ...]:
    return tuple((shades / max(float(shades.sum()), 1e-12)).round(4).tolist())


EXPERIMENT = Experiment(
    "movement",
    "People who really moved: what an analyst sees of them, by the papers' way and by ours",
    Film,
    _work,
    minutes=1.6,
    data=(POSITIONS,),
)
