"""The worker of one site: which frames are ready, their recovery, and its progress. The store is its queue."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from time import perf_counter

from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.presence_solver import PresenceSolver
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import FrameState, Result, Store

MAX_BATCH = 512  # frames
MAX_LISTED = 1000  # waiting frames that one look at the store lists
RATE_WINDOW_S = 60
SMOOTHING = 0.3


@dataclass(frozen=True)
class RecoveryState:
    """Progress of recovery: `lag_ms` is the age of the newest recovered frame, `delay_ms` how long that one took.

    Both are null before the first. `waiting` frames are ready and wait (`more` if the store may have others), `open`
    ones wait for sensors; `solved`, which includes `failed`, counts since the start, `per_second` is of the last
    minute, `took_ms` the recent time of a frame. `reason` says why recovery is stopped; while the collector is
    `preparing`, it compiles the solver of the site.
    """

    lag_ms: int | None
    delay_ms: int | None
    waiting: int
    more: bool
    open: int
    solved: int
    failed: int
    per_second: float
    took_ms: float
    reason: str
    preparing: bool = False


class FrameGate:
    """Decides which of the frames that wait in the store are ready; `wait` is in seconds of a clock that never jumps.

    A new frame is ready when it is complete, or `wait` after it was first seen. A frame that was recovered before and
    has grown waits that long again: more late readings may follow. With `shared`, frames are taken in the order of
    time: none before an earlier one that so many sensors have reported and that still waits for the rest.
    """

    def __init__(self, sensors: int, wait: float, *, shared: int | None = None) -> None:
        self._sensors, self._wait, self._shared = sensors, wait, shared
        self._seen: dict[int, float] = {}
        self._put_off: dict[int, float] = {}
        self.next_due = inf

    def ready(self, waiting: Sequence[FrameState], now: float) -> list[FrameState]:
        """Return the frames that are ready, the earliest first."""
        self._seen = {frame.time: self._seen.get(frame.time, now) for frame in waiting}
        self._put_off = {time: until for time, until in self._put_off.items() if time in self._seen}
        ready: list[tuple[FrameState, float]] = []
        still_open: list[tuple[FrameState, float]] = []
        for frame in waiting:
            complete = frame.readings >= self._sensors and not frame.recovered
            due = max(now if complete else self._seen[frame.time] + self._wait, self._put_off.get(frame.time, -inf))
            (ready if due <= now else still_open).append((frame, due))
        self.next_due = min((due for _, due in still_open), default=inf)
        if self._shared is None:
            return sorted(frame for frame, _ in ready)
        awaited = [frame.time for frame, _ in still_open if frame.readings >= self._shared and not frame.recovered]
        first = min((time for time in awaited if time not in self._put_off), default=inf)
        return sorted(frame for frame, _ in ready if frame.time < first)

    def put_off(self, times: Sequence[int], until: float) -> None:
        """Leave these frames for a while: an error kept them from being recovered."""
        self._put_off |= dict.fromkeys(times, until)


class SiteWorker:
    """Turns the frames of one site that wait in the store into stored results; for one thread.

    A frame waits while it has more readings than its result was made from. So a restart, late readings, those that
    another collector received, and an erasure all take the same way. Where results rest on earlier frames, frames are
    taken in the order of time. Elsewhere the newest comes first, alone, and then older ones in batches.
    """

    def __init__(
        self, site: CollectedSite | CollectedBits, store: Store, *, wait: float, clock: Callable[[], int]
    ) -> None:
        self.site, self._store, self._clock = site, store, clock
        self.solver: Solver | PresenceSolver
        if isinstance(site, CollectedBits):
            self.solver = PresenceSolver(site, store, clock=clock)
        else:
            self.solver = Solver(site, store, clock=clock)
        self._gate = FrameGate(len(site.ids), wait, shared=site.shared if site.follows else None)
        self._unsaved: tuple[list[Result], dict[int, int], int] | None = None
        self._trying: list[int] = []
        self._newest = self._erasures = 0
        self._delay: int | None = None
        self._waiting = self._open = self._solved = self._failed = 0
        self._more = self._busy = True
        self._took = 0.1  # seconds for a frame
        self._done: deque[tuple[int, int]] = deque()  # (second, frames)
        self.prepared = False

    @property
    def next_due(self) -> float:
        """The time of the next turn if no reading arrives."""
        return -inf if self._busy else self._gate.next_due

    @property
    def is_idle(self) -> bool:
        """Whether no frame is ready, and none waits for sensors."""
        return not (self._busy or self._open)

    def turn(self, now: float, turn_s: float) -> list[Result]:
        """Recover as many of the ready frames as fit into `turn_s` seconds; return the results that the store kept."""
        began = perf_counter()
        if self._unsaved is None:
            batch = self._next_batch(now, turn_s)
            self._trying = [frame.time for frame in batch]
            self._busy = bool(batch)
            if not batch:
                return []
            self._unsaved = self._recover(batch)
        results, frames, erasures = self._unsaved  # those of an earlier turn, if the store could not take them
        kept = self._store.results.save(results, frames, erasures=erasures)
        if not results:
            self._store.frames.mark(self.site.name, frames)
        self._unsaved = None
        self._count([result for result in kept if result.time in frames], len(frames), perf_counter() - began, now)
        return [result for result in kept if not result.failed]

    def give_up(self, until: float) -> None:
        """Leave the frames of a turn that failed until a time; the rest begins again from the store."""
        self._gate.put_off(self._trying, until)
        self.reset()

    def reset(self) -> None:
        """Begin again from the store."""
        self._unsaved, self._busy, self._waiting, self._open = None, False, 0, 0
        self.solver.reset()

    def watch(self) -> None:
        """Begin again from the store, with the newest result of the collector that recovers now."""
        self.reset()
        newest = self._store.results.last(self.site.name, self._clock() + self.site.ahead_ms)
        if newest is not None:
            self._newest, self._delay = newest.time, newest.solved - newest.time

    def state(self, now: float, reason: str) -> RecoveryState:
        return RecoveryState(
            lag_ms=None if self._delay is None else self._clock() - self._newest,
            delay_ms=self._delay,
            waiting=self._waiting,
            more=self._more,
            open=self._open,
            solved=self._solved,
            failed=self._failed,
            per_second=sum(number for when, number in tuple(self._done) if when > now - RATE_WINDOW_S) / RATE_WINDOW_S,
            took_ms=1000 * self._took,
            reason=reason,
            preparing=not self.prepared,
        )

    def _next_batch(self, now: float, turn_s: float) -> list[FrameState]:
        waiting = self._store.frames.waiting(self.site.name, self._clock(), self.site.shared, MAX_LISTED)
        ready = self._gate.ready(waiting, now)
        size = max(1, min(MAX_BATCH, int(turn_s / self._took)))
        if self.site.follows:
            batch = ready[:size]
        else:
            batch = ready[-1:] if ready and ready[-1].time > self._newest else ready[-size:]
        self._waiting, self._open = len(ready) - len(batch), len(waiting) - len(ready)
        self._more = len(waiting) == MAX_LISTED
        return batch

    def _recover(self, batch: Sequence[FrameState]) -> tuple[list[Result], dict[int, int], int]:
        erasures = self._store.erasures(self.site.name)  # before the readings are read
        if erasures != self._erasures:
            self.solver.reset()
            self._erasures = erasures
        frames = self.site.frames(self._store, [frame.time for frame in batch])
        results = {result.time: result for result in self.solver.solve(frames)}  # a settled one replaces the first
        return list(results.values()), {frame.time: frame.readings for frame in batch}, erasures

    def _count(self, results: Sequence[Result], frames: int, seconds: float, now: float) -> None:
        """Record the results that the store kept, and the time that so many frames took."""
        self._took += SMOOTHING * (seconds / frames - self._took)
        good = [result for result in results if not result.failed]
        self._solved += len(results)
        self._failed += len(results) - len(good)
        self._done.append((int(now), len(results)))
        while self._done[0][0] <= now - RATE_WINDOW_S:
            self._done.popleft()
        was_ahead = self._newest > self._clock() + self.site.ahead_ms
        if good and (good[-1].time >= self._newest or was_ahead):
            self._newest, self._delay = good[-1].time, good[-1].solved - good[-1].time
