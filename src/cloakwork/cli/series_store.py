"""`cloakwork series --from-store`: series from the results in a collector's store."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from cloakwork.collect import Store, enough_agree, open_store, unpack_map
from cloakwork.errors import InputError
from cloakwork.series import Bins, CountedSeries, RecoveredSources, SourceCount, count_visits
from cloakwork.site import load_site

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
    progress: Callable[[int], None],
) -> CountedSeries:
    """Count recovered sources in a collector's store; `progress` receives the milliseconds of the period read."""
    counting = SourceCount.chosen(load_site(site_file), zones=zones, count=count, most=most)
    name = counting.site.name
    with open_store(url, make=False) as store:
        known = store.sites()
        if name not in known:
            raise InputError(
                f"the store has no result of {name}; it holds: {', '.join(known) or 'nothing'}. A collector stores "
                "results while it runs: check that this is the right store."
            )
        return count_visits(counting, _recovered_frames(store, counting, bins, progress), bins, visit=visit)


def _recovered_frames(
    store: Store, counting: SourceCount, bins: Bins, progress: Callable[[int], None]
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
        for result in page.items:
            progress(result.time - bins.start)
            if result.time % site.period_ms and not enough_agree(result.sensors, result.expected):
                continue
            odds = result.counts
            sources = float(len(result.sources) if odds is None else np.dot(np.arange(len(odds)), odds))
            weights = None if result.map is None else unpack_map(result.map)
            yield RecoveredSources(result.time, None if result.failed else sources, weights)
        after = page.next
        if after is None:
            return
