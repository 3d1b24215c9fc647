"""A site that this collector serves: its site file, its frozen plan, and its frames in a store."""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np

from cloakwork.collect.message_problems import CANNOT_MEASURE, BudgetRules
from cloakwork.collect.storage import Store, plan_of
from cloakwork.errors import InputError, PlanError, SiteError
from cloakwork.privacy import Cloak
from cloakwork.readings import OTHER_PLAN, Frame, Problems
from cloakwork.sensor.measuring import BLOCK
from cloakwork.site import (
    BitPlan,
    BitSite,
    EstimatorChoice,
    Plan,
    Schedule,
    Site,
    load_any_plan,
    load_any_site,
    plan_beside,
)

LONGEST_WAIT_MS, SHORTEST_WAIT_MS = 10_000, 500
PERIODS_AHEAD = 3
LONGEST_LAG, SHORTEST_LAG = 10, 2
OFTEN_MS = 10_000
FRAMES_AT_ONCE = 256
LONGEST_REPORT_MS = 86_400_000  # how far back the history of reports is read
MAX_REPORTS = 10_000
OFFLINE = "offline"


class Collected:
    """What the collector knows of a site with its frozen plan, whether its sensors report readings or bits."""

    site: Site | BitSite
    plan: Plan | BitPlan

    @property
    def follows(self) -> bool:
        """Whether a result rests on earlier frames, as presence does."""
        return True

    @property
    def lag(self) -> int:
        """Frames until a result is settled: those of one window, at most ten; 0 where no frame is judged again."""
        return min(self.plan.claim.readings_per_window, LONGEST_LAG)

    @property
    def estimator_name(self) -> str:
        return "presence"

    @property
    def hold_ms(self) -> int:
        """The time for which a zone in doubt keeps its state."""
        return round(1000 * self.site.hold_s)

    @property
    def name(self) -> str:
        return self.site.name

    @property
    def ids(self) -> tuple[str, ...]:
        """Sensor ids, in the order of their rows."""
        return self.site.sensor_ids

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The row of each sensor."""
        return {name: row for row, name in enumerate(self.ids)}

    @property
    def schedule(self) -> Schedule:
        """The times at which the devices measure."""
        return self.plan.schedule

    @property
    def shared(self) -> int:
        """The sensors that must agree on an odd time before it counts: half, and never one alone among others."""
        return min(len(self.ids), max(2, -(-len(self.ids) // 2)))

    @property
    def wait_ms(self) -> int:
        """Default time that a frame waits for its remaining sensors: about half a period."""
        return max(SHORTEST_WAIT_MS, min(self.schedule.period_ms // 2, LONGEST_WAIT_MS))

    @property
    def ahead_ms(self) -> int:
        """The time by which a stamp may be ahead of the clock; later stamps mean a wrong clock."""
        return PERIODS_AHEAD * self.schedule.period_ms

    @property
    def window_ms(self) -> int:
        """The time window that the claim covers."""
        return round(1000 * self.plan.window)

    @property
    def budget_rules(self) -> BudgetRules:
        window_ms, allowed = math.floor(1000 * self.plan.window), self.plan.claim.readings_per_window
        return BudgetRules(window_ms, allowed, self.schedule.period_ms, self.plan.together, frozenset(self.ids))

    def frame(self, time: int, values: Mapping[str, int]) -> Frame:
        """Build a frame from the steps of each sensor; ignores sensors that the site does not have."""
        return _frame(time, values, self.index, ())

    def frames(self, store: Store, times: Sequence[int]) -> list[Frame]:
        """Read the frames of some times, in order; those without a reading of the site under its plan are left out.

        Readings under another plan have other noise: what is concluded from them together would be wrong, and an
        attacker would seem weaker. Readings of devices that cannot measure do not count.
        """
        counts = _made_under(store, self.name, self.plan.id)
        found = _frames(store, self.name, self.index, times, self.schedule.period_ms, counts)
        return [frame for frame in found if frame.reported]

    def unusable(self, frame: Frame) -> str:
        """The reason why recovering a frame is not worthwhile; empty if it is."""
        period = self.schedule.period_ms
        if not frame.reported:
            return "no sensor of the site has a reading under its plan"
        if not frame.present.any():
            return "all devices that reported cannot measure"
        if frame.time % period and frame.reported < self.shared:
            return f"stamped {frame.time}, not a multiple of the period of {period} ms, and few sensors share that time"
        return ""


@dataclass(frozen=True, eq=False)
class CollectedSite(Collected):
    """A site of readings with its frozen plan; raises an error if the plan does not fit the site file.

    `file` is the path of the plan, for messages.
    """

    site: Site
    plan: Plan
    file: Path | None = None

    def __post_init__(self) -> None:
        self.cloak  # noqa: B018 - reject a plan that does not fit now, not with the first frame

    @cached_property
    def cloak(self) -> Cloak:
        """The noise of the plan. It holds no key, and the collector never releases anything with it."""
        return self.plan.cloak(self.site, file=self.file or "PLAN")

    @cached_property
    def follows(self) -> bool:
        """Whether sources are followed from frame to frame."""
        return self.site.follows

    @property
    def lag(self) -> int:
        """Frames until a result is settled: those of one window, at most ten; 0 where no frame is judged again.

        Judging more frames together takes longer, so sites that read often settle sooner. So do those whose readings
        drift: in a long window, offsets and people who are missed hold each other in place.
        """
        slow = self.schedule.period_ms >= OFTEN_MS and self.site.drift is None
        longest = LONGEST_LAG if slow else SHORTEST_LAG
        again = self.follows and not self.site.samples_locally
        return min(self.plan.claim.readings_per_window, longest) if again else 0

    @cached_property
    def estimator(self) -> EstimatorChoice:
        """The estimator for frames of this site, and why it was chosen."""
        return self.site.estimator()

    @property
    def estimator_name(self) -> str:
        return type(self.estimator.estimator).__name__


@dataclass(frozen=True, eq=False)
class CollectedBits(Collected):
    """A site of bits with its frozen plan; raises an error if the plan does not fit the site file."""

    site: BitSite
    plan: BitPlan
    file: Path | None = None

    def __post_init__(self) -> None:
        self.plan.check(self.site, file=self.file or "PLAN")


def _made_under(store: Store, site: str, plan: str) -> Callable[[int, str, int], bool] | None:
    """A test of readings, whether each was made under a plan; None if all were, or no plan is known."""
    periods = store.plans.periods(site)
    if all(period.scale.plan == plan for period in periods):
        return None
    return lambda received, sensor, seq: plan_of(periods, received, sensor, seq).plan == plan


def _frame(time: int, values: Mapping[str, int], index: Mapping[str, int], unable: Container[str]) -> Frame:
    steps, present = np.zeros(len(index), np.int64), np.zeros(len(index), bool)
    rows = {index[name]: name for name in values if name in index}
    for row, name in rows.items():
        steps[row], present[row] = values[name], name not in unable
    return Frame(time, steps, present, tuple(sorted(row for row in rows if not present[row])))


def _frames(
    store: Store,
    site: str,
    index: Mapping[str, int],
    times: Sequence[int],
    period_ms: int,
    counts: Callable[[int, str, int], bool] | None,
) -> list[Frame]:
    values, unable = store.frames.values(site, times, counts), unable_sensors(store, site, times, period_ms)
    return [_frame(time, values[time], index, unable[time]) for time in sorted(values)]


def unable_sensors(store: Store, site: str, times: Sequence[int], period_ms: int) -> dict[int, set[str]]:
    """The sensors whose devices could not measure at each time, by their own reports.

    A device judges 16 readings together, so its last report up to 16 periods later covers a reading. One that is
    `offline` may still have measured: its readings come later.
    """
    reports, judged = store.reports.latest(site), BLOCK * period_ms
    if times and any(report.received > min(times) + judged for report in reports):
        since, until = min(times) - LONGEST_REPORT_MS, max(times) + judged
        reports += store.reports.history(site, since=since, until=until, limit=MAX_REPORTS)
    unable: dict[int, set[str]] = {}
    waiting = sorted((report for report in reports if report.state != OFFLINE), key=lambda report: -report.received)
    now: set[str] = set()
    for time in sorted(times):
        while waiting and waiting[-1].received <= time + judged:
            report = waiting.pop()
            now = now | {report.sensor} if report.state in CANNOT_MEASURE else now - {report.sensor}
        unable[time] = now
    return unable


def load_collected_site(path: str | Path) -> CollectedSite | CollectedBits:
    """Load a site file and the plan next to it. The plan is required: it describes the noise of the devices."""
    site = load_any_site(path)
    file = plan_beside(path)
    if not file.is_file():
        raise PlanError(
            f"{path} has no plan next to it, so the noise of its devices is unknown. Put the plan that they were "
            f"provisioned with at {file}, or write a new one.",
            reason="missing",
            plan=str(file),
            site=str(path),
            rewrite=True,
        )
    plan = load_any_plan(file)
    plan.check(site, file=file)
    if isinstance(site, BitSite):
        return CollectedBits(site, cast("BitPlan", plan), file)
    return CollectedSite(site, cast("Plan", plan), file)


def load_collected_sites(paths: Iterable[str | Path]) -> dict[str, CollectedSite | CollectedBits]:
    """Load several site files, by site name; each name must be unique."""
    sites: dict[str, CollectedSite | CollectedBits] = {}
    for path in paths:
        site = load_collected_site(path)
        if site.name in sites:
            raise SiteError(
                f"{sites[site.name].site.source} and {path} both describe a site called {site.name}: give each site "
                "once, under its own name.",
                name=site.name,
            )
        sites[site.name] = site
    return sites


class StoredFrames:
    """The stored frames of a site in a period, in the order of time; skips readings whose clock was not set.

    Readings that were not made under the `plan` of this id are left out. During and after the iteration, `rows` counts
    the readings and `problems` those that were left out, by reason; `share` is how far it has come, from 0 to 1.
    """

    def __init__(
        self, store: Store, site: Site, since: int | None = None, until: int | None = None, *, plan: str
    ) -> None:
        known = ", ".join(dict.fromkeys(period.scale.plan for period in store.plans.periods(site.name)))
        if known and plan not in known.split(", "):
            raise InputError(
                f"the readings of {site.name} in the store were received under plan {known}, not "
                f"{plan or 'one computed now'}: give that plan, and the site file that belongs to it.",
                plan=plan,
                known=known,
            )
        self.rows, self.share, self.problems = 0, 0.0, Problems()
        self._store, self._site, self._since, self._until = store, site, max(since or 0, 1), until
        self._index = {name: row for row, name in enumerate(site.sensor_ids)}
        self._made_under_plan = _made_under(store, site.name, plan)

    def __iter__(self) -> Iterator[Frame]:
        name, since = self._site.name, self._since
        first, last = stored_span(self._store, name, self._since, self._until)
        while stored := self._store.frames.times(name, since, self._until, FRAMES_AT_ONCE, newest_first=False):
            times = [frame.time for frame in stored]
            found = _frames(self._store, name, self._index, times, self._site.period_ms, self._counts)
            yield from (frame for frame in found if frame.present.any())
            since = times[-1] + 1
            self.share = (since - first) / (last + 1 - first)

    def _counts(self, received: int, sensor: str, seq: int) -> bool:
        self.rows += 1
        problem = "" if sensor in self._index else "unknown sensor"
        if not problem and self._made_under_plan is not None and not self._made_under_plan(received, sensor, seq):
            problem = OTHER_PLAN
        self.problems.counts.update([problem] if problem else [])
        return not problem


def stored_span(store: Store, site: str, since: int | None = None, until: int | None = None) -> tuple[int, int]:
    """The times of the first and the last stored frame of a period; raises `InputError` if there is none."""
    ends = [store.frames.times(site, max(since or 0, 1), until, 1, newest_first=newest) for newest in (False, True)]
    if all(ends):
        return ends[0][0].time, ends[1][0].time
    known = ", ".join(name for name in store.sites() if store.frames.times(name, 1, None, 1))
    if not known:
        raise InputError("the store has no readings yet.", site=site, known=known)
    raise InputError(
        f"the store has no reading of {site} in this period; it has readings of: {known}. Check the period, and "
        "that this is the right store.",
        site=site,
        known=known,
    )
