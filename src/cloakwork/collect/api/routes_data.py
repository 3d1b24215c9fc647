"""Readings, in and out; and results: the newest, one, a page, what an attacker sees, a long time, and the truth."""

from collections import Counter
from functools import lru_cache, partial
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Path, Query, Response
from pydantic import BaseModel, Discriminator, Field, Tag

from cloakwork.collect.api.access_control import BODY_ERRORS, READERS, CallerDep, GuardedRoute, guarded
from cloakwork.collect.api.route_context import (
    ContextDep,
    Moment,
    Name,
    PageBody,
    PageQuery,
    QueryModel,
    RequestModel,
    SensorId,
    SiteName,
    json_response,
    read_page,
)
from cloakwork.collect.attack import Attack, Span
from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Reading, ReadingStatus, Result, Role
from cloakwork.errors import ApiError, InputError
from cloakwork.sensor.wire import LARGEST

MAX_SOLVERS = 8
MAX_STEPS = 1000
MOST = 1000  # readings in one request
QUOTA_S = 3600.0  # before a device that has sent too many may try again
EXAMPLE = {"v": 1, "site": "hall", "sensor": "s07", "seq": 123061282013184, "time": 1794731949036, "value": 8955}
router = APIRouter(route_class=GuardedRoute)
truth_router = APIRouter(route_class=GuardedRoute)  # of a demonstration
_READ = guarded(READERS, 404, 422)


class ReadingIn(RequestModel):
    """A cloaked reading, as a device sends it."""

    v: Annotated[int, Field(ge=1, le=1, examples=[1])]  # a Literal would accept true for 1
    site: Name
    sensor: SensorId
    seq: Annotated[int, Field(ge=0, le=LARGEST, examples=[123061282013184])]
    time: Moment
    value: Annotated[int, Field(ge=-LARGEST, le=LARGEST, description="In steps, cloaked.", examples=[8955])]


class Accepted(BaseModel):
    """The outcome: `accepted` readings are new, `again` were stored before, `alarms` contradict a stored one."""

    accepted: int = Field(examples=[1])
    again: int = Field(examples=[0])
    alarms: int = Field(examples=[0])


class ReadingBody(BaseModel):
    """A stored reading: `value` in steps, `reading` in the site's unit (null if the plan has no such sensor)."""

    sensor: str
    seq: int
    time: int
    value: int
    reading: float | None
    received: int


class ReadingsQuery(PageQuery):
    """A page of readings, optionally of one sensor."""

    sensor: Annotated[SensorId | None, Field(description="Of one sensor only.")] = None


def _form(body: object) -> str:
    """Which of the two forms a body has, so that an error is about that one only."""
    return "MANY" if isinstance(body, list) else "ONE"


One = Annotated[ReadingIn, Tag("ONE")]
Many = Annotated[list[ReadingIn], Field(min_length=1, max_length=MOST, fail_fast=True), Tag("MANY")]


@router.post("/v1/readings", tags=["readings"], **guarded((Role.DEVICE,), *BODY_ERRORS, 429))
def post_readings(
    body: Annotated[One | Many, Discriminator(_form), Body(examples=[EXAMPLE, [EXAMPLE]])],
    context: ContextDep,
    caller: CallerDep,
) -> Accepted:
    """Store cloaked readings of the device's own sensor: one, or a list of up to 1000; all of them or none.

    Readings are durable once this returns 200. A reading may be sent again: it is stored once.
    """
    readings = body if isinstance(body, list) else [body]
    token, now = caller.token, context.clock()
    if any((reading.site, reading.sensor) != (token.site, token.sensor) for reading in readings):
        message = f"This token writes readings of sensor {token.sensor} of {token.site} only. Nothing was stored."
        raise ApiError(403, "not-your-sensor", message)
    rows = [Reading(item.site, item.sensor, item.seq, item.time, item.value, now) for item in readings]
    try:
        verdicts = Counter(context.intake.submit(rows))
    except InputError:
        message = "The sensor of this token is unknown here. Check the site file, or ask for another token."
        raise ApiError(422, "unknown-sensor", message) from None
    if verdicts[ReadingStatus.REFUSED]:
        message = "This device has sent more readings than its plan allows. Nothing was stored. Does a copy of it run?"
        raise ApiError(429, "over-quota", message, retry_s=QUOTA_S)
    return Accepted(
        accepted=verdicts[ReadingStatus.NEW], again=verdicts[ReadingStatus.AGAIN], alarms=verdicts[ReadingStatus.ALARM]
    )


@router.get("/v1/sites/{site}/readings", tags=["readings"], response_model=PageBody[ReadingBody], **_READ)
def list_readings(
    site: SiteName, query: Annotated[ReadingsQuery, Query()], context: ContextDep, caller: CallerDep
) -> Response:
    """Stored readings, newest first: cloaked, in steps and in the site's unit."""
    steps = context.site(site, caller).plan.steps
    page = read_page(query, partial(context.store.readings.page, site), sensor=query.sensor)
    items = [
        ReadingBody(**row._asdict(), reading=row.value * steps[row.sensor] if row.sensor in steps else None)
        for row in page.items
    ]
    return json_response(PageBody[ReadingBody](items=items, next=page.next))


@router.get("/v1/sites/{site}/latest", tags=["results"], response_model=Result, **_READ)
def latest(site: SiteName, context: ContextDep, caller: CallerDep) -> Response:
    """The newest result with its map, one number for each place, and its zones; none that is far ahead of the clock."""
    watched = context.site(site, caller)
    result = context.store.results.latest(site, context.clock() + watched.ahead_ms)
    if result is None:
        message = "Nothing has been recovered at this site yet. Try again when readings have arrived."
        raise ApiError(404, "no-result", message)
    return json_response(result)


@router.get("/v1/sites/{site}/results", tags=["results"], response_model=PageBody[Result], **_READ)
def list_results(
    site: SiteName, query: Annotated[PageQuery, Query()], context: ContextDep, caller: CallerDep
) -> Response:
    """Results without their maps, newest first."""
    context.site(site, caller)
    page = read_page(query, partial(context.store.results.page, site))
    return json_response(PageBody[Result](items=[result.light() for result in page.items], next=page.next))


@router.get("/v1/sites/{site}/results/{time}", tags=["results"], response_model=Result, **_READ)
def show_result(
    site: SiteName,
    time: Annotated[Moment, Path(description="Time of the frame, in Unix milliseconds.")],
    context: ContextDep,
    caller: CallerDep,
    alone: Annotated[bool, Query(description="Recover the frame alone, without those before and after it.")] = False,
) -> Response:
    """The result of one frame with its map and its zones; with `alone`, computed from this frame only."""
    if alone:
        watched = context.mapped_site(site, caller)
        frames = watched.frames(context.store, [time])
        result = context.compute(lambda: _solver(watched).alone(frames[0])) if frames else None
    else:
        context.site(site, caller)
        result = context.store.results.get(site, time)
    if result is None:
        message = "No result has this time. GET .../results lists the times that have one."
        raise ApiError(404, "no-result", message)
    return json_response(result)


@router.get("/v1/sites/{site}/attack", tags=["results"], response_model=Attack, **_READ)
def attack(
    site: SiteName,
    context: ContextDep,
    caller: CallerDep,
    time: Annotated[
        Moment | None, Query(description="Up to this time, in Unix milliseconds; up to the newest frame if left out.")
    ] = None,
    span: Annotated[Span, Query(description="How long readings were kept: a window of the claim, or longer.")] = (
        Span.WINDOW
    ),
) -> Response:
    """Return what an attacker knows who kept every reading of a span up to a time; a day may take a minute."""
    watched = context.mapped_site(site, caller)
    found = context.compute(lambda: context.attacks.attack_until(watched, time, span))
    if found is None:
        raise ApiError(404, "no-readings", "The span up to this time has no readings.")
    return json_response(found)


@lru_cache(maxsize=MAX_SOLVERS)
def _solver(watched: CollectedSite) -> Solver:
    return Solver(watched)


class PeriodQuery(QueryModel):
    """A period in equal steps."""

    since: Annotated[Moment | None, Field(description="From this time on; from the oldest result if left out.")] = None
    until: Annotated[Moment | None, Field(description="Before this time; until now if left out.")] = None
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS, description="Parts of the period, each with its last result.")] = (
        300
    )


class ZoneLane(BaseModel):
    """A zone over time: the probability that someone is there, and whether it counts as occupied; null if unknown."""

    id: str = Field(examples=["living"])
    probability: list[float | None]
    occupied: list[bool | None]


class TimelineBody(BaseModel):
    """The last result of each step: `counts` are the most likely numbers of sources, null without a result.

    Where a step is shorter than the time between two frames, most steps have no result.
    """

    since: int
    until: int
    step_ms: int
    counts: list[int | None] | None = Field(description="Null for a site of bits, which count no one.")
    zones: list[ZoneLane]


@router.get("/v1/sites/{site}/timeline", tags=["results"], response_model=TimelineBody, **_READ)
def timeline(
    site: SiteName, query: Annotated[PeriodQuery, Query()], context: ContextDep, caller: CallerDep
) -> Response:
    """Return the occupancy of each zone over a period, in at most `steps` steps."""
    watched, store = context.site(site, caller), context.store.results
    until = context.clock() + 1 if query.until is None else query.until
    since = query.since
    if since is None:
        oldest = store.oldest(site)
        since = until - 1 if oldest is None else min(oldest, until - 1)
    if since >= until:
        raise ApiError(422, "invalid", "query: until is not after since. Give since <= time < until.")
    step = -(-(until - since) // query.steps)
    found = {(result.time - since) // step: result for result in store.sampled(site, since, until, step)}
    results = [found.get(k) for k in range(-(-(until - since) // step))]
    zones = [{} if result is None else {zone.id: zone for zone in result.zones or ()} for result in results]

    def lane(zone: str, name: str) -> list[Any]:
        return [getattr(states.get(zone), name, None) for states in zones]

    lanes = [
        ZoneLane(id=zone.id, probability=lane(zone.id, "probability"), occupied=lane(zone.id, "occupied"))
        for zone in watched.site.zones
    ]
    counts = None if isinstance(watched, CollectedBits) else [_count(result) for result in results]
    return json_response(TimelineBody(since=since, until=until, step_ms=step, counts=counts, zones=lanes))


def _count(result: Result | None) -> int | None:
    if result is None:
        return None
    return len(result.sources) if result.counts is None else int(np.argmax(result.counts))


class TruthBody(BaseModel):
    """All simulated sources at a time."""

    time: int
    sources: list[dict[str, tuple[float, ...]]]


@truth_router.get("/v1/sites/{site}/truth", tags=["results"], **_READ)
def truth(
    site: SiteName,
    context: ContextDep,
    caller: CallerDep,
    time: Annotated[Moment | None, Query(description="Unix milliseconds; the newest if left out.")] = None,
) -> TruthBody:
    """Return the true positions of simulated sources, for a demonstration."""
    context.site(site, caller)
    known = None if context.simulation is None else context.simulation(site, time)
    if known is None:
        raise ApiError(404, "no-truth", "Nothing is simulated at this site at this time.")
    return TruthBody(time=known.time, sources=[{"at": at} for at in known.sources])
