"""Results: the newest, one, a page, a window combined, a long time in steps, and the truth of a simulation."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

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
    QueryModel,
    Simulation,
    SiteName,
    encode_cursor,
    json_response,
    page_response,
)
from cloakwork.collect.attack import Span
from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Page, Result
from cloakwork.errors import ApiError

MAX_SOLVERS = 8
MAX_STEPS = 1000
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


class PeriodQuery(QueryModel):
    """A period in equal steps."""

    since: Annotated[Moment | None, Field(description="From this time on; from the oldest result if left out.")] = None
    until: Annotated[Moment | None, Field(description="Before this time; until now if left out.")] = None
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS, description="Parts of the period, each with its last result.")] = (
        300
    )


class ZoneLane(ResponseModel):
    """A zone over time: the probability that someone is there, and whether it counts as occupied; null if unknown."""

    id: str = Field(examples=["living"])
    probability: list[float | None]
    occupied: list[bool | None]


class TimelineBody(ResponseModel):
    """The last result of each step: `counts` are the most likely numbers of sources, null without a result.

    Where a step is shorter than the time between two frames, most steps have no result.
    """

    since: int
    until: int
    step_ms: int
    counts: list[int | None] | None = Field(description="Null for a site of bits, which count no one.")
    zones: list[ZoneLane]


class TrackPoint(ResponseModel):
    """The position of a track at the time of a result."""

    time: int
    place: str
    at: list[float]
    probability: float
    settled: bool


class TrackBody(ResponseModel):
    """A source that was followed: its label, since when, and its points in the period."""

    label: int
    since: int
    until: int
    points: list[TrackPoint]


class TracksBody(ResponseModel):
    """All tracks of a period, by label, with a point for the last result of each step."""

    items: list[TrackBody]


@dataclass(frozen=True)
class _Period:
    """A period, its steps, and the last result of each step that has one, by the number of the step."""

    since: int
    until: int
    step: int
    results: dict[int, Result]

    @property
    def steps(self) -> range:
        return range(-(-(self.until - self.since) // self.step))


@router.get("/timeline", response_model=TimelineBody, **_READ)
def timeline(
    site: SiteName, query: Annotated[PeriodQuery, Query()], context: ContextDep, caller: CallerDep
) -> Response:
    """Return the occupancy of each zone over a period, in at most `steps` steps."""
    watched = context.site(site, caller)
    lanes = _timeline(_period(context, site, query, "tracks"), [zone.id for zone in watched.site.zones])
    counted = not isinstance(watched, CollectedBits)  # bits do not count people
    return json_response(lanes if counted else lanes.model_copy(update={"counts": None}))


@router.get("/tracks", response_model=TracksBody, **_READ)
def tracks(site: SiteName, query: Annotated[PeriodQuery, Query()], context: ContextDep, caller: CallerDep) -> Response:
    """The tracks of a period, thinned to at most `steps` points each."""
    context.site(site, caller)
    return json_response(_tracks(_period(context, site, query, "sources", "zones")))


def _period(context: ApiContext, site: str, query: PeriodQuery, *without: str) -> _Period:
    until = context.clock() + 1 if query.until is None else query.until
    since = query.since
    if since is None:
        oldest = context.store.results.oldest(site)
        since = until - 1 if oldest is None else min(oldest, until - 1)
    if since >= until:
        raise ApiError(422, "invalid", "query: until is not after since. Give since <= time < until.")
    step = -(-(until - since) // query.steps)
    found = context.store.results.sampled(site, since, until, step, without=without)
    return _Period(since, until, step, {(result.time - since) // step: result for result in found})


def _timeline(period: _Period, zones: Sequence[str]) -> TimelineBody:
    states = {step: {zone.id: zone for zone in result.zones or ()} for step, result in period.results.items()}

    def lane(zone: str, name: str) -> list[Any]:
        found = (states.get(step, {}).get(zone) for step in period.steps)
        return [None if state is None else getattr(state, name) for state in found]

    lanes = [ZoneLane(id=one, probability=lane(one, "probability"), occupied=lane(one, "occupied")) for one in zones]
    counts = [_count(period.results.get(step)) for step in period.steps]
    return TimelineBody(since=period.since, until=period.until, step_ms=period.step, counts=counts, zones=lanes)


def _count(result: Result | None) -> int | None:
    if result is None:
        return None
    return len(result.sources) if result.counts is None else int(np.argmax(result.counts))


def _tracks(period: _Period) -> TracksBody:
    began: dict[int, int] = {}
    points: dict[int, list[TrackPoint]] = {}
    for result in period.results.values():
        for track in result.tracks:
            began.setdefault(track.label, track.since)
            point = TrackPoint(
                time=result.time,
                place=track.place,
                at=list(track.at),
                probability=track.probability,
                settled=result.settled,
            )
            points.setdefault(track.label, []).append(point)
    items = [
        TrackBody(label=label, since=began[label], until=points[label][-1].time, points=points[label])
        for label in sorted(points)
    ]
    return TracksBody(items=items)


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
