"""Live recovery of one site: frames that are ready, frames that wait, and progress."""

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.open_frames import OpenFrames
from cloakwork.collect.presence_solver import PresenceSolver
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Result, Store

LARGEST_BATCH = 512
LARGEST_QUERY = 1000  # times per query to the store
RATE_WINDOW_S = 60
SMOOTHING = 0.3


@dataclass(frozen=True)
class RecoveryState:
    """Progress of recovery: `lag_ms` is the age of the newest recovered frame, `delay_ms` how long that one took.

    Both are null before the first. `waiting` frames are ready and wait (`more` if the store may have others), `open`
    ones wait for sensors; `solved`, which includes `failed`, counts since the start, `per_second` is of the last
    minute, `took_ms` the recent time of a frame. `reason` says why recovery is stopped; while the collector is
    `preparing`, it compiles the solver of the site.
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
    preparing: bool = False


class Backlog:
    """Times to recover. It holds at most `most`: those that most sensors reported, and the newest of them.

    It keeps only times: the readings are in the store, which also lists every frame without a result. `overflowed`
    says that some times were dropped.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.overflowed = False
        self._times: dict[int, bool] = {}

    def __len__(self) -> int:
        return len(self._times)

    def add(self, times: Mapping[int, bool]) -> None:
        """Add times, each with whether most sensors reported it."""
        self._times |= times
        surplus = len(self._times) - self.most
        if surplus > 0:
            self.overflowed = True
            for time in self._ordered()[-surplus:]:
                del self._times[time]

    def take(self, newest: int, size: int) -> list[int]:
        """Remove and return the next times: the first alone if later than `newest`, else up to `size`, sorted."""
        order = self._ordered()
        taken = order[:1] if order and order[0] > newest else order[:size]
        for time in taken:
            del self._times[time]
        return sorted(taken)

    def take_oldest(self, size: int, before: int | None) -> list[int]:
        """Remove and return the earliest times, up to `size`, sorted; only those `before` a time if one is given."""
        taken = sorted(time for time in self._times if before is None or time < before)[:size]
        for time in taken:
            del self._times[time]
        return taken

    def _ordered(self) -> list[int]:
        return sorted(self._times, key=lambda time: (self._times[time], time), reverse=True)


class SiteQueue:
    """The frames of one site on their way to results.

    `now` is in seconds of a monotonic clock, `wall` in Unix milliseconds. Several threads use `frames` and the counts;
    they must hold a common lock.
    """

    def __init__(
        self,
        site: CollectedSite | CollectedBits,
        wait: float,
        backlog: int,
        clock: Callable[[], int],
        store: Store | None = None,
    ) -> None:
        self.site = site
        self.solver: Solver | PresenceSolver
        if isinstance(site, CollectedBits):
            assert store is not None  # noqa: S101 - presence is computed from stored reports
            self.solver = PresenceSolver(site, store, clock=clock)
        else:
            self.solver = Solver(site, store, clock=clock)
        period = site.schedule.period_ms
        self.frames = OpenFrames(len(site.ids), wait, period / 1000, slot_ms=period)
        self.backlog = Backlog(backlog)
        self.newest = 0
        self.check_at = 0.0
        self.prepared = False
        self._clock = clock
        self._wait = wait
        self._limit = min(backlog, LARGEST_QUERY)
        self._check_late_at = 0.0
        self._last_missed: set[int] = set()
        self._more = True
        self._delay: int | None = None
        self._solved = self._failed = 0
        self._took = 0.1  # seconds per frame
        self._done: deque[tuple[int, int]] = deque()  # (second, frames)

    def take(self, now: float, budget: float) -> list[int]:
        """Return the times to recover next, as many as fit into `budget` seconds.

        Where sources are followed, these are the earliest, and they wait for earlier frames that most sensors have
        reported. Elsewhere it is the newest alone, or others if it is done.
        """
        self.backlog.add(self.frames.take(now))
        size = max(1, min(LARGEST_BATCH, int(budget / self._took)))
        if self.site.follows:
            return self.backlog.take_oldest(size, self.frames.first_shared())
        return self.backlog.take(self.newest, size)

    def count(self, results: Sequence[Result], seconds: float, now: float, dropped: Container[int] = ()) -> None:
        """Record results and the time they took; the store did not keep those of the times in `dropped`."""
        self._took += SMOOTHING * (seconds / len(results) - self._took)
        self._last_missed -= {result.time for result in results}
        kept = [result for result in results if result.time not in dropped]
        good = [result for result in kept if not result.failed]
        self._solved += len(kept)
        self._failed += len(kept) - len(good)
        if self._done and self._done[-1][0] == int(now):
            self._done[-1] = (int(now), self._done[-1][1] + len(kept))
        else:
            self._done.append((int(now), len(kept)))
        while self._done[0][0] <= now - RATE_WINDOW_S:
            self._done.popleft()
        newest_was_ahead = self.newest > self._clock() + self.site.ahead_ms
        if good and (good[-1].time >= self.newest or newest_was_ahead):
            self.newest, self._delay = good[-1].time, good[-1].solved - good[-1].time

    def retry(self, times: Iterable[int], at: float) -> None:
        """Look for these frames in the store again, at a later time: an error kept them from being recovered."""
        self._last_missed -= set(times)
        self.check_at = at

    def state(self, now: float, wall: int, reason: str) -> RecoveryState:
        return RecoveryState(
            lag_ms=None if self._delay is None else wall - self.newest,
            delay_ms=self._delay,
            waiting=len(self.backlog),
            more=self._more or self.backlog.overflowed,
            open=len(self.frames),
            solved=self._solved,
            failed=self._failed,
            per_second=sum(number for when, number in self._done if when > now - RATE_WINDOW_S) / RATE_WINDOW_S,
            took_ms=1000 * self._took,
            reason=reason,
            preparing=not self.prepared,
        )

    def find_missed(self, store: Store, now: float, wall: int, every: float) -> None:
        """Queue frames that the store lists: from before a restart, from another collector, or dropped for space.

        Frames with late readings are queried only every `every` seconds, because more may follow; sooner if there were
        more of them than one query returns.
        """
        with_late = now >= self._check_late_at
        settled = wall - self.site.schedule.offset_ms - round(2000 * self._wait)
        missed = self._missed(store, with_late, newest_first=True)
        ripe = {when for when in missed if when <= settled}
        if missed and not ripe:  # times that lie ahead may fill the whole list from the newest on
            ripe = {when for when in self._missed(store, with_late, newest_first=False) if when <= settled}
        if with_late:
            self._check_late_at = now if len(missed) >= self._limit else now + every
        first = sorted(ripe, key=lambda when: (self._on_slot(when), when), reverse=True)  # the order of recovery
        chosen = set(first[: self._limit])
        # the store lists failed frames forever; frames dropped for newer ones have not been tried
        self._more = bool(chosen) and (chosen != self._last_missed or self.backlog.overflowed)
        self._last_missed = chosen
        self.backlog.overflowed = False
        if self._more:
            self.backlog.add({when: self._on_slot(when) for when in chosen})
            self.check_at = now
        elif any(settled < when <= wall for when in missed):  # so recent that another collector may be solving it
            self.check_at = now + min(every, 2 * self._wait)
        else:
            self.check_at = now + every

    def _on_slot(self, when: int) -> bool:
        return when % self.site.schedule.period_ms == 0

    def _missed(self, store: Store, with_late: bool, *, newest_first: bool) -> list[int]:
        """Times that the store lists and that are not open here."""
        name, limit = self.site.name, self._limit
        times = store.frames.unsolved(name, limit, newest_first=newest_first)
        if with_late:
            times += store.frames.outgrown(name, limit, newest_first=newest_first)
        return [when for when in times if when > 0 and not self.frames.waits(when)]
