"""From frames to stored results."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.follower import Follower
from cloakwork.collect.frame_results import make_result
from cloakwork.collect.storage import FAILED, Result, Store, unix_ms
from cloakwork.errors import CloakworkError, StoreError
from cloakwork.readings import Frame, FrameRecoverer, FrameRecovery

Clock = Callable[[], int]
log = logging.getLogger(__name__)


class Solver:
    """Recovers frames of one site, one by one or in batches; for one thread.

    A result's map is what a picture shows: the expected number of sources at each place, if the estimator gives it.
    With a `store`, sources are followed through its frames where the site allows it.
    """

    def __init__(self, site: CollectedSite, store: Store | None = None, *, clock: Clock = unix_ms) -> None:
        self.site = site
        self._clock = clock
        self._recoverer = FrameRecoverer(site.site, site.cloak)
        self._follower = Follower(site, store, clock) if store is not None and site.follows else None

    def prepare(self) -> float:
        """Compile and factor the model, so that the first frame does not wait; returns the seconds it took.

        Where sources are followed, few frames are recovered alone: that is compiled with the first that is.
        """
        began = time.perf_counter()
        if self._follower is not None:
            self._follower.prepare()
        else:
            steps = np.rint(self.site.baselines / self.site.cloak.steps).astype(np.int64)
            self._recoverer.recover([Frame(0, steps, np.ones(len(steps), bool))], keep=False)
        return time.perf_counter() - began

    def solve(self, frames: Sequence[Frame], *, keep: bool = True, before: Result | None = None) -> list[Result]:
        """Return a result for every frame, in the order of time; a frame that fails does not stop the others.

        With `keep`, later frames continue from these. `before` is the result before the first frame. Where sources are
        followed, the frames are in the order of time, and results of earlier ones that settled are returned too.
        """
        began = time.perf_counter()
        failures = {frame.time: reason for frame in frames if (reason := self.site.unusable(frame))}
        usable = [frame for frame in frames if frame.time not in failures]
        results = [] if self._follower is None else self._follow(self._follower, usable)
        followed = {result.time for result in results if not result.settled}
        alone = self._recover([frame for frame in usable if frame.time not in followed], failures, keep=keep)
        took = 1000 * (time.perf_counter() - began) / max(1, len(frames))
        for found in alone:
            before = make_result(self.site, found, self._clock(), took, before=before)
            results.append(before)
        sensors = {frame.time: max(1, frame.reported) for frame in frames}
        results += [self._failure(when, sensors[when], reason, took) for when, reason in failures.items()]
        return sorted(results, key=lambda result: result.time)

    def used(self, when: int) -> Mapping[str, int]:
        """The readings that a settled result was made from, by sensor."""
        return {} if self._follower is None else self._follower.used(when)

    def _follow(self, follower: Follower, frames: Sequence[Frame]) -> list[Result]:
        """Follow sources through frames; a frame that fails is left out, and the next begins anew."""
        results: list[Result] = []
        for frame in frames:
            try:
                results += follower.take(frame)
            except StoreError:
                follower.reset()
                raise
            except Exception as problem:
                follower.reset()
                log.info("%s: the frame of %d was not followed (%s)", self.site.name, frame.time, _reason(problem))
        return results

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


def _reason(problem: Exception) -> str:
    """The text of our own errors; of others only the type, because their text may quote anything."""
    return str(problem) if isinstance(problem, CloakworkError) else f"the solver raised {type(problem).__name__}"
