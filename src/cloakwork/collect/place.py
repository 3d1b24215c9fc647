"""A site that is collected here: its site file, its frozen plan, and what follows from the two."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from cloakwork._checks import FloatArray
from cloakwork.errors import SiteError
from cloakwork.privacy import Cloak
from cloakwork.readings import Frame
from cloakwork.site import EstimatorChoice, Plan, Schedule, Site, load_plan, load_site, plan_beside

LONGEST_WAIT_MS, SHORTEST_WAIT_MS = 10_000, 500
AHEAD = 3  # periods


@dataclass(frozen=True, eq=False)
class Watched:
    """A site with its frozen plan; refused where the plan is not of the site as it is now.

    `file` is where the plan was read from, for messages.
    """

    site: Site
    plan: Plan
    file: Path | None = None

    def __post_init__(self) -> None:
        self.cloak  # noqa: B018 - a plan that does not fit is refused now, not with the first frame

    @cached_property
    def cloak(self) -> Cloak:
        """The noise of the plan; it holds no key, and nothing is ever released with it here."""
        return self.plan.cloak(self.site, file=self.file or "PLAN")

    @property
    def name(self) -> str:
        """The site's name."""
        return self.site.name

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the sensors, in the order of the model's rows."""
        return self.site.sensor_ids

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The row of each sensor."""
        return {name: row for row, name in enumerate(self.ids)}

    @property
    def schedule(self) -> Schedule:
        """When its devices read."""
        return self.plan.schedule

    @property
    def wait_ms(self) -> int:
        """How long a frame waits for the rest of its sensors, unless someone says otherwise: half a period, about."""
        return max(SHORTEST_WAIT_MS, min(self.schedule.period_ms // 2, LONGEST_WAIT_MS))

    @property
    def ahead_ms(self) -> int:
        """How far ahead of the clock a stamp may be; further on it is a wrong clock's."""
        return AHEAD * self.schedule.period_ms

    @property
    def window_ms(self) -> int:
        """The stretch of time that the claim covers."""
        return round(1000 * self.plan.claim.window)

    @cached_property
    def estimator(self) -> EstimatorChoice:
        """What frames are recovered with, and why."""
        return self.site.estimator()

    @property
    def estimator_name(self) -> str:
        """The estimator, as results call it."""
        return type(self.estimator.estimator).__name__

    @property
    def places(self) -> int:
        """Number of places, and so of numbers in a map."""
        return self.site.physics.places

    @property
    def baselines(self) -> FloatArray:
        """What each sensor reads with no source near, shape (m,)."""
        return self.site.baselines

    def frame(self, time: int, values: Mapping[str, int]) -> Frame:
        """A frame from the steps of each sensor that reported; sensors that the site does not have are left out."""
        return as_frame(time, values, self.index)


def as_frame(time: int, values: Mapping[str, int], index: Mapping[str, int]) -> Frame:
    """A frame from the steps of each sensor; `index` gives the rows of those that count."""
    steps, present = np.zeros(len(index), np.int64), np.zeros(len(index), bool)
    for name, value in values.items():
        row = index.get(name)
        if row is not None:
            steps[row], present[row] = value, True
    return Frame(time, steps, present)


def watch(path: str | Path) -> Watched:
    """The site of a site file, with the plan beside it; refused without one, because the devices have their noise."""
    site = load_site(path)
    file = plan_beside(path)
    if not file.is_file():
        command = shlex.join(["cloakwork", "plan", str(path), "--out", str(file)])
        raise SiteError(
            f"{path} has no plan beside it, and without the plan nobody knows the noise of its devices. Put the plan "
            f"that they were provisioned with at {file}, or write a new one with: {command}",
            file=file,
        )
    return Watched(site, load_plan(file), file)


def watch_all(paths: Iterable[str | Path]) -> dict[str, Watched]:
    """The sites of several site files, by name; two of one name are refused."""
    found: dict[str, Watched] = {}
    for path in paths:
        watched = watch(path)
        if watched.name in found:
            raise SiteError(
                f"{found[watched.name].site.source} and {path} are both of a site called {watched.name}: give each "
                "site once, and a name of its own.",
                name=watched.name,
            )
        found[watched.name] = watched
    return found
