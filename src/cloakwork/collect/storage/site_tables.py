"""Tables of a site besides its readings and results: device reports, bad messages, checks of the physics, plans."""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from cloakwork.collect.storage.database import Database
from cloakwork.collect.storage.readings import period
from cloakwork.readings import ReadingScale
from cloakwork.sensor import keystream

CLOCK_DIFFERENCE_MS = 60_000  # allowed between collectors that share a store
SLOT_MS = 10_000  # history keeps a sensor's last report in each slot
SIMULATED = 1440  # generations below it are made up: those of devices count minutes from the beginning of 2026
_REPORT = "site, sensor, state, used, allowed, received"
# a stored report from far ahead dates from when this machine's clock was wrong: it must not stay until then
_KEEP = f"""
    INSERT INTO {{table}} ({_REPORT}{{more}}) VALUES (:site, :sensor, :state, :used, :allowed, :received{{values}})
    ON CONFLICT ({{key}}) DO UPDATE SET
        state = excluded.state, used = excluded.used, allowed = excluded.allowed, received = excluded.received
    WHERE excluded.received >= {{table}}.received
        OR {{table}}.received > excluded.received + {CLOCK_DIFFERENCE_MS}"""
_LATEST = _KEEP.format(table="reports", more="", values="", key="site, sensor")
_HISTORY = _KEEP.format(table="report_history", more=", slot", values=", :slot", key="site, slot, sensor")
_COUNT = """
    INSERT INTO problems (site, sensor, reason, count, last) VALUES (:site, :sensor, :reason, :count, :last)
    ON CONFLICT (site, sensor, reason) DO UPDATE SET count = problems.count + excluded.count,
        last = CASE WHEN excluded.last > problems.last THEN excluded.last ELSE problems.last END"""


class DeviceReport(NamedTuple):
    """A device's status: its state, and how many of the readings that its window allows it has used."""

    site: str
    sensor: str
    state: str
    used: int
    allowed: int
    received: int


@dataclass(frozen=True)
class ProblemCount:
    """The count of a problem; `reason` is one of a fixed set of texts, `last` the time of the last message.

    `site` and `sensor` are empty where they are not from the site files: they never hold what a stranger wrote.
    """

    site: str
    sensor: str
    reason: str
    count: int
    last: int


@dataclass(frozen=True)
class FoundFault:
    """A change of the physics, found at Unix millisecond `raised`; `ended` is null while it lasts.

    `kind` is one of `FaultKind`. `sensor` is empty where all are concerned, `other` is the sensor at whose position a
    moved one seems to be, or the number of a door.
    """

    sensor: str
    kind: str
    other: str
    raised: int
    ended: int | None = None


@dataclass(frozen=True)
class PhysicsCheck:
    """Tests of a site's physics up to the frame of `time`; `model` identifies the model, `state` is the detector's."""

    site: str
    model: str
    time: int
    state: bytes
    faults: tuple[FoundFault, ...]


class ReportTable:
    """The latest report of each device, and a history."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, rows: Sequence[DeviceReport]) -> None:
        """Store reports; one that was received before the stored latest only goes into the history."""
        ordered = sorted(rows, key=lambda row: row.received)
        latest = {(row.site, row.sensor): row._asdict() for row in ordered}
        slots = {(row.site, row.received // SLOT_MS, row.sensor): row._asdict() for row in ordered}
        with self._database.writing() as transaction:
            # in the order of the keys, so that two transactions do not wait for each other
            transaction.each(_LATEST, [latest[key] for key in sorted(latest)])
            transaction.each(_HISTORY, [slots[key] | {"slot": key[1]} for key in sorted(slots)])

    def latest(self, site: str) -> list[DeviceReport]:
        """Return the latest report of each sensor, by sensor."""
        found = self._database.rows(f"SELECT {_REPORT} FROM reports WHERE site = :site ORDER BY sensor", site=site)
        return [DeviceReport(*row) for row in found]

    def history(
        self, site: str, *, since: int | None = None, until: int | None = None, limit: int = 1000
    ) -> list[DeviceReport]:
        """Return the last `limit` reports of a period (by when they were received), oldest first."""
        sql = f"""
            SELECT {_REPORT} FROM report_history WHERE site = :site AND slot >= :first AND slot <= :last
            AND received >= :since AND received < :until ORDER BY slot DESC, sensor DESC LIMIT :limit"""
        within = period(since, until)
        slots = {"first": within["since"] // SLOT_MS, "last": within["until"] // SLOT_MS}  # the key has these
        found = self._database.rows(sql, site=site, limit=limit, **within, **slots)
        return [DeviceReport(*row) for row in found][::-1]


class ProblemTable:
    """Counts of bad messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, rows: Sequence[ProblemCount]) -> None:
        # in the order of the keys, so that two transactions do not wait for each other
        ordered = [vars(row) for row in sorted(rows, key=lambda row: (row.site, row.sensor, row.reason))]
        with self._database.writing() as transaction:
            transaction.each(_COUNT, ordered)

    def counts(self, site: str) -> list[ProblemCount]:
        """Return the counts of one site; the most recent first."""
        sql = """
            SELECT site, sensor, reason, count, last FROM problems WHERE site = :site
            ORDER BY last DESC, sensor, reason"""
        return [ProblemCount(*row) for row in self._database.rows(sql, site=site)]


class CheckTable:
    """The latest check of each site."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, site: str) -> PhysicsCheck | None:
        sql = "SELECT site, model, time, state, faults FROM physics_checks WHERE site = :site"
        for name, model, time, state, text in self._database.rows(sql, site=site):
            return PhysicsCheck(name, model, time, state, _faults(text))
        return None

    def faults(self, site: str) -> tuple[FoundFault, ...]:
        """Return the faults of a site, those that have ended too, the latest last."""
        found = self._database.rows("SELECT faults FROM physics_checks WHERE site = :site", site=site)
        return _faults(found[0][0]) if found else ()

    def save(self, check: PhysicsCheck, *, after: int | None) -> bool:
        """Store a check that continues the one of time `after`, None for the first; False if another is stored."""
        values = vars(check) | {"faults": json.dumps([vars(fault) for fault in check.faults])}
        if after is None:
            sql = """
                INSERT INTO physics_checks (site, model, time, state, faults)
                VALUES (:site, :model, :time, :state, :faults) ON CONFLICT DO NOTHING RETURNING site"""
        else:
            sql = """
                UPDATE physics_checks SET model = :model, time = :time, state = :state, faults = :faults
                WHERE site = :site AND time = :after RETURNING site"""
            values["after"] = after
        return bool(self._database.change(sql, **values))

    def forget(self, site: str) -> None:
        """Remove what the tests of a site know."""
        self._database.change("DELETE FROM physics_checks WHERE site = :site", site=site)


def _faults(text: str) -> tuple[FoundFault, ...]:
    return tuple(FoundFault(**record) for record in json.loads(text))


class PlanPeriod(NamedTuple):
    """A plan, the time from which a collector worked with it, and the newest generation of each sensor before that.

    A device gets a new generation whenever it is provisioned, so these generations are under an earlier plan.
    """

    received: int
    scale: ReadingScale
    before: Mapping[str, int]

    def has(self, sensor: str, seq: int) -> bool:
        """Whether a reading that arrives in this period is under its plan, by its number."""
        generation, _ = keystream.split(seq)
        return generation < SIMULATED or generation > self.before.get(sensor, -1)


def plan_of(periods: Sequence[PlanPeriod], received: int, sensor: str, seq: int) -> ReadingScale:
    """The plan of a reading: the one at work when it arrived, or the earlier one that its device was provisioned with.

    Unknown, with an empty id, for what arrived before the first.
    """
    number = bisect_right(periods, received, key=lambda period: period.received)
    while number and not periods[number - 1].has(sensor, seq):
        number -= 1
    return periods[number - 1].scale if number else ReadingScale("", "", {}, {})


class PlanTable:
    """The plans of each site, in the order of time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, site: str, scale: ReadingScale, now: int) -> PlanPeriod:
        """Record that a collector works with this plan from now on, unless the last one is the same."""
        known = self.periods(site)
        if known and known[-1].scale == scale:
            return known[-1]
        before = dict(known[-1].before) if known else {}
        with self._database.reading() as transaction:
            first = not transaction.run("SELECT site FROM readings WHERE site = :site LIMIT 1", site=site)
            for sensor in scale.steps if known and known[-1].scale.plan != scale.plan else ():
                newest = "SELECT max(seq) FROM readings WHERE site = :site AND sensor = :sensor"
                [(seq,)] = transaction.run(newest, site=site, sensor=sensor)
                before |= {} if seq is None else {sensor: max(keystream.split(seq)[0], before.get(sensor, -1))}
        received = max(now, known[-1].received + 1) if known else 0 if first else now
        sql = "INSERT INTO plans (site, received, scale) VALUES (:site, :received, :scale) ON CONFLICT DO NOTHING"
        text = json.dumps(asdict(scale) | {"before": before})
        self._database.change(sql, site=site, received=received, scale=text)
        return PlanPeriod(received, scale, before)

    def periods(self, site: str) -> list[PlanPeriod]:
        """Return the plans of a site; what was received before the first one has an unknown plan."""
        sql = "SELECT received, scale FROM plans WHERE site = :site ORDER BY received"
        found = [(start, json.loads(text)) for start, text in self._database.rows(sql, site=site)]
        return [
            PlanPeriod(start, before=scale.pop("before", {}), scale=ReadingScale(**scale)) for start, scale in found
        ]
