"""From the bits of a site to stored results: whether someone is in each zone."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.collect.collected_site import CollectedBits
from cloakwork.collect.frame_results import LIKELY, failure, held_state
from cloakwork.collect.storage import Result, Store, ZoneState, unix_ms
from cloakwork.readings import Frame
from cloakwork.recovery import presence

BEFORE = 60  # slots whose reports count, as many as a tracker is rebuilt from; older ones hardly do


class PresenceSolver:
    """Computes the presence in each zone of one site of bits, from its stored reports; for one thread.

    The result of a frame rests on the reports up to it. When `lag` more frames have come, it is settled: computed again
    with the reports after it.
    """

    def __init__(self, site: CollectedBits, store: Store, *, clock: Callable[[], int] = unix_ms) -> None:
        self.site = site
        self._store, self._clock = store, clock

    def reset(self) -> None:
        """There is nothing to forget: presence is computed from the store."""

    def prepare(self) -> float:
        """There is nothing to prepare: presence takes no model."""
        return 0.0

    def solve(self, frames: Sequence[Frame]) -> list[Result]:
        """Return a result for every frame, and those of earlier ones that settled, in the order of time."""
        results: dict[tuple[int, bool], Result] = {}
        before = self._store.results.last(self.site.name, min((frame.time for frame in frames), default=0))
        for frame in frames:
            began = time.perf_counter()
            if reason := self.site.unusable(frame):
                results[frame.time, False] = failure(self.site, frame, reason, solved=self._clock())
                continue
            recent = self._recent(frame)
            before = self._live(frame, recent, before, began)
            results[frame.time, False] = before
            when = frame.time - self.site.lag * self.site.schedule.period_ms
            live = results.get((when, False)) or self._store.results.get(self.site.name, when)
            if when in recent and live is not None and not (live.settled or live.failed):
                results[when, True] = self._settled(recent[when], recent, frame.time, began)
        return [results[key] for key in sorted(results)]

    def _recent(self, frame: Frame) -> dict[int, Frame]:
        """The stored frames of the slots up to this one, by time."""
        period = self.site.schedule.period_ms
        since, slots = max(1, frame.time - BEFORE * period), BEFORE + 1
        stored = self._store.frames.times(self.site.name, since, frame.time, slots, every=period)
        return {one.time: one for one in [*self.site.frames(self._store, [one.time for one in stored]), frame]}

    def _live(self, frame: Frame, recent: Mapping[int, Frame], before: Result | None, began: float) -> Result:
        last = {} if before is None else {state.id: state for state in before.zones or ()}
        zones = tuple(
            held_state(ZoneState(zone, chance, chance), frame.time, last.get(zone), hold_ms=self.site.hold_ms)
            for zone, chance in self._chances(recent, frame.time, frame.time).items()
        )
        return self._result(frame, 1000 * (time.perf_counter() - began), zones)

    def _settled(self, frame: Frame, recent: Mapping[int, Frame], until: int, began: float) -> Result:
        """The result of a frame with the reports after it."""
        zones = tuple(
            ZoneState(zone, chance, chance, chance >= LIKELY)
            for zone, chance in self._chances(recent, frame.time, until).items()
        )
        return self._result(frame, 1000 * (time.perf_counter() - began), zones, settled=True)

    def _chances(self, recent: Mapping[int, Frame], at: int, until: int) -> dict[str, float]:
        """The probability that someone is in each zone `at` a time, by id, given the reports until another."""
        period, stated = self.site.schedule.period_ms, self.site.site.spec.presence
        times = range(min(recent), until + 1, period) if at % period == 0 else [at]
        reports = np.stack([self._reports(recent.get(when)) for when in times])
        # someone who comes and goes between two readings is not followed, so the share alone limits how often they come
        least = 1 - (1 - stated.share) / stated.share
        stay = max(math.exp(-period / 1000 / stated.stay), least + 1e-9)
        row = list(times).index(at)
        return {
            zone.id: float(
                presence(
                    reports[:, list(zone.rows)], self.site.site.flip, stay=stay, share=stated.share, seen=stated.seen
                )[row]
            )
            for zone in self.site.site.zones
        }

    def _reports(self, frame: Frame | None) -> IntArray:
        """The report of each sensor; -1 where there is none, where the device could not measure, and for no bit."""
        if frame is None:
            return np.full(len(self.site.ids), -1)
        valid = frame.present & (frame.steps >= 0) & (frame.steps <= 1)
        return np.where(valid, frame.steps, -1)

    def _result(self, frame: Frame, took_ms: float, zones: tuple[ZoneState, ...], *, settled: bool = False) -> Result:
        bare = failure(self.site, frame, "", solved=self._clock(), took_ms=took_ms)
        return replace(bare, status="solved", gap=0.0, fit=1.0, settled=settled, labels=0, zones=zones)
