"""Follow many sources on a floor."""

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from cloakwork._checks import FloatArray, count
from cloakwork.errors import InputError
from cloakwork.physics import Physics
from cloakwork.recovery.floors.floor_belief import FloorBelief, FloorPrior, joined
from cloakwork.recovery.floors.floor_motion import FloorMotion
from cloakwork.recovery.floors.floor_sampler import FloorDraws
from cloakwork.recovery.floors.floor_sources import checked_field
from cloakwork.recovery.goodness_of_fit import Fit, Misfit, draw_checked
from cloakwork.recovery.point_sources import PointSources
from cloakwork.recovery.problem import CloakLike
from cloakwork.recovery.recover import resolve_problem
from cloakwork.recovery.tracking.alignment import EXISTS
from cloakwork.recovery.tracking.estimate import FrameEstimate, Track
from cloakwork.recovery.tracking.motion import Motion
from cloakwork.recovery.tracking.tracker import check_time, checked_readings
from cloakwork.recovery.vicinity import Source, expected_map

RESUMED = 3.0  # metres between the same source in two trackers, at most


class FloorTracker:
    """Follow more than 12 sources of one known strength, up to thousands, or any number on a large floor.

    Parameters
    ----------
    model
        The cloak that released the readings, or a floor plan together with `sigma`.
    motion
        How sources move: by default `Motion()`, which fits people.
    strength
        The weight of a source, in units of the physics.
    max_sources
        Largest number of sources at one time.
    confidence
        The probability with which a vicinity holds its source.
    sigma
        With a floor plan: the noise of each reading.
    seed
        Seed of the random numbers.

    Notes
    -----
    A tracker only processes released readings, so it costs no privacy. After each frame it keeps the law of each
    source by itself and forgets what two of them say about each other. `Tracker` keeps the last six frames together,
    so it is more exact where people are close to each other, but follows at most 12.

    >>> from cloakwork.physics import FloorPlan, Rooms, Steady, sources
    >>> sensors = [(x + 0.5, y + 0.5) for x in range(200) for y in (0, 2, 4)]
    >>> corridor = FloorPlan(Rooms.from_walls((200, 5), cell=0.25), sensors, Steady(reach=1.0))
    >>> now = FloorTracker(corridor, sigma=0.05).step(corridor.apply(sources(corridor, [(120.125, 2.625)])), 0.0)
    >>> [source.at for source in now.sources]
    [(120.125, 2.625)]
    """

    def __init__(
        self,
        model: CloakLike | Physics,
        *,
        motion: Motion | None = None,
        strength: float = 1.0,
        max_sources: int = 100,
        confidence: float = 0.9,
        sigma: ArrayLike | None = None,
        seed: int = 0,
    ) -> None:
        prior = PointSources(strength, max_sources=count("max_sources", max_sources), confidence=confidence).prior
        self.field = checked_field(resolve_problem(model, sigma), prior)
        moves = motion or Motion()
        self.motion = FloorMotion(moves, self.field.plan)
        self.max_sources, self.confidence, self.seed = max_sources, confidence, seed
        self._before = self.belief = FloorBelief.before(
            self.field.plan, moves.present_share * max_sources, moves.sitting
        )
        self._times: tuple[float | None, float | None] = (None, None)  # of the frame before the last, and of the last
        self._tracks: dict[int, Track] = {}
        self._last_label, self._steps = 0, 0

    def __repr__(self) -> str:
        return f"FloorTracker({self.field.plan!r}, max_sources={self.max_sources})"

    def step(
        self, readings: ArrayLike, time: float, *, again: bool = False, ignored: Collection[int] = ()
    ) -> FrameEstimate:
        """Take the readings of one frame and return what is known now.

        `readings` are in the unit of the physics, with NaN for missing sensors; `time` is in seconds and must be later
        than that of the frame before. With `again`, more readings of the last frame have come. Sensors in `ignored` do
        not count.
        """
        values, last = checked_readings(readings, self.field.plan.sensors), self._times[1]
        check_time(time)
        repeated = again and time == last
        if last is not None and time <= last and not repeated:
            raise InputError(
                f"time={time:g}: this frame comes too late, after that of {last:g}. Leave it out.", time=time
            )
        if not repeated:
            self._before, self._times = self.belief, (last, time)
        earlier = self._times[0]
        seconds = None if earlier is None else time - earlier
        prior = FloorPrior.after(self._before, self.motion, seconds, self.max_sources)
        draws, fit = self._drawn(values, prior, frozenset(ignored))
        self._steps += 1
        self.belief = prior.updated(draws, self.motion)
        return self._summary(time, prior, draws, fit)

    def resume(self, places: Mapping[int, int], last_label: int = 0) -> None:
        """Continue the labels of an earlier tracker that took the same frames.

        `places` maps each label of its last result to the place of the track: the nearest track of this one within a
        few metres takes the label. New labels are above `last_label`.
        """
        self._last_label = max(last_label, self._last_label, *places, 0)
        where, names = self.field.plan.space.places, dict[int, int]()
        for label, place in places.items():
            free = {k: track.places[-1] for k, track in self._tracks.items() if k not in names}
            far = {k: float(np.linalg.norm(where[at] - where[place])) for k, at in free.items()}
            if far and min(far.values()) <= RESUMED:
                names[min(far, key=lambda k: far[k])] = label
        for old in self._tracks.keys() - names.keys():
            if old in names.values():
                names[old] = self._last_label = self._last_label + 1
        self._tracks = {names.get(k, k): replace(t, label=names.get(k, k)) for k, t in self._tracks.items()}
        self._before, self.belief = (_renamed(belief, names) for belief in (self._before, self.belief))

    def _drawn(self, values: FloatArray, prior: FloorPrior, ignored: frozenset[int]) -> tuple[FloorDraws, Fit]:
        """Draw the sources of a frame; one that does not fit is drawn again, without a sensor or with more noise."""
        missing = frozenset(np.flatnonzero(np.isnan(values)).tolist())
        terms = (values, prior.where, self._before.placements, self.max_sources, [self.seed, self._steps])

        def draw(excluded: frozenset[int], inflation: float) -> tuple[FloorDraws, Misfit]:
            draws = self.field.draw(*terms, ignored=excluded, inflation=inflation)
            return draws, draws.misfit

        _, draws, fit = draw_checked(draw, missing, ignored, remedies=1)
        return draws, fit

    def _summary(self, time: float, prior: FloorPrior, draws: FloorDraws, fit: Fit) -> FrameEstimate:
        plan, known = self.field.plan, self._labelled(time)
        tracks = self.belief.tracks
        starts, cells, laws = joined(tracks, "cells", "law")
        listed = sorted((track for track in tracks if track.probability >= EXISTS), key=lambda t: -t.probability)
        sources = tuple(known[track.label] for track in listed)
        before = {track.label: k for k, track in enumerate(prior.tracks) if track.label}
        apart = [prior.disagreement(draws, before[track.label], plan) for track in listed if track.label in before]
        return FrameEstimate(
            time=time,
            map=expected_map(sources, plan.places),
            intensity=self.belief.intensity(),
            counts=draws.counts(self.max_sources),
            sources=sources,
            labels=tuple(track.label for track in listed),
            tracks=tuple(self._tracks.values()),
            presence=sparse.csr_array((laws, cells, starts), shape=(len(tracks), plan.places), dtype=np.float64),
            fit=fit,
            gap=float(np.mean(apart)) if apart else 0.0,
            others=self.belief.others.sum(axis=0),
        )

    def _labelled(self, time: float) -> dict[int, Source]:
        """Continue the tracks to this moment, and begin those of sources that now exist more likely than not.

        Returns the source of each label.
        """
        plan, tracks, going = self.field.plan, list(self.belief.tracks), dict[int, Track]()
        sources: dict[int, Source] = {}
        for number, track in enumerate(tracks):
            if not track.label and track.probability >= EXISTS:
                self._last_label += 1
                tracks[number] = replace(track, label=self._last_label)
            label = tracks[number].label
            if label:
                sources[label] = source = track.source(plan, self.field.strength, self.confidence)
                past = self._tracks.get(label, Track(label, time, (), (), (), 1.0, 1.0))
                now = past.at(time, source.place, source.at, track.probability)
                going[label] = replace(now, identity_probability=past.identity_probability * (1 - track.jumped))
        self._tracks = going
        self.belief = replace(self.belief, tracks=tuple(tracks))
        return sources


def _renamed(belief: FloorBelief, names: Mapping[int, int]) -> FloorBelief:
    renamed = (replace(track, label=names.get(track.label, track.label)) for track in belief.tracks)
    return replace(belief, tracks=tuple(renamed))
