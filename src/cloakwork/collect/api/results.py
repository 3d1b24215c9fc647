"""Results: the newest, one, a page of them, and what all data together say."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from cloakwork.collect.api.attack import longer
from cloakwork.collect.api.errors import Refusal, responses
from cloakwork.collect.api.gate import READERS, CallerOf, allow
from cloakwork.collect.api.models import AttackBody, Moment, ResultBody, ResultsBody, result_body, result_values
from cloakwork.collect.api.paging import Paged, answer_page, as_json, outside
from cloakwork.collect.api.parts import PartsOf
from cloakwork.collect.api.sites import SiteName
from cloakwork.collect.occupancy import occupancies
from cloakwork.collect.place import Watched
from cloakwork.collect.records import Page, Result
from cloakwork.collect.solve import Attack, unix_ms


async def latest(site: SiteName, parts: PartsOf, caller: CallerOf) -> Response:
    """The newest result with its map, one number for each place, and its zones; none that is far ahead of the clock."""
    watched = parts.site(site, caller)
    found = await parts.work.read(parts.store.latest, site, unix_ms() + watched.ahead_ms)
    if found is None:
        raise Refusal(404, "no-result", "Nothing was recovered at this site yet. Try again when readings have come.")
    return await parts.work.read(_whole, watched, found)


async def list_results(site: SiteName, asked: Annotated[Paged, Query()], parts: PartsOf, caller: CallerOf) -> Response:
    """Results without their maps, newest first."""
    parts.site(site, caller)
    return await answer_page(parts, caller, asked, partial(parts.store.results, site), _page)


async def show_result(
    site: SiteName,
    time: Annotated[Moment, Path(description="Time of the frame, in Unix milliseconds.")],
    parts: PartsOf,
    caller: CallerOf,
) -> Response:
    """The result of one frame with its map and its zones."""
    watched = parts.site(site, caller)
    found = await parts.work.read(parts.store.result, site, time)
    if found is None:
        raise Refusal(
            404, "no-result", "There is no result of this time. GET .../results lists the times that have one."
        )
    return await parts.work.read(_whole, watched, found)


async def attack(
    site: SiteName,
    parts: PartsOf,
    caller: CallerOf,
    time: Annotated[
        Moment | None, Query(description="Up to this time, in Unix milliseconds; up to the newest frame if left out.")
    ] = None,
) -> Response:
    """What someone can say who kept every reading of the window up to a time, if nobody moved meanwhile."""
    watched = parts.site(site, caller)
    async with parts.gate.turn(caller, "attack"):
        found = await parts.work.heavy(parts.attacks.at, watched, time)
    if found is None:
        raise Refusal(404, "no-readings", "There are no readings in the window up to this time.")
    return await parts.work.read(_together, watched, found)


def _whole(watched: Watched, found: Result) -> Response:
    return as_json(result_body(found, with_map=True, zones=occupancies(watched.site, found)))


def _together(watched: Watched, found: Attack) -> Response:
    values = result_values(found.result, with_map=True, zones=occupancies(watched.site, found.result))
    told = {"frames": found.frames, "readings": found.readings, "since": found.since, "cut": found.cut}
    return as_json(AttackBody.model_validate(values | told | {"longer": longer(watched)}))


def _page(page: Page[Result]) -> ResultsBody:
    return ResultsBody(items=[result_body(one, with_map=False) for one in page.items], next=outside(page.next))


def add(router: APIRouter) -> None:
    """Put the routes of this module in place."""
    errors, read = responses(401, 403, 404, 422, 429, 503), allow(*READERS)
    for path, endpoint, body in (
        ("latest", latest, ResultBody),
        ("results", list_results, ResultsBody),
        ("results/{time}", show_result, ResultBody),
        ("attack", attack, AttackBody),
    ):
        router.get(
            f"/v1/sites/{{site}}/{path}", tags=["results"], response_model=body, responses=errors, openapi_extra=read
        )(endpoint)
