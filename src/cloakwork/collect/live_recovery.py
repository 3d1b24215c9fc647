"""Live recovery: a thread that turns frames into results as they become ready.

One thread is enough: the compiled loops release the interpreter, so intake hardly waits. Linear algebra is limited to
one thread as well. With several, it spins on processors that others need: on a busy machine the rest of the process
stood still for up to two seconds while a model was factored for a new set of sensors.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.site_queue import RecoveryState, SiteQueue
from cloakwork.collect.storage import Reading, Result, Store, unix_ms
from cloakwork.errors import StoreError

BACKLOG = 1000  # frames of a site that may wait here; the others wait in the store
CHECK_S = 60.0
LONGEST_BATCH, SHORTEST_BATCH = 1.0, 0.1  # seconds
FIRST_RETRY, LAST_RETRY = 0.1, 5.0
NICE = 5
PREPARING = "The solvers are compiled, which takes up to a minute the first time."
log = logging.getLogger(__name__)


class LiveRecovery:
    """Recovers the frames of some sites as their readings are stored.

    The recovering thread calls `on_result` with each saved result that did not fail. A frame waits `wait` seconds for
    its remaining sensors (by default `wait_ms` of its site), and at most `backlog` frames of a site wait here: the rest
    is fetched from the store, which is queried every `check` seconds. `clock` is in Unix milliseconds, `steady` in
    seconds of a clock that never jumps; both run `speed` times faster than real time.

    Where sources are followed, frames are taken in the order of time; if more than `backlog` wait, the newest of them,
    and the others come later, recovered alone. Elsewhere the newest frame is recovered first and continues from the
    one before; if there is none, a batch of older ones is, small enough not to hold up the next. Sites take turns.
    `prepared` is set once the solvers are compiled.
    """

    def __init__(
        self,
        store: Store,
        sites: Mapping[str, CollectedSite | CollectedBits],
        *,
        on_result: Sequence[Callable[[Result], None]] = (),
        wait: float | None = None,
        backlog: int = BACKLOG,
        check: float = CHECK_S,
        clock: Callable[[], int] = unix_ms,
        steady: Callable[[], float] = time.monotonic,
        speed: float = 1.0,
    ) -> None:
        self._store = store
        self._listeners = on_result
        self._check_s = check
        self._clock, self._steady, self._speed = clock, steady, speed
        self._queues = {
            name: SiteQueue(site, site.wait_ms / 1000 if wait is None else wait, backlog, clock, store)
            for name, site in sites.items()
        }
        shortest = min((site.schedule.period_ms for site in sites.values()), default=1000) / 1000 / speed
        self._budget = min(LONGEST_BATCH, max(SHORTEST_BATCH, shortest / 4))
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._reason = ""
        self.prepared = threading.Event()
        self._retry = FIRST_RETRY
        self._thread: threading.Thread | None = None

    def on_new(self, readings: Sequence[Reading]) -> None:
        """Register readings that have just been stored; quick, thread-safe."""
        now, wall = self._steady(), self._clock()
        with self._changed:
            for reading in readings:
                queue = self._queues.get(reading.site)
                sensor = None if queue is None else queue.site.index.get(reading.sensor)
                if queue is not None and sensor is not None:
                    queue.frames.add(reading.time, sensor, now, (reading.time - wall) / 1000)
            self._idle.clear()
            self._changed.notify_all()

    def start(self) -> None:
        """Start recovering, including frames that the store lists from before."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._work, daemon=True, name="cloakwork live")
            self._thread.start()

    def stop(self, timeout: float | None = 30.0) -> bool:
        """Stop after the current frame or batch; the store lists the rest. Returns False on timeout."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return False
            self._thread = None
        return True

    def settle(self, timeout: float) -> bool:
        """Wait until everything that arrived is recovered; returns False on timeout."""
        return self._idle.wait(timeout)

    def state(self, site: str) -> RecoveryState:
        with self._changed:
            reason = self._reason if self.prepared.is_set() else PREPARING
            return self._queues[site].state(self._steady(), self._clock(), reason)

    def _work(self) -> None:
        with suppress(OSError, AttributeError):  # where the system can: intake goes before recovery
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        with threadpool_limits(1, user_api="blas"):
            self._take_turns()

    def _take_turns(self) -> None:
        for queue in self._queues.values():
            if not self._stopping.is_set():
                self._prepare(queue)
        self.prepared.set()
        while not self._stopping.is_set():
            busy = False
            for queue in self._queues.values():
                if not self._stopping.is_set():
                    busy |= self._turn(queue)
            if not busy:
                self._sleep()

    def _prepare(self, queue: SiteQueue) -> None:
        try:
            took = queue.solver.prepare()
            log.info("%s: ready to recover with %s after %.1f s", queue.site.name, queue.site.estimator_name, took)
        except Exception:
            log.exception("%s: the model could not be prepared", queue.site.name)
        queue.prepared = True

    def _turn(self, queue: SiteQueue) -> bool:
        """Recover some frames of a site; returns False if there is nothing to do."""
        times: list[int] = []
        more = False
        try:
            if queue.check_at > 0.0:  # until then, the store may list earlier frames
                with self._changed:
                    times = queue.take(self._steady(), self._budget)
            if times:
                self._recover(queue, times)
            elif queue.backlog.overflowed or self._steady() >= queue.check_at:
                queue.find_missed(self._store, self._steady(), self._clock(), self._check_s)
                more = len(queue.backlog) > 0
                self._store_is_back()
        except StoreError as problem:
            more = True
            queue.backlog.add(dict.fromkeys(times, True))
            self._wait_for_store(problem)
        except Exception:
            log.exception("%s: gave up on %d frames", queue.site.name, len(times))
            queue.retry(times, self._steady() + self._check_s)
        return bool(times) or more

    def _recover(self, queue: SiteQueue, times: list[int]) -> None:
        began = time.perf_counter()
        values = self._store.frames.values(queue.site.name, times)
        frames = queue.site.frames(self._store, values)
        if not frames:  # erased meanwhile
            return
        last = self._store.results.page(queue.site.name, until=frames[0].time, limit=1, newest_first=True).items
        before = last[0] if last else None
        solved = queue.solver.solve(frames, keep=frames[-1].time > queue.newest, before=before)
        results = list({result.time: result for result in solved}.values())  # in a long batch, some have settled
        made_from = {result.time: queue.solver.used(result.time) for result in results if result.settled} | values
        stored = self._store.results
        kept = {result.time for result in stored.save(results, made_from=made_from)}
        # True for those that have no other result either: they are recovered again
        dropped = {one.time: stored.get(one.site, one.time) is None for one in results if one.time not in kept}
        self._store_is_back()
        with self._changed:
            new = [result for result in results if result.time in values]
            queue.count(new, time.perf_counter() - began, self._steady(), dropped)
            queue.backlog.add({when: True for when, again in dropped.items() if again})
        for result in results:
            if result.time not in dropped and not result.failed:
                self._notify(result)

    def _notify(self, result: Result) -> None:
        for call in self._listeners:
            try:
                call(result)
            except Exception:
                log.exception("%s: a listener for results failed", result.site)

    def _wait_for_store(self, problem: StoreError) -> None:
        if not self._reason:
            log.warning("nothing is recovered while the store fails: %s", problem)
        self._reason = str(problem)
        self._stopping.wait(self._retry)
        self._retry = min(2 * self._retry, LAST_RETRY)

    def _store_is_back(self) -> None:
        if self._reason:
            log.info("the store is back: recovering again")
            self._reason, self._retry = "", FIRST_RETRY

    def _sleep(self) -> None:
        """Wait for a reading, for a frame to become due, or for the next query to the store."""
        with self._changed:
            now = self._steady()
            due = [when for queue in self._queues.values() if (when := queue.frames.next_due()) is not None]
            if not due and not self._reason:
                self._idle.set()
            pause = min([*due, *(queue.check_at for queue in self._queues.values()), now + self._check_s]) - now
            if pause > 0 and not self._stopping.is_set():
                self._changed.wait(pause / self._speed)
