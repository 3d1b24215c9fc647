"""The movement of simulated people: recorded in an office, or on walks through the rooms."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cloakwork.demo import Position, open_path
from cloakwork.physics import Rooms
from papers.recordings import PIXELS, read_positions

FRAME_MS = 500
SQUARE = 0.5  # metres: a person who enters another square of this side has moved
SPEED = 0.8  # metres a second
RESTS = (4, 24)  # frames that a walker rests at its goal
MINUTES = 10.0


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


def staying(people: Sequence[Position], origin: str = "not at all") -> Movement:
    """People who stay where they are."""
    return Movement((tuple(people),), origin)


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
