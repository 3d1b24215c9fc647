"""Following sources through the frames of a site: the same for a file, a store and live readings."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError, SiteError
from cloakwork.privacy import Cloak
from cloakwork.readings.frame_recovery import FrameRecoverer, FrameRecovery
from cloakwork.readings.readings_file import Frame
from cloakwork.recovery import FloorTracker, PointSources, Progress, Tracked, Tracker, samples_locally, smooth
from cloakwork.site import Site


class FrameTracker:
    """Follows the sources of a site from frame to frame.

    A frame that comes late is worked in while it is within the tracker's window, and is itself recovered alone; so is
    one that comes too late to be worked in. A frame that comes again, with more readings, replaces the first. With
    `lag`, each moment is judged again when so many later frames are there: `settled` holds the moments that the last
    step settled, in order of time. On a large floor no moment is judged again.
    """

    def __init__(self, site: Site, cloak: Cloak, *, lag: int = 0, seed: int = 0) -> None:
        self._site, self._cloak, self._lag = site, cloak, 0 if samples_locally(site.physics) else lag
        self.tracker = site_tracker(site, cloak, lag=lag, seed=seed)
        self._alone = FrameRecoverer(site, cloak)
        self._waiting: dict[float, Frame] = {}  # the last frames, which are not settled yet
        self.settled: list[FrameRecovery] = []

    def step(self, frame: Frame) -> FrameRecovery:
        """Take the next frame and return what is known of its moment."""
        time = seconds(frame)
        self.settled = []
        try:
            values = values_of(frame, self._site, self._cloak)
            now = self.tracker.step(values, time, again=time in self._waiting)
        except InputError as problem:
            if "time" not in problem.values:
                raise
            return self._alone.recover([frame], keep=False)[0]
        newest = sorted((self._waiting | {time: frame}).items())[-1 - self._lag :]
        self._waiting = dict(newest)
        self.settled = [followed(self._waiting[past.time], past, settled=True) for past in self.tracker.settled]
        return followed(frame, now) if now.time == time else self._alone.recover([frame], keep=False)[0]


def site_tracker(site: Site, cloak: Cloak, *, lag: int = 0, seed: int = 0) -> Tracker | FloorTracker:
    """A tracker of a site's sources, which must be such as can be followed."""
    estimator = site.estimator().estimator
    if not isinstance(estimator, PointSources):
        raise SiteError(f"the sources of {site.name} are not followed: {site.not_followed}.", site=site.name)
    if samples_locally(cloak.physics):
        return FloorTracker(
            cloak, motion=site.motion, most=estimator.most, level=estimator.level, seed=seed, drift=site.drift
        )
    return Tracker(
        cloak,
        motion=site.motion,
        strength=estimator.strength,
        most=estimator.most,
        level=estimator.level,
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
        raise SiteError(f"the floor of {site.name} is too large to judge a moment from later frames.", site=site.name)
    past = smooth(tracker, [(values_of(frame, site, cloak), seconds(frame)) for frame in frames], progress)
    return [followed(frame, moment, settled=True) for frame, moment in zip(frames, past.moments, strict=True)]


def settled_frames(
    frames: Iterable[Frame], site: Site, cloak: Cloak, *, lag: int, seed: int = 0
) -> Iterator[FrameRecovery]:
    """Follow sources through any number of frames, in order of time, and judge each from those up to `lag` later.

    The last `lag` frames are judged from those before them, and on a large floor all are.
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


def seconds(frame: Frame) -> float:
    """The time of a frame as a tracker takes it."""
    return frame.time / 1000


def values_of(frame: Frame, site: Site, cloak: Cloak) -> FloatArray:
    """The readings of a frame less the baselines, NaN for sensors that did not report."""
    return np.where(frame.present, frame.steps * cloak.steps - site.baselines, np.nan)


def followed(frame: Frame, moment: Tracked, *, settled: bool = False) -> FrameRecovery:
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
