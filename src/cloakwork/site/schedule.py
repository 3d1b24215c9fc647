"""The times at which the devices of a site read, and the most frames in any stretch of time.

Powered time is cut into slots of one period. A device takes at most one reading in a slot, at most `late_ms` after the
slot begins, and sends it when `offset_ms` of the slot have passed, whatever the reading is.

In the network scope slots are multiples of the period in Unix time, and a clock is wrong by at most `clock_ms` either
way. So all sensors measure the frame of slot s between s period - clock and s period + late + clock. Take an interval
of length W that holds any part of the frames of slots s and t > s, maybe of different sensors. The first ends less than
W before the last begins, so (t - s) period < W + late + 2 clock, and all its frames are of
ceil((W + late + 2 clock) / period) consecutive slots. If that is at most `window_slots`, and at most `allowed` of any
`window_slots` consecutive slots are used, it holds at most `allowed` frames.

In the sensor scope a device counts slots by its own clock, and the interval matters for one device only. W + late would
do; the same rule serves both.
"""

import math
from dataclasses import dataclass, fields

from cloakwork.errors import SiteError

SHORTEST_MS = 10
CLOCK_RATE = 2e-4  # how much too fast a device's clock may run: its oscillator, and what it adds so as not to be slow
LATEST_MS = 200  # how late a reading may be taken unless the site file allows more: sensors measure together
USUAL_CLOCK_MS = 50  # how wrong a device's clock may be unless the site file says otherwise
USUAL_OFFSET_MS = 1000
RESERVED_MS = 10_000  # how often a device writes its state, at most
LARGEST_BLOCK = 64
LARGEST = 2**53 - 1  # exact on every device and in every JSON reader


@dataclass(frozen=True)
class Schedule:
    """The times at which a device reads, in milliseconds of powered time."""

    period_ms: int  # length of a slot
    offset_ms: int  # when in its slot a reading is sent
    window_slots: int
    allowed: int  # of so many consecutive slots
    block: int  # slots that are reserved at once on durable storage; a crash costs at most this many
    late_ms: int  # how late in its slot a reading may be taken
    clock_ms: int  # how far, either way, a device's clock may be from the true time while it measures

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST:
                raise SiteError(f"{name}={value!r}: give a whole number from 1 to {LARGEST}.", **{name: value})
        if not self.late_ms < self.offset_ms < self.period_ms:
            raise SiteError(
                f"late_ms={self.late_ms}, offset_ms={self.offset_ms}, period_ms={self.period_ms}: a reading is taken, "
                "then sent, then the next slot begins. Give late_ms < offset_ms < period_ms.",
                late_ms=self.late_ms,
                offset_ms=self.offset_ms,
                period_ms=self.period_ms,
            )

    @property
    def pauses(self) -> bool:
        """Whether using every slot spends the budget, so that a device falls silent for a while."""
        return self.allowed < self.window_slots

    @property
    def spread(self) -> float:
        """Seconds within which all sensors of a frame measure."""
        return (self.late_ms + 2 * self.clock_ms) / 1000

    def slots_in(self, milliseconds: int) -> int:
        """Return how many consecutive slots can have readings of any sensor within an interval of this length."""
        return -(-(milliseconds + self.late_ms + 2 * self.clock_ms) // self.period_ms)

    def most(self, milliseconds: int) -> int:
        """Return the most frames of which any interval of this length can hold a reading.

        Each full stretch of `window_slots` slots holds at most `allowed`, and so does the rest. Devices that use the
        first `allowed` of every `window_slots` slots reach this.
        """
        full, rest = divmod(self.slots_in(milliseconds), self.window_slots)
        return full * min(self.allowed, self.window_slots) + min(self.allowed, rest)

    def covers(self, window: float) -> bool:
        """Whether no interval of `window` seconds ever holds readings of more than `allowed` frames."""
        return self.most(clock_ms(window)) <= self.allowed


def clock_ms(seconds: float) -> int:
    """Return the most milliseconds that a device's clock counts in so many seconds."""
    return math.ceil(1000 * seconds * (1 + CLOCK_RATE)) + 1  # what it adds comes in whole milliseconds


def make_schedule(
    *, window: float, allowed: int, period: float | None = None, late: float | None = None, clock: float | None = None
) -> Schedule:
    """Make a schedule of at most `allowed` frames in any `window` seconds, one every `period` seconds.

    Without a period, frames are spread evenly: the slots are a little longer than window / allowed, so that two
    readings `allowed` slots apart are a whole window apart even if the first was late, by a slow clock, and the second
    is of another sensor with a fast clock. A reading is at most `late` seconds late, by default a tenth of a period and
    at most 0.2; a clock is wrong by at most `clock` seconds, by default 0.05.

    >>> make_schedule(window=3600.0, allowed=60)
    Schedule(period_ms=60018, offset_ms=1000, window_slots=60, allowed=60, block=1, late_ms=200, clock_ms=50)
    """
    whole = clock_ms(window)
    wrong_ms = USUAL_CLOCK_MS if clock is None else math.ceil(1000 * clock - 1e-6)
    if period is None:
        late_ms = _late(whole // allowed, late)
        period_ms = max(SHORTEST_MS, -(-(whole + late_ms + 2 * wrong_ms) // allowed))
        slots = allowed
    else:
        period_ms = max(SHORTEST_MS, round(1000 * period))
        late_ms = _late(period_ms, late)
        slots = -(-(whole + late_ms + 2 * wrong_ms) // period_ms)
    return Schedule(
        period_ms=period_ms,
        offset_ms=min(period_ms // 2, max(2 * late_ms, USUAL_OFFSET_MS)),
        window_slots=slots,
        allowed=allowed,
        block=max(1, min(-(-RESERVED_MS // period_ms), LARGEST_BLOCK, allowed // 4)),
        late_ms=late_ms,
        clock_ms=wrong_ms,
    )


def _late(period_ms: int, late: float | None) -> int:
    """Milliseconds by which a reading may be late."""
    if late is None:
        return max(1, min(period_ms // 10, LATEST_MS))
    late_ms = math.ceil(1000 * late - 1e-6)
    if not 1 <= late_ms <= period_ms // 4:
        raise SiteError(
            f"late={late:g} seconds with {period_ms / 1000:g} seconds between readings: give at most a quarter of "
            "that, and at least a millisecond.",
            late=late,
            key="late",
        )
    return late_ms
