"""The store as the rest of the collector sees it: its tables, and erasure across them."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self, TypeVar

import sqlalchemy as sa

from cloakwork.collect.storage import queries, tables
from cloakwork.collect.storage.database import Database
from cloakwork.collect.storage.reading_table import FrameTable, ReadingTable, lock_frames
from cloakwork.collect.storage.records import Erased, unix_ms
from cloakwork.collect.storage.result_table import ResultTable
from cloakwork.collect.storage.site_tables import CheckTable, PlanTable, ProblemTable, ReportTable, slots_within
from cloakwork.collect.storage.token_table import TokenTable
from cloakwork.errors import InputError

DAY_MS = 86_400_000
DEFAULT_URL = "sqlite:///cloakwork.db"
STEP = queries.BATCH  # rows erased per transaction
LONGEST_PAUSE_S = 0.2
SETTLED_WITH, FOLLOWED_FROM = 10, 60  # frames: the longest lag, and as many as a tracker is rebuilt from
Change = TypeVar("Change", sa.Delete, sa.Update)
Conditions = Sequence[sa.ColumnElement[bool]]


def open_store(
    url: str = DEFAULT_URL, *, wait_s: float = 10.0, make: bool = True, now: Callable[[], int] = unix_ms
) -> "Store":
    """Open a store, create it if it is missing (SQLite: unless `make` is False), and migrate it to this version.

    `url` is `sqlite:///file`, a bare path (also SQLite) or `postgresql://user:password@host/database`. `wait_s` is how
    long a call waits for a lock that someone else holds, or for a server, before it raises. `now` is the clock by which
    data grows old.
    """
    database = Database(url, wait_s=wait_s, make=make)
    try:
        tables.migrate(database)
    except BaseException:
        database.close()
        raise
    return Store(database, now=now)


class Store:
    """Readings and the results recovered from them. Calls block; it is thread-safe, and processes may share a store.

    A call that returns is durable. Any call may raise `StoreError`. Its children, `StoreAwayError` (with
    `StoreBusyError` and `StoreFullError`), mean that the same call may work later; retrying is always safe. An invalid
    argument raises `InputError`. Periods are since <= time < until, in Unix milliseconds.
    """

    def __init__(self, database: Database, *, now: Callable[[], int] = unix_ms) -> None:
        self.readings = ReadingTable(database)
        self.frames = FrameTable(database)
        self.results = ResultTable(database)
        self.reports = ReportTable(database)
        self.problems = ProblemTable(database)
        self.checks = CheckTable(database)
        self.plans = PlanTable(database)
        self.tokens = TokenTable(database, now=now)
        self._database = database
        self._now = now

    def sites(self) -> list[str]:
        """Return the names of all sites with data, sorted."""
        names: set[str] = set()
        with self._database.reading() as connection:
            for table in (tables.frames, tables.reports, tables.report_history, tables.alarms, tables.problems):
                # the index gives one name after another
                query = sa.select(sa.func.min(table.c.site))
                name = connection.execute(query).scalar()
                while name is not None:
                    names.add(str(name))
                    name = connection.execute(query.where(table.c.site > name)).scalar()
        return sorted(names - {""})

    def erase(self, site: str, sensor: str | None = None, since: int | None = None, until: int | None = None) -> Erased:
        """Erase the readings of a site, or of one sensor, in a period, and the results of their frames.

        Results that used an erased reading go too; if readings of other sensors remain, the frame waits again. So
        are the frames around it through which sources were followed: `SETTLED_WITH` before and `FOLLOWED_FROM` after.
        Reports, alarms and problems go by when they were received; the tests of the physics begin anew. Works in small
        transactions, so that writers wait for milliseconds only; readings that arrive meanwhile may stay.
        """
        erased = self._erase(site, sensor, since, until, counted=True)
        self.checks.forget(site)
        around = 0
        if erased.readings:
            around = self._database.write(lambda connection: _erase_around(connection, site, since, until))
        return replace(erased, results=erased.results + around, in_files=not self._database.shrink())

    def _erase(self, site: str, sensor: str | None, since: int | None, until: int | None, *, counted: bool) -> Erased:
        table = tables.readings.c
        chosen = _chosen(tables.readings, table.time, site, sensor, since, until)
        query = sa.select(table.sensor, table.seq, table.time).where(*chosen)
        query = query.order_by(table.time, table.sensor, table.seq).limit(STEP)
        write = self._database.write
        steps = _repeat(lambda: write(lambda connection: _erase_readings(connection, site, query, counted)))
        reports = 0
        for other, clock in (
            (tables.reports, tables.reports.c.received),
            (tables.report_history, tables.report_history.c.received),
            (tables.alarms, tables.alarms.c.received),
            (tables.problems, tables.problems.c.last),
        ):
            conditions = _chosen(other, clock, site, sensor, since, until)
            if other is tables.report_history:
                reports = self._erase_rows(other, [*conditions, *slots_within(since, until)])
            else:
                self._erase_rows(other, conditions)
        return Erased(sum(step.rows for step in steps), sum(step.results for step in steps), reports)

    def erase_older(self, site: str, days: float) -> Erased:
        """Erase what is older than so many days: readings and results by their time, the rest by when it arrived.

        Results that continue the tracks of this time stay until they are as old. The tests of the physics go on: their
        state is one number for each fault, from all readings so far.
        """
        if not days > 0:
            raise InputError(f"days={days}: a store keeps more than 0 days; `erase` removes everything.", days=days)
        erased = self._erase(site, None, None, self._now() - round(days * DAY_MS), counted=False)
        return replace(erased, in_files=not self._database.shrink())

    def lead(self) -> bool:
        """Return whether this collector recovers the frames: of several on one PostgreSQL server, one does."""
        return self._database.lead()

    def end_lead(self) -> None:
        """Leave the frames to another collector."""
        self._database.end_lead()

    def erasures(self, site: str) -> int:
        """Count the erasures at a site; ask before reading what a result is computed from."""
        query = sa.select(tables.erasures.c.count).where(tables.erasures.c.site == site)
        return sum(row[0] for row in self._database.rows(query))

    @property
    def is_file(self) -> bool:
        """Whether the store is an SQLite file, not a server."""
        return self._database.is_sqlite

    @property
    def name(self) -> str:
        """The store's address, without a password."""
        return self._database.name

    def size(self) -> int:
        return self._database.size(tables.METADATA.tables)

    def check(self) -> None:
        """Raise `StoreError` unless the database answers."""
        self._database.rows(sa.select(1))

    def close(self) -> None:
        """Close the store; may be called twice."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _erase_rows(self, table: sa.Table, chosen: Conditions) -> int:
        """Delete these rows; returns their number."""
        key = sa.tuple_(*table.primary_key)
        change = sa.delete(table).where(key.in_(sa.select(*table.primary_key).where(*chosen).limit(STEP)))

        def step() -> _Step:
            count = self._database.write(lambda connection: connection.execute(change).rowcount)
            return _Step(count, count)

        return sum(step.rows for step in _repeat(step))


class _Step(NamedTuple):
    """Rows that one transaction selected and deleted; others may delete some while it waits for them."""

    selected: int
    rows: int
    results: int = 0


def _chosen(
    table: sa.Table, clock: sa.Column[int], site: str, sensor: str | None, since: int | None, until: int | None
) -> Conditions:
    conditions = [table.c.site == site, *queries.within(clock, since, until)]
    return conditions if sensor is None else [*conditions, table.c.sensor == sensor]


def _repeat(step: Callable[[], _Step]) -> list[_Step]:
    """Run steps until one selects nothing; between them others get as much time as a step takes."""
    done: list[_Step] = []
    while True:
        start = time.monotonic()
        result = step()
        if result.selected == 0:
            return done
        done.append(result)
        time.sleep(min(time.monotonic() - start, LONGEST_PAUSE_S))


def _erase_readings(connection: sa.Connection, site: str, query: sa.Select[Any], counted: bool) -> _Step:
    selected = connection.execute(query).all()
    if not selected:
        return _Step(0, 0)
    times = sorted({row.time for row in selected})
    if counted:  # before the frames, as saving results does, so that two transactions never wait for each other
        _count_erasure(connection, site)
    lock_frames(connection, site, times)
    table = tables.readings.c
    keys = [(site, row.sensor, row.seq) for row in selected]
    readings = queries.delete(connection, tables.readings, keys, key=(table.site, table.sensor, table.seq))
    remaining = sa.select(table.time).distinct()
    remaining = remaining.where(table.site == site, queries.among(connection, table.time, times))
    left = set(connection.execute(remaining).scalars())
    empty = [time for time in times if time not in left]
    connection.execute(_at_times(sa.delete(tables.frames), tables.frames, connection, site, empty))
    number = sa.select(sa.func.count()).where(table.site == site, table.time == tables.frames.c.time)
    waits = sa.update(tables.frames).values(readings=number.scalar_subquery(), recovered=0)
    connection.execute(_at_times(waits, tables.frames, connection, site, left))
    # results last: by now we hold every frame, even one that was recreated while we waited for its predecessor
    results = connection.execute(_at_times(sa.delete(tables.results), tables.results, connection, site, times)).rowcount
    return _Step(len(selected), readings, results)


def _erase_around(connection: sa.Connection, site: str, since: int | None, until: int | None) -> int:
    """Erase the results that were settled with an erased period, or that continue its tracks; returns their number."""
    _count_erasure(connection, site)
    table = tables.results.c
    followed = sa.select(table.time).where(table.site == site, table.labels.is_not(None))
    times: list[int] = []
    if since is not None:
        before = followed.where(table.time < since).order_by(table.time.desc()).limit(SETTLED_WITH)
        times += connection.execute(before).scalars()
    if until is not None:
        after = followed.where(table.time >= until).order_by(table.time).limit(FOLLOWED_FROM)
        times += connection.execute(after).scalars()
    lock_frames(connection, site, sorted(times))
    waits = sa.update(tables.frames).values(recovered=0)
    connection.execute(_at_times(waits, tables.frames, connection, site, times))
    return connection.execute(_at_times(sa.delete(tables.results), tables.results, connection, site, times)).rowcount


def _count_erasure(connection: sa.Connection, site: str) -> None:
    """Count in the transaction of the erasure, so that no one sees one without the other."""
    statement = queries.insert(connection, tables.erasures).values(site=site, count=1)
    more = {"count": tables.erasures.c.count + 1}
    connection.execute(statement.on_conflict_do_update(index_elements=[tables.erasures.c.site], set_=more))


def _at_times(change: Change, table: sa.Table, connection: sa.Connection, site: str, times: Iterable[int]) -> Change:
    return change.where(table.c.site == site, queries.among(connection, table.c.time, times))
