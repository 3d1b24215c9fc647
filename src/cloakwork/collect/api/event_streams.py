"""`GET /v1/events`: what is new in the store, whichever collector stored it, as server-sent events.

The last events are kept once, for all streams. Each stream has a place among them: one whose client reads so slowly
that its place is no longer kept ends, and the client connects again.
"""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from cloakwork.collect.api.access_control import READERS, Caller, CallerDep, GuardedRoute, guarded
from cloakwork.collect.api.route_context import ApiContext, ContextDep, Name
from cloakwork.collect.storage import RESULT, Result
from cloakwork.errors import ApiError, StoreError

MAX_STREAMS, MAX_STREAMS_PER_TOKEN = 200, 16
STREAM_S = 3600.0  # until a stream ends; a browser connects again and misses nothing
FOLLOW_S = 0.25  # between two looks for news
CHECK_S = 4.5  # between two looks whether the token and the session of a stream are still valid
HEARTBEAT_S = 15.0  # between comments that keep a stream open
SEND_S = 20.0  # for a client to read an event
KEPT = 512  # last events, for clients that read slowly
BURST = 64  # newest results of a site in each look: clients ask for older ones
EXAMPLE = 'event: result\ndata: {"site":"hall","time":1794731949036,"sources":[]}\n\n'
BEGINNING, HEARTBEAT = "retry: 2000\n\n", ": here\n\n"
log = logging.getLogger(__name__)
router = APIRouter(route_class=GuardedRoute, tags=["results"])


@dataclass(eq=False)
class EventStream:
    """The events of one client: it has the first `number` of all since the start, as far as they concern its sites."""

    caller: Caller
    sites: frozenset[str]
    number: int = 0


class EventHub:
    """Looks for news in the store as long as a stream is open, and keeps the last events for all streams."""

    def __init__(self, context: ApiContext) -> None:
        self.context = context
        self.streams: set[EventStream] = set()
        self.closing = False
        self._kept: deque[tuple[str, str]] = deque(maxlen=KEPT)  # site and text of each event
        self._number = 0  # of events since the start
        self._known: dict[str, tuple[Set[tuple[int, int]], object]] = {}  # results and health at the last look
        self._looking = asyncio.Lock()

    def close(self) -> None:
        """End all streams soon; any thread may call it."""
        self.closing = True

    async def open(self, caller: Caller, sites: frozenset[str]) -> EventStream:
        """Open a stream of everything that is stored from now on; refused where there are too many."""
        own = sum(other.caller.token.id == caller.token.id for other in self.streams)
        if own >= MAX_STREAMS_PER_TOKEN or len(self.streams) >= MAX_STREAMS:
            message = f"This token has {own} open streams, of {len(self.streams)} in total. Close one first."
            raise ApiError(429, "too-many-streams", message, retry_s=5)
        stream = EventStream(caller, sites)
        self.streams.add(stream)
        try:
            await self._look(sites)  # what is stored already is no news
        except BaseException:
            self.streams.discard(stream)
            raise
        stream.number = self._number
        return stream

    def take(self, stream: EventStream) -> str | None:
        """The text of a stream's next events, empty if there are none; None if some are no longer kept."""
        count, stream.number = self._number - stream.number, self._number
        if count > len(self._kept):
            return None
        newest = list(islice(reversed(self._kept), count))
        return "".join(text for site, text in reversed(newest) if site in stream.sites)

    async def run(self) -> None:
        """Look for news until cancelled; the first of several failures is logged."""
        failing = False
        while True:
            await asyncio.sleep(FOLLOW_S)
            try:
                await self._look({site for stream in self.streams for site in stream.sites})
                failing = False
            except Exception as problem:  # whatever it is, open streams wait for the next look
                if not failing:
                    log.warning("no news from the store: %s", type(problem).__name__)
                failing = True

    async def _look(self, sites: Set[str]) -> None:
        async with self._looking:
            for site in sorted(sites):
                news = await run_in_threadpool(self._news, site)
                self._kept.extend((site, text) for text in news)
                self._number += len(news)

    def _news(self, site: str) -> list[str]:
        """The events of what the store has of a site that was not there at the last look; the oldest first."""
        store, lag = self.context.store, self.context.live.state(site)
        steady = (lag.delay_ms, lag.waiting, lag.more, lag.preparing, lag.reason)  # the others change with the clock
        link = self.context.broker and self.context.broker.state
        health = (store.checks.faults(site), store.reports.latest(site), store.problems.counts(site), steady, link)
        stamps = frozenset(store.results.stamps(site, BURST))
        known, before = self._known.get(site, (frozenset(), None))
        news = list(map(result_event, store.results.at(site, sorted(time for time, _ in stamps - known))))
        self._known[site] = stamps, health  # from here on nothing can fail, or news would be lost
        return news if health == before else [*news, f"event: health\ndata: {json.dumps({'site': site})}\n\n"]


def result_event(result: Result) -> str:
    """A result as an event, without its map."""
    return f"event: result\ndata: {RESULT.dump_json(result.light()).decode()}\n\n"


class EventStreamResponse(StreamingResponse):
    """Sends events until the client disconnects or no longer reads, or the stream ends."""

    media_type = "text/event-stream"

    def __init__(self, hub: EventHub, stream: EventStream) -> None:
        self._hub, self._stream = hub, stream
        super().__init__(self._texts(), headers={"X-Accel-Buffering": "no"})  # a proxy should pass on each event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(SEND_S):
                await send(message)

        try:
            with suppress(OSError):  # the client has disconnected, or no longer reads
                await super().__call__(scope, receive, send_in_time)
        finally:
            self._hub.streams.discard(self._stream)

    async def _texts(self) -> AsyncIterator[str]:
        yield BEGINNING
        hub = self._hub
        began = checked = spoken = time.monotonic()
        while not hub.closing and time.monotonic() - began < STREAM_S:
            await asyncio.sleep(min(FOLLOW_S, STREAM_S))
            now = time.monotonic()
            if now - checked >= CHECK_S:
                checked = now
                with suppress(StoreError):  # while the store does not answer, the token counts as valid
                    if not await run_in_threadpool(hub.context.access.is_valid, self._stream.caller):
                        return
            text = hub.take(self._stream)
            if text is None:
                return
            if text or now - spoken >= HEARTBEAT_S:
                spoken = now
                yield text or HEARTBEAT


async def _hub(request: Request) -> EventHub:
    hub: EventHub = request.app.state.hub
    return hub


def _documented() -> dict[str, Any]:
    options = guarded(READERS, 404, 422, 429)
    content = {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}}
    options["responses"][200] = {"description": "A stream of events.", "content": content}
    return options


@router.get("/v1/events", status_code=200, response_class=EventStreamResponse, **_documented())
async def events(
    context: ContextDep,
    caller: CallerDep,
    hub: Annotated[EventHub, Depends(_hub)],
    site: Annotated[Name | None, Query(description="Of one site; of all that the token may see if left out.")] = None,
) -> Response:
    """Live events: `result` (without its map, and again when it is settled), and `health` when that has changed.

    Comments keep a silent stream open. A stream ends after an hour, with its token, when its client reads too slowly,
    and when the collector stops: connect again, and ask for the results since then.
    """
    if site is not None:
        context.site(site, caller)
    names = context.sites if site is None else [site]
    sites = frozenset(name for name in names if caller.sees(name))
    return EventStreamResponse(hub, await hub.open(caller, sites))
