"""Follows the sources of a site through its stored frames."""

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.frame_results import make_result, place_of
from cloakwork.collect.physics_watch import PhysicsWatch
from cloakwork.collect.storage import RecoveredTrack, Result, Store
from cloakwork.readings import Frame, FrameRecovery, FrameTracker, values_of
from cloakwork.recovery import Tracker

REPLAYED = 60  # stored frames from which a tracker is rebuilt


class Follower:
    """Takes the frames of one site in the order of time and makes their results; for one thread.

    Before it judges a frame, it takes every stored frame that came between: after a restart or an erasure the last few,
    else those that only another collector received. Its tracks have the labels of the stored results. So collectors on
    one store, and one that was restarted, agree. Frames that come late are worked in, or recovered alone if they come
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
        self._said: tuple[RecoveredTrack, ...] = ()  # our tracks of the newest frame
        self._labels = 0  # the largest label so far
        self._known: dict[int, RecoveredTrack] = {}  # tracks whose labels are from the store

    def prepare(self) -> None:
        """Build the model and compile, so that the first frame does not wait."""
        steps = np.rint(self._site.baselines / self._site.cloak.steps).astype(np.int64)
        self._new_tracker().step(Frame(0, steps, np.ones(len(steps), bool)))

    def reset(self) -> None:
        """Start again from the stored frames."""
        self._tracker, self._newest, self._recent, self._used = None, 0, {}, {}
        self._said, self._known = (), {}

    def take(self, frame: Frame) -> list[Result]:
        """Take a frame; returns its result after those that it settled."""
        began = time.perf_counter()
        tracker = self._current()
        late = frame.time <= self._newest
        results = [] if late else self._catch_up(tracker, frame.time)
        before = self._store.results.last_followed(self._site.name, frame.time)
        if before is not None and not late:
            self._take_labels(tracker, before)
        found = self._step(tracker, frame)
        took = 1000 * (time.perf_counter() - began)
        results += self._settled(tracker.settled, took)
        result = self._result(found, took, before)
        if found.tracked is not None and not late:
            self._said = result.tracks
        return [*results, result]

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
        values = self._store.frames.values(name, [frame.time for frame in stored]) if stored else {}
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
        if before.tracks == self._said:
            return
        places = {track.label: place_of(self._site, track) for track in before.tracks}
        self._labels = max(self._labels, before.labels or 0)
        tracker.tracker.resume({label: at for label, at in places.items() if at is not None}, self._labels)
        self._known = {track.label: track for track in before.tracks}

    def _settled(self, settled: Sequence[FrameRecovery], took: float) -> list[Result]:
        name, results = self._site.name, self._store.results
        self._used |= {found.time: self._recent[found.time] for found in settled}
        return [self._result(found, took, results.last_followed(name, found.time)) for found in settled]

    def _result(self, found: FrameRecovery, took: float, before: Result | None) -> Result:
        self._labels = max([self._labels, *(track.label for track in found.tracks)])
        return make_result(
            self._site, found, self._clock(), took, before=before, known=self._known, labels=self._labels
        )
