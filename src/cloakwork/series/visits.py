"""Series from the recovered frames of a site: how many sources are in a zone, or anywhere, over time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloakwork._checks import FloatArray, positive
from cloakwork.errors import InputError
from cloakwork.recovery import PointSources
from cloakwork.series.bins import Bins, span_text
from cloakwork.series.bounded_series import mean_levels
from cloakwork.series.count_files import CountedSeries
from cloakwork.site import Site, Zone

SAMPLED = (
    "Where positions of sources are sampled, a chain may start from the frame before: traces of a visit in the "
    "sampling error of later frames are not hidden."
)
SOURCES = "sources"
_ALL_ZONES = "all"


@dataclass(frozen=True, eq=False)
class RecoveredSources:
    """A recovered frame: the expected number of sources in all, and at each place.

    `sources` is None if nothing could be recovered, `map` also if it was not asked for. Where the number of sources for
    each name was counted before, `levels` has it.
    """

    time: int
    sources: float | None = None
    map: FloatArray | None = None
    levels: list[float] | None = None


@dataclass(frozen=True, eq=False)
class SourceCount:
    """The expected number of sources to count at a site: in some zones, or in all of the site without any.

    At most `most` counts at once.
    """

    site: Site
    zones: tuple[Zone, ...]
    most: float

    @classmethod
    def chosen(
        cls, site: Site, *, zones: Sequence[str] = (), count: str | None = None, most: float | None = None
    ) -> "SourceCount":
        """Count `sources` of the whole site, or those in zones; "all" is every zone."""
        if most is not None:
            positive("most_at_once", most)
        if count is not None:
            if zones or count != SOURCES:
                raise InputError("sources are counted in the whole site: give sources, and no zone.", parameter="count")
            limit = site.spec.sources.max_count if most is None else most
            if limit is None:
                raise InputError("the site file has no max_count: give a limit.", parameter="most_at_once")
            return cls(site, (), float(limit))
        known = {zone.id: zone for zone in site.zones}
        listed = ", ".join(known)
        if not known:
            raise InputError(
                f"{site.name} has no zones: add some to its site file, or count sources.", parameter="count"
            )
        if not zones:
            raise InputError(f"give one or more zones, or `all`: {listed}.", parameter=("zones", "count"))
        chosen = list(known) if list(zones) == [_ALL_ZONES] and _ALL_ZONES not in known else list(dict.fromkeys(zones))
        for name in chosen:
            if name not in known:
                raise InputError(
                    f"zones={name[:64]}: {site.name} has no such zone. It has {listed}; `all` takes them all.",
                    parameter="zones",
                )
        return cls(site, tuple(known[name] for name in chosen), 1.0 if most is None else most)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the series."""
        return tuple(zone.id for zone in self.zones) or (SOURCES,)

    def levels(self, frame: RecoveredSources) -> list[float]:
        """The number of sources for each name; empty if nothing was recovered, or the map is of other places."""
        if frame.levels is not None or frame.sources is None:
            return frame.levels or []
        if not self.zones:
            return [frame.sources]
        if frame.map is None or len(frame.map) != self.site.physics.places:
            return []
        return [float(frame.map[zone.places].sum()) for zone in self.zones]


def count_visits(
    counting: SourceCount,
    recovered: Iterable[RecoveredSources],
    bins: Bins,
    *,
    visit: int,
) -> CountedSeries:
    """Mean numbers of sources in bins, from the recovered frames of a site.

    That a frame exists is public, so a frame without a usable result counts as 0 rather than being left out.
    """
    site, nothing = counting.site, [0.0] * len(counting.names)
    times, rows, unusable = [], [], 0
    for frame in recovered:
        levels = counting.levels(frame)
        times.append(frame.time)
        rows.append(levels or nothing)
        unusable += not levels
    if not times:
        raise InputError(
            f"the store has no result of {site.name} in this period: check the period, and that this is the right "
            "store.",
            parameter=("start", "end"),
        )
    values = np.array(rows).reshape(-1, len(nothing)).T
    series = mean_levels(times, values, bins, visit=visit + visit_slack(site), most=counting.most)
    quantity = "the number of sources"
    if counting.zones:
        quantity = "the expected number in " + ("each zone" if len(counting.zones) > 1 else counting.zones[0].id)
    # Whether any result was sampled may show that somebody was present; the estimator in the site file is public.
    sampled = f" {SAMPLED}" if isinstance(site.estimator().estimator, PointSources) else ""
    return CountedSeries(
        series=replace(series, losses=replace(series.losses, rows=len(times), unreadable=unusable)),
        title=site.name,
        hides=f"This hides each single visit shorter than {span_text(visit)}: of its effect on {quantity}, at most "
        f"{counting.most:g} counts, so it changes the published means by at most {series.contribution:.4g} in all. "
        f"Someone who stays longer, or comes again, is hidden less. The times of the frames count as public.{sampled}",
        level="visit",
        names=counting.names,
        bins=bins,
        unit="sources, a mean",
        bound="most_at_once",
    )


def visit_slack(site: Site) -> int:
    """Milliseconds by which the readings of a frame may be apart from its time, before and after it together.

    Notes
    -----
    The time of a frame is that at which its slot begins. A reading is taken up to `late_ms` later, by a clock that may
    be half a period ahead or behind. So a visit of [a, a + V) shows only in frames from a - period / 2 - late to
    a + V + period / 2.
    """
    return site.schedule.period_ms + site.schedule.late_ms
