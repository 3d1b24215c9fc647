"""Live recovery of one site: what is ready, what waits, and how it goes."""

from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cloakwork.collect.backlog import Backlog
from cloakwork.collect.frames import Frames
from cloakwork.collect.place import Watched
from cloakwork.collect.records import Result
from cloakwork.collect.solve import Solver, failed

LARGEST_BATCH = 512
ASKED = 1000  # times that the store is asked for at once
RATED_S = 60
SMOOTHING = 0.3


class Shelf(Protocol):
    """What live recovery needs of a store."""

    def frames(self, site: str, times: Sequence[int]) -> dict[int, dict[str, int]]:
        """The steps of each sensor, for each time."""

    def unsolved(self, site: str, limit: int = 100, newest_first: bool = True) -> list[int]:
        """Times that have readings but no result."""

    def outgrown(self, site: str, limit: int = 100, newest_first: bool = True) -> list[int]:
        """Times whose result is from fewer sensors than have readings by now."""

    def save_results(self, results: Sequence[Result], *, made_from: Mapping[int, Mapping[str, int]]) -> int:
        """Keep results, except where some of what they were made from is gone; says how many were kept."""

    def result(self, site: str, time: int) -> Result | None:
        """The result of one time."""


@dataclass(frozen=True)
class Lag:
    """How live recovery of one site goes.

    Attributes
    ----------
    lag_ms
        Age of the newest frame that was recovered: now minus its time. None before the first.
    delay_ms
        From the time of that frame to its result.
    waiting
        Frames that are ready and wait; `more` if there may be others in the store.
    open
        Frames that wait for the rest of their sensors.
    solved, failed
        Frames since the start; those that failed are among the solved ones.
    per_second
        Frames recovered a second, over the last minute.
    took_ms
        What one frame took lately.
    reason
        Why nothing is recovered at the moment; empty if nothing is wrong.
    """

    lag_ms: int | None
    delay_ms: int | None
    waiting: int
    more: bool
    open: int
    solved: int
    failed: int
    per_second: float
    took_ms: float
    reason: str


class Desk:
    """The work on one site. `now` is in seconds of a clock that never jumps, `wall` in Unix milliseconds.

    `frames` and the counts are used by several threads, which hold a lock meanwhile.
    """

    def __init__(self, watched: Watched, wait: float, backlog: int, clock: Callable[[], int]) -> None:
        self.watched = watched
        self.solver = Solver(watched, clock=clock)
        period = watched.schedule.period_ms
        self.frames = Frames(len(watched.ids), wait, period / 1000, slot_ms=period)
        self.backlog = Backlog(backlog)
        self.newest = 0
        self.look_at = 0.0
        self._clock = clock
        self._wait = wait
        self._asked = min(backlog, ASKED)
        self._look_back_at = 0.0
        self._left: set[int] = set()
        self._more = True
        self._delay: int | None = None
        self._solved = self._failed = 0
        self._took = 0.1  # seconds a frame
        self._done: deque[tuple[int, int]] = deque()

    def take(self, now: float, budget: float) -> list[int]:
        """The times to recover next: the newest alone, or as many others as can be done in `budget` seconds."""
        self.backlog.add((frame.time, frame.most) for frame in self.frames.take(now))
        return self.backlog.take(self.newest, max(1, min(LARGEST_BATCH, int(budget / self._took))))

    def count(self, results: Sequence[Result], seconds: float, now: float, dropped: Container[int] = ()) -> None:
        """Note what was recovered, and that it took so long; results of the times in `dropped` were not kept."""
        self._took += SMOOTHING * (seconds / len(results) - self._took)
        self._left -= {result.time for result in results}
        kept = [result for result in results if result.time not in dropped]
        good = [result for result in kept if not failed(result)]
        self._solved += len(kept)
        self._failed += len(kept) - len(good)
        if self._done and self._done[-1][0] == int(now):
            self._done[-1] = (int(now), self._done[-1][1] + len(kept))
        else:
            self._done.append((int(now), len(kept)))
        while self._done[0][0] <= now - RATED_S:
            self._done.popleft()
        if good and (good[-1].time >= self.newest or self._ahead(self.newest)):
            self.newest, self._delay = good[-1].time, good[-1].solved - good[-1].time

    def _ahead(self, when: int) -> bool:
        """Whether a time is from when the clock was ahead."""
        return when > self._clock() + self.watched.ahead_ms

    def lag(self, now: float, wall: int, reason: str) -> Lag:
        """How it goes."""
        return Lag(
            lag_ms=None if self._delay is None else wall - self.newest,
            delay_ms=self._delay,
            waiting=len(self.backlog),
            more=self._more or self.backlog.overflowed,
            open=len(self.frames),
            solved=self._solved,
            failed=self._failed,
            per_second=sum(number for when, number in self._done if when > now - RATED_S) / RATED_S,
            took_ms=1000 * self._took,
            reason=reason,
        )

    def look(self, store: Shelf, now: float, wall: int, every: float) -> None:
        """Ask the store for frames that were left: before a restart, by another collector, or for lack of room.

        Frames that late readings were added to are asked for every so many seconds only, because others may follow;
        sooner when there were more of them than could be asked for.
        """
        back = now >= self._look_back_at
        settled = wall - self.watched.schedule.offset_ms - round(2000 * self._wait)
        found = self._missed(store, back, newest_first=True)
        ripe = {when for when in found if when <= settled}
        if found and not ripe:  # times that lie ahead may fill the whole list from the newest on
            ripe = {when for when in self._missed(store, back, newest_first=False) if when <= settled}
        if back:
            self._look_back_at = now if len(found) >= self._asked else now + every
        chosen = self._first(ripe)
        # what was given up is listed for ever; what was let go for newer ones has not been tried
        self._more = bool(chosen) and (chosen != self._left or self.backlog.overflowed)
        self._left = chosen
        self.backlog.overflowed = False
        if self._more:
            self.backlog.add((when, self._usual(when)) for when in chosen)
            self.look_at = now
        elif any(settled < when <= wall for when in found):  # so young that another collector may be at work on it
            self.look_at = now + min(every, 2 * self._wait)
        else:
            self.look_at = now + every

    def _first(self, times: set[int]) -> set[int]:
        """As many as there is room for, in the order in which they are recovered."""
        return set(sorted(times, key=lambda when: (self._usual(when), when), reverse=True)[: self._asked])

    def _usual(self, when: int) -> bool:
        return when % self.watched.schedule.period_ms == 0

    def _missed(self, store: Shelf, back: bool, *, newest_first: bool) -> list[int]:
        """Times that the store lists, and that are not under way here."""
        name, limit = self.watched.name, self._asked
        found = store.unsolved(name, limit, newest_first=newest_first)
        if back:
            found += store.outgrown(name, limit, newest_first=newest_first)
        return [when for when in found if when > 0 and not self.frames.waits(when)]
