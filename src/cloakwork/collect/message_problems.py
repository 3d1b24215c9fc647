"""Problems with messages: their reasons, their counts, the check of each sensor's reading budget, and its quota.

No payload is kept, so none can leak.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Lock

from cloakwork.collect.storage import ProblemCount
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

    `known` are the sensors of the sites, each as (site, sensor). Other names are counted as empty: anyone who may
    publish can invent enough of them to fill the store.
    """

    def __init__(self, known: Collection[tuple[str, str]]) -> None:
        self._known, self._sites = known, {site for site, _ in known}
        self._fresh: dict[tuple[str, str, str], ProblemCount] = {}
        self._totals: Counter[str] = Counter()
        self._lock = Lock()

    def count(self, reason: Reason, site: str, sensor: str, when: int) -> None:
        names = (site if site in self._sites else "", sensor if (site, sensor) in self._known else "")
        with self._lock:
            self._totals[reason.value] += 1
            self._add(ProblemCount(*names, reason.value, 1, when))

    def take(self) -> list[ProblemCount]:
        """Return the counts since the last call."""
        with self._lock:
            fresh, self._fresh = self._fresh, {}
        return list(fresh.values())

    def put_back(self, taken: Sequence[ProblemCount]) -> None:
        """Return counts that could not be stored; the next `take` includes them."""
        with self._lock:
            for problem in taken:
                self._add(problem)

    @property
    def totals(self) -> dict[str, int]:
        """Counts since the start, by reason."""
        with self._lock:
            return dict(self._totals)

    def _add(self, new: ProblemCount) -> None:
        key = (new.site, new.sensor, new.reason)
        old = self._fresh.get(key)
        both = new if old is None else replace(new, count=old.count + new.count, last=max(old.last, new.last))
        self._fresh[key] = both


@dataclass(frozen=True)
class BudgetRules:
    """The plan's rules for each of the `sensors` of a site: `allowed` readings in any `window_ms`.

    With `aligned`, all sensors measure together and stamp a multiple of `period_ms`.
    """

    window_ms: int
    allowed: int
    period_ms: int
    aligned: bool
    sensors: frozenset[str] = frozenset()

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


class Quota:
    """Limits what one sensor can store, whatever it stamps and however it sends. One thread may use it.

    By arrival, a device may store what an outbox holds and its plan allows in a month, and then as the plan allows. One
    that keeps to its plan always fits. A restart of the collector forgets what was used.
    """

    def __init__(self, rules: BudgetRules, *, outbox: int = OUTBOX) -> None:
        self._month = rules.most(WAITED_MS)
        self._most = self._left = float(outbox + self._month)
        self._since = 0

    def take(self, now: int) -> bool:
        """Take one reading that arrives at a time; returns False if none is left."""
        self._left = min(self._most, self._left + max(0, now - self._since) * self._month / WAITED_MS)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def give_back(self) -> None:
        """A reading that was taken is not stored, or was stored before."""
        self._left += 1
