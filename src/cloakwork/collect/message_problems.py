"""Problems with messages: their reasons, their counts, the check of each sensor's reading budget, and its quota.

No payload is kept, so none can leak.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock

from cloakwork.collect.storage import ProblemCount, Reading
from cloakwork.sensor.measuring import FAILING, INVALID, SKIPPING, SLOW

OUTBOX = 100_000  # readings that a device on a computer keeps while the broker is away
WAITED_MS = 31 * 86_400_000  # a broker keeps the queue of a collector for 30 days
SPARE_STAMPS = 64  # beyond those of a full window, kept before the oldest are dropped


class Reason(StrEnum):
    """Everything that can be odd about a message. The store keeps these texts."""

    MALFORMED = "malformed: not in the wire format, version 1"
    WRONG_TOPIC = "wrong topic: not cloakwork/v1/<site>/<sensor>/reading or status"
    UNKNOWN_SITE = "unknown site: not collected here"
    UNKNOWN_SENSOR = "unknown sensor: the site has none of this name"
    BENCH = "bench: from a device under audit, not kept"
    LATE = "late: stored after its frame was due"
    ORDER = "out of order: a later reading of this sensor was stored before"
    DUPLICATE = "duplicate: the same reading was stored before"
    ALARM = "alarm: one seq with two values"
    CLOCK = "clock wrong: stamped 0 or more than a day ahead; check the clock of the device"
    OVER = "over budget: the claim does not hold for this sensor"
    OTHER_BUDGET = "other budget: the device has another plan, and the claim does not hold for it"
    EARLIER_PLAN = "earlier plan: the device was provisioned before this plan, and the claim does not hold for it"
    OFF_SLOT = "off the slots: measured at other times than the others, and the claim does not hold for it"
    FLOOD = "flood: more readings than the plan allows and an outbox holds"
    FAILING = "failing: measure.py raises errors, so the device sends a constant"
    INVALID = "invalid: measure.py returns no readings, so the device sends a constant"
    SLOW = "slow: measure.py takes longer than the slot allows, so the device sends a constant"
    SKIPPING = "skipping: the device stores its state too slowly, so slots stay empty; set a longer late"


CANNOT_MEASURE = {FAILING: Reason.FAILING, INVALID: Reason.INVALID, SLOW: Reason.SLOW}  # by the state of a device
REPORTED = CANNOT_MEASURE | {SKIPPING: Reason.SKIPPING}
CLAIM_BREAKING = (Reason.OVER, Reason.OTHER_BUDGET, Reason.EARLIER_PLAN, Reason.OFF_SLOT)


class ProblemCounter:
    """Counts problems by site, sensor and reason; thread-safe.

    `sensors` gives the sensor ids of each site. Other names are counted as empty: anyone who may publish can invent
    enough of them to fill the store.
    """

    def __init__(self, sensors: Mapping[str, Set[str]]) -> None:
        self._sensors = sensors
        self._fresh: dict[tuple[str, str, str], tuple[int, int]] = {}
        self._totals: Counter[str] = Counter()
        self._lock = Lock()

    def count(self, reason: Reason, site: str, sensor: str, when: int) -> None:
        known = self._sensors.get(site)
        key = ("" if known is None else site, sensor if known and sensor in known else "", reason.value)
        with self._lock:
            self._fresh[key] = (self._fresh.get(key, (0, 0))[0] + 1, when)
            self._totals[reason.value] += 1

    def take(self) -> list[ProblemCount]:
        """Return the counts since the last call."""
        with self._lock:
            fresh, self._fresh = self._fresh, {}
        return [ProblemCount(*key, count, last) for key, (count, last) in fresh.items()]

    def put_back(self, taken: Sequence[ProblemCount]) -> None:
        """Return counts that could not be stored; the next `take` includes them."""
        with self._lock:
            for problem in taken:
                key = (problem.site, problem.sensor, problem.reason)
                count, last = self._fresh.get(key, (0, 0))
                self._fresh[key] = (count + problem.count, max(last, problem.last))

    @property
    def totals(self) -> dict[str, int]:
        """Counts since the start, by reason."""
        with self._lock:
            return dict(self._totals)


@dataclass(frozen=True)
class BudgetRules:
    """The plan's rules for each sensor of a site: `allowed` readings in any `window_ms`.

    With `aligned`, all sensors measure together and stamp a multiple of `period_ms`.
    """

    window_ms: int
    allowed: int
    period_ms: int
    aligned: bool

    def most(self, milliseconds: int) -> int:
        """The most readings of a sensor in any period of this length."""
        return self.allowed * -(-milliseconds // self.window_ms)


class BudgetCheck:
    """Detects a sensor that sends more readings than the plan allows; the site's claim does not cover it.

    It remembers the last full window of readings, in memory.

    Notes
    -----
    The claim is about when readings were taken, and only their stamps show that: after an outage a whole backlog
    arrives at once, which is fine. A clock that is set back stamps the same period twice, which is no fault either. So
    a reading is over budget only if too many stamps lie within one window and those messages also arrived within one
    window. A sensor that lies about its times escapes this check; it could just as well send readings without noise.

    No reading may be added twice, and the store does not always know: it forgets erased readings, and after a failed
    write it cannot say whether a reading was stored by that attempt or before. Call `has` first.
    """

    def __init__(self, rules: BudgetRules) -> None:
        self._rules = rules
        self._stamps = array("q")  # sorted
        self._seqs = array("q")  # of each stamp
        self._arrivals: deque[int] = deque(maxlen=rules.allowed + 1)
        self._shortest = rules.window_ms - rules.period_ms // 4  # delays on the way vary a little

    def has(self, seq: int, stamp: int) -> bool:
        """Whether this reading is among the remembered ones."""
        return seq in self._seqs[bisect_left(self._stamps, stamp) : bisect_right(self._stamps, stamp)]

    def add(self, seq: int, stamp: int, received: int) -> bool:
        """Add a new reading; returns whether it is over budget."""
        rules, stamps = self._rules, self._stamps
        at = bisect_right(stamps, stamp)
        stamps.insert(at, stamp)
        self._seqs.insert(at, seq)
        self._arrivals.append(received)
        before = at + 1 - bisect_right(stamps, stamp - rules.window_ms)
        after = bisect_left(stamps, stamp + rules.window_ms) - bisect_left(stamps, stamp)
        if len(stamps) > rules.allowed + 2 * SPARE_STAMPS:
            surplus = len(stamps) - rules.allowed - SPARE_STAMPS
            del stamps[:surplus], self._seqs[:surplus]
        dense = max(before, after) > rules.allowed
        return dense and len(self._arrivals) > rules.allowed and received - self._arrivals[0] < self._shortest


class DeviceQuota:
    """Limits what one device can store, whatever it stamps and however it sends. One thread may use it.

    By arrival, a device may store what an outbox holds and its plan allows in a month, and then as the plan allows. One
    that keeps to its plan always fits. A restart of the collector begins anew.
    """

    def __init__(self, rules: Mapping[str, BudgetRules], *, outbox: int = OUTBOX) -> None:
        self._rules, self._outbox = rules, outbox
        self._left: dict[tuple[str, str], tuple[float, int]] = {}  # readings that may arrive, as of a time

    def admit(self, readings: Sequence[Reading]) -> bool:
        """Count readings that are to be stored, all or none; returns False if there is no room for them."""
        left: dict[tuple[str, str], tuple[float, int]] = {}
        for name, number in Counter((row.site, row.sensor) for row in readings if row.site in self._rules).items():
            now = readings[0].received
            left[name] = (self._room(name, now) - number, now)
        if any(number < 0 for number, _ in left.values()):
            return False
        self._left |= left
        return True

    def release(self, reading: Reading) -> None:
        """Take back the count of a reading that was stored before."""
        name = (reading.site, reading.sensor)
        if name in self._left:
            left, since = self._left[name]
            self._left[name] = (left + 1, since)

    def _room(self, name: tuple[str, str], now: int) -> float:
        month = self._rules[name[0]].most(WAITED_MS)
        most = self._outbox + month
        left, since = self._left.get(name, (most, now))
        return min(most, left + max(0, now - since) * month / WAITED_MS)
