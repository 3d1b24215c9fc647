"""Readings on their way into the store: checked strictly, acknowledged when durable, and counted when odd.

One thread writes. A transaction takes everything that has arrived meanwhile, so many readings share the slowest step,
waiting for the disk. If the store fails, nothing is acknowledged and nothing is dropped: the queue fills up, and
callers wait.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Condition, Event, Thread

from cloakwork.collect.message_problems import REPORTED, BudgetCheck, BudgetRules, ProblemCounter, Quota, Reason
from cloakwork.collect.storage import DeviceReport, PlanPeriod, Reading, ReadingStatus, Store, unix_ms
from cloakwork.errors import BusyError, CloakworkError, InputError
from cloakwork.sensor.errors import WireError
from cloakwork.sensor.wire import parse_topic, read_reading, read_status, topic, write_reading

CAPACITY = 10_000  # readings that may wait
BATCH = 500  # readings in one transaction
LINGER_S = 0.002  # a batch that is not full waits so long for more
FLUSH_S = 1.0  # between two writes of the problem counts
FIRST_RETRY_S, LAST_RETRY_S = 0.05, 2.0
PATIENCE_S = 10.0  # that a request waits for its readings to be stored
LATE_FRAMES = 3
DAY_MS = 86_400_000
BENCH = "bench"  # the state of a device under audit, which has its own budget
REASONS = {ReadingStatus.AGAIN: Reason.DUPLICATE, ReadingStatus.ALARM: Reason.ALARM}
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class IntakeState:
    """Whether readings can be stored, since when (Unix milliseconds) and why not; how many wait.

    `stored` and `problems` (by reason) count since the start.
    """

    storing: bool
    since: int
    reason: str
    queued: int
    stored: int
    problems: Mapping[str, int]


@dataclass(frozen=True, eq=False, slots=True)
class _Write:
    """Readings or a report to store; `done` gets the statuses once durable, or None if that never happens."""

    readings: tuple[Reading, ...]
    report: DeviceReport | None
    done: Callable[[list[ReadingStatus] | None], None]

    @property
    def size(self) -> int:
        return len(self.readings) or 1


class _Sensor:
    """What the intake remembers of a sensor: its budget, its quota, and its highest number."""

    def __init__(self, rules: BudgetRules) -> None:
        self.budget, self.quota, self.newest = BudgetCheck(rules), Quota(rules), 0


class Intake:
    """Accepts readings of some sites and stores them.

    `sites` gives the rules of each site's plan: readings that break them are counted, and stored all the same, up to
    the quota of their sensor. A reading that arrives over three periods after its time is late. At most `capacity`
    readings wait. `clock` is in Unix milliseconds.

    The writing thread calls `on_new` with readings that have just been stored; it should return soon. Readings with a
    wrong clock are stored, but not passed on: they are part of no frame.
    """

    def __init__(
        self,
        store: Store,
        sites: Mapping[str, BudgetRules],
        *,
        on_new: Callable[[list[Reading]], None],
        capacity: int = CAPACITY,
        clock: Callable[[], int] = unix_ms,
    ) -> None:
        self._store, self._sites, self._on_new = store, sites, on_new
        self._capacity, self._clock = capacity, clock
        self._sensors = {(site, sensor): _Sensor(rules) for site, rules in sites.items() for sensor in rules.sensors}
        names = [(*name, kind) for name in self._sensors for kind in ("reading", "status")]
        self._topics = {topic(*name): name for name in names}
        self._plans: dict[str, PlanPeriod] = {}
        self._problems = ProblemCounter(self._sensors)
        self._queue: deque[_Write] = deque()
        self._changed = Condition()
        self._stopping = Event()
        self._thread: Thread | None = None
        self._queued = self._stored = 0
        self._failure, self._since = "", clock()

    def start(self, plans: Mapping[str, PlanPeriod] | None = None) -> None:
        """Start storing; readings of devices that were provisioned before their site's plan count as a problem."""
        self._plans = dict(plans or {})
        self._stopping.clear()
        self._thread = Thread(target=self._work, daemon=True, name="cloakwork writer")
        self._thread.start()

    def stop(self) -> None:
        """Store what is queued, if the store permits, and end; the rest is not acknowledged."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @property
    def state(self) -> IntakeState:
        """Whether readings can be stored, and the counts so far."""
        return IntakeState(
            not self._failure, self._since, self._failure, self._queued, self._stored, self._problems.totals
        )

    @property
    def has_room(self) -> bool:
        """Whether `offer` would return without waiting."""
        return self._queued < self._capacity

    def count(self, reason: Reason, site: str = "", sensor: str = "") -> None:
        """Count a problem that was detected elsewhere, such as in an HTTP request."""
        self._problems.count(reason, site, sensor, self._clock())

    def offer(self, topic: str, payload: bytes, done: Callable[[], None]) -> None:
        """Take a message from the broker; any thread may call `done`, once the message need not be sent again.

        Waits while the queue is full. A message that cannot be used is counted, and done.
        """
        row = self._parse(topic, payload)
        if row is None:
            done()
            return
        readings, report = ((row,), None) if isinstance(row, Reading) else ((), row)
        with self._changed:
            self._changed.wait_for(lambda: self.has_room or self._stopping.is_set())
            if not self._stopping.is_set():
                self._append(_Write(readings, report, lambda statuses: None if statuses is None else done()))

    def submit(self, readings: Sequence[Reading]) -> list[ReadingStatus]:
        """Store readings, all or none of them, and return the status of each: `REFUSED` for all above a quota.

        Raises `InputError` for an unknown name or a number out of range, and `BusyError` if the queue is full, the
        store fails, or it takes longer than `PATIENCE_S`. After a `BusyError` the same readings may be submitted again:
        none is stored twice.
        """
        for reading in readings:
            if reason := self._refusal(reading):
                self.count(reason, reading.site, reading.sensor)
                raise InputError(f"{reason}. Nothing was stored. Use the names of the site file.", reason=reason)
        if not readings:
            return []
        answer: Future[list[ReadingStatus] | None] = Future()
        with self._changed:
            if self._failure or self._stopping.is_set() or self._thread is None:
                raise BusyError("The store cannot be written right now. Send the readings again later.")
            if self._queued and self._queued + len(readings) > self._capacity:
                raise BusyError(
                    f"{self._queued} readings are already waiting to be stored. Send yours again later.",
                    queued=self._queued,
                )
            self._append(_Write(tuple(readings), None, answer.set_result))
        try:
            statuses = answer.result(PATIENCE_S)
        except TimeoutError:
            statuses = None
        if statuses is None:
            raise BusyError("The readings are not stored yet. Send them again: none will be stored twice.")
        return statuses

    def _append(self, write: _Write) -> None:
        self._queue.append(write)
        self._queued += write.size
        self._changed.notify_all()

    def _refusal(self, reading: Reading) -> Reason | None:
        if reason := self._unknown(reading.site, reading.sensor):
            return reason
        try:
            write_reading(reading.seq, reading.time, reading.value)
        except WireError:
            return Reason.MALFORMED
        return None

    def _unknown(self, site: str, sensor: str) -> Reason | None:
        if site not in self._sites:
            return Reason.UNKNOWN_SITE
        return None if (site, sensor) in self._sensors else Reason.UNKNOWN_SENSOR

    def _parse(self, topic: str, payload: bytes) -> Reading | DeviceReport | None:
        """Return the content of a message, or None if it was counted as a problem."""
        name = self._topics.get(topic)
        if name is None:
            self._count_stray(topic)
            return None
        site, sensor, kind = name
        try:
            if kind == "status":
                return DeviceReport(site, sensor, *read_status(payload), self._clock())
            return Reading(site, sensor, *read_reading(payload), self._clock())
        except WireError:
            self.count(Reason.MALFORMED, site, sensor)
            return None

    def _count_stray(self, topic: str) -> None:
        """Count a message on a topic that is not collected here."""
        try:
            site, sensor, kind = parse_topic(topic)
        except WireError:
            self.count(Reason.WRONG_TOPIC)
            return
        reason = Reason.BENCH if kind == "bench" else self._unknown(site, sensor)
        self.count(reason or Reason.WRONG_TOPIC, site, sensor)

    def _work(self) -> None:
        flushed = time.monotonic()
        while self._queue or not self._stopping.is_set():
            if batch := self._take():
                self._store_batch(batch)
            if time.monotonic() - flushed >= FLUSH_S:
                self._flush_problems()
                flushed = time.monotonic()
        self._flush_problems()

    def _take(self) -> list[_Write]:
        """Return what has arrived, up to a batch; empty if nothing arrives for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._stopping.is_set(), FLUSH_S)
        if self._queued < BATCH and not self._stopping.is_set():
            time.sleep(LINGER_S)  # a batch of many costs hardly more than a batch of one
        batch: list[_Write] = []
        size = 0
        with self._changed:
            while self._queue and size < BATCH:
                batch.append(self._queue.popleft())
                size += batch[-1].size
            self._queued -= size
            self._changed.notify_all()
        return batch

    def _store_batch(self, batch: list[_Write]) -> None:
        """Store a batch, retrying as often as necessary, and call everyone back."""
        batch = [write for write in batch if self._within_quota(write)]
        readings = [reading for write in batch for reading in write.readings]
        reports = [write.report for write in batch if write.report is not None]
        statuses = self._insist(readings, reports)
        if statuses is None:  # stopped: nothing else will be stored
            with self._changed:
                batch += self._queue
                self._queue.clear()
                self._queued = 0
        rest = iter(statuses or ())
        for write in batch:
            _finish(write, None if statuses is None else [next(rest) for _ in write.readings])
        if statuses is not None:
            self._after(readings, statuses, reports)

    def _within_quota(self, write: _Write) -> bool:
        """Count the readings of a write, all or none of them; refuses them above the quota of a sensor."""
        for number, reading in enumerate(write.readings):
            if not self._sensors[reading[:2]].quota.take(reading.received):
                for taken in write.readings[:number]:
                    self._sensors[taken[:2]].quota.give_back()
                for refused in write.readings:
                    self._problems.count(Reason.FLOOD, refused.site, refused.sensor, refused.received)
                _finish(write, [ReadingStatus.REFUSED] * len(write.readings))
                return False
        return True

    def _insist(self, readings: list[Reading], reports: list[DeviceReport]) -> list[ReadingStatus] | None:
        """Return the statuses once everything is durable; None if the intake was stopped before that."""
        statuses: list[ReadingStatus] | None = None
        wait, failed = FIRST_RETRY_S, False
        while True:
            try:
                if statuses is None:
                    statuses = self._store.readings.add(readings) if readings else []
                if reports:
                    self._store.reports.add(reports)
            except Exception as problem:  # whatever it is, nothing is acknowledged and nothing is dropped
                failed = failed or statuses is None
                self._note(problem)
                if self._stopping.wait(wait):
                    return None
                wait = min(2 * wait, LAST_RETRY_S)
            else:
                self._note(None)
                # a write may succeed and its answer get lost, so what a retry finds may still be new
                again = ReadingStatus.AGAIN
                return [ReadingStatus.NEW if failed and status is again else status for status in statuses]

    def _after(self, readings: list[Reading], statuses: list[ReadingStatus], reports: list[DeviceReport]) -> None:
        """Count what is odd about stored readings and reports, and pass on the readings that are part of a frame."""
        new = [
            reading for reading, status in zip(readings, statuses, strict=True) if self._count_stored(reading, status)
        ]
        for report in reports:
            if report.allowed != self._sites[report.site].allowed and report.state != BENCH:
                self._problems.count(Reason.OTHER_BUDGET, report.site, report.sensor, report.received)
            if report.state in REPORTED:
                self._problems.count(REPORTED[report.state], report.site, report.sensor, report.received)
        if new:
            try:
                self._on_new(new)
            except Exception:  # a listener that fails must not end the intake
                log.exception("a listener failed; the readings it was given are stored")

    def _count_stored(self, reading: Reading, status: ReadingStatus) -> bool:
        """Count what is odd about a stored reading; returns whether it is a new part of a frame."""
        reasons = [REASONS[status]] if status in REASONS else list(self._timing(reading))
        if Reason.DUPLICATE in reasons or Reason.ALARM in reasons:
            self._sensors[reading[:2]].quota.give_back()
        elif status is ReadingStatus.NEW:
            self._stored += 1
        for reason in reasons:
            self._problems.count(reason, reading.site, reading.sensor, reading.received)
        return status is ReadingStatus.NEW and Reason.CLOCK not in reasons

    def _timing(self, reading: Reading) -> Iterator[Reason]:
        """Yield what is odd about the time or the arrival of a new reading."""
        sensor, rules = self._sensors[reading[:2]], self._sites[reading.site]
        if reading.time == 0 or reading.time > reading.received + DAY_MS:
            yield Reason.CLOCK
            return
        if sensor.budget.has(reading.seq, reading.time):
            yield Reason.DUPLICATE
            return
        if reading.received - reading.time > LATE_FRAMES * rules.period_ms:
            yield Reason.LATE
        if reading.seq < sensor.newest:
            yield Reason.ORDER
        sensor.newest = max(reading.seq, sensor.newest)
        plan = self._plans.get(reading.site)
        if plan is not None and not plan.has(reading.sensor, reading.seq):
            yield Reason.EARLIER_PLAN
        if rules.aligned and reading.time % rules.period_ms:
            yield Reason.OFF_SLOT
        if sensor.budget.add(reading.seq, reading.time, reading.received):
            yield Reason.OVER

    def _flush_problems(self) -> None:
        """Store the problem counts; they are kept here if that fails."""
        if counts := self._problems.take():
            try:
                self._store.problems.add(counts)
            except Exception as problem:
                self._problems.put_back(counts)
                self._note(problem)
            else:
                self._note(None)

    def _note(self, problem: Exception | None) -> None:
        """Note whether the store works; the text of errors that are not ours may contain readings."""
        reason = str(problem) if isinstance(problem, CloakworkError) else type(problem).__name__ if problem else ""
        if reason and not self._failure:
            log.error("the store cannot be written, readings wait: %s", reason)
        elif self._failure and not reason:
            log.warning("the store can be written again; %d readings have waited", self._queued)
        if bool(reason) != bool(self._failure):
            self._since = self._clock()
        self._failure = reason


def _finish(write: _Write, statuses: list[ReadingStatus] | None) -> None:
    """Call back; a callback that fails must not keep the others waiting."""
    try:
        write.done(statuses)
    except Exception:
        log.exception("a callback failed; its sender does not know what became of its readings")
