"""Tables of a site besides its readings and results: device reports, bad messages, checks of the physics, plans."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import sqlalchemy as sa

from cloakwork.collect.storage import queries, tables
from cloakwork.collect.storage.database import Database
from cloakwork.collect.storage.records import DeviceReport, FoundFault, PhysicsCheck, ProblemCount
from cloakwork.readings import ReadingScale
from cloakwork.sensor import keystream

CLOCK_DIFFERENCE_MS = 60_000  # allowed between collectors that share a store
SLOT_MS = 10_000  # history keeps a sensor's last report in each slot
_CHECKS = tables.physics_checks
_PLANS = tables.plans
SIMULATED = 1440  # generations below it are made up: those of devices count minutes from the beginning of 2026


class ReportTable:
    """The latest report of each device, and a history."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, rows: Sequence[DeviceReport]) -> None:
        """Store reports; one that was received before the stored latest only goes into the history."""
        latest: dict[tuple[str, str], DeviceReport] = {}
        slots: dict[tuple[str, int, str], DeviceReport] = {}
        for row in sorted(rows, key=lambda row: row.received):
            latest[row.site, row.sensor] = row
            slots[row.site, row.received // SLOT_MS, row.sensor] = row
        if not latest:
            return

        def work(connection: sa.Connection) -> None:
            # in the order of the keys, so that two transactions do not wait for each other
            _upsert(connection, tables.reports, [latest[key]._asdict() for key in sorted(latest)])
            history = [{**slots[key]._asdict(), "slot": key[1]} for key in sorted(slots)]
            _upsert(connection, tables.report_history, history)

        self._database.write(work)

    def latest(self, site: str) -> list[DeviceReport]:
        """Return the latest report of each sensor, by sensor."""
        query = sa.select(tables.reports).where(tables.reports.c.site == site).order_by(tables.reports.c.sensor)
        return [DeviceReport(*row) for row in self._database.rows(query)]

    def history(
        self, site: str, *, since: int | None = None, until: int | None = None, limit: int = 1000
    ) -> list[DeviceReport]:
        """Return the last `limit` reports of a period (by when they were received), oldest first."""
        table = tables.report_history.c
        query = sa.select(table.site, table.sensor, table.state, table.used, table.allowed, table.received)
        query = query.where(table.site == site, *queries.within(table.received, since, until))
        query = query.where(*slots_within(since, until))
        query = query.order_by(table.slot.desc(), table.sensor.desc()).limit(queries.check_limit(limit))
        return [DeviceReport(*row) for row in self._database.rows(query)][::-1]


class ProblemTable:
    """Counts of bad messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, rows: Sequence[ProblemCount]) -> None:
        if not rows:
            return

        def work(connection: sa.Connection) -> None:
            table = tables.problems.c
            statement = queries.insert(connection, tables.problems)
            new = statement.excluded
            last = sa.case((new.last > table.last, new.last), else_=table.last)
            statement = statement.on_conflict_do_update(
                index_elements=list(tables.problems.primary_key), set_={"count": table.count + new.count, "last": last}
            )
            # in the order of the keys, so that two transactions do not wait for each other
            ordered = sorted(rows, key=lambda row: (row.site, row.sensor, row.reason))
            connection.execute(statement, [vars(row) for row in ordered])

        self._database.write(work)

    def counts(self, site: str | None = None) -> list[ProblemCount]:
        """Return the counts of one site, or of all; the most recent first."""
        table = tables.problems.c
        query = sa.select(tables.problems).order_by(table.last.desc(), table.site, table.sensor, table.reason)
        if site is not None:
            query = query.where(table.site == site)
        return [ProblemCount(*row) for row in self._database.rows(query)]


def slots_within(since: int | None, until: int | None) -> list[sa.ColumnElement[bool]]:
    """Return conditions on the slots of a period: slots are in the key of the history, which saves a full scan."""
    last = None if until is None else until // SLOT_MS + 1
    return queries.within(tables.report_history.c.slot, None if since is None else since // SLOT_MS, last)


def _upsert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, object]]) -> None:
    statement = queries.insert(connection, table)
    columns = {name: statement.excluded[name] for name in ("state", "used", "allowed", "received")}
    # a stored report from far ahead dates from when this machine's clock was wrong: it must not stay until then
    later = statement.excluded.received >= table.c.received
    wrong = table.c.received > statement.excluded.received + CLOCK_DIFFERENCE_MS
    statement = statement.on_conflict_do_update(
        index_elements=list(table.primary_key), set_=columns, where=later | wrong
    )
    connection.execute(statement, rows)


class CheckTable:
    """The latest check of each site."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self, site: str) -> PhysicsCheck | None:
        rows = self._database.rows(sa.select(_CHECKS).where(_CHECKS.c.site == site))
        return next((PhysicsCheck(row.site, row.model, row.time, row.state, _faults(row.faults)) for row in rows), None)

    def faults(self, site: str) -> tuple[FoundFault, ...]:
        """Return the faults of a site, those that have ended too, the latest last."""
        rows = self._database.rows(sa.select(_CHECKS.c.faults).where(_CHECKS.c.site == site))
        return _faults(rows[0].faults) if rows else ()

    def save(self, check: PhysicsCheck, *, after: int | None) -> bool:
        """Store a check that goes on from the one of time `after`, None for the first; False if another is stored."""
        values = vars(check)

        def work(connection: sa.Connection) -> bool:
            if after is None:
                new = queries.insert(connection, _CHECKS).values(values).on_conflict_do_nothing()
                return connection.execute(new.returning(_CHECKS.c.site)).first() is not None
            unchanged = (_CHECKS.c.site == check.site, _CHECKS.c.time == after)
            return connection.execute(sa.update(_CHECKS).where(*unchanged).values(values)).rowcount == 1

        return self._database.write(work)

    def forget(self, site: str) -> None:
        """Remove what the tests of a site know."""
        self._database.write(lambda connection: connection.execute(sa.delete(_CHECKS).where(_CHECKS.c.site == site)))


def _faults(records: Iterable[dict[str, Any]]) -> tuple[FoundFault, ...]:
    return tuple(FoundFault(**record) for record in records)


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
        readings = tables.readings.c
        before = dict(known[-1].before) if known else {}
        with self._database.reading() as connection:
            first = connection.execute(sa.select(readings.site).where(readings.site == site).limit(1)).first() is None
            newest = sa.select(sa.func.max(readings.seq)).where(readings.site == site)
            for sensor in scale.steps if known and known[-1].scale.plan != scale.plan else ():
                seq = connection.execute(newest.where(readings.sensor == sensor)).scalar()
                before |= {} if seq is None else {sensor: max(keystream.split(seq)[0], before.get(sensor, -1))}
        received = max(now, known[-1].received + 1) if known else 0 if first else now
        row = {"site": site, "received": received, "scale": asdict(scale) | {"before": before}}
        self._database.write(
            lambda connection: connection.execute(
                queries.insert(connection, _PLANS).values(row).on_conflict_do_nothing()
            )
        )
        return PlanPeriod(received, scale, before)

    def periods(self, site: str) -> list[PlanPeriod]:
        """Return the plans of a site; what was received before the first one has an unknown plan."""
        query = sa.select(_PLANS.c.received, _PLANS.c.scale).where(_PLANS.c.site == site).order_by(_PLANS.c.received)
        return [
            PlanPeriod(start, before=scale.pop("before", {}), scale=ReadingScale(**scale))
            for start, scale in self._database.rows(query)
        ]
