"""Results: the newest, one, a page of them, a whole window combined, and the truth of a simulation."""

from functools import lru_cache, partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from cloakwork.collect.api.access_control import READERS, CallerDep, GuardedRoute, guarded
from cloakwork.collect.api.result_models import (
    AttackBody,
    Moment,
    ResponseModel,
    ResultBody,
    attack_body,
    result_body,
)
from cloakwork.collect.api.route_context import (
    ApiContext,
    ContextDep,
    PageQuery,
    Simulation,
    SiteName,
    encode_cursor,
    json_response,
    page_response,
)
from cloakwork.collect.attack import Span
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Page, Result
from cloakwork.errors import ApiError

MAX_SOLVERS = 8
router = APIRouter(route_class=GuardedRoute, prefix="/v1/sites/{site}", tags=["results"])
_READ = guarded(READERS, 404, 422)


class ResultsBody(ResponseModel):
    """A page of results, newest first; `next` is the query's `after` for the next page, null at the end."""

    items: list[ResultBody]
    next: str | None


@router.get("/latest", response_model=ResultBody, **_READ)
def latest(site: SiteName, context: ContextDep, caller: CallerDep) -> Response:
    """The newest result with its map, one number for each place, and its zones; none that is far ahead of the clock."""
    watched = context.site(site, caller)
    result = context.store.results.latest(site, context.clock() + watched.ahead_ms)
    if result is None:
        message = "Nothing has been recovered at this site yet. Try again when readings have arrived."
        raise ApiError(404, "no-result", message)
    return _whole(result)


@router.get("/results", response_model=ResultsBody, **_READ)
def list_results(
    site: SiteName, query: Annotated[PageQuery, Query()], context: ContextDep, caller: CallerDep
) -> Response:
    """Results without their maps, newest first."""
    context.site(site, caller)
    return page_response(query, partial(context.store.results.page, site), _results_body)


@router.get("/results/{time}", response_model=ResultBody, **_READ)
def show_result(
    site: SiteName,
    time: Annotated[Moment, Path(description="Time of the frame, in Unix milliseconds.")],
    context: ContextDep,
    caller: CallerDep,
    alone: Annotated[bool, Query(description="Recover the frame alone, without those before and after it.")] = False,
) -> Response:
    """The result of one frame with its map and its zones; with `alone`, computed from this frame only."""
    if alone:
        result = context.compute(_alone, context, context.mapped_site(site, caller), time)
    else:
        context.site(site, caller)
        result = context.store.results.get(site, time)
    if result is None:
        message = "No result has this time. GET .../results lists the times that have one."
        raise ApiError(404, "no-result", message)
    return _whole(result)


@router.get("/attack", response_model=AttackBody, **_READ)
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
    found = context.compute(context.attacks.attack_until, watched, time, span)
    if found is None:
        raise ApiError(404, "no-readings", "The span up to this time has no readings.")
    return json_response(attack_body(found, span))


def _whole(result: Result) -> Response:
    return json_response(result_body(result, with_map=True))


@lru_cache(maxsize=MAX_SOLVERS)
def _solver(watched: CollectedSite) -> Solver:
    return Solver(watched)


def _alone(context: ApiContext, watched: CollectedSite, time: int) -> Result | None:
    """The result of a frame recovered alone; None if the time has no readings."""
    frames = watched.frames(context.store, [time])
    return _solver(watched).alone(frames[0]) if frames else None


def _results_body(page: Page[Result]) -> ResultsBody:
    return ResultsBody(items=[result_body(one, with_map=False) for one in page.items], next=encode_cursor(page.next))


class TrueSpot(ResponseModel):
    """A simulated source."""

    at: list[float]


class TruthBody(ResponseModel):
    """All simulated sources at a time."""

    time: int
    sources: list[TrueSpot]


def truth_router(simulation: Simulation) -> APIRouter:
    """The route of a demonstration. A collector of real devices has no such route."""
    demo = APIRouter(route_class=GuardedRoute, tags=["results"])

    @demo.get("/v1/sites/{site}/truth", **_READ)
    def truth(
        site: SiteName,
        context: ContextDep,
        caller: CallerDep,
        time: Annotated[Moment | None, Query(description="Unix milliseconds; the newest if left out.")] = None,
    ) -> TruthBody:
        """Return the true positions of simulated sources, for a demonstration."""
        context.site(site, caller)
        known = simulation(site, time)
        if known is None:
            raise ApiError(404, "no-truth", "Nothing is simulated at this site at this time.")
        return TruthBody(time=known.time, sources=[TrueSpot(at=list(at)) for at in known.sources])

    return demo
