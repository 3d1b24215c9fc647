"""From frames to the results that the store keeps: sources, tracks, and whether somebody is in each zone."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.collect.collected_site import Collected, CollectedSite
from cloakwork.collect.physics_watch import PhysicsWatch
from cloakwork.collect.storage import (
    FAILED,
    RecoveredSource,
    RecoveredTrack,
    Result,
    Store,
    ZoneState,
    pack_map,
    unix_ms,
)
from cloakwork.errors import CloakworkError, StoreError
from cloakwork.readings import Frame, FrameRecoverer, FrameRecovery, FrameTracker, values_of
from cloakwork.recovery import PointSources, Tracker
from cloakwork.site import Site

REPLAYED = 60  # stored frames from which a tracker is rebuilt
DOUBTFUL_TRACK = 0.1  # tracks that are less likely are left out
LIKELY = 0.5
SURE = 0.1  # if the odds are right, at most one change in ten by this rule is wrong
log = logging.getLogger(__name__)


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


def zone_states(
    site: Site, found: FrameRecovery, before: Sequence[ZoneState], *, hold_ms: int
) -> tuple[ZoneState, ...]:
    """The state of each zone at a frame, given the states `before` it; missing zones start unknown.

    A zone changes at once when a tracker is sure, with a probability of someone there below 10 or above 90 %. In
    between it keeps its state until the other one has been more likely for `hold_ms`. The odds of a frame that was
    recovered alone forget all frames before, so there `hold_ms` always counts.
    """
    last = {state.id: state for state in before}
    expected = [float(found.shown[zone.places].sum()) for zone in site.zones]
    chances: Sequence[float | None] = [None] * len(expected)
    doubt = 0.0 if found.tracked is None else SURE
    if found.tracked is not None:
        chances = [found.tracked.anyone(zone.places) for zone in site.zones]
    elif found.counts is not None:
        chances = _chances(site, found, expected, 1.0 - float(found.counts[0]))
    return tuple(
        held_state(ZoneState(zone.id, number, chance), found.time, last.get(zone.id), hold_ms=hold_ms, doubt=doubt)
        for zone, number, chance in zip(site.zones, expected, chances, strict=True)
    )


def held_state(now: ZoneState, time: int, before: ZoneState | None, *, hold_ms: int, doubt: float = SURE) -> ZoneState:
    """The state of a zone, which keeps the one `before` until the other has been likelier for `hold_ms`, or is sure."""
    if now.probability is None:
        return now
    likely = now.probability >= LIKELY
    if before is None or before.occupied is None or before.seen is None:
        return replace(now, occupied=likely, seen=time)
    sure = not doubt <= now.probability <= 1 - doubt
    if likely != before.occupied and (sure or time - before.seen >= hold_ms):
        return replace(now, occupied=likely, since=time, seen=time)
    seen = time if likely == before.occupied else before.seen
    return replace(now, occupied=before.occupied, since=before.since, seen=seen)


def _chances(site: Site, found: FrameRecovery, expected: Sequence[float], anyone: float) -> list[float]:
    """The probability that at least one source is in each zone, for a frame that was recovered alone.

    Notes
    -----
    A map holds the expected number of sources at each place, so its sum over a zone is the expected number there. The
    probability of any source there does not follow from the map alone: two sources that are each here or there with
    even odds have the same map as one here and one there. So each place of the map is attributed to the nearest
    recovered source. A source that is real with probability p and has a share s of its part of the map in the zone is
    there with probability p s; if its part has k > 1 sources when it is real, p (1 - (1 - s)^k). Sources are taken as
    independent. The outcome never exceeds two bounds that always hold: the expected number, and the probability that
    there is any source at all. If no source is listed, the whole map belongs to one, which is real with that
    probability.
    """
    chances = [source.probability for source in found.sources] or [anyone]
    space = site.physics.space
    nearest: IntArray = np.zeros(len(space), dtype=np.int64)
    if found.sources:
        nearest = np.argmin(np.stack([space.distances(source.place) for source in found.sources]), axis=0)
    whole = np.bincount(nearest, found.shown, minlength=len(chances)).tolist()
    outcome = []
    for zone, number in zip(site.zones, expected, strict=True):
        inside = np.bincount(nearest[zone.places], found.shown[zone.places], minlength=len(chances)).tolist()
        empty = 1.0
        for chance, total, part in zip(chances, whole, inside, strict=True):
            if part > 0 and chance > 0:
                empty *= 1.0 - chance * (1.0 - math.pow(1.0 - min(1.0, part / total), max(1.0, total / chance)))
        outcome.append(min(1.0 - empty, number, anyone))
    return outcome


def make_result(
    site: CollectedSite,
    found: FrameRecovery,
    solved: int,
    took_ms: float,
    *,
    before: Result | None = None,
    known: Mapping[int, RecoveredTrack] | None = None,
    last_label: int = 0,
) -> Result:
    """Convert a recovered frame to the record that the store keeps; `solved` is in Unix milliseconds.

    `before` is the result before it. `known` are earlier records of its tracks, which may have begun before this
    process did, and `last_label` is the largest label so far.
    """
    tracks = sorted(_tracks(site, found, known or {}), key=lambda track: -track.probability)
    return Result(
        site=site.name,
        time=found.time,
        sensors=found.sensors,
        expected=len(site.ids),
        estimator=site.estimator_name,
        status=found.status.name.lower(),
        gap=found.gap,
        fit=found.fit.p_value,
        set_aside=tuple(site.ids[sensor] for sensor in found.fit.set_aside),
        counts=None if found.counts is None else tuple(float(chance) for chance in found.counts),
        sources=tuple(
            RecoveredSource(
                **_spot(site, source.place, source.at),
                weight=float(source.weight),
                radius=float(source.radius),
                probability=float(source.probability),
                label=label,
                vicinity=tuple(source.vicinity.tolist()),
            )
            for source, label in zip(found.sources, found.labels, strict=True)
        ),
        map=pack_map(found.shown),
        solved=solved,
        took_ms=took_ms,
        settled=found.settled,
        labels=None if found.tracked is None else last_label,
        tracks=tuple(tracks),
        zones=zone_states(site.site, found, (before and before.zones) or (), hold_ms=site.hold_ms),
    )


def failure(site: Collected, frame: Frame, reason: str, *, solved: int) -> Result:
    """The record of a frame from which nothing could be recovered."""
    return Result(
        site=site.name,
        time=frame.time,
        sensors=frame.reported,
        expected=len(site.ids),
        estimator=site.estimator_name,
        status=f"{FAILED}: {reason}",
        gap=math.nan,
        fit=math.nan,
        set_aside=tuple(site.ids[row] for row in frame.aside),
        counts=None,
        sources=(),
        map=None,
        solved=solved,
        took_ms=0.0,
    )


def reason_of(problem: Exception) -> str:
    """The text of our own errors; of others only the type, because their text may quote anything."""
    return str(problem) if isinstance(problem, CloakworkError) else f"the solver raised {type(problem).__name__}"


def _tracks(site: CollectedSite, found: FrameRecovery, known: Mapping[int, RecoveredTrack]) -> Iterator[RecoveredTrack]:
    sources = dict(zip(found.labels, found.sources, strict=True))
    for track in found.tracks:
        if track.probability < DOUBTFUL_TRACK:
            continue
        source, earlier = sources.get(track.label), known.get(track.label)
        since = round(1000 * track.since)
        yield RecoveredTrack(
            **_spot(site, track.places[-1], track.positions[-1]),
            label=track.label,
            since=since if earlier is None else min(since, earlier.since),
            weight=_strength(site) if source is None else float(source.weight),
            radius=None if source is None else float(source.radius),
            probability=float(track.probability),
            same=float(
                track.identity_probability if earlier is None else min(track.identity_probability, earlier.same)
            ),
        )


def _spot(site: CollectedSite, place: int, at: object) -> dict[str, Any]:
    """The place of a source or track: its number and coordinates, or the name of a node."""
    space = site.site.physics.space
    if space.labels is not None or not space.places.shape[1]:
        return {"place": space.name(place), "at": ()}
    return {"place": str(place), "at": tuple(float(value) for value in np.atleast_1d(np.asarray(at)))}


def places_of(site: CollectedSite, tracks: Sequence[RecoveredTrack]) -> dict[int, int]:
    """The number of the place of each stored track by its label, without those whose place the site no longer has."""
    space = site.site.physics.space
    numbers = {str(number) if space.places.shape[1] else space.name(number): number for number in range(len(space))}
    return {track.label: numbers[track.place] for track in tracks if track.place in numbers}


def _strength(site: CollectedSite) -> float:
    """The weight that a source is followed with."""
    estimator = site.estimator.estimator
    if isinstance(estimator, PointSources) and isinstance(estimator.strength, int | float):
        return float(estimator.strength)
    return 1.0
