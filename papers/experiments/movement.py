"""Recorded movement of people through the whole chain: readings, noise, recovery; a film strip and its errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from cloakwork._checks import FloatArray
from cloakwork.accuracy import cramer_rao, emd
from cloakwork.demo import Position
from cloakwork.physics import FloorPlan, Rooms, Steady
from cloakwork.privacy import Cloak, Design
from cloakwork.recovery import BasisPursuit, Estimator, PointSources, recover
from papers.calibration import Calibration, PapersPursuit, calibrated
from papers.drawing import FAINT, INK, MARKERS, SERIES
from papers.experiment import Experiment, Run, Size, pick, stream
from papers.recordings import POSITIONS, data_file
from papers.result import Finding, Goal, Measure
from papers.statistics import Mean
from papers.walks import Movement, recorded, walking

WALLS = (((6.0, 0.0), (6.0, 8.0)), ((6.0, 4.0), (10.0, 4.0)))
DOORS = (((6.0, 1.5), (6.0, 3.0)), ((6.0, 5.0), (6.0, 6.5)))
EPSILON, DELTA, ALPHA = 8.0, 1e-5, 0.1
EVERY_MS, READINGS = 3_000, 20  # a reading every three seconds; the claim covers all readings of a minute
MOST = 4
MINUTES_DRAWS = 4  # of the noise, for each minute
MOMENTS = 40  # of the simulated walks
STILLS = 7
BETTER = 2.5


class Method(StrEnum):
    """A noise together with a way of recovery."""

    PAPERS = "papers' noise, basis pursuit"
    PAPERS_NOISE = "papers' noise, posterior"
    PURSUIT = "equal noise, basis pursuit"
    EQUAL = "equal noise, posterior"
    OURS = "designed noise, posterior (ours)"
    WINDOW = "designed noise, mean of a minute"

    @property
    def estimator(self) -> Estimator:
        """Its estimator; the posterior knows that a person has strength 1 and that there are at most four."""
        if self is Method.PAPERS:
            return PapersPursuit()
        return BasisPursuit() if self is Method.PURSUIT else PointSources(1.0, max_sources=MOST)


DRAWN = (Method.PAPERS, Method.EQUAL, Method.OURS, Method.WINDOW)
QUICK = (Method.PAPERS, Method.PURSUIT, Method.OURS, Method.WINDOW)
CONTROL, QUICK_CONTROL = (Method.PAPERS, Method.PURSUIT, Method.OURS), (Method.PAPERS, Method.PURSUIT)


@cache
def flat() -> FloorPlan:
    """Three rooms of 10 m x 8 m in cells of half a metre, a sensor on each square metre, people with a reach of 1 m."""
    rooms = Rooms.from_walls((10.0, 8.0), cell=0.5, walls=WALLS, doors=DOORS)
    at = [(x, y) for x in np.arange(0.5, 10).tolist() for y in np.arange(0.5, 8).tolist()]
    return FloorPlan(rooms, at, Steady(1.0), footprint=0.5)


@cache
def cloak_of(method: Method) -> Cloak:
    """The noise of a method; the claim is the same for all."""
    papers = method in (Method.PAPERS, Method.PAPERS_NOISE)
    designed = method in (Method.OURS, Method.WINDOW)
    return calibrated(
        flat(),
        Calibration.PAPER if papers else Calibration.EXACT,
        epsilon=EPSILON,
        delta=DELTA,
        alpha=ALPHA,
        readings_per_window=READINGS,
        design=Design.LEAST_ERROR if designed else Design.EQUAL,
    )


@dataclass(frozen=True)
class Track:
    """The distance of one method's maps to the truth, in metres.

    `distances` are means over `draws` of the noise at each moment, `mean` is the mean of all. `sigma` is the median
    noise of the readings that a map is made from, `empty` the share of empty maps.
    """

    method: Method
    sigma: float
    empty: float
    draws: int
    mean: Mean
    distances: tuple[float, ...]


@dataclass(frozen=True)
class Still:
    """One moment of the film: when, where people were, and the map of each method, one weight a cell."""

    seconds: float
    people: tuple[Position, ...]
    maps: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Film(Finding):
    """How well people's movement is recovered; `origin` says where it comes from.

    `control` are methods on simulated walks, which are the same in every run.
    """

    size: ClassVar[tuple[float, float]] = (12.0, 7.6)
    origin: str
    seconds: tuple[float, ...]
    people: tuple[int, ...]
    tracks: tuple[Track, ...]
    guess: tuple[float, ...]
    limit: tuple[float, ...]
    stills: tuple[Still, ...]
    control: tuple[Track, ...]

    def of(self, method: Method) -> Track:
        return pick(self.tracks, method=method)

    def has(self, method: Method) -> bool:
        return any(track.method is method for track in self.tracks)

    def better(self, method: Method = Method.OURS) -> Mean:
        """The papers' mean distance over that of another method."""
        papers, other = self.of(Method.PAPERS).mean, self.of(method).mean
        ratio = papers.value / other.value
        return Mean(ratio, ratio * float(np.hypot(papers.error / papers.value, other.error / other.value)))

    def goals(self) -> tuple[Goal, ...]:
        ours, guess = self.of(Method.OURS).mean.value, float(np.mean(self.guess))
        return (
            Goal(f"papers/ours at least {BETTER:g}", f"{self.better().value:.2f}", self.better().value >= BETTER),
            Goal("ours at most half of the uniform map", f"{ours / guess:.2f}", ours <= guess / 2),
        )

    def measures(self) -> tuple[Measure, ...]:
        measures = [_measure("simulated walks", one) for one in self.control if one.method in QUICK_CONTROL]
        measures += [_measure("recorded movement", one) for one in self.tracks if one.method in QUICK]
        measures.append(Measure("recorded movement, uniform map", float(np.mean(self.guess))))
        for method in (Method.OURS, Method.WINDOW):
            ratio = self.better(method)
            measures.append(Measure(f"recorded movement, papers over {method}", ratio.value, ratio.error))
        return tuple(measures)

    def text(self) -> str:
        return (
            f"People move {self.origin}. They are labelled by hand in the pictures of a camera on the ceiling, which "
            "we lay over three rooms; the walls are invented, so people walk through them. "
            f"{min(self.people)} to {max(self.people)} people at a time warm {flat().sensors} sensors, which "
            f"send a reading every {EVERY_MS // 1000} s. All readings of a minute together hide a move by {ALPHA:g} m "
            f"at ({EPSILON:g}, {DELTA:g})."
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
        title = "Movement recorded in an office; crosses: people, shades: recovered maps"
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)

    def _draw_distances(self, axes: Any) -> None:
        looks = zip(DRAWN, (SERIES[1], FAINT, SERIES[0], SERIES[2]), (*MARKERS[:3], ""), strict=True)
        for method, color, marker in looks:
            if self.has(method):
                track = self.of(method)
                look: Any = {"marker": marker, "markersize": 3, "linewidth": 1 if marker else 1.6, "color": color}
                axes.plot(self.seconds, track.distances, label=f"{method}: {track.mean.value:.2f} m", **look)
        axes.plot(self.seconds, self.guess, "--", color=INK, linewidth=1, label="uniform map")
        axes.plot(self.seconds, self.limit, ":", color=INK, linewidth=1, label="Cramer-Rao bound, one reading")
        axes.set_ylim(0)
        axes.set(xlabel="seconds", ylabel="distance to the truth, m")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3, fontsize=8)
        axes.grid()


def _measure(kind: str, track: Track) -> Measure:
    return Measure(f"{kind}, {track.method}", track.mean.value, track.mean.error)


def _draw_rooms(axes: Any, still: Still, shades: FloatArray | None, color: str = "Blues") -> None:
    rooms = flat().rooms
    width, height = rooms.size
    if shades is not None:
        picture = np.sqrt(shades / max(float(shades.max()), 1e-12))[rooms.grid]
        axes.imshow(picture, origin="lower", extent=(0, width, 0, height), cmap=color, vmin=0, vmax=1.2)
    for lines, look in ((WALLS, {"color": INK, "linewidth": 1}), (DOORS, {"color": "white", "linewidth": 2})):
        for (x, y), (far_x, far_y) in lines:
            axes.plot((x, far_x), (y, far_y), **look)
    if shades is not None and not shades.any():
        axes.text(width / 3, height / 2, "empty", ha="center", fontsize=8, color=INK)
    axes.plot([at[0] for at in still.people], [at[1] for at in still.people], "x", color=INK, markersize=5)
    axes.set(xlim=(0, width), ylim=(0, height), xticks=(), yticks=(), aspect="equal")
    axes.spines[["top", "right"]].set_visible(True)


def follow(method: Method, truth: FloatArray, draws: int, key: tuple[int, ...]) -> tuple[Track, FloatArray]:
    """Try one method on true maps; return its track and its maps of the first draw."""
    cloak, readings = cloak_of(method), flat().apply(truth)
    minutes = method is Method.WINDOW
    draws = MINUTES_DRAWS if minutes else draws
    maps = []
    for draw in range(draws):
        noisy = cloak.simulate(readings, rng=stream(*key, draw))
        maps.append(_maps_of_minutes(noisy) if minutes else recover(noisy, cloak, estimator=method.estimator).map)
    errors = np.array([distances(truth, each) for each in maps])
    by_moment = errors.mean(axis=0)
    # the maps of a minute are the same map: only draws are independent
    mean = Mean.of(errors.mean(axis=1)) if minutes or len(truth) == 1 else Mean.of(by_moment)
    sigma = float(np.median(cloak.sigmas)) / (np.sqrt(READINGS) if minutes else 1.0)
    empty = float(np.mean([~each.any(axis=1) for each in maps]))
    return Track(method, float(sigma), empty, draws, mean, tuple(by_moment.round(4).tolist())), maps[0]


def _maps_of_minutes(noisy: FloatArray) -> FloatArray:
    """Maps of the mean reading of each window, repeated for each moment in it."""
    maps = []
    for start in range(0, len(noisy), READINGS):
        window = noisy[start : start + READINGS]
        sigmas = cloak_of(Method.WINDOW).sigmas / np.sqrt(len(window))
        recovery = recover(window.mean(axis=0), flat(), sigma=sigmas, estimator=Method.WINDOW.estimator)
        maps += [recovery.map] * len(window)
    return np.array(maps)


def distances(truth: FloatArray, maps: FloatArray) -> FloatArray:
    """The earth mover distance along walkable paths of each map to its truth; an empty map counts as uniform."""
    uniform = np.ones(truth.shape[1])
    pairs = zip(maps, truth, strict=True)
    return np.array([emd(found if found.any() else uniform, scene, flat().space) for found, scene in pairs])


def map_of(people: Sequence[Position]) -> FloatArray:
    """The true map: a source of strength 1 in each person's cell."""
    cells = [flat().rooms.cell_at(*at) for at in people]
    return np.bincount(cells, minlength=flat().places).astype(np.float64)


def limit_of(people: Sequence[Position]) -> float:
    """The Cramer-Rao bound of an analyst who knows the number of people, at most the size of the flat."""
    limit = cramer_rao(flat(), people, cloak_of(Method.OURS).sigma).expected_emd
    return float(min(limit, sum(flat().rooms.size)))


def _times(movement: Movement) -> range:
    """When readings are taken, in milliseconds."""
    return range(0, len(movement.frames) * movement.frame_ms, EVERY_MS)


def _control(methods: Sequence[Method], draws: int, moments: int, key: tuple[int, ...]) -> tuple[Track, ...]:
    """Try some methods on moments of walks that are the same in every run."""
    walks = walking(flat().rooms, minutes=4)
    times = _times(walks)
    truth = np.array([map_of(walks.at(time)) for time in times[:: max(1, len(times) // moments)]])
    return tuple(follow(method, truth, draws, key)[0] for method in methods)


def _rounded(shades: FloatArray) -> tuple[float, ...]:
    return tuple((shades / max(float(shades.sum()), 1e-12)).round(4).tolist())


def _work(run: Run) -> Film:
    rooms = flat().rooms
    if run.size is Size.PROBE:
        return film(walking(rooms, minutes=0.2, seed=run.seed), run)
    return film(recorded(data_file(POSITIONS), rooms, most=MOST), run)


def film(movement: Movement, run: Run) -> Film:
    """Send a movement through the chain of each method, all with random numbers of the same streams."""
    draws, methods, controls = run.choose((4, tuple(Method), CONTROL), (1, QUICK, QUICK_CONTROL), (1, QUICK, ()))
    times = _times(movement)[: run.choose(None, None, 2)]
    people = [movement.at(time) for time in times]
    truth = np.array([map_of(one) for one in people])
    shown = np.linspace(0, len(times) - 1, min(STILLS, len(times))).astype(int)
    tracks: list[Track] = []
    maps: dict[Method, FloatArray] = {}
    for method in run.each(methods, after=1):
        track, found = follow(method, truth, draws, (run.seed, 1))
        tracks.append(track)
        maps[method] = found[shown]
    control = _control(controls, draws, MOMENTS, (run.seed, 2))
    run.progress(1, 1)
    stills = [
        Still(times[k] / 1000, people[k], (_rounded(maps[Method.PAPERS][j]), _rounded(maps[Method.OURS][j])))
        for j, k in enumerate(shown)
    ]
    return Film(
        origin=movement.origin,
        seconds=tuple(time / 1000 for time in times),
        people=tuple(len(one) for one in people),
        tracks=tuple(tracks),
        guess=tuple(distances(truth, np.ones_like(truth)).round(4).tolist()),
        limit=tuple(round(limit_of(one), 4) for one in people),
        stills=tuple(stills),
        control=control,
    )


EXPERIMENT = Experiment(
    "movement",
    "Recorded movement of people, as recovered by the papers' method and by ours",
    Film,
    _work,
    minutes=1.6,
    data=(POSITIONS,),
)
