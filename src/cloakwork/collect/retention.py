"""Removing what is too old; but never because this machine's clock jumped ahead."""

import logging
import time
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from threading import Event, Thread
from typing import Protocol

from cloakwork.collect.records import Erased
from cloakwork.collect.store import StoreError

TIDY_S = 3600.0
LOOK_S = 60.0
STEP_S = 300.0  # by which the wall clock may drift from one look to the next
NEAR_MS = 3_600_000
TRUST_S = 86_400.0
PATIENCE_S = 3600.0  # for which there may be doubt before it is worth a warning: devices may have to start, too
DOUBT = (
    "%s: nothing is removed for its age yet: less than half of the sensors have sent a reading of this hour, so the "
    "clock of this machine may be wrong. Check it; it is believed when it has gone for a day without a jump"
)
ENDING = 15.0
log = logging.getLogger(__name__)


class Aged(Protocol):
    """What retention needs of a store."""

    def keep(self, site: str, days: float) -> Erased:
        """Remove what is older."""

    def counted(self, site: str, since: int, until: int, *, received: int) -> dict[str, int]:
        """How many readings of a period there are of each sensor, of those that came at or after `received`."""


class Retention(Thread):
    """Removes, once an hour, what is older than so many days.

    What was removed cannot be had again, so a wall clock that may be wrong removes nothing. At a site it is believed
    when half of its sensors agree with it (a reading has come within the last hour, by this clock, whose time by the
    device's clock is within an hour of it), or when it has gone for a day without a jump: so what is too old also goes
    where no device sends any more.

    `sites` gives the sensors of each site. `clock` is Unix milliseconds, `steady` seconds of a clock that never jumps.
    """

    def __init__(
        self,
        store: Aged,
        sites: Mapping[str, Set[str]],
        days: float,
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(daemon=True, name="cloakwork retention")
        self._store, self._sites, self._days = store, sites, days
        self._clock, self._steady = clock, steady
        self._stopping = Event()
        self._seen = self._offset()
        self._since = steady()
        self._due = dict.fromkeys(sites, self._since)
        self._doubted: dict[str, float] = {}
        self._warned: set[str] = set()

    def run(self) -> None:
        while True:
            self.look()
            if self._stopping.wait(LOOK_S):
                return

    def stop(self) -> None:
        """Say that it is enough, and wait for the erasure under way."""
        self._stopping.set()
        with suppress(RuntimeError):  # it was not started
            self.join(ENDING)

    def look(self) -> None:
        """Remove what is too old, if it is time for that and the clock can be believed."""
        self._notice_step()
        now = self._steady()
        for site, sensors in self._sites.items():
            if now < self._due[site]:
                continue
            if now - self._since >= TRUST_S or self._agree(site, sensors):
                self._due[site] = now + TIDY_S
                self._doubted.pop(site, None)
                self._warned.discard(site)
                self._tidy(site)
            else:
                self._doubt(site, now)

    def _doubt(self, site: str, now: float) -> None:
        """Say so once for operators who follow the log, and once more, aloud, if it lasts."""
        if site not in self._doubted:
            self._doubted[site] = now
            log.info(DOUBT, site)
        elif now - self._doubted[site] >= PATIENCE_S and site not in self._warned:
            self._warned.add(site)
            log.warning(DOUBT, site)

    def _offset(self) -> float:
        """By how many seconds the wall clock is ahead of the steady one."""
        return self._clock() / 1000 - self._steady()

    def _notice_step(self) -> None:
        before, self._seen = self._seen, self._offset()
        jump = self._seen - before
        if abs(jump) > STEP_S:
            self._since = self._steady()
            log.warning("the clock of this machine jumped by %+.0f s", jump)

    def _agree(self, site: str, sensors: Set[str]) -> bool:
        """Whether half of the sensors agree with the wall clock; one of them alone may be wrong, or lie.

        What came before a jump that matters came more than an hour ago by the clock as it is now: it does not count.
        """
        now = self._clock()
        try:
            heard = self._store.counted(site, now - NEAR_MS, now + NEAR_MS, received=now - NEAR_MS)
        except StoreError:
            return False
        return 2 * len(sensors & heard.keys()) >= len(sensors) > 0

    def _tidy(self, site: str) -> None:
        try:
            erased = self._store.keep(site, self._days)
        except StoreError as problem:
            log.warning("%s: what is too old could not be removed: %s", site, problem)
        else:
            if erased.readings:
                log.info("%s: removed %d readings that were too old", site, erased.readings)
