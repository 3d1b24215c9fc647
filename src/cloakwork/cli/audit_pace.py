"""How fast readings come while `cloakwork audit mqtt` records them, beside how fast they should."""

import time
from collections.abc import Callable

from cloakwork.cli.output import counted

SLOW = 1.2  # times as long as was said before: then it is said anew
FIRST = 50  # readings before it is


class Pace:
    """Corrects how long a recording takes by the pace that is seen.

    Parameters
    ----------
    period
        Seconds of a slot: the device takes one reading in each, or misses it.
    reports
        Readings to record with each set-up.
    note
        Told, in a sentence, when it takes clearly longer than was said before.
    """

    def __init__(
        self, period: float, reports: int, note: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._period, self._reports, self._note, self._clock = period, reports, note, clock
        self._said = 1.0

    def beside(self, show: Callable[[int], None] = lambda _: None) -> Callable[[int], None]:
        """What a recording tells how many readings it has; `show` is told as well."""
        began: list[float] = []

        def told(done: int) -> None:
            show(done)
            if began:
                self._look(done, self._clock() - began[0])
            else:
                began.append(self._clock())

        return told

    def _look(self, done: int, seconds: float) -> None:
        slots = 1 + round(seconds / self._period)
        slower = slots / done
        if done < FIRST or slower < SLOW * self._said:
            return
        self._said = slower
        left = max(1.0, (self._reports - done) * seconds / (done - 1) / 60)
        self._note(
            f"{counted(done, 'reading')} came of {slots:,} slots of {self._period:g} s, so this set-up takes about "
            f"{left:,.0f} min more. Slots are missed where the device's storage is slow: a longer --period, when it is "
            "provisioned, misses fewer"
        )
