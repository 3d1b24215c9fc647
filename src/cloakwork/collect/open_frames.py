"""Frames that wait for their sensors, and when they are ready for recovery: complete, or due.

Devices stamp a reading with the start of its slot, a multiple of the period, so the readings of one frame have equal
times even if the clocks differ by up to half a period. Only who has reported is kept here; the readings are in the
store.
"""

import heapq
import math
from dataclasses import dataclass

from cachetools import FIFOCache

MAX_OPENED = 64  # open frames per sensor that opened them
REMEMBERED = 1024  # closed frames


def enough_agree(sensors: int, of: int) -> bool:
    """Whether so many sensors share a time off the slots that it counts: half, and never one alone among others."""
    return sensors >= min(of, max(2, -(-of // 2)))


@dataclass(slots=True)
class _OpenFrame:
    """The sensors that opened it and that have reported (one bit each), and the time it is due."""

    opener: int
    reported: int
    due: float


class OpenFrames:
    """The open frames of one site; not thread-safe.

    A frame of `sensors` readings is complete, and waits `wait` seconds after its first one for the rest. `period` is in
    seconds; regular times are multiples of `slot_ms`.

    A frame that lies ahead of the collector's clock waits until its time: the sensor that opened it has a wrong clock.
    Once half of the sensors agree, the collector's clock is wrong, and the frame no longer waits for it. A frame off
    the slots becomes ready only if half of the sensors share it. One sensor can open only a few frames, so it cannot
    crowd out the others. The store lists every frame that is not tracked here. When the collector's clock is corrected,
    frames that only seemed to lie ahead stop waiting.
    """

    def __init__(self, sensors: int, wait: float, period: float, *, slot_ms: int = 1) -> None:
        self._slot_ms = slot_ms
        self._all = (1 << sensors) - 1
        self._sensors = sensors
        self._wait = wait
        self._most_opened = max(MAX_OPENED, math.ceil(2 * wait / period))
        self._open: dict[int, _OpenFrame] = {}
        self._opened = [0] * sensors
        self._offset = 0.0
        self._due: list[tuple[float, int]] = []
        self._complete: list[int] = []
        self._closed: FIFOCache[int, int] = FIFOCache(REMEMBERED)

    def __len__(self) -> int:
        return len(self._open)

    def waits(self, time: int) -> bool:
        """Whether the frame of this time waits for more sensors."""
        return time in self._open

    def add(self, time: int, sensor: int, now: float, ahead: float = 0.0) -> None:
        """Add a reading. `now` is in seconds of a monotonic clock; the frame lies `ahead` seconds in the future."""
        if time <= 0:
            return
        self._follow_clock(time / 1000 - ahead - now, now)
        bit = 1 << sensor
        if time in self._closed:
            self._add_late(time, bit)
            return
        frame = self._open.get(time)
        if frame is None:
            if self._opened[sensor] >= self._most_opened:
                return
            self._opened[sensor] += 1
            frame = self._open[time] = _OpenFrame(sensor, 0, now + self._wait + max(0.0, ahead))
            heapq.heappush(self._due, (frame.due, time))
        frame.reported |= bit
        if frame.reported == self._all:
            self._close(time, frame)
            self._complete.append(time)
        elif enough_agree(frame.reported.bit_count(), self._sensors) and frame.due > now + self._wait:
            frame.due = now + self._wait
            heapq.heappush(self._due, (frame.due, time))

    def take(self, now: float) -> dict[int, bool]:
        """Remove the frames that are ready; returns their times, and whether half of the sensors have reported each."""
        ready = dict.fromkeys(self._complete, True)
        self._complete = []
        while (due := self._first_due()) is not None and due <= now:
            time = heapq.heappop(self._due)[1]
            frame = self._open[time]
            self._close(time, frame)
            reported = frame.reported.bit_count()
            if time % self._slot_ms == 0 or enough_agree(reported, self._sensors):
                ready[time] = 2 * reported >= self._sensors
        return ready

    def first_shared(self) -> int | None:
        """The earliest open frame that half of the sensors have reported; None if there is none."""
        shared = (time for time, frame in self._open.items() if enough_agree(frame.reported.bit_count(), self._sensors))
        return min(shared, default=None)

    def next_due(self) -> float | None:
        """The time of the next call of `take` if no reading arrives; zero if a frame is ready, None if none is open."""
        return 0.0 if self._complete else self._first_due()

    def _first_due(self) -> float | None:
        """The earliest due time of an open frame; drops entries that no longer apply."""
        while self._due:
            due, time = self._due[0]
            if time in self._open and self._open[time].due == due:
                return due
            heapq.heappop(self._due)
        return None

    def _follow_clock(self, offset: float, now: float) -> None:
        """After the collector's clock was set, no frame waits longer than if it arrived now.

        `offset` is how many seconds that clock is ahead of the monotonic one.
        """
        if abs(offset - self._offset) <= self._wait:
            return
        self._offset = offset
        for time, frame in self._open.items():
            frame.due = min(frame.due, max(now, time / 1000 - offset) + self._wait)
        self._due = [(frame.due, time) for time, frame in self._open.items()]
        heapq.heapify(self._due)

    def _add_late(self, time: int, bit: int) -> None:
        """Add a reading of a closed frame: once all sensors have reported, it is ready once more."""
        before = self._closed[time]
        self._closed[time] = before | bit
        if self._closed[time] == self._all != before:
            self._complete.append(time)

    def _close(self, time: int, frame: _OpenFrame) -> None:
        del self._open[time]
        self._opened[frame.opener] -= 1
        self._closed[time] = frame.reported
