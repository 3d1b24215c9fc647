"""`GET /v1/sites`, `GET /v1/sites/{site}` (its geometry) and `POST /v1/sites/{site}/erase`."""

import logging
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from fastapi import APIRouter
from pydantic import Field, model_validator

from cloakwork._checks import IntArray
from cloakwork.collect.api.access_control import BODY_ERRORS, READERS, CallerDep, GuardedRoute, guarded
from cloakwork.collect.api.result_models import Moment, RequestModel, ResponseModel, SensorId
from cloakwork.collect.api.route_context import ApiContext, ContextDep, SiteName
from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.storage import Erased, Role
from cloakwork.errors import ApiError
from cloakwork.physics import Physics, Rooms
from cloakwork.privacy import NoiseLaw, Scope, exposures, flip_exposures, rule_of_thumb
from cloakwork.site import Forecast, clock_ms

EIGHT_HOURS = 28_800.0
log = logging.getLogger(__name__)
Segment = tuple[tuple[float, float], tuple[float, float]]
Edge = tuple[int, int, int]  # 0 for vertical or 1 for horizontal, then the line's number and the cell's along it
router = APIRouter(route_class=GuardedRoute)


class StayBody(ResponseModel):
    """The claim for a source that stays in one place for up to so many `seconds`."""

    seconds: float = Field(examples=[28_800.0])
    epsilon: float
    delta: float


class SiteBody(ResponseModel):
    """A site in one line: its privacy claim, its schedule, and the time there.

    A site of `bits` hides whether anyone is in a zone; its claim covers what `shared` sensors report together. Other
    sites have null there, and hide moves of up to `alpha`.

    A result stamped more than `ahead_ms` after the collector's clock comes from a device whose clock is wrong. Where
    the site `follows` its sources, a result is settled `lag` frames later. A zone that is in
    doubt changes its state when the other one has been more likely for `hold_ms`.
    """

    name: str = Field(examples=["hall"])
    kind: str = Field(examples=["floorplan"])
    sensors: int
    places: int
    unit: str = Field(examples=["°C"])
    alpha: float | None = Field(description="Moves of up to this length are hidden; null for a site of bits.")
    shared: int | None = Field(description="Sensors of a site of bits that one person may change in a reading.")
    epsilon: float
    delta: float
    scope: str = Field(examples=["network"], description="Whether the claim is about all sensors or one.")
    window_s: float
    readings_per_window: int
    stay: StayBody | None = Field(description="The claim for long stays, or null.")
    rule_of_thumb: float | None = Field(
        description="The least standard deviation along an axis of an unbiased method that has one window of all "
        "sensors; null where the claim is of fewer, the noise is not Gaussian, or places have no coordinates."
    )
    assumptions: list[str] = Field(description="Assumptions of the claim besides the model, one sentence each.")
    left_open: list[str] = Field(
        description="What usual rooms and sensors do that the claim does not cover here, one sentence each."
    )
    forecast: Forecast | None = Field(description="How often the map was right in the plan's simulation, or null.")
    period_ms: int
    ahead_ms: int
    now: int = Field(description="The collector's clock, in Unix milliseconds.")
    simulated: bool = Field(description="Whether GET .../truth knows where everyone is: in a demonstration.")
    speed: float = Field(description="How many times faster than real time that clock runs: 1 except in a demo.")
    estimator: str = Field(examples=["PointSources"])
    follows: bool
    lag: int
    hold_ms: int


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


class EraseIn(RequestModel):
    """A request to erase a sensor, a period, both, or everything."""

    sensor: SensorId | None = None
    since: Moment | None = None
    until: Moment | None = None
    everything: bool = False

    @model_validator(mode="after")
    def _explicit(self) -> "EraseIn":
        part = (self.sensor, self.since, self.until) != (None, None, None)
        if part == self.everything:
            raise ValueError("give sensor, since or until; or only everything = true to erase all of the site")
        return self


@router.get("/v1/sites", tags=["sites"], **guarded(READERS))
def list_sites(context: ContextDep, caller: CallerDep) -> list[SiteBody]:
    """The sites that this token may see, each with its claim and its schedule."""
    return [_site_body(name, context) for name in context.site_names(caller)]


@router.get("/v1/sites/{site}", tags=["sites"], **guarded(READERS, 404, 422))
def show_site(site: SiteName, context: ContextDep, caller: CallerDep) -> GeometryBody:
    """The shape of a site: places, walls, doors, sensors and zones."""
    return site_geometry(site, context.site(site, caller))


@router.post("/v1/sites/{site}/erase", tags=["administration"], **guarded((Role.OPERATOR,), 404, *BODY_ERRORS))
def erase(site: SiteName, body: EraseIn, context: ContextDep, caller: CallerDep) -> Erased:
    """Erase stored readings of a sensor or a period, and the results of their frames. This cannot be undone."""
    watched = context.site(site, caller)
    known = body.sensor is None or body.sensor in watched.ids
    if body.since is not None and body.until is not None and body.since >= body.until:
        raise ApiError(422, "invalid", "body: until is not after since. Give since <= time < until.")
    erased = context.store.erase(site, body.sensor, body.since, body.until)
    what = "a sensor that the site no longer has" if not known else body.sensor or "all sensors"
    log.warning("token %s erased data of %s: %s, %d readings", caller.token.id, site, what, erased.readings)
    if erased.in_files:
        log.warning("the files of the store still hold what was erased: another program has it open; erase again")
    return erased


def _site_body(name: str, context: ApiContext) -> SiteBody:
    watched = context.sites[name]
    claim = watched.plan.claim
    own: dict[str, Any]
    if isinstance(watched, CollectedBits):
        own = {
            "kind": "bits",
            "places": 0,
            "alpha": None,
            "shared": watched.plan.claim.shared,
            "scope": "network",
            "stay": None,
            "rule_of_thumb": None,
        }
    else:
        site, stay = watched.site, watched.plan.stay
        own = {
            "kind": site.spec.physics.kind,
            "places": len(site.physics.space),
            "alpha": watched.plan.claim.alpha,
            "shared": None,
            "scope": watched.plan.claim.scope,
            "stay": None if stay is None else StayBody(seconds=stay.length, epsilon=stay.epsilon, delta=stay.delta),
            "rule_of_thumb": _rule_of_thumb(watched),
        }
    return SiteBody(
        name=name,
        sensors=len(watched.ids),
        unit=watched.site.unit,
        epsilon=claim.epsilon,
        delta=claim.delta,
        readings_per_window=claim.readings_per_window,
        window_s=claim.window,
        **own,
        assumptions=list(watched.site.assumptions),
        left_open=list(map(str, watched.site.left_open)),
        forecast=watched.plan.forecast,
        period_ms=watched.plan.schedule.period_ms,
        ahead_ms=watched.ahead_ms,
        now=context.clock(),
        simulated=context.simulation is not None,
        speed=context.speed,
        estimator=watched.estimator_name,
        follows=watched.follows,
        lag=watched.lag,
        hold_ms=watched.hold_ms,
    )


@lru_cache
def _rule_of_thumb(watched: CollectedSite) -> float | None:
    cloak = watched.cloak
    if cloak.scope is not Scope.NETWORK or cloak.noise is NoiseLaw.LAPLACE or not cloak.physics.space.places.shape[1]:
        return None
    return rule_of_thumb(cloak)


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
