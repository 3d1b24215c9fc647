"""Follow sources over time: a filter over private readings."""

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.errors import InputError, ReadingError
from cloakwork.physics import Drift, Nuisance, Physics
from cloakwork.recovery.alignment import Marks
from cloakwork.recovery.drifting_offsets import OffsetLaw
from cloakwork.recovery.floors.floor_sources import MAX_SOURCES
from cloakwork.recovery.goodness_of_fit import DOUBTFUL, Fit
from cloakwork.recovery.motion import Motion, MotionModel, Transitions
from cloakwork.recovery.observation import Observation, Observer
from cloakwork.recovery.path_sampler import PathSampler, WeighedFrame
from cloakwork.recovery.path_steps import Beliefs
from cloakwork.recovery.point_sources import PointSources
from cloakwork.recovery.problem import CloakLike
from cloakwork.recovery.recover import resolve_problem
from cloakwork.recovery.track_list import FOLLOWED, FrameEstimate, Tally, TrackList

WINDOW = 6  # frames whose paths are drawn together; what came before is a belief about each source
BEFORE = 4  # of them, at least, up to a moment that is settled: a belief about each source alone is too sure
EARLIER = 3  # a moment is judged in the steps of the last third of its lag: one step has few draws
RECENT = 3  # frames that the first sweep of a step draws again
FIRST_SWEEPS = 40  # over the first frames, when the chains start from nothing
STARTING = 3
DRIFTING = 2  # sweeps that count where offsets are drawn too: paths wait for them, and they for the paths
LONGEST_LAG = 100
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
        After how many more frames a moment is settled, that is, judged from the frames after it as well; 0 for never.
        `settled` has the moments that the last step settled, usually one. Their tracks have the labels of the live
        tracks that follow the same sources.
    chains
        Number of independent chains, even. Twice as many take nearly twice as long and make what is stated steadier.
    drift
        How readings wander without any source: offsets that the tracker learns as it goes.

    Notes
    -----
    A tracker only processes released readings, so it costs no privacy. Over the last few frames, it draws the paths of
    all sources from their joint posterior; it holds earlier frames as one belief per source, and as ties between those
    that sit side by side. With one source, or while all frames fit into the window, this is the exact posterior up to
    the number of draws.

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
        if not (isinstance(lag, int) and 0 <= lag <= LONGEST_LAG):
            raise InputError(f"lag={lag!r}: give a whole number of frames from 0 to {LONGEST_LAG}.", lag=lag)
        if chains not in range(2, MAX_CHAINS + 1, 2):
            raise InputError(f"chains={chains!r}: give an even number from 2 to {MAX_CHAINS}.", chains=chains)
        stated = resolve_problem(model, sigma, drift)
        self.problem = replace(stated, offsets=None)
        self.motion = motion or (Motion.still() if self.problem.physics.floor is None else Motion())
        self.confidence = confidence
        self.observer = observer = Observer(self.problem, prior.high)
        doors = None if self.motion.entrances is None else observer.distances_to(self.motion.entrances)
        self.moves = MotionModel(self.motion, observer.distances, observer.spacing, doors)
        law = None if stated.offsets is None else OffsetLaw.stationary(stated.offsets, chains)
        self.sampler = PathSampler(self.moves.first, chains, prior, np.random.default_rng(seed), observer.columns, law)
        self._kinds = (TrackList(observer, max_sources, confidence), TrackList(observer, max_sources, confidence))
        self._list, self._settled_list = self._kinds  # of tracks as they are known at once, and later
        self._seen, self._lag = 0, lag
        self._marks = Marks.none(max_sources)  # of each track now
        self._reports: list[_Report] = []  # for each frame of the window
        self.settled: tuple[FrameEstimate, ...] = ()
        self._before: float | None = None  # the time of the last frame before the window
        self.past: list[tuple[WeighedFrame, IntArray]] | None = None  # frames before the window, and their draws
        self.drawn: tuple[IntArray, FloatArray, FloatArray] | None = None
        self.distrusted: frozenset[int] = frozenset()

    def step(self, readings: ArrayLike, time: float, *, again: bool = False) -> FrameEstimate:
        """Take the readings of one frame and return what is known now.

        `readings` are in the unit of the physics, with NaN for missing sensors; `time` is in seconds. A frame that
        comes late is worked in as long as its time is within the last frames; the result is that of the latest frame.
        With `again`, more readings of one of the last frames have come: they replace those that it had.
        """
        values = checked_readings(readings, self.problem.physics.sensors)
        index = self._index(time, again=again)
        missing = frozenset(np.flatnonzero(np.isnan(values)).tolist())
        observation = self.observer.observe(values, missing | self.distrusted)
        if index < len(self.sampler.frames):
            for report in self._reports:
                report.tally = None  # it did not know of this frame
        if time in [frame.time for frame in self.sampler.frames]:
            self._replace(index, observation)
        else:
            self._insert(index, observation, time)
        swept = self._swept(index)
        misfit = observation.misfit(*swept.draws)
        self.drawn = swept.draws  # from the model as it is, even if the frame does not fit
        fit = misfit.fit(self.distrusted - missing)
        if misfit.p_value < DOUBTFUL:
            aside, inflation = misfit.remedy(missing | self.distrusted)
            fit = replace(fit, set_aside=tuple(sorted(aside - missing)), inflation=inflation)
            self._replace(index, self.observer.observe(values, aside, inflation))
            swept = self._swept(index)
        self._reports[index].fit = fit
        return self._finished(swept)

    def resume(self, places: Mapping[int, int], last_label: int = 0) -> None:
        """Continue the labels of an earlier tracker that took the same frames.

        `places` maps each label of its last result to the place of the track. Tracks nearby take these labels, others
        keep theirs unless it is taken, and new ones are above `last_label` and all that are in use.
        """
        labels, current = np.array([*places], dtype=np.int64), self._list.labels
        size = max(len(current), len(labels))
        known, now = Marks.none(size), np.full((1, size), -1)
        known.centres[: len(labels)] = [int(np.argmax(self.observer.place == place)) for place in places.values()]
        known.weights[: len(labels)] = 1.0
        now[0, : len(current)] = np.where(current > 0, self._marks.centres, -1)
        slots = known.match(now, self.observer)[0, : len(labels)]
        old = np.append(current, np.zeros(size, dtype=np.int64))[slots]
        names = {int(before): int(label) for before, label in zip(old, labels, strict=True) if before}
        newest = max(last_label, labels.max(initial=0), self._list.last_label)
        held = [self._list.labels, self._settled_list.labels, *(report.labels for report in self._reports)]
        for label in np.unique(np.concatenate(held)).tolist():
            if label and label not in names and label in labels:
                names[label] = newest = newest + 1
        for tracks in self._kinds:
            tracks.rename(names)
        for report in self._reports:
            report.labels = _renamed(report.labels, names)
        self.sampler.origins = _renamed(self.sampler.origins, names)
        self._list.last_label = newest

    def finish(self) -> None:
        """Take all frames out of the window, so that `past` has them."""
        while self.sampler.frames:
            self._shorten()

    def _index(self, time: float, *, again: bool) -> int:
        """Where in the window a frame of this time belongs, or is already if it comes `again`."""
        times = [frame.time for frame in self.sampler.frames]
        checked_time(time)
        if again and time in times:
            return times.index(time)
        if time in times or time == self._before:
            raise InputError(f"time={time:g}: there is a frame of this time already.", time=time)
        if self._before is not None and time < times[0]:
            raise InputError(
                f"time={time:g}: this frame comes too late, before the last {len(times)} frames, which begin at "
                f"{times[0]:g}. Leave it out.",
                time=time,
            )
        return sum(before < time for before in times)

    def _insert(self, index: int, observation: Observation, time: float) -> None:
        frames, moves = self.sampler.frames, self.moves
        before = frames[index - 1].time if index else self._before
        transitions = moves.over(1.0 if before is None else time - before)
        self.sampler.insert(index, _weighed(observation, time, transitions))
        none = Marks.none(self.sampler.slots)
        self._reports.insert(index, _Report(none.centres + 1, Fit(1.0, 0.0, 0), [none, none]))
        if index + 1 < len(frames):
            after = frames[index + 1]
            frames[index + 1] = replace(after, transitions=moves.over(after.time - time))
        self._seen += 1

    def _replace(self, index: int, observation: Observation) -> None:
        frames = self.sampler.frames
        frames[index] = _weighed(observation, frames[index].time, frames[index].transitions)

    def _swept(self, index: int) -> "_Swept":
        """Draw paths over the window, and add up what they say about its last frame and about those to settle.

        Only laws over the whole window count. Those of recent frames alone are given one drawn place in each chain, and
        places that are likely only because a chain is there would make a vicinity too small.
        """
        sampler, size, starting = self.sampler, len(self.sampler.frames), self._seen <= STARTING
        swept, sweeps = _Swept(index, self._empty(), {}), FIRST_SWEEPS // 2 if starting else 1
        drifts = sampler.drift is not None
        for _ in range(sweeps):  # take up the new frame
            self._sweep(0 if starting or drifts else max(0, size - RECENT), swept)
        sampler.revive()
        soon = range(size - self._lag + self._lag // EARLIER) if self._lag else ()
        waiting = {t: deepcopy(self._reports[t].tally) for t in soon if not self._reports[t].settled}
        swept.now, swept.settling = self._empty(), {t: tally or self._empty() for t, tally in waiting.items()}
        for _ in range(max(sweeps, DRIFTING) if drifts else sweeps):
            self._sweep(0, swept)
        return swept

    def _empty(self) -> Tally:
        return Tally.empty(self.sampler.slots, self.sampler.places)

    def _sweep(self, start: int, swept: "_Swept") -> None:
        """Draw the path of each source from a frame of the window on."""
        sampler = self.sampler
        sampler.exchange()
        sampler.draw_offsets()
        now: dict[int, Beliefs] = {}
        settling: dict[int, dict[int, Beliefs]] = {t: {} for t in swept.settling} if start == 0 else {}
        for slot in sampler.rng.permutation(sampler.active(one_spare=self._seen > STARTING)).tolist():
            laws = sampler.redraw(slot, start)
            now[slot] = laws[-1]
            swept.now.count(laws[-1][:, -1], sampler.others(slot, -1))
            if settling:
                later = sampler.smoothed(laws[min(settling) :])
                for t, by_slot in settling.items():
                    by_slot[slot] = law = later[t - min(settling)]
                    swept.settling[t].count(law[:, -1], sampler.others(slot, t))
        order = sampler.align(-1, self.observer)
        swept.now.add(now, sampler.strengths, order)
        swept.now.sweeps += 1
        for t, by_slot in settling.items():
            swept.settling[t].add(by_slot, sampler.strengths, sampler.align(t, self.observer))
            swept.settling[t].sweeps += 1
        swept.placements.append(sampler.candidates(swept.index))
        swept.strengths.append(sampler.strengths.copy())
        offsets = sampler.frames[swept.index].offsets
        swept.offsets.append(np.broadcast_to(offsets, (sampler.chains, offsets.shape[1])))
        if sampler.beliefs is None:  # the slots mean nothing yet, so all chains number them alike
            sampler.relabel(order)
        else:
            sampler.number_new(order)

    def _labels(self, index: int) -> IntArray:
        """Labels of the tracks at a frame of the window; those of tracks that began later as they began."""
        labels = self._reports[index].labels
        for later in self._reports[index + 1 :]:
            labels = np.where(labels, labels, later.labels)
        return labels

    def _settle(self, index: int, tally: Tally) -> FrameEstimate:
        """Report a frame of the window as it is known from all its frames."""
        report, time = self._reports[index], self.sampler.frames[index].time
        tracks, live = self._settled_list, self._list
        tracks.last_label = live.last_label
        marks = tracks.marks(tally)
        self._extend(tracks, index, marks, labels=self._labels(index))
        live.last_label, report.settled = tracks.last_label, True
        return tracks.summary(time, tally, marks, report.fit)

    def _extend(self, tracks: TrackList, index: int, marks: Marks, **known: Any) -> None:
        """Continue tracks to a frame of the window, and find how likely each is the source with which it began.

        That is the share of the chains in which one unbroken path leads from the mark of the track where it began to
        its mark now. A track ends where most chains have another source at its mark, which came later.
        """
        sampler, chains, kind = self.sampler, np.arange(self.sampler.chains), self._kinds.index(tracks)
        times = [frame.time for frame in sampler.frames]
        self._reports[index].marks[kind] = marks
        order = marks.match(sampler.candidates(index), self.observer)
        for number, track in enumerate(tracks.tracks):
            slots = order[:, number]
            there = sampler.states[chains, slots, : index + 1] < sampler.absent
            if track is not None and there[:, -1].any():
                start = times.index(track.since) if track.since in times else None
                first = sampler.origins[kind] == track.label if start is None else self._first(kind, start, number)
                unbroken = there[:, start or 0 :].all(axis=1)
                same = (unbroken & first[chains, slots])[there[:, -1]].mean()
                ended = 2 * unbroken.sum() < there[:, -1].sum()
                tracks.tracks[number] = None if ended else replace(track, identity_probability=float(same))
        tracks.extend(times[index], marks, **known)

    def _first(self, kind: int, start: int, number: int) -> NDArray[np.bool_]:
        """The sources (chains, slots) with which a track began at a frame of the window."""
        order = self._reports[start].marks[kind].match(self.sampler.candidates(start), self.observer)
        return np.asarray(order[:, [number]] == np.arange(self.sampler.slots))

    def _finished(self, swept: "_Swept") -> FrameEstimate:
        """Summarise the last frame, settle what can be settled, and shorten the window."""
        sampler, time, report = self.sampler, self.sampler.frames[-1].time, self._reports[-1]
        self._marks = self._list.marks(swept.now)
        # a track that may have been there when the window began goes on even if it is in doubt now
        held = None if sampler.beliefs is None else sampler.beliefs[:, -1] < 1 - FOLLOWED
        self._extend(self._list, len(sampler.frames) - 1, self._marks, held=held)
        report.labels = self._list.labels
        tracked = self._list.summary(time, swept.now, self._marks, report.fit)
        ripe = len(sampler.frames) - self._lag
        self.settled = tuple(self._settle(index, tally) for index, tally in swept.settling.items() if index < ripe)
        for index, tally in swept.settling.items():
            self._reports[index].tally = tally
        while len(sampler.frames) > max(WINDOW, self._lag + BEFORE):
            self._shorten()
        return tracked

    def _shorten(self) -> None:
        """Take the first frame out of the window; where a chain exchanged two sources, it exchanges their tracks."""
        sampler, frame = self.sampler, self.sampler.frames[0]
        order = sampler.align(0, self.observer)
        for kind, tracks in enumerate(self._kinds):
            for number, track in enumerate(tracks.tracks):
                if track is not None and track.since == frame.time:
                    sampler.origins[kind][self._first(kind, 0, number)] = track.label
        self._reports.pop(0)
        self._before = frame.time
        states = sampler.drop_first(order)
        if self.past is not None:
            self.past.append((frame, states))


def checked_readings(readings: ArrayLike, sensors: int) -> FloatArray:
    """The readings of one frame (m,), NaN where missing; refused if they are not one for each sensor."""
    values = np.asarray(readings, dtype=np.float64)
    if values.shape != (sensors,):
        raise ReadingError(
            f"readings has shape {values.shape}: give one for each of the {sensors} sensors, NaN where missing.",
            shape=values.shape,
        )
    if np.isinf(values).any():
        raise ReadingError("a reading is infinite: give NaN for a missing reading.", readings=math.inf)
    return values


def checked_time(time: float) -> None:
    """Refuse a time that is not a finite number."""
    if not (isinstance(time, int | float) and math.isfinite(time)):
        raise InputError(f"time={time!r}: give seconds as a finite number.", time=time)


@dataclass(eq=False)
class _Swept:
    """Result of some sweeps for the last frame and for frames to settle, and their draws at the frame `index`."""

    index: int
    now: Tally
    settling: dict[int, Tally]
    placements: list[IntArray] = field(default_factory=list)
    strengths: list[FloatArray] = field(default_factory=list)
    offsets: list[FloatArray] = field(default_factory=list)

    @property
    def draws(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Candidates of all draws (draws, slots), -1 if absent, their strengths, and the offsets (draws, m)."""
        return np.concatenate(self.placements), np.concatenate(self.strengths), np.concatenate(self.offsets)


@dataclass(eq=False)
class _Report:
    """Report of a frame: labels of the tracks when it was the last, its fit, and marks, live and settled."""

    labels: IntArray
    fit: Fit
    marks: list[Marks]
    settled: bool = False
    tally: Tally | None = None  # of the steps so far that judge it from later frames as well


def _weighed(of: Observation, time: float, transitions: Transitions) -> WeighedFrame:
    none = np.zeros((1, len(of.white)))
    return WeighedFrame(time, of.white, of.scale, none, of.seen, of.squares, of.overlap, transitions)


def _renamed(labels: IntArray, names: Mapping[int, int]) -> IntArray:
    return np.array([names.get(label, label) for label in labels.ravel().tolist()]).reshape(labels.shape)
