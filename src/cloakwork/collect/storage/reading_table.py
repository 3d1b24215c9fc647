"""Stored readings, each kept once, however often it arrives; and frames: the readings of one time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from cloakwork.collect.storage import queries, tables
from cloakwork.collect.storage.database import Database
from cloakwork.collect.storage.records import Alarm, FrameTime, Page, Reading, ReadingStatus
from cloakwork.errors import StoreAwayError

Key = tuple[str, str, int]
Conditions = tuple[sa.ColumnElement[bool], ...]
STREAMED = 5000  # rows in memory while all are read
TRIES = 10
_TABLE = tables.readings.c
_KEY = (_TABLE.site, _TABLE.sensor, _TABLE.seq)
_ORDER = (_TABLE.time, _TABLE.sensor, _TABLE.seq)
# literals: with a parameter, neither database would use the small partial index
_UNSOLVED = tables.frames.c.solved == sa.literal_column("0")
_OUTGROWN = tables.frames.c.late > sa.literal_column("0")


class ReadingTable:
    """The readings of a store, and alarms about contradictory ones."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, rows: Sequence[Reading]) -> list[ReadingStatus]:
        """Store readings in one transaction, all or none; returns the status of each.

        Of two messages with one (site, sensor, seq) the first is kept. The second is `AGAIN` if it has the same time
        and value and `ALARM` if not; `alarms` then lists it.
        """
        if not rows:
            return []
        statuses = self._database.write(lambda connection: _add(connection, rows))
        self._database.rows_added(statuses.count(ReadingStatus.NEW))
        return statuses

    def page(
        self,
        site: str,
        *,
        sensor: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int = 1000,
        after: str | None = None,
        newest_first: bool = False,
    ) -> Page[Reading]:
        """Return readings by time, sensor and seq. Pages never repeat or skip a reading that was there before."""
        query = sa.select(tables.readings).where(_TABLE.site == site, *queries.within(_TABLE.time, since, until))
        if sensor is not None:
            query = query.where(_TABLE.sensor == sensor)
        query = query.order_by(*queries.ordered(_ORDER, newest_first=newest_first))
        queries.check_limit(limit)
        readings: list[Reading] = []
        with self._database.reading() as connection:
            for part in [()] if after is None else _after_cursor(after, sensor, newest_first=newest_first):
                if limit > len(readings):
                    rows = connection.execute(query.where(*part).limit(limit - len(readings)))
                    readings += [Reading(*row) for row in rows]
        last = readings[-1] if readings else None
        return queries.page(readings, limit, f"{last.time}.{last.sensor}.{last.seq}" if last else "")

    def iterate(self, site: str, since: int | None = None, until: int | None = None) -> Iterator[Reading]:
        """Yield every reading of a period by time, sensor and seq; holds little in memory and no lock."""
        if until is None:
            newest = sa.select(sa.func.max(_TABLE.time)).where(_TABLE.site == site)
            until = (self._database.rows(newest)[0][0] or 0) + 1  # so that it ends although readings arrive
        after: str | None = None
        while True:  # page by page: a long transaction would keep either database from cleaning up
            page = self.page(site, since=since, until=until, limit=STREAMED, after=after)
            yield from page.items
            after = page.next
            if after is None:
                return

    def counts(self, site: str, since: int, until: int, *, received: int) -> dict[str, int]:
        """Count the readings of a period by sensor, of those that arrived at or after `received`."""
        query = sa.select(_TABLE.sensor, sa.func.count())
        query = query.where(_TABLE.site == site, *queries.within(_TABLE.time, since, until))
        query = query.where(_TABLE.received >= received).group_by(_TABLE.sensor)
        return {row[0]: row[1] for row in self._database.rows(query)}

    def newest(self, site: str, sensors: Sequence[str], until: int, *, recent: int | None = None) -> dict[str, int]:
        """Return the time of the last reading of each sensor before `until`; sensors without one are left out.

        Most have one from the time `recent` on: a single query finds all of these.
        """
        last = sa.func.max(_TABLE.time)
        period = (_TABLE.site == site, *queries.within(_TABLE.time, until if recent is None else recent, until))
        many = sa.select(_TABLE.sensor, last).where(*period).group_by(_TABLE.sensor)
        one = sa.select(last).where(_TABLE.site == site, _TABLE.time < until)
        with self._database.reading() as connection:
            known: dict[str, int | None] = {row[0]: row[1] for row in connection.execute(many)}
            for name in sensors:
                if name not in known:
                    known[name] = connection.execute(one.where(_TABLE.sensor == name)).scalar()
        return {name: time for name in sensors if (time := known[name]) is not None}

    def alarms(self, site: str, *, each: int = 3) -> list[Alarm]:
        """Return sequence numbers with two values, a few of each sensor so that none hides the others; newest first.

        The index gives one sensor after another, and the highest numbers of a sensor are the end of its part.
        """
        table = tables.alarms.c
        alarms: list[Alarm] = []
        first_sensor = sa.select(sa.func.min(table.sensor)).where(table.site == site)
        query = sa.select(table.sensor, table.seq, table.received).where(table.site == site)
        query = query.order_by(table.seq.desc()).limit(queries.check_limit(each))
        with self._database.reading() as connection:
            sensor = connection.execute(first_sensor).scalar()
            while sensor is not None:
                alarms += [Alarm(*row) for row in connection.execute(query.where(table.sensor == sensor))]
                sensor = connection.execute(first_sensor.where(table.sensor > sensor)).scalar()
        return sorted(alarms, key=lambda alarm: (-alarm.received, alarm.sensor, -alarm.seq))


class FrameTable:
    """The times of a store that have readings."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def values(
        self, site: str, times: Sequence[int], counts: Callable[[int, str, int], bool] | None = None
    ) -> dict[int, dict[str, int]]:
        """Return the value of each sensor at each time; of several readings of a sensor, the one with the highest seq.

        A time without readings gets an empty dictionary. `counts` says of a reading, by when it arrived, its sensor and
        its seq, whether it counts.
        """
        table = tables.readings.c
        values: dict[int, dict[str, int]] = {time: {} for time in times}
        query = sa.select(table.time, table.sensor, table.value, table.received, table.seq).where(table.site == site)
        query = query.order_by(table.time, table.sensor, table.seq)
        with self._database.reading() as connection:
            query = query.where(queries.among(connection, table.time, values))
            for time, sensor, value, received, seq in connection.execute(query):
                if counts is None or counts(received, sensor, seq):
                    values[time][sensor] = value
        return values

    def present(self, site: str, times: Sequence[int]) -> dict[str, int]:
        """Return at how many of these times each sensor has a reading; sensors without one are left out."""
        query = sa.select(_TABLE.sensor, sa.func.count(_TABLE.time.distinct())).where(_TABLE.site == site)
        with self._database.reading() as connection:
            query = query.where(queries.among(connection, _TABLE.time, times)).group_by(_TABLE.sensor)
            return {row[0]: row[1] for row in connection.execute(query)}

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
        return [FrameTime(*row) for row in self._database.rows(query.limit(queries.check_limit(limit)))]

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
        return [row.time for row in self._database.rows(query.limit(queries.check_limit(limit)))]


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


def _add(connection: sa.Connection, rows: Sequence[Reading]) -> list[ReadingStatus]:
    first: dict[Key, Reading] = {}
    for row in rows:
        first.setdefault(row[:3], row)
    new, stored = _insert(connection, first)
    _mark_frames(connection, {(first[key].site, first[key].time) for key in new})
    statuses = []
    alarms: dict[Key, Reading] = {}
    for row in rows:
        key = row[:3]
        if key in new:
            new.remove(key)
            statuses.append(ReadingStatus.NEW)
        elif stored[key] == row[3:5]:
            statuses.append(ReadingStatus.AGAIN)
        else:
            statuses.append(ReadingStatus.ALARM)
            alarms.setdefault(key, row)
    _add_alarms(connection, alarms)
    return statuses


def _insert(connection: sa.Connection, first: dict[Key, Reading]) -> tuple[set[Key], dict[Key, tuple[int, int]]]:
    """Insert new readings; returns the keys of those, and the stored time and value under every key."""
    new: set[Key] = set()
    stored: dict[Key, tuple[int, int]] = {}
    # in the order of the keys: two transactions that insert the same ones must not wait for each other
    open_keys = sorted(first)
    for _ in range(TRIES):
        inserted = queries.insert_new(connection, tables.readings, [first[key] for key in open_keys], key=_KEY)
        new |= inserted
        stored |= {key: (first[key].time, first[key].value) for key in inserted}
        others = [key for key in open_keys if key not in inserted]
        for row in queries.look_up(connection, tables.readings, others, key=_KEY):
            stored[row.site, row.sensor, row.seq] = (row.time, row.value)
        # keys that are neither new nor stored were erased between the two statements
        open_keys = [key for key in open_keys if key not in stored]
        if not open_keys:
            return new, stored
    raise StoreAwayError("readings are being erased as quickly as they arrive: try again.")


def _mark_frames(connection: sa.Connection, times: set[tuple[str, int]]) -> None:
    """Record that these times have readings, and that their results, if any, lack some.

    The row of a frame stays locked until the transaction ends. Saving a result and erasing take the same lock before
    they look at the readings, so they never overlook one that is being stored.
    """
    if not times:
        return
    statement = queries.insert(connection, tables.frames)
    frames = tables.frames.c
    statement = statement.on_conflict_do_update(
        index_elements=[frames.site, frames.time], set_={"late": 1}, where=(frames.solved > 0) & (frames.late == 0)
    )
    rows = [{"site": site, "time": time, "solved": 0, "late": 0} for site, time in sorted(times)]
    connection.execute(statement, rows)


def _add_alarms(connection: sa.Connection, alarms: dict[Key, Reading]) -> None:
    if not alarms:
        return
    statement = queries.insert(connection, tables.alarms).on_conflict_do_nothing()
    names = ("site", "sensor", "seq", "received")
    connection.execute(
        statement, [dict(zip(names, (*key, alarms[key].received), strict=True)) for key in sorted(alarms)]
    )


def _after_cursor(after: str, only: str | None, *, newest_first: bool) -> tuple[Conditions, Conditions]:
    """Conditions for what follows a cursor: the rest of its own time, then the other times.

    Each is one stretch of an index. With a single condition, a time with very many readings would be read again for
    every page.
    """
    first, sensor, last = queries.split_cursor(after, 3)
    time, seq = queries.cursor_number(first, after), queries.cursor_number(last, after)
    here: Any = sa.tuple_(sa.literal(sensor), sa.literal(seq))
    order: Any = sa.tuple_(_TABLE.sensor, _TABLE.seq)
    if only is not None and sensor == only:
        here, order = sa.literal(seq), _TABLE.seq
    if newest_first:
        return (_TABLE.time == time, order < here), (_TABLE.time < time,)
    return (_TABLE.time == time, order > here), (_TABLE.time > time,)
