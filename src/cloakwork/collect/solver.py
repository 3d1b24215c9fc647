"""From frames to stored results."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.frame_results import make_result, places_of
from cloakwork.collect.physics_watch import PhysicsWatch
from cloakwork.collect.storage import FAILED, RecoveredTrack, Result, Store, unix_ms
from cloakwork.errors import CloakworkError, StoreError
from cloakwork.readings import Frame, FrameRecoverer, FrameRecovery, FrameTracker, values_of
from cloakwork.recovery import Tracker

Clock = Callable[[], int]
log = logging.getLogger(__name__)
REPLAYED = 60  # stored frames from which a tracker is rebuilt


class Follower:
    """Takes the frames of one site in the order of time and makes their results; for one thread.

    Before it judges a frame, it takes every stored frame that came between: after a restart or an erasure the last few,
    else those that only another collector received. Its tracks have the labels of the stored results. So collectors on
    one store, and one that was restarted, agree. Frames that come late are merged, or recovered alone if they come
    later than the tracker's window.
    """

    def __init__(self, site: CollectedSite, store: Store, clock: Callable[[], int]) -> None:
        self._site, self._store, self._clock = site, store, clock
        self._watch: PhysicsWatch | None = None
        self._tracker: FrameTracker | None = None
        self._newest = 0  # time of the last frame that the tracker has taken
        self._recent: dict[int, Frame] = {}  # frames that are not settled yet
        self._used: dict[int, Frame] = {}  # frames that have settled
        self._erasures = 0
        self._made: dict[int, Result] = {}  # our last results, which may not be stored yet
        self._labels = 0  # the largest label so far
        self._known: dict[int, RecoveredTrack] = {}  # tracks whose labels are from the store

    def prepare(self, frame: Frame) -> None:
        """Build the model and compile, so that the first frame does not wait."""
        self._new_tracker().step(frame)

    def reset(self) -> None:
        """Start again from the stored frames."""
        self._tracker, self._newest, self._recent, self._used = None, 0, {}, {}
        self._made, self._known = {}, {}

    def take(self, frame: Frame) -> list[Result]:
        """Take a frame; returns its result after those that it settled."""
        began = time.perf_counter()
        tracker = self._current()
        late = frame.time <= self._newest
        results = [] if late else self._catch_up(tracker, frame.time)
        before = self._before(frame.time)
        if before is not None and not late:
            self._take_labels(tracker, before)
        found = self._step(tracker, frame)
        took = 1000 * (time.perf_counter() - began)
        return [*results, *self._settled(tracker.settled, took), self._result(found, took)]

    def used(self, when: int) -> Mapping[str, int]:
        """The readings that a settled result was made from, by sensor; asked once."""
        frame = self._used.pop(when)
        return {self._site.ids[row]: int(frame.steps[row]) for row in np.flatnonzero(frame.present)}

    def _new_tracker(self) -> FrameTracker:
        return FrameTracker(self._site.site, self._site.cloak, lag=self._site.lag)

    def _current(self) -> FrameTracker:
        """The tracker; a new one after a restart, after an erasure, and after a clock that was ahead was set right."""
        erasures = self._store.erasures(self._site.name)
        ahead = self._newest > self._clock() + self._site.ahead_ms
        if self._tracker is None or erasures != self._erasures or ahead:
            self.reset()
            self._tracker, self._erasures = self._new_tracker(), erasures
            if isinstance(self._tracker.tracker, Tracker):  # on a large floor nothing is tested
                self._watch = self._watch or PhysicsWatch(self._site, self._store, self._tracker.tracker)
                self._watch.follow(self._tracker.tracker)
            newest = self._store.results.last_followed(self._site.name)
            self._labels = (newest and newest.labels) or 0
            self._tracker.tracker.resume({}, self._labels)
        return self._tracker

    def _catch_up(self, tracker: FrameTracker, until: int) -> list[Result]:
        """Take the stored frames since the last that the tracker has; returns what they settled."""
        name = self._site.name
        stored = self._store.frames.times(name, since=self._newest + 1, until=until, limit=REPLAYED)
        values = self._site.stored_values(self._store, [frame.time for frame in stored])
        results: list[Result] = []
        for frame in self._site.frames(self._store, values):
            if not self._site.unusable(frame):
                self._step(tracker, frame)
                results += self._settled(tracker.settled, 0.0)
        return results

    def _step(self, tracker: FrameTracker, frame: Frame) -> FrameRecovery:
        found = tracker.step(frame)
        if self._watch is not None and frame.time > self._newest:
            self._watch.take(frame.time, values_of(frame, self._site.site, self._site.cloak))
        self._newest = max(self._newest, frame.time)
        self._recent = dict(sorted((self._recent | {frame.time: frame}).items())[-1 - self._site.lag :])
        return found

    def _take_labels(self, tracker: FrameTracker, before: Result) -> None:
        """Continue the tracks of a stored result that is not ours."""
        ours = self._made.get(before.time)
        if ours is not None and before.tracks == ours.tracks:
            return
        self._labels = max(self._labels, before.labels or 0)
        tracker.tracker.resume(places_of(self._site, before.tracks), self._labels)
        self._known = {track.label: track for track in before.tracks}

    def _settled(self, settled: Sequence[FrameRecovery], took: float) -> list[Result]:
        self._used |= {found.time: self._recent[found.time] for found in settled}
        return [self._result(found, took) for found in settled]

    def _result(self, found: FrameRecovery, took: float) -> Result:
        self._labels = max([self._labels, *(track.label for track in found.tracks)])
        before = self._before(found.time)
        result = make_result(
            self._site, found, self._clock(), took, before=before, known=self._known, labels=self._labels
        )
        if found.tracked is not None:
            oldest = min(self._recent)
            self._made = {when: made for when, made in self._made.items() if when >= oldest} | {found.time: result}
        return result

    def _before(self, when: int) -> Result | None:
        """The last result before a time: that of the store, unless ours is later and only waits to be saved."""
        stored = self._store.results.last_followed(self._site.name, when)
        ours = max((result for result in self._made.values() if result.time < when), key=_time, default=None)
        if ours is None or (stored is not None and (stored.time, stored.settled) >= (ours.time, ours.settled)):
            return stored
        return ours


class Solver:
    """Recovers frames of one site, one by one or in batches; for one thread.

    A result's map is what a picture shows: the expected number of sources at each place, if the estimator gives it.
    With a `store`, sources are followed through its frames where the site allows it.
    """

    def __init__(self, site: CollectedSite, store: Store | None = None, *, clock: Clock = unix_ms) -> None:
        self.site = site
        self._clock = clock
        self._recoverer = FrameRecoverer(site.site, site.cloak)
        self._follower = Follower(site, store, clock) if store is not None and site.follows else None

    def prepare(self) -> float:
        """Compile and factor the model, so that the first frame does not wait; returns the seconds it took.

        Where sources are followed, few frames are recovered alone: that is compiled with the first that is.
        """
        began = time.perf_counter()
        steps = np.rint(self.site.site.baselines / self.site.cloak.steps).astype(np.int64)
        quiet = Frame(0, steps, np.ones(len(steps), bool))
        if self._follower is not None:
            self._follower.prepare(quiet)
        else:
            self._recoverer.recover([quiet], keep=False)
        return time.perf_counter() - began

    def solve(self, frames: Sequence[Frame], *, keep: bool = True, before: Result | None = None) -> list[Result]:
        """Return a result for every frame, in the order of time; a frame that fails does not stop the others.

        With `keep`, later frames continue from these. `before` is the result before the first frame. Where sources are
        followed, the frames are in the order of time, and results of earlier ones that settled are returned too.
        """
        began = time.perf_counter()
        failures = {frame.time: reason for frame in frames if (reason := self.site.unusable(frame))}
        usable = [frame for frame in frames if frame.time not in failures]
        results = [] if self._follower is None else self._follow(self._follower, usable)
        followed = {result.time for result in results if not result.settled}
        alone = self._recover([frame for frame in usable if frame.time not in followed], failures, keep=keep)
        took = 1000 * (time.perf_counter() - began) / max(1, len(frames))
        for found in alone:
            before = make_result(self.site, found, self._clock(), took, before=before)
            results.append(before)
        sensors = {frame.time: max(1, frame.reported) for frame in frames}
        results += [self._failure(when, sensors[when], reason, took) for when, reason in failures.items()]
        return sorted(results, key=lambda result: result.time)

    def used(self, when: int) -> Mapping[str, int]:
        """The readings that a settled result was made from, by sensor."""
        return {} if self._follower is None else self._follower.used(when)

    def _follow(self, follower: Follower, frames: Sequence[Frame]) -> list[Result]:
        """Follow sources through frames; a frame that fails is left out, and the next begins anew."""
        results: list[Result] = []
        for frame in frames:
            try:
                results += follower.take(frame)
            except StoreError:
                follower.reset()
                raise
            except Exception as problem:
                follower.reset()
                log.info("%s: the frame of %d was not followed (%s)", self.site.name, frame.time, _reason(problem))
        return results

    def _recover(self, frames: Sequence[Frame], failures: dict[int, str], *, keep: bool) -> list[FrameRecovery]:
        """Recover frames together; if that fails, one by one, and add those that still fail to `failures`."""
        if not frames:
            return []
        name = self.site.name
        try:
            return self._recoverer.recover(frames, keep=keep)
        except Exception as problem:
            log.info("%s: a batch of %d frames failed (%s); trying each alone", name, len(frames), _reason(problem))
        recovered: list[FrameRecovery] = []
        for frame in frames:
            try:
                recovered += self._recoverer.recover([frame], keep=keep)
            except Exception as problem:
                failures[frame.time] = _reason(problem)
                log.exception("%s: nothing could be recovered from the frame of %d", name, frame.time)
        return recovered

    def _failure(self, when: int, sensors: int, reason: str, took: float) -> Result:
        return Result(
            site=self.site.name,
            time=when,
            sensors=sensors,
            expected=len(self.site.ids),
            estimator=self.site.estimator_name,
            status=f"{FAILED}: {reason}",
            gap=math.nan,
            fit=math.nan,
            set_aside=(),
            counts=None,
            sources=(),
            map=None,
            solved=self._clock(),
            took_ms=took,
        )


def _time(result: Result) -> int:
    return result.time


def _reason(problem: Exception) -> str:
    """The text of our own errors; of others only the type, because their text may quote anything."""
    return str(problem) if isinstance(problem, CloakworkError) else f"the solver raised {type(problem).__name__}"
