"""Live recovery: a thread that turns frames into results as they become ready, the newest first.

A thread is enough: the compiled loops let others run, so that those who take readings in hardly have to wait. For that
linear algebra is held to one thread of its own. With several it spins on processors that others need: on a busy machine
the rest of the process stood still for up to two seconds while a model was factored for a new set of sensors.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloakwork.collect.desk import Desk, Lag, Shelf
from cloakwork.collect.place import Watched
from cloakwork.collect.records import Reading, Result
from cloakwork.collect.solve import failed, unix_ms
from cloakwork.collect.store import StoreError

BACKLOG = 1000  # frames of a site that may wait here; the others wait in the store
LOOK_S = 60.0
LONGEST_BATCH, SHORTEST_BATCH = 1.0, 0.1  # seconds
FIRST_RETRY, LAST_RETRY = 0.1, 5.0
NICE = 5
log = logging.getLogger(__name__)
__all__ = ["Lag", "Live"]


class Live:
    """Recovers the frames of some sites as their readings are stored.

    Parameters
    ----------
    on_result
        Called by the recovering thread with each result that was saved, except for failed ones.
    wait
        Seconds that a frame waits for the rest of its sensors; left out, `Watched.wait_ms` of each site.
    backlog
        Frames of a site that may wait here. What does not fit is fetched from the store later.
    look
        Seconds after which the store is asked for frames that nobody recovered.
    clock
        Unix milliseconds.

    Notes
    -----
    The newest frame is recovered alone and goes on from the one before. When there is none, a batch of older ones is,
    as large as can be done soon enough not to hold up the next. Each site has its turn.
    """

    def __init__(
        self,
        store: Shelf,
        sites: Mapping[str, Watched],
        *,
        on_result: Sequence[Callable[[Result], None]] = (),
        wait: float | None = None,
        backlog: int = BACKLOG,
        look: float = LOOK_S,
        clock: Callable[[], int] = unix_ms,
    ) -> None:
        self._store = store
        self._listeners = list(on_result)
        self._look_s = look
        self._clock = clock
        self._desks = {
            name: Desk(watched, watched.wait_ms / 1000 if wait is None else wait, backlog, clock)
            for name, watched in sites.items()
        }
        shortest = min((watched.schedule.period_ms for watched in sites.values()), default=1000) / 1000
        self._budget = min(LONGEST_BATCH, max(SHORTEST_BATCH, shortest / 4))
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._reason = ""
        self._retry = FIRST_RETRY
        self._thread: threading.Thread | None = None

    def listen(self, call: Callable[[Result], None]) -> None:
        """Call this, too, with each result."""
        self._listeners.append(call)

    def on_new(self, readings: Sequence[Reading]) -> None:
        """Take note of readings that have just been stored; quick, for any thread."""
        now, wall = time.monotonic(), self._clock()
        with self._changed:
            for reading in readings:
                desk = self._desks.get(reading.site)
                sensor = None if desk is None else desk.watched.index.get(reading.sensor)
                if desk is not None and sensor is not None:
                    desk.frames.add(reading.time, sensor, now, (reading.time - wall) / 1000)
            self._idle.clear()
            self._changed.notify_all()

    def start(self) -> None:
        """Begin to recover; what is left in the store from before as well."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._work, daemon=True, name="cloakwork live")
            self._thread.start()

    def stop(self, timeout: float | None = 30.0) -> bool:
        """End after the frame or batch at hand; the rest is found in the store again. False if it takes longer."""
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
        """Wait until all that has come is recovered; False if that takes longer."""
        return self._idle.wait(timeout)

    def lag(self, site: str) -> Lag:
        """How it goes at one site."""
        with self._changed:
            return self._desks[site].lag(time.monotonic(), self._clock(), self._reason)

    def _work(self) -> None:
        with suppress(OSError, AttributeError):  # where the system can: taking readings in goes before recovering
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        with threadpool_limits(1, user_api="blas"):
            self._take_turns()

    def _take_turns(self) -> None:
        for desk in self._desks.values():
            if not self._stopping.is_set():
                self._prepare(desk)
        while not self._stopping.is_set():
            busy = False
            for desk in self._desks.values():
                if not self._stopping.is_set():
                    busy |= self._turn(desk)
            if not busy:
                self._sleep()

    def _prepare(self, desk: Desk) -> None:
        try:
            took = desk.solver.prepare()
            log.info("%s: ready to recover with %s after %.1f s", desk.watched.name, desk.watched.estimator_name, took)
        except Exception:
            log.exception("%s: the model could not be prepared", desk.watched.name)

    def _turn(self, desk: Desk) -> bool:
        """The newest frame of a site, or a batch of others; False if there is nothing to do."""
        times: list[int] = []
        try:
            with self._changed:
                times = desk.take(time.monotonic(), self._budget)
            if times:
                self._recover(desk, times)
            elif desk.backlog.overflowed or time.monotonic() >= desk.look_at:
                self._look(desk)
        except StoreError as problem:
            desk.backlog.add((when, True) for when in times)
            self._wait_for_store(problem)
        except Exception:
            log.exception("%s: %d frames were given up", desk.watched.name, len(times))
            desk.look_at = time.monotonic() + self._look_s
        return bool(times) or len(desk.backlog) > 0

    def _recover(self, desk: Desk, times: list[int]) -> None:
        began = time.perf_counter()
        values = self._store.frames(desk.watched.name, times)
        frames = [desk.watched.frame(when, values[when]) for when in times if values.get(when)]
        if not frames:  # erased meanwhile
            return
        results = desk.solver.solve(frames, keep=frames[-1].time > desk.newest)
        kept = self._store.save_results(results, made_from=values)
        dropped = {} if kept == len(results) else self._dropped(results)
        self._store_is_back()
        with self._changed:
            desk.count(results, time.perf_counter() - began, time.monotonic(), dropped)
            desk.backlog.add((when, True) for when, again in dropped.items() if again)
        for result in results:
            if result.time not in dropped and not failed(result):
                self._tell(result)

    def _dropped(self, results: Sequence[Result]) -> dict[int, bool]:
        """The times of results that the store does not have; True if it has none at all, so they are made again."""
        found = {result.time: self._store.result(result.site, result.time) for result in results}
        return {
            result.time: there is None
            for result in results
            if (there := found[result.time]) is None or (there.sensors, there.solved) != (result.sensors, result.solved)
        }

    def _tell(self, result: Result) -> None:
        for call in self._listeners:
            try:
                call(result)
            except Exception:
                log.exception("%s: someone who was told of a result failed", result.site)

    def _look(self, desk: Desk) -> None:
        desk.look(self._store, time.monotonic(), self._clock(), self._look_s)
        self._store_is_back()

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
        """Until a reading comes, a frame has waited long enough, or it is time to look into the store."""
        with self._changed:
            now = time.monotonic()
            due = [when for desk in self._desks.values() if (when := desk.frames.next_due()) is not None]
            if not due and not self._reason:
                self._idle.set()
            pause = min([*due, *(desk.look_at for desk in self._desks.values()), now + self._look_s]) - now
            if pause > 0 and not self._stopping.is_set():
                self._changed.wait(pause)
