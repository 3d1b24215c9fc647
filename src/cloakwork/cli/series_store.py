"""`cloakwork series --from-store`: series from the results in a collector's store."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from cloakwork._files import KeptResults
from cloakwork.cli.output import noting_kept, refuse_unwritable
from cloakwork.cli.planned_noise import PlannedNoise, planned_noise
from cloakwork.collect import Result, Store, StoredFrames, enough_agree, open_store, unpack_map
from cloakwork.errors import InputError
from cloakwork.readings import Frame, FrameRecoverer
from cloakwork.series import Bins, CountedSeries, RecoveredSources, SourceCount, count_visits
from cloakwork.site import load_site

NO_COUNTS = "this is not a file of counts. Give that of an interrupted series, or a new one."
_PAGE = 500  # results at a time


def count_store(
    url: str,
    site_file: Path,
    bins: Bins,
    *,
    zones: Sequence[str],
    count: str | None,
    most: float | None,
    visit: int,
    kept: Path | None,
    progress: Callable[[int], None],
) -> CountedSeries:
    """Count recovered sources in a collector's store; `progress` receives the milliseconds of the period read.

    Frames that were followed are recovered again, which takes a tenth of a second each: with `kept`, what was counted
    in them is in that file, and not counted again.
    """
    counting = SourceCount.chosen(load_site(site_file), zones=zones, count=count, most=most)
    name = counting.site.name
    if kept is not None:
        refuse_unwritable("--kept", kept, site_file, *counting.site.files.values())
    with open_store(url, make=False) as store, noting_kept(kept, "The counts so far"):
        known = store.sites()
        if name not in known:
            raise InputError(
                f"the store has no result of {name}; it holds: {', '.join(known) or 'nothing'}. A collector stores "
                "results while it runs: check that this is the right store."
            )
        counts = None if kept is None else KeptResults(kept, "frame", "levels", _levels, NO_COUNTS)
        alone = _FramesAlone(counting, site_file, counts)
        return count_visits(counting, _recovered_frames(store, counting, alone, bins, progress), bins, visit=visit)


def _levels(values: Any) -> list[float]:
    return [float(level) for level in values]


class _FramesAlone:
    """Recovers frames again, each from its own readings: a visit must not show in frames before and after it."""

    def __init__(self, counting: SourceCount, site_file: Path, kept: KeptResults[list[float]] | None) -> None:
        self._counting, self._site, self._file, self._kept = counting, counting.site, site_file, kept

    @cached_property
    def _noise(self) -> PlannedNoise:
        return planned_noise(self._site, self._file, None)

    @cached_property
    def _recoverer(self) -> FrameRecoverer:
        return FrameRecoverer(self._site, self._noise.cloak)

    def frames(self, store: Store, results: Sequence[Result]) -> Mapping[int, Frame]:
        """The frames of a page of results if any of them was followed, without readings made under another plan."""
        if all(result.labels is None for result in results):
            return {}
        ends = results[0].time, results[-1].time + 1
        return {frame.time: frame for frame in StoredFrames(store, self._site, *ends, plan=self._noise.id)}

    def recover(self, frame: Frame) -> RecoveredSources:
        """The count of a frame."""
        if self._kept is None:
            return self._recover(frame)
        digest = sha256(self._about + repr(frame.time).encode())
        digest.update(frame.steps.tobytes() + frame.present.tobytes())
        name = digest.hexdigest()
        if name not in self._kept.known:
            levels = self._counting.levels(self._recover(frame))
            self._kept.add(name, levels, levels)
        return RecoveredSources(frame.time, levels=self._kept.known[name])

    def _recover(self, frame: Frame) -> RecoveredSources:
        [found] = self._recoverer.recover([frame], keep=False)
        number = len(found.sources) if found.counts is None else np.dot(np.arange(len(found.counts)), found.counts)
        return RecoveredSources(frame.time, float(number), found.shown)

    @cached_property
    def _about(self) -> bytes:
        """Everything but the readings of its frame on which a count depends."""
        about = version("cloakwork"), self._site.spec.model_dump_json(), self._noise.digest, self._counting.names
        return repr(about).encode()


def _recovered_frames(
    store: Store, counting: SourceCount, alone: _FramesAlone, bins: Bins, progress: Callable[[int], None]
) -> Iterator[RecoveredSources]:
    """All frames of a site in these bins, including those from which nothing could be recovered.

    Leaves out frames at odd times that few sensors share: one device could make any number of them. Which sensors share
    a frame is public.
    """
    site, maps, after = counting.site, bool(counting.zones), None
    while True:
        page = store.results.page(
            site.name, since=bins.start, until=bins.end, limit=_PAGE, after=after, maps=maps, failed=True
        )
        frames = alone.frames(store, page.items)
        for result in page.items:
            progress(result.time - bins.start)
            if result.time % site.period_ms and not enough_agree(result.sensors, result.expected):
                continue
            if result.labels is not None:
                frame = frames.get(result.time)
                yield RecoveredSources(result.time) if frame is None else alone.recover(frame)
                continue
            odds = result.counts
            sources = float(len(result.sources) if odds is None else np.dot(np.arange(len(odds)), odds))
            weights = None if result.map is None else unpack_map(result.map)
            yield RecoveredSources(result.time, None if result.failed else sources, weights)
        after = page.next
        if after is None:
            return
