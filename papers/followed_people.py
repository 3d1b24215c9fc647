"""People in the demo's flat who are followed over time: scenes, methods and errors, all from the same readings.

The claim is (8, 1e-5) for 0.1 m and a minute of twenty readings. All methods know only that a person has strength 1 and
that there are at most four.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from scipy.optimize import linear_sum_assignment

from cloakwork._checks import FloatArray
from cloakwork.demo import Position, open_path
from cloakwork.physics import FloorPlan, Rooms, Steady
from cloakwork.privacy import Cloak
from cloakwork.recovery import PointSources, Tracker, recover, track
from papers.recordings import PIXELS, read_positions

SECONDS, WINDOW = 3.0, 20
MOST = 4
CHANGED = 180.0  # seconds that someone who sits keeps a seat, on average
CUT = 2.0  # metres: a person farther from a mark than this counts as missed
LEAD = 3  # frames that no method is judged by
WALLS = (((6.0, 0.0), (6.0, 8.0)), ((6.0, 4.0), (10.0, 4.0)))
DOORS = (((6.0, 1.75), (6.0, 3.0)), ((6.0, 5.0), (6.0, 6.25)))
FRAME_MS = 500
SQUARE = 0.5  # metres: a person who enters another square of this side has moved
SPEED = 0.8  # metres a second
RESTS = (4, 24)  # frames that a walker rests at its goal
MINUTES = 10.0

Scene = Sequence[Sequence[int]]  # the places of all people in each frame
Marks = Sequence[Sequence[int]]


@cache
def flat() -> FloorPlan:
    """The demo's flat."""
    rooms = Rooms.from_walls((10.0, 8.0), cell=0.25, walls=WALLS, doors=DOORS)
    at = [(x, y) for x in np.arange(0.5, 10).tolist() for y in np.arange(0.5, 8).tolist()]
    return FloorPlan(rooms, at, Steady(1.0), footprint=0.5)


@cache
def cloak() -> Cloak:
    """The noise of a reading every three seconds."""
    return Cloak(flat(), epsilon=8.0, delta=1e-5, alpha=0.1, readings_per_window=WINDOW, design="least-error")


def sitting(people: int, frames: int, seed: int) -> Scene:
    """People who change seats every three minutes on average."""
    rng = np.random.default_rng(seed)
    seats = rng.integers(0, flat().places, people)
    scene = []
    for _ in range(frames):
        moved = rng.random(people) < SECONDS / CHANGED
        seats = np.where(moved, rng.integers(0, flat().places, people), seats)
        scene.append(seats.tolist())
    return scene


def strolling(people: int, frames: int, seed: int) -> Scene:
    """Walkers at 0.8 m/s."""
    rooms = flat().rooms
    movement = walking(rooms, people=people, minutes=frames * SECONDS / 60, seed=seed)
    return [[rooms.cell_at(*at) for at in movement.at(round(1000 * SECONDS * k))] for k in range(frames)]


def office() -> Scene:
    """The recorded movement of the README."""
    rooms = flat().rooms
    movement = recorded(rooms, most=MOST)
    frames = len(movement.frames) * movement.frame_ms // round(1000 * SECONDS)
    return [[rooms.cell_at(*at) for at in movement.at(round(1000 * SECONDS * k))] for k in range(frames)]


def noisy(scene: Scene, seed: int) -> FloatArray:
    """The released readings of a scene."""
    clean = np.array([flat().matrix[:, list(places)].sum(axis=1) for places in scene])
    return cloak().simulate(clean, rng=np.random.default_rng([7, seed]))


def single(readings: FloatArray) -> Marks:
    """Each frame alone."""
    found = recover(readings, cloak(), estimator=PointSources(1.0, max_sources=MOST))
    return [[source.place for source in sources if source.probability >= 0.5] for sources in found.sources]


def single_counted(readings: FloatArray, scene: Scene) -> Marks:
    """Each frame alone, with the number of people known."""
    marks: list[list[int]] = [[] for _ in scene]
    numbers = np.array([len(people) for people in scene])
    for number in np.unique(numbers[numbers > 0]).tolist():
        rows = np.flatnonzero(numbers == number)
        found = recover(readings[rows], cloak(), estimator=PointSources(1.0, max_sources=number, min_sources=number))
        for row, sources in zip(rows.tolist(), found.sources, strict=True):
            marks[row] = [source.place for source in sources]
    return marks


def minute(readings: FloatArray) -> Marks:
    """The mean of each minute."""
    marks: list[list[int]] = []
    for start in range(0, len(readings), WINDOW):
        part = readings[start : start + WINDOW]
        sigma = cloak().sigmas / np.sqrt(len(part))
        found = recover(part.mean(axis=0), flat(), sigma=sigma, estimator=PointSources(1.0, max_sources=MOST))
        marks += [[source.place for source in found.sources if source.probability >= 0.5]] * len(part)
    return marks


def filtered(readings: FloatArray) -> tuple[Marks, Marks, FloatArray]:
    """The tracker: marks, labels of their tracks, and the most likely counts."""
    tracker = Tracker(cloak(), max_sources=MOST)
    moments = [tracker.step(frame, SECONDS * k) for k, frame in enumerate(readings)]
    places = [[source.place for source in moment.sources] for moment in moments]
    return places, [moment.labels for moment in moments], np.array([moment.counts.argmax() for moment in moments])


def least_distance(scenes: Sequence[Scene]) -> FloatArray:
    """The mean distance that the exact filter has in each scene of one person who sits, shape (scenes,).

    Unlike a tracker it knows the law of `sitting`, and that there is one person. Each of its marks has the least
    expected distance, so no method that has only the readings so far comes nearer on average.
    """
    columns, places = flat().matrix / cloak().sigmas[:, None], flat().places
    frames = np.stack([noisy(scene, seed) / cloak().sigmas for seed, scene in enumerate(scenes)], axis=1)
    law = np.full((len(scenes), places), 1 / places)
    marks = np.empty((len(scenes), len(frames), 1), dtype=int)
    for number, frame in enumerate(frames):
        law = (1 - SECONDS / CHANGED) * law + SECONDS / CHANGED / places
        gain = frame @ columns - (columns**2).sum(axis=0) / 2
        law *= np.exp(gain - gain.max(axis=1, keepdims=True))
        law /= law.sum(axis=1, keepdims=True)
        marks[:, number, 0] = np.argmin(law @ flat().space.distance_table, axis=1)
    return np.array([distances(own, scene).mean() for own, scene in zip(marks.tolist(), scenes, strict=True)])


def smoothed(readings: FloatArray) -> Marks:
    """The smoother."""
    past = track(readings, cloak(), times=SECONDS * np.arange(len(readings)), max_sources=MOST)
    return [[source.place for source in moment.sources] for moment in past.moments]


def distances(marks: Marks, scene: Scene) -> FloatArray:
    """Mean distance in each frame of a person to a mark of their own; one without a mark counts with 4 m."""
    table = flat().space.distance_table
    far = []
    for here, people in zip(marks[LEAD:], scene[LEAD:], strict=True):
        cost = np.full((len(people), max(len(people), len(here))), 4.0)
        cost[:, : len(here)] = table[np.ix_(people, list(here))]
        far.append(cost[linear_sum_assignment(cost)].mean())
    return np.array(far)


def gospa(marks: Marks, scene: Scene) -> float:
    """GOSPA with p = 1, alpha = 2: distances up to the cut, and half the cut for each that is missed or false."""
    table = flat().space.distance_table
    total = []
    for here, people in zip(marks[LEAD:], scene[LEAD:], strict=True):
        cost = np.minimum(table[np.ix_(people, list(here))], CUT)
        total.append(cost[linear_sum_assignment(cost)].sum() + CUT / 2 * abs(len(people) - len(here)))
    return float(np.mean(total))


def switches(marks: Marks, labels: Marks, scene: Scene) -> int:
    """How often the mark nearest to a person changes its label."""
    table, changed = flat().space.distance_table, 0
    last: dict[int, int] = {}
    for here, names, people in zip(marks, labels, scene, strict=True):
        cost = np.minimum(table[np.ix_(people, list(here))], CUT)
        rows, columns = linear_sum_assignment(cost)
        for person, mark in zip(rows.tolist(), columns.tolist(), strict=True):
            if cost[person, mark] < CUT:
                changed += last.get(person, names[mark]) != names[mark]
                last[person] = names[mark]
    return changed


@dataclass(frozen=True)
class Movement:
    """The positions of everyone, in metres, in frames of `frame_ms` each that repeat from the beginning.

    `origin` describes where the movement comes from. People are not tracked: their order in a frame has no meaning.
    """

    frames: tuple[tuple[Position, ...], ...]
    origin: str
    frame_ms: int = FRAME_MS

    def at(self, elapsed_ms: int) -> tuple[Position, ...]:
        """The positions at a time after the beginning."""
        return self.frames[elapsed_ms // self.frame_ms % len(self.frames)]


def staying(people: Sequence[Position]) -> Movement:
    """People who stay where they are."""
    return Movement((tuple(people),), "not at all")


def recorded(rooms: Rooms, *, most: int) -> Movement:
    """Real movement, from positions in a camera's picture of an office, which is laid over the whole floor.

    Takes the recording with the most movement among those that always show 1 to `most` people.
    """
    found = {
        name: frames for name, frames in read_positions().items() if all(0 < len(frame) <= most for frame in frames)
    }
    name = max(found, key=lambda one: _moves(found[one], rooms))
    placed = tuple(tuple(_placed(pixel, rooms) for pixel in frame) for frame in found[name])
    return Movement(placed, f"as recorded in an office ({name})")


def walking(rooms: Rooms, *, people: int = 3, minutes: float = MINUTES, seed: int = 1) -> Movement:
    """Walkers who wander from room to room along open paths, rest, and return to where they started."""
    rng = np.random.default_rng(seed)
    walks = [_walk(rooms, round(60_000 * minutes / FRAME_MS), rng) for _ in range(people)]
    longest = max(len(walk) for walk in walks)
    padded = [walk + walk[-1:] * (longest - len(walk)) for walk in walks]
    return Movement(tuple(zip(*padded, strict=True)), "on simulated walks through the rooms")


def _placed(pixel: Position, rooms: Rooms) -> Position:
    """The point of the floor under a pixel, or the nearest cell if that point is in no room."""
    width, height = rooms.size
    x, y = pixel[0] / PIXELS[0] * width, (1 - pixel[1] / PIXELS[1]) * height
    column, row = (
        min(int(value / rooms.cell), count - 1) for value, count in zip((x, y), rooms.grid.shape[::-1], strict=True)
    )
    if rooms.grid[row, column] >= 0:
        return x, y
    cells = rooms.space.places
    near = cells[np.argmin(((cells - (x, y)) ** 2).sum(axis=1))]
    return float(near[0]), float(near[1])


def _moves(frames: Sequence[Sequence[Position]], rooms: Rooms) -> int:
    """Count how often someone entered another square of the floor."""
    places = [[_placed(pixel, rooms) for pixel in frame] for frame in frames]
    squares = [{(int(x / SQUARE), int(y / SQUARE)) for x, y in frame} for frame in places]
    return sum(len(after - before) for before, after in pairwise(squares))


def _walk(rooms: Rooms, frames: int, rng: np.random.Generator) -> list[Position]:
    """At least `frames` frames of one walker, who ends where it started."""
    home = here = int(rng.integers(len(rooms.space)))
    walk: list[Position] = []
    while len(walk) < frames:
        there = int(rng.integers(len(rooms.space)))
        walk += _steps(rooms, here, there, rng)
        walk += walk[-1:] * int(rng.integers(*RESTS))
        here = there
    return walk + _steps(rooms, here, home, rng)


def _steps(rooms: Rooms, here: int, there: int, rng: np.random.Generator) -> list[Position]:
    """Frames of a path from cell to cell."""
    way = open_path(rooms, here, there, rng)
    cells = rooms.space.places[way]
    stride = SPEED * FRAME_MS / 1000 / rooms.cell  # cells a frame
    marks = np.arange(0, math.ceil((len(way) - 1) / stride) + 1) * stride
    nodes = np.arange(len(way))
    return [(float(np.interp(k, nodes, cells[:, 0])), float(np.interp(k, nodes, cells[:, 1]))) for k in marks]
