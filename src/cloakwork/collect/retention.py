"""Removes data that is too old, but never because this machine's clock jumped ahead."""

import logging
import time
from collections.abc import Callable, Mapping, Set

from cloakwork.collect.storage import Store, unix_ms
from cloakwork.errors import StoreError

ERASE_S = 3600.0
JUMP_S = 300.0  # the wall clock may drift by this much between two checks
NEAR_MS = 3_600_000
TRUST_S = 86_400.0
PATIENCE_S = 3600.0  # before doubt is worth a warning: devices may have to start, too
DOUBT = (
    "%s: nothing is removed for its age yet: less than half of the sensors have sent a reading of this hour, so the "
    "clock of this machine may be wrong. Check it; it is trusted once it has run for a day without a jump"
)
log = logging.getLogger(__name__)


class Retention:
    """Removes, once an hour, data that is older than so many days. Call `check` every minute.

    Removed data is gone for good, so a wall clock that may be wrong removes nothing. It is trusted at a site if half of
    the site's sensors agree with it (a reading has arrived within the last hour, by this clock, and its device's stamp
    is within an hour of it), or if it has run for a day without a jump. So old data also goes where devices no longer
    send.

    `sensors` gives the sensor ids of each site. `clock` is in Unix milliseconds, `steady` in seconds of a clock that
    never jumps.
    """

    def __init__(
        self,
        store: Store,
        sensors: Mapping[str, Set[str]],
        days: float,
        *,
        clock: Callable[[], int] = unix_ms,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._sensors, self._days = store, sensors, days
        self._clock, self._steady = clock, steady
        self._steady_since = steady()
        self._offset = clock() / 1000 - self._steady_since  # by which the wall clock is ahead of the steady one
        self._due = dict.fromkeys(sensors, self._steady_since)
        self._warned: set[str] = set()

    def check(self) -> None:
        """Remove old data where it is due and the clock is trusted."""
        now, before = self._steady(), self._offset
        self._offset = self._clock() / 1000 - now
        if abs(self._offset - before) > JUMP_S:
            self._steady_since = now
            log.warning("the clock of this machine jumped by %+.0f s", self._offset - before)
        for site, ids in self._sensors.items():
            if now >= self._due[site]:
                try:
                    self._remove(site, ids, now)
                except Exception as problem:  # a thread that ended would keep old data for ever
                    self._due[site] = now + ERASE_S
                    reason = problem if isinstance(problem, StoreError) else type(problem).__name__
                    log.warning("%s: old data could not be removed: %s", site, reason)

    def _remove(self, site: str, ids: Set[str], now: float) -> None:
        if now - self._steady_since >= TRUST_S or self._sensors_agree(site, ids):
            erased = self._store.erase_older(site, self._days)
            self._due[site] = now + ERASE_S
            self._warned.discard(site)
            if erased.readings:
                log.info("%s: removed %d readings that were too old", site, erased.readings)
        elif now - self._due[site] >= PATIENCE_S and site not in self._warned:
            self._warned.add(site)
            log.warning(DOUBT, site)

    def _sensors_agree(self, site: str, ids: Set[str]) -> bool:
        """Whether half of the sensors agree with the wall clock; a single one may be wrong, or lie.

        Readings from before a jump that matters arrived more than an hour ago by the present clock: they do not count.
        """
        now = self._clock()
        counts = self._store.readings.counts(site, now - NEAR_MS, now + NEAR_MS, received=now - NEAR_MS)
        return 2 * len(ids & counts.keys()) >= len(ids) > 0
