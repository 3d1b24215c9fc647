"""The shape of a site, for who draws it: places, walls, doors, sensors and zones."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.collect.api.models import GeometryBody, NamedZone, SensorBody
from cloakwork.collect.place import Watched
from cloakwork.physics import FloorPlan, Graph, HeatLine, HeatPlane, Physics, Rooms

Segment = tuple[tuple[float, float], tuple[float, float]]
Edge = tuple[int, int, int]  # 0 for upright and 1 for level, then the line's number and the cell's along it


def geometry(name: str, watched: Watched) -> GeometryBody:
    """Everything that a drawing of the site needs; lengths in metres on a floor plan, else in the site's own unit."""
    site, plan = watched.site, watched.plan
    physics = site.physics
    space = physics.space
    positions = _positions(physics)
    sensors = [
        SensorBody(id=planned.id, at=at, sigma=planned.sigma, step=planned.step, baseline=planned.baseline)
        for planned, at in zip(plan.sensors, positions, strict=True)
    ]
    labels = None if space.labels is None else [str(label) for label in space.labels]
    told: dict[str, Any] = {"places": space.places.tolist() if space.places.shape[1] else [], "labels": labels}
    if isinstance(physics, FloorPlan):
        told |= _floor(physics.rooms)
    elif isinstance(physics, HeatPlane):
        told |= {"width": physics.size[0], "height": physics.size[1]}
    elif isinstance(physics, HeatLine):
        told |= {"length": physics.length}
    elif not space.places.shape[1]:
        told |= {"pairs": space.pairs.tolist(), "lengths": space.lengths.tolist()}
    named = bool(site.spec.zone)
    zones = [NamedZone(id=z.id, label=z.label, places=z.places.tolist() if named else []) for z in site.zones]
    return GeometryBody(name=name, kind=site.spec.physics.kind, unit=site.unit, sensors=sensors, zones=zones, **told)


def _positions(physics: Physics) -> list[list[float] | str | None]:
    """Where each sensor is: coordinates, the name of a node, or unknown."""
    if isinstance(physics, FloorPlan | HeatPlane):
        return [[float(x), float(y)] for x, y in physics.sensor_positions]
    if isinstance(physics, HeatLine):
        return [[float(x)] for x in physics.sensor_positions]
    if isinstance(physics, Graph):
        return [physics.space.name(int(place)) for place in physics.sensor_places]
    return [None] * physics.sensors


def _floor(rooms: Rooms) -> dict[str, Any]:
    """Walls and doors as segments: a wall is where no way leads from a cell to its neighbour, or there is none."""
    width, height = rooms.size
    open_ways = {(int(i), int(j)) for i, j in rooms.pairs}
    within = _door_cells(rooms)
    doorways = [
        (int(i), int(j))
        for (i, j), door in zip(rooms.pairs, rooms.door, strict=True)
        if door >= 0 and not (int(i) in within and int(j) in within)
    ]
    walls, where = [], {}
    for edge, one, other in _edges(rooms.grid):
        where[min(one, other), max(one, other)] = edge
        if (one >= 0 or other >= 0) and (min(one, other), max(one, other)) not in open_ways:
            walls.append(edge)
    doors = [where[min(pair), max(pair)] for pair in doorways]
    return {
        "width": width,
        "height": height,
        "cell": rooms.cell,
        "walls": _segments(walls, rooms.cell),
        "doors": _segments(doors, rooms.cell),
    }


def _edges(grid: IntArray) -> Iterable[tuple[Edge, int, int]]:
    """Every edge of the grid of cells, with the cells at its two sides; -1 where there is none."""
    padded = np.pad(grid, 1, constant_values=-1)
    rows, columns = grid.shape
    for row in range(rows):
        for column in range(columns + 1):
            yield (0, column, row), int(padded[row + 1, column]), int(padded[row + 1, column + 1])
    for column in range(columns):
        for row in range(rows + 1):
            yield (1, row, column), int(padded[row, column + 1]), int(padded[row + 1, column + 1])


def _door_cells(rooms: Rooms) -> set[int]:
    """Cells that are doors themselves, as in a drawing: every way to them is one through a door."""
    doors = rooms.door >= 0
    return {int(k) for k in rooms.pairs[doors].ravel()} - {int(k) for k in rooms.pairs[~doors].ravel()}


def _segments(edges: Iterable[Edge], cell: float) -> list[Segment]:
    """Edges, those in a row joined into one."""
    lines: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for kind, line, along in edges:
        lines[kind, line].append(along)
    found: list[Segment] = []
    for (kind, line), cells in sorted(lines.items()):
        ordered = np.array(sorted(set(cells)))
        for run in np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1):
            start, end, at = run[0] * cell, (run[-1] + 1) * cell, line * cell
            ends = ((at, start), (at, end)) if kind == 0 else ((start, at), (end, at))
            found.append(((float(ends[0][0]), float(ends[0][1])), (float(ends[1][0]), float(ends[1][1]))))
    return found
