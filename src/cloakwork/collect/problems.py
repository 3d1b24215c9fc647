"""What can be wrong with a message, counted by reason; no payload is kept, so none can be shown."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from enum import StrEnum
from threading import Lock

from cloakwork.collect.records import Problem
from cloakwork.errors import CloakworkError


class Reason(StrEnum):
    """All there is to say about a message that is not simply a new reading."""

    MALFORMED = "malformed: not of the wire form, version 1"
    WRONG_TOPIC = "wrong topic: not cloakwork/v1/<site>/<sensor>/reading or status"
    UNKNOWN_SITE = "unknown site: not collected here"
    UNKNOWN_SENSOR = "unknown sensor: the site has none of this name"
    BENCH = "bench: from a device under audit, not kept"
    LATE = "late: stored after its frame was due"
    ORDER = "out of order: a later reading of this sensor was stored before"
    DUPLICATE = "duplicate: the same reading was stored before"
    ALARM = "alarm: one seq with two values"
    CLOCK = "clock wrong: stamped 0 or more than a day ahead"
    OVER = "over budget: the claim does not hold for this sensor"
    OTHER_BUDGET = "other budget: the device states another budget than the plan"
    OFF_SLOT = "off the slots: stamp not on a slot of the schedule"


CLAIM_BREAKING = (Reason.OVER, Reason.OTHER_BUDGET, Reason.OFF_SLOT)


class Busy(CloakworkError):  # noqa: N818 - no error of anyone: come again
    """Nothing can be taken in at the moment; what was given is not acknowledged, and may be given again."""


class Tally:
    """Counts problems by site, sensor and reason, for several threads; hands over what was counted since the last time.

    Only names from the site files are written down. Others are left empty: anyone who may publish can make them up, and
    so many of them that they would fill the store.
    """

    def __init__(self, watched: Mapping[str, Set[str]]) -> None:
        self._watched = watched
        self._fresh: dict[tuple[str, str, str], tuple[int, int]] = {}
        self._totals: Counter[str] = Counter()
        self._lock = Lock()

    def count(self, reason: Reason, site: str, sensor: str, when: int) -> None:
        """One more of them, at Unix millisecond `when`."""
        known = self._watched.get(site)
        key = ("" if known is None else site, sensor if known and sensor in known else "", reason.value)
        with self._lock:
            self._fresh[key] = (self._fresh.get(key, (0, 0))[0] + 1, when)
            self._totals[reason.value] += 1

    def take(self) -> list[Problem]:
        """What was counted since the last time."""
        with self._lock:
            fresh, self._fresh = self._fresh, {}
        return [Problem(*key, count, last) for key, (count, last) in fresh.items()]

    def put_back(self, taken: Sequence[Problem]) -> None:
        """What was taken could not be written down: hand it over again next time."""
        with self._lock:
            for problem in taken:
                key = (problem.site, problem.sensor, problem.reason)
                count, last = self._fresh.get(key, (0, 0))
                self._fresh[key] = (count + problem.count, max(last, problem.last))

    @property
    def waiting(self) -> bool:
        """Whether there is anything to take."""
        return bool(self._fresh)

    @property
    def totals(self) -> dict[str, int]:
        """All that were counted since the start, by reason."""
        with self._lock:
            return dict(self._totals)
