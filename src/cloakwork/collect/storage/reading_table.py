"""Stored readings, each kept once, however often it arrives; and frames: the readings of one time."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from cloakwork.collect.storage import queries, tables
from cloakwork.collect.storage.database import Database
from cloakwork.collect.storage.records import Alarm, FrameTime, Page, Reading, ReadingStatus, WaitingFrame
from cloakwork.errors import StoreAwayError

Key = tuple[str, str, int]
Conditions = tuple[sa.ColumnElement[bool], ...]
STREAMED = 5000  # rows in memory while all are read
TRIES = 10
_TABLE = tables.readings.c
_KEY = (_TABLE.site, _TABLE.sensor, _TABLE.seq)
_ORDER = (_TABLE.time, _TABLE.sensor, _TABLE.seq)


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

    def waiting(self, site: str, now: int | None = None, shared: int = 1, limit: int = 1000) -> list[WaitingFrame]:
        """Return the newest frames to recover: those up to `now`, and later ones with `shared` readings at least."""
        frames = tables.frames.c
        query = sa.select(frames.time, frames.readings, frames.recovered)
        query = query.where(frames.site == site, tables.WAITING, frames.time > 0)
        if now is not None:
            query = query.where((frames.time <= now) | (frames.readings >= shared))
        query = query.order_by(frames.time.desc()).limit(queries.check_limit(limit))
        return [WaitingFrame(*row) for row in self._database.rows(query)]

    def mark(self, site: str, recovered: Mapping[int, int]) -> None:
        """Record that the frames of these times, of so many readings, need no result."""
        self._database.write(lambda connection: mark_frames(connection, site, recovered))


def lock_frames(connection: sa.Connection, site: str, times: Sequence[int]) -> set[int]:
    """Keep others from adding readings to these times until the transaction ends; returns those that have readings.

    Locks in the order of time, as adding readings does, so that two transactions never wait for each other.
    """
    table = tables.frames.c
    query = sa.select(table.time).where(table.site == site, queries.among(connection, table.time, times))
    return set(connection.execute(query.order_by(table.time).with_for_update()).scalars())


def mark_frames(connection: sa.Connection, site: str, recovered: Mapping[int, int]) -> None:
    """Record from how many readings the frames of these times were recovered."""
    table = tables.frames
    change = sa.update(table).where(table.c.site == site, table.c.time == sa.bindparam("frame"))
    rows = [{"frame": time, "count": recovered[time]} for time in sorted(recovered)]
    if rows:
        connection.execute(change.values(recovered=sa.bindparam("count")), rows)


def _add(connection: sa.Connection, rows: Sequence[Reading]) -> list[ReadingStatus]:
    first: dict[Key, Reading] = {}
    for row in rows:
        first.setdefault(row[:3], row)
    new, stored = _insert(connection, first)
    _count_readings(connection, Counter((first[key].site, first[key].time) for key in new))
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


def _count_readings(connection: sa.Connection, counts: Mapping[tuple[str, int], int]) -> None:
    """Record that these times have so many more readings, so their frames wait to be recovered.

    The row of a frame stays locked until the transaction ends. Erasing takes the same lock before it looks at the
    readings, so it never overlooks one that is being stored.
    """
    if not counts:
        return
    statement = queries.insert(connection, tables.frames)
    frames = tables.frames.c
    statement = statement.on_conflict_do_update(
        index_elements=[frames.site, frames.time], set_={"readings": frames.readings + statement.excluded.readings}
    )
    rows = [
        {"site": site, "time": time, "readings": counts[site, time], "recovered": 0} for site, time in sorted(counts)
    ]
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
