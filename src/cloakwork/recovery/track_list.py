"""Tracks: which source of a draw is which, where each is, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakwork._checks import FloatArray, IntArray
from cloakwork.recovery.alignment import Marks
from cloakwork.recovery.estimator import Status
from cloakwork.recovery.goodness_of_fit import Fit
from cloakwork.recovery.observation import Observer
from cloakwork.recovery.path_steps import Beliefs, add_law, middle
from cloakwork.recovery.vicinity import Source, expected_map, position

EXISTS = 0.5  # a track with this probability is a source
FOLLOWED = 0.1  # a track below this probability has ended
LENGTH = 100  # moments that a track holds
NEGLIGIBLE = 1e-3  # places this much less likely than the best do not count for a centre


@dataclass(frozen=True)
class Track:
    """One source over time.

    `label` names it. `places` and `positions` say where it was at each of `times`: the last hundred, in the tracks of a
    whole past all. It began at `since`. `probability` is that of its existence now, `identity_probability` that it is
    still the source with which the track began.

    >>> Track(1, 0.0, (0.0, 60.0), (3, 4), (0.3, 0.4), probability=0.98, identity_probability=0.95)
    Track(label=1, since=0.0, probability=0.98, identity_probability=0.95)
    """

    label: int
    since: float
    times: tuple[float, ...] = field(repr=False)
    places: tuple[int, ...] = field(repr=False)
    positions: tuple[object, ...] = field(repr=False)
    probability: float
    identity_probability: float

    def at(self, time: float, place: int, where: object, probability: float) -> "Track":
        """The track continued to a moment; a moment that it ends with already is replaced."""
        kept = slice(1 - LENGTH, -1 if self.times[-1:] == (time,) else None)
        return replace(
            self,
            times=(*self.times[kept], time),
            places=(*self.places[kept], place),
            positions=(*self.positions[kept], where),
            probability=probability,
        )


@dataclass(frozen=True, eq=False)
class FrameEstimate:
    """The sources of one moment, as far as they are known.

    `map` (n,) has each source at its most central place, `intensity` (n,) is the expected number of sources at each
    place, `counts` the probability of 0, 1, 2, ... sources. `sources` are those that exist more likely than not, with
    vicinities that hold them with the stated probability; `labels` are the labels of their tracks. `tracks` are all
    tracks that go on. `presence` (tracks, n) has the probability of each place for each source that there can be; on a
    large floor it is sparse, and `others` (n,) is the expected number of sources without a track. `gap` is the mean
    distance between the same sources in two halves of the chains, which are independent unless stuck chains were
    replaced.

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

    def anyone(self, places: ArrayLike) -> float:
        """The probability that at least one source is at one of these places, given as indices."""
        where = np.unique(np.asarray(places, dtype=np.int64))
        inside = self.presence[:, where].sum(axis=1, dtype=np.float64)
        none = np.prod(1 - np.minimum(inside, 1.0))
        return float(1 - none * (1.0 if self.others is None else np.exp(-self.others[where].sum())))

    @property
    def status(self) -> Status:
        """How the moment was solved."""
        return Status.FOLLOWED if self.sources else Status.NOBODY

    def __repr__(self) -> str:
        return f"<FrameEstimate>\n{self}"

    def __str__(self) -> str:
        found = zip(self.labels, self.sources, strict=True)
        lines = [f"time {self.time:.14g}: {self.status}", *(f"track {label}: {source}" for label, source in found)]
        return "\n".join([*lines, f"doubt: {self.fit}"] if self.fit.doubtful else lines)


@dataclass(eq=False)
class Tally:
    """Sums over the draws of some sweeps for one moment.

    `places` (2, slots, n) is the probability of each candidate for each track, in two halves of the chains; `counts`
    that of each number of sources; `strength` (slots,) the strength of each track times the probability that it exists.
    All are sums.
    """

    places: Beliefs
    counts: FloatArray
    strength: FloatArray
    sweeps: int = 0

    @classmethod
    def empty(cls, slots: int, n: int) -> "Tally":
        """A tally of no draws."""
        return cls(np.zeros((2, slots, n), dtype=np.float32), np.zeros(slots + 1), np.zeros(slots))

    def count(self, absent: Beliefs, others: IntArray) -> None:
        """Add the law of the count: one source is `absent` with this probability, beside `others`, in each chain."""
        np.add.at(self.counts, others, absent)
        np.add.at(self.counts, others + 1, 1 - absent)

    def add(self, laws: Mapping[int, Beliefs], strengths: FloatArray, order: IntArray) -> None:
        """Add the laws (chains, 2n + 1) of slots; `order` (chains, slots) has the slot of each track."""
        for slot, law in laws.items():
            add_law(law, order, slot, self.places)
            existing = (1 - law[:, -1]) * strengths[:, slot] / len(law)
            np.add.at(self.strength, np.argmax(order == slot, axis=1), existing)

    @property
    def law(self) -> NDArray[np.float64]:
        """The probability of each candidate for each track, (slots, n)."""
        return np.asarray(self.places.sum(axis=0) / (2 * max(self.sweeps, 1)), dtype=np.float64)


def centre(law: FloatArray, distances: Beliefs) -> int:
    """The candidate with the least expected distance to a source of this law; -1 if it hardly exists."""
    return middle(law.astype(np.float32), distances, NEGLIGIBLE * float(law.max())) if law.sum() >= FOLLOWED else -1


@dataclass(eq=False)
class TrackList:
    """The tracks that the slots of a sampler follow."""

    observer: Observer
    slots: int
    confidence: float
    last_label: int = 0
    tracks: list[Track | None] = field(init=False)

    def __post_init__(self) -> None:
        self.tracks = [None] * self.slots

    @property
    def labels(self) -> IntArray:
        """The label of the track in each slot, 0 if there is none."""
        return np.array([0 if track is None else track.label for track in self.tracks])

    def marks(self, tally: Tally) -> Marks:
        """Where each slot's track is."""
        law = tally.law
        return Marks(np.array([centre(each, self.observer.distances) for each in law]), law.sum(axis=1))

    def extend(
        self,
        time: float,
        marks: Marks,
        labels: IntArray | None = None,
        held: NDArray[np.bool_] | None = None,
    ) -> None:
        """Continue each track to a moment, begin new ones, and end those that hardly exist and are not `held`.

        `labels` (slots,), where they are not 0, are those of the tracks at this moment.
        """
        observer = self.observer
        for slot, at in enumerate(marks.centres):
            track, probability = self.tracks[slot], min(1.0, float(marks.weights[slot]))
            if at < 0 or (track is None and probability < EXISTS):
                self.tracks[slot] = track if held is not None and held[slot] else None
                continue
            label = 0 if labels is None else int(labels[slot])
            if track is None or label not in (0, track.label):
                track = Track(label or self._new_label(), time, (), (), (), probability, 1.0)
            place = int(observer.place[at])
            where = position(observer.positions[at], place, observer.problem.physics.space)
            self.tracks[slot] = track.at(time, place, where, probability)

    def _new_label(self) -> int:
        self.last_label += 1
        return self.last_label

    def rename(self, names: Mapping[int, int]) -> None:
        """Give tracks new labels."""
        self.tracks = [track and replace(track, label=names.get(track.label, track.label)) for track in self.tracks]

    def summary(self, time: float, tally: Tally, marks: Marks, fit: Fit) -> FrameEstimate:
        """Summarise a moment."""
        law, place = tally.law, self.observer.place
        n = len(self.observer.problem.physics.space)
        listed = [k for k in np.argsort(-law.sum(axis=1), kind="stable") if law[k].sum() >= EXISTS]
        strength = tally.strength / np.maximum(tally.sweeps * law.sum(axis=1), FOLLOWED)
        sources = tuple(self._source(law[k], float(strength[k]), int(marks.centres[k])) for k in listed)
        tracks = [self.tracks[k] for k in listed]
        return FrameEstimate(
            time=time,
            map=expected_map(sources, n),
            intensity=np.bincount(place, weights=law.sum(axis=0), minlength=n).astype(float),
            counts=tally.counts / max(tally.counts.sum(), 1e-300),
            sources=sources,
            labels=tuple(track.label for track in tracks if track is not None),
            tracks=tuple(track for track in self.tracks if track is not None and track.times[-1] == time),
            presence=self._presence(law),
            fit=fit,
            gap=self._gap(tally, listed),
        )

    def _presence(self, law: FloatArray) -> Beliefs:
        """The law of each slot over places."""
        n = len(self.observer.problem.physics.space)
        return np.array([np.bincount(self.observer.place, weights=each, minlength=n) for each in law], dtype=np.float32)

    def _source(self, law: FloatArray, strength: float, at: int) -> Source:
        """A source, with the most likely places whose probability together is nearest to the confidence."""
        observer = self.observer
        space = observer.problem.physics.space
        by_place = np.bincount(observer.place, weights=law, minlength=len(space))
        order = np.argsort(-by_place, kind="stable")
        nearest = np.argmin(np.abs(np.cumsum(by_place[order]) - self.confidence * by_place.sum()))
        vicinity = np.sort(order[: int(nearest) + 1])
        inside = np.isin(observer.place, vicinity)
        place = int(observer.place[at])
        return Source(
            place=place,
            at=position(observer.positions[at], place, space),
            weight=strength,
            radius=float(observer.distances[at][inside].max()),
            vicinity=vicinity,
            probability=min(1.0, float(law.sum())),
        )

    def _gap(self, tally: Tally, listed: Sequence[int]) -> float:
        if not listed:
            return 0.0
        scale = max(tally.sweeps, 1)
        pairs = [[centre(half[slot] / scale, self.observer.distances) for half in tally.places] for slot in listed]
        return float(np.mean([self.observer.distances[a, b] for a, b in pairs]))
