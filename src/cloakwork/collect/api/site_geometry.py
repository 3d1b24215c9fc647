"""The shape of a site for drawings, and what eight hours of its readings reveal."""

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from pydantic import Field

from cloakwork._checks import IntArray
from cloakwork.collect.api.route_context import ResponseModel
from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.physics import Physics, Rooms
from cloakwork.privacy import exposures, flip_exposures
from cloakwork.site import clock_ms

EIGHT_HOURS = 28_800.0
Segment = tuple[tuple[float, float], tuple[float, float]]
Edge = tuple[int, int, int]  # 0 for vertical or 1 for horizontal, then the line's number and the cell's along it


class SensorBody(ResponseModel):
    """A sensor: where it is (coordinates, a node, or unknown), and its noise, step and baseline in the site's unit.

    A sensor that reports bits has the `zone` that it watches instead of noise in a unit.
    """

    id: str
    at: list[float] | str | None
    zone: str | None = None
    sigma: float | None
    step: float
    baseline: float


class NamedZone(ResponseModel):
    """A part of the site, one that the site file names or a room; `label` is for people, `places` are its places."""

    id: str = Field(examples=["living"])
    label: str = Field(examples=["Living room"])
    places: list[int] = Field([])


class LongerBody(ResponseModel):
    """The knowledge of an attacker who keeps all readings of eight hours, or of seven windows if longer.

    A lone source that stays so long in one typical place can be located with a standard deviation along an axis of
    about `radius` metres (Cramer and Rao). On a network, which has no metres, the best guess of its place is right with
    at most the probability `right_place`. The one that does not apply is null. Where the site has a claim for stays,
    `epsilon` is for such a source, at the delta of that claim; else for one that may move in each frame. Of a site of
    bits, it is for one person, and neither `radius` nor `right_place` is known.
    """

    seconds: float = Field(examples=[28_800.0])
    epsilon: float = Field(examples=[18.4])
    radius: float | None = Field(examples=[0.029])
    right_place: float | None


class GeometryBody(ResponseModel):
    """The shape of a site. `places` are in the order of a map's numbers; a network has `labels` and `pairs` instead."""

    name: str
    kind: str = Field(
        examples=["floorplan"], description="line, plane, floorplan, graph, matrix, bits, or FILE.py:CLASS."
    )
    unit: str
    places: list[list[float]]
    labels: list[str] | None = None
    length: float | None = None
    width: float | None = None
    height: float | None = None
    cell: float | None = None
    walls: list[Segment] = Field([])
    doors: list[Segment] = Field([])
    pairs: list[tuple[int, int]] = Field([])
    lengths: list[float] = Field([])
    sensors: list[SensorBody]
    zones: list[NamedZone] = Field([])
    longer: LongerBody


@lru_cache
def site_geometry(name: str, watched: CollectedSite | CollectedBits) -> GeometryBody:
    """Everything that a drawing of the site needs; lengths in metres on a floor plan, else in the site's own unit."""
    return _bits_geometry(name, watched) if isinstance(watched, CollectedBits) else _geometry(name, watched)


def _bits_geometry(name: str, watched: CollectedBits) -> GeometryBody:
    site, claim = watched.site, watched.plan.claim
    seconds = max(EIGHT_HOURS, 7 * claim.window)
    [known] = flip_exposures(site.flip, {"": watched.schedule.most(clock_ms(seconds))})
    return GeometryBody(
        name=name,
        kind="bits",
        unit="",
        places=[],
        sensors=[
            SensorBody(id=sensor.id, at=None, zone=sensor.zone, sigma=None, step=1.0, baseline=0.0)
            for sensor in site.spec.sensor
        ],
        walls=[],
        doors=[],
        pairs=[],
        lengths=[],
        zones=[NamedZone(id=zone.id, label=zone.label, places=[]) for zone in site.zones],
        longer=LongerBody(seconds=seconds, epsilon=known.epsilon, radius=None, right_place=None),
    )


def _geometry(name: str, watched: CollectedSite) -> GeometryBody:
    site, plan = watched.site, watched.plan
    physics, space = site.physics, site.physics.space
    sensors = [
        SensorBody(id=planned.id, at=at, sigma=planned.sigma, step=planned.step, baseline=planned.baseline)
        for planned, at in zip(plan.sensors, _positions(physics), strict=True)
    ]
    labels = None if space.labels is None else [str(label) for label in space.labels]
    shape: dict[str, Any] = {"places": space.places.tolist() if space.places.shape[1] else [], "labels": labels}
    if physics.floor is not None:
        shape |= floor_shape(physics.floor)
    elif physics.extent:
        names = ("width", "height") if len(physics.extent) == 2 else ("length",)
        shape |= dict(zip(names, physics.extent, strict=True))
    elif not space.places.shape[1]:
        shape |= {"pairs": space.pairs.tolist(), "lengths": space.lengths.tolist()}
    zones = [NamedZone(id=zone.id, label=zone.label, places=zone.places.tolist()) for zone in site.zones]
    shape |= {"kind": site.spec.physics.kind, "sensors": sensors, "zones": zones, "longer": longer_window(watched)}
    return GeometryBody(name=name, unit=site.unit, **shape)


def longer_window(watched: CollectedSite) -> LongerBody:
    """Compute what eight hours of readings reveal, or seven windows where that is longer."""
    seconds, space = max(EIGHT_HOURS, 7 * watched.plan.claim.window), watched.site.physics.space
    has_metres = space.places.shape[1] > 0 and len(space) > 1
    [known] = exposures(watched.cloak, {"": watched.schedule.most(clock_ms(seconds))}, named=not has_metres)
    epsilon = next(each for each in (known.stay, known.together, known.epsilon) if each is not None)
    if has_metres:
        return LongerBody(seconds=seconds, epsilon=epsilon, radius=known.std, right_place=None)
    right = 1.0 if known.right_place is None else known.right_place
    return LongerBody(seconds=seconds, epsilon=epsilon, radius=None, right_place=right)


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
    pairs = [frozenset(pair) for pair in rooms.pairs.tolist()]
    door_cells = _door_cells(rooms)
    doors = {pair for pair, door in zip(pairs, rooms.door, strict=True) if door >= 0 and not pair <= door_cells}
    open_edges, edges = {*pairs, frozenset([-1])}, list(_edges(rooms.grid))
    walls = _segments((edge for edge, pair in edges if pair not in open_edges), rooms.cell)
    passages = _segments((edge for edge, pair in edges if pair in doors), rooms.cell)
    return {"width": width, "height": height, "cell": rooms.cell, "walls": walls, "doors": passages}


def _edges(grid: IntArray) -> Iterable[tuple[Edge, frozenset[int]]]:
    """Every edge of the grid of cells, with the cells on its two sides; -1 where there is none."""
    padded = np.pad(grid, 1, constant_values=-1)
    for kind, cells in enumerate((padded[1:-1].T, padded[:, 1:-1])):
        for (line, along), near in np.ndenumerate(cells[:-1]):
            yield (kind, line, along), frozenset((int(near), int(cells[line + 1, along])))


def _door_cells(rooms: Rooms) -> set[int]:
    """Cells that are doors themselves, as in a drawing: every connection to them leads through a door."""
    doors = rooms.door >= 0
    return {int(k) for k in rooms.pairs[doors].ravel()} - {int(k) for k in rooms.pairs[~doors].ravel()}


def _segments(edges: Iterable[Edge], cell: float) -> list[Segment]:
    """Edges as segments, adjacent ones joined."""
    lines: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for kind, line, along in edges:
        lines[kind, line].append(along)
    segments: list[Segment] = []
    for (kind, line), cells in sorted(lines.items()):
        ordered = np.array(sorted(set(cells)))
        for run in np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1):
            start, end, at = float(run[0] * cell), float((run[-1] + 1) * cell), float(line * cell)
            segments.append(((at, start), (at, end)) if kind == 0 else ((start, at), (end, at)))
    return segments
