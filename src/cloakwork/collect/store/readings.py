"""Readings: each is kept once, whoever brings it how often."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from cloakwork.collect.records import Alarm, Page, Reading, Verdict
from cloakwork.collect.store import bulk, pages, tables
from cloakwork.collect.store.database import Database
from cloakwork.collect.store.errors import StoreAwayError

Key = tuple[str, str, int]
Said = tuple[int, int]
Conditions = tuple[sa.ColumnElement[bool], ...]
STREAMED = 5000  # rows that are in memory at once while all are read
TRIES = 10
_KEY = (tables.readings.c.site, tables.readings.c.sensor, tables.readings.c.seq)
_ORDER = (tables.readings.c.time, tables.readings.c.sensor, tables.readings.c.seq)


def add(database: Database, rows: Sequence[Reading]) -> list[Verdict]:
    """Keep the first message of each key; says of every row what it was."""
    if not rows:
        return []
    verdicts = database.write(lambda connection: _add(connection, rows))
    database.grew(verdicts.count(Verdict.NEW))
    return verdicts


def _add(connection: sa.Connection, rows: Sequence[Reading]) -> list[Verdict]:
    first: dict[Key, Reading] = {}
    for row in rows:
        first.setdefault(row[:3], row)
    new, stored = _settle(connection, first)
    _mark_frames(connection, {(first[key].site, first[key].time) for key in new})
    verdicts = []
    alarms: dict[Key, Reading] = {}
    for row in rows:
        key = row[:3]
        if key in new:
            new.remove(key)
            verdicts.append(Verdict.NEW)
        elif stored[key] == row[3:5]:
            verdicts.append(Verdict.AGAIN)
        else:
            verdicts.append(Verdict.ALARM)
            alarms.setdefault(key, row)
    _raise_alarms(connection, alarms)
    return verdicts


def _settle(connection: sa.Connection, first: dict[Key, Reading]) -> tuple[set[Key], dict[Key, Said]]:
    """Which keys were new, and what the store says under each key."""
    new: set[Key] = set()
    stored: dict[Key, Said] = {}
    # in the order of the keys: two transactions that insert the same ones must not wait for each other
    open_keys = sorted(first)
    for _ in range(TRIES):
        inserted = bulk.insert_new(connection, tables.readings, [first[key] for key in open_keys], key=_KEY)
        new |= inserted
        stored |= {key: (first[key].time, first[key].value) for key in inserted}
        others = [key for key in open_keys if key not in inserted]
        for row in bulk.look_up(connection, tables.readings, others, key=_KEY):
            stored[row.site, row.sensor, row.seq] = (row.time, row.value)
        # what is neither new nor there was erased between the two statements
        open_keys = [key for key in open_keys if key not in stored]
        if not open_keys:
            return new, stored
    raise StoreAwayError("readings are being erased as quickly as they come: try again.")


def _mark_frames(connection: sa.Connection, times: set[tuple[str, int]]) -> None:
    """Note that these times have readings, and for those with a result that more came since.

    The row of a frame stays locked until the transaction ends, and whoever saves a result or erases takes the same
    lock before looking at the readings: so nobody overlooks a reading that is on its way in.
    """
    if not times:
        return
    statement = bulk.insert(connection, tables.frames)
    frames = tables.frames.c
    statement = statement.on_conflict_do_update(
        index_elements=[frames.site, frames.time], set_={"late": 1}, where=(frames.solved > 0) & (frames.late == 0)
    )
    rows = [{"site": site, "time": time, "solved": 0, "late": 0} for site, time in sorted(times)]
    connection.execute(statement, rows)


def _raise_alarms(connection: sa.Connection, alarms: dict[Key, Reading]) -> None:
    if not alarms:
        return
    statement = bulk.insert(connection, tables.alarms).on_conflict_do_nothing()
    names = ("site", "sensor", "seq", "received")
    connection.execute(
        statement, [dict(zip(names, (*key, alarms[key].received), strict=True)) for key in sorted(alarms)]
    )


def alarms(database: Database, site: str, limit: int) -> list[Alarm]:
    """Numbers that came with two values, the newest first."""
    table = tables.alarms.c
    query = sa.select(table.sensor, table.seq, table.received).where(table.site == site)
    query = query.order_by(table.received.desc(), table.sensor, table.seq).limit(pages.check_limit(limit))
    with database.reading() as connection:
        return [Alarm(*row) for row in connection.execute(query)]


def some(
    database: Database,
    site: str,
    *,
    sensor: str | None,
    since: int | None,
    until: int | None,
    limit: int,
    after: str | None,
    newest_first: bool,
) -> Page[Reading]:
    """One page."""
    table = tables.readings.c
    query = sa.select(tables.readings).where(table.site == site, *pages.within(table.time, since, until))
    if sensor is not None:
        query = query.where(table.sensor == sensor)
    query = query.order_by(*pages.ordered(_ORDER, newest_first=newest_first))
    left = pages.check_limit(limit)
    found: list[Reading] = []
    with database.reading() as connection:
        for part in [()] if after is None else _beyond(after, sensor, newest_first=newest_first):
            if left > len(found):
                rows = connection.execute(query.where(*part).limit(left - len(found)))
                found += [Reading(*row) for row in rows]
    return pages.page(found, limit, f"{found[-1].time}.{found[-1].sensor}.{found[-1].seq}" if found else "")


def _beyond(after: str, only: str | None, *, newest_first: bool) -> tuple[Conditions, Conditions]:
    """What follows a cursor: the rest of its own moment, then what is beyond it.

    Each is one stretch of an index. In one condition, a moment with very many readings would be read anew for each
    page.
    """
    first, sensor, last = pages.read_cursor(after, 3)
    time, seq = pages.whole(first, after), pages.whole(last, after)
    table = tables.readings.c
    here: Any = sa.tuple_(sa.literal(sensor), sa.literal(seq))
    order: Any = sa.tuple_(table.sensor, table.seq)
    if only is not None and sensor == only:
        here, order = sa.literal(seq), table.seq
    if newest_first:
        return (table.time == time, order < here), (table.time < time,)
    return (table.time == time, order > here), (table.time > time,)


def every(database: Database, site: str, since: int | None, until: int | None) -> Iterator[Reading]:
    """All, page by page: a transaction that lasts would keep either database from tidying up."""
    if until is None:
        newest = sa.select(sa.func.max(tables.readings.c.time)).where(tables.readings.c.site == site)
        with database.reading() as connection:
            until = (connection.execute(newest).scalar() or 0) + 1  # so that it ends although readings arrive
    after: str | None = None
    while True:
        found = some(
            database, site, sensor=None, since=since, until=until, limit=STREAMED, after=after, newest_first=False
        )
        yield from found.items
        after = found.next
        if after is None:
            return
