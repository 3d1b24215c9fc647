"""Readings on their way into the store: checked strictly, acknowledged when durable, and counted when odd."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass

from cloakwork.collect.batch_writer import BatchWriter, PendingWrite
from cloakwork.collect.message_problems import REPORTED, BudgetCheck, BudgetRules, DeviceQuota, ProblemCounter, Reason
from cloakwork.collect.storage import DeviceReport, PlanPeriod, Reading, ReadingStatus, Store, unix_ms
from cloakwork.errors import BusyError, InputError
from cloakwork.sensor.errors import WireError
from cloakwork.sensor.wire import parse_topic, read_reading, read_status, topic, write_reading

CAPACITY = 10_000  # readings that may wait
LATE_FRAMES = 3
DEFAULT_PERIOD_MS = 60_000
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


class Intake:
    """Accepts readings of some sites and stores them.

    `sensors` gives the sensor ids of each site, and `rules` those of its plan: readings that break them are counted,
    and stored all the same, up to the quota of their device. A reading that arrives over three of the site's `periods`
    (milliseconds) after its time is late. At most `capacity` readings wait. `clock` is in Unix milliseconds.

    The writing thread calls `on_new` with readings that have just been stored; it should return soon. Readings with a
    wrong clock are stored, but not passed on: they are part of no frame.
    """

    def __init__(
        self,
        store: Store,
        sensors: Mapping[str, Set[str]],
        *,
        on_new: Callable[[list[Reading]], None],
        periods: Mapping[str, int] | None = None,
        rules: Mapping[str, BudgetRules] | None = None,
        capacity: int = CAPACITY,
        clock: Callable[[], int] = unix_ms,
    ) -> None:
        self._sensors = sensors
        self._on_new = on_new
        self._late_ms = {site: LATE_FRAMES * (periods or {}).get(site, DEFAULT_PERIOD_MS) for site in sensors}
        self._rules = rules or {}
        self._budgets = {
            (site, sensor): BudgetCheck(limits)
            for site, limits in self._rules.items()
            for sensor in sensors.get(site, ())
        }
        self._newest_seq: dict[tuple[str, str], int] = {}
        self._plans: dict[str, PlanPeriod] = {}
        self._clock = clock
        kinds = ("reading", "status")
        names = [(site, sensor, kind) for site, ids in sensors.items() for sensor in ids for kind in kinds]
        self._topics = {topic(*name): name for name in names}
        self._problems = ProblemCounter(sensors)
        self._quota = DeviceQuota(self._rules)
        self._writer = BatchWriter(
            store, self._problems, admit=self._admit, on_stored=self._stored_batch, capacity=capacity, clock=clock
        )
        self._stored = 0

    def begin_plan(self, site: str, period: PlanPeriod) -> None:
        """Count readings of devices that were provisioned with an earlier plan than this one as a problem."""
        self._plans[site] = period

    def start(self) -> None:
        self._writer.start()

    def stop(self) -> None:
        """Store what is queued, if the store permits, and end; the rest is not acknowledged."""
        self._writer.stop()

    @property
    def state(self) -> IntakeState:
        """Whether readings can be stored, and the counts so far."""
        writer = self._writer
        return IntakeState(
            not writer.failure, writer.since, writer.failure, writer.queued, self._stored, self._problems.totals
        )

    @property
    def has_room(self) -> bool:
        """Whether `offer` would return without waiting."""
        return self._writer.has_room

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

        def finish(statuses: list[ReadingStatus] | None) -> None:
            if statuses is not None:
                done()

        if isinstance(row, Reading):
            self._writer.put(PendingWrite((row,), None, finish))
        else:
            self._writer.put(PendingWrite((), row, finish))

    def submit(self, readings: Sequence[Reading], *, timeout: float = 10.0) -> list[ReadingStatus]:
        """Store readings, all or none of them, and return the status of each: `REFUSED` for all above a quota.

        Raises `InputError` for an unknown name or a number out of range, and `BusyError` if the queue is full, the
        store fails, or `timeout` seconds have passed. After a `BusyError` the same readings may be submitted again:
        none is stored twice.
        """
        self._check(readings)
        if not readings:
            return []
        answer: Future[list[ReadingStatus] | None] = Future()
        self._writer.put_now(PendingWrite(tuple(readings), None, answer.set_result))
        try:
            statuses = answer.result(timeout)
        except TimeoutError:
            statuses = None
        if statuses is None:
            raise BusyError("The readings are not stored yet. Send them again: none will be stored twice.")
        return statuses

    def _check(self, readings: Sequence[Reading]) -> None:
        for reading in readings:
            reason = self._unknown(reading.site, reading.sensor)
            try:
                write_reading(reading.seq, reading.time, reading.value)
            except WireError:
                reason = reason or Reason.MALFORMED
            if reason is not None:
                self.count(reason, reading.site, reading.sensor)
                raise InputError(f"{reason}. Nothing was stored. Use the names of the site file.", reason=reason)

    def _unknown(self, site: str, sensor: str) -> Reason | None:
        ids = self._sensors.get(site)
        if ids is None:
            return Reason.UNKNOWN_SITE
        return None if sensor in ids else Reason.UNKNOWN_SENSOR

    def _parse(self, topic: str, payload: bytes) -> Reading | DeviceReport | None:
        """Return the content of a message, or None if it was counted as a problem."""
        now = self._clock()
        name = self._topics.get(topic)
        if name is None:
            self._count_stray(topic, now)
            return None
        site, sensor, kind = name
        try:
            if kind == "status":
                return DeviceReport(site, sensor, *read_status(payload), now)
            return Reading(site, sensor, *read_reading(payload), now)
        except WireError:
            self._problems.count(Reason.MALFORMED, site, sensor, now)
            return None

    def _count_stray(self, topic: str, now: int) -> None:
        """Count a message on a topic that is not collected here."""
        try:
            site, sensor, kind = parse_topic(topic)
        except WireError:
            self._problems.count(Reason.WRONG_TOPIC, "", "", now)
            return
        reason = Reason.BENCH if kind == "bench" else self._unknown(site, sensor)
        self._problems.count(reason or Reason.WRONG_TOPIC, site, sensor, now)

    def _admit(self, readings: Sequence[Reading]) -> bool:
        admitted = self._quota.admit(readings)
        if not admitted:
            for reading in readings:
                self._problems.count(Reason.FLOOD, reading.site, reading.sensor, reading.received)
        return admitted

    def _stored_batch(
        self, readings: list[Reading], statuses: list[ReadingStatus], reports: list[DeviceReport]
    ) -> None:
        """Count what is odd about stored readings, and pass on those that are part of a frame."""
        new = [
            reading for reading, status in zip(readings, statuses, strict=True) if self._count_stored(reading, status)
        ]
        for report in reports:
            for reason in self._trouble(report):
                self._problems.count(reason, report.site, report.sensor, report.received)
        if new:
            try:
                self._on_new(new)
            except Exception:  # a listener that fails must not end the intake
                log.exception("a listener failed; the readings it was given are stored")

    def _count_stored(self, reading: Reading, status: ReadingStatus) -> bool:
        """Count what is odd about a stored reading; returns whether it is a new part of a frame."""
        reasons = [REASONS[status]] if status in REASONS else list(self._timing(reading))
        if Reason.DUPLICATE in reasons or Reason.ALARM in reasons:
            self._quota.release(reading)
        elif status is ReadingStatus.NEW:
            self._stored += 1
        for reason in reasons:
            self._problems.count(reason, reading.site, reading.sensor, reading.received)
        return status is ReadingStatus.NEW and Reason.CLOCK not in reasons

    def _trouble(self, report: DeviceReport) -> Iterator[Reason]:
        """Yield what is wrong with a device, by its own report."""
        rules = self._rules.get(report.site)
        if rules is not None and report.allowed != rules.allowed and report.state != BENCH:
            yield Reason.OTHER_BUDGET
        if report.state in REPORTED:
            yield REPORTED[report.state]

    def _timing(self, reading: Reading) -> Iterator[Reason]:
        """Yield what is odd about the time or the arrival of a new reading."""
        if reading.time == 0 or reading.time > reading.received + DAY_MS:
            yield Reason.CLOCK
            return
        key = (reading.site, reading.sensor)
        budget = self._budgets.get(key)
        if budget is not None and budget.has(reading.seq, reading.time):
            yield Reason.DUPLICATE
            return
        if reading.received - reading.time > self._late_ms[reading.site]:
            yield Reason.LATE
        if reading.seq < self._newest_seq.get(key, 0):
            yield Reason.ORDER
        self._newest_seq[key] = max(reading.seq, self._newest_seq.get(key, 0))
        plan = self._plans.get(reading.site)
        if plan is not None and not plan.has(reading.sensor, reading.seq):
            yield Reason.EARLIER_PLAN
        if budget is None:
            return
        rules = self._rules[reading.site]
        if rules.aligned and reading.time % rules.period_ms:
            yield Reason.OFF_SLOT
        if budget.add(reading.seq, reading.time, reading.received):
            yield Reason.OVER
