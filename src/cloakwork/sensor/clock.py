"""Time: powered milliseconds, which no one can forge, and Unix milliseconds, which only serve as time stamps."""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_YEAR_2024 = 1704067200000
_EPOCH_2000 = 946684800000


def board_ticks() -> int:
    """Milliseconds since an arbitrary moment; the counter may wrap."""
    if hasattr(time, "ticks_ms"):
        return int(time.ticks_ms())
    if hasattr(time, "CLOCK_MONOTONIC_RAW"):  # no time server can speed it up
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) // 1000000
    return time.monotonic_ns() // 1000000


def _since(before: int, now: int) -> int:
    return time.ticks_diff(now, before) if hasattr(time, "ticks_diff") else now - before


class Clock:
    """Powered time, continued from the last power cut. It can be held back but never advanced.

    Call `now` at least once a day: the counters of small boards wrap after 12 days.
    """

    def __init__(self, start: int, ticks: "Callable[[], int]") -> None:
        self._time = start
        self._read = ticks
        self._before = ticks()

    def now(self) -> int:
        """Powered milliseconds."""
        ticks = self._read()
        self._time += max(0, _since(self._before, ticks))
        self._before = ticks
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
