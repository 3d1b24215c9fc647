"""Sites: each in a line, the shape and the health of one, and `POST /v1/sites/{site}/erase`."""

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from fastapi import APIRouter
from pydantic import Field, model_validator

from cloakwork.collect.api.access_control import BODY_ERRORS, READERS, CallerDep, GuardedRoute, guarded
from cloakwork.collect.api.api_metrics import reason_code
from cloakwork.collect.api.event_hub import WITHHELD
from cloakwork.collect.api.route_context import (
    ApiContext,
    ContextDep,
    Moment,
    RequestModel,
    ResponseModel,
    SensorId,
    SiteName,
)
from cloakwork.collect.api.site_geometry import GeometryBody, site_geometry
from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.message_problems import CLAIM_BREAKING, BudgetRules, Reason
from cloakwork.collect.physics_watch import fault_text
from cloakwork.collect.site_worker import RecoveryState
from cloakwork.collect.storage import Alarm, DeviceReport, Erased, ProblemCount, Role
from cloakwork.errors import ApiError
from cloakwork.recovery import FaultKind
from cloakwork.site import Forecast

FEWEST, FRAMES = 10, 60  # newest frames in which missing sensors are counted: fewer where there are many sensors
ALARMS = 3  # of each sensor
MAX_COUNTED = 50_000  # readings
log = logging.getLogger(__name__)
router = APIRouter(route_class=GuardedRoute)


class StayBody(ResponseModel):
    """The claim for a source that stays in one place for up to so many `seconds`."""

    seconds: float = Field(examples=[28_800.0])
    epsilon: float
    delta: float


class SiteBody(ResponseModel):
    """A site in one line: its privacy claim, its schedule, and the time there.

    A site of `bits` hides whether anyone is in a zone; its claim covers what `shared` sensors report together. Other
    sites have null there, and hide moves of up to `alpha`.

    A result stamped more than `ahead_ms` after the collector's clock comes from a device whose clock is wrong. Where
    the site `follows` its sources, a result is settled `lag` frames later. A zone that is in
    doubt changes its state when the other one has been more likely for `hold_ms`.
    """

    name: str = Field(examples=["hall"])
    kind: str = Field(examples=["floorplan"])
    sensors: int
    places: int
    unit: str = Field(examples=["°C"])
    alpha: float | None = Field(description="Moves of up to this length are hidden; null for a site of bits.")
    shared: int | None = Field(description="Sensors of a site of bits that one person may change in a reading.")
    epsilon: float
    delta: float
    scope: str = Field(examples=["network"], description="Whether the claim is about all sensors or one.")
    window_s: float
    readings_per_window: int
    stay: StayBody | None = Field(description="The claim for long stays, or null.")
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
    return [_site_body(name, context) for name in context.site_names(caller)]


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
    claim = watched.plan.claim
    own: dict[str, Any]
    if isinstance(watched, CollectedBits):
        own = {
            "kind": "bits",
            "places": 0,
            "alpha": None,
            "shared": watched.plan.claim.shared,
            "scope": "network",
            "stay": None,
        }
    else:
        site, stay = watched.site, watched.plan.stay
        own = {
            "kind": site.spec.physics.kind,
            "places": len(site.physics.space),
            "alpha": watched.plan.claim.alpha,
            "shared": None,
            "scope": watched.plan.claim.scope,
            "stay": None if stay is None else StayBody(seconds=stay.length, epsilon=stay.epsilon, delta=stay.delta),
        }
    return SiteBody(
        name=name,
        sensors=len(watched.ids),
        unit=watched.site.unit,
        epsilon=claim.epsilon,
        delta=claim.delta,
        readings_per_window=claim.readings_per_window,
        window_s=claim.window,
        **own,
        assumptions=list(watched.site.assumptions),
        left_open=list(map(str, watched.site.left_open)),
        forecast=watched.plan.forecast,
        period_ms=watched.plan.schedule.period_ms,
        ahead_ms=watched.ahead_ms,
        now=context.clock(),
        simulated=context.simulation is not None,
        speed=context.speed,
        estimator=watched.estimator_name,
        follows=watched.follows,
        lag=watched.lag,
        hold_ms=watched.hold_ms,
    )


class BrokenBody(ResponseModel):
    """The reason why the claim does not hold for a sensor, and when it was last seen; `code` is for programs."""

    reason: str = Field(examples=[Reason.OVER.value])
    last: int
    code: str = Field(examples=[reason_code(Reason.OVER)])


class SensorHealth(ResponseModel):
    """One sensor: its last report, and how its readings arrive.

    `used` is how many readings of the window it has used: its own count, or the collector's if that is higher; null if
    nothing arrived in this window. `allowed` is the plan's. `missing` counts the frames without a reading of it among
    the last `frames`; `late`, `again` and `alarms` count since the store was made. `last_seen` is the time of the last
    reading, since a report may be one that the broker has kept for long; before the first reading, it is when the last
    report arrived. Times are Unix milliseconds, null where nothing has arrived yet.
    """

    id: str
    state: str | None = Field(examples=["online"])
    used: int | None
    allowed: int
    last_seen: int | None
    last_reading: int | None
    sigma: float | None = Field(description="Null for a sensor that reports bits.")
    missing: int
    frames: int
    late: int
    again: int
    alarms: int
    broken: list[BrokenBody]


class LinkBody(ResponseModel):
    """The broker or the store: `ok`, `away`, or `none` where there is no broker."""

    state: str = Field(examples=["ok"])
    since: int | None
    reason: str


class ProblemBody(ResponseModel):
    """Unusable or unusual messages, counted; `code` is for programs.

    `breaks_claim` says that the site's privacy claim does not hold for this sensor.
    """

    sensor: str
    reason: str
    count: int
    last: int
    code: str = Field(examples=[reason_code(Reason.LATE)])
    breaks_claim: bool


class FaultBody(ResponseModel):
    """A sensor, or with an empty `sensor` the physics of all, that no longer follows the model; found at `raised`.

    `text` says what to do. `other` is the sensor whose position it seems to have, or the number of a door. `ended` is
    null while it lasts.
    """

    sensor: str
    kind: str = Field(examples=[FaultKind.DEAD.value])
    other: str
    text: str
    raised: int
    ended: int | None


class HealthBody(ResponseModel):
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
    watched = context.site(site, caller)
    return _health(context, site, watched, caller.role is Role.OPERATOR)


def _health(context: ApiContext, site: str, watched: CollectedSite | CollectedBits, trusted: bool) -> HealthBody:
    """The body; a reason may name hosts and files, so only an operator is `trusted` with it."""
    store, intake, lag = context.store, context.intake.state, context.live.state(site)
    problems = store.problems.counts(site)
    broker = LinkBody(state="none", since=None, reason="readings arrive by HTTP only")
    if context.broker is not None:
        link = context.broker.state
        broker = _link_body(link.connected, link.since, link.reason, trusted)
    return HealthBody(
        site=site,
        now=context.clock(),
        sensors=_sensors(context, site, watched, problems),
        lag=replace(lag, reason=_reason(lag.reason, trusted)),
        queued=intake.queued,
        broker=broker,
        store=_link_body(intake.storing, intake.since, intake.reason, trusted),
        problems=[
            ProblemBody(
                **vars(problem), code=reason_code(problem.reason), breaks_claim=problem.reason in CLAIM_BREAKING
            )
            for problem in problems
        ],
        alarms=store.readings.alarms(site, each=ALARMS),
        faults=[FaultBody(**asdict(fault), text=fault_text(fault)) for fault in store.checks.faults(site)],
    )


def _sensors(
    context: ApiContext, site: str, watched: CollectedSite | CollectedBits, problems: Sequence[ProblemCount]
) -> list[SensorHealth]:
    now, rules = context.clock(), watched.budget_rules
    reports = {report.sensor: report for report in context.store.reports.latest(site)}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for problem in problems:
        counts[problem.sensor][problem.reason] += problem.count
    used = _used(context, watched, rules, reports, now)
    times = _frame_times(context, watched, now)
    planned = () if isinstance(watched, CollectedBits) else watched.plan.sensors
    sigmas = {sensor.id: sensor.sigma for sensor in planned}
    present = context.store.frames.present(site, times)
    last = context.store.readings.newest(site, watched.ids, now + watched.ahead_ms)
    newest = {name: min(moment, now) for name, moment in last.items() if moment > 0}
    return [
        SensorHealth(
            id=sensor,
            state=report.state if (report := reports.get(sensor)) else None,
            used=used[sensor],
            allowed=rules.allowed,
            last_seen=newest.get(sensor, report.received if report else None),
            last_reading=newest.get(sensor),
            sigma=sigmas.get(sensor),
            missing=len(times) - present.get(sensor, 0),
            frames=len(times),
            late=counts[sensor][Reason.LATE],
            again=counts[sensor][Reason.DUPLICATE],
            alarms=counts[sensor][Reason.ALARM],
            broken=_broken(sensor, problems, (used[sensor] or 0) > rules.allowed, now),
        )
        for sensor in watched.ids
    ]


def _frame_times(context: ApiContext, watched: CollectedSite | CollectedBits, now: int) -> list[int]:
    """The newest frames. A sensor can stamp as it likes, so only times on the slots count, and none far ahead."""
    period, store = watched.schedule.period_ms, context.store
    until = now + watched.ahead_ms
    limit = max(FEWEST, min(FRAMES, MAX_COUNTED // len(watched.ids)))
    frames = store.frames.times(watched.name, until=until, limit=limit, every=period)
    if not frames:  # all devices have another plan
        frames = store.frames.times(watched.name, until=until, limit=limit)
    return [frame.time for frame in frames]


def _used(
    context: ApiContext,
    watched: CollectedSite | CollectedBits,
    rules: BudgetRules,
    reports: Mapping[str, DeviceReport],
    now: int,
) -> dict[str, int | None]:
    """Return the use of the window by each sensor: its own count, or the stored readings if there are more.

    Where a window has very many readings only its end is counted.
    """
    share = min(1.0, MAX_COUNTED / (rules.allowed * len(watched.ids)))
    start = now - round(share * rules.window_ms) + 1
    stored = context.store.readings.counts(watched.name, start, now + 1, received=start)
    both = {name: (_reported(reports.get(name), rules, now), stored.get(name)) for name in watched.ids}
    return {name: max((number for number in pair if number is not None), default=None) for name, pair in both.items()}


def _reported(report: DeviceReport | None, rules: BudgetRules, now: int) -> int | None:
    """A device's own count; None if it is offline or has not reported in this window."""
    if report is None or report.state == "offline" or report.received <= now - rules.window_ms:
        return None
    return report.used


def _broken(sensor: str, problems: Sequence[ProblemCount], over: bool, now: int) -> list[BrokenBody]:
    """Return the visible reasons why the claim does not hold for a sensor."""
    seen = {problem.reason: problem.last for problem in problems if problem.sensor == sensor}
    if over:
        seen[Reason.OVER] = now
    return [
        BrokenBody(reason=reason, last=seen[reason], code=reason_code(reason))
        for reason in CLAIM_BREAKING
        if reason in seen
    ]


def _link_body(working: bool, since: int, reason: str, trusted: bool) -> LinkBody:
    return LinkBody(state="ok" if working else "away", since=since, reason=_reason(reason, trusted))


def _reason(text: str, trusted: bool) -> str:
    return text if trusted or not text else WITHHELD
