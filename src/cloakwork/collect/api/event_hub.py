"""Live events for clients: what is new in the store, whichever collector stored it. Memory is bounded.

Of reports, problems, faults and lag only the newest about each sensor counts, so they do not pile up. Every result
counts: a stream whose client does not read fast enough ends, with a last event that says so.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass
from enum import StrEnum
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
    stream_queue: int = 256  # events that may wait for a slow client
    stream_s: float = 3600.0  # until a stream ends; a browser reconnects and misses nothing
    heartbeat_s: float = 15.0  # between comments that keep a stream open
    check_s: float = 5.0  # between two looks of a stream whether its token is still valid
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
    """An event of a site; `time` is set for results, from which a client can resume a stream.

    A newer event replaces one of the same kind, site and `topic`.
    """

    kind: EventKind
    site: str
    topic: str
    data: str
    time: int | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.site, self.topic


def result_event(result: Result, *, missed: bool = False) -> ApiEvent:
    """A result as an event, without its map; one that a client `missed` is new to it, settled or not."""
    text = RESULT.dump_json(result.light()).decode()
    kind = EventKind.SETTLED if result.settled and not missed else EventKind.RESULT
    return ApiEvent(kind, result.site, str(result.time), text, result.time)


class EventQueue:
    """The events that one client has yet to read."""

    def __init__(self, caller: Caller, sites: frozenset[str], most: int) -> None:
        self.caller = caller
        self.sites = sites
        self.end_reason: StreamEnd | None = None
        self._most = most
        self._waiting: OrderedDict[tuple[str, str, str], ApiEvent] = OrderedDict()
        self._results = 0
        self._changed = asyncio.Event()

    def put(self, event: ApiEvent) -> bool:
        """Add an event; False when it is one too many, and the stream has ended."""
        if self.end_reason is not None or event.site not in self.sites:
            return True
        replaced = self._waiting.pop(event.key, None)
        self._results += event.time is not None and replaced is None
        if self._results > self._most:
            self.end(StreamEnd.SLOW)
            return False
        self._waiting[event.key] = event
        self._changed.set()
        return True

    def end(self, reason: StreamEnd) -> None:
        """End the stream, and drop the events that wait."""
        self.end_reason = self.end_reason or reason
        self._waiting.clear()
        self._changed.set()

    async def take(self, seconds: float) -> list[ApiEvent]:
        """All events that wait, or none after so many seconds."""
        if not self._waiting and self.end_reason is None:
            self._changed.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                return []
        events = list(self._waiting.values())
        self._waiting.clear()
        self._results = 0
        return events


class EventHub:
    """Looks for news in the store, and hands them to the queues of all clients."""

    def __init__(self, store: Store, live: LiveRecovery, *, every_s: float) -> None:
        self._store, self._live, self._every_s = store, live, every_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queues: set[EventQueue] = set()
        self._followed: set[str] = set()
        self._starting = asyncio.Lock()
        self._known: dict[tuple[EventKind, str], frozenset[Hashable]] = {}
        self.on_drop: Callable[[], None] = lambda: None

    @property
    def streams(self) -> int:
        return len(self._queues)

    def open(self, caller: Caller, sites: frozenset[str], limits: EventLimits) -> EventQueue:
        """Open a stream; refused where there are too many."""
        own = sum(other.caller.token.id == caller.token.id for other in self._queues)
        if own >= limits.streams_per_token or len(self._queues) >= limits.streams:
            message = f"This token has {own} open streams, of {len(self._queues)} in total. Close one first."
            raise ApiError(429, "too-many-streams", message, retry_s=5)
        opened = EventQueue(caller, sites, limits.stream_queue)
        self._queues.add(opened)
        return opened

    def close(self, queue: EventQueue) -> None:
        self._queues.discard(queue)

    def end(self, reason: StreamEnd, *, token: str | None = None, session: bytes | None = None) -> None:
        """End all streams soon, or those of a token, or of a session; any thread may call it."""

        def end() -> None:
            for queue in list(self._queues):
                caller, everyone = queue.caller, token is None and session is None
                if everyone or caller.token.id == token or (session is not None and caller.session == session):
                    queue.end(reason)

        self._call(end)

    def publish(self, events: Iterable[ApiEvent]) -> None:
        """Hand events to all clients soon; any thread may call it."""

        def hand_over() -> None:
            for event in events:
                for queue in self._queues:
                    if not queue.put(event):
                        self.on_drop()

        self._call(hand_over)

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
            await asyncio.sleep(self._every_s)
            self._followed &= {site for queue in self._queues for site in queue.sites}
            try:
                for site in sorted(self._followed):
                    self.publish([*await run_in_threadpool(self._news, site), *self._lag(site)])
                failing = False
            except StoreError as problem:
                if not failing:
                    log.warning("no news from the store: %s", type(problem).__name__)
                failing = True

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
                _event(EventKind.FAULT, site, {**asdict(fault), "text": fault_text(fault)}, fault.sensor, fault.raised)
                for fault in new(EventKind.FAULT, site, faults)
            ),
            *(
                _event(EventKind.REPORT, site, report._asdict(), report.sensor)
                for report in new(EventKind.REPORT, site, reports)
            ),
            *(
                _event(EventKind.PROBLEM, site, asdict(one) | {"code": reason_code(one.reason)}, one.sensor, one.reason)
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


def _event(kind: EventKind, site: str, data: dict[str, Any], *topic: object) -> ApiEvent:
    return ApiEvent(kind, site, " ".join(map(str, topic)), json.dumps({"site": site} | data))
