"""What devices say of themselves, what was wrong with messages, and how many readings came of each sensor."""

from collections.abc import Sequence
from dataclasses import asdict

import sqlalchemy as sa

from cloakwork.collect.records import Alarm, Problem, Report
from cloakwork.collect.store import bulk, pages, tables
from cloakwork.collect.store.database import Database

AHEAD_MS = 60_000  # by which the clocks of collectors that share a store may differ
SLOT_MS = 10_000  # of a sensor's reports within a slot, history keeps the last


def add(database: Database, rows: Sequence[Report]) -> None:
    """Keep the latest of each sensor, and a history."""
    latest: dict[tuple[str, str], Report] = {}
    slots: dict[tuple[str, int, str], Report] = {}
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

    database.write(work)


def _upsert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, object]]) -> None:
    statement = bulk.insert(connection, table)
    fresh = {name: statement.excluded[name] for name in ("state", "used", "allowed", "received")}
    # one that is kept from far ahead is from when this machine's clock was wrong: it must not stand until then
    later = statement.excluded.received >= table.c.received
    wrong = table.c.received > statement.excluded.received + AHEAD_MS
    statement = statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=fresh, where=later | wrong)
    connection.execute(statement, rows)


def latest(database: Database, site: str) -> list[Report]:
    """The latest report of each sensor."""
    query = sa.select(tables.reports).where(tables.reports.c.site == site).order_by(tables.reports.c.sensor)
    with database.reading() as connection:
        return [Report(*row) for row in connection.execute(query)]


def history(
    database: Database, site: str, sensor: str | None, *, since: int | None, until: int | None, limit: int
) -> list[Report]:
    """The last of a period, oldest first."""
    table = tables.report_history.c
    query = sa.select(table.site, table.sensor, table.state, table.used, table.allowed, table.received)
    query = query.where(table.site == site, *pages.within(table.received, since, until))
    query = query.where(*slots(since, until))
    if sensor is not None:
        query = query.where(table.sensor == sensor)
    query = query.order_by(table.slot.desc(), table.sensor.desc()).limit(pages.check_limit(limit))
    with database.reading() as connection:
        return [Report(*row) for row in connection.execute(query)][::-1]


def slots(since: int | None, until: int | None) -> list[sa.ColumnElement[bool]]:
    """The slots of a period: they are in the key of history, so that no database has to look at all of it."""
    last = None if until is None else until // SLOT_MS + 1
    return pages.within(tables.report_history.c.slot, None if since is None else since // SLOT_MS, last)


def add_problems(database: Database, rows: Sequence[Problem]) -> None:
    """Add to the counts."""
    sums: dict[tuple[str, str, str], Problem] = {}
    for row in rows:
        key = (row.site, row.sensor, row.reason)
        before = sums.get(key)
        count = row.count + (before.count if before else 0)
        sums[key] = Problem(*key, count, max(row.last, before.last if before else row.last))
    if not sums:
        return

    def work(connection: sa.Connection) -> None:
        table = tables.problems.c
        statement = bulk.insert(connection, tables.problems)
        fresh = statement.excluded
        later = sa.case((fresh.last > table.last, fresh.last), else_=table.last)
        statement = statement.on_conflict_do_update(
            index_elements=list(tables.problems.primary_key), set_={"count": table.count + fresh.count, "last": later}
        )
        connection.execute(statement, [asdict(sums[key]) for key in sorted(sums)])

    database.write(work)


def problems(database: Database, site: str | None) -> list[Problem]:
    """The counts, the most recent first."""
    table = tables.problems.c
    query = sa.select(tables.problems).order_by(table.last.desc(), table.site, table.sensor, table.reason)
    if site is not None:
        query = query.where(table.site == site)
    with database.reading() as connection:
        return [Problem(*row) for row in connection.execute(query)]


def alarms(database: Database, site: str, each: int) -> list[Alarm]:
    """Numbers that came with two values, the newest first: of each sensor a few, so that none hides another's.

    A sensor is found in the index after the one before, and its highest numbers are the end of its part.
    """
    table = tables.alarms.c
    found: list[Alarm] = []
    following = sa.select(sa.func.min(table.sensor)).where(table.site == site)
    own = sa.select(table.sensor, table.seq, table.received).where(table.site == site)
    own = own.order_by(table.seq.desc()).limit(pages.check_limit(each))
    with database.reading() as connection:
        sensor = connection.execute(following).scalar()
        while sensor is not None:
            found += [Alarm(*row) for row in connection.execute(own.where(table.sensor == sensor))]
            sensor = connection.execute(following.where(table.sensor > sensor)).scalar()
    return sorted(found, key=lambda one: (-one.received, one.sensor, -one.seq))


def counted(database: Database, site: str, since: int, until: int, received: int) -> dict[str, int]:
    """How many readings of a period there are of each sensor, of those that came at or after `received`."""
    table = tables.readings.c
    query = sa.select(table.sensor, sa.func.count()).where(table.site == site, *pages.within(table.time, since, until))
    query = query.where(table.received >= received).group_by(table.sensor)
    with database.reading() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}
