"""Follow sources through a whole past: each moment judged from all readings, before and after it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError
from cloakwork.physics import Drift, Nuisance, Physics
from cloakwork.recovery.estimator import Progress
from cloakwork.recovery.fit import Fit
from cloakwork.recovery.motion import Motion
from cloakwork.recovery.problem import CloakLike
from cloakwork.recovery.track_list import Tally, Track, Tracked, TrackList
from cloakwork.recovery.tracker import STARTING, WINDOW, PastFrame, Tracker

SWEEPS = 20  # over all frames
SETTLING = 4  # more before the first that counts


@dataclass(frozen=True, eq=False)
class Tracking:
    """The whole past, smoothed: each moment given all readings, before and after it."""

    moments: tuple[Tracked, ...]

    @property
    def tracks(self) -> tuple[Track, ...]:
        """Every track, as it was when it ended, with its whole path."""
        paths: dict[int, list[Track]] = {}
        for moment in self.moments:
            for track in moment.tracks:
                paths.setdefault(track.label, []).append(track)
        return tuple(
            replace(
                path[-1],
                times=tuple(track.times[-1] for track in path),
                places=tuple(track.places[-1] for track in path),
                positions=tuple(track.positions[-1] for track in path),
            )
            for path in paths.values()
        )

    def __len__(self) -> int:
        return len(self.moments)

    def __repr__(self) -> str:
        times = f", times {self.moments[0].time:.14g} to {self.moments[-1].time:.14g}" if self.moments else ""
        return f"<Tracking of {len(self)} moments{times}, tracks: {len(self.tracks)}>"


def track(
    frames: ArrayLike,
    model: CloakLike | Physics,
    *,
    times: ArrayLike,
    motion: Motion | None = None,
    strength: float | tuple[float, float] | None = 1.0,
    most: int = 4,
    level: float = 0.9,
    sigma: ArrayLike | None = None,
    seed: int = 0,
    drift: Drift | Nuisance | None = None,
    progress: Progress | None = None,
) -> Tracking:
    """Follow sources through frames (frames, m) of given times, each moment judged from all frames.

    The parameters are those of `Tracker`; `progress` is called with (steps done, steps in total).

    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=50, m=25, T=0.05)
    >>> frames = [line.apply(sources(line, [0.3]))] * 4
    >>> past = track(frames, line, sigma=0.5, times=[0, 60, 120, 180], most=2)
    >>> len(past), [round(source.at, 1) for source in past.moments[0].sources]
    (4, [0.3])
    """
    tracker = Tracker(
        model, motion=motion, strength=strength, most=most, level=level, sigma=sigma, seed=seed, drift=drift
    )
    readings, moments = (
        np.atleast_2d(np.asarray(frames, dtype=np.float64)),
        np.ravel(np.asarray(times, dtype=np.float64)),
    )
    if len(readings) != len(moments):
        raise InputError(
            f"{len(readings)} frames but {len(moments)} times: give one time per frame.", times=len(moments)
        )
    order = np.argsort(moments, kind="stable")
    return smooth(tracker, [(readings[k], float(moments[k])) for k in order], progress)


def smooth(tracker: Tracker, frames: Sequence[tuple[FloatArray, float]], progress: Progress | None = None) -> Tracking:
    """Let a new tracker take frames in the order of their times, and judge each moment from all of them."""
    shown = progress or (lambda *_: None)
    total = len(frames) + SETTLING + SWEEPS
    fits: list[Fit] = []
    past: list[PastFrame] = []
    tracker.past = past
    for readings, time in frames:
        fits.append(tracker.step(readings, time).fit)
        shown(len(fits), total)
    tracker.finish()
    sampler = tracker.sampler
    sampler.begin()
    sampler.frames = [entry.frame for entry in past]
    sampler.states = np.stack([entry.states for entry in past], axis=2)
    tallies = [Tally.empty(sampler.slots, sampler.places) for _ in past]
    for sweep in range(SETTLING + SWEEPS):
        _sweep(tracker, past, tallies if sweep >= SETTLING else [])
        shown(len(fits) + sweep + 1, total)
    moments, tracks = [], TrackList(tracker.observer, sampler.slots, tracker.level)
    for tally, entry, fit in zip(tallies, past, fits, strict=True):
        marks = tracks.marks(tally)
        tracks.extend(entry.frame.time, marks)
        tracks.doubt(tally.kept / tally.sweeps)
        moments.append(tracks.summary(entry.frame.time, tally, marks, fit))
    return Tracking(tuple(moments))


def _sweep(tracker: Tracker, past: Sequence[PastFrame], tallies: Sequence[Tally]) -> None:
    """Draw the path of each source over all frames."""
    sampler = tracker.sampler
    sampler.draw_offsets()
    orders = [entry.marks.match(sampler.candidates(t), tracker.observer)[0] for t, entry in enumerate(past)]
    for slot in sampler.rng.permutation(sampler.active(one_spare=len(past) > STARTING)).tolist():
        laws = sampler.smoothed(slot, sampler.redraw(slot)) if tallies else sampler.redraw(slot)
        for t, tally in enumerate(tallies):
            tally.count(laws[t][:, -1], sampler.others(slot, t))
            tally.add({slot: laws[t]}, sampler.strengths, orders[t])
    for tally in tallies:
        tally.sweeps += 1
    for _ in past[::WINDOW]:
        sampler.exchange()
