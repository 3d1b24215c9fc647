"""Removing what is too old; but never because this machine's clock jumped ahead."""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Protocol

from cloakwork.collect.records import Erased, FrameTime
from cloakwork.collect.store import StoreError

TIDY_S = 3600.0
LOOK_S = 60.0
STEP_S = 300.0  # by which the wall clock may drift from one look to the next
NEAR_MS = 3_600_000
TRUST_S = 86_400.0
ENDING = 15.0
log = logging.getLogger(__name__)


class Aged(Protocol):
    """What retention needs of a store."""

    def keep(self, site: str, days: float) -> Erased:
        """Remove what is older."""

    def frame_times(
        self, site: str, since: int | None = None, until: int | None = None, limit: int = 100
    ) -> list[FrameTime]:
        """Times that have readings."""


class Retention(Thread):
    """Removes, once an hour, what is older than so many days.

    What was removed cannot be had again, so a wall clock that may be wrong removes nothing. It is believed when devices
    agree with it (there is a reading whose time, by the device's clock, is within an hour of it), or when it has gone
    for a day without a jump: so what is too old also goes where no device sends any more.

    `clock` is Unix milliseconds, `steady` seconds of a clock that never jumps.
    """

    def __init__(
        self,
        store: Aged,
        sites: Sequence[str],
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
        self._since = self._due = steady()
        self._doubted = False

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
        if now < self._due:
            return
        if now - self._since >= TRUST_S or self._devices_agree():
            self._due, self._doubted = now + TIDY_S, False
            for site in self._sites:
                self._tidy(site)
        elif not self._doubted:
            self._doubted = True
            log.warning(
                "nothing is removed for its age yet: no device has sent a reading of this hour, so the clock of this "
                "machine may be wrong. Check it; it is believed when it has gone for a day without a jump"
            )

    def _offset(self) -> float:
        """By how many seconds the wall clock is ahead of the steady one."""
        return self._clock() / 1000 - self._steady()

    def _notice_step(self) -> None:
        before, self._seen = self._seen, self._offset()
        jump = self._seen - before
        if abs(jump) > STEP_S:
            self._since = self._steady()
            log.warning("the clock of this machine jumped by %+.0f s", jump)

    def _devices_agree(self) -> bool:
        now = self._clock()
        try:
            return any(self._store.frame_times(site, now - NEAR_MS, now + NEAR_MS, 1) for site in self._sites)
        except StoreError:
            return False

    def _tidy(self, site: str) -> None:
        try:
            erased = self._store.keep(site, self._days)
        except StoreError as problem:
            log.warning("%s: what is too old could not be removed: %s", site, problem)
        else:
            if erased.readings:
                log.info("%s: removed %d readings that were too old", site, erased.readings)
