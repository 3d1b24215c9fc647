"""From frames to stored results, at a site whose sensors report readings."""

import logging
import time
from collections.abc import Callable, Sequence

import numpy as np

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.frame_results import failure, make_result, places_of, reason_of
from cloakwork.collect.physics_watch import PhysicsWatch
from cloakwork.collect.storage import RecoveredTrack, Result, Store, unix_ms
from cloakwork.errors import StoreError
from cloakwork.readings import Frame, FrameRecoverer, FrameRecovery, FrameTracker, values_of
from cloakwork.recovery import Tracker

log = logging.getLogger(__name__)
REPLAYED = 60  # stored frames from which a tracker is rebuilt


class Solver:
    """Recovers the frames of one site; for one thread.

    A result's map is what a picture shows: the expected number of sources at each place, if the estimator gives it.
    With a `store`, sources are followed from frame to frame where the site allows it. The tracker is rebuilt from the
    last stored frames, and continues the stored tracks, after a restart, an erasure, an error, and when a clock that
    was ahead is set right. Otherwise the store is not read.
    """

    def __init__(self, site: CollectedSite, store: Store | None = None, *, clock: Callable[[], int] = unix_ms) -> None:
        self.site, self._store, self._clock = site, store, clock
        self._recoverer = FrameRecoverer(site.site, site.cloak)
        self._watch: PhysicsWatch | None = None
        self.reset()

    def reset(self) -> None:
        """Start again from the stored frames."""
        self._tracker: FrameTracker | None = None
        self.newest = 0  # time of the last frame
        self._made: dict[int, Result] = {}  # the last results, which may not be stored yet
        self._last_label = 0
        self._known: dict[int, RecoveredTrack] = {}  # tracks whose labels are from the store

    def prepare(self) -> None:
        """Compile and factor the model, so that the first frame does not wait.

        Where sources are followed, few frames are recovered alone: that is compiled with the first that is.
        """
        steps = np.rint(self.site.site.baselines / self.site.cloak.steps).astype(np.int64)
        quiet = Frame(0, steps, np.ones(len(steps), bool))
        if self._followed_store is not None:
            self._new_tracker().step(quiet)
        else:
            self._recoverer.recover([quiet])

    def solve(self, frames: Sequence[Frame]) -> list[Result]:
        """Return a result for each of these frames, and of earlier ones that settled.

        Where sources are followed, the frames are in the order of time. One that cannot be followed is recovered alone,
        and the next one starts a new tracker.
        """
        if self._followed_store is None:
            found = self._alone(frames)
            self.newest = max(self.newest, frames[-1].time)
            return found
        return [result for frame in frames for result in self._followed(self._followed_store, frame)]

    def alone(self, frame: Frame) -> Result:
        """Return the result of a frame from its own readings only."""
        reason = self.site.unusable(frame)
        return failure(self.site, frame, reason, solved=self._clock()) if reason else self._alone([frame])[0]

    @property
    def _followed_store(self) -> Store | None:
        """The store, where sources are followed."""
        return self._store if self.site.follows else None

    def _new_tracker(self) -> FrameTracker:
        return FrameTracker(self.site.site, self.site.cloak, lag=self.site.lag)

    def _followed(self, store: Store, frame: Frame) -> list[Result]:
        """Take a frame; returns its result after those that it settled."""
        began = time.perf_counter()
        try:
            tracker = self._current(store, frame.time)
            found = self._step(tracker, frame)
            took = 1000 * (time.perf_counter() - began)
            return [self._result(moment, took) for moment in (*tracker.settled, found)]
        except StoreError:
            self.reset()
            raise
        except Exception as problem:
            self.reset()
            log.info("%s: the frame of %d was not followed (%s)", self.site.name, frame.time, reason_of(problem))
        return self._alone([frame])

    def _alone(self, frames: Sequence[Frame]) -> list[Result]:
        """Recover frames together; if that fails, one by one."""
        began = time.perf_counter()
        try:
            found = self._recoverer.recover(frames)
        except Exception as problem:
            if len(frames) > 1:
                return [result for frame in frames for result in self._alone([frame])]
            log.exception("%s: nothing could be recovered from the frame of %d", self.site.name, frames[0].time)
            return [failure(self.site, frames[0], reason_of(problem), solved=self._clock())]
        took = 1000 * (time.perf_counter() - began) / len(frames)
        return [self._result(moment, took) for moment in found]

    def _step(self, tracker: FrameTracker, frame: Frame) -> FrameRecovery:
        found = tracker.step(frame, ignored=() if self._watch is None else self._watch.sensors)
        if self._watch is not None and found.tracked is not None and frame.time > self.newest:
            self._watch.take(frame.time, values_of(frame, self.site.site, self.site.cloak), found.tracked.draws)
        self.newest = max(self.newest, frame.time)
        return found

    def _current(self, store: Store, until: int) -> FrameTracker:
        """The tracker, which has taken the last stored frames before a time."""
        site = self.site
        if self._tracker is None:
            self._tracker = tracker = self._new_tracker()
            if isinstance(tracker.tracker, Tracker):  # on a large floor nothing is tested
                self._watch = self._watch or PhysicsWatch(site, store, tracker.tracker.observer)
            newest = store.results.last(site.name, followed=True)
            self._last_label = (newest and newest.labels) or 0
            tracker.tracker.resume({}, self._last_label)
            self._catch_up(store, tracker, until)
        elif until > self.newest + site.schedule.period_ms:  # after a late frame, those between may be done already
            self._catch_up(store, self._tracker, until)
        return self._tracker

    def _catch_up(self, store: Store, tracker: FrameTracker, until: int) -> None:
        """Take the stored frames since the last one, and continue the tracks of a stored result that is later."""
        site = self.site
        stored = store.frames.times(site.name, since=self.newest + 1, until=until, limit=REPLAYED)
        for frame in site.frames(store, [one.time for one in stored]):
            if not site.unusable(frame):
                self._step(tracker, frame)
        before = store.results.last(site.name, until, followed=True)
        if before is not None and before.time > max(self._made, default=0):
            self._last_label = max(self._last_label, before.labels or 0)
            tracker.tracker.resume(places_of(site, before.tracks), self._last_label)
            self._known = {track.label: track for track in before.tracks}
            self._made = {before.time: before}

    def _result(self, found: FrameRecovery, took_ms: float) -> Result:
        """Make a result, which continues the zones of the one before it, and keep it for the next."""
        self._last_label = max([self._last_label, *(track.label for track in found.tracks)])
        before = self._made.get(max((time for time in self._made if time < found.time), default=-1))
        if before is None and self._store is not None:
            before = self._store.results.last(self.site.name, found.time, followed=self.site.follows)
        result = make_result(
            self.site, found, self._clock(), took_ms, before=before, known=self._known, last_label=self._last_label
        )
        if found.tracked is not None or self._followed_store is None:
            self._made = dict(sorted((self._made | {found.time: result}).items())[-2 - self.site.lag :])
        return result
