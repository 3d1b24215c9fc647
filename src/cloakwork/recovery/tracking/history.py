"""Follow sources through recorded frames: each moment is judged from all readings, before and after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError
from cloakwork.physics import Drift, Nuisance, Physics
from cloakwork.recovery.estimator import Progress
from cloakwork.recovery.problem import CloakLike
from cloakwork.recovery.tracking.alignment import Centres
from cloakwork.recovery.tracking.estimate import FrameEstimate, Track
from cloakwork.recovery.tracking.motion import Motion
from cloakwork.recovery.tracking.tracker import Tracker
from cloakwork.recovery.tracking.window import WindowFrame

WARM_UP = 4  # sweeps over all frames before any counts
FINDING = 4  # sweeps whose draws find the tracks
COUNTING = 16


@dataclass(frozen=True, eq=False)
class TrackHistory:
    """The moments of a recording, each given all readings, before and after it.

    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=50, m=25, T=0.05)
    >>> history = track([line.apply(sources(line, [0.3]))] * 3, line, sigma=0.5, times=[0, 60, 120], max_sources=2)
    >>> history, [round(float(at), 1) for at in history.tracks[0].positions]
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
    >>> history = track(frames, line, sigma=0.5, times=[0, 60, 120, 180], max_sources=2)
    >>> len(history), [round(source.at, 1) for source in history.moments[0].sources]
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
    report = progress or (lambda *_: None)
    total = len(frames) + WARM_UP + FINDING + COUNTING
    taken: list[WindowFrame] = []
    for done, (readings, time) in enumerate(frames, start=1):
        tracker.step(readings, time)
        taken.append(tracker.sampler.frames[-1])
        report(done, total)
    while tracker.sampler.frames:
        tracker.drop_first()
    smoother = _Smoother(tracker, taken)
    for sweep in range(WARM_UP + FINDING + COUNTING):
        smoother.sweep(sweep)
        report(len(frames) + sweep + 1, total)
    return TrackHistory(tuple(smoother.moments()))


class _Smoother:
    """Paths over all frames of a recording, which begin where a tracker left them."""

    def __init__(self, tracker: Tracker, taken: Sequence[WindowFrame]) -> None:
        self.tracker, self.sampler, self.aligner = tracker, tracker.sampler, tracker.aligner
        sampler = self.sampler
        sampler.forget()
        sampler.frames[:] = taken
        sampler.chains.states = np.stack([frame.states for frame in taken], axis=2)
        sampler.chains.numbers = np.zeros_like(sampler.chains.states)
        self.marginals = [sampler.no_marginals() for _ in taken]
        self.drawn: list[IntArray] = []  # cells (frames, chains, slots) of each sweep
        self.orders: list[IntArray] = []  # slots of the tracks (frames, chains, slots) in each sweep that counts
        self.centres: list[Centres] = []

    def sweep(self, number: int) -> None:
        """Draw all paths: the first sweeps warm up, the next ones find the tracks, and the last ones count."""
        sampler, counts = self.sampler, number >= WARM_UP + FINDING
        if number == WARM_UP + FINDING:
            self._find_tracks()
        sampler.exchange()
        sampler.draw_offsets()
        if counts:
            self.drawn.append(self._cells())
            self.orders.append(self._orders(self.drawn[-1]))
        for slot, t, beliefs in sampler.redraw_all(0, 0 if counts else len(sampler.frames)):
            self.marginals[t].add_count(beliefs[:, -1], sampler.others(slot, t))
            self.marginals[t].add(slot, beliefs, sampler.chains.strengths, self.orders[-1][t])
        for marginals in self.marginals:
            marginals.sweeps += counts
        if WARM_UP <= number < WARM_UP + FINDING:
            self.drawn.append(self._cells())

    def _cells(self) -> IntArray:
        return np.stack([self.sampler.cells(t) for t in range(len(self.sampler.frames))])

    def _find_tracks(self) -> None:
        """Find the tracks that the draws have in common."""
        draws = np.concatenate(self.drawn, axis=1)
        order = np.tile(np.arange(draws.shape[2]), (draws.shape[1], 1))
        for cells in draws:
            order, centres = self.aligner.align(cells, order, order)
            self.centres.append(centres)
        self.drawn = []

    def _orders(self, cells: IntArray) -> IntArray:
        """The slot of each track in each chain at each frame, (frames, chains, slots)."""
        orders: list[IntArray] = []
        for centres, here in zip(self.centres, cells, strict=True):
            orders.append(self.aligner.match(centres, here, orders[-1] if orders else None))
        return np.array(orders)

    def moments(self) -> Iterator[FrameEstimate]:
        """Yield the moments, in order of time."""
        present, orders = np.concatenate(self.drawn, axis=1) >= 0, np.concatenate(self.orders, axis=1)
        tracks: list[Track | None] = [None] * self.sampler.slots
        starts: dict[int, tuple[IntArray, NDArray[np.bool_]]] = {}  # the first slot of a track, and whether it goes on
        for t, (marginals, frame) in enumerate(zip(self.marginals, self.sampler.frames, strict=True)):
            centres = self.aligner.centres(marginals.tracks)
            self.tracker.registry.extend(tracks, frame.time, centres)
            for number, track in enumerate(tracks):
                if track is not None:
                    slots = orders[t][:, number]
                    if track.since == frame.time:
                        starts[number] = slots, np.ones(len(slots), dtype=bool)
                    first, unbroken = starts[number]
                    unbroken &= present[t][np.arange(len(slots)), first]
                    here = present[t][np.arange(len(slots)), slots]
                    if here.any():
                        same = float((unbroken & (first == slots))[here].mean())
                        tracks[number] = replace(track, identity_probability=same)
            yield self.tracker.summariser.summarise(frame.time, marginals, centres, tracks, frame.fit)
