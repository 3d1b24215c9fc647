"""One thread that writes what many bring, in batches.

It takes all that has come meanwhile in one transaction, so the store's slowest step, waiting for the disk, is shared by
many readings. When the store fails, nobody is told that anything is stored and nothing is dropped: what is queued
waits, the queue fills up, and whoever brings more has to wait as well.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Event, Lock, Thread
from typing import Protocol

from cloakwork.collect.problems import Busy, Tally
from cloakwork.collect.records import Problem, Reading, Report, Verdict
from cloakwork.errors import CloakworkError

BATCH = 500  # readings in one transaction
LINGER = 0.001  # a batch is closed when nothing came for so many seconds ...
LONGEST_LINGER = 0.005  # ... or after so many
FLUSH = 1.0  # seconds between two writings of the counters
FIRST_RETRY, LAST_RETRY = 0.05, 2.0
log = logging.getLogger(__name__)


class Keeper(Protocol):
    """What is needed of a store; each call is one transaction, and durable when it returns."""

    def add_readings(self, rows: Sequence[Reading]) -> list[Verdict]:
        """A verdict for each."""

    def add_reports(self, rows: Sequence[Report]) -> None:
        """The latest of each sensor counts."""

    def add_problems(self, rows: Sequence[Problem]) -> None:
        """Add to the counts."""


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """Readings or a report to store, and whom to tell: the verdicts once it is durable, None if it will not be."""

    readings: tuple[Reading, ...]
    report: Report | None
    tell: Callable[[list[Verdict] | None], None]

    @property
    def size(self) -> int:
        """How much room it takes."""
        return len(self.readings) or 1


class Writer:
    """Writes entries in the order in which they come; counters of `tally` go along.

    `after` is called by the writing thread with each batch that is durable: readings, their verdicts, reports. Where it
    took several attempts a reading that was there already is called new, too: one of them may have stored it.
    """

    def __init__(
        self,
        store: Keeper,
        tally: Tally,
        *,
        after: Callable[[list[Reading], list[Verdict], list[Report]], None],
        capacity: int,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._tally = tally
        self._after = after
        self._capacity = capacity
        self._clock = clock
        self._entries: deque[Entry] = deque()
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
        """Begin."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = Thread(target=self._work, daemon=True, name="cloakwork writer")
            self._thread.start()

    def stop(self) -> None:
        """Write what is queued, if the store lets it, and end."""
        self._stopping.set()
        with self._arrived:
            self._arrived.notify_all()
            self._taken.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def put(self, entry: Entry) -> None:
        """Queue an entry, when there is room; nobody is told anything about it once the writer was stopped."""
        with self._taken:
            self._taken.wait_for(lambda: self.has_room or self._stopping.is_set())
            if not self._stopping.is_set():
                self._enter(entry)

    def put_at_once(self, entry: Entry) -> None:
        """Queue an entry, or raise `Busy` where it would have to wait."""
        with self._arrived:
            if self.failure or self._stopping.is_set() or self._thread is None:
                raise Busy("The store cannot be written at the moment. Send the readings again later.")
            if self.queued and self.queued + entry.size > self._capacity:
                raise Busy(f"{self.queued} readings wait to be stored already. Send yours again later.")
            self._enter(entry)

    def _enter(self, entry: Entry) -> None:
        if not self._entries:
            self._arrived.notify()
        self._entries.append(entry)
        self.queued += entry.size

    def _work(self) -> None:
        flushed = time.monotonic()
        while self._entries or not self._stopping.is_set():
            batch = self._take()
            if batch:
                self._keep(batch)
            if time.monotonic() - flushed >= FLUSH:
                self._flush()
                flushed = time.monotonic()
        self._flush()

    def _take(self) -> list[Entry]:
        """What has come, up to a batch; nothing if nothing comes for a while."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._entries or self._stopping.is_set(), FLUSH)
        self._linger()
        batch: list[Entry] = []
        size = 0
        with self._taken:
            while self._entries and size < BATCH:
                batch.append(self._entries.popleft())
                size += batch[-1].size
            self.queued -= size
            self._taken.notify_all()
        return batch

    def _linger(self) -> None:
        """Give those who are sending a moment: a batch of many costs hardly more than a batch of one."""
        end = time.monotonic() + LONGEST_LINGER
        before = 0
        while before < self.queued < BATCH and time.monotonic() < end and not self._stopping.is_set():
            before = self.queued
            time.sleep(LINGER)

    def _keep(self, batch: list[Entry]) -> None:
        """Store a batch, however often that has to be tried, and tell everyone who waits for it."""
        rows = [reading for entry in batch for reading in entry.readings]
        reports = [entry.report for entry in batch if entry.report is not None]
        verdicts = self._insist(rows, reports)
        if verdicts is None:
            self._give_up(batch)
            return
        at = 0
        for entry in batch:
            _tell(entry, verdicts[at : at + len(entry.readings)])
            at += len(entry.readings)
        self._after(rows, verdicts, reports)

    def _insist(self, rows: list[Reading], reports: list[Report]) -> list[Verdict] | None:
        """The verdicts, once all is durable; None when the writer was stopped before that."""
        verdicts: list[Verdict] | None = None
        wait = FIRST_RETRY
        failed = False
        while True:
            try:
                if verdicts is None:
                    verdicts = self._store.add_readings(rows) if rows else []
                if reports:
                    self._store.add_reports(reports)
            except Exception as problem:  # whatever it is, nothing is acknowledged and nothing is dropped
                failed = failed or verdicts is None
                self._note_failure(problem)
                if self._stopping.wait(wait):
                    return None
                wait = min(2 * wait, LAST_RETRY)
            else:
                self._note_success()
                # a write may be done and its answer lost: what the next attempt finds may be new all the same
                return [Verdict.NEW if failed and verdict is Verdict.AGAIN else verdict for verdict in verdicts]

    def _give_up(self, batch: list[Entry]) -> None:
        with self._taken:
            batch = [*batch, *self._entries]
            self._entries.clear()
            self.queued = 0
        for entry in batch:
            _tell(entry, None)

    def _flush(self) -> None:
        """Write the counters down; they are kept while that fails."""
        problems = self._tally.take()
        if problems:
            try:
                self._store.add_problems(problems)
            except Exception as problem:
                self._tally.put_back(problems)
                self._note_failure(problem)
            else:
                self._note_success()

    def _note_failure(self, problem: Exception) -> None:
        # what others raise may hold what was to be stored
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


def _tell(entry: Entry, verdicts: list[Verdict] | None) -> None:
    """Tell one who waits; one that fails must not keep the others waiting."""
    try:
        entry.tell(verdicts)
    except Exception:
        log.exception("someone could not be told what became of their readings")
