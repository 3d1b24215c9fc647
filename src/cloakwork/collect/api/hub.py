"""Who listens for news, and what they have not read yet. Any thread may publish; memory is bounded.

News is gathered for a moment and then handed to every stream at once. Of reports, problems and lag the newest of each
sensor counts, so they do not pile up. Of results each counts: a stream whose client does not read them fast enough is
ended, with a last event that says so.
"""

import asyncio
import json
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from threading import Lock
from typing import Any

from cloakwork.collect.api.auth import Caller
from cloakwork.collect.api.errors import Refusal
from cloakwork.collect.api.models import result_body
from cloakwork.collect.live import Lag
from cloakwork.collect.records import Problem, Report, Result

GATHER_S = 0.05
MOST_GATHERED = 2000
BURST = 64  # results of a site that are told at once; what is older is history, for who asks
SEEN = 1000
WITHHELD = "an operator can see the reason"


class Kind(StrEnum):
    """What an event tells."""

    RESULT = "result"
    REPORT = "report"
    PROBLEM = "problem"
    LAG = "lag"
    END = "end"


class Ending(StrEnum):
    """Why a stream was ended."""

    SLOW = "too slow: events came faster than they were read. Connect again, and read what was missed"
    REVOKED = "the token was revoked, or the session ended"
    CLOSING = "the collector stops. Connect again in a moment"
    TIME = "this stream has lasted long enough. Connect again; nothing is missed"


@dataclass(frozen=True)
class Event:
    """Something that happened at a site; `time` is set for results, by which a stream can be taken up again.

    `about` is what it is about: a newer event takes the place of one about the same.
    """

    kind: Kind
    site: str
    about: str
    data: str
    time: int | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What it may take the place of."""
        return self.kind, self.site, self.about


class Stream:
    """What one client has still to read."""

    def __init__(self, caller: Caller, sites: frozenset[str], most: int) -> None:
        self.caller = caller
        self.sites = sites
        self.ending: Ending | None = None
        self._most = most
        self._waiting: OrderedDict[tuple[str, str, str], Event] = OrderedDict()
        self._results = 0
        self._news = asyncio.Event()

    def put(self, event: Event) -> bool:
        """Add an event; False when it is one too many, and the stream has ended."""
        if self.ending is not None or event.site not in self.sites:
            return True
        old = self._waiting.pop(event.key, None)
        self._results += event.kind is Kind.RESULT and old is None
        if self._results > self._most:
            self.end(Ending.SLOW)
            return False
        self._waiting[event.key] = event
        self._news.set()
        return True

    def end(self, why: Ending) -> None:
        """Nothing more is told; what waits is dropped."""
        self.ending = self.ending or why
        self._waiting.clear()
        self._news.set()

    async def take(self, seconds: float) -> list[Event]:
        """What has come, or nothing after so many seconds."""
        if not self._waiting and self.ending is None:
            self._news.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._news.wait()
            except TimeoutError:
                return []
        found = list(self._waiting.values())
        self._waiting.clear()
        self._results = 0
        return found


class Hub:
    """Tells all streams what happens."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = Lock()
        self._gathered: OrderedDict[tuple[str, str, str], Event] = OrderedDict()
        self._seen: OrderedDict[tuple[str, int, int], None] = OrderedDict()
        self._streams: set[Stream] = set()
        self.solved: Callable[[Result], None] = lambda _: None
        self.dropped: Callable[[], None] = lambda: None

    def attach(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """The event loop that the streams are on; None when it ends. Without one, news is let go."""
        with self._lock:
            self._loop = loop
            self._gathered.clear()

    def result(self, result: Result) -> None:
        """A frame was recovered here."""
        self.solved(result)
        self.found([result])

    def found(self, results: Sequence[Result], *, quietly: bool = False) -> None:
        """Results are in the store, whoever put them there; each is told once, or with `quietly` never."""
        fresh = [result for result in results if self._is_new(result)]
        for result in sorted(fresh, key=lambda one: one.time) if self._streams and not quietly else ():
            self._gather(result_event(result))

    def reports(self, reports: Sequence[Report]) -> None:
        """Devices said how they are."""
        for report in reports if self._streams else ():
            self._tell(Kind.REPORT, report.site, report._asdict(), report.sensor)

    def problems(self, problems: Sequence[Problem]) -> None:
        """Messages could not be used."""
        for problem in problems if self._streams else ():
            self._tell(Kind.PROBLEM, problem.site, asdict(problem), f"{problem.sensor} {problem.reason}")

    def lag(self, site: str, lag: Lag) -> None:
        """How far recovery is behind."""
        if self._streams:
            self._tell(Kind.LAG, site, {"site": site} | asdict(lag) | {"reason": WITHHELD if lag.reason else ""})

    @property
    def followed(self) -> frozenset[str]:
        """Sites that someone listens to."""
        return frozenset(site for stream in self._streams for site in stream.sites)

    def open(self, caller: Caller, sites: frozenset[str], *, most: int, per_token: int, queue: int) -> Stream:
        """A new stream; refused where there are too many."""
        own = sum(stream.caller.token.id == caller.token.id for stream in self._streams)
        if own >= per_token or len(self._streams) >= most:
            text = f"{own} streams of this token are open, {len(self._streams)} in all. Close one before the next."
            raise Refusal(429, "too-many-streams", text, retry_s=5)
        stream = Stream(caller, sites, queue)
        self._streams.add(stream)
        return stream

    def close(self, stream: Stream) -> None:
        """A client has gone."""
        self._streams.discard(stream)

    def end(self, why: Ending, *, token: str | None = None, session: bytes | None = None) -> None:
        """End all streams, or those of a token, or of a session."""
        for stream in list(self._streams):
            caller, everyone = stream.caller, token is None and session is None
            if everyone or caller.token.id == token or (session is not None and caller.session == session):
                stream.end(why)

    def end_soon(self) -> None:
        """End all streams because the collector stops; any thread may call it."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.end, Ending.CLOSING)

    @property
    def streams(self) -> int:
        """How many are open."""
        return len(self._streams)

    def _is_new(self, result: Result) -> bool:
        key = (result.site, result.time, result.solved)
        with self._lock:
            if key in self._seen:
                self._seen.move_to_end(key)  # `Watch` shows the newest of a site again and again
                return False
            self._seen[key] = None
            if len(self._seen) > SEEN:
                self._seen.popitem(last=False)
            return True

    def _tell(self, kind: Kind, site: str, data: dict[str, Any], about: str = "") -> None:
        self._gather(Event(kind, site, about, json.dumps(data)))

    def _gather(self, event: Event) -> None:
        """Keep the newest event about each thing until the next handing over."""
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                return
            if not self._gathered:
                self._loop.call_soon_threadsafe(self._later)
            self._gathered.pop(event.key, None)
            self._gathered[event.key] = event
            if len(self._gathered) > MOST_GATHERED:
                self._gathered.popitem(last=False)

    def _later(self) -> None:
        asyncio.get_running_loop().call_later(GATHER_S, self._hand_over)

    def _hand_over(self) -> None:
        with self._lock:
            events, self._gathered = list(self._gathered.values()), OrderedDict()
        oldest = _oldest_told(events)
        for event in events:
            if event.time is not None and event.time < oldest[event.site]:
                continue
            for stream in self._streams:
                if not stream.put(event):
                    self.dropped()


def _oldest_told(events: Sequence[Event]) -> dict[str, int]:
    """The time from which on the results of each site are told: one site's catching up hides no other's news."""
    times: defaultdict[str, list[int]] = defaultdict(list)
    for event in events:
        if event.time is not None:
            times[event.site].append(event.time)
    return {site: sorted(found)[-BURST:][0] for site, found in times.items()}


def result_event(result: Result) -> Event:
    """A result as an event, without its map."""
    text = result_body(result, with_map=False).model_dump_json()
    return Event(Kind.RESULT, result.site, str(result.time), text, result.time)
