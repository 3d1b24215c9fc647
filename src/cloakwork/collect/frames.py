"""Which moments are ready to be recovered: those that all sensors have reported, or that have waited long enough.

Devices stamp a reading with the beginning of its slot, a multiple of the period, so the readings of one moment have
equal times, however much the clocks differ (up to half a period). Nothing is kept here but who has reported: the
readings themselves are in the store.
"""

import heapq
import math
from dataclasses import dataclass

MOST_OPENED = 64  # moments that one sensor may have opened and that wait for others
REMEMBERED = 1024  # moments that were ready


def agreed(sensors: int, of: int) -> bool:
    """Whether so many share an odd time that it counts: half of them, and never one alone where there are others."""
    return sensors >= min(of, max(2, -(-of // 2)))


@dataclass(frozen=True)
class Ready:
    """A moment to recover; `most` if at least half of the sensors have reported it."""

    time: int
    most: bool


@dataclass(slots=True)
class _Waiting:
    """A moment that waits: who opened it, who has reported (one bit each), and until when it waits at most."""

    opener: int
    reported: int
    due: float


class Frames:
    """The open moments of one site; for one thread at a time.

    Parameters
    ----------
    sensors
        How many make a moment complete.
    wait
        Seconds after its first reading that a moment waits for the rest.
    period
        Seconds from one moment to the next.
    slot_ms
        Usual times are multiples of it.

    Notes
    -----
    A moment that lies ahead, by the collector's clock, waits until it has come: whoever reports it has a wrong clock.
    That ends when half of the sensors have, for then it is the collector's clock that is wrong. A moment off the slots
    becomes ready only if half of them share it. One sensor can open a few moments only, so that it cannot push out
    those of the others. What is not kept track of here is found in the store again.

    When the collector's clock is set right, a moment that lay ahead only while it was wrong waits no longer for it.
    """

    def __init__(self, sensors: int, wait: float, period: float, *, slot_ms: int = 1) -> None:
        self._slot_ms = slot_ms
        self._all = (1 << sensors) - 1
        self._sensors = sensors
        self._wait = wait
        self._most_opened = max(MOST_OPENED, math.ceil(2 * wait / period))
        self._waiting: dict[int, _Waiting] = {}
        self._opened = [0] * sensors
        self._offset = 0.0
        self._due: list[tuple[float, int]] = []
        self._complete: list[int] = []
        self._taken: dict[int, int] = {}

    def __len__(self) -> int:
        """Moments that wait."""
        return len(self._waiting)

    def waits(self, time: int) -> bool:
        """Whether a moment waits for more sensors."""
        return time in self._waiting

    def add(self, time: int, sensor: int, now: float, ahead: float = 0.0) -> None:
        """Note a reading. `now` is in seconds of a clock that never jumps, `ahead` how far ahead the moment lies."""
        if time <= 0:
            return
        self._follow(time / 1000 - ahead - now, now)
        bit = 1 << sensor
        if time in self._taken:
            self._late(time, bit)
            return
        frame = self._waiting.get(time)
        if frame is None:
            if self._opened[sensor] >= self._most_opened:
                return
            self._opened[sensor] += 1
            frame = self._waiting[time] = _Waiting(sensor, 0, now + self._wait + max(0.0, ahead))
            heapq.heappush(self._due, (frame.due, time))
        frame.reported |= bit
        if frame.reported == self._all:
            self._close(time, frame)
            self._complete.append(time)
        elif agreed(frame.reported.bit_count(), self._sensors) and frame.due > now + self._wait:
            frame.due = now + self._wait
            heapq.heappush(self._due, (frame.due, time))

    def take(self, now: float) -> list[Ready]:
        """The moments that have become ready."""
        ready = [Ready(time, most=True) for time in self._complete]
        self._complete = []
        while (due := self._first_due()) is not None and due <= now:
            time = heapq.heappop(self._due)[1]
            frame = self._waiting[time]
            self._close(time, frame)
            if time % self._slot_ms == 0 or agreed(frame.reported.bit_count(), self._sensors):
                ready.append(Ready(time, most=self._by_most(frame.reported)))
        return ready

    def next_due(self) -> float | None:
        """When to look again, if no reading comes; zero if a moment is ready already, None if none waits."""
        return 0.0 if self._complete else self._first_due()

    def _first_due(self) -> float | None:
        """When the first of those that still wait has waited long enough; entries that no longer hold are dropped."""
        while self._due:
            due, time = self._due[0]
            if time in self._waiting and self._waiting[time].due == due:
                return due
            heapq.heappop(self._due)
        return None

    def _follow(self, offset: float, now: float) -> None:
        """Once the collector's clock was set, no moment waits longer than it would have to if it came now.

        `offset` is how many seconds that clock is ahead of the one that never jumps.
        """
        if abs(offset - self._offset) <= self._wait:
            return
        self._offset = offset
        for time, frame in self._waiting.items():
            frame.due = min(frame.due, max(now, time / 1000 - offset) + self._wait)
        self._due = [(frame.due, time) for time, frame in self._waiting.items()]
        heapq.heapify(self._due)

    def _late(self, time: int, bit: int) -> None:
        """A reading of a moment that was recovered without it: once all have reported it is ready once more."""
        before = self._taken[time]
        self._taken[time] |= bit
        if self._taken[time] == self._all != before:
            self._complete.append(time)

    def _close(self, time: int, frame: _Waiting) -> None:
        del self._waiting[time]
        self._opened[frame.opener] -= 1
        self._taken[time] = frame.reported
        if len(self._taken) > REMEMBERED:
            self._taken.pop(next(iter(self._taken)))

    def _by_most(self, reported: int) -> bool:
        return 2 * reported.bit_count() >= self._sensors
