"""One thread that stores readings from many callers, in batches.

A transaction takes everything that has arrived meanwhile, so many readings share the slowest step, waiting for the
disk. If the store fails, nothing is acknowledged and nothing is dropped: the queue waits and fills up, and callers wait
as well.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Event, Lock, Thread

from cloakwork.collect.message_problems import ProblemCounter
from cloakwork.collect.storage import DeviceReport, Reading, ReadingStatus, Store
from cloakwork.errors import BusyError, CloakworkError

BATCH = 500  # readings in one transaction
LINGER = 0.001  # a batch is closed when nothing arrived for so many seconds ...
LONGEST_LINGER = 0.005  # ... or after so many
FLUSH = 1.0  # seconds between two writes of the problem counts
FIRST_RETRY, LAST_RETRY = 0.05, 2.0
log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, slots=True)
class PendingWrite:
    """Readings or a report to store, and a callback for the statuses once durable, or None if that never happens."""

    readings: tuple[Reading, ...]
    report: DeviceReport | None
    done: Callable[[list[ReadingStatus] | None], None]

    @property
    def size(self) -> int:
        """Its share of the queue's capacity."""
        return len(self.readings) or 1

    def finish(self, statuses: list[ReadingStatus] | None) -> None:
        """Call back; a callback that fails must not keep the others waiting."""
        try:
            self.done(statuses)
        except Exception:
            log.exception("a caller could not be told what became of its readings")


class BatchWriter:
    """Stores writes in the order of arrival, and the problem counts with them.

    The writing thread asks `admit` whether the readings of a write may be stored, and calls `on_stored` with each
    durable batch: readings, their statuses, reports. After a retry, a reading that was there already counts as new: an
    earlier attempt may have stored it.
    """

    def __init__(
        self,
        store: Store,
        problems: ProblemCounter,
        *,
        admit: Callable[[Sequence[Reading]], bool],
        on_stored: Callable[[list[Reading], list[ReadingStatus], list[DeviceReport]], None],
        capacity: int,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._problems = problems
        self._admit = admit
        self._on_stored = on_stored
        self._capacity = capacity
        self._clock = clock
        self._queue: deque[PendingWrite] = deque()
        lock = Lock()
        self._arrived = Condition(lock)
        self._taken = Condition(lock)
        self._stopping = Event()
        self._thread: Thread | None = None
        self.queued = 0
        self.failure = ""
        self.since = clock()

    @property
    def has_room(self) -> bool:
        """Whether `put` would return without waiting."""
        return self.queued < self._capacity

    def start(self) -> None:
        if self._thread is None:
            self._stopping.clear()
            self._thread = Thread(target=self._work, daemon=True, name="cloakwork writer")
            self._thread.start()

    def stop(self) -> None:
        """Store what is queued, if the store permits, and end."""
        self._stopping.set()
        with self._arrived:
            self._arrived.notify_all()
            self._taken.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def put(self, write: PendingWrite) -> None:
        """Queue a write as soon as there is room; after `stop` it is ignored, and its callback never called."""
        with self._taken:
            self._taken.wait_for(lambda: self.has_room or self._stopping.is_set())
            if not self._stopping.is_set():
                self._append(write)

    def put_now(self, write: PendingWrite) -> None:
        """Queue a write, or raise `BusyError` if it would have to wait."""
        with self._arrived:
            if self.failure or self._stopping.is_set() or self._thread is None:
                raise BusyError("The store cannot be written right now. Send the readings again later.")
            if self.queued and self.queued + write.size > self._capacity:
                raise BusyError(
                    f"{self.queued} readings are already waiting to be stored. Send yours again later.",
                    queued=self.queued,
                )
            self._append(write)

    def _append(self, write: PendingWrite) -> None:
        if not self._queue:
            self._arrived.notify()
        self._queue.append(write)
        self.queued += write.size

    def _work(self) -> None:
        flushed = time.monotonic()
        while self._queue or not self._stopping.is_set():
            batch = self._take()
            if batch:
                self._store_batch(batch)
            if time.monotonic() - flushed >= FLUSH:
                self._flush_problems()
                flushed = time.monotonic()
        self._flush_problems()

    def _take(self) -> list[PendingWrite]:
        """Return what has arrived, up to a batch; empty if nothing arrives for a while."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._queue or self._stopping.is_set(), FLUSH)
        self._linger()
        batch: list[PendingWrite] = []
        size = 0
        with self._taken:
            while self._queue and size < BATCH:
                batch.append(self._queue.popleft())
                size += batch[-1].size
            self.queued -= size
            self._taken.notify_all()
        return batch

    def _linger(self) -> None:
        """Wait a moment for more: a batch of many costs hardly more than a batch of one."""
        end = time.monotonic() + LONGEST_LINGER
        before = 0
        while before < self.queued < BATCH and time.monotonic() < end and not self._stopping.is_set():
            before = self.queued
            time.sleep(LINGER)

    def _store_batch(self, batch: list[PendingWrite]) -> None:
        """Store a batch, retrying as often as necessary, and call everyone back."""
        batch = [write for write in batch if self._admitted(write)]
        readings = [reading for write in batch for reading in write.readings]
        reports = [write.report for write in batch if write.report is not None]
        statuses = self._insist(readings, reports)
        if statuses is None:
            self._give_up(batch)
            return
        start = 0
        for write in batch:
            end = start + len(write.readings)
            write.finish(statuses[start:end])
            start = end
        self._on_stored(readings, statuses, reports)

    def _admitted(self, write: PendingWrite) -> bool:
        admitted = self._admit(write.readings)
        if not admitted:
            write.finish([ReadingStatus.REFUSED] * len(write.readings))
        return admitted

    def _insist(self, readings: list[Reading], reports: list[DeviceReport]) -> list[ReadingStatus] | None:
        """Return the statuses once everything is durable; None if the writer was stopped before that."""
        statuses: list[ReadingStatus] | None = None
        wait = FIRST_RETRY
        failed = False
        while True:
            try:
                if statuses is None:
                    statuses = self._store.readings.add(readings) if readings else []
                if reports:
                    self._store.reports.add(reports)
            except Exception as problem:  # whatever it is, nothing is acknowledged and nothing is dropped
                failed = failed or statuses is None
                self._note_failure(problem)
                if self._stopping.wait(wait):
                    return None
                wait = min(2 * wait, LAST_RETRY)
            else:
                self._note_success()
                # a write may succeed and its answer get lost, so what a retry finds may still be new
                again = ReadingStatus.AGAIN
                return [ReadingStatus.NEW if failed and status is again else status for status in statuses]

    def _give_up(self, batch: list[PendingWrite]) -> None:
        with self._taken:
            batch = [*batch, *self._queue]
            self._queue.clear()
            self.queued = 0
        for write in batch:
            write.finish(None)

    def _flush_problems(self) -> None:
        """Store the problem counts; they are kept here if that fails."""
        counts = self._problems.take()
        if counts:
            try:
                self._store.problems.add(counts)
            except Exception as problem:
                self._problems.put_back(counts)
                self._note_failure(problem)
            else:
                self._note_success()

    def _note_failure(self, problem: Exception) -> None:
        # the text of errors that are not ours may contain readings
        reason = str(problem) if isinstance(problem, CloakworkError) else type(problem).__name__
        if not self.failure:
            log.error("the store cannot be written, readings wait: %s", reason)
            self.since = self._clock()
        self.failure = reason

    def _note_success(self) -> None:
        if self.failure:
            log.warning("the store can be written again; %d readings have waited", self.queued)
            self.failure = ""
            self.since = self._clock()
