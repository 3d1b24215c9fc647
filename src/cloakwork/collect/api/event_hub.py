"""Live events for clients. Any thread may publish; memory is bounded.

Events are gathered for a moment and then handed to every client's queue at once. Of reports, problems, faults and lag
only the newest about each sensor counts, so they do not pile up. Every result counts: a stream whose client does not
read fast enough ends, with a last event that says so.
"""

import asyncio
import json
import logging
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence, Set
from dataclasses import asdict, dataclass
from enum import StrEnum
from threading import Lock
from typing import Any, TypeVar

from cachetools import LRUCache
from starlette.concurrency import run_in_threadpool

from cloakwork.collect.api.access_control import Caller
from cloakwork.collect.api.api_metrics import reason_code
from cloakwork.collect.api.api_settings import ApiSettings
from cloakwork.collect.api.result_models import result_body
from cloakwork.collect.live_recovery import LiveRecovery
from cloakwork.collect.physics_watch import fault_text
from cloakwork.collect.site_worker import RecoveryState
from cloakwork.collect.storage import DeviceReport, FoundFault, ProblemCount, Result, Store
from cloakwork.errors import ApiError, StoreError

GATHER_S = 0.05
MAX_GATHERED = 2000
BURST = 64  # results of a site that are sent at once; clients ask for older ones
SEEN = 1000
POLLED = 16  # newest results of a site in each poll
REPORTS_EVERY = 2  # polls
WITHHELD = "an operator can see the reason"
log = logging.getLogger(__name__)
Item = TypeVar("Item")


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
    text = result_body(result, with_map=False).model_dump_json()
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
    """Distributes events to the queues of all clients."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = Lock()
        self._gathered: OrderedDict[tuple[str, str, str], ApiEvent] = OrderedDict()
        self._seen: LRUCache[tuple[str, int, int], bool] = LRUCache(SEEN)
        self._queues: set[EventQueue] = set()
        self.on_result: Callable[[Result], None] = lambda _: None
        self.on_drop: Callable[[], None] = lambda: None

    def attach(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Set the event loop of the streams; None when it ends. Without one, events are dropped."""
        with self._lock:
            self._loop = loop
            self._gathered.clear()

    def publish_result(self, result: Result) -> None:
        """A frame was recovered here, or its result settled."""
        if not result.settled:
            self.on_result(result)
        self.publish_stored([result])

    def publish_stored(self, results: Sequence[Result], *, silently: bool = False) -> None:
        """Results are in the store, from any collector; each is sent once, or with `silently` only noted as seen."""
        fresh = [result for result in results if self._is_new(result)]
        for result in sorted(fresh, key=lambda result: result.time) if self._queues and not silently else ():
            self._gather(result_event(result))

    def publish_reports(self, reports: Sequence[DeviceReport]) -> None:
        for report in reports if self._queues else ():
            self._publish(EventKind.REPORT, report.site, report._asdict(), report.sensor)

    def publish_problems(self, problems: Sequence[ProblemCount]) -> None:
        for problem in problems if self._queues else ():
            data = asdict(problem) | {"code": reason_code(problem.reason)}
            self._publish(EventKind.PROBLEM, problem.site, data, f"{problem.sensor} {problem.reason}")

    def publish_faults(self, site: str, faults: Sequence[FoundFault]) -> None:
        for fault in faults if self._queues else ():
            data = {"site": site, **asdict(fault), "text": fault_text(fault)}
            self._publish(EventKind.FAULT, site, data, f"{fault.sensor} {fault.raised}")

    def publish_lag(self, site: str, lag: RecoveryState) -> None:
        if self._queues:
            data = {"site": site} | asdict(lag) | {"reason": WITHHELD if lag.reason else ""}
            self._publish(EventKind.LAG, site, data)

    @property
    def followed(self) -> frozenset[str]:
        return frozenset(site for queue in self._queues for site in queue.sites)

    @property
    def streams(self) -> int:
        return len(self._queues)

    def open(self, caller: Caller, sites: frozenset[str], settings: ApiSettings) -> EventQueue:
        """Open a stream; refused where there are too many."""
        own = sum(other.caller.token.id == caller.token.id for other in self._queues)
        if own >= settings.streams_per_token or len(self._queues) >= settings.streams:
            message = f"This token has {own} open streams, of {len(self._queues)} in total. Close one first."
            raise ApiError(429, "too-many-streams", message, retry_s=5)
        opened = EventQueue(caller, sites, settings.stream_queue)
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

        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(end)

    def _is_new(self, result: Result) -> bool:
        key = (result.site, result.time, result.solved)
        with self._lock:
            seen = self._seen.get(key, False)  # a look keeps it: the poller finds the newest results again and again
            self._seen[key] = True
            return not seen

    def _publish(self, kind: EventKind, site: str, data: dict[str, Any], topic: str = "") -> None:
        self._gather(ApiEvent(kind, site, topic, json.dumps(data)))

    def _gather(self, event: ApiEvent) -> None:
        """Keep the newest event of each key until the next hand-over."""
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                return
            if not self._gathered:
                self._loop.call_soon_threadsafe(self._hand_over_later)
            self._gathered.pop(event.key, None)
            self._gathered[event.key] = event
            if len(self._gathered) > MAX_GATHERED:
                self._gathered.popitem(last=False)

    def _hand_over_later(self) -> None:
        asyncio.get_running_loop().call_later(GATHER_S, self._hand_over)

    def _hand_over(self) -> None:
        with self._lock:
            events, self._gathered = list(self._gathered.values()), OrderedDict()
        oldest = _oldest_sent(events)
        for event in events:
            if event.time is not None and event.time < oldest[event.site]:
                continue
            for queue in self._queues:
                if not queue.put(event):
                    self.on_drop()


def _oldest_sent(events: Sequence[ApiEvent]) -> dict[str, int]:
    """The time from which the results of each site are sent: a site that catches up hides no other's events."""
    times: defaultdict[str, list[int]] = defaultdict(list)
    for event in events:
        if event.time is not None:
            times[event.site].append(event.time)
    return {site: sorted(found)[-BURST:][0] for site, found in times.items()}


class StorePoller:
    """Polls the store for results and reports of other collectors, and live recovery for its lag."""

    def __init__(self, store: Store, hub: EventHub, live: LiveRecovery, *, every_s: float) -> None:
        self._store, self._hub, self._live = store, hub, live
        self._every_s = every_s
        self._polls = 0
        self._followed: set[str] = set()
        self._starting = asyncio.Lock()
        self._known: dict[tuple[EventKind, str], frozenset[Any]] = {}

    async def follow(self, sites: Set[str]) -> None:
        """Publish everything that reaches these sites after this call, and nothing that is in the store already.

        A site is followed as long as a stream of it is open.
        """
        async with self._starting:
            for site in sorted(sites - self._followed):
                await self._poll_results(site, silently=True)
                await self._poll_reports(site, silently=True)
                self._followed.add(site)

    async def run(self) -> None:
        """Poll until cancelled; the first of several failures is logged."""
        failing = False
        while True:
            await asyncio.sleep(self._every_s)
            try:
                await self._poll()
                failing = False
            except StoreError as problem:
                if not failing:
                    log.warning("no news from the store: %s", type(problem).__name__)
                failing = True

    async def _poll(self) -> None:
        self._polls += 1
        self._followed &= self._hub.followed
        for site in sorted(self._followed):
            await self._poll_results(site)
            if self._polls % REPORTS_EVERY == 0:
                await self._poll_reports(site)
            self._check_lag(site)

    async def _poll_results(self, site: str, *, silently: bool = False) -> None:
        page = await run_in_threadpool(self._store.results.page, site, limit=POLLED, newest_first=True)
        self._hub.publish_stored(page.items, silently=silently)

    async def _poll_reports(self, site: str, *, silently: bool = False) -> None:
        faults = await run_in_threadpool(self._store.checks.faults, site)
        reports = await run_in_threadpool(self._store.reports.latest, site)
        problems = await run_in_threadpool(self._store.problems.counts, site)
        new_faults = self._new(EventKind.FAULT, site, faults)
        new_reports = self._new(EventKind.REPORT, site, reports)
        new_problems = self._new(EventKind.PROBLEM, site, problems)
        if not silently:
            self._hub.publish_faults(site, new_faults)
            self._hub.publish_reports(new_reports)
            self._hub.publish_problems(new_problems[::-1])  # the store lists the most recent first

    def _check_lag(self, site: str) -> None:
        lag = self._live.state(site)
        steady = (lag.delay_ms, lag.waiting, lag.more, lag.preparing, lag.reason)  # the others change with the clock
        if self._new(EventKind.LAG, site, [steady]):
            self._hub.publish_lag(site, lag)

    def _new(self, kind: EventKind, site: str, items: Sequence[Item]) -> list[Item]:
        """The items that were not there when this was last asked."""
        before = self._known.get((kind, site), frozenset())
        self._known[kind, site] = frozenset(items)
        return [item for item in items if item not in before]
