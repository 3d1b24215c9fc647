"""The store as the rest of the collector sees it: its tables, and erasure across them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

from cloakwork.collect.storage.database import Database, Transaction, unix_ms
from cloakwork.collect.storage.readings import AT_TIMES, FrameTable, ReadingTable, lock_frames, period
from cloakwork.collect.storage.results import ResultTable
from cloakwork.collect.storage.site_tables import SLOT_MS, CheckTable, PlanTable, ProblemTable, ReportTable
from cloakwork.collect.storage.tokens import TokenTable
from cloakwork.errors import InputError

DAY_MS = 86_400_000
DEFAULT_URL = "sqlite:///cloakwork.db"
STEP = 1000  # rows erased per transaction
LONGEST_PAUSE_S = 0.2
SETTLED_WITH, FOLLOWED_FROM = 10, 60  # frames: the longest lag, and as many as a tracker is rebuilt from


@dataclass(frozen=True)
class Erased:
    """The numbers of rows that an erasure removed.

    `in_files` says that an SQLite store's files still hold them, because another program has the store open to read.
    """

    readings: int
    results: int
    reports: int
    in_files: bool = False


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
        database.migrate()
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
        self.is_file = database.path is not None
        """Whether the store is an SQLite file, not a server."""
        self.name = database.name
        """The store's address, without a password."""
        self.lead, self.end_lead, self.erasures = database.lead, database.end_lead, self.results.erasures
        self._database = database
        self._now = now

    def sites(self) -> list[str]:
        """Return the names of all sites with data, sorted."""
        tables = ("frames", "reports", "report_history", "problems")
        sql = " UNION ".join(f"SELECT DISTINCT site FROM {table} WHERE site <> ''" for table in tables)
        return sorted(row[0] for row in self._database.rows(sql))

    def erase(self, site: str, sensor: str | None = None, since: int | None = None, until: int | None = None) -> Erased:
        """Erase the readings of a site, or of one sensor, in a period, and the results of their frames.

        Results that used an erased reading go too, and so do those of the frames through which sources were followed:
        `SETTLED_WITH` before and `FOLLOWED_FROM` after. A frame that still has readings then waits again.
        Reports and problems go by when they were received; the tests of the physics start again. Works in small
        transactions, so that writers wait for milliseconds only; readings that arrive meanwhile may stay.
        """
        erased = self._erase(site, sensor, since, until, counted=True)
        self.checks.forget(site)
        around = 0
        if erased.readings:
            with self._database.writing() as transaction:
                around = _erase_around(transaction, site, since, until)
        return replace(erased, results=erased.results + around, in_files=not self._database.shrink())

    def erase_older(self, site: str, days: float) -> Erased:
        """Erase what is older than so many days: readings and results by their time, the rest by when it arrived.

        Results that continue the tracks of this time stay until they are as old. The tests of the physics continue:
        their state is one number for each fault, from all readings so far.
        """
        if not days > 0:
            raise InputError(f"days={days}: a store keeps more than 0 days; `erase` removes everything.", days=days)
        erased = self._erase(site, None, None, self._now() - round(days * DAY_MS), counted=False)
        return replace(erased, in_files=not self._database.shrink())

    def close(self) -> None:
        """Close the store; may be called twice."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _erase(self, site: str, sensor: str | None, since: int | None, until: int | None, *, counted: bool) -> Erased:
        this, names = "site = :site", dict[str, Any](site=site)
        if sensor is not None:
            this, names = f"{this} AND sensor = :sensor", names | {"sensor": sensor}
        within, readings, results = names | period(since, until), 0, 0
        sql = f"SELECT time FROM readings WHERE {this} AND time >= :since AND time < :until ORDER BY time LIMIT :step"
        while True:
            with self._turn() as transaction:
                times = sorted({row[0] for row in transaction.run(sql, step=STEP, **within)})
                if not times:
                    break
                if counted:  # before the frames, as saving results does, so that two never wait for each other
                    _count_erasure(transaction, site)
                lock_frames(transaction, site, times)
                gone = f"DELETE FROM readings WHERE {AT_TIMES} AND {this} RETURNING seq"
                readings += len(transaction.run(gone, rows=times, **names))  # others may have erased some meanwhile
                results += _erase_results(transaction, site, times)
        slots = {"first": within["since"] // SLOT_MS, "last": within["until"] // SLOT_MS}
        in_slots = f"{this} AND slot BETWEEN :first AND :last"
        reports = self._erase_rows("report_history", "site, slot, sensor", in_slots, "received", within | slots)
        self._erase_rows("reports", "site, sensor", this, "received", within)
        self._erase_rows("problems", "site, sensor, reason", this, "last", within)
        return Erased(readings, results, reports)

    def _erase_rows(self, table: str, key: str, condition: str, clock: str, within: dict[str, Any]) -> int:
        """Delete the rows of a period; returns their number."""
        sql = f"""
            DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table}
                WHERE {condition} AND {clock} >= :since AND {clock} < :until LIMIT :step) RETURNING site"""
        total, rows = 0, STEP
        while rows == STEP:
            with self._turn() as transaction:
                rows = len(transaction.run(sql, step=STEP, **within))
            total += rows
        return total

    @contextmanager
    def _turn(self) -> Iterator[Transaction]:
        """One of many transactions; after it others get as much time as it took."""
        start = time.monotonic()
        with self._database.writing() as transaction:
            yield transaction
        time.sleep(min(time.monotonic() - start, LONGEST_PAUSE_S))


def _erase_around(transaction: Transaction, site: str, since: int | None, until: int | None) -> int:
    """Erase the results that were settled with an erased period, or that continue its tracks; returns their number."""
    _count_erasure(transaction, site)
    times: list[int] = []
    for end, order, limit in ((since, ("<", "DESC"), SETTLED_WITH), (until, (">=", ""), FOLLOWED_FROM)):
        followed = "SELECT time FROM results WHERE site = :site AND labels IS NOT NULL"
        sql = f"{followed} AND time {order[0]} :end ORDER BY time {order[1]} LIMIT :limit"
        if end is not None:
            times += [row[0] for row in transaction.run(sql, site=site, end=end, limit=limit)]
    lock_frames(transaction, site, sorted(times))
    return _erase_results(transaction, site, times)


def _erase_results(transaction: Transaction, site: str, times: list[int]) -> int:
    """Erase the results of these times, whose frames wait again if they have readings; returns how many there were."""
    count = "SELECT count(*) FROM readings WHERE readings.site = frames.site AND readings.time = frames.time"
    change = f"UPDATE frames SET recovered = 0, readings = ({count}) WHERE site = :site AND {AT_TIMES}"
    transaction.run(change, rows=times, site=site)
    transaction.run(f"DELETE FROM frames WHERE readings = 0 AND site = :site AND {AT_TIMES}", rows=times, site=site)
    # results last: by now we hold every frame, even one that was recreated while we waited for its predecessor
    sql = f"DELETE FROM results WHERE site = :site AND {AT_TIMES} RETURNING time"
    return len(transaction.run(sql, rows=times, site=site))


def _count_erasure(transaction: Transaction, site: str) -> None:
    """Count in the transaction of the erasure, so that no one sees one without the other."""
    transaction.run(
        """INSERT INTO erasures (site, count) VALUES (:site, 1)
        ON CONFLICT (site) DO UPDATE SET count = erasures.count + 1""",
        site=site,
    )
