"""From frames to results that can be kept, and from a whole window to what an attacker could say."""

import logging
import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.collect.frames import agreed
from cloakwork.collect.place import Watched
from cloakwork.collect.records import FAILED, Reading, Result, Spot
from cloakwork.errors import CloakworkError, InputError
from cloakwork.readings import Frame, reporting
from cloakwork.readings.frames import Found, Recoveries, founds
from cloakwork.recovery import Source, recover

Clock = Callable[[], int]
log = logging.getLogger(__name__)


def unix_ms() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000


def failed(result: Result) -> bool:
    """Whether nothing could be recovered from a frame; its status then says why."""
    return result.status.startswith(FAILED)


def packed(values: FloatArray) -> bytes:
    """A map as it is stored."""
    return zlib.compress(np.asarray(values, dtype="<f4").tobytes(), 6)


class Solver:
    """Recovers frames of one site, one after the other or in batches; for one thread.

    A result's map is what a picture shows: the expected number of sources at each place where the estimator knows it.
    """

    def __init__(self, watched: Watched, *, clock: Clock = unix_ms) -> None:
        self.watched = watched
        self._clock = clock
        self._recoveries = Recoveries(watched.site, watched.cloak)

    def prepare(self) -> float:
        """Do once what the first frame would have to wait for: compile, and factor the model. Seconds it took."""
        began = time.perf_counter()
        steps = np.rint(self.watched.baselines / self.watched.cloak.steps).astype(np.int64)
        self._recoveries.of([Frame(0, steps, np.ones(len(steps), bool))], keep=False)
        return time.perf_counter() - began

    def solve(self, frames: Sequence[Frame], *, keep: bool = True) -> list[Result]:
        """A result for every frame, in the order of time; one that cannot be recovered does not stop the others.

        Later frames go on from these if `keep`.
        """
        began = time.perf_counter()
        bad = {frame.time: reason for frame in frames if (reason := self._useless(frame))}
        found = self._attempt([frame for frame in frames if frame.time not in bad], bad, keep=keep)
        took = 1000 * (time.perf_counter() - began) / max(1, len(frames))
        results = [result_of(self.watched, one, self._clock(), took) for one in found]
        sensors = {frame.time: max(1, int(frame.present.sum())) for frame in frames}
        results += [self._failure(when, sensors[when], reason, took) for when, reason in bad.items()]
        return sorted(results, key=lambda result: result.time)

    def _useless(self, frame: Frame) -> str:
        """Why it is not worth while to recover a frame; empty if it is."""
        sensors, period = int(frame.present.sum()), self.watched.schedule.period_ms
        if not sensors:
            return "no reading is of a sensor of the site"
        if frame.time % period and not agreed(sensors, len(frame.present)):
            return f"stamped {frame.time}, not a multiple of the period of {period} ms, and few sensors share that time"
        return ""

    def _attempt(self, frames: Sequence[Frame], bad: dict[int, str], *, keep: bool) -> list[Found]:
        """What was found; frames that cannot be recovered even on their own are put among the bad ones."""
        if not frames:
            return []
        try:
            return self._recoveries.of(frames, keep=keep)
        except Exception as problem:
            said = _said(problem)
            log.info("%s: a batch of %d frames failed (%s); trying each alone", self.watched.name, len(frames), said)
        found: list[Found] = []
        for frame in frames:
            try:
                found += self._recoveries.of([frame], keep=keep)
            except Exception as problem:
                bad[frame.time] = _said(problem)
                log.exception("%s: nothing could be recovered from the frame of %d", self.watched.name, frame.time)
        return found

    def _failure(self, when: int, sensors: int, reason: str, took: float) -> Result:
        return Result(
            site=self.watched.name,
            time=when,
            sensors=sensors,
            expected=len(self.watched.ids),
            estimator=self.watched.estimator_name,
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


def result_of(watched: Watched, found: Found, solved: int, took_ms: float) -> Result:
    """What was found, in the form in which it is kept; `solved` is Unix milliseconds."""
    return Result(
        site=watched.name,
        time=found.time,
        sensors=found.sensors,
        expected=len(watched.ids),
        estimator=watched.estimator_name,
        status=found.status.name.lower(),
        gap=found.gap,
        fit=found.fit.p_value,
        set_aside=tuple(watched.ids[sensor] for sensor in found.fit.set_aside),
        counts=None if found.counts is None else tuple(float(chance) for chance in found.counts),
        sources=tuple(_spot(source, watched) for source in found.sources),
        map=packed(found.shown),
        solved=solved,
        took_ms=took_ms,
    )


@dataclass(frozen=True)
class Attack:
    """What someone with all readings of a window can say if nobody moved: `result` is from all of them together.

    `since` is the time of the first frame; the last one's is that of the result. `cut` if the window has more readings
    than are looked at: then the last ones are.
    """

    result: Result
    frames: int
    readings: int
    since: int
    cut: bool = False


class Readings(Protocol):
    """What is needed of a store to look back over a window."""

    def iterate(self, site: str, since: int | None = None, until: int | None = None) -> Iterator[Reading]:
        """Readings of since <= time < until."""


def window_until(store: Readings, watched: Watched, when: int) -> Iterator[Reading]:
    """All stored readings of the window that ends with Unix millisecond `when`."""
    return store.iterate(watched.name, since=max(1, when - watched.window_ms + 1), until=when + 1)


def attack(watched: Watched, readings: Iterable[Reading], *, clock: Clock = unix_ms) -> Attack:
    """What all these readings say together about sources that stayed where they are; takes up to some seconds.

    Notes
    -----
    The mean of the k readings of a sensor has the noise sigma / sqrt(k), and its roundings shrink alike: one frame with
    that noise holds all that k frames say about sources that do not move.
    """
    began = time.perf_counter()
    sums, numbers, times = [0] * len(watched.ids), np.zeros(len(watched.ids), np.int64), set()
    for reading in readings:
        row = watched.index.get(reading.sensor)
        if row is not None and reading.time > 0:
            sums[row] += reading.value
            numbers[row] += 1
            times.add(reading.time)
    present = numbers > 0
    if not times:
        raise InputError(f"{watched.name}: there is no reading in this window. Choose a later time.", site=watched.name)
    part = reporting(watched.cloak, present)
    shrink = 1 / np.sqrt(numbers[present])
    means = np.array([total / number for total, number in zip(sums, numbers.tolist(), strict=True) if number])
    values = means * part.steps - watched.baselines[present]
    combined = replace(part, sigmas=part.sigmas * shrink, steps=part.steps * shrink)
    recovery = recover(values[None, :], combined, estimator=watched.estimator.estimator)
    [found] = founds(recovery, [max(times)], present)
    result = result_of(watched, found, clock(), 1000 * (time.perf_counter() - began))
    return Attack(result, len(times), int(numbers.sum()), min(times))


def _spot(source: Source, watched: Watched) -> Spot:
    space = watched.site.physics.space
    flat = space.labels is None and space.places.shape[1] > 0
    return Spot(
        place=str(source.place) if flat else space.name(source.place),
        at=tuple(float(value) for value in np.atleast_1d(np.asarray(source.at))) if flat else (),
        weight=float(source.weight),
        radius=float(source.radius),
        probability=float(source.probability),
    )


def _said(problem: Exception) -> str:
    """Our own errors speak for themselves; of others only the kind is told, for they may quote anything."""
    return str(problem) if isinstance(problem, CloakworkError) else f"the solver raised {type(problem).__name__}"
