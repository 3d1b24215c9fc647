"""Simulated people: they sit, walk to another seat along open paths, and come and go."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse import csgraph

from cloakwork._checks import FloatArray, IntArray, count, positive
from cloakwork.errors import InputError
from cloakwork.physics import Space

MINUTE, HOUR = 60.0, 3600.0
DETOUR = 1.5  # steps count up to so many times as long, so that two walks between the same seats differ
AWAY = -1


@dataclass(frozen=True)
class Habits:
    """The habits of simulated people; times in seconds, each drawn evenly between two ends.

    A person sits for a time in `sit`, then walks at `speed` (units of the space a second) to a seat that is anywhere in
    the space with equal probability. After a time in `present` the person leaves, and returns after a time in `away`;
    with `away` None all stay for good.

    >>> from cloakwork.physics import Space
    >>> restless = Habits(sit=(60, 300), away=None)
    >>> simulated_day(Space.line(20, length=10.0), people=2, hours=1, habits=restless).places_at(1800.0).shape
    (2,)
    """

    sit: tuple[float, float] = (5 * MINUTE, 40 * MINUTE)
    speed: float = 0.8
    present: tuple[float, float] = (2 * HOUR, 6 * HOUR)
    away: tuple[float, float] | None = (HOUR / 2, 3 * HOUR)

    def __post_init__(self) -> None:
        positive("speed", self.speed)
        for name in ("sit", "present", "away"):
            ends = getattr(self, name)
            if ends is not None and not (len(ends) == 2 and 0 < ends[0] <= ends[1] < np.inf):
                raise InputError(
                    f"{name}={ends!r}: give two times in seconds, 0 < shortest <= longest.", **{name: ends}
                )


@dataclass(frozen=True, eq=False)
class SimulatedDay:
    """The positions of simulated people at any time from 0 s to `seconds`.

    `times` and `places` have one array for each person: the moments at which they pass a place, and that place; -1
    means that they are away from then on. Between two moments they walk evenly.

    >>> from cloakwork.physics import Space
    >>> day = simulated_day(Space.line(20, length=10.0), people=2, hours=1, habits=Habits(away=None))
    >>> bool((day.places_at([0.0, 600.0]) >= 0).all())
    True
    """

    space: Space
    seconds: float
    times: tuple[FloatArray, ...]
    places: tuple[IntArray, ...]

    def places_at(self, times: ArrayLike) -> IntArray:
        """The nearest place of each person at the given times, -1 while away: shape (times, people)."""
        return np.stack(
            [np.where((leg.share < 0.5) | (leg.start == AWAY), leg.start, leg.end) for leg in self._legs(times)],
            axis=-1,
        )

    def positions_at(self, times: ArrayLike) -> FloatArray:
        """The position of each person at the given times, NaN while away: shape (times, people, coordinates)."""
        positions = []
        for leg in self._legs(times):
            start, end = self.space.places[leg.start], self.space.places[leg.end]
            at = start + leg.share[..., None] * (end - start)
            positions.append(np.where((leg.start == AWAY)[..., None], np.nan, at))
        return np.stack(positions, axis=-2)

    def _legs(self, times: ArrayLike) -> "Iterator[_Legs]":
        when = np.asarray(times, dtype=np.float64)
        for known, places in zip(self.times, self.places, strict=True):
            before = np.clip(np.searchsorted(known, when, side="right") - 1, 0, len(known) - 1)
            after = np.minimum(before + 1, len(known) - 1)
            length = np.maximum(known[after] - known[before], 1e-9)
            yield _Legs(places[before], places[after], np.clip((when - known[before]) / length, 0.0, 1.0))


class _Legs(NamedTuple):
    """The place of a person before and after each moment, and the share of the way between them."""

    start: IntArray
    end: IntArray
    share: FloatArray


def simulated_day(
    space: Space,
    people: int = 3,
    *,
    seed: int = 0,
    hours: float = 24.0,
    habits: Habits | None = None,
    entrances: tuple[object, ...] | None = None,
) -> SimulatedDay:
    """Simulate people who live in a space.

    Parameters
    ----------
    space
        Where they live, such as `rooms.space`; they walk from neighbour to neighbour, so never through a wall.
    people
        Number of people, present or away.
    entrances
        Positions or labels of the places through which they come and go; None if each appears and disappears at a seat.

    >>> day = simulated_day(Space.line(20, length=10.0), people=2, hours=1, habits=Habits(away=None))
    >>> day.places_at([0.0, 1800.0]).shape, day.positions_at(60.0).shape
    ((2, 2), (2, 1))
    """
    count("people", people)
    positive("hours", hours)
    habits = habits or Habits()
    doors = None if entrances is None else space.indices(list(entrances))
    lives = [_Life(space, habits, doors, np.random.default_rng([seed, k])) for k in range(people)]
    for life in lives:
        life.live(hours * HOUR)
    return SimulatedDay(
        space,
        hours * HOUR,
        tuple(np.array(life.times) for life in lives),
        tuple(np.array(life.places, dtype=np.int64) for life in lives),
    )


class _Life:
    """The life of one person."""

    def __init__(self, space: Space, habits: Habits, doors: IntArray | None, rng: np.random.Generator) -> None:
        self.space, self.habits, self.doors, self.rng = space, habits, doors, rng
        self.times: list[float] = []
        self.places: list[int] = []

    def live(self, end: float) -> None:
        """Begin in the middle of a life, and come, live and go until after `end`."""
        now, habits = 0.0, self.habits
        if habits.away is None:
            now = self._sit_and_walk(now, self._seat(), end)
        elif self.rng.random() * (sum(habits.present) + sum(habits.away)) < sum(habits.present):
            now = self._leave(self._sit_and_walk(now, self._seat(), self._rest_of(habits.present)))
        while habits.away is not None and now < end:
            self._pass(now, AWAY)
            now += self._time(habits.away) if now else self._rest_of(habits.away)
            now = self._leave(self._sit_and_walk(now, self._arrive(), now + self._time(habits.present)))
        self._pass(now, AWAY)

    def _arrive(self) -> int:
        """The place at which a person appears."""
        return self._seat() if self.doors is None else int(self.rng.choice(self.doors))

    def _sit_and_walk(self, now: float, here: int, end: float) -> float:
        """Change between sitting and walking until after `end`."""
        self._pass(now, here)
        if self.doors is not None and here in self.doors:
            now = self._walk(now, self._seat())
        while True:
            now += self._time(self.habits.sit)
            self._pass(now, self.places[-1])
            if now >= end:
                return now
            now = self._walk(now, self._seat())

    def _leave(self, now: float) -> float:
        """Go to a door, if there are any; returns the time at which the person is there."""
        return now if self.doors is None else self._walk(now, int(self.rng.choice(self.doors)))

    def _walk(self, now: float, there: int) -> float:
        """Walk to a place along a path that is short, but not the same each time; returns the time of arrival."""
        links = self.space.adjacency
        weights = links.data * self.rng.uniform(1.0, DETOUR, len(links.data))
        roads = sparse.csr_array((weights, links.indices, links.indptr), links.shape)
        [before] = csgraph.dijkstra(roads, directed=False, indices=[there], return_predecessors=True)[1]
        way = [self.places[-1]]
        while way[-1] != there and before[way[-1]] >= 0:
            way.append(int(before[way[-1]]))
        if len(way) > 1:
            arrivals = now + np.cumsum(links[way[:-1], way[1:]]) / self.habits.speed
            self.times += arrivals.tolist()
            self.places += way[1:]
        return self.times[-1]

    def _pass(self, now: float, place: int) -> None:
        self.times.append(now)
        self.places.append(place)

    def _seat(self) -> int:
        return int(self.rng.integers(len(self.space)))

    def _time(self, ends: tuple[float, float]) -> float:
        return float(self.rng.uniform(*ends))

    def _rest_of(self, ends: tuple[float, float]) -> float:
        """Draw the remainder of a time at a random moment in it; longer times hold more moments."""
        while True:
            length = self._time(ends)
            if self.rng.random() * ends[1] < length:
                return float(length * self.rng.random())
