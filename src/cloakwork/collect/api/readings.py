"""`POST /v1/readings` for devices, `GET /v1/sites/{site}/readings` for analysts."""

import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Body, Query, Request, Response
from pydantic import Discriminator, Field, Tag

from cloakwork.collect.api.auth import Caller
from cloakwork.collect.api.errors import Refusal, responses
from cloakwork.collect.api.gate import READERS, CallerOf, allow
from cloakwork.collect.api.models import Accepted, ReadingBody, ReadingIn, ReadingsBody, Sensor
from cloakwork.collect.api.paging import Paged, answer_page, outside
from cloakwork.collect.api.parts import PartsOf
from cloakwork.collect.api.sites import SiteName
from cloakwork.collect.records import Page, Reading, Role, Verdict
from cloakwork.errors import InputError

MOST = 1000  # readings in one request
EXAMPLE = {"v": 1, "site": "hall", "sensor": "s07", "seq": 123061282013184, "time": 1794731949036, "value": 8955}


def _form(given: object) -> str:
    """Which of the two forms is meant, so that an error speaks of that one only."""
    return "MANY" if isinstance(given, list) else "ONE"


One = Annotated[ReadingIn, Tag("ONE")]
Many = Annotated[list[ReadingIn], Field(min_length=1, max_length=MOST, fail_fast=True), Tag("MANY")]


class ReadingsAsked(Paged):
    """A page of readings, perhaps of one sensor."""

    sensor: Annotated[Sensor | None, Field(description="Of one sensor only.")] = None


async def post_readings(
    asked: Annotated[One | Many, Discriminator(_form), Body(examples=[EXAMPLE, [EXAMPLE]])],
    request: Request,
    parts: PartsOf,
    caller: CallerOf,
) -> Accepted:
    """Store cloaked readings of the device's own sensor: one, or a list of up to 1000; all of them or none.

    What was answered with 200 is durable. A reading may be sent again: it is stored once.
    """
    given = asked if isinstance(asked, list) else [asked]
    parts.gate.charge(caller, max(0.0, len(given) / parts.settings.readings_per_request - request.state.paid))
    _refuse_others(given, caller)
    now = time.time_ns() // 1_000_000
    rows = [Reading(one.site, one.sensor, one.seq, one.time, one.value, now) for one in given]
    try:
        verdicts = Counter(await parts.work.write(parts.intake.submit, rows))
    except InputError:
        text = "The sensor of this token is not known here. Check the site file, or ask for another token."
        raise Refusal(422, "unknown-sensor", text) from None
    return Accepted(accepted=verdicts[Verdict.NEW], again=verdicts[Verdict.AGAIN], alarms=verdicts[Verdict.ALARM])


def _refuse_others(given: list[ReadingIn], caller: Caller) -> None:
    token = caller.token
    if any(one.site != token.site or one.sensor != token.sensor for one in given):
        text = (
            f"This token writes readings of sensor {token.sensor} of {token.site} and of no other. Nothing was stored."
        )
        raise Refusal(403, "not-your-sensor", text)


async def list_readings(
    site: SiteName, asked: Annotated[ReadingsAsked, Query()], parts: PartsOf, caller: CallerOf
) -> Response:
    """Stored readings, newest first: cloaked, in steps and in the site's unit."""
    steps = {sensor.id: sensor.step for sensor in parts.site(site, caller).plan.sensors}
    read = partial(parts.store.readings, site, sensor=asked.sensor)
    return await answer_page(parts, caller, asked, read, partial(_page, steps))


def _page(steps: Mapping[str, float], page: Page[Reading]) -> ReadingsBody:
    items = [
        ReadingBody(
            sensor=row.sensor,
            seq=row.seq,
            time=row.time,
            value=row.value,
            reading=row.value * steps[row.sensor] if row.sensor in steps else None,
            received=row.received,
        )
        for row in page.items
    ]
    return ReadingsBody(items=items, next=outside(page.next))


def add(router: APIRouter) -> None:
    """Put the routes of this module in place."""
    router.post(
        "/v1/readings",
        tags=["readings"],
        responses=responses(401, 403, 408, 413, 415, 422, 429, 503),
        openapi_extra=allow(Role.DEVICE),
    )(post_readings)
    router.get(
        "/v1/sites/{site}/readings",
        tags=["readings"],
        response_model=ReadingsBody,
        responses=responses(401, 403, 404, 422, 429, 503),
        openapi_extra=allow(*READERS),
    )(list_readings)
