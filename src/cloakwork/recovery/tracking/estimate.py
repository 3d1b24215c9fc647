"""What a tracker knows about one moment: sources, tracks, counts and fit."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cloakwork._checks import FloatArray
from cloakwork.recovery.estimator import Status
from cloakwork.recovery.goodness_of_fit import Fit
from cloakwork.recovery.tracking.alignment import EXISTS, Aligner, Centres
from cloakwork.recovery.tracking.observation import DrawnSources, Observer
from cloakwork.recovery.tracking.window import TrackMarginals
from cloakwork.recovery.vicinity import Source, expected_map

MAX_MOMENTS = 100  # that a track holds


@dataclass(frozen=True)
class Track:
    """One source over time.

    `label` names the source. `places` and `positions` say where it was at each of `times`, the last hundred moments. It
    began at `since`. `probability` is that of its existence now, `identity_probability`
    that it is still the source with which the track began.

    >>> Track(1, 0.0, (0.0, 60.0), (3, 4), (0.3, 0.4), probability=0.98, identity_probability=0.95)
    Track(label=1, since=0.0, probability=0.98, identity_probability=0.95)
    """

    label: int
    since: float
    times: tuple[float, ...] = field(default=(), repr=False)
    places: tuple[int, ...] = field(default=(), repr=False)
    positions: tuple[object, ...] = field(default=(), repr=False)
    probability: float = 1.0
    identity_probability: float = 1.0

    def at(self, time: float, place: int, where: object, probability: float) -> "Track":
        """Return the track continued to a moment, which replaces its last moment if the times are equal."""
        old = slice(1 - MAX_MOMENTS, -1 if self.times[-1:] == (time,) else None)
        return replace(
            self,
            times=(*self.times[old], time),
            places=(*self.places[old], place),
            positions=(*self.positions[old], where),
            probability=probability,
        )


@dataclass(frozen=True, eq=False)
class FrameEstimate:
    """The sources of one moment, as far as they are known.

    `map` (places,) has each source at its most central place, `intensity` (places,) is the expected number of sources
    at each place, and `counts` the probability of 0, 1, 2, ... sources. `sources` lists those that exist more likely
    than not, each with a vicinity that holds it with the stated confidence, and `labels` the labels of their tracks.
    `tracks` are all tracks that go on. `presence` (slots, places) is the probability of each place for each source that
    there can be; on a large floor it is sparse, and `others` (places,) is the expected number of sources without a
    track. `gap` is the mean distance between the same sources in two halves of the chains, which are independent unless
    stuck chains were replaced.

    `final` has the earlier moments that this step judged for the last time, and `draws` the sources that were drawn.

    >>> from cloakwork.physics import HeatLine, sources
    >>> from cloakwork.recovery import Tracker
    >>> line = HeatLine(n=50, m=25, T=0.05)
    >>> now = Tracker(line, sigma=0.2, max_sources=2).step(line.apply(sources(line, [0.3])), 60.0)
    >>> now.anyone(range(25)) > 0.9, now.labels
    (True, (1,))
    """

    time: float
    map: FloatArray
    intensity: FloatArray
    counts: FloatArray
    sources: tuple[Source, ...]
    labels: tuple[int, ...]
    tracks: tuple[Track, ...]
    presence: Any
    fit: Fit
    gap: float
    others: FloatArray | None = None
    final: "tuple[FrameEstimate, ...]" = ()
    draws: DrawnSources = field(default_factory=DrawnSources.none)

    def anyone(self, places: ArrayLike) -> float:
        """Return the probability that at least one source is at one of these places, given as indices."""
        where = np.unique(np.asarray(places, dtype=np.int64))
        inside = self.presence[:, where].sum(axis=1, dtype=np.float64)
        nobody = np.prod(1 - np.minimum(inside, 1.0))
        return float(1 - nobody * (1.0 if self.others is None else np.exp(-self.others[where].sum())))

    @property
    def status(self) -> Status:
        """How the moment was solved."""
        return Status.FOLLOWED if self.sources else Status.NOBODY

    def __repr__(self) -> str:
        return f"<FrameEstimate of time {self.time:.14g}, {len(self.sources)} sources>"

    def __str__(self) -> str:
        found = zip(self.labels, self.sources, strict=True)
        lines = [f"time {self.time:.14g}: {self.status}", *(f"track {label}: {source}" for label, source in found)]
        return "\n".join([*lines, f"doubt: {self.fit}"] if self.fit.doubtful else lines)


@dataclass(frozen=True, eq=False)
class Summariser:
    """Turns marginals into estimates; areas hold their source with probability `confidence`."""

    observer: Observer
    aligner: Aligner
    confidence: float

    def summarise(
        self, time: float, marginals: TrackMarginals, centres: Centres, tracks: list[Track | None], fit: Fit
    ) -> FrameEstimate:
        """Return the estimate of a moment; `tracks` are those of the slots."""
        cells = marginals.tracks
        listed = [k for k in np.argsort(-cells.sum(axis=1), kind="stable") if cells[k].sum() >= EXISTS]
        named = [(tracks[k], self._source(cells[k], marginals.mean_strength[k], centres.cells[k])) for k in listed]
        sources = tuple(source for _, source in named)
        return FrameEstimate(
            time=time,
            map=expected_map(sources, self.observer.places),
            intensity=self.observer.on_places(cells.sum(axis=0)),
            counts=marginals.count_probabilities,
            sources=sources,
            labels=tuple(track.label for track, _ in named if track is not None),
            tracks=tuple(track for track in tracks if track is not None and track.times[-1] == time),
            presence=self.observer.on_places(cells).astype(np.float32),
            fit=fit,
            gap=self._gap(marginals, listed),
        )

    def _source(self, cells: FloatArray, strength: float, centre: int) -> Source:
        """Return a source with the likeliest places whose total probability is nearest to the confidence."""
        by_place = self.observer.on_places(cells)
        order = np.argsort(-by_place, kind="stable")
        last = np.argmin(np.abs(np.cumsum(by_place[order]) - self.confidence * by_place.sum()))
        vicinity = np.sort(order[: int(last) + 1])
        radius = float(self.observer.distances[centre][np.isin(self.observer.place, vicinity)].max())
        place, at = self.observer.where(int(centre))
        return Source(place, at, float(strength), radius, vicinity, min(1.0, float(cells.sum())))

    def _gap(self, marginals: TrackMarginals, listed: list[int]) -> float:
        pairs = [[self.aligner.centre(half[k]) for half in marginals.halves] for k in listed]
        return float(np.mean([self.observer.distances[a, b] for a, b in pairs])) if pairs else 0.0
