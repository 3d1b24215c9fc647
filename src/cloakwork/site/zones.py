"""Zones: named parts of the space, such as rooms. They describe where someone is, and do not affect the noise."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray, read_only
from cloakwork.errors import InputError, SiteError
from cloakwork.physics import Physics, Rooms, Space
from cloakwork.site.schema import FloorPlanSpec, SiteSpec, ZoneSpec

FORMS = ("places", "between", "corners")  # of a space without coordinates, along a line, and in a plane
MARGIN = 1e-9  # of the size of the space


@dataclass(frozen=True, eq=False)
class Zone:
    """A part of the space: `places` are the indices of its places, in order. Zones may overlap."""

    id: str
    label: str
    places: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", read_only(np.array(self.places, dtype=np.int64)))


def make_zones(spec: SiteSpec, physics: Physics) -> tuple[Zone, ...]:
    """Return the zones that a site file names, or else the rooms of a floor plan.

    >>> from cloakwork.site import parse_site
    >>> site = parse_site('''
    ... name = "two-rooms"
    ... sensors = 4
    ... physics = {kind = "floorplan", cell = 0.5, drawing = "...+...", regime = "steady", reach = 1.0}
    ... sources = {kind = "lasting"}
    ... privacy = {epsilon = 2.0, delta = 1e-5, alpha = 0.3}
    ... ''')
    >>> [(zone.id, zone.places.tolist()) for zone in site.zones]
    [('room-1', [0, 1, 2]), ('room-2', [4, 5, 6])]
    """
    if spec.zone:
        return tuple(_zone(number, zone, spec, physics) for number, zone in enumerate(spec.zone))
    if physics.floor is None:
        return ()
    floor = physics.floor
    rooms = room_numbers(floor, spec)
    first = sorted(range(rooms.max() + 1), key=lambda room: _reading_order(floor, rooms == room))
    return tuple(
        Zone(f"room-{number}", f"room {number}", np.flatnonzero(rooms == room))
        for number, room in enumerate(first, start=1)
    )


def _zone(number: int, zone: ZoneSpec, spec: SiteSpec, physics: Physics) -> Zone:
    try:
        inside = _places_in(zone, spec, physics)
        if not inside.any():
            raise SiteError("no place lies inside, because places are farther apart. Make the zone larger.")
    except InputError as problem:
        raise SiteError(f'zone "{zone.id}", {zone.form}: {problem}', at=("zone", number, zone.form)) from None
    return Zone(zone.id, zone.label or zone.id, np.flatnonzero(inside))


def _places_in(zone: ZoneSpec, spec: SiteSpec, physics: Physics) -> NDArray[np.bool_]:
    """Whether each place is in the zone."""
    if physics.floor is not None and zone.room is not None:
        return _room(zone.room, room_numbers(physics.floor, spec), physics.floor)
    if len(physics.extent) == 2 and zone.corners is not None:
        return _within(zone.corners, physics.extent, physics.space)
    if len(physics.extent) == 1 and zone.between is not None:
        return _within([[at] for at in zone.between], physics.extent, physics.space)
    if not physics.extent and zone.places is not None:
        return _named(zone.places, physics.space)
    form = ("" if physics.floor is None else "room or ") + FORMS[min(len(physics.extent), 2)]
    raise SiteError(f"this key is not for a {spec.physics.kind}. Give {form}.")


def room_numbers(rooms: Rooms, spec: SiteSpec) -> IntArray:
    """Return the number of each cell's room when all doors are shut; -1 for a cell that is a door."""
    parts = rooms.shut(range(rooms.doors)).space.components()
    drawing = spec.physics.drawing if isinstance(spec.physics, FloorPlanSpec) else None
    if drawing is not None:  # its cells are numbered from the bottom line up
        marks = [mark for line in reversed(drawing.splitlines()) for mark in line if mark in ".+"]
        parts = np.where(np.array(marks) == "+", -1, parts)
    return np.asarray(np.unique(parts, return_inverse=True)[1] - int(parts.min() < 0), dtype=np.int64)


def _reading_order(rooms: Rooms, room: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the room's first cell in reading order, from the top line down."""
    return min((-y, x) for x, y in rooms.space.places[room].tolist())


def _room(at: Sequence[float], numbers: IntArray, rooms: Rooms) -> NDArray[np.bool_]:
    room = numbers[rooms.cell_at(*at)]
    if room < 0:
        raise SiteError(f"({at[0]:g}, {at[1]:g}) is in a door. Give a point in the room.")
    return np.asarray(numbers == room)


def _named(names: Sequence[str | int], space: Space) -> NDArray[np.bool_]:
    """Mark nodes by their names, which are texts, and columns of a matrix by their numbers."""
    inside = np.zeros(len(space), dtype=bool)
    for name in names:
        if space.labels is not None:
            inside[space.index(str(name))] = True
        elif isinstance(name, int) and 0 <= name < len(space):
            inside[name] = True
        else:
            raise SiteError(f"{name!r} is not a place: places are numbered 0 to {len(space) - 1}.")
    return inside


def _within(outline: Sequence[Sequence[float]], size: Sequence[float], space: Space) -> NDArray[np.bool_]:
    """Mark places inside an interval or a shape; one on a shared border belongs to the left or lower zone."""
    corners, sides = np.array(outline, dtype=np.float64), np.array(size, dtype=np.float64)
    outside = ((corners < -MARGIN * sides) | (corners > (1 + MARGIN) * sides)).any(axis=1)
    if outside.any():
        corner, most = (", ".join(f"{value:g}" for value in row) for row in (corners[int(np.argmax(outside))], sides))
        raise SiteError(f"({corner}) is outside. Give numbers from 0 to ({most}).")
    points = space.places - MARGIN * sides
    if len(corners) > 2:
        return _inside(points, corners)
    return np.asarray(((points >= corners.min(axis=0)) & (points < corners.max(axis=0))).all(axis=1))


def _inside(points: FloatArray, corners: FloatArray) -> NDArray[np.bool_]:
    """Mark points from which a ray to the right crosses the outline an odd number of times."""
    odd = np.zeros(len(points), dtype=bool)
    x, y = points.T
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, 1, axis=0), strict=True):
        spans = (ay > y) != (by > y)
        if spans.any():
            odd ^= spans & (x < ax + (y - ay) * (bx - ax) / (by - ay))
    return odd
