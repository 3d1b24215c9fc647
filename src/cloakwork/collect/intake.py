"""Readings on their way into the store: checked strictly, acknowledged when durable, and counted when odd."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

from cloakwork.collect.problems import Busy, Reason, Tally
from cloakwork.collect.records import Reading, Report, Verdict
from cloakwork.collect.spent import Rules, Spent
from cloakwork.collect.writer import Entry, Keeper, Writer
from cloakwork.errors import InputError
from cloakwork.sensor.errors import WireError
from cloakwork.sensor.wire import parse_topic, read_reading, read_status, topic, write_reading

CAPACITY = 10_000  # readings that may wait
LATE_FRAMES = 3
USUAL_PERIOD = 60_000
DAY = 86_400_000
BENCH = "bench"  # the state of a device for audits, which has a budget of its own
_REASONS = {Verdict.AGAIN: Reason.DUPLICATE, Verdict.ALARM: Reason.ALARM}
Row = TypeVar("Row", Reading, Report)
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
    """Takes readings in for the sites and sensors of `watched`.

    Parameters
    ----------
    on_new, on_report
        Called by the writing thread with what has just been stored; they should return soon. Readings with a wrong
        clock are stored, but not handed to `on_new`: they are part of no frame.
    periods
        Milliseconds between two readings of a site. A reading that comes over three periods after its time is late.
    rules
        What the plan of a site asks of its sensors. Who does not keep to it is counted, and stored all the same.
    capacity
        How many readings may wait.
    clock
        Unix milliseconds.
    """

    def __init__(
        self,
        store: Keeper,
        watched: Mapping[str, Set[str]],
        *,
        on_new: Callable[[list[Reading]], None],
        on_report: Callable[[list[Report]], None],
        periods: Mapping[str, int] | None = None,
        rules: Mapping[str, Rules] | None = None,
        capacity: int = CAPACITY,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._watched = watched
        self._on_new = on_new
        self._on_report = on_report
        self._late = {site: LATE_FRAMES * (periods or {}).get(site, USUAL_PERIOD) for site in watched}
        self._rules = rules or {}
        self._spent = {
            (site, sensor): Spent(asked) for site, asked in self._rules.items() for sensor in watched.get(site, ())
        }
        self._newest: dict[tuple[str, str], int] = {}
        self._clock = clock
        kinds = ("reading", "status")
        names = [(site, sensor, kind) for site, known in watched.items() for sensor in known for kind in kinds]
        self._topics = {topic(*name): name for name in names}
        self._tally = Tally(watched)
        self._writer = Writer(store, self._tally, after=self._after, capacity=capacity, clock=clock)
        self._stored = 0

    def start(self) -> None:
        """Begin to store."""
        self._writer.start()

    def stop(self) -> None:
        """Store what is queued, if the store lets it, and end; what could not be stored is not acknowledged."""
        self._writer.stop()

    @property
    def state(self) -> IntakeState:
        """How it goes."""
        failure = self._writer.failure
        return IntakeState(
            not failure, self._writer.since, failure, self._writer.queued, self._stored, self._tally.totals
        )

    @property
    def has_room(self) -> bool:
        """Whether `offer` would return without waiting."""
        return self._writer.has_room

    def count(self, reason: Reason, site: str = "", sensor: str = "") -> None:
        """Count a problem that was found elsewhere, in a request over HTTP for example."""
        self._tally.count(reason, site, sensor, self._clock())

    def offer(self, topic: str, payload: bytes, done: Callable[[], None]) -> None:
        """Take a message of the broker; `done` is called, by any thread, once it need not be sent again.

        Waits while the queue is full. What cannot be used is counted, and done with.
        """
        found = self._read(topic, payload)
        if found is None:
            done()
            return
        tell = _teller(done)
        self._writer.put(Entry((found,), None, tell) if isinstance(found, Reading) else Entry((), found, tell))

    def submit(self, readings: Sequence[Reading], *, timeout: float = 10.0) -> list[Verdict]:
        """Store readings, all or none of them, and say for each what it was.

        Raises `InputError` for an unknown name or a number out of range, and `Busy` when the queue is full, the store
        fails, or `timeout` seconds have passed. Who hears `Busy` may give the same readings again: none is stored
        twice.
        """
        self._refuse(readings)
        if not readings:
            return []
        waiter = _Waiter()
        self._writer.put_at_once(Entry(tuple(readings), None, waiter.tell))
        return waiter.wait(timeout)

    def _refuse(self, readings: Sequence[Reading]) -> None:
        for reading in readings:
            reason = self._strange(reading.site, reading.sensor)
            try:
                write_reading(reading.seq, reading.time, reading.value)
            except WireError:
                reason = reason or Reason.MALFORMED
            if reason is not None:
                self.count(reason, reading.site, reading.sensor)
                raise InputError(f"{reason}. Nothing was stored. Use the names of the site file.", reason=reason)

    def _strange(self, site: str, sensor: str) -> Reason | None:
        known = self._watched.get(site)
        if known is None:
            return Reason.UNKNOWN_SITE
        return None if sensor in known else Reason.UNKNOWN_SENSOR

    def _read(self, topic: str, payload: bytes) -> Reading | Report | None:
        """What a message says, or None when it was counted as a problem."""
        now = self._clock()
        name = self._topics.get(topic)
        if name is None:
            self._count_stray(topic, now)
            return None
        site, sensor, kind = name
        try:
            if kind == "status":
                return Report(site, sensor, *read_status(payload), now)
            return Reading(site, sensor, *read_reading(payload), now)
        except WireError:
            self._tally.count(Reason.MALFORMED, site, sensor, now)
            return None

    def _count_stray(self, topic: str, now: int) -> None:
        """Count a message on a topic that is not among the watched ones."""
        try:
            site, sensor, kind = parse_topic(topic)
        except WireError:
            self._tally.count(Reason.WRONG_TOPIC, "", "", now)
            return
        reason = Reason.BENCH if kind == "bench" else self._strange(site, sensor)
        self._tally.count(reason or Reason.WRONG_TOPIC, site, sensor, now)

    def _after(self, rows: list[Reading], verdicts: list[Verdict], reports: list[Report]) -> None:
        """Count what there is to say about readings that are stored, and hand on those that are part of a frame."""
        new = []
        for row, verdict in zip(rows, verdicts, strict=True):
            reasons = [_REASONS[verdict]] if verdict in _REASONS else list(self._timing(row))
            if verdict not in _REASONS:
                if Reason.DUPLICATE not in reasons:
                    self._stored += 1
                if Reason.CLOCK not in reasons:
                    new.append(row)
            for reason in reasons:
                self._tally.count(reason, row.site, row.sensor, row.received)
        for report in reports:
            rules = self._rules.get(report.site)
            if rules is not None and report.allowed != rules.allowed and report.state != BENCH:
                self._tally.count(Reason.OTHER_BUDGET, report.site, report.sensor, report.received)
        _hand(self._on_new, new)
        _hand(self._on_report, reports)

    def _timing(self, row: Reading) -> Iterator[Reason]:
        """What there is to say about when a new reading was taken and came."""
        if row.time == 0 or row.time > row.received + DAY:
            yield Reason.CLOCK
            return
        key = (row.site, row.sensor)
        spent = self._spent.get(key)
        if spent is not None and spent.has(row.seq, row.time):
            yield Reason.DUPLICATE
            return
        if row.received - row.time > self._late[row.site]:
            yield Reason.LATE
        if row.seq < self._newest.get(key, 0):
            yield Reason.ORDER
        self._newest[key] = max(row.seq, self._newest.get(key, 0))
        if spent is None:
            return
        rules = self._rules[row.site]
        if rules.aligned and row.time % rules.period_ms:
            yield Reason.OFF_SLOT
        if spent.add(row.seq, row.time, row.received):
            yield Reason.OVER


class _Waiter:
    """Someone who waits for verdicts."""

    def __init__(self) -> None:
        self._heard = Event()
        self._verdicts: list[Verdict] | None = None

    def tell(self, verdicts: list[Verdict] | None) -> None:
        self._verdicts = verdicts
        self._heard.set()

    def wait(self, timeout: float) -> list[Verdict]:
        self._heard.wait(timeout)
        if self._verdicts is None:
            raise Busy("The readings are not stored yet. Send them again: none will be stored twice.")
        return self._verdicts


def _teller(done: Callable[[], None]) -> Callable[[list[Verdict] | None], None]:
    def tell(verdicts: list[Verdict] | None) -> None:
        if verdicts is not None:
            done()

    return tell


def _hand(to: Callable[[list[Row]], None], rows: list[Row]) -> None:
    """Tell a listener; one that fails must not end the intake."""
    if rows:
        try:
            to(rows)
        except Exception:
            log.exception("a listener failed; what it was told is stored")
