"""Recovery of frames of readings, whichever sensors reported: the same for a file, a store and live readings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cloakwork._checks import FloatArray
from cloakwork.physics import Drift, Matrix, Nuisance, Physics
from cloakwork.privacy import Cloak
from cloakwork.readings.readings_file import Frame
from cloakwork.recovery import Fit, Recovery, Source, Status, Track, Tracked, recover, samples_locally
from cloakwork.site import Site

_KNOWN_PATTERNS = 64
ABSENT = 1e9


@dataclass(frozen=True, eq=False)
class PartialCloak:
    """The parts of a cloak that recovery needs, for the sensors that reported."""

    physics: Physics
    total_sigmas: FloatArray
    steps: FloatArray
    roundings: FloatArray
    offsets: Nuisance | None = None


def partial_cloak(cloak: Cloak, present: NDArray[np.bool_], drift: Drift | None = None) -> PartialCloak:
    """A cloak restricted to the sensors that are present, with their slow offsets and those by which they drift."""
    wandering = None if drift is None else drift.on(cloak.physics)
    both = wandering if cloak.offsets is None else cloak.offsets.joined(wandering)
    offsets = None if both is None else both.rows(present)
    if present.all():
        return PartialCloak(cloak.physics, cloak.total_sigmas, cloak.steps, cloak.roundings, offsets)
    if samples_locally(cloak.physics):  # all sensors stay, and those without a reading have too much noise to count
        sigmas = np.where(present, cloak.total_sigmas, ABSENT * cloak.total_sigmas)
        return PartialCloak(cloak.physics, sigmas, cloak.steps, cloak.roundings, offsets)
    rows = Matrix(cloak.physics.matrix[present], cloak.physics.space)
    return PartialCloak(rows, cloak.total_sigmas[present], cloak.steps[present], cloak.roundings[present], offsets)


@dataclass(frozen=True, eq=False)
class FrameRecovery:
    """The recovery of one frame.

    `sensors` is how many reported, `map` the weight of each place, and `shown` what a picture shows: the expected
    number of sources at each place where the estimator knows it, otherwise the map. `tracked` is what a tracker knows
    of the moment, None if the frame was recovered alone, and `settled` says that it also used frames after it.
    """

    time: int
    sensors: int
    status: Status
    gap: float
    fit: Fit
    map: FloatArray
    shown: FloatArray
    counts: FloatArray | None
    sources: tuple[Source, ...]
    tracked: Tracked | None = None
    settled: bool = False

    @property
    def tracks(self) -> tuple[Track, ...]:
        """All tracks that go on, the doubtful ones too; none if the frame was recovered alone."""
        return () if self.tracked is None else self.tracked.tracks

    @property
    def labels(self) -> tuple[int | None, ...]:
        """The label of each source's track."""
        return (None,) * len(self.sources) if self.tracked is None else self.tracked.labels


class FrameRecoverer:
    """Recovers frames of a site; keeps a model for each of the last few sets of sensors that reported."""

    def __init__(self, site: Site, cloak: Cloak) -> None:
        self._site = site
        self._cloak = cloak
        self._estimator = site.estimator().estimator
        self._last: Recovery | None = None
        self._known: dict[bytes, PartialCloak] = {}

    def recover(self, batch: Sequence[Frame], *, keep: bool = True) -> list[FrameRecovery]:
        """Recover the frames of a batch, in order of time.

        Estimators that can continue from earlier frames do so; with `keep`, later batches continue from this one.
        """
        groups: dict[bytes, list[Frame]] = {}
        for frame in batch:
            groups.setdefault(frame.present.tobytes(), []).append(frame)
        last = self._last
        recovered: list[FrameRecovery] = []
        for frames in groups.values():
            present = frames[0].present
            part = self._part(present)
            steps = np.stack([frame.steps[present] for frame in frames])
            values = np.zeros((len(frames), part.physics.sensors))
            used = present if part.physics.sensors == len(present) else slice(None)
            values[:, used] = steps * part.steps[used] - self._site.baselines[present]
            last = recover(values, part, estimator=self._estimator, after=last)
            recovered += recovered_frames(last, frames)
        if keep:
            self._last = last
        return sorted(recovered, key=lambda frame: frame.time)

    def _part(self, present: NDArray[np.bool_]) -> PartialCloak:
        key = present.tobytes()
        if key not in self._known:
            if len(self._known) >= _KNOWN_PATTERNS:
                self._known.pop(next(iter(self._known)))
            self._known[key] = partial_cloak(self._cloak, present, self._site.drift)
        return self._known[key]


def recovered_frames(recovery: Recovery, frames: Sequence[Frame]) -> Iterator[FrameRecovery]:
    """Each frame of a recovered batch, in which all frames have readings of the same sensors."""
    used = np.flatnonzero(frames[0].present)
    solution = recovery.solution
    for k, frame in enumerate(frames):
        fit = recovery.fit[k]
        # a fit counts the sensors that it uses: from here on they are counted among all of the site
        set_aside = tuple(sorted({*used[list(fit.set_aside)].tolist(), *frame.aside}))
        yield FrameRecovery(
            frame.time,
            frame.reported,
            recovery.status[k],
            float(recovery.gap[k]),
            replace(fit, set_aside=set_aside),
            recovery.map[k],
            recovery.map[k] if solution.intensity is None else solution.intensity[k],
            None if solution.counts is None else solution.counts[k],
            recovery.sources[k],
        )
