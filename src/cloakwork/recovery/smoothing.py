"""Follow sources through a whole past: each moment judged from all readings, before and after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.physics import Drift, Nuisance, Physics
from cloakwork.recovery.alignment import Alignment, Marks
from cloakwork.recovery.estimator import Progress
from cloakwork.recovery.goodness_of_fit import Fit
from cloakwork.recovery.motion import Motion
from cloakwork.recovery.path_sampler import WeighedFrame
from cloakwork.recovery.problem import CloakLike
from cloakwork.recovery.track_list import FrameEstimate, Tally, Track, TrackList
from cloakwork.recovery.tracker import STARTING, Tracker

SETTLING = 4  # sweeps over all frames before any counts
FINDING = 4  # sweeps whose draws find the tracks
SWEEPS = 16  # that count


@dataclass(frozen=True, eq=False)
class TrackHistory:
    """The whole past, smoothed: each moment given all readings, before and after it.

    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=50, m=25, T=0.05)
    >>> past = track([line.apply(sources(line, [0.3]))] * 3, line, sigma=0.5, times=[0, 60, 120], max_sources=2)
    >>> past, [round(float(at), 1) for at in past.tracks[0].positions]
    (<TrackHistory of 3 moments, times 0 to 120, tracks: 1>, [0.3, 0.3, 0.3])
    """

    moments: tuple[FrameEstimate, ...]

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
        return f"<TrackHistory of {len(self)} moments{times}, tracks: {len(self.tracks)}>"


def track(
    frames: ArrayLike,
    model: CloakLike | Physics,
    *,
    times: ArrayLike,
    motion: Motion | None = None,
    strength: float | tuple[float, float] | None = 1.0,
    max_sources: int = 4,
    confidence: float = 0.9,
    sigma: ArrayLike | None = None,
    seed: int = 0,
    drift: Drift | Nuisance | None = None,
    progress: Progress | None = None,
) -> TrackHistory:
    """Follow sources through frames (frames, m) of given times, each moment judged from all frames.

    The parameters are those of `Tracker`; `progress` is called with (steps done, steps in total).

    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=50, m=25, T=0.05)
    >>> frames = [line.apply(sources(line, [0.3]))] * 4
    >>> past = track(frames, line, sigma=0.5, times=[0, 60, 120, 180], max_sources=2)
    >>> len(past), [round(source.at, 1) for source in past.moments[0].sources]
    (4, [0.3])
    """
    tracker = Tracker(
        model,
        motion=motion,
        strength=strength,
        max_sources=max_sources,
        confidence=confidence,
        sigma=sigma,
        seed=seed,
        drift=drift,
    )
    readings = np.atleast_2d(np.asarray(frames, dtype=np.float64))
    moments = np.ravel(np.asarray(times, dtype=np.float64))
    if len(readings) != len(moments):
        raise InputError(
            f"{len(readings)} frames but {len(moments)} times: give one time per frame.", times=len(moments)
        )
    order = np.argsort(moments, kind="stable")
    return smooth(tracker, [(readings[k], float(moments[k])) for k in order], progress)


def smooth(
    tracker: Tracker, frames: Sequence[tuple[FloatArray, float]], progress: Progress | None = None
) -> TrackHistory:
    """Let a new tracker take frames in the order of their times, and judge each moment from all of them."""
    shown = progress or (lambda *_: None)
    total = len(frames) + SETTLING + FINDING + SWEEPS
    fits: list[Fit] = []
    past: list[tuple[WeighedFrame, IntArray]] = []
    tracker.past = past
    for readings, time in frames:
        fits.append(tracker.step(readings, time).fit)
        shown(len(fits), total)
    tracker.finish()
    paths = _Paths(tracker, past)
    for sweep in range(SETTLING + FINDING + SWEEPS):
        paths.sweep(sweep)
        shown(len(fits) + sweep + 1, total)
    return TrackHistory(tuple(paths.moments(fits)))


class _Paths:
    """Paths over all frames of a past, and what their draws say about each moment.

    The first sweeps settle, draws of the next find the tracks that they have in common, and the last sweeps count.
    """

    def __init__(self, tracker: Tracker, past: Sequence[tuple[WeighedFrame, IntArray]]) -> None:
        self.sampler, self.observer, self.confidence = tracker.sampler, tracker.observer, tracker.confidence
        sampler = self.sampler
        sampler.begin()
        sampler.frames = [frame for frame, _ in past]
        sampler.states = np.stack([states for _, states in past], axis=2)
        sampler.tracks = np.zeros_like(sampler.states)
        self.tallies = [Tally.empty(sampler.slots, sampler.places) for _ in past]
        self.drawn: list[IntArray] = []  # (chains, slots, frames), -1 if absent
        self.orders: list[IntArray] = []  # (frames, chains, slots)
        self.marks: list[Marks] = []

    def sweep(self, number: int) -> None:
        """Draw the path of each source over all frames."""
        sampler, counts = self.sampler, number >= SETTLING + FINDING
        if number == SETTLING + FINDING:
            self._find()
        sampler.draw_offsets()
        orders = self._order() if counts else []
        for slot in sampler.rng.permutation(sampler.active(one_spare=len(self.tallies) > STARTING)).tolist():
            laws = sampler.redraw(slot)
            for t, law in enumerate(sampler.smoothed(laws) if counts else ()):
                self.tallies[t].count(law[:, -1], sampler.others(slot, t))
                self.tallies[t].add({slot: law}, sampler.strengths, orders[t])
        for tally in self.tallies:
            tally.sweeps += counts
        sampler.exchange()
        if SETTLING <= number < SETTLING + FINDING:
            self.drawn.append(self._candidates())

    def _candidates(self) -> IntArray:
        return np.stack([self.sampler.candidates(t) for t in range(len(self.tallies))], axis=2)

    def _find(self) -> None:
        """Find the tracks that the draws have in common."""
        states = np.concatenate(self.drawn)
        order = np.tile(np.arange(states.shape[1]), (len(states), 1))
        for t in range(states.shape[2]):
            aligned = Alignment.of(np.ascontiguousarray(states[:, :, t]), order, order, self.observer)
            order = aligned.order
            self.marks.append(aligned.marks)
        self.drawn = []

    def _order(self) -> list[IntArray]:
        """The slot of each track in each chain, (chains, slots), at each frame."""
        orders: list[IntArray] = []
        for t, marks in enumerate(self.marks):
            orders.append(marks.match(self.sampler.candidates(t), self.observer, orders[-1] if orders else None))
        self.drawn.append(self._candidates())
        self.orders.append(np.array(orders))
        return orders

    def moments(self, fits: Sequence[Fit]) -> Iterator[FrameEstimate]:
        """The moments, in order of time."""
        frames, tracks = self.sampler.frames, TrackList(self.observer, self.sampler.slots, self.confidence)
        there, orders = np.concatenate(self.drawn) >= 0, np.concatenate(self.orders, axis=1)
        draws = np.arange(len(there))
        started: dict[int, tuple[IntArray, NDArray[np.bool_]]] = {}  # the slot of a track where it began, if it goes on
        for t, (tally, frame, fit) in enumerate(zip(self.tallies, frames, fits, strict=True)):
            marks = tracks.marks(tally)
            tracks.extend(frame.time, marks)
            for number, track in enumerate(tracks.tracks):
                if track is None:
                    continue
                slots = orders[t][:, number]
                if track.since == frame.time:
                    started[number] = slots, np.ones(len(slots), dtype=bool)
                first, unbroken = started[number]
                unbroken &= there[draws, first, t]
                found = there[draws, slots, t]
                if found.any():
                    tracks.tracks[number] = replace(
                        track, identity_probability=float((unbroken & (first == slots))[found].mean())
                    )
            yield tracks.summary(frame.time, tally, marks, fit)
