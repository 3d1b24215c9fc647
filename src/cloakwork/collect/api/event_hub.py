"""Live events for clients: what is new in the store, whichever collector stored it.

The last events are kept once, for all streams, up to a number of characters. Each stream has a place among them: one
whose client reads so slowly that its place is no longer kept ends, with a last event that says so.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool

from cloakwork.collect.api.access_control import Caller
from cloakwork.collect.api.api_metrics import reason_code
from cloakwork.collect.live_recovery import LiveRecovery
from cloakwork.collect.physics_watch import fault_text
from cloakwork.collect.storage import RESULT, Result, Store
from cloakwork.errors import ApiError, StoreError

BURST = 64  # newest results of a site in each look: clients ask for older ones
WITHHELD = "an operator can see the reason"
log = logging.getLogger(__name__)
Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True)
class EventLimits:
    """Limits and times of event streams, for a building; names that end in `_s` are seconds."""

    streams: int = 200  # in total
    streams_per_token: int = 16
    kept: int = 1 << 23  # characters of the last events, for clients that read slowly
    stream_s: float = 3600.0  # until a stream ends; a browser reconnects and misses nothing
    heartbeat_s: float = 15.0  # between comments that keep a stream open
    check_s: float = 5.0  # between two looks of a stream whether its token and its session are still valid
    follow_s: float = 0.25  # between two looks at the store for news
    send_s: float = 20.0  # for a client to read an event


class EventKind(StrEnum):
    """The name of an event in a stream."""

    RESULT = "result"
    SETTLED = "settled"
    REPORT = "report"
    PROBLEM = "problem"
    FAULT = "fault"
    LAG = "lag"
    END = "end"


class StreamEnd(StrEnum):
    """The reason why a stream ended, for people; `code` is for programs."""

    SLOW = "too slow: events arrived faster than the client read them. Reconnect, and fetch what was missed"
    REVOKED = "the token was revoked, or the session ended"
    CLOSING = "the collector is stopping. Reconnect in a moment"
    TIME = "this stream reached its time limit. Reconnect; nothing is missed"

    @property
    def code(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class ApiEvent:
    """An event of a site; `time` is set for results, from which a client can resume a stream."""

    kind: EventKind
    site: str
    data: str
    time: int | None = None


def result_event(result: Result, *, missed: bool = False) -> ApiEvent:
    """A result as an event, without its map; one that a client `missed` is new to it, settled or not."""
    text = RESULT.dump_json(result.light()).decode()
    kind = EventKind.SETTLED if result.settled and not missed else EventKind.RESULT
    return ApiEvent(kind, result.site, text, result.time)


@dataclass(eq=False)
class EventStream:
    """The events of one client: it has the first `number` of all since the start, as far as they concern its sites."""

    caller: Caller
    sites: frozenset[str]
    number: int = 0


class EventHub:
    """Looks for news in the store, and keeps the last events for the streams of all clients."""

    def __init__(self, store: Store, live: LiveRecovery, limits: EventLimits) -> None:
        self._store, self._live, self._limits = store, live, limits
        self._loop: asyncio.AbstractEventLoop | None = None
        self._kept: deque[ApiEvent] = deque()
        self._size = self._number = 0  # characters kept, and events since the start
        self._changed = asyncio.Event()
        self._followed: set[str] = set()
        self._starting = asyncio.Lock()
        self._known: dict[tuple[EventKind, str], frozenset[Hashable]] = {}
        self.streams: set[EventStream] = set()
        self.closing = False

    def open(self, caller: Caller, sites: frozenset[str]) -> EventStream:
        """Open a stream; refused where there are too many."""
        own = sum(other.caller.token.id == caller.token.id for other in self.streams)
        if own >= self._limits.streams_per_token or len(self.streams) >= self._limits.streams:
            message = f"This token has {own} open streams, of {len(self.streams)} in total. Close one first."
            raise ApiError(429, "too-many-streams", message, retry_s=5)
        opened = EventStream(caller, sites, self._number)
        self.streams.add(opened)
        return opened

    def close(self) -> None:
        """End all streams soon; any thread may call it."""
        self.closing = True
        self._call(self._wake)

    def publish(self, events: Iterable[ApiEvent]) -> None:
        """Hand events to all clients soon; any thread may call it."""

        def keep() -> None:
            for event in events:
                self._kept.append(event)
                self._number += 1
                self._size += len(event.data)
            while self._size > self._limits.kept:
                self._size -= len(self._kept.popleft().data)
            self._wake()

        self._call(keep)

    async def take(self, stream: EventStream, seconds: float) -> list[ApiEvent] | None:
        """The next events of a stream, none after so many seconds; None if some are no longer kept."""
        if stream.number == self._number and not self.closing:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
        count, stream.number = self._number - stream.number, self._number
        if count > len(self._kept):
            return None
        latest = list(islice(reversed(self._kept), count))
        return [event for event in reversed(latest) if event.site in stream.sites]

    async def follow(self, sites: Set[str]) -> None:
        """Publish everything that reaches these sites after this call, and nothing that is in the store already.

        A site is followed as long as a stream of it is open.
        """
        async with self._starting:
            for site in sorted(sites - self._followed):
                await run_in_threadpool(self._news, site)
                self._followed.add(site)

    async def run(self) -> None:
        """Look for news until cancelled; the first of several failures is logged."""
        self._loop, failing = asyncio.get_running_loop(), False
        while True:
            await asyncio.sleep(self._limits.follow_s)
            self._followed &= {site for stream in self.streams for site in stream.sites}
            try:
                for site in sorted(self._followed):
                    if events := [*await run_in_threadpool(self._news, site), *self._lag(site)]:
                        self.publish(events)
                failing = False
            except StoreError as problem:
                if not failing:
                    log.warning("no news from the store: %s", type(problem).__name__)
                failing = True

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _call(self, work: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(work)

    def _news(self, site: str) -> list[ApiEvent]:
        """What the store has of a site that was not there at the last look; the oldest first."""
        faults, reports = self._store.checks.faults(site), self._store.reports.latest(site)
        problems = self._store.problems.counts(site)[::-1]  # the store lists the most recent first
        stamps, known = self._store.results.stamps(site, BURST), self._known.get((EventKind.RESULT, site), frozenset())
        results = self._store.results.at(site, [time for time, solved in stamps if (time, solved) not in known])
        new = self._new  # from here on nothing can fail, or news would be lost
        new(EventKind.RESULT, site, stamps)
        return [
            *map(result_event, results),
            *(
                _event(EventKind.FAULT, site, {**asdict(fault), "text": fault_text(fault)})
                for fault in new(EventKind.FAULT, site, faults)
            ),
            *(_event(EventKind.REPORT, site, report._asdict()) for report in new(EventKind.REPORT, site, reports)),
            *(
                _event(EventKind.PROBLEM, site, asdict(one) | {"code": reason_code(one.reason)})
                for one in new(EventKind.PROBLEM, site, problems)
            ),
        ]

    def _lag(self, site: str) -> Iterator[ApiEvent]:
        lag = self._live.state(site)
        steady = (lag.delay_ms, lag.waiting, lag.more, lag.preparing, lag.reason)  # the others change with the clock
        if self._new(EventKind.LAG, site, [steady]):
            yield _event(EventKind.LAG, site, asdict(lag) | {"reason": WITHHELD if lag.reason else ""})

    def _new(self, kind: EventKind, site: str, items: Sequence[Item]) -> list[Item]:
        """The items that were not there when this was last asked."""
        before = self._known.get((kind, site), frozenset())
        self._known[kind, site] = frozenset(items)
        return [item for item in items if item not in before]


def _event(kind: EventKind, site: str, data: dict[str, Any]) -> ApiEvent:
    return ApiEvent(kind, site, json.dumps({"site": site} | data))
