"""What an attacker who keeps the readings of a longer time can compute from them."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Lock

import numpy as np
from cachetools import LRUCache

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.frame_results import make_result
from cloakwork.collect.storage import Reading, Result, Store, unix_ms
from cloakwork.errors import InputError
from cloakwork.readings import Frame, FrameRecovery, partial_cloak, recovered_frames, smoothed_frames
from cloakwork.recovery import recover

MOST_FRAMES = 240  # of one attack that follows sources
MOST_READINGS = 200_000  # of one that does not
PAGE = 5000
MOST_ATTACKS = 32


class Span(StrEnum):
    """How long an attacker has kept readings: one window of the claim, or longer."""

    WINDOW = "window"
    HOUR = "hour"
    DAY = "day"

    def milliseconds(self, site: CollectedSite) -> int:
        """The length of the span at a site."""
        return {Span.WINDOW: site.window_ms, Span.HOUR: 3_600_000, Span.DAY: 86_400_000}[self]


@dataclass(frozen=True)
class Attack:
    """What the readings of a span reveal together.

    `since` is the time of the first frame; the result has the time of the last. `vicinities` are the places where each
    of its sources is with a probability of 90 %. `cut` says that the span has more than was used: then its end was.
    """

    result: Result
    frames: int
    readings: int
    since: int
    vicinities: tuple[tuple[int, ...], ...]
    cut: bool = False


def follow(site: CollectedSite, frames: Sequence[Frame], *, clock: Callable[[], int] = unix_ms) -> Attack:
    """Follow sources through all these frames, in the order of time; takes up to some tenths of a second for each."""
    began = time.perf_counter()
    found = smoothed_frames(frames, site.site, site.cloak)[-1]
    readings = sum(int(frame.present.sum()) for frame in frames)
    return _attack(site, found, len(frames), readings, frames[0].time, clock(), began)


def attack(site: CollectedSite, readings: Iterable[Reading], *, clock: Callable[[], int] = unix_ms) -> Attack:
    """Combine all these readings, assuming that no source moved; takes up to some seconds.

    This is for sites whose sources are not followed.

    Notes
    -----
    The mean of k readings of a sensor has noise sigma / sqrt(k), and its rounding error shrinks alike: one frame with
    that noise holds all that k frames reveal about sources that do not move.
    """
    began = time.perf_counter()
    sums, numbers, times = [0] * len(site.ids), np.zeros(len(site.ids), np.int64), set()
    for reading in readings:
        row = site.index.get(reading.sensor)
        if row is not None and reading.time > 0:
            sums[row] += reading.value
            numbers[row] += 1
            times.add(reading.time)
    present = numbers > 0
    if not times:
        raise InputError(f"{site.name}: there is no reading in this window. Choose a later time.", site=site.name)
    part = partial_cloak(site.cloak, present)
    shrink = 1 / np.sqrt(numbers[present])
    means = np.array([total / number for total, number in zip(sums, numbers.tolist(), strict=True) if number])
    values = means * part.steps - site.baselines[present]
    combined = replace(part, sigmas=part.sigmas * shrink, roundings=part.roundings * shrink)
    recovery = recover(values[None, :], combined, estimator=site.estimator.estimator)
    [found] = recovered_frames(recovery, [max(times)], present)
    return _attack(site, found, len(times), int(numbers.sum()), min(times), clock(), began)


def _attack(
    site: CollectedSite, found: FrameRecovery, frames: int, readings: int, since: int, solved: int, began: float
) -> Attack:
    result = make_result(site, found, solved, 1000 * (time.perf_counter() - began))
    vicinities = tuple(tuple(source.vicinity.tolist()) for source in found.sources)
    return Attack(result, frames, readings, since, vicinities)


class AttackCache:
    """Computes attacks, and keeps the last few: one takes seconds, and many screens may ask at once.

    An attack is computed again when more readings of its span have arrived.
    """

    def __init__(self, store: Store, *, clock: Callable[[], int] = unix_ms) -> None:
        self._store = store
        self._clock = clock
        self._attacks: LRUCache[tuple[str, int, Span, int, int], Attack] = LRUCache(MOST_ATTACKS)
        self._lock = Lock()

    def attack_until(self, site: CollectedSite, until: int | None, span: Span = Span.WINDOW) -> Attack | None:
        """The span that ends with `until`, or with the newest frame, combined; None where it has no reading."""
        last = self._clock() + site.ahead_ms if until is None else until
        newest = self._store.frames.times(site.name, until=last + 1, limit=1)
        if not newest:
            return None
        end = newest[0].time if until is None else until
        since, erasures = max(1, end + 1 - span.milliseconds(site)), self._store.erasures(site.name)
        stored = self._store.frames.times(site.name, since, end + 1, MOST_FRAMES + 1)
        key = (site.name, end, span, sum(frame.sensors for frame in stored), erasures)
        with self._lock:
            for old in [old for old in self._attacks if old[0] == site.name and old[4] != erasures]:
                del self._attacks[old]  # its readings may have been erased
            if key in self._attacks:
                return self._attacks[key]
        times = sorted(frame.time for frame in stored[:MOST_FRAMES])
        found = self._followed(site, times) if site.follows else self._mean(site, since, end + 1)
        if found is None:
            return None
        found = replace(found, cut=found.cut or (site.follows and len(stored) > MOST_FRAMES))
        with self._lock:
            self._attacks[key] = found
        return found

    def _followed(self, site: CollectedSite, times: Sequence[int]) -> Attack | None:
        values = self._store.frames.values(site.name, times)
        frames = [site.frame(when, values[when]) for when in sorted(values)]
        usable = [frame for frame in frames if frame.present.any()]
        return follow(site, usable, clock=self._clock) if usable else None

    def _mean(self, site: CollectedSite, since: int, until: int) -> Attack | None:
        """The mean of the last readings of a period."""
        readings: list[Reading] = []
        after: str | None = None
        pages = self._store.readings.page
        while True:
            page = pages(site.name, since=since, until=until, limit=PAGE, after=after, newest_first=True)
            readings += page.items
            after = page.next
            if after is None or len(readings) >= MOST_READINGS:
                break
        try:
            found = attack(site, readings[:MOST_READINGS], clock=self._clock)
        except InputError:
            return None
        return replace(found, cut=after is not None or len(readings) > MOST_READINGS)
