"""Time: powered milliseconds, which no one can forge, and Unix milliseconds, which only serve as time stamps."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

DRIFT = 10000  # an oscillator gains or loses less than one part in so many: 100 parts per million
GAIN = 10100  # a device's own clock counts one more in so many: with the drift, it stays within what plans allow
_YEAR_2024 = 1704067200000
_EPOCH_2000 = 946684800000


def board_ticks() -> int:
    """Milliseconds since an arbitrary moment; the counter may wrap."""
    if hasattr(time, "ticks_ms"):
        return int(time.ticks_ms())
    if hasattr(time, "CLOCK_MONOTONIC_RAW"):  # no time server can speed it up
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) // 1000000
    return time.monotonic_ns() // 1000000


def suspended_ms() -> int:
    """Milliseconds for which this computer was suspended, while `board_ticks` stood still."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) // 1000000
    return 0


def _since(before: int, now: int) -> int:
    return time.ticks_diff(now, before) if hasattr(time, "ticks_diff") else now - before


class Clock:
    """Powered time, continued from the last power cut. It can be held back but never advanced.

    Call `now` at least once a day: the counters of small boards wrap after 12 days. With `gain` the clock counts one
    millisecond more in so many, so that it is never slow, whatever the oscillator: a slow clock would miss slots.
    """

    def __init__(self, start: int, ticks: "Callable[[], int]", gain: int = 1 << 62) -> None:
        self._time = start
        self._read = ticks
        self._before = ticks()
        self._gain = gain
        self._counted = 0

    def now(self) -> int:
        """Powered milliseconds."""
        ticks = self._read()
        elapsed = max(0, _since(self._before, ticks))
        self._before = ticks
        self._counted += elapsed
        self._time += elapsed + self._counted // self._gain
        self._counted %= self._gain
        return self._time

    def hold(self, amount: int) -> None:
        """Leave the next `amount` milliseconds uncounted."""
        self._time -= max(0, amount)


def unix_ms() -> int:
    """Unix milliseconds by the board's clock, or 0 if the clock has not been set."""
    now = time.time_ns() // 1000000
    if time.gmtime(0)[0] == 2000:
        now += _EPOCH_2000
    return now if now > _YEAR_2024 else 0


def set_calendar(unix: int) -> None:
    """Set a board's calendar to Unix milliseconds: without it no certificate is valid. Computers keep their own."""
    try:
        machine = __import__("machine")  # a module that only boards have
    except ImportError:
        return
    seconds = unix // 1000 - (_EPOCH_2000 // 1000 if time.gmtime(0)[0] == 2000 else 0)
    year, month, day, hour, minute, second, weekday = time.gmtime(seconds)[:7]
    machine.RTC().datetime((year, month, day, weekday + 1, hour, minute, second, 0))
