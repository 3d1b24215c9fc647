"""Recovery of frames of readings, whichever sensors reported: the same for a file, a store and live readings."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError, SiteError
from cloakwork.physics import Drift, Matrix, Nuisance, Physics
from cloakwork.privacy import Cloak
from cloakwork.readings.frame import Frame
from cloakwork.recovery import (
    Fit,
    FloorTracker,
    FrameEstimate,
    PointSources,
    Progress,
    Recovery,
    Source,
    Status,
    Track,
    Tracker,
    recover,
    samples_locally,
    smooth,
)
from cloakwork.site import Site

_KNOWN_PATTERNS = 64
ABSENT = 1e9


@dataclass(frozen=True, eq=False)
class PartialCloak:
    """The parts of a cloak that recovery needs, for the sensors that reported."""

    physics: Physics
    total_sigmas: FloatArray
    steps: FloatArray
    roundings: FloatArray
    offsets: Nuisance | None = None


def partial_cloak(
    cloak: Cloak, present: NDArray[np.bool_], drift: Drift | None = None, *, locally: bool = False
) -> PartialCloak:
    """A cloak restricted to the sensors that are present, with their slow offsets and those by which they drift.

    Sources that are sampled `locally` need all sensors: those without a reading then have too much noise to count.
    """
    wandering = None if drift is None else drift.on(cloak.physics)
    both = wandering if cloak.offsets is None else cloak.offsets.joined(wandering)
    offsets = None if both is None else both.rows(present)
    if present.all():
        return PartialCloak(cloak.physics, cloak.total_sigmas, cloak.steps, cloak.roundings, offsets)
    if locally or samples_locally(cloak.physics):
        sigmas = np.where(present, cloak.total_sigmas, ABSENT * cloak.total_sigmas)
        return PartialCloak(cloak.physics, sigmas, cloak.steps, cloak.roundings, offsets)
    rows = Matrix(cloak.physics.matrix[present], cloak.physics.space)
    return PartialCloak(rows, cloak.total_sigmas[present], cloak.steps[present], cloak.roundings[present], offsets)


@dataclass(frozen=True, eq=False)
class FrameRecovery:
    """The recovery of one frame.

    `sensors` is how many reported, `map` the weight of each place, and `shown` what a picture shows: the expected
    number of sources at each place where the estimator knows it, otherwise the map. `tracked` is what a tracker knows
    of the moment, None if the frame was recovered alone, and `settled` says that it also used frames after it.
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
    tracked: FrameEstimate | None = None
    settled: bool = False

    @property
    def tracks(self) -> tuple[Track, ...]:
        """All tracks that continue, including doubtful ones; none if the frame was recovered alone."""
        return () if self.tracked is None else self.tracked.tracks

    @property
    def labels(self) -> tuple[int | None, ...]:
        """The label of each source's track."""
        return (None,) * len(self.sources) if self.tracked is None else self.tracked.labels


class FrameRecoverer:
    """Recovers frames of a site; keeps a model for each of the last few sets of sensors that reported."""

    def __init__(self, site: Site, cloak: Cloak) -> None:
        self._site = site
        self._cloak = cloak
        self._estimator = site.estimator().estimator
        self._known: LRUCache[bytes, PartialCloak] = LRUCache(_KNOWN_PATTERNS)

    def recover(self, batch: Sequence[Frame]) -> list[FrameRecovery]:
        """Recover the frames of a batch, each alone, in order of time."""
        groups: dict[bytes, list[Frame]] = {}
        for frame in batch:
            groups.setdefault(frame.present.tobytes(), []).append(frame)
        recovered: list[FrameRecovery] = []
        for frames in groups.values():
            present = frames[0].present
            part = self._part(present)
            steps = np.stack([frame.steps[present] for frame in frames])
            values = np.zeros((len(frames), part.physics.sensors))
            used = present if part.physics.sensors == len(present) else slice(None)
            values[:, used] = steps * part.steps[used] - self._site.baselines[present]
            recovered += recovered_frames(recover(values, part, estimator=self._estimator), frames)
        return sorted(recovered, key=lambda frame: frame.time)

    def _part(self, present: NDArray[np.bool_]) -> PartialCloak:
        key = present.tobytes()
        if key not in self._known:
            self._known[key] = partial_cloak(self._cloak, present, self._site.drift, locally=self._site.samples_locally)
        return self._known[key]


def recovered_frames(recovery: Recovery, frames: Sequence[Frame]) -> Iterator[FrameRecovery]:
    """Each frame of a recovered batch, in which all frames have readings of the same sensors."""
    used = np.flatnonzero(frames[0].present)
    solution = recovery.solution
    for k, frame in enumerate(frames):
        fit = recovery.fit[k]
        # a fit counts the sensors that it uses: from here on they are counted among all of the site
        set_aside = tuple(sorted({*used[list(fit.set_aside)].tolist(), *frame.aside}))
        yield FrameRecovery(
            frame.time,
            frame.reported,
            recovery.status[k],
            float(recovery.gap[k]),
            replace(fit, set_aside=set_aside),
            recovery.map[k],
            recovery.map[k] if solution.intensity is None else solution.intensity[k],
            None if solution.counts is None else solution.counts[k],
            recovery.sources[k],
        )


class FrameTracker:
    """Follows the sources of a site from frame to frame.

    A late frame counts while it is within the tracker's window, and is itself recovered alone; so is one that comes
    later than that. A frame that comes again, with more readings, replaces the first. With `lag`, each moment is
    judged again when that many later frames have come: `settled` holds the moments that the last step settled, in order
    of time. With many sources no moment is judged again.
    """

    def __init__(self, site: Site, cloak: Cloak, *, lag: int = 0, seed: int = 0) -> None:
        self._site, self._cloak, self._lag = site, cloak, 0 if site.samples_locally else lag
        self.tracker = site_tracker(site, cloak, lag=lag, seed=seed)
        self._alone = FrameRecoverer(site, cloak)
        self._waiting: dict[float, Frame] = {}  # the last frames, which are not settled yet
        self.settled: list[FrameRecovery] = []

    def step(self, frame: Frame, *, ignored: Collection[int] = ()) -> FrameRecovery:
        """Take the next frame and return what is known of its moment; `ignored` sensors do not count."""
        time = frame.time / 1000
        self.settled = []
        try:
            values = values_of(frame, self._site, self._cloak)
            now = self.tracker.step(values, time, again=time in self._waiting, ignored=ignored)
        except InputError as problem:
            if "time" not in problem.values:
                raise
            return self._alone.recover([frame])[0]
        newest = sorted((self._waiting | {time: frame}).items())[-1 - self._lag :]
        self._waiting = dict(newest)
        self.settled = [followed(self._waiting[past.time], past, settled=True) for past in now.final]
        return followed(frame, now) if now.time == time else self._alone.recover([frame])[0]


def site_tracker(site: Site, cloak: Cloak, *, lag: int = 0, seed: int = 0) -> Tracker | FloorTracker:
    """A tracker of a site's sources; refused where they cannot be followed."""
    estimator = site.estimator().estimator
    if not isinstance(estimator, PointSources):
        raise SiteError(f"the sources of {site.name} are not followed: {site.not_followed}.", site=site.name)
    if site.samples_locally:
        return FloorTracker(
            cloak,
            motion=site.motion,
            max_sources=estimator.max_sources,
            confidence=estimator.confidence,
            seed=seed,
        )
    return Tracker(
        cloak,
        motion=site.motion,
        strength=estimator.strength,
        max_sources=estimator.max_sources,
        confidence=estimator.confidence,
        seed=seed,
        lag=lag,
        chains=site.chains,
        drift=site.drift,
    )


def smoothed_frames(
    frames: Sequence[Frame], site: Site, cloak: Cloak, progress: Progress | None = None
) -> list[FrameRecovery]:
    """Follow sources through all of some frames, in order of time, and judge each moment from all of them."""
    tracker = site_tracker(site, cloak)
    if isinstance(tracker, FloorTracker):
        raise SiteError(f"{site.name} has too many sources to judge a moment from later frames.", site=site.name)
    past = smooth(tracker, [(values_of(frame, site, cloak), frame.time / 1000) for frame in frames], progress)
    return [followed(frame, moment, settled=True) for frame, moment in zip(frames, past.moments, strict=True)]


def settled_frames(
    frames: Iterable[Frame], site: Site, cloak: Cloak, *, lag: int, seed: int = 0
) -> Iterator[FrameRecovery]:
    """Follow sources through any number of frames, in order of time, and judge each from those up to `lag` later.

    The last `lag` frames are judged from those before them, and with many sources all are.
    """
    tracker = FrameTracker(site, cloak, lag=lag, seed=seed)
    live: dict[int, FrameRecovery] = {}
    for frame in frames:
        found = tracker.step(frame)
        if isinstance(tracker.tracker, FloorTracker):
            yield found
            continue
        live[frame.time] = found
        for moment in tracker.settled:
            del live[moment.time]
            yield moment
    yield from live.values()


def values_of(frame: Frame, site: Site, cloak: Cloak) -> FloatArray:
    """The readings of a frame less the baselines, NaN for sensors that did not report."""
    return np.where(frame.present, frame.steps * cloak.steps - site.baselines, np.nan)


def followed(frame: Frame, moment: FrameEstimate, *, settled: bool = False) -> FrameRecovery:
    """The recovery of a frame from what a tracker knows of its moment."""
    return FrameRecovery(
        frame.time,
        frame.reported,
        moment.status,
        moment.gap,
        replace(moment.fit, set_aside=tuple(sorted({*moment.fit.set_aside, *frame.aside}))),
        moment.map,
        moment.intensity,
        moment.counts,
        moment.sources,
        moment,
        settled,
    )
