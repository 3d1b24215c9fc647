"""Which source is who: the labels of tracks, and how sure each identity is."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from cloakwork._checks import IntArray
from cloakwork.recovery.tracking.alignment import ENDED, EXISTS, Aligner, Centres
from cloakwork.recovery.tracking.estimate import Track
from cloakwork.recovery.tracking.observation import Observer
from cloakwork.recovery.tracking.path_sampler import PathSampler

Tracks = list[Track | None]


class Snapshot(NamedTuple):
    """The live tracks of a frame, by slot, and where they were."""

    tracks: Tracks
    centres: Centres


@dataclass(eq=False)
class Registry:
    """The tracks that the slots of a sampler follow.

    `live` are the tracks up to the last frame, `final` those up to the last moment that was judged from later frames as
    well; both name the same sources alike. Tracks have numbers of their own here. `names` maps a number to the label
    that users see, where they differ.
    """

    observer: Observer
    aligner: Aligner
    sampler: PathSampler
    live: Tracks = field(init=False)
    final: Tracks = field(init=False)
    last_label: int = 0
    names: dict[int, int] = field(default_factory=dict)
    _snapshots: dict[float, Snapshot] = field(default_factory=dict)  # of the frames of the window

    def __post_init__(self) -> None:
        self.live, self.final = [None] * self.sampler.slots, [None] * self.sampler.slots

    def update(self, centres: Centres) -> Tracks:
        """Continue the live tracks to the last frame; returns them under their labels."""
        # a track that may have been there when the window began goes on even if it is in doubt now
        held = self.sampler.belief.present > ENDED
        self._continue(self.live, len(self.sampler.frames) - 1, centres, [None] * len(held), held)
        self._snapshots[self.sampler.frames[-1].time] = Snapshot(list(self.live), centres)
        return self._labelled(self.live)

    def finalise(self, index: int, centres: Centres) -> Tracks:
        """Continue the final tracks to a frame of the window; returns them under their labels."""
        later = [self._snapshots.get(frame.time) for frame in self.sampler.frames[index:]]
        listed = [snapshot.tracks for snapshot in later if snapshot is not None]
        # a live track may have begun later than its source is now known to have been there
        known = [next((track for track in slot if track is not None), None) for slot in zip(*listed, strict=True)]
        self._continue(self.final, index, centres, known)
        return self._labelled(self.final)

    def forget_first(self, frame_time: float) -> None:
        """Mark the sources of tracks that began in the window's first frame, which is about to leave it."""
        snapshot = self._snapshots.pop(frame_time, None)
        for slot, track in enumerate(self.live):
            if snapshot is not None and track is not None and track.since == frame_time:
                self.sampler.chains.origins[self._sources_at(0, slot, snapshot.centres)] = track.label

    def resume(self, places: Mapping[int, int], last_label: int = 0) -> None:
        """Give tracks the labels of an earlier tracker, which had them at these places."""
        current = [track for track in self.live if track is not None]
        cells = [int(np.argmax(self.observer.place == place)) for place in places.values()]
        ends = [int(np.argmax(self.observer.place == track.places[-1])) for track in current]
        pairs = zip(*linear_sum_assignment(self.observer.distances[np.ix_(cells, ends)]), strict=True)
        labels = list(places)
        names = {current[k].label: labels[j] for j, k in pairs}
        self.last_label = max(self.last_label, last_label, *labels, *self.names.values(), 0)
        taken = set(labels)
        for tracks in (self.live, self.final, *(snapshot.tracks for snapshot in self._snapshots.values())):
            for track in tracks:
                if track is not None and track.label not in names and self._name(track.label) in taken:
                    self.last_label += 1
                    names[track.label] = self.last_label
        self.names |= names

    def _name(self, number: int) -> int:
        return self.names.get(number, number)

    def _labelled(self, tracks: Tracks) -> Tracks:
        return [track and replace(track, label=self._name(track.label)) for track in tracks]

    def _continue(
        self, tracks: Tracks, index: int, centres: Centres, known: Tracks, held: NDArray[np.bool_] | None = None
    ) -> None:
        """Continue tracks to a frame of the window; `known` are the live tracks of the same sources."""
        order = self.aligner.match(centres, self.sampler.cells(index))
        for slot, track in enumerate(tracks):
            if track is not None:
                tracks[slot] = self._identified(track, known[slot] or track, index, order[:, slot], slot)
        self.extend(tracks, self.sampler.frames[index].time, centres, known, held)

    def extend(
        self,
        tracks: Tracks,
        time: float,
        centres: Centres,
        known: Tracks | None = None,
        held: NDArray[np.bool_] | None = None,
    ) -> None:
        """Continue tracks to a moment, begin new ones, and end those that hardly exist and are not `held`.

        `known` are other tracks of the same sources, whose labels they take.
        """
        for slot, (cell, probability) in enumerate(zip(*centres, strict=True)):
            track, other = tracks[slot], None if known is None else known[slot]
            if cell < 0 or (track is None and probability < EXISTS):
                tracks[slot] = track if held is not None and held[slot] else None
                continue
            if track is None or (other is not None and other.label != track.label):
                track = Track(self._new() if other is None else other.label, time)
            tracks[slot] = track.at(time, *self.observer.where(int(cell)), min(1.0, float(probability)))

    def _new(self) -> int:
        self.last_label += 1
        return self.last_label

    def _identified(self, track: Track, began: Track, index: int, slots: IntArray, number: int) -> Track | None:
        """Return a track with the probability that it is still its first source; None where most chains deny it.

        That is the share of chains in which one unbroken path leads from the centre of the track where it began to its
        centre now. A track ends if most chains have a source there that came later.
        """
        chains, times = np.arange(len(slots)), [frame.time for frame in self.sampler.frames]
        there = self.sampler.present[chains, slots, : index + 1]
        now = there[:, -1]
        if not now.any():
            return track
        start = times.index(began.since) if began.since in times else None
        if start is None:
            first = self.sampler.chains.origins == began.label
        else:
            first = self._sources_at(start, number, self._snapshots[began.since].centres)
        unbroken = there[:, start or 0 :].all(axis=1)
        if 2 * unbroken.sum() < now.sum():
            return None
        return replace(track, identity_probability=float((unbroken & first[chains, slots])[now].mean()))

    def _sources_at(self, index: int, number: int, centres: Centres) -> NDArray[np.bool_]:
        """Return which sources (chains, slots) a track takes in a frame."""
        order = self.aligner.match(centres, self.sampler.cells(index))
        return np.asarray(order[:, [number]] == np.arange(self.sampler.slots))
