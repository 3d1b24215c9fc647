"""Stored frames: the readings of one time, and whether they have a result."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from cloakwork.collect.storage import queries, tables
from cloakwork.collect.storage.database import Database
from cloakwork.collect.storage.records import FrameTime

# literals: with a parameter, neither database would use the small partial index
_UNSOLVED = tables.frames.c.solved == sa.literal_column("0")
_OUTGROWN = tables.frames.c.late > sa.literal_column("0")


class FrameTable:
    """The times of a store that have readings."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def values(self, site: str, times: Sequence[int]) -> dict[int, dict[str, int]]:
        """Return the value of each sensor at each time; of several readings of a sensor, the one with the highest seq.

        A time without readings gets an empty dictionary.
        """
        table = tables.readings.c
        values: dict[int, dict[str, int]] = {time: {} for time in times}
        query = sa.select(table.time, table.sensor, table.value).where(table.site == site)
        query = query.order_by(table.time, table.sensor, table.seq)
        with self._database.reading() as connection:
            for time, sensor, value in connection.execute(query.where(queries.among(connection, table.time, values))):
                values[time][sensor] = value
        return values

    def times(
        self,
        site: str,
        since: int | None = None,
        until: int | None = None,
        limit: int = 100,
        *,
        newest_first: bool = True,
        every: int | None = None,
    ) -> list[FrameTime]:
        """Return times that have readings, with the number of sensors; with `every`, only its multiples."""
        frames, readings = tables.frames.c, tables.readings.c
        sensors = sa.select(sa.func.count(readings.sensor.distinct())).where(
            readings.site == frames.site, readings.time == frames.time
        )
        query = sa.select(frames.time, sensors.scalar_subquery()).where(
            frames.site == site, *queries.within(frames.time, since, until)
        )
        if every is not None:
            query = query.where(frames.time % every == 0)
        query = query.order_by(*queries.ordered((frames.time,), newest_first=newest_first))
        with self._database.reading() as connection:
            return [FrameTime(*row) for row in connection.execute(query.limit(queries.check_limit(limit)))]

    def unsolved(self, site: str, limit: int = 100, *, newest_first: bool = True) -> list[int]:
        """Return times that have readings but no result."""
        return self._list(site, _UNSOLVED, limit, newest_first)

    def outgrown(self, site: str, limit: int = 100, *, newest_first: bool = True) -> list[int]:
        """Return times whose result is from fewer sensors than have readings by now, because some arrived late.

        A time is listed until a result from all of them is saved, or several results have left some out.
        """
        return self._list(site, _OUTGROWN, limit, newest_first)

    def _list(self, site: str, which: sa.ColumnElement[bool], limit: int, newest_first: bool) -> list[int]:
        frames = tables.frames.c
        query = sa.select(frames.time).where(frames.site == site, which)
        query = query.order_by(*queries.ordered((frames.time,), newest_first=newest_first))
        with self._database.reading() as connection:
            return list(connection.execute(query.limit(queries.check_limit(limit))).scalars())


class FrameProgress(NamedTuple):
    """Number of sensors in a frame's result, and how often results left late ones out."""

    solved: int
    late: int


def lock_frames(connection: sa.Connection, site: str, times: Sequence[int]) -> dict[int, FrameProgress]:
    """Keep others from adding readings to these times until the transaction ends; returns the progress of each.

    Locks in the order of time, as adding readings does, so that two transactions never wait for each other.
    """
    table = tables.frames.c
    query = sa.select(table.time, table.solved, table.late)
    query = query.where(table.site == site, queries.among(connection, table.time, times)).order_by(table.time)
    return {row.time: FrameProgress(row.solved, row.late) for row in connection.execute(query.with_for_update())}


def held_readings(connection: sa.Connection, site: str, times: Sequence[int]) -> dict[int, set[tuple[str, int]]]:
    """Return all readings of each time, as (sensor, value)."""
    table = tables.readings.c
    held: dict[int, set[tuple[str, int]]] = {time: set() for time in times}
    query = sa.select(table.time, table.sensor, table.value).where(table.site == site)
    for time, sensor, value in connection.execute(query.where(queries.among(connection, table.time, held))):
        held[time].add((sensor, value))
    return held
