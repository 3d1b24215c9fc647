"""`POST /v1/readings` for devices, `GET /v1/sites/{site}/readings` for analysts."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Body, Query, Response
from pydantic import Discriminator, Field, Tag

from cloakwork.collect.api.access_control import BODY_ERRORS, READERS, Caller, CallerDep, GuardedRoute, guarded
from cloakwork.collect.api.result_models import Moment, Name, RequestModel, ResponseModel, SensorId
from cloakwork.collect.api.route_context import ContextDep, PageQuery, SiteName, encode_cursor, page_response
from cloakwork.collect.storage import Page, Reading, ReadingStatus, Role
from cloakwork.errors import ApiError, InputError
from cloakwork.sensor.wire import LARGEST

MOST = 1000  # readings in one request
QUOTA_S = 3600.0  # before a device that has sent too many may try again
EXAMPLE = {"v": 1, "site": "hall", "sensor": "s07", "seq": 123061282013184, "time": 1794731949036, "value": 8955}
router = APIRouter(route_class=GuardedRoute, tags=["readings"])


class ReadingIn(RequestModel):
    """A cloaked reading, as a device sends it."""

    v: Annotated[int, Field(ge=1, le=1, examples=[1])]  # a Literal would accept true for 1
    site: Name
    sensor: SensorId
    seq: Annotated[int, Field(ge=0, le=LARGEST, examples=[123061282013184])]
    time: Moment
    value: Annotated[int, Field(ge=-LARGEST, le=LARGEST, description="In steps, cloaked.", examples=[8955])]


class Accepted(ResponseModel):
    """The outcome: `accepted` readings are new, `again` were stored before, `alarms` contradict a stored one."""

    accepted: int = Field(examples=[1])
    again: int = Field(examples=[0])
    alarms: int = Field(examples=[0])


class ReadingBody(ResponseModel):
    """A stored reading: `value` in steps, `reading` in the site's unit (null if the plan has no such sensor)."""

    sensor: str
    seq: int
    time: int
    value: int
    reading: float | None
    received: int


class ReadingsBody(ResponseModel):
    """A page of readings, newest first; `next` is the query's `after` for the next page, null at the end."""

    items: list[ReadingBody]
    next: str | None


class ReadingsQuery(PageQuery):
    """A page of readings, optionally of one sensor."""

    sensor: Annotated[SensorId | None, Field(description="Of one sensor only.")] = None


def _form(body: object) -> str:
    """Tell which of the two forms a body has, so that an error speaks of that one only."""
    return "MANY" if isinstance(body, list) else "ONE"


One = Annotated[ReadingIn, Tag("ONE")]
Many = Annotated[list[ReadingIn], Field(min_length=1, max_length=MOST, fail_fast=True), Tag("MANY")]


@router.post("/v1/readings", **guarded((Role.DEVICE,), *BODY_ERRORS, 429))
def post_readings(
    body: Annotated[One | Many, Discriminator(_form), Body(examples=[EXAMPLE, [EXAMPLE]])],
    context: ContextDep,
    caller: CallerDep,
) -> Accepted:
    """Store cloaked readings of the device's own sensor: one, or a list of up to 1000; all of them or none.

    Readings are durable once this returns 200. A reading may be sent again: it is stored once.
    """
    readings = body if isinstance(body, list) else [body]
    _require_own_sensor(readings, caller)
    now = context.clock()
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


def _require_own_sensor(readings: list[ReadingIn], caller: Caller) -> None:
    site, sensor = caller.token.site, caller.token.sensor
    if any((reading.site, reading.sensor) != (site, sensor) for reading in readings):
        message = f"This token writes readings of sensor {sensor} of {site} only. Nothing was stored."
        raise ApiError(403, "not-your-sensor", message)


@router.get("/v1/sites/{site}/readings", response_model=ReadingsBody, **guarded(READERS, 404, 422))
def list_readings(
    site: SiteName, query: Annotated[ReadingsQuery, Query()], context: ContextDep, caller: CallerDep
) -> Response:
    """Stored readings, newest first: cloaked, in steps and in the site's unit."""
    steps = context.site(site, caller).plan.steps
    read = partial(context.store.readings.page, site, sensor=query.sensor)
    return page_response(query, read, partial(_readings_body, steps))


def _readings_body(steps: Mapping[str, float], page: Page[Reading]) -> ReadingsBody:
    items = [
        ReadingBody(**row._asdict(), reading=row.value * steps[row.sensor] if row.sensor in steps else None)
        for row in page.items
    ]
    return ReadingsBody(items=items, next=encode_cursor(page.next))
