"""Sites: each in a line, the shape and the health of one, and `POST /v1/sites/{site}/erase`."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field, model_validator

from cloakwork.collect.api.access_control import BODY_ERRORS, READERS, CallerDep, GuardedRoute, guarded
from cloakwork.collect.api.api_metrics import reason_code
from cloakwork.collect.api.route_context import (
    ApiContext,
    ContextDep,
    Moment,
    RequestModel,
    SensorId,
    SiteName,
)
from cloakwork.collect.api.site_geometry import GeometryBody, site_geometry
from cloakwork.collect.collected_site import OFFLINE, CollectedBits, CollectedSite
from cloakwork.collect.message_problems import CLAIM_BREAKING, Reason
from cloakwork.collect.physics_watch import fault_text
from cloakwork.collect.site_worker import RecoveryState
from cloakwork.collect.storage import Alarm, DeviceReport, Erased, FoundFault, ProblemCount, Role
from cloakwork.errors import ApiError
from cloakwork.site import Forecast

ALARMS = 3  # of each sensor
MAX_COUNTED = 50_000  # readings
WITHHELD = "an operator can see the reason"
log = logging.getLogger(__name__)
router = APIRouter(route_class=GuardedRoute)


class StayBody(BaseModel):
    """The claim for a source that stays in one place for up to so many `seconds`."""

    seconds: float = Field(examples=[28_800.0])
    epsilon: float
    delta: float


class SiteBody(BaseModel):
    """A site in one line: its privacy claim, its schedule, and the time there.

    A site of `bits` hides whether anyone is in a zone; its claim covers what `shared` sensors report together. Other
    sites have null there, and hide moves of up to `alpha`.

    A result stamped more than `ahead_ms` after the collector's clock comes from a device whose clock is wrong. Where
    the site `follows` its sources, a result is settled `lag` frames later. A zone in doubt changes its state when the
    other one has been more likely for `hold_ms`.
    """

    name: str = Field(examples=["hall"])
    kind: str = Field(examples=["floorplan"])
    sensors: int
    places: int
    unit: str = Field(examples=["°C"])
    alpha: float | None = Field(default=None, description="Moves of up to this length are hidden; null for bits.")
    shared: int | None = Field(default=None, description="Sensors of bits that one person may change in a reading.")
    epsilon: float
    delta: float
    scope: str = Field(default="network", description="Whether the claim is about all sensors or one.")
    window_s: float
    readings_per_window: int
    stay: StayBody | None = Field(default=None, description="The claim for long stays, or null.")
    assumptions: list[str] = Field(description="Assumptions of the claim besides the model, one sentence each.")
    left_open: list[str] = Field(
        description="What usual rooms and sensors do that the claim does not cover here, one sentence each."
    )
    forecast: Forecast | None = Field(description="How often the map was right in the plan's simulation, or null.")
    period_ms: int
    ahead_ms: int
    now: int = Field(description="The collector's clock, in Unix milliseconds.")
    simulated: bool = Field(description="Whether GET .../truth knows where everyone is: in a demonstration.")
    speed: float = Field(description="How many times faster than real time that clock runs: 1 except in a demo.")
    estimator: str = Field(examples=["PointSources"])
    follows: bool
    lag: int
    hold_ms: int


class EraseIn(RequestModel):
    """A request to erase a sensor, a period, both, or everything."""

    sensor: SensorId | None = None
    since: Moment | None = None
    until: Moment | None = None
    everything: bool = False

    @model_validator(mode="after")
    def _explicit(self) -> "EraseIn":
        part = (self.sensor, self.since, self.until) != (None, None, None)
        if part == self.everything:
            raise ValueError("give sensor, since or until; or only everything = true to erase all of the site")
        return self


@router.get("/v1/sites", tags=["sites"], **guarded(READERS))
def list_sites(context: ContextDep, caller: CallerDep) -> list[SiteBody]:
    """The sites that this token may see, each with its claim and its schedule."""
    return [_site_body(name, context) for name in context.sites if caller.sees(name)]


@router.get("/v1/sites/{site}", tags=["sites"], **guarded(READERS, 404, 422))
def show_site(site: SiteName, context: ContextDep, caller: CallerDep) -> GeometryBody:
    """The shape of a site: places, walls, doors, sensors and zones."""
    return site_geometry(site, context.site(site, caller))


@router.post("/v1/sites/{site}/erase", tags=["administration"], **guarded((Role.OPERATOR,), 404, *BODY_ERRORS))
def erase(site: SiteName, body: EraseIn, context: ContextDep, caller: CallerDep) -> Erased:
    """Erase stored readings of a sensor or a period, and the results of their frames. This cannot be undone."""
    watched = context.site(site, caller)
    known = body.sensor is None or body.sensor in watched.ids
    if body.since is not None and body.until is not None and body.since >= body.until:
        raise ApiError(422, "invalid", "body: until is not after since. Give since <= time < until.")
    erased = context.store.erase(site, body.sensor, body.since, body.until)
    what = "a sensor that the site no longer has" if not known else body.sensor or "all sensors"
    log.warning("token %s erased data of %s: %s, %d readings", caller.token.id, site, what, erased.readings)
    if erased.in_files:
        log.warning("the files of the store still hold what was erased: another program has it open; erase again")
    return erased


def _site_body(name: str, context: ApiContext) -> SiteBody:
    watched = context.sites[name]
    site, plan, claim = watched.site, watched.plan, watched.plan.claim
    own: dict[str, Any]
    if isinstance(watched, CollectedBits):
        own = {"kind": "bits", "places": 0, "shared": watched.plan.claim.shared}
    else:
        own = {"kind": watched.site.spec.physics.kind, "places": len(watched.site.physics.space)}
        own |= {"alpha": watched.plan.claim.alpha, "scope": watched.plan.claim.scope}
        if (stay := watched.plan.stay) is not None:
            own["stay"] = StayBody(seconds=stay.length, epsilon=stay.epsilon, delta=stay.delta)
    return SiteBody(
        **own,
        name=name,
        sensors=len(watched.ids),
        unit=site.unit,
        epsilon=claim.epsilon,
        delta=claim.delta,
        readings_per_window=claim.readings_per_window,
        window_s=claim.window,
        assumptions=list(site.assumptions),
        left_open=list(map(str, site.left_open)),
        forecast=plan.forecast,
        period_ms=plan.schedule.period_ms,
        ahead_ms=watched.ahead_ms,
        now=context.clock(),
        simulated=context.simulation is not None,
        speed=context.speed,
        estimator=watched.estimator_name,
        follows=watched.follows,
        lag=watched.lag,
        hold_ms=watched.hold_ms,
    )


class SensorHealth(BaseModel):
    """One sensor: its last report, and how its readings arrive.

    `used` is how many readings of the window it has used: its own count, or the collector's if that is higher; null if
    nothing arrived in this window. `allowed` is the plan's. `last_reading` is null before the first reading.
    """

    id: str
    state: str | None = Field(examples=["online"])
    used: int | None
    allowed: int
    last_reading: int | None


class LinkBody(BaseModel):
    """The broker or the store: `ok`, `away`, or `none` where there is no broker."""

    state: str = Field(examples=["ok"])
    since: int | None
    reason: str


@dataclass(frozen=True)
class ProblemBody(ProblemCount):
    """Unusable or unusual messages, counted since the store was made; `code` is for programs.

    `breaks_claim` says that the site's privacy claim does not hold for this sensor.
    """

    code: Annotated[str, Field(examples=[reason_code(Reason.LATE)])]
    breaks_claim: bool


@dataclass(frozen=True, kw_only=True)
class FaultBody(FoundFault):
    """A sensor, or with an empty `sensor` the physics of all, that no longer follows the model; found at `raised`.

    `text` says what to do. `other` is the sensor whose position it seems to have, or the number of a door. `ended` is
    null while it lasts.
    """

    text: str


class HealthBody(BaseModel):
    """The health of a site."""

    site: str
    now: int = Field(description="The collector's clock, in Unix milliseconds.")
    sensors: list[SensorHealth]
    lag: RecoveryState
    queued: int = Field(description="Readings that wait to be stored.")
    broker: LinkBody
    store: LinkBody
    problems: list[ProblemBody]
    alarms: list[Alarm]
    faults: list[FaultBody]


@router.get("/v1/sites/{site}/health", tags=["sites"], **guarded(READERS, 404, 422))
def health(site: SiteName, context: ContextDep, caller: CallerDep) -> HealthBody:
    """The health of a site: sensors, recovery, broker, store, problems, alarms and faults of the physics."""
    watched, store = context.site(site, caller), context.store
    intake, lag = context.intake.state, context.live.state(site)

    def shown(reason: str) -> str:  # it may name hosts and files
        return reason if caller.role is Role.OPERATOR or not reason else WITHHELD

    def link(working: bool, since: int, reason: str) -> LinkBody:
        return LinkBody(state="ok" if working else "away", since=since, reason=shown(reason))

    broker = LinkBody(state="none", since=None, reason="readings arrive by HTTP only")
    if context.broker is not None:
        state = context.broker.state
        broker = link(state.connected, state.since, state.reason)
    return HealthBody(
        site=site,
        now=context.clock(),
        sensors=_sensors(context, watched),
        lag=replace(lag, reason=shown(lag.reason)),
        queued=intake.queued,
        broker=broker,
        store=link(intake.storing, intake.since, intake.reason),
        problems=[
            ProblemBody(**vars(one), code=reason_code(one.reason), breaks_claim=one.reason in CLAIM_BREAKING)
            for one in store.problems.counts(site)
        ],
        alarms=store.readings.alarms(site, each=ALARMS),
        faults=[FaultBody(**vars(fault), text=fault_text(fault)) for fault in store.checks.faults(site)],
    )


def _sensors(context: ApiContext, watched: CollectedSite | CollectedBits) -> list[SensorHealth]:
    now, site, store = context.clock(), watched.name, context.store
    reports = {report.sensor: report for report in store.reports.latest(site)}
    used = _used(context, watched, reports, now)
    newest = store.readings.newest(site, watched.ids, now + watched.ahead_ms)
    return [
        SensorHealth(
            id=sensor,
            state=reports[sensor].state if sensor in reports else None,
            used=used[sensor],
            allowed=watched.budget_rules.allowed,
            last_reading=min(newest[sensor], now) if newest.get(sensor, 0) > 0 else None,
        )
        for sensor in watched.ids
    ]


def _used(
    context: ApiContext, watched: CollectedSite | CollectedBits, reports: Mapping[str, DeviceReport], now: int
) -> dict[str, int | None]:
    """Return the use of the window by each sensor: its own count, or the stored readings if there are more.

    A device's own count is of this window unless it is offline or has not reported since. Where a window has very many
    readings only its end is counted.
    """
    rules = watched.budget_rules
    share = min(1.0, MAX_COUNTED / (rules.allowed * len(watched.ids)))
    start = now - round(share * rules.window_ms) + 1
    used: dict[str, int | None] = dict.fromkeys(watched.ids)
    used |= {
        sensor: report.used
        for sensor, report in reports.items()
        if sensor in used and report.state != OFFLINE and report.received > now - rules.window_ms
    }
    for sensor, count in context.store.readings.counts(watched.name, start, now + 1, received=start).items():
        if sensor in used:
            used[sensor] = max(count, used[sensor] or 0)
    return used
