"""`GET /v1/events`: live events as server-sent events."""

import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import AppStatus, EventSourceResponse
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cloakwork.collect.api.access_control import READERS, CallerDep, GuardedRoute, guarded
from cloakwork.collect.api.event_hub import ApiEvent, EventKind, EventStream, StreamEnd, result_event
from cloakwork.collect.api.route_context import ApiContext, ContextDep, Moment, Name
from cloakwork.errors import StoreError

REPLAYED = 100  # missed results of each site that a client gets when it reconnects
RETRY_MS = 2000
SCHEMA = {
    "type": "object",
    "description": "One event.",
    "properties": {
        "id": {"type": "string", "description": "Time up to which all results were sent, in Unix milliseconds."},
        "event": {"enum": [kind.value for kind in EventKind]},
        "data": {"type": "string", "description": "A JSON object."},
        "retry": {"type": "integer"},
    },
}
EXAMPLE = 'id: 1794731949036\nevent: result\ndata: {"site":"hall","time":1794731949036,"sources":[]}\n\n'
_DOCUMENTED = {"text/event-stream": {"schema": SCHEMA, "example": EXAMPLE}}
router = APIRouter(route_class=GuardedRoute, tags=["results"])
# the hub ends streams when the collector stops, with a last event; the library would cut them off
AppStatus.enable_automatic_graceful_drain = False
logging.getLogger("sse_starlette").setLevel(logging.INFO)  # at DEBUG it would log every event


class EventStreamResponse(EventSourceResponse):
    """Sends events until the client disconnects or the stream ends.

    `newest` has the time up to which a client has the results of each site; a site without results is left out.
    """

    media_type = "text/event-stream"

    def __init__(
        self, context: ApiContext, stream: EventStream, missed: list[ApiEvent], newest: dict[str, int]
    ) -> None:
        self._context, self._stream, self._newest = context, stream, newest
        limits = context.limits
        heartbeat = ServerSentEvent(comment="here", sep="\n")
        super().__init__(
            self._events(missed),
            ping=limits.heartbeat_s,
            ping_message_factory=lambda: heartbeat,
            send_timeout=limits.send_s,
            sep="\n",
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._context.metrics.streams.inc()
        try:
            with suppress(OSError):  # the client has disconnected, or no longer reads
                await super().__call__(scope, receive, send)
        finally:
            self._context.hub.streams.discard(self._stream)
            self._context.metrics.streams.dec()

    async def _events(self, missed: list[ApiEvent]) -> AsyncIterator[ServerSentEvent]:
        yield ServerSentEvent(retry=RETRY_MS, sep="\n")
        for event in missed:
            yield self._encoded(event)
        sent = {event.data for event in missed}
        context, limits, hub = self._context, self._context.limits, self._context.hub
        began = checked = time.monotonic()
        end: StreamEnd | None = None
        while end is None:
            events = await hub.take(self._stream, min(limits.check_s, limits.stream_s))
            for event in events or ():
                if event.data not in sent:
                    yield self._encoded(event)
            now = time.monotonic()
            if hub.closing:
                end = StreamEnd.CLOSING
            elif events is None:
                end = StreamEnd.SLOW
                context.metrics.dropped.inc()
            elif now - began >= limits.stream_s:
                end = StreamEnd.TIME
            elif now - checked >= limits.check_s:
                checked = now
                with suppress(StoreError):  # while the store does not answer, the token counts as valid
                    if not await run_in_threadpool(context.access.is_valid, self._stream.caller):
                        end = StreamEnd.REVOKED
        yield ServerSentEvent(json.dumps({"reason": end, "code": end.code}), event=EventKind.END, sep="\n")

    def _encoded(self, event: ApiEvent) -> ServerSentEvent:
        """An event for the client. Its id is the time up to which no result was missed, at any site."""
        event_id = None
        # equal times count: a result may come between the opening of the stream and the look into the store
        if event.time is not None and event.time >= self._newest.get(event.site, 0):
            self._newest[event.site] = event.time
            event_id = str(min(self._newest.get(site, 0) for site in self._stream.sites))
        return ServerSentEvent(event.data, id=event_id, event=event.kind, sep="\n")


def _documented() -> dict[str, Any]:
    options = guarded(READERS, 404, 422)
    options["responses"][200] = {"description": "A stream of events.", "content": _DOCUMENTED}
    return options


@router.get("/v1/events", status_code=200, response_class=EventStreamResponse, **_documented())
async def events(
    context: ContextDep,
    caller: CallerDep,
    site: Annotated[Name | None, Query(description="Of one site; of all that the token may see if left out.")] = None,
    last_event_id: Annotated[
        Moment | None, Header(description="Sent by a browser that reconnects: later results are sent first.")
    ] = None,
) -> Response:
    """Live events: `result` and `settled` (without maps), `report`, `problem` and `lag`; `end` says why a stream ends.

    The id of an event is the time of the newest result; with several sites, that of the site which is furthest behind,
    so reconnecting clients may see repeats. Comments keep a silent stream open.
    """
    if site is not None:
        context.site(site, caller)
    sites = frozenset([site] if site is not None else context.site_names(caller))
    stream = context.hub.open(caller, sites)
    try:
        await context.hub.follow(sites)
        if last_event_id is None:
            missed, newest = [], await run_in_threadpool(_newest, context, sites)
        else:
            missed = await run_in_threadpool(_missed, context, sites, last_event_id)
            newest = dict.fromkeys(sites, last_event_id)
    except BaseException:
        context.hub.streams.discard(stream)
        raise
    return EventStreamResponse(context, stream, missed, newest)


def _newest(context: ApiContext, sites: frozenset[str]) -> dict[str, int]:
    times = {}
    for site in sorted(sites):
        page = context.store.results.page(site, limit=1, newest_first=True)
        if page.items:
            times[site] = page.items[0].time
    return times


def _missed(context: ApiContext, sites: frozenset[str], after: int) -> list[ApiEvent]:
    events: list[ApiEvent] = []
    for site in sorted(sites):
        page = context.store.results.page(site, since=after + 1, limit=REPLAYED, newest_first=True)
        events += [result_event(result, missed=True) for result in reversed(page.items)]
    return events
