"""Follow sources over time: observe, predict, draw, check, associate, summarise."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray
from cloakwork.errors import InputError, ReadingError
from cloakwork.physics import Drift, Nuisance, Physics
from cloakwork.recovery.floors.floor_sources import MAX_SOURCES
from cloakwork.recovery.goodness_of_fit import Misfit, draw_checked
from cloakwork.recovery.point_sources import PointSources
from cloakwork.recovery.problem import CloakLike
from cloakwork.recovery.recover import resolve_problem
from cloakwork.recovery.tracking.alignment import Aligner
from cloakwork.recovery.tracking.drifting_offsets import OffsetBelief
from cloakwork.recovery.tracking.estimate import FrameEstimate, Summariser
from cloakwork.recovery.tracking.motion import Motion, MotionModel
from cloakwork.recovery.tracking.observation import Observer
from cloakwork.recovery.tracking.path_sampler import Drawing, PathSampler
from cloakwork.recovery.tracking.registry import Registry
from cloakwork.recovery.tracking.window import TrackMarginals

WINDOW = 6  # frames whose paths are drawn together
MIN_BEFORE = 4  # frames of the window before a final moment: beliefs about each source alone are too sure
JUDGED = 3  # a final moment sums the steps of the last third of its lag: one step has few draws
MAX_LAG = 100
MAX_CHAINS = 128


class Tracker:
    """Follow sources from frame to frame.

    Parameters
    ----------
    model
        The cloak that released the readings, or a physics together with `sigma`.
    motion
        How sources move: by default `Motion()`, which fits people, on a floor plan, and `Motion.still()` elsewhere.
    strength
        The weight of a source, in units of the physics: one number if known, a pair (low, high) if each source has its
        own in between, or None if all have the same unknown weight up to 1.
    max_sources
        Largest number of sources at one time.
    confidence
        The probability with which a vicinity holds its source.
    sigma
        With a physics: the noise of each reading.
    seed
        Seed of the random numbers.
    lag
        Judge each moment again once `lag` more frames are there, as `FrameEstimate.final`; 0 for never.
    chains
        Number of independent chains, even. Twice as many take nearly twice as long and make estimates steadier.
    drift
        How readings wander without any source: offsets that the tracker learns as it goes.

    Notes
    -----
    A tracker only processes released readings, so it costs no privacy. It draws the paths of all sources over the last
    few frames from their joint posterior. What earlier frames say is a belief about each source, with ties between
    sources that sit side by side. With one source, or while all frames fit into the window, this is the exact posterior
    up to the number of draws.

    >>> from cloakwork.physics import HeatLine, sources
    >>> line = HeatLine(n=50, m=25, T=0.05)
    >>> tracker = Tracker(line, sigma=0.5, max_sources=2)
    >>> for minute in range(5):
    ...     now = tracker.step(line.apply(sources(line, [0.3])), 60.0 * minute)
    >>> [round(source.at, 1) for source in now.sources], int(now.counts.argmax())
    ([0.3], 1)
    """

    def __init__(
        self,
        model: CloakLike | Physics,
        *,
        motion: Motion | None = None,
        strength: float | tuple[float, float] | None = 1.0,
        max_sources: int = 4,
        confidence: float = 0.9,
        sigma: ArrayLike | None = None,
        seed: int = 0,
        lag: int = 0,
        chains: int = 8,
        drift: Drift | Nuisance | None = None,
    ) -> None:
        prior = PointSources(strength, max_sources=max_sources, confidence=confidence).prior
        if max_sources > MAX_SOURCES:
            raise InputError(
                f"max_sources={max_sources}: a tracker follows at most {MAX_SOURCES} sources.", max_sources=max_sources
            )
        if not (isinstance(lag, int) and 0 <= lag <= MAX_LAG):
            raise InputError(f"lag={lag!r}: give a whole number of frames from 0 to {MAX_LAG}.", lag=lag)
        if chains not in range(2, MAX_CHAINS + 1, 2):
            raise InputError(f"chains={chains!r}: give an even number from 2 to {MAX_CHAINS}.", chains=chains)
        problem = resolve_problem(model, sigma, drift)
        self.problem, self.lag = replace(problem, offsets=None), lag
        motion = motion or (Motion.still() if self.problem.physics.floor is None else Motion())
        self.observer = observer = Observer(self.problem, prior.high)
        doors = None if motion.entrances is None else observer.distances_to(motion.entrances)
        self.moves = MotionModel(motion, observer.distances, observer.spacing, doors)
        offsets = None if problem.offsets is None else OffsetBelief.stationary(problem.offsets, chains)
        self.aligner, rng = Aligner(observer.distances), np.random.default_rng(seed)
        self.sampler = PathSampler(self.moves, prior, observer.columns, self.aligner, rng, chains, offsets)
        self.registry = Registry(observer, self.aligner, self.sampler)
        self.summariser = Summariser(observer, self.aligner, confidence)

    def __repr__(self) -> str:
        return f"Tracker({self.observer.places} places, lag={self.lag})"

    def step(
        self, readings: ArrayLike, time: float, *, again: bool = False, ignored: Collection[int] = ()
    ) -> FrameEstimate:
        """Take the readings of one frame and return what is known now.

        Parameters
        ----------
        readings
            One for each sensor, in the unit of the physics, NaN where missing.
        time
            In seconds. A late frame counts if its time is within the last frames; the estimate is that of the latest.
        again
            Whether more readings of one of the last frames have come, which replace those that it had.
        ignored
            Sensors whose readings do not count, such as those that a `FaultDetector` has found.
        """
        values = checked_readings(readings, self.problem.physics.sensors)
        missing = frozenset(np.flatnonzero(np.isnan(values)).tolist())
        frames = self.sampler.frames
        index, new = self._index(time, again=again)
        if new:
            self.sampler.insert(index, time, self.observer.observe(values, missing))
        if not new or index < len(frames) - 1:  # what was found so far did not know of these readings
            for frame in frames:
                frame.marginals = None
        waiting = [t for t in range(self._waiting) if not frames[t].final]

        def draw(excluded: frozenset[int], inflation: float) -> tuple[Drawing, Misfit]:
            frames[index].observe(self.observer.observe(values, excluded, inflation))
            drawing = self.sampler.draw(index, {*waiting, len(frames) - 1})
            return drawing, self.observer.misfit(frames[index].observation, drawing.sources)

        # faults are tested on the first draws: from the model as it is, even if the frame does not fit
        first, drawing, frames[index].fit = draw_checked(draw, missing, frozenset(ignored), remedies=1)
        estimate = self._live(drawing.marginals[len(frames) - 1])
        for t in waiting:
            frames[t].marginals = drawing.marginals[t] + frames[t].marginals
        final = tuple(self._final(t) for t in waiting if t < len(frames) - self.lag)
        while len(frames) > max(WINDOW, self.lag + MIN_BEFORE):
            self.drop_first()
        return replace(estimate, final=final, draws=first.sources)

    def resume(self, places: Mapping[int, int], last_label: int = 0) -> None:
        """Continue the labels of an earlier tracker that took the same frames.

        `places` maps each label of its last estimate to the place of the track. Tracks nearby take these labels, others
        keep theirs unless it is taken, and new labels are above `last_label` and all that are in use.
        """
        self.registry.resume(places, last_label)

    def drop_first(self) -> None:
        """Take the first frame out of the window."""
        order = self.sampler.align(0)
        self.registry.forget_first(self.sampler.frames[0].time)
        self.sampler.drop_first(order)

    @property
    def _waiting(self) -> int:
        """The number of frames of the window that are judged from later ones in this step."""
        return max(0, len(self.sampler.frames) - self.lag + self.lag // JUDGED) if self.lag else 0

    def _live(self, marginals: TrackMarginals) -> FrameEstimate:
        """Associate and summarise the last frame."""
        frame, centres = self.sampler.frames[-1], self.aligner.centres(marginals.tracks)
        return self.summariser.summarise(frame.time, marginals, centres, self.registry.update(centres), frame.fit)

    def _final(self, index: int) -> FrameEstimate:
        """Associate and summarise a frame for the last time."""
        frame = self.sampler.frames[index]
        marginals, frame.final = frame.marginals or self.sampler.no_marginals(), True
        centres = self.aligner.centres(marginals.tracks)
        tracks = self.registry.finalise(index, centres)
        return self.summariser.summarise(frame.time, marginals, centres, tracks, frame.fit)

    def _index(self, time: float, *, again: bool) -> tuple[int, bool]:
        """Return where in the window a frame of this time belongs, and whether it is new."""
        times, before = [frame.time for frame in self.sampler.frames], self.sampler.before
        check_time(time)
        if again and time in times:
            return times.index(time), False
        if time in times or time == before:
            raise InputError(f"time={time:g}: there is a frame of this time already.", time=time)
        if before is not None and time < times[0]:
            raise InputError(
                f"time={time:g}: this frame comes too late, before the last {len(times)} frames, which begin at "
                f"{times[0]:g}. Leave it out.",
                time=time,
            )
        return sum(earlier < time for earlier in times), True


def checked_readings(readings: ArrayLike, sensors: int) -> FloatArray:
    """Return the readings of one frame (m,), NaN where missing; refuse anything but one for each sensor."""
    values = np.asarray(readings, dtype=np.float64)
    if values.shape != (sensors,):
        raise ReadingError(
            f"readings has shape {values.shape}: give one for each of the {sensors} sensors, NaN where missing.",
            shape=values.shape,
        )
    if np.isinf(values).any():
        raise ReadingError("a reading is infinite: give NaN for a missing reading.", readings=math.inf)
    return values


def check_time(time: float) -> None:
    """Refuse a time that is not a finite number."""
    if not (isinstance(time, int | float) and math.isfinite(time)):
        raise InputError(f"time={time!r}: give seconds as a finite number.", time=time)
