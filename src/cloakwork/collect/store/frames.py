"""Frames: the readings of one moment, and whether something was recovered from them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from cloakwork.collect.records import FrameTime
from cloakwork.collect.store import bulk, pages, tables
from cloakwork.collect.store.database import Database

Held = set[tuple[str, int]]
# written out: with a parameter in its place, neither database would know that the small index serves
UNSOLVED = tables.frames.c.solved == sa.literal_column("0")
OUTGROWN = tables.frames.c.late > sa.literal_column("0")


def values(database: Database, site: str, times: Sequence[int]) -> dict[int, dict[str, int]]:
    """For each time the value of each sensor; a time without readings has none."""
    table = tables.readings.c
    found: dict[int, dict[str, int]] = {time: {} for time in times}
    query = sa.select(table.time, table.sensor, table.value).where(table.site == site)
    query = query.order_by(table.time, table.sensor, table.seq)
    with database.reading() as connection:
        for time, sensor, value in connection.execute(query.where(bulk.among(connection, table.time, found))):
            found[time][sensor] = value
    return found


def times(
    database: Database,
    site: str,
    *,
    since: int | None,
    until: int | None,
    limit: int,
    newest_first: bool,
    every: int | None = None,
) -> list[FrameTime]:
    """Times that have readings, with the number of sensors; only multiples of `every` if it is given."""
    frames, readings = tables.frames.c, tables.readings.c
    sensors = sa.select(sa.func.count(readings.sensor.distinct())).where(
        readings.site == frames.site, readings.time == frames.time
    )
    query = sa.select(frames.time, sensors.scalar_subquery()).where(
        frames.site == site, *pages.within(frames.time, since, until)
    )
    if every is not None:
        query = query.where(frames.time % every == 0)
    query = query.order_by(*pages.ordered((frames.time,), newest_first=newest_first)).limit(pages.check_limit(limit))
    with database.reading() as connection:
        return [FrameTime(*row) for row in connection.execute(query)]


def sites(database: Database) -> list[str]:
    """Names of the sites that anything is stored of."""
    with database.reading() as connection:
        told = (tables.frames, tables.reports, tables.report_history, tables.alarms, tables.problems)
        return sorted({name for table in told for name in _names(connection, table)} - {""})


def _names(connection: sa.Connection, table: sa.Table) -> Iterator[str]:
    """Names of sites in a table; each is found in the index after the one before."""
    query = sa.select(sa.func.min(table.c.site))
    name = connection.execute(query).scalar()
    while name is not None:
        yield str(name)
        name = connection.execute(query.where(table.c.site > name)).scalar()


def to_solve(
    database: Database, site: str, which: sa.ColumnElement[bool], *, limit: int, newest_first: bool
) -> list[int]:
    """Times that are `UNSOLVED` or `OUTGROWN`."""
    frames = tables.frames.c
    query = sa.select(frames.time).where(frames.site == site, which)
    query = query.order_by(*pages.ordered((frames.time,), newest_first=newest_first)).limit(pages.check_limit(limit))
    with database.reading() as connection:
        return list(connection.execute(query).scalars())


class State(NamedTuple):
    """Of how many sensors a frame has a result, and how often that left late ones out."""

    solved: int
    late: int


def lock(connection: sa.Connection, site: str, times: Sequence[int]) -> dict[int, State]:
    """Keep others from adding readings to these times until the transaction ends; gives the state of each.

    In the order of time, as whoever adds readings does: so two never wait for each other.
    """
    table = tables.frames.c
    query = sa.select(table.time, table.solved, table.late)
    query = query.where(table.site == site, bulk.among(connection, table.time, times)).order_by(table.time)
    return {row.time: State(row.solved, row.late) for row in connection.execute(query.with_for_update())}


def held(connection: sa.Connection, site: str, times: Sequence[int]) -> dict[int, Held]:
    """All readings of each time, as (sensor, value)."""
    table = tables.readings.c
    found: dict[int, Held] = {time: set() for time in times}
    query = sa.select(table.time, table.sensor, table.value).where(table.site == site)
    for time, sensor, value in connection.execute(query.where(bulk.among(connection, table.time, found))):
        found[time].add((sensor, value))
    return found


def sensors(connection: sa.Connection, site: str, times: Sequence[int]) -> dict[int, int]:
    """How many sensors have readings at each time; a time without any is left out."""
    table = tables.readings.c
    query = sa.select(table.time, sa.func.count(table.sensor.distinct()))
    query = query.where(table.site == site, bulk.among(connection, table.time, times)).group_by(table.time)
    return {row[0]: row[1] for row in connection.execute(query)}
