"""A site that this collector serves: its site file, its frozen plan, and its frames in a store."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.collect.open_frames import enough_agree
from cloakwork.collect.problems import BudgetRules
from cloakwork.collect.storage import Store
from cloakwork.errors import InputError, PlanError, SiteError
from cloakwork.privacy import Cloak
from cloakwork.readings import Frame, Problems
from cloakwork.site import EstimatorChoice, Plan, Schedule, Site, load_plan, load_site, plan_beside

LONGEST_WAIT_MS, SHORTEST_WAIT_MS = 10_000, 500
PERIODS_AHEAD = 3
LONGEST_LAG, SHORTEST_LAG = 10, 2
OFTEN_MS = 10_000
FRAMES_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class CollectedSite:
    """A site with its frozen plan; raises an error if the plan does not fit the site file.

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

    @property
    def name(self) -> str:
        """The site's name."""
        return self.site.name

    @property
    def ids(self) -> tuple[str, ...]:
        """Sensor ids, in the order of the model's rows; binary sensors last."""
        return (*self.site.sensor_ids, *self.site.binary_ids)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The row of each sensor; those of binary sensors follow the model's."""
        return {name: row for row, name in enumerate(self.ids)}

    @property
    def schedule(self) -> Schedule:
        """The times at which the devices measure."""
        return self.plan.schedule

    @property
    def wait_ms(self) -> int:
        """Default time that a frame waits for its remaining sensors: about half a period."""
        return max(SHORTEST_WAIT_MS, min(self.schedule.period_ms // 2, LONGEST_WAIT_MS))

    @property
    def ahead_ms(self) -> int:
        """The time by which a stamp may be ahead of the clock; later stamps mean a wrong clock."""
        return PERIODS_AHEAD * self.schedule.period_ms

    @cached_property
    def follows(self) -> bool:
        """Whether sources are followed from frame to frame."""
        return self.site.follows

    @property
    def lag(self) -> int:
        """Frames until a result is settled: those of one window, at most ten; 0 where sources are not followed.

        Judging more frames together takes longer, so sites that read often settle sooner.
        """
        longest = LONGEST_LAG if self.schedule.period_ms >= OFTEN_MS else SHORTEST_LAG
        return min(self.plan.claim.readings_per_window, longest) if self.follows else 0

    @property
    def hold_ms(self) -> int:
        """The time for which a zone in doubt keeps its state."""
        return round(1000 * self.site.hold_s)

    @property
    def window_ms(self) -> int:
        """The time window that the claim covers."""
        return round(1000 * self.plan.claim.window)

    @property
    def budget_rules(self) -> BudgetRules:
        """The plan's rules for each sensor."""
        claim = self.plan.claim
        window_ms = math.floor(1000 * claim.window)
        return BudgetRules(
            window_ms, claim.readings_per_window, self.schedule.period_ms, aligned=claim.scope == "network"
        )

    @cached_property
    def estimator(self) -> EstimatorChoice:
        """The estimator for frames of this site, and why it was chosen."""
        return self.site.estimator()

    @property
    def estimator_name(self) -> str:
        """The estimator's name in results."""
        return type(self.estimator.estimator).__name__

    @property
    def places(self) -> int:
        """Number of places, which is also the length of a map."""
        return self.site.physics.places

    @property
    def baselines(self) -> FloatArray:
        """The reading of each sensor without a source nearby, shape (m,)."""
        return self.site.baselines

    def frame(self, time: int, values: Mapping[str, int]) -> Frame:
        """Build a frame from the steps of each sensor; ignores sensors that the site does not have."""
        return _frame(time, values, self._rows)

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {name: row for row, name in enumerate(self.site.sensor_ids)}

    def count_bits(self, values: Mapping[str, int]) -> int:
        """Number of binary sensors among those that have a value."""
        return sum(name in values for name in self.site.binary_ids)

    def unusable(self, frame: Frame) -> str:
        """The reason why recovering a frame is not worthwhile; empty if it is."""
        sensors, period = int(frame.present.sum()), self.schedule.period_ms
        if not sensors:
            return "no reading is of a sensor of the site"
        if frame.time % period and not enough_agree(sensors, len(frame.present)):
            return f"stamped {frame.time}, not a multiple of the period of {period} ms, and few sensors share that time"
        return ""


def _frame(time: int, values: Mapping[str, int], index: Mapping[str, int]) -> Frame:
    steps, present = np.zeros(len(index), np.int64), np.zeros(len(index), bool)
    for name, value in values.items():
        row = index.get(name)
        if row is not None:
            steps[row], present[row] = value, True
    return Frame(time, steps, present)


def load_collected_site(path: str | Path) -> CollectedSite:
    """Load a site file and the plan beside it. The plan is required: it describes the noise of the devices."""
    site = load_site(path)
    file = plan_beside(path)
    if not file.is_file():
        raise PlanError(
            f"{path} has no plan beside it, so the noise of its devices is unknown. Put the plan that they were "
            f"provisioned with at {file}, or write a new one.",
            reason="missing",
            plan=str(file),
            site=str(path),
            rewrite=True,
        )
    return CollectedSite(site, load_plan(file), file)


def load_collected_sites(paths: Iterable[str | Path]) -> dict[str, CollectedSite]:
    """Load several site files, by site name; each name must be unique."""
    sites: dict[str, CollectedSite] = {}
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

    Readings of the sensors in `others` are no part of a frame.

    During and after the iteration, `rows` counts the readings and `problems` those that were left out, by reason.
    """

    def __init__(
        self,
        store: Store,
        site: str,
        sensor_ids: tuple[str, ...],
        since: int | None = None,
        until: int | None = None,
        *,
        others: tuple[str, ...] = (),
    ) -> None:
        self.rows = 0
        self.problems = Problems()
        self._store = store
        self._site = site
        self._index = {name: row for row, name in enumerate(sensor_ids)}
        self._known = {*sensor_ids, *others}
        self._since, self._until = max(since or 0, 1), until

    @property
    def span(self) -> tuple[int, int]:
        """The times of the first and the last frame; raises `InputError` if there is none."""
        ends = [self._times(self._since, 1, newest_first=newest) for newest in (False, True)]
        if not all(ends):
            with_readings = self._store.frames.times
            names = [name for name in self._store.sites() if with_readings(name, 1, None, 1, newest_first=False)]
            known = ", ".join(names)
            if not known:
                raise InputError("the store has no readings yet.", site=self._site, known=known)
            raise InputError(
                f"the store has no reading of {self._site} in this period; it has readings of: {known}. Check the "
                "period, and that this is the right store.",
                site=self._site,
                known=known,
            )
        return ends[0][0], ends[1][0]

    def __iter__(self) -> Iterator[Frame]:
        since = self._since
        while times := self._times(since, FRAMES_AT_ONCE, newest_first=False):
            for time, values in self._store.frames.values(self._site, times).items():
                self.rows += len(values)
                unknown = sum(name not in self._known for name in values)
                if unknown:
                    self.problems.counts["unknown sensor"] += unknown
                if any(name in self._index for name in values):
                    yield _frame(time, values, self._index)
            since = times[-1] + 1

    def _times(self, since: int, limit: int, *, newest_first: bool) -> list[int]:
        frames = self._store.frames.times(self._site, since, self._until, limit, newest_first=newest_first)
        return [frame.time for frame in frames]
