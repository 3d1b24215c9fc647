"""From frames of readings to what was recovered from each: the same for a file, for a store and for live readings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.privacy import Cloak
from cloakwork.readings.partial import PartialCloak, reporting
from cloakwork.readings.readings_file import Frame
from cloakwork.recovery import Fit, Recovery, Source, Status, recover
from cloakwork.site import Site

KNOWN_PATTERNS = 64


@dataclass(frozen=True, eq=False)
class Found:
    """What was recovered from one frame.

    `sensors` is how many reported; `map` has the weight of each place, and `shown` what a picture shows: the expected
    number of sources at each place where the estimator knows it, else the map.
    """

    time: int
    sensors: int
    status: Status
    gap: float
    fit: Fit
    map: FloatArray
    shown: FloatArray
    counts: FloatArray | None
    sources: tuple[Source, ...]


class Recoveries:
    """Recovers frames of a site; keeps a model for each of the last few sets of sensors that reported."""

    def __init__(self, site: Site, cloak: Cloak) -> None:
        self._site = site
        self._cloak = cloak
        self._estimator = site.estimator().estimator
        self._last: Recovery | None = None
        self._known: dict[bytes, PartialCloak] = {}

    def of(self, batch: Sequence[Frame], *, keep: bool = True) -> list[Found]:
        """Every frame of a batch, in the order of time.

        It goes on from the frames before where the estimator can; with `keep` later ones go on from these.
        """
        groups: dict[bytes, list[Frame]] = {}
        for frame in batch:
            groups.setdefault(frame.present.tobytes(), []).append(frame)
        last = self._last
        found: list[Found] = []
        for members in groups.values():
            present = members[0].present
            part = self._part(present)
            steps = np.stack([frame.steps[present] for frame in members])
            values = steps * part.steps - self._site.baselines[present]
            last = recover(values, part, estimator=self._estimator, after=last)
            found += founds(last, [frame.time for frame in members], present)
        if keep:
            self._last = last
        return sorted(found, key=lambda one: one.time)

    def _part(self, present: NDArray[np.bool_]) -> PartialCloak:
        key = present.tobytes()
        if key not in self._known:
            if len(self._known) >= KNOWN_PATTERNS:
                self._known.pop(next(iter(self._known)))
            self._known[key] = reporting(self._cloak, present)
        return self._known[key]


def founds(recovery: Recovery, times: Sequence[int], present: NDArray[np.bool_]) -> Iterator[Found]:
    """What a batch says of each of its frames; `present` are the sensors of the site that its readings are from."""
    reported = np.flatnonzero(present)
    known = recovery.solution
    for k, time in enumerate(times):
        yield Found(
            time,
            len(reported),
            recovery.status[k],
            float(recovery.gap[k]),
            _renamed(recovery.fit[k], reported),
            recovery.map[k],
            recovery.map[k] if known.intensity is None else known.intensity[k],
            None if known.counts is None else known.counts[k],
            recovery.sources[k],
        )


def _renamed(fit: Fit, reported: IntArray) -> Fit:
    """A fit that counts sensors among all of the site, not among those that reported."""
    return replace(fit, set_aside=tuple(int(reported[sensor]) for sensor in fit.set_aside))
