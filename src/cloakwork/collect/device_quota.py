"""The most readings of one device that the store keeps: its plan's, and those that can have waited on the way."""

from collections import Counter
from collections.abc import Mapping, Sequence

from cachetools import LRUCache

from cloakwork.collect.message_problems import BudgetRules
from cloakwork.collect.storage import Reading, Store

OUTBOX = 100_000  # readings that a device on a computer keeps while the broker is away
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
WAITED_MS = 31 * DAY_MS  # a broker keeps the queue of a collector for 30 days
REPEATS = 2  # a clock that is set back stamps a period twice
MAX_PERIODS = 4096  # whose counts are remembered
RELOAD_MS = 10_000  # before the count of a full period is read again: readings may have been erased

SensorName = tuple[str, str]
Period = tuple[str, int]


class _Allowance:
    """Readings that may arrive: `left` now, more with time, never above `most`."""

    def __init__(self, left: float, most: float, per_ms: float, now: int) -> None:
        self.left, self._most, self._per_ms, self._filled = left, most, per_ms, now

    def take(self, now: int) -> bool:
        """Take one; returns False if none is left."""
        self.left = min(self._most, self.left + max(0, now - self._filled) * self._per_ms)
        self._filled = now
        if self.left < 1:
            return False
        self.left -= 1
        return True

    def give_back(self) -> None:
        self.left += 1


class DeviceQuota:
    """Limits what one device can store, whatever it sends, and detects a flood. One thread may use it.

    Notes
    -----
    Of a device that keeps to its plan, a period of time has no more readings than the plan allows in it, whenever they
    arrive. So each period, of at least an hour, keeps at most twice that number of stamps: a clock that is set back
    stamps a period twice. Stamps that are not set, more than a day ahead or older than any broker keeps a message
    belong to no such period. They count by their arrival: as many as an outbox holds and the plan allows in a month,
    and then as the plan allows.

    A flood is more new readings than fit in an outbox and the plan allows in the time for which nothing arrived.
    """

    def __init__(self, store: Store, rules: Mapping[str, BudgetRules], *, outbox: int = OUTBOX) -> None:
        self._store = store
        self._rules = rules
        self._outbox = outbox
        self._counts: LRUCache[Period, tuple[Counter[str], int]] = LRUCache(MAX_PERIODS)
        self._undated: dict[SensorName, _Allowance] = {}
        self._arrivals: dict[SensorName, _Allowance] = {}

    def admit(self, readings: Sequence[Reading]) -> bool:
        """Count readings that are to be stored, all or none; returns False if there is no room for them."""
        for number, reading in enumerate(readings):
            if not self._admit_one(reading):
                for other in readings[:number]:
                    self.release(other)
                return False
        return True

    def _admit_one(self, reading: Reading) -> bool:
        rules = self._rules.get(reading.site)
        if rules is None:
            return True
        if not _is_dated(reading):
            return self._undated_allowance(reading, rules).take(reading.received)
        length, most = _period(rules)
        key = (reading.site, reading.time // length)
        counts, loaded = self._counts.get(key) or self._load(key, length, reading.received)
        if counts[reading.sensor] >= most and not 0 <= reading.received - loaded < RELOAD_MS:
            counts, _ = self._load(key, length, reading.received)
        if counts[reading.sensor] >= most:
            return False
        counts[reading.sensor] += 1
        return True

    def release(self, reading: Reading) -> None:
        """Take back the count of a reading that was not stored, or had been before."""
        rules = self._rules.get(reading.site)
        if rules is None:
            return
        if not _is_dated(reading):
            self._undated_allowance(reading, rules).give_back()
            return
        counts, _ = self._counts.get((reading.site, reading.time // _period(rules)[0]), (Counter[str](), 0))
        counts[reading.sensor] -= 1

    def floods(self, reading: Reading) -> bool:
        """Whether a new reading is one of a flood; call it once for each."""
        rules = self._rules.get(reading.site)
        if rules is None:
            return False
        name, now = (reading.site, reading.sensor), reading.received
        if name not in self._arrivals:
            waited = min(WAITED_MS, max(0, now - self._last_frame(reading.site, now)))
            month = rules.most(WAITED_MS)
            left = self._outbox + rules.most(waited)
            self._arrivals[name] = _Allowance(left, self._outbox + month, month / WAITED_MS, now)
        return not self._arrivals[name].take(now)

    def _undated_allowance(self, reading: Reading, rules: BudgetRules) -> _Allowance:
        name, month = (reading.site, reading.sensor), rules.most(WAITED_MS)
        if name not in self._undated:
            most = self._outbox + month
            self._undated[name] = _Allowance(most, most, month / WAITED_MS, reading.received)
        return self._undated[name]

    def _load(self, key: Period, length: int, now: int) -> tuple[Counter[str], int]:
        """Read the counts of a period; while the store is away, nothing may be lost, so they are taken as zero."""
        site, number = key
        try:
            counts = self._store.readings.counts(site, number * length, (number + 1) * length, received=0)
        except Exception:  # whatever it is: storing waits for the store, and nothing is lost
            return Counter(), now
        self._counts[key] = found = (Counter(counts), now)
        return found

    def _last_frame(self, site: str, now: int) -> int:
        try:
            frames = self._store.frames.times(site, until=now, limit=1)
        except Exception:  # whatever it is: storing waits for the store, and nothing is lost
            return 0
        return frames[0].time if frames else 0


def _is_dated(reading: Reading) -> bool:
    return reading.time > 0 and -DAY_MS <= reading.received - reading.time <= WAITED_MS


def _period(rules: BudgetRules) -> tuple[int, int]:
    """The length of a period in milliseconds, whole windows, and how many readings of a sensor it keeps."""
    length = rules.window_ms * -(-HOUR_MS // rules.window_ms)
    return length, REPEATS * rules.most(length)
