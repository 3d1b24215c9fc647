"""An attacker who keeps the readings of a longer time, and what these reveal."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from threading import Lock

import numpy as np
from cachetools import LRUCache
from pydantic.dataclasses import dataclass

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.solver import make_result
from cloakwork.collect.storage import Result, Store, unix_ms
from cloakwork.readings import Frame, FrameRecovery, FrameTracker, partial_cloak, recovered_frames
from cloakwork.recovery import recover

PATIENCE_S = 60.0  # that following sources may take
GROWTH = 100  # from one number of frames to the next, while there is time
MAX_FRAMES = 9_999  # asked of the store: more than there is time for
FRAMES_AT_ONCE = 500
MAX_READINGS = 200_000  # of a site whose sources are not followed
MAX_ATTACKS = 32


class Span(StrEnum):
    """The time for which an attacker has kept readings: one window of the claim, or longer."""

    WINDOW = "window"
    HOUR = "hour"
    DAY = "day"

    def milliseconds(self, site: CollectedSite) -> int:
        return {Span.WINDOW: site.window_ms, Span.HOUR: 3_600_000, Span.DAY: 86_400_000}[self]


@dataclass(frozen=True, kw_only=True)
class Attack(Result):
    """An attacker's knowledge of the last moment of a span, from all its frames `since` the first.

    Sources are followed through all of them; where a site's sources cannot be followed, the frames are combined as if
    no source had moved. Where all would take too long (`cut`), only the last are used.
    """

    frames: int
    readings: int
    since: int
    span: Span = Span.WINDOW
    cut: bool = False


def attack(site: CollectedSite, frames: Iterable[Frame]) -> Attack | None:
    """Combine all these frames, assuming that no source moved; None if they have no reading. Takes up to some seconds.

    This is for sites whose sources are not followed.

    Notes
    -----
    The mean of k readings of a sensor has noise sigma / sqrt(k), and its rounding error shrinks alike: with Gaussian
    noise, one such frame holds all that k frames reveal about sources that do not move.
    """
    began = time.perf_counter()
    sensors = site.site.physics.sensors
    sums, numbers, times = [0] * sensors, np.zeros(sensors, np.int64), []
    for frame in frames:
        for row in np.flatnonzero(frame.present).tolist():
            sums[row] += int(frame.steps[row])  # a sum of forged readings would not fit in 64 bits
        numbers += frame.present
        times += [frame.time] if frame.present.any() else []
    present = numbers > 0
    if not times:
        return None
    part = partial_cloak(site.cloak, present, site.site.drift, locally=site.site.samples_locally)
    shrink = 1 / np.sqrt(numbers[present])
    means = np.array([total / number for total, number in zip(sums, numbers.tolist(), strict=True) if number])
    values = means * part.steps - site.site.baselines[present]
    combined = replace(part, total_sigmas=part.total_sigmas * shrink, roundings=part.roundings * shrink)
    recovery = recover(values[None, :], combined, estimator=site.estimator.estimator)
    [found] = recovered_frames(recovery, [Frame(max(times), np.zeros(len(present), np.int64), present)])
    return _attack(site, found, times, int(numbers.sum()), began)


def _attack(site: CollectedSite, found: FrameRecovery, times: Sequence[int], readings: int, began: float) -> Attack:
    result = make_result(site, found, 0, 1000 * (time.perf_counter() - began))
    return Attack(**vars(result), frames=len(times), readings=readings, since=min(times))


class AttackCache:
    """Computes attacks, and keeps the last few: one takes seconds, and many screens may ask at once.

    An attack is computed again when more readings of its span have arrived, or some were erased.
    """

    def __init__(self, store: Store, *, clock: Callable[[], int] = unix_ms) -> None:
        self._store = store
        self._clock = clock
        self._attacks: LRUCache[tuple[str, int, Span, int, int], Attack] = LRUCache(MAX_ATTACKS)
        self._lock = Lock()

    def attack_until(self, site: CollectedSite, until: int | None, span: Span = Span.WINDOW) -> Attack | None:
        """The span that ends with `until`, or with the newest frame, combined; None where it has no reading."""
        last = self._clock() + site.ahead_ms if until is None else until
        newest = self._store.frames.times(site.name, until=last + 1, limit=1)
        if not newest:
            return None
        end = newest[0].time if until is None else until
        since, erasures = max(1, end + 1 - span.milliseconds(site)), self._store.erasures(site.name)
        stored = self._store.frames.times(site.name, since, end + 1, MAX_FRAMES + 1)
        key = (site.name, end, span, sum(frame.readings for frame in stored), erasures)
        with self._lock:
            for old in [old for old in self._attacks if old[0] == site.name and old[4] != erasures]:
                del self._attacks[old]  # its readings may have been erased
            if key in self._attacks:
                return self._attacks[key]
        most = MAX_FRAMES if site.follows else min(MAX_FRAMES, max(1, MAX_READINGS // len(site.ids)))
        times = sorted(frame.time for frame in stored[:most])
        found = self._followed(site, times) if site.follows else attack(site, self._frames(site, times))
        if found is None:
            return None
        cut = found.cut or len(stored) > most
        found = replace(found, span=span, cut=cut, solved=self._clock())
        with self._lock:
            self._attacks[key] = found
        return found

    def _followed(self, site: CollectedSite, times: Sequence[int]) -> Attack | None:
        """Follow sources through the frames of all these times; None if there is no reading.

        This judges the last moment from all frames up to it, as a smoother would. Where they would take longer than
        `PATIENCE_S`, it takes as many of the last as do not: first one, and then more while their time allows.
        """
        self._follow(site, times[-1:], 0.0)  # compiles, which would make one frame seem to take long
        began = time.perf_counter()
        used, cost = 0, 0.0
        found: Attack | None = None
        while used < len(times):
            enough = min(len(times), GROWTH * used or 1)
            affordable = enough if not used else int((began + PATIENCE_S - time.perf_counter()) / cost)
            if affordable < min(enough, 2 * used):
                break
            used, started = min(enough, affordable), time.perf_counter()
            found = self._follow(site, times[-used:], began)
            cost = (time.perf_counter() - started) / used
        return found and replace(found, cut=used < len(times))

    def _follow(self, site: CollectedSite, times: Sequence[int], began: float) -> Attack | None:
        # with a lag, the tracker draws the paths of more frames together, which a start from nothing needs
        tracker, last, taken, readings = FrameTracker(site.site, site.cloak, lag=site.lag), None, [], 0
        for frame in self._frames(site, times):
            if frame.present.any():
                last = tracker.step(frame)
                taken.append(frame.time)
                readings += last.sensors
        return None if last is None else _attack(site, last, taken, readings, began)

    def _frames(self, site: CollectedSite, times: Sequence[int]) -> Iterator[Frame]:
        """The stored frames of these times; not all are in memory at once."""
        for start in range(0, len(times), FRAMES_AT_ONCE):
            yield from site.frames(self._store, times[start : start + FRAMES_AT_ONCE])
