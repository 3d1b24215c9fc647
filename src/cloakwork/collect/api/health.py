"""`GET /v1/sites/{site}/health`: how the sensors are, how far recovery is behind, and what went wrong."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
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
from cloakwork.collect.problems import CLAIM_BREAKING, Reason
from cloakwork.collect.records import Problem, Report, Role
from cloakwork.collect.solve import unix_ms
from cloakwork.collect.spent import Rules, rules_of

FRAMES = 60  # newest frames in which missing sensors are counted
ALARMS = 3  # of each sensor
MOST_COUNTED = 50_000  # readings


class BrokenBody(Told):
    """Why the claim does not hold for a sensor, and when that was seen last."""

    reason: str = Field(examples=[Reason.OVER.value])
    last: int


class SensorHealth(Told):
    """One sensor: what it said last, and how its readings come.

    `used` is how many readings of the window it has used: what it says, or what was counted here if that is more; null
    if nothing came in this window. `allowed` is the plan's. `missing` is in how many of the last `frames` frames it has
    no reading; `late`, `again` and `alarms` are counted since the store was made. Times are Unix milliseconds, null
    where nothing came yet.
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
    broken: list[BrokenBody]


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
    problems = store.problems(site)
    alarms = store.alarms_of_each(site, each=ALARMS)
    return HealthBody(
        site=site,
        sensors=_sensors(parts, site, watched, problems),
        lag=LagBody.model_validate(lag),
        queued=intake.queued,
        broker=_broker(parts, trusted),
        store=_link(intake.storing, intake.since, _reason(intake.reason, trusted)),
        problems=[ProblemBody(sensor=p.sensor, reason=p.reason, count=p.count, last=p.last) for p in problems],
        alarms=[AlarmBody(sensor=a.sensor, seq=a.seq, received=a.received) for a in alarms],
    )


def _sensors(parts: Parts, site: str, watched: Watched, problems: Sequence[Problem]) -> list[SensorHealth]:
    now, rules = unix_ms(), rules_of(watched)
    reports = {report.sensor: report for report in parts.store.reports(site)}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for problem in problems:
        counts[problem.sensor][problem.reason] += problem.count
    used = {name: one for name, one in _used(parts, watched, rules, reports, now).items() if one is not None}
    times = _frame_times(parts, watched, now)
    present: Counter[str] = Counter()
    newest: dict[str, int] = {}
    for moment, values in sorted(parts.store.frames(site, times).items()):
        present.update(values.keys())
        newest.update(dict.fromkeys(values, min(moment, now)))
    return [
        SensorHealth(
            id=sensor.id,
            state=said.state if (said := reports.get(sensor.id)) else None,
            used=used.get(sensor.id),
            allowed=rules.allowed,
            last_seen=_latest(said, newest.get(sensor.id)),
            last_reading=newest.get(sensor.id),
            sigma=sensor.sigma,
            missing=len(times) - present[sensor.id],
            frames=len(times),
            late=counts[sensor.id][Reason.LATE],
            again=counts[sensor.id][Reason.DUPLICATE],
            alarms=counts[sensor.id][Reason.ALARM],
            broken=_broken(sensor.id, problems, used.get(sensor.id, 0) > rules.allowed, now),
        )
        for sensor in watched.plan.sensors
    ]


def _frame_times(parts: Parts, watched: Watched, now: int) -> list[int]:
    """The newest frames. One sensor can stamp as it likes, so only times on the slots count, and none far ahead."""
    period, store = watched.schedule.period_ms, parts.store
    until = now + watched.ahead_ms
    frames = store.frame_times(watched.name, until=until, limit=FRAMES, every=period)
    if not frames:  # devices with another plan, all of them
        frames = store.frame_times(watched.name, until=until, limit=FRAMES)
    return [frame.time for frame in frames]


def _used(
    parts: Parts, watched: Watched, rules: Rules, reports: Mapping[str, Report], now: int
) -> dict[str, int | None]:
    """How much of the window each sensor has used: what it says itself, or what is stored if that is more.

    Where a window has very many readings only the end of it is counted.
    """
    share = min(1.0, MOST_COUNTED / (rules.allowed * len(watched.ids)))
    start = now - round(share * rules.window_ms) + 1
    counted = parts.store.counted(watched.name, start, now + 1, received=start)
    return {name: _most(_said(reports.get(name), rules, now), counted.get(name)) for name in watched.ids}


def _said(report: Report | None, rules: Rules, now: int) -> int | None:
    """What a device says of its window; one that is gone, or has not spoken in this window, says nothing of it."""
    if report is None or report.state == "offline" or report.received <= now - rules.window_ms:
        return None
    return report.used


def _most(*known: int | None) -> int | None:
    return max((one for one in known if one is not None), default=None)


def _broken(sensor: str, problems: Sequence[Problem], over: bool, now: int) -> list[BrokenBody]:
    """Why the claim does not hold for a sensor, as far as that shows."""
    seen = {one.reason: one.last for one in problems if one.sensor == sensor and one.reason in CLAIM_BREAKING}
    if over:
        seen[Reason.OVER] = now
    return [BrokenBody(reason=reason, last=seen[reason]) for reason in CLAIM_BREAKING if reason in seen]


def _latest(report: Report | None, reading: int | None) -> int | None:
    return _most(report.received if report else None, reading)


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
