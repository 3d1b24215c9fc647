"""Live recovery: one thread that turns frames into results as they become ready, sites in turn.

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
from cloakwork.collect.site_worker import RecoveryState, SiteWorker
from cloakwork.collect.storage import Reading, Result, Store, unix_ms
from cloakwork.errors import StoreError

LOOK_S = 1.0  # between two looks at the store without a reason: other collectors store readings, too
MAX_TURN_S, MIN_TURN_S = 1.0, 0.1
FIRST_RETRY_S, LAST_RETRY_S = 0.1, 5.0
NICE = 5
PREPARING = "The solvers are compiled, which takes up to a minute the first time."
log = logging.getLogger(__name__)


class LiveRecovery:
    """Recovers the frames of some sites as their readings are stored; of several collectors on a store, one does.

    The recovering thread calls `on_result` with each saved result that did not fail. A frame waits `wait` seconds for
    its remaining sensors (by default `wait_ms` of its site). `clock` is in Unix milliseconds, `steady` in seconds of a
    clock that never jumps; both run `speed` times faster than real time. `prepared` is set once the solvers are
    compiled.
    """

    def __init__(
        self,
        store: Store,
        sites: Mapping[str, CollectedSite | CollectedBits],
        *,
        on_result: Sequence[Callable[[Result], None]] = (),
        wait: float | None = None,
        clock: Callable[[], int] = unix_ms,
        steady: Callable[[], float] = time.monotonic,
        speed: float = 1.0,
    ) -> None:
        self._store, self._listeners, self._steady, self._speed = store, on_result, steady, speed
        self._workers = {
            name: SiteWorker(site, store, wait=site.wait_ms / 1000 if wait is None else wait, clock=clock)
            for name, site in sites.items()
        }
        shortest = min((site.schedule.period_ms for site in sites.values()), default=1000) / 1000 / speed
        self._turn_s = min(MAX_TURN_S, max(MIN_TURN_S, shortest / 4))
        self._changed = threading.Condition()
        self._woken: set[str] = set()
        self._look_at, self._leads, self._reason = 0.0, False, ""
        self._stopping, self._idle, self.prepared = threading.Event(), threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def on_new(self, readings: Sequence[Reading]) -> None:
        """Look for the frames of readings that have just been stored; quick, thread-safe."""
        with self._changed:
            self._woken |= {reading.site for reading in readings}
            self._idle.clear()
            self._changed.notify_all()

    def start(self) -> None:
        """Start recovering, including frames that wait in the store from before."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._work, daemon=True, name="cloakwork live")
        self._thread.start()

    def stop(self, timeout: float | None = 30.0) -> bool:
        """Stop after the current frame or batch; the rest waits in the store. Returns False on timeout."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def settle(self, timeout: float) -> bool:
        """Wait until everything that arrived is recovered; returns False on timeout."""
        return self._idle.wait(timeout)

    def state(self, site: str) -> RecoveryState:
        reason = self._reason if self.prepared.is_set() else PREPARING
        return self._workers[site].state(self._steady(), reason)

    def _work(self) -> None:
        with suppress(OSError, AttributeError):  # where the system can: intake goes before recovery
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        with threadpool_limits(1, user_api="blas"):
            for worker in self._workers.values():
                if not self._stopping.is_set():
                    worker.prepare()
            self.prepared.set()
            try:
                self._take_turns()
            finally:
                self._store.end_lead()

    def _take_turns(self) -> None:
        retry = FIRST_RETRY_S
        while not self._stopping.is_set():
            try:
                busy = self._take_turn()
                if self._reason:
                    log.info("the store is back: recovering again")
                self._reason, retry = "", FIRST_RETRY_S
            except StoreError as problem:
                if not self._reason:
                    log.warning("nothing is recovered while the store fails: %s", problem)
                self._reason, self._look_at, busy = str(problem), 0.0, True
                self._stopping.wait(retry)
                retry = min(2 * retry, LAST_RETRY_S)
            except Exception:  # a thread that ended would go unnoticed
                log.exception("recovery failed; it starts again from the store")
                busy = self._stopping.wait(LOOK_S)
            if not busy:
                self._sleep()

    def _take_turn(self) -> bool:
        """Give each site that needs one a turn; returns whether frames still wait."""
        if time.monotonic() >= self._look_at:
            self._leads = False
            self._leads = self._store.lead()
            self._look_at = time.monotonic() + LOOK_S
            with self._changed:
                self._woken |= set(self._workers)
            for worker in () if self._leads else self._workers.values():
                worker.watch()
        busy = False
        for name, worker in self._workers.items():
            with self._changed:
                woken = name in self._woken
                self._woken.discard(name)
            if not self._leads or self._stopping.is_set():
                continue
            if woken or worker.next_due <= self._steady():
                for result in self._turn(worker):
                    self._notify(result)
                busy |= worker.next_due <= self._steady()
        return busy

    def _turn(self, worker: SiteWorker) -> list[Result]:
        try:
            return worker.turn(self._steady(), self._turn_s)
        except StoreError:
            raise
        except Exception:
            log.exception("%s: recovery failed; it starts again from the store", worker.site.name)
            worker.reset()
            self._stopping.wait(LOOK_S)
            return []

    def _notify(self, result: Result) -> None:
        for call in self._listeners:
            try:
                call(result)
            except Exception:
                log.exception("%s: a listener for results failed", result.site)

    def _sleep(self) -> None:
        """Wait for a reading, for a frame to become due, or for the next look at the store."""
        with self._changed:
            if not self._woken and all(worker.is_idle for worker in self._workers.values()):
                self._idle.set()
            due = min((worker.next_due for worker in self._workers.values()), default=float("inf"))
            pause = min((due - self._steady()) / self._speed, self._look_at - time.monotonic())
            if pause > 0 and not self._woken and not self._stopping.is_set():
                self._changed.wait(pause)
