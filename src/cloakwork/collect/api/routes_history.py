"""`GET /v1/sites/{site}/timeline` and `.../tracks`: who was where over a long time, from the stored results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from cloakwork.collect.api.access_control import READERS, CallerDep, GuardedRoute, guarded
from cloakwork.collect.api.result_models import Moment, ResponseModel
from cloakwork.collect.api.route_context import ApiContext, ContextDep, SiteName, json_response
from cloakwork.collect.collected_site import CollectedBits
from cloakwork.collect.storage import Result
from cloakwork.errors import ApiError

MAX_STEPS = 1000
router = APIRouter(route_class=GuardedRoute, prefix="/v1/sites/{site}", tags=["results"])
_READ = guarded(READERS, 404, 422)


class PeriodQuery(BaseModel):
    """A period in equal steps."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    since: Annotated[Moment | None, Field(description="From this time on; from the oldest result if left out.")] = None
    until: Annotated[Moment | None, Field(description="Before this time; until now if left out.")] = None
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS, description="Parts of the period, each with its last result.")] = (
        300
    )


class ZoneLane(ResponseModel):
    """A zone over time: the probability that someone is there and the expected number, null without a result."""

    id: str = Field(examples=["living"])
    probability: list[float | None]
    expected: list[float | None]


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

    def lane(zone: str, name: str) -> list[float | None]:
        found = (states.get(step, {}).get(zone) for step in period.steps)
        return [None if state is None else getattr(state, name) for state in found]

    lanes = [ZoneLane(id=one, probability=lane(one, "probability"), expected=lane(one, "expected")) for one in zones]
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
