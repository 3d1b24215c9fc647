"""The most readings of one device that the store keeps: its plan's, and those that can have waited on the way."""

from collections import Counter
from collections.abc import Mapping, Sequence

from cloakwork.collect.message_problems import BudgetRules
from cloakwork.collect.storage import Reading

OUTBOX = 100_000  # readings that a device on a computer keeps while the broker is away
WAITED_MS = 31 * 86_400_000  # a broker keeps the queue of a collector for 30 days


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
