"""From frames to stored results, and from a whole window to an attacker's estimate."""

import logging
import math
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.occupancy import zone_states
from cloakwork.collect.open_frames import enough_agree
from cloakwork.collect.storage import FAILED, Reading, RecoveredSource, Result, ZoneState, unix_ms
from cloakwork.errors import CloakworkError, InputError
from cloakwork.readings import Frame, FrameRecoverer, FrameRecovery, partial_cloak, recovered_frames
from cloakwork.recovery import Source, recover

Clock = Callable[[], int]
log = logging.getLogger(__name__)


def pack_map(weights: FloatArray) -> bytes:
    """Compress the weights of a map for the store."""
    return zlib.compress(np.asarray(weights, dtype="<f4").tobytes(), 6)


def unpack_map(packed: bytes) -> FloatArray:
    """Return the weights of a stored map, one per place."""
    return np.frombuffer(zlib.decompress(packed), dtype="<f4").astype(np.float64)


class Solver:
    """Recovers frames of one site, one by one or in batches; for one thread.

    A result's map is what a picture shows: the expected number of sources at each place, if the estimator gives it.
    """

    def __init__(self, site: CollectedSite, *, clock: Clock = unix_ms) -> None:
        self.site = site
        self._clock = clock
        self._recoverer = FrameRecoverer(site.site, site.cloak)

    def prepare(self) -> float:
        """Compile and factor the model, so that the first frame does not wait; returns the seconds it took."""
        began = time.perf_counter()
        steps = np.rint(self.site.baselines / self.site.cloak.steps).astype(np.int64)
        self._recoverer.recover([Frame(0, steps, np.ones(len(steps), bool))], keep=False)
        return time.perf_counter() - began

    def solve(
        self, frames: Sequence[Frame], *, keep: bool = True, zones: Sequence[ZoneState] | None = None
    ) -> list[Result]:
        """Return a result for every frame, in the order of time; a frame that fails does not stop the others.

        With `keep`, later frames continue from these. `zones` are those of the result before the first frame.
        """
        began = time.perf_counter()
        failures = {frame.time: reason for frame in frames if (reason := self._unusable(frame))}
        recovered = self._recover([frame for frame in frames if frame.time not in failures], failures, keep=keep)
        took = 1000 * (time.perf_counter() - began) / max(1, len(frames))
        results: list[Result] = []
        for found in recovered:
            results.append(make_result(self.site, found, self._clock(), took, zones))
            zones = results[-1].zones
        sensors = {frame.time: max(1, int(frame.present.sum())) for frame in frames}
        results += [self._failure(when, sensors[when], reason, took) for when, reason in failures.items()]
        return sorted(results, key=lambda result: result.time)

    def _unusable(self, frame: Frame) -> str:
        """Why recovering a frame is not worthwhile; empty if it is."""
        sensors, period = int(frame.present.sum()), self.site.schedule.period_ms
        if not sensors:
            return "no reading is of a sensor of the site"
        if frame.time % period and not enough_agree(sensors, len(frame.present)):
            return f"stamped {frame.time}, not a multiple of the period of {period} ms, and few sensors share that time"
        return ""

    def _recover(self, frames: Sequence[Frame], failures: dict[int, str], *, keep: bool) -> list[FrameRecovery]:
        """Recover frames together; if that fails, one by one, and add those that still fail to `failures`."""
        if not frames:
            return []
        name = self.site.name
        try:
            return self._recoverer.recover(frames, keep=keep)
        except Exception as problem:
            log.info("%s: a batch of %d frames failed (%s); trying each alone", name, len(frames), _reason(problem))
        recovered: list[FrameRecovery] = []
        for frame in frames:
            try:
                recovered += self._recoverer.recover([frame], keep=keep)
            except Exception as problem:
                failures[frame.time] = _reason(problem)
                log.exception("%s: nothing could be recovered from the frame of %d", name, frame.time)
        return recovered

    def _failure(self, when: int, sensors: int, reason: str, took: float) -> Result:
        return Result(
            site=self.site.name,
            time=when,
            sensors=sensors,
            expected=len(self.site.ids),
            estimator=self.site.estimator_name,
            status=f"{FAILED}: {reason}",
            gap=math.nan,
            fit=math.nan,
            set_aside=(),
            counts=None,
            sources=(),
            map=None,
            solved=self._clock(),
            took_ms=took,
        )


def make_result(
    site: CollectedSite,
    found: FrameRecovery,
    solved: int,
    took_ms: float,
    zones: Sequence[ZoneState] | None = None,
) -> Result:
    """Convert a recovered frame to the record that the store keeps; `solved` is in Unix milliseconds.

    `zones` are those of the result before it.
    """
    return Result(
        site=site.name,
        time=found.time,
        sensors=found.sensors,
        expected=len(site.ids),
        estimator=site.estimator_name,
        status=found.status.name.lower(),
        gap=found.gap,
        fit=found.fit.p_value,
        set_aside=tuple(site.ids[sensor] for sensor in found.fit.set_aside),
        counts=None if found.counts is None else tuple(float(chance) for chance in found.counts),
        sources=tuple(_recovered_source(source, site) for source in found.sources),
        map=pack_map(found.shown),
        solved=solved,
        took_ms=took_ms,
        zones=zone_states(site.site, found, zones or (), hold_ms=site.hold_ms),
    )


@dataclass(frozen=True)
class Attack:
    """The combined readings of a window, which reveal more about sources that did not move.

    `since` is the time of the first frame; the result has the time of the last. `cut` says that the window has more
    readings than were used: then the last ones were.
    """

    result: Result
    frames: int
    readings: int
    since: int
    cut: bool = False


def attack(site: CollectedSite, readings: Iterable[Reading], *, clock: Clock = unix_ms) -> Attack:
    """Combine all these readings, assuming that no source moved; takes up to some seconds.

    Notes
    -----
    The mean of k readings of a sensor has noise sigma / sqrt(k), and its rounding error shrinks alike: one frame with
    that noise holds all that k frames reveal about sources that do not move.
    """
    began = time.perf_counter()
    sums, numbers, times = [0] * len(site.ids), np.zeros(len(site.ids), np.int64), set()
    for reading in readings:
        row = site.index.get(reading.sensor)
        if row is not None and reading.time > 0:
            sums[row] += reading.value
            numbers[row] += 1
            times.add(reading.time)
    present = numbers > 0
    if not times:
        raise InputError(f"{site.name}: there is no reading in this window. Choose a later time.", site=site.name)
    part = partial_cloak(site.cloak, present)
    shrink = 1 / np.sqrt(numbers[present])
    means = np.array([total / number for total, number in zip(sums, numbers.tolist(), strict=True) if number])
    values = means * part.steps - site.baselines[present]
    combined = replace(part, sigmas=part.sigmas * shrink, roundings=part.roundings * shrink)
    recovery = recover(values[None, :], combined, estimator=site.estimator.estimator)
    [found] = recovered_frames(recovery, [max(times)], present)
    result = make_result(site, found, clock(), 1000 * (time.perf_counter() - began))
    return Attack(result, len(times), int(numbers.sum()), min(times))


def _recovered_source(source: Source, site: CollectedSite) -> RecoveredSource:
    space = site.site.physics.space
    flat = space.labels is None and space.places.shape[1] > 0
    return RecoveredSource(
        place=str(source.place) if flat else space.name(source.place),
        at=tuple(float(value) for value in np.atleast_1d(np.asarray(source.at))) if flat else (),
        weight=float(source.weight),
        radius=float(source.radius),
        probability=float(source.probability),
    )


def _reason(problem: Exception) -> str:
    """The text of our own errors; of others only the type, because their text may quote anything."""
    return str(problem) if isinstance(problem, CloakworkError) else f"the solver raised {type(problem).__name__}"
