"""Removing: in small steps, each a transaction of its own, so that writers wait for milliseconds only."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from cloakwork.collect.records import Erased
from cloakwork.collect.store import bulk, frames, pages, tables
from cloakwork.collect.store.database import Database
from cloakwork.collect.store.reports import slots

STEP = bulk.PART  # rows of one step
LONGEST_PAUSE_S = 0.2
Change = TypeVar("Change", sa.Delete, sa.Update)
Conditions = Sequence[sa.ColumnElement[bool]]


class _Gone(NamedTuple):
    """What a step removed; `found` is how much it found, which others may remove while it waits for them."""

    found: int
    rows: int
    results: int = 0


def erase(database: Database, site: str, sensor: str | None, since: int | None, until: int | None) -> Erased:
    """Remove readings of a period and all that was made from them."""
    table = tables.readings.c
    chosen = _chosen(tables.readings, table.time, site, sensor, since, until)
    query = sa.select(table.sensor, table.seq, table.time).where(*chosen)
    query = query.order_by(table.time, table.sensor, table.seq).limit(STEP)
    gone = _repeat(lambda: database.write(lambda connection: _remove_readings(connection, site, query)))
    reports = 0
    for other, clock in (
        (tables.reports, tables.reports.c.received),
        (tables.report_history, tables.report_history.c.received),
        (tables.alarms, tables.alarms.c.received),
        (tables.problems, tables.problems.c.last),
    ):
        which = _chosen(other, clock, site, sensor, since, until)
        if other is tables.report_history:
            reports = _remove(database, other, [*which, *slots(since, until)])
        else:
            _remove(database, other, which)
    database.tidy()
    return Erased(sum(step.rows for step in gone), sum(step.results for step in gone), reports)


def _chosen(
    table: sa.Table, clock: sa.Column[int], site: str, sensor: str | None, since: int | None, until: int | None
) -> Conditions:
    found: list[sa.ColumnElement[bool]] = [table.c.site == site, *pages.within(clock, since, until)]
    return found if sensor is None else [*found, table.c.sensor == sensor]


def _repeat(step: Callable[[], _Gone]) -> list[_Gone]:
    """All steps until one finds nothing; between them others get as much time as a step takes."""
    done: list[_Gone] = []
    while True:
        start = time.monotonic()
        gone = step()
        if gone.found == 0:
            return done
        done.append(gone)
        time.sleep(min(time.monotonic() - start, LONGEST_PAUSE_S))


def _remove_readings(connection: sa.Connection, site: str, query: sa.Select[Any]) -> _Gone:
    found = connection.execute(query).all()
    if not found:
        return _Gone(0, 0)
    times = sorted({row.time for row in found})
    frames.lock(connection, site, times)
    _count(connection, site)
    table = tables.readings.c
    keys = [(site, row.sensor, row.seq) for row in found]
    readings = bulk.delete(connection, tables.readings, keys, key=(table.site, table.sensor, table.seq))
    left = frames.sensors(connection, site, times)
    empty = [time for time in times if time not in left]
    connection.execute(_of_times(sa.delete(tables.frames), tables.frames, connection, site, empty))
    again = sa.update(tables.frames).values(solved=0, late=0)
    connection.execute(_of_times(again, tables.frames, connection, site, left))
    # results last: by now we hold every frame, also one that was made anew while we waited for the one before it
    made = connection.execute(_of_times(sa.delete(tables.results), tables.results, connection, site, times)).rowcount
    return _Gone(len(found), readings, made)


def _count(connection: sa.Connection, site: str) -> None:
    """Note that readings were removed; in the same transaction, so that nobody sees one without the other."""
    statement = bulk.insert(connection, tables.erasures).values(site=site, count=1)
    more = {"count": tables.erasures.c.count + 1}
    connection.execute(statement.on_conflict_do_update(index_elements=[tables.erasures.c.site], set_=more))


def count(connection: sa.Connection, site: str) -> int:
    """How often readings of a site were removed."""
    query = sa.select(tables.erasures.c.count).where(tables.erasures.c.site == site)
    return int(connection.execute(query).scalar() or 0)


def _of_times(change: Change, table: sa.Table, connection: sa.Connection, site: str, times: Iterable[int]) -> Change:
    return change.where(table.c.site == site, bulk.among(connection, table.c.time, times))


def _remove(database: Database, table: sa.Table, chosen: Conditions) -> int:
    """How many rows went."""
    key = sa.tuple_(*table.primary_key)
    some = sa.select(*table.primary_key).where(*chosen).limit(STEP)
    change = sa.delete(table).where(key.in_(some))

    def step() -> _Gone:
        count = database.write(lambda connection: connection.execute(change).rowcount)
        return _Gone(count, count)

    return sum(gone.rows for gone in _repeat(step))
