"""Whether a sensor sends more readings than the plan allows: then the site's claim does not hold for it."""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass

from cloakwork.collect.place import Watched

ROOM = 64  # stamps beyond those of a full window that are kept before the oldest go


@dataclass(frozen=True)
class Rules:
    """What the plan asks of each sensor of a site: `allowed` readings in any `window_ms`.

    `aligned` if they must be stamped with a multiple of `period_ms`, because all sensors measure together.
    """

    window_ms: int
    allowed: int
    period_ms: int
    aligned: bool


def rules_of(watched: Watched) -> Rules:
    """The rules of a site's plan."""
    claim, schedule = watched.plan.claim, watched.schedule
    return Rules(
        math.floor(1000 * claim.window), claim.readings_per_window, schedule.period_ms, claim.scope == "network"
    )


class Spent:
    """The last readings of one sensor; in memory, and no more of them than a full window has.

    Notes
    -----
    The claim is about when readings were taken, and only their stamps say that: after an outage a whole backlog comes
    at once, and is as it should be. A clock that is set back stamps the same stretch twice, and that is no fault
    either. So there are too many only where the stamps lie within a window and the messages came within one, too. A
    sensor that lies about its times can hide: it could as well send readings without noise.

    No reading may be noted twice, and the store does not always know: it forgets what is erased, and after a failure it
    cannot be told whether a reading is stored because it was tried or because it came before. So ask `has` first.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._stamps = array("q")  # in order
        self._seqs = array("q")  # of each stamp
        self._came: deque[int] = deque(maxlen=rules.allowed + 1)
        self._shortest = rules.window_ms - rules.period_ms // 4  # messages may overtake time a little on their way

    def has(self, seq: int, stamp: int) -> bool:
        """Whether a reading is among the last."""
        return seq in self._seqs[bisect_left(self._stamps, stamp) : bisect_right(self._stamps, stamp)]

    def add(self, seq: int, stamp: int, received: int) -> bool:
        """Note a new reading; True if it is one too many."""
        rules, stamps = self._rules, self._stamps
        at = bisect_right(stamps, stamp)
        stamps.insert(at, stamp)
        self._seqs.insert(at, seq)
        self._came.append(received)
        before = at + 1 - bisect_right(stamps, stamp - rules.window_ms)
        after = bisect_left(stamps, stamp + rules.window_ms) - bisect_left(stamps, stamp)
        if len(stamps) > rules.allowed + 2 * ROOM:
            gone = len(stamps) - rules.allowed - ROOM
            del stamps[:gone], self._seqs[:gone]
        dense = max(before, after) > rules.allowed
        return dense and len(self._came) > rules.allowed and received - self._came[0] < self._shortest
