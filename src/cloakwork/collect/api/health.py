"""`GET /v1/sites/{site}/health`: how the sensors are, how far recovery is behind, and what went wrong."""

from collections import Counter, defaultdict
from dataclasses import asdict

from fastapi import APIRouter
from pydantic import Field

from cloakwork.collect.api.errors import responses
from cloakwork.collect.api.gate import READERS, CallerOf, allow
from cloakwork.collect.api.hub import WITHHELD
from cloakwork.collect.api.models import Told
from cloakwork.collect.api.parts import Parts, PartsOf
from cloakwork.collect.api.sites import SiteName
from cloakwork.collect.place import Watched
from cloakwork.collect.problems import Reason
from cloakwork.collect.records import Report, Role

FRAMES = 60  # newest frames in which missing sensors are counted
ALARMS = 100


class SensorHealth(Told):
    """One sensor: what it said last, and how its readings come.

    `missing` is in how many of the last `frames` frames it has no reading; `late`, `again` and `alarms` are counted
    since the store was made. Times are Unix milliseconds, null where nothing came yet.
    """

    id: str
    state: str | None = Field(examples=["online"])
    used: int | None
    allowed: int
    last_seen: int | None
    last_reading: int | None
    sigma: float
    missing: int
    frames: int
    late: int
    again: int
    alarms: int


class LagBody(Told):
    """How recovery goes: `ms` is the age of the newest frame that was recovered, `delay_ms` how long that one took.

    `waiting` frames are ready and wait (`more` if there may be others in the store), `open` ones wait for sensors;
    `solved` and `failed` count since the start, `per_second` is of the last minute; `reason` is why it stands still.
    """

    ms: int | None
    delay_ms: int | None
    waiting: int
    more: bool
    open: int
    solved: int
    failed: int
    per_second: float
    took_ms: float
    reason: str


class LinkBody(Told):
    """The broker or the store: `ok`, `away`, or `none` where there is no broker."""

    state: str = Field(examples=["ok"])
    since: int | None
    reason: str


class ProblemBody(Told):
    """Messages that could not be used or were remarkable, counted."""

    sensor: str
    reason: str
    count: int
    last: int


class AlarmBody(Told):
    """A sequence number that came with two values."""

    sensor: str
    seq: int
    received: int


class HealthBody(Told):
    """All of it."""

    site: str
    sensors: list[SensorHealth]
    lag: LagBody
    queued: int = Field(description="Readings that wait to be stored.")
    broker: LinkBody
    store: LinkBody
    problems: list[ProblemBody]
    alarms: list[AlarmBody]


async def health(site: SiteName, parts: PartsOf, caller: CallerOf) -> HealthBody:
    """How a site is: per sensor, recovery, broker, store, problems and alarms."""
    watched = parts.site(site, caller)
    return await parts.work.read(_health, parts, site, watched, caller.role is Role.OPERATOR)


def _health(parts: Parts, site: str, watched: Watched, trusted: bool) -> HealthBody:
    """A reason may name hosts and files, so only an operator is `trusted` with it."""
    store, intake, now = parts.store, parts.intake.state, parts.live.lag(site)
    lag = {"ms": now.lag_ms} | asdict(now) | {"reason": _reason(now.reason, trusted)}
    problems = [one for one in store.problems(site) if one.site == site]
    alarms = store.alarms(site, limit=ALARMS)
    return HealthBody(
        site=site,
        sensors=_sensors(parts, site, watched),
        lag=LagBody.model_validate(lag),
        queued=intake.queued,
        broker=_broker(parts, trusted),
        store=_link(intake.storing, intake.since, _reason(intake.reason, trusted)),
        problems=[ProblemBody(sensor=p.sensor, reason=p.reason, count=p.count, last=p.last) for p in problems],
        alarms=[AlarmBody(sensor=a.sensor, seq=a.seq, received=a.received) for a in alarms],
    )


def _sensors(parts: Parts, site: str, watched: Watched) -> list[SensorHealth]:
    reports = {report.sensor: report for report in parts.store.reports(site)}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for problem in parts.store.problems(site):
        counts[problem.sensor][problem.reason] += problem.count
    times = [frame.time for frame in parts.store.frame_times(site, limit=FRAMES)]
    present: Counter[str] = Counter()
    newest: dict[str, int] = {}
    for moment, values in sorted(parts.store.frames(site, times).items()):
        present.update(values.keys())
        newest.update(dict.fromkeys(values, moment))
    return [
        SensorHealth(
            id=sensor.id,
            state=said.state if (said := reports.get(sensor.id)) else None,
            used=said.used if said else None,
            allowed=said.allowed if said else watched.plan.claim.readings_per_window,
            last_seen=_latest(said, newest.get(sensor.id)),
            last_reading=newest.get(sensor.id),
            sigma=sensor.sigma,
            missing=len(times) - present[sensor.id],
            frames=len(times),
            late=counts[sensor.id][Reason.LATE],
            again=counts[sensor.id][Reason.DUPLICATE],
            alarms=counts[sensor.id][Reason.ALARM],
        )
        for sensor in watched.plan.sensors
    ]


def _latest(report: Report | None, reading: int | None) -> int | None:
    known = [moment for moment in (report.received if report else None, reading) if moment is not None]
    return max(known, default=None)


def _broker(parts: Parts, trusted: bool) -> LinkBody:
    if parts.broker is None:
        return LinkBody(state="none", since=None, reason="readings come by HTTP only")
    state = parts.broker.state
    return _link(state.connected, state.since, _reason(state.reason, trusted))


def _link(good: bool, since: int, reason: str) -> LinkBody:
    return LinkBody(state="ok" if good else "away", since=since, reason=reason)


def _reason(text: str, trusted: bool) -> str:
    return text if trusted or not text else WITHHELD


def add(router: APIRouter) -> None:
    """Put the route of this module in place."""
    router.get(
        "/v1/sites/{site}/health",
        tags=["sites"],
        responses=responses(401, 403, 404, 422, 429, 503),
        openapi_extra=allow(*READERS),
    )(health)
