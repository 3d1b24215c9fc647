"""Shared by all routes: the parts of the collector, and pages of long lists."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock, Semaphore
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Path
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator
from starlette.requests import Request
from starlette.responses import Response
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork.collect.api.access_control import AccessControl, Caller
from cloakwork.collect.api.api_metrics import ApiMetrics
from cloakwork.collect.api.error_responses import DEFAULTS
from cloakwork.collect.attack import AttackCache
from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.intake import Intake
from cloakwork.collect.live_recovery import LiveRecovery
from cloakwork.collect.storage import Page, Store, unix_ms
from cloakwork.errors import ApiError, InputError
from cloakwork.mqtt import MqttClient
from cloakwork.sensor.wire import LARGEST

Item = TypeVar("Item")
Answer = TypeVar("Answer")
MAX_WAITING = 8  # long calls that may wait for their turn


@dataclass(frozen=True)
class Truth:
    """The positions of simulated sources at a time."""

    time: int
    sources: Sequence[tuple[float, ...]]


Simulation = Callable[[str, int | None], Truth | None]
"""Gives the truth of a site at a time (the newest if None); None where nothing is simulated."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["hall"])]
SensorId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", examples=["s07"])]
Moment = Annotated[int, Field(ge=0, le=LARGEST, description="Unix milliseconds.", examples=[1794731949036])]
SiteName = Annotated[Name, Path(description="Name of a site.")]


class ApiContext:
    """Everything that the routes of one app work with.

    `broker` is None where readings arrive by HTTP only. Only a demonstration has a `simulation`, whose truth clients
    may ask for, and a `clock` of its own (Unix milliseconds) that runs at another `speed` than real time.
    """

    def __init__(
        self,
        store: Store,
        sites: Mapping[str, CollectedSite | CollectedBits],
        intake: Intake,
        live: LiveRecovery,
        *,
        broker: MqttClient | None = None,
        proxied: bool = False,
        simulation: Simulation | None = None,
        clock: Callable[[], int] = unix_ms,
        speed: float = 1.0,
    ) -> None:
        self.store, self.sites, self.intake, self.live, self.broker = store, sites, intake, live, broker
        self.simulation, self.clock, self.speed = simulation, clock, speed
        self.proxied = proxied
        self.metrics = ApiMetrics(list(sites), store, intake, live, broker)
        self.access = AccessControl(store, secure=proxied)
        self._computing, self._room = Lock(), Semaphore(1 + MAX_WAITING)
        self.attacks = AttackCache(store, clock=clock)

    def site(self, name: str, caller: Caller) -> CollectedSite | CollectedBits:
        """A site that the caller may see. A site of others looks the same as one that does not exist."""
        watched = self.sites.get(name)
        if watched is None or not caller.sees(name):
            message = "No site of this name is collected here. GET /v1/sites lists the sites."
            raise ApiError(404, "not-found", message)
        return watched

    def mapped_site(self, name: str, caller: Caller) -> CollectedSite:
        """A site of readings, which have a map."""
        watched = self.site(name, caller)
        if isinstance(watched, CollectedBits):
            raise ApiError(404, "no-map", "The sensors of this site report bits, which have no map.")
        return watched

    def compute(self, call: Callable[[], Answer]) -> Answer:
        """Return what a call computes in seconds, on one core, one call at a time; refused where too many wait."""
        if not self._room.acquire(blocking=False):  # or they would hold all threads, and no route would answer
            raise ApiError(503, *DEFAULTS[503], retry_s=2)
        try:
            with self._computing, threadpool_limits(1, user_api="blas"):
                return call()
        finally:
            self._room.release()


async def _context(request: Request) -> ApiContext:
    context: ApiContext = request.app.state.context
    return context


ContextDep = Annotated[ApiContext, Depends(_context)]


class RequestModel(BaseModel):
    """A body that a client sends. It is strict: no unknown keys, no numbers as texts."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _limit_keys(cls, data: object) -> object:
        """One error for any number of unknown keys: an error for each takes seconds where there are thousands."""
        if isinstance(data, dict) and len(data) > len(cls.model_fields):
            raise ValueError("an unknown key; leave it out")
        return data


class PageBody(BaseModel, Generic[Item]):
    """A page of a list; `next` is the query's `after` for the next page, null at the end."""

    items: list[Item]
    next: str | None = None


class QueryModel(BaseModel):
    """The query of a request, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class PageQuery(QueryModel):
    """A period and a page of it."""

    since: Annotated[Moment | None, Field(description="From this time on, in Unix milliseconds.")] = None
    until: Annotated[Moment | None, Field(description="Before this time, in Unix milliseconds.")] = None
    limit: Annotated[int, Field(ge=1, le=1000, description="Length of a page.")] = 100
    after: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9_.-]{1,120}$", description="The `next` of the previous page.", examples=[None]),
    ] = None


def json_response(body: object) -> Response:
    """A response that is ready to send: FastAPI would serialise a long one on the event loop."""
    kind: Any = type(body)
    return Response(_adapter(kind).dump_json(body), media_type="application/json")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def read_page(query: PageQuery, read: Callable[..., Page[Item]], **options: Any) -> Page[Item]:
    """A page from the store, newest first."""
    period = {"since": query.since, "until": query.until, "limit": query.limit, "after": query.after}
    try:
        return read(**period, newest_first=True, **options)
    except InputError:
        message = "query.after: not a cursor. Use the `next` of the previous page, or leave it out."
        raise ApiError(422, "invalid", message) from None
