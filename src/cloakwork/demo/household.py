"""The people of the demonstrations: a family with a guest in a flat, and the people of any other floor."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from cloakwork._checks import FloatArray, IntArray
from cloakwork.accuracy import SimulatedDay, simulated_day
from cloakwork.errors import InputError
from cloakwork.physics import Rooms
from cloakwork.site import Site

Position = tuple[float, float]  # metres
Stop = tuple[float, int]  # a time of day, in seconds, and the place to which a person goes then
AWAY = -1
DAY_S = 86_400
SPEED = 0.8  # metres a second
WAKING_S, RESIDENTS_S = 6 * 3600 + 40 * 60, 8 * 3600 + 30 * 60  # the time of day at which a demonstration begins
USUAL_COUNT = 4  # people of a site that states no number
SEATS: dict[str, Position] = {
    "sofa": (1.6, 1.9),
    "corner": (2.6, 1.9),
    "armchair": (4.6, 1.4),
    "head": (2.4, 5.7),
    "foot": (4.4, 5.7),
    "side": (3.4, 6.4),
    "bench": (3.4, 4.9),
    "stove": (1.4, 7.1),
    "sink": (3.4, 7.1),
    "left": (7.4, 6.6),
    "right": (8.9, 6.6),
    "window": (9.4, 4.8),
    "bunk": (9.0, 3.1),
    "desk": (8.4, 1.6),
    "shelf": (7.0, 0.6),
    "door": (0.2, 4.0),
}
# Where each person goes at which time. Nobody is named but here: the sensors see warmth.
ROUTINES = {
    "Ada": "0:00 left, 6:55 stove, 7:10 head, 8:05 desk, 9:50 stove, 10:05 desk, 12:25 stove, 12:45 head, "
    "13:30 sofa, 14:10 desk, 16:30 armchair, 17:20 stove, 18:00 foot, 18:35 stove, 19:05 foot, 20:15 corner, 22:20 "
    "window, 22:50 left",
    "Ben": "0:00 right, 7:05 foot, 7:55 sofa, 9:10 door, 9:12 out, 12:20 door, 12:21 foot, 13:20 door, 13:21 out, "
    "17:05 door, 17:06 armchair, 18:05 sink, 18:40 head, 20:10 sofa, 21:40 armchair, 22:40 right",
    "Cleo": "0:00 bunk, 7:15 side, 8:00 window, 9:15 door, 9:17 out, 13:05 door, 13:06 side, 13:45 bunk, 14:30 shelf, "
    "15:20 sofa, 16:15 window, 17:00 sofa, 18:10 corner, 18:45 side, 19:50 shelf, 20:20 bunk",
    "Dan": "0:00 out, 18:20 door, 18:21 sofa, 18:50 bench, 20:05 armchair, 21:30 door, 21:32 out",
}


@dataclass(frozen=True, eq=False)
class Household:
    """People who live through a `day` in some rooms, which starts over after 24 hours; `origin` says how."""

    rooms: Rooms
    day: SimulatedDay
    origin: str
    begins_s: int
    furnished: bool = False

    def at(self, elapsed_ms: int) -> tuple[Position, ...]:
        """The positions of everyone who is at home, so many milliseconds after the demonstration began."""
        moment = (self.begins_s + elapsed_ms / 1000) % DAY_S
        return tuple((float(x), float(y)) for x, y in self.day.positions_at(moment) if np.isfinite(x))


def family(rooms: Rooms) -> Household:
    """Four people of the flat, who walk through its doors from seat to seat, a metre in a little more than a second."""
    lives = []
    for seed, routine in enumerate(ROUTINES.values()):
        steps = [step.replace(":", " ").split() for step in routine.split(", ")]
        stops = [
            (3600.0 * int(hour) + 60.0 * int(minute), AWAY if seat == "out" else rooms.cell_at(*SEATS[seat]))
            for hour, minute, seat in steps
        ]
        lives.append(_life(rooms, stops, np.random.default_rng(seed)))
    day = SimulatedDay(rooms.space, DAY_S, tuple(times for times, _ in lives), tuple(places for _, places in lives))
    origin = "through a day that repeats: a family, and a friend who comes for dinner"
    return Household(rooms, day, origin, WAKING_S, furnished=True)


def residents_of(site: Site, *, number: int | None = None, seed: int = 0) -> Household:
    """People who come, sit, walk and go at random times, through the entrances of a site if there are some.

    By default there is one fewer than the site can have, so that a guest has room.
    """
    number = max(1, (site.spec.sources.max_count or USUAL_COUNT) - 1) if number is None else number
    rooms = floor_of(site)
    day = simulated_day(rooms.space, number, hours=DAY_S / 3600, entrances=site.motion.entrances, seed=seed)
    origin = "through a day that repeats: they come, sit, walk to another seat, and go"
    return Household(rooms, day, origin, RESIDENTS_S)


def floor_of(site: Site) -> Rooms:
    """The floor that people walk on."""
    if site.physics.floor is None:
        raise InputError(f"{site.name}: people need a floor plan to walk on.")
    return site.physics.floor


def _life(rooms: Rooms, stops: Sequence[Stop], rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """The moments at which a person passes places, and these places, from midnight on."""
    times: list[float] = []
    places: list[int] = []
    for moment, there in stops:
        known = bool(places) and AWAY not in (places[-1], there)
        way = open_path(rooms, places[-1], there, rng) if known else [there]
        if places:  # until then the person stays
            times.append(moment)
            places.append(places[-1])
        times += [moment + rooms.cell * k / SPEED for k in range(len(way))]
        places += way
    return np.array(times), np.array(places, dtype=np.int64)


def open_path(rooms: Rooms, here: int, there: int, rng: np.random.Generator) -> list[int]:
    """The cells of a path through open doors; lengths vary a little, so that paths differ in their corners."""
    count, pairs = len(rooms.space), rooms.pairs
    lengths = rooms.cell * rng.uniform(1.0, 1.5, len(pairs))
    links = sparse.csr_array((lengths, (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    [before] = sparse.csgraph.dijkstra(links, directed=False, indices=[there], return_predecessors=True)[1]
    way = [here]
    while way[-1] != there:
        way.append(int(before[way[-1]]))
    return way
