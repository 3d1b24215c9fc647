"""Stored device reports and counts of bad messages."""

from collections.abc import Sequence
from dataclasses import asdict

import sqlalchemy as sa

from cloakwork.collect.storage import queries, tables
from cloakwork.collect.storage.database import Database
from cloakwork.collect.storage.records import DeviceReport, ProblemCount

CLOCK_DIFFERENCE_MS = 60_000  # allowed between collectors that share a store
SLOT_MS = 10_000  # history keeps a sensor's last report in each slot


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
        with self._database.reading() as connection:
            return [DeviceReport(*row) for row in connection.execute(query)]

    def history(
        self,
        site: str,
        sensor: str | None = None,
        *,
        since: int | None = None,
        until: int | None = None,
        limit: int = 1000,
    ) -> list[DeviceReport]:
        """Return the last `limit` reports of a period (by when they were received), oldest first."""
        table = tables.report_history.c
        query = sa.select(table.site, table.sensor, table.state, table.used, table.allowed, table.received)
        query = query.where(table.site == site, *queries.within(table.received, since, until))
        query = query.where(*slots_within(since, until))
        if sensor is not None:
            query = query.where(table.sensor == sensor)
        query = query.order_by(table.slot.desc(), table.sensor.desc()).limit(queries.check_limit(limit))
        with self._database.reading() as connection:
            return [DeviceReport(*row) for row in connection.execute(query)][::-1]


class ProblemTable:
    """Counts of bad messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, rows: Sequence[ProblemCount]) -> None:
        """Add to the counts."""
        sums: dict[tuple[str, str, str], ProblemCount] = {}
        for row in rows:
            key = (row.site, row.sensor, row.reason)
            before = sums.get(key, ProblemCount(*key, 0, row.last))
            sums[key] = ProblemCount(*key, before.count + row.count, max(before.last, row.last))
        if not sums:
            return

        def work(connection: sa.Connection) -> None:
            table = tables.problems.c
            statement = queries.insert(connection, tables.problems)
            new = statement.excluded
            last = sa.case((new.last > table.last, new.last), else_=table.last)
            statement = statement.on_conflict_do_update(
                index_elements=list(tables.problems.primary_key), set_={"count": table.count + new.count, "last": last}
            )
            connection.execute(statement, [asdict(sums[key]) for key in sorted(sums)])

        self._database.write(work)

    def counts(self, site: str | None = None) -> list[ProblemCount]:
        """Return the counts of one site, or of all; the most recent first."""
        table = tables.problems.c
        query = sa.select(tables.problems).order_by(table.last.desc(), table.site, table.sensor, table.reason)
        if site is not None:
            query = query.where(table.site == site)
        with self._database.reading() as connection:
            return [ProblemCount(*row) for row in connection.execute(query)]


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
