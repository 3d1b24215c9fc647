"""From the bits of a site to stored results: whether someone is in each zone."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.collect.collected_site import CollectedBits
from cloakwork.collect.solver import LIKELY, failure, held_state
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
        self.reset()

    def reset(self) -> None:
        """Start again from the store."""
        self.newest = 0
        self._made: dict[int, Result] = {}  # the last results, which may not be stored yet

    def prepare(self) -> None:
        """There is nothing to prepare: presence takes no model."""

    def solve(self, frames: Sequence[Frame]) -> list[Result]:
        """Return a result for each of these frames, and of earlier ones that settled."""
        return [result for frame in frames for result in self._solve(frame)]

    def _solve(self, frame: Frame) -> list[Result]:
        began, site, results = time.perf_counter(), self.site, self._store.results
        recent = self._recent(frame)
        before = self._made.get(max((when for when in self._made if when < frame.time), default=-1))
        before = before or results.last(site.name, frame.time)
        last = {} if before is None else {state.id: state for state in before.zones or ()}
        zones = [
            held_state(ZoneState(zone, chance, chance), frame.time, last.get(zone), hold_ms=site.hold_ms)
            for zone, chance in self._chances(recent, frame.time, frame.time).items()
        ]
        made = [self._result(frame, began, zones)]
        self.newest = max(self.newest, frame.time)
        self._made = dict(sorted((self._made | {frame.time: made[0]}).items())[-2 - site.lag :])
        when = frame.time - site.lag * site.schedule.period_ms
        live = self._made.get(when) or results.get(site.name, when)
        if when in recent and live is not None and not (live.settled or live.failed):
            chances = self._chances(recent, when, frame.time).items()
            zones = [ZoneState(zone, chance, chance, chance >= LIKELY) for zone, chance in chances]
            made = [replace(self._result(recent[when], began, zones), settled=True), *made]
        return made

    def _recent(self, frame: Frame) -> dict[int, Frame]:
        """The stored frames of the slots up to this one, by time."""
        period = self.site.schedule.period_ms
        since, slots = max(1, frame.time - BEFORE * period), BEFORE + 1
        stored = self._store.frames.times(self.site.name, since, frame.time, slots, every=period)
        return {one.time: one for one in [*self.site.frames(self._store, [one.time for one in stored]), frame]}

    def _chances(self, recent: Mapping[int, Frame], at: int, until: int) -> dict[str, float]:
        """The probability that someone is in each zone `at` a time, by id, given the reports until another."""
        period, site, stated = self.site.schedule.period_ms, self.site.site, self.site.site.spec.presence
        times = range(min(recent), until + 1, period) if at % period == 0 else [at]
        reports = np.stack([self._reports(recent.get(when)) for when in times])
        # someone who comes and goes between two readings is not followed, so the share alone limits how often they come
        least = 1 - (1 - stated.share) / stated.share
        stay = max(math.exp(-period / 1000 / stated.stay), least + 1e-9)
        chance = partial(presence, flip=site.flip, stay=stay, share=stated.share, seen=stated.seen)
        row = list(times).index(at)
        return {zone.id: float(chance(reports[:, list(zone.rows)])[row]) for zone in site.zones}

    def _reports(self, frame: Frame | None) -> IntArray:
        """The report of each sensor; -1 where there is none, where the device could not measure, and for no bit."""
        if frame is None:
            return np.full(len(self.site.ids), -1)
        valid = frame.present & (frame.steps >= 0) & (frame.steps <= 1)
        return np.where(valid, frame.steps, -1)

    def _result(self, frame: Frame, began: float, zones: Sequence[ZoneState]) -> Result:
        bare = failure(self.site, frame, "", solved=self._clock())
        took_ms = 1000 * (time.perf_counter() - began)
        return replace(bare, status="solved", gap=0.0, fit=1.0, labels=0, zones=tuple(zones), took_ms=took_ms)
