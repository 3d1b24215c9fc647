"""The shape of a site for drawings, and what eight hours of its readings reveal."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from cloakwork._checks import IntArray
from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.physics import Physics, Rooms
from cloakwork.privacy import exposures, flip_exposures
from cloakwork.site import clock_ms

EIGHT_HOURS = 28_800.0
Segment = tuple[tuple[float, float], tuple[float, float]]


class SensorBody(BaseModel):
    """A sensor: where it is (coordinates, a node, or unknown), and its noise, step and baseline in the site's unit.

    A sensor that reports bits has the `zone` that it watches instead of noise in a unit.
    """

    id: str
    at: list[float] | str | None
    zone: str | None = None
    sigma: float | None
    step: float
    baseline: float


class NamedZone(BaseModel):
    """A part of the site, one that the site file names or a room; `label` is for people, `places` are its places."""

    id: str = Field(examples=["living"])
    label: str = Field(examples=["Living room"])
    places: list[int] = Field(default=[])


class LongerBody(BaseModel):
    """The knowledge of an attacker who keeps all readings of eight hours, or of seven windows if longer.

    A lone source that stays so long in one typical place can be located with a standard deviation along an axis of
    about `radius` metres (Cramer and Rao). On a network, which has no metres, the best guess of its place is right with
    at most the probability `right_place`. The one that does not apply is null. Where the site has a claim for stays,
    `epsilon` is for such a source, at the delta of that claim; else for one that may move in each frame. Of a site of
    bits, it is for one person, and neither `radius` nor `right_place` is known.
    """

    seconds: float = Field(examples=[28_800.0])
    epsilon: float = Field(examples=[18.4])
    radius: float | None = Field(default=None, examples=[0.029])
    right_place: float | None = None


class GeometryBody(BaseModel):
    """The shape of a site. `places` are in the order of a map's numbers; a network has `labels` and `pairs` instead."""

    name: str
    kind: str = Field(
        examples=["floorplan"], description="line, plane, floorplan, graph, matrix, bits, or FILE.py:CLASS."
    )
    unit: str
    places: list[list[float]] = Field(default=[])
    labels: list[str] | None = None
    length: float | None = None
    width: float | None = None
    height: float | None = None
    cell: float | None = None
    walls: list[Segment] = Field(default=[])
    doors: list[Segment] = Field(default=[])
    pairs: list[tuple[int, int]] = Field(default=[])
    lengths: list[float] = Field(default=[])
    sensors: list[SensorBody]
    zones: list[NamedZone] = Field(default=[])
    longer: LongerBody


@lru_cache
def site_geometry(name: str, watched: CollectedSite | CollectedBits) -> GeometryBody:
    """Everything that a drawing of the site needs; lengths in metres on a floor plan, else in the site's own unit."""
    if isinstance(watched, CollectedBits):
        sensors = [
            SensorBody(id=one.id, at=None, zone=one.zone, sigma=None, step=1.0, baseline=0.0)
            for one in watched.site.spec.sensor
        ]
        zones = [NamedZone(id=zone.id, label=zone.label) for zone in watched.site.zones]
        return GeometryBody(
            name=name, kind="bits", unit="", sensors=sensors, zones=zones, longer=longer_window(watched)
        )
    site, physics, space = watched.site, watched.site.physics, watched.site.physics.space
    shape: dict[str, Any] = {}
    if physics.floor is not None:
        shape = floor_shape(physics.floor)
    elif physics.extent:
        names = ("width", "height") if len(physics.extent) == 2 else ("length",)
        shape = dict(zip(names, physics.extent, strict=True))
    elif not space.places.shape[1]:
        shape = {"pairs": space.pairs.tolist(), "lengths": space.lengths.tolist()}
    return GeometryBody(
        **shape,
        name=name,
        kind=site.spec.physics.kind,
        unit=site.unit,
        places=space.places.tolist() if space.places.shape[1] else [],
        labels=None if space.labels is None else [str(label) for label in space.labels],
        sensors=[
            SensorBody(id=planned.id, at=at, sigma=planned.sigma, step=planned.step, baseline=planned.baseline)
            for planned, at in zip(watched.plan.sensors, _positions(physics), strict=True)
        ],
        zones=[NamedZone(id=zone.id, label=zone.label, places=zone.places.tolist()) for zone in site.zones],
        longer=longer_window(watched),
    )


def longer_window(watched: CollectedSite | CollectedBits) -> LongerBody:
    """Compute what eight hours of readings reveal, or seven windows where that is longer."""
    seconds = max(EIGHT_HOURS, 7 * watched.plan.claim.window)
    readings = watched.schedule.most(clock_ms(seconds))
    if isinstance(watched, CollectedBits):
        [of_bits] = flip_exposures(watched.site.flip, {"": readings})
        return LongerBody(seconds=seconds, epsilon=of_bits.epsilon)
    space = watched.site.physics.space
    has_metres = space.places.shape[1] > 0 and len(space) > 1
    [known] = exposures(watched.cloak, {"": readings}, named=not has_metres)
    epsilon = next(each for each in (known.stay, known.together, known.epsilon) if each is not None)
    if has_metres:
        return LongerBody(seconds=seconds, epsilon=epsilon, radius=known.std)
    return LongerBody(
        seconds=seconds, epsilon=epsilon, right_place=1.0 if known.right_place is None else known.right_place
    )


def _positions(physics: Physics) -> list[list[float] | str | None]:
    """Return the position of each sensor: coordinates, the name of a node, or unknown."""
    if physics.sensor_positions is not None:
        return list(physics.sensor_positions.tolist())
    if physics.sensor_places is not None:
        return [physics.space.name(int(place)) for place in physics.sensor_places]
    return [None] * physics.sensors


def floor_shape(rooms: Rooms) -> dict[str, Any]:
    """Size, walls and doors of a floor; a wall is where two cells are not connected, or there is only one."""
    width, height = rooms.size
    count = len(rooms.space)

    def sides(pairs: IntArray) -> IntArray:
        return np.asarray(pairs.min(axis=-1) * count + pairs.max(axis=-1))

    # a cell that is a door, as in a drawing, has no door inside: every connection to it leads through one
    beside_door = np.isin(rooms.pairs, rooms.pairs[rooms.door < 0]).any(axis=1)
    doors = sides(rooms.pairs[(rooms.door >= 0) & beside_door])
    connected = [*sides(rooms.pairs), *sides(np.array([[-1, -1]]))]
    walls = _segments(rooms, lambda pairs: ~np.isin(sides(pairs), connected))
    passages = _segments(rooms, lambda pairs: np.isin(sides(pairs), doors))
    return {"width": width, "height": height, "cell": rooms.cell, "walls": walls, "doors": passages}


def _segments(rooms: Rooms, chosen: Callable[[IntArray], Any]) -> list[Segment]:
    """The sides between chosen pairs of touching cells as segments, adjacent ones joined; -1 stands for no cell."""
    grid, segments = np.pad(rooms.grid, 1, constant_values=-1), list[Segment]()
    for upright, cells in ((True, grid[1:-1].T), (False, grid[:, 1:-1])):
        for line, row in enumerate(chosen(np.stack([cells[:-1], cells[1:]], axis=-1))):
            ends = np.flatnonzero(np.diff(row, prepend=False, append=False))
            for start, end in (ends.reshape(-1, 2) * rooms.cell).tolist():
                at = line * rooms.cell
                segments.append(((at, start), (at, end)) if upright else ((start, at), (end, at)))
    return segments
