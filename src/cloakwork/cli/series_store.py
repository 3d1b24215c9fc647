"""Series from a collector's store: how many are in a zone, or anywhere, over time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from cloakwork._checks import FloatArray, IntArray
from cloakwork.cli.output import bar, counted
from cloakwork.cli.series_filters import parse_span, shown_span
from cloakwork.cli.series_given import (
    DEFAULT_EVERY,
    Given,
    SeriesOptions,
    check_bound,
    check_size,
    period,
    taken_period,
)
from cloakwork.cli.series_rows import lower
from cloakwork.collect import Result, Store, enough_agree, open_store, unpack_map
from cloakwork.errors import InputError
from cloakwork.recovery import PointSources
from cloakwork.series import Bins, BoundedSeries, mean_levels
from cloakwork.site import Site, Zone, load_site

ALL = "all"
SOURCES = "sources"
PAGE = 500
SAMPLED = (
    "Where placements of sources are sampled, a chain may begin at the frame before: what a visit leaves of itself in "
    "the sampling error of later frames is not hidden."
)


def from_store(options: SeriesOptions) -> Given:
    """Mean numbers of sources in bins, from the results that a collector has stored."""
    _refuse_others(options)
    check_bound("--most-at-once", options.most_at_once)
    site = load_site(options.source)
    wanted = _wanted(options, site)
    every = parse_span("--every", options.every or DEFAULT_EVERY)
    visit = every if options.visit is None else parse_span("--visit", options.visit)
    with open_store(options.from_store or "", make=False) as store:
        first, last = _ends(store, site.name)
        bins = period(options, first, last, every)
        check_size(bins.n, len(wanted.names))
        seen = _looked(store, site, wanted, bins)
    if not len(seen.times) or (seen.elsewhere and seen.elsewhere + seen.failed == len(seen.times)):
        raise InputError(
            f"the store has no result of {site.name} in this period that can be used: check --from and --to, and that "
            "the site file is the one that the collector has."
        )
    series = mean_levels(seen.times, seen.values, bins, visit=visit + slack(site), most=wanted.most)
    return Given(
        series,
        wanted.names,
        bins,
        level="visit",
        hides=_hides(series, wanted, visit, site),
        title=site.name,
        bound="--most-at-once",
        what="sources, a mean",
        taken=taken_period(options),
        remarks=tuple(_remarks(series, seen, wanted)),
    )


def slack(site: Site) -> int:
    """Milliseconds by which the readings of a frame may be apart from its time, before and after it together.

    Notes
    -----
    A frame has the time at which its slot begins. A reading is taken up to `late_ms` after that, by a clock that may
    be half a period ahead or behind. So a visit of [a, a + V) shows in frames of a - period / 2 - late to
    a + V + period / 2, at the most.
    """
    return site.schedule.period_ms + site.schedule.late_ms


def _may_sample(site: Site) -> bool:
    """Whether results of this site may have been sampled.

    Point sources are weighed where that is quick, which depends on the readings, and else sampled. Whether any result
    was may show that somebody was there, and so it is not looked up: what the site file says is public.
    """
    return isinstance(site.estimator().estimator, PointSources)


def _refuse_others(options: SeriesOptions) -> None:
    options.refuse(
        "this goes with a file, and not with --from-store.",
        time=options.time,
        value=options.value,
        most_per_event=options.most_per_event,
        step=options.step,
        person=options.person,
        most_per_person=options.most_per_person,
        counts=options.counts,
        contribution=options.contribution,
        series_by=options.series_by,
        names=options.names,
    )


@dataclass(frozen=True, eq=False)
class _Wanted:
    """What is looked up in each result: one number for each name; nothing where the result is of other places."""

    names: tuple[str, ...]
    most: float
    look: Callable[[Result], list[float]]
    what: str
    maps: bool


def _wanted(options: SeriesOptions, site: Site) -> _Wanted:
    if options.count is not None:
        if options.zones or options.count != SOURCES:
            raise InputError("--count sources counts the sources of the whole site: give nothing else, and no --zone.")
        most = options.most_at_once if options.most_at_once is not None else site.spec.sources.max_count
        if most is None:
            raise InputError("--count sources needs --most-at-once: the site file has no max_count.")
        return _Wanted((SOURCES,), float(most), lambda result: [_sources(result)], "the number of sources", maps=False)
    zones = _zones(options, site)
    most = 1.0 if options.most_at_once is None else options.most_at_once
    return _Wanted(
        tuple(zone.id for zone in zones),
        most,
        lambda result: _expected(result, site.physics.places, zones),
        "the expected number in each zone" if len(zones) > 1 else f"the expected number in {zones[0].id}",
        maps=True,
    )


def _zones(options: SeriesOptions, site: Site) -> list[Zone]:
    known = {zone.id: zone for zone in site.zones}
    if not known:
        raise InputError(f"{site.name} has no zones: name some in its site file, or give --count sources.")
    listed = ", ".join(known)
    if not options.zones:
        raise InputError(f"give --zone, once or several times, or --zone all; or --count sources. Zones: {listed}.")
    if list(options.zones) == [ALL] and ALL not in known:
        return list(known.values())
    for name in options.zones:
        if name not in known:
            raise InputError(
                f"--zone {name[:64]}: {site.name} has no such zone. It has: {listed}; `all` takes them all."
            )
    return [known[name] for name in dict.fromkeys(options.zones)]


def _sources(result: Result) -> float:
    """The expected number of sources, or how many were found where the estimator gives no odds."""
    if result.counts is None:
        return float(len(result.sources))
    return float(np.dot(np.arange(len(result.counts)), result.counts))


def _expected(result: Result, places: int, zones: list[Zone]) -> list[float]:
    weights = np.zeros(0) if result.map is None else unpack_map(result.map)
    return [float(weights[zone.places].sum()) for zone in zones] if len(weights) == places else []


def _ends(store: Store, site: str) -> tuple[int, int]:
    """The times of the first and the last result."""
    ends = [store.results.page(site, limit=1, newest_first=newest).items for newest in (False, True)]
    if not all(ends):
        known = ", ".join(store.sites()) or "nothing"
        raise InputError(
            f"the store has no result of {site}; it has something of: {known}. A collector makes results while it "
            "runs: check that this is the right store."
        )
    return ends[0][0].time, ends[1][0].time


@dataclass(frozen=True, eq=False)
class _Looks:
    """The time of each result and what is wanted of it, all 0 where it has none: that there is a result is public.

    Of results from which nothing could be recovered there are `failed`, of those of other places `elsewhere`.
    """

    times: IntArray
    values: FloatArray
    failed: int
    elsewhere: int


def _looked(store: Store, site: Site, wanted: _Wanted, bins: Bins) -> _Looks:
    times, values, without, elsewhere = [], [], 0, 0
    nothing = [0.0] * len(wanted.names)
    with bar("reading", bins.end - bins.start) as progress:
        for result in _results(store, site, bins, maps=wanted.maps):
            useless = result.failed or (wanted.maps and result.map is None)
            found = nothing if useless else wanted.look(result)
            times.append(result.time)
            values.append(found or nothing)
            without += useless
            elsewhere += not found
            progress(result.time - bins.start)
    columns = np.array(values).reshape(-1, len(wanted.names)).T
    return _Looks(np.array(times, dtype=np.int64), columns, without, elsewhere)


def _results(store: Store, site: Site, bins: Bins, *, maps: bool) -> Iterator[Result]:
    """Results of all frames, those from which nothing could be recovered among them.

    Left out are frames off the slots that few sensors share, of which one device could make any number; who shares a
    frame is public.
    """
    after: str | None = None
    while True:
        page = store.results.page(
            site.name, since=bins.start, until=bins.end, limit=PAGE, after=after, maps=maps, failed=True
        )
        for result in page.items:
            if result.time % site.period_ms == 0 or enough_agree(result.sensors, result.expected):
                yield result
        after = page.next
        if after is None:
            return


def _hides(series: BoundedSeries, wanted: _Wanted, visit: int, site: Site) -> str:
    return (
        f"This hides each single visit shorter than {shown_span(visit)}: whatever it made of {wanted.what}, at most "
        f"{wanted.most:g} counts, and so it changes the published means by no more than {series.contribution:.4g} in "
        "all. Someone who stays longer, or comes again, is hidden less." + (f" {SAMPLED}" if _may_sample(site) else "")
    )


def _remarks(series: BoundedSeries, seen: _Looks, wanted: _Wanted) -> list[str]:
    said, looks = [], len(seen.times)
    for number, why in ((seen.failed, "from which nothing was recovered"), (seen.elsewhere, "of other places")):
        if number:
            said.append(f"{counted(number, 'result')} {why}, counted as 0")
    if series.losses.clipped:
        said.append(f"{series.losses.clipped:,} of {looks:,} results with more than {wanted.most:g}, which was cut off")
    if series.losses.empty_bins:
        said.append(f"{counted(series.losses.empty_bins, 'bin')} without any result, counted as 0")
    return said + lower(series.losses)
