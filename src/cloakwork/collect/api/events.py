"""`GET /v1/events`: news as server-sent events."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cloakwork.collect.api.errors import Refusal, responses
from cloakwork.collect.api.gate import READERS, CallerOf, allow
from cloakwork.collect.api.hub import Ending, Event, Kind, Stream, result_event
from cloakwork.collect.api.models import Moment, Name
from cloakwork.collect.api.parts import Parts, PartsOf
from cloakwork.collect.store import StoreError

REPLAYED = 100  # results that a client who comes back is told of at most, for each site
RETRY_MS = 2000
SHORTEST_TICK_S = 0.25
SCHEMA = {
    "type": "object",
    "description": "One event.",
    "properties": {
        "id": {"type": "string", "description": "Time up to which results were told, in Unix milliseconds."},
        "event": {"enum": [kind.value for kind in Kind]},
        "data": {"type": "string", "description": "A JSON object."},
        "retry": {"type": "integer"},
    },
}
EXAMPLE = 'id: 1794731949036\nevent: result\ndata: {"site":"hall","time":1794731949036,"sources":[]}\n\n'


class EventStream(Response):
    """Events as they come, until the client goes or the stream is ended.

    `newest` says of each site up to which time its results are not to be told; a site that has none is left out.
    """

    media_type = "text/event-stream"

    def __init__(self, parts: Parts, stream: Stream, missed: list[Event], newest: dict[str, int]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._parts = parts
        self._stream = stream
        self._missed = missed
        self._newest = newest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream."""
        del scope
        leaving = asyncio.create_task(self._notice_leaving(receive))
        self._parts.metrics.streams.inc()
        try:
            with suppress(OSError, TimeoutError):  # the client has gone, or does not read any more
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async for text in self._texts():
                    async with asyncio.timeout(self._parts.settings.send_s):
                        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            leaving.cancel()
            self._parts.hub.close(self._stream)
            self._parts.metrics.streams.dec()

    async def _texts(self) -> AsyncIterator[str]:
        yield f"retry: {RETRY_MS}\n\n"
        for event in self._missed:
            yield self._written(event)
        told = {event.data for event in self._missed}
        settings, stream = self._parts.settings, self._stream
        tick = max(SHORTEST_TICK_S, min(settings.token_s, settings.heartbeat_s))
        began = spoke = time.monotonic()
        while stream.ending is None:
            for event in await stream.take(min(tick, settings.stream_s)):
                if event.data not in told:
                    yield self._written(event)
                    spoke = time.monotonic()
            if time.monotonic() - spoke >= settings.heartbeat_s:
                yield ": here\n\n"
                spoke = time.monotonic()
            await self._look(began)
        yield f'event: {Kind.END}\ndata: {{"reason":"{stream.ending}"}}\n\n'

    async def _look(self, began: float) -> None:
        """End the stream when its time is over, or that of its token or session."""
        if time.monotonic() - began >= self._parts.settings.stream_s:
            self._stream.end(Ending.TIME)
        session = self._stream.caller.session
        if session is not None and not self._parts.gate.sessions.holds(session):
            self._stream.end(Ending.REVOKED)
        with suppress(StoreError, Refusal):  # while the store cannot say, nothing is known against the token
            if not await self._parts.gate.tokens.holds(self._stream.caller.token):
                self._stream.end(Ending.REVOKED)

    async def _notice_leaving(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stream.end(Ending.CLOSING)

    def _written(self, event: Event) -> str:
        """An event as text. Its id is the time up to which nothing was missed, at the site that is least far."""
        name = ""
        # the newest may itself be news: it came after the stream was opened and before the store was asked
        if event.time is not None and event.time >= self._newest.get(event.site, 0):
            self._newest[event.site] = event.time
            name = f"id: {min(self._newest.get(site, 0) for site in self._stream.sites)}\n"
        return f"{name}event: {event.kind}\ndata: {event.data}\n\n"


async def events(
    parts: PartsOf,
    caller: CallerOf,
    site: Annotated[Name | None, Query(description="Of one site; of all that the token may see if left out.")] = None,
    last_event_id: Annotated[
        Moment | None, Header(description="What a browser sends when it comes back: results after it are told first.")
    ] = None,
) -> Response:
    """Live news: `result` (without its map), `report`, `problem` and `lag`; `end` says why a stream is ended.

    The id of an event is the time of the newest result; of several sites, that of the one which is least far. Who comes
    back may so be told some again. A comment is sent when there is no news for a while.
    """
    if site is not None:
        parts.site(site, caller)
    sites = frozenset([site] if site is not None else parts.names(caller))
    settings = parts.settings
    stream = parts.hub.open(
        caller,
        sites,
        most=settings.streams,
        per_token=settings.streams_per_token,
        queue=settings.stream_queue,
    )
    try:
        await parts.watch.follow(sites)
        if last_event_id is None:
            missed, newest = [], await _newest(parts, sites)
        else:
            missed, newest = await _missed(parts, sites, last_event_id), dict.fromkeys(sites, last_event_id)
    except BaseException:
        parts.hub.close(stream)
        raise
    return EventStream(parts, stream, missed, newest)


async def _newest(parts: Parts, sites: frozenset[str]) -> dict[str, int]:
    found = {}
    for site in sorted(sites):
        page = await parts.work.read(parts.store.results, site, limit=1, newest_first=True)
        if page.items:
            found[site] = page.items[0].time
    return found


async def _missed(parts: Parts, sites: frozenset[str], after: int) -> list[Event]:
    found = []
    for site in sorted(sites):
        page = await parts.work.read(parts.store.results, site, since=after + 1, limit=REPLAYED, newest_first=True)
        found += [result_event(result) for result in reversed(page.items)]
    return found


def add(router: APIRouter) -> None:
    """Put the route of this module in place."""
    content = {"text/event-stream": {"schema": SCHEMA, "example": EXAMPLE}}
    described: dict[int | str, dict[str, Any]] = {200: {"description": "A stream of events.", "content": content}}
    router.get(
        "/v1/events",
        tags=["results"],
        status_code=200,
        response_class=EventStream,
        responses=described | responses(401, 403, 404, 422, 429, 503),
        openapi_extra=allow(*READERS),
    )(events)
