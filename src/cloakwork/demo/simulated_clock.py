"""The time in the simulated flat, which runs faster than real time."""

import time
from threading import Event

MOST_BEHIND_S = 1.0


class SimulatedClock:
    """Unix milliseconds in the flat: up to `speed` times faster than real time, and only as far as it is advanced.

    Sensors measure together within a fraction of a second of this time, which is a few milliseconds of real time. No
    busy machine keeps to that. So time stands still while the devices work, and `advance` moves it on when all of them
    have done what is due. On a slow machine the time runs slower; nothing becomes late.
    """

    def __init__(self, began: int, *, speed: float = 1.0) -> None:
        self.began = began
        self.speed = speed
        self._now = began
        self._due = time.monotonic()

    def __call__(self) -> int:
        return self._now

    def advance(self, milliseconds: int, stopping: Event, *, real: bool = False) -> None:
        """Wait, unless behind, and move the time on; as slowly as real time if `real`."""
        pause = milliseconds / 1000
        self._due = max(self._due + pause / self.speed, time.monotonic() - MOST_BEHIND_S)
        stopping.wait(pause if real else max(0.0, self._due - time.monotonic()))
        self._now += milliseconds
