"""The worker of one site: which frames are ready, their recovery, and its progress. The store is its queue."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter

from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.presence_solver import PresenceSolver
from cloakwork.collect.solver import Solver, failure, reason_of
from cloakwork.collect.storage import FrameState, Result, Store
from cloakwork.errors import StoreError
from cloakwork.readings import Frame

MAX_BATCH = 512  # frames
MAX_LISTED = 1000  # waiting frames that one look at the store lists
RATE_WINDOW_S = 60
SMOOTHING = 0.3
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RecoveryState:
    """Progress of recovery: `lag_ms` is the age of the newest recovered frame, `delay_ms` how long that one took.

    Both are null before the first. `waiting` frames are ready and wait (`more` if the store may have others), `open`
    ones wait for sensors; `solved`, which includes `failed`, counts since the start, `per_second` is of the last
    minute, `took_ms` the recent time of a frame. `reason` says why recovery is stopped; while the collector is
    `preparing`, it compiles the solver of the site.
    """

    lag_ms: int | None = None
    delay_ms: int | None = None
    waiting: int = 0
    more: bool = False
    open: int = 0
    solved: int = 0
    failed: int = 0
    per_second: float = 0.0
    took_ms: float = 0.0
    reason: str = ""
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
        self.next_due = inf

    def ready(self, waiting: Sequence[FrameState], now: float) -> list[FrameState]:
        """Return the frames that are ready, the earliest first."""
        self._seen = {frame.time: self._seen.get(frame.time, now) for frame in waiting}
        ready, still_open = list[FrameState](), list[FrameState]()
        for frame in waiting:
            complete = frame.readings >= self._sensors and not frame.recovered
            (ready if complete or self._seen[frame.time] + self._wait <= now else still_open).append(frame)
        self.next_due = min((self._seen[frame.time] + self._wait for frame in still_open), default=inf)
        if self._shared is None:
            return sorted(ready)
        awaited = [frame.time for frame in still_open if frame.readings >= self._shared and not frame.recovered]
        return sorted(frame for frame in ready if frame.time < min(awaited, default=inf))


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
        self._newest = self._erasures = 0
        self._busy = True
        self._done: deque[tuple[int, int]] = deque()  # (second, frames)
        self._progress = RecoveryState(more=True, took_ms=100.0, preparing=True)

    @property
    def next_due(self) -> float:
        """The time of the next turn if no reading arrives."""
        return -inf if self._busy else self._gate.next_due

    @property
    def is_idle(self) -> bool:
        """Whether no frame is ready, and none waits for sensors."""
        return not (self._busy or self._progress.open)

    def prepare(self) -> None:
        """Compile and factor what the first frame would wait for."""
        began = perf_counter()
        try:
            self.solver.prepare()
            took = perf_counter() - began
            log.info("%s: ready to recover with %s after %.1f s", self.site.name, self.site.estimator_name, took)
        except Exception:
            log.exception("%s: the model could not be prepared", self.site.name)
        self._progress = replace(self._progress, preparing=False)

    def turn(self, now: float, turn_s: float) -> list[Result]:
        """Recover as many of the ready frames as fit into `turn_s` seconds; return the results that the store kept."""
        began = perf_counter()
        if self._unsaved is None:
            batch = self._next_batch(now, turn_s)
            self._busy = bool(batch)
            if not batch:
                return []
            self._unsaved = self._recover(batch)
        results, frames, erasures = self._unsaved  # those of an earlier turn, if the store could not take them
        kept = self._store.results.save(results, frames, erasures=erasures)
        self._unsaved = None
        self._count([result for result in kept if result.time in frames], len(frames), perf_counter() - began, now)
        return [result for result in kept if not result.failed]

    def reset(self) -> None:
        """Begin again from the store."""
        self._unsaved, self._busy, self._progress = None, False, replace(self._progress, waiting=0, open=0)
        self.solver.reset()

    def watch(self) -> None:
        """Begin again from the store, with the newest result of the collector that recovers now."""
        self.reset()
        newest = self._store.results.last(self.site.name, self._clock() + self.site.ahead_ms)
        if newest is not None:
            self._note_newest(newest)

    def state(self, now: float, reason: str) -> RecoveryState:
        lag = None if self._progress.delay_ms is None else self._clock() - self._newest
        recent = sum(number for when, number in tuple(self._done) if when > now - RATE_WINDOW_S)
        return replace(self._progress, lag_ms=lag, per_second=recent / RATE_WINDOW_S, reason=reason)

    def _next_batch(self, now: float, turn_s: float) -> list[FrameState]:
        waiting = self._store.frames.waiting(self.site.name, self._clock(), self.site.shared, MAX_LISTED)
        ready = self._gate.ready(waiting, now)
        size = max(1, min(MAX_BATCH, int(1000 * turn_s / self._progress.took_ms)))
        if self.site.follows:
            batch = ready[:size]
        else:
            batch = ready[-1:] if ready and ready[-1].time > self._newest else ready[-size:]
        self._progress = replace(
            self._progress,
            waiting=len(ready) - len(batch),
            more=len(waiting) == MAX_LISTED,
            open=len(waiting) - len(ready),
        )
        return batch

    def _recover(self, batch: Sequence[FrameState]) -> tuple[list[Result], dict[int, int], int]:
        erasures = self._store.erasures(self.site.name)  # before the readings are read
        if erasures != self._erasures or self.solver.newest > self._clock() + self.site.ahead_ms:
            self.solver.reset()  # the readings of its results may be gone, or a clock that was ahead was set right
            self._erasures = erasures
        stored = {frame.time: frame for frame in self.site.frames(self._store, [frame.time for frame in batch])}
        frames = [stored.get(frame.time) or self.site.frame(frame.time, {}) for frame in batch]
        unusable = {frame.time: reason for frame in frames if (reason := self.site.unusable(frame))}
        usable = [frame for frame in frames if frame.time not in unusable]
        solved, now = self._solved(usable) if usable else [], self._clock()
        failed = [failure(self.site, one, unusable[one.time], solved=now) for one in frames if one.time in unusable]
        results = {result.time: result for result in [*failed, *solved]}  # a settled one replaces the first
        return list(results.values()), {frame.time: frame.readings for frame in batch}, erasures

    def _solved(self, frames: Sequence[Frame]) -> list[Result]:
        """The results of frames; all fail if a defect of ours keeps them from being recovered."""
        try:
            return self.solver.solve(frames)
        except StoreError:
            raise
        except Exception as problem:
            log.exception("%s: %d frames could not be recovered", self.site.name, len(frames))
            self.solver.reset()
            reason = reason_of(problem)
            return [failure(self.site, frame, reason, solved=self._clock()) for frame in frames]

    def _count(self, results: Sequence[Result], frames: int, seconds: float, now: float) -> None:
        """Record the results that the store kept, and the time that so many frames took."""
        good = sorted((result for result in results if not result.failed), key=lambda result: result.time)
        before = self._progress
        self._progress = replace(
            before,
            solved=before.solved + len(results),
            failed=before.failed + len(results) - len(good),
            took_ms=before.took_ms + SMOOTHING * (1000 * seconds / frames - before.took_ms),
        )
        self._done.append((int(now), len(results)))
        while self._done[0][0] <= now - RATE_WINDOW_S:
            self._done.popleft()
        was_ahead = self._newest > self._clock() + self.site.ahead_ms
        if good and (good[-1].time >= self._newest or was_ahead):
            self._note_newest(good[-1])

    def _note_newest(self, result: Result) -> None:
        self._newest = result.time
        self._progress = replace(self._progress, delay_ms=result.solved - result.time)
