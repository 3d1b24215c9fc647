"""The store as the rest of the collector sees it: its tables, and erasure across them."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

from cloakwork.collect.storage.database import Database, Transaction
from cloakwork.collect.storage.readings import AT_TIMES, FrameTable, ReadingTable, lock_frames, period
from cloakwork.collect.storage.records import Erased, unix_ms
from cloakwork.collect.storage.results import ResultTable
from cloakwork.collect.storage.site_tables import SLOT_MS, CheckTable, PlanTable, ProblemTable, ReportTable
from cloakwork.collect.storage.tokens import TokenTable
from cloakwork.errors import InputError

DAY_MS = 86_400_000
DEFAULT_URL = "sqlite:///cloakwork.db"
STEP = 1000  # rows erased per transaction
LONGEST_PAUSE_S = 0.2
SETTLED_WITH, FOLLOWED_FROM = 10, 60  # frames: the longest lag, and as many as a tracker is rebuilt from


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
        self.lead, self.end_lead = database.lead, database.end_lead
        self._database = database
        self._now = now

    def sites(self) -> list[str]:
        """Return the names of all sites with data, sorted."""
        tables = ("frames", "reports", "report_history", "problems")
        sql = " UNION ".join(f"SELECT DISTINCT site FROM {table} WHERE site <> ''" for table in tables)
        return sorted(row[0] for row in self._database.rows(sql))

    def erase(self, site: str, sensor: str | None = None, since: int | None = None, until: int | None = None) -> Erased:
        """Erase the readings of a site, or of one sensor, in a period, and the results of their frames.

        Results that used an erased reading go too; if readings of other sensors remain, the frame waits again. So
        are the frames around it through which sources were followed: `SETTLED_WITH` before and `FOLLOWED_FROM` after.
        Reports and problems go by when they were received; the tests of the physics begin anew. Works in small
        transactions, so that writers wait for milliseconds only; readings that arrive meanwhile may stay.
        """
        erased = self._erase(site, sensor, since, until, counted=True)
        self.checks.forget(site)
        around = 0
        if erased.readings:
            around = self._database.write(lambda transaction: _erase_around(transaction, site, since, until))
        return replace(erased, results=erased.results + around, in_files=not self._database.shrink())

    def erase_older(self, site: str, days: float) -> Erased:
        """Erase what is older than so many days: readings and results by their time, the rest by when it arrived.

        Results that continue the tracks of this time stay until they are as old. The tests of the physics go on: their
        state is one number for each fault, from all readings so far.
        """
        if not days > 0:
            raise InputError(f"days={days}: a store keeps more than 0 days; `erase` removes everything.", days=days)
        erased = self._erase(site, None, None, self._now() - round(days * DAY_MS), counted=False)
        return replace(erased, in_files=not self._database.shrink())

    def erasures(self, site: str) -> int:
        """Count the erasures at a site; ask before reading what a result is computed from."""
        return sum(row[0] for row in self._database.rows("SELECT count FROM erasures WHERE site = :site", site=site))

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
        within = period(since, until)
        readings, results = self._repeat(
            lambda transaction: _erase_readings(transaction, this, names, within, counted=counted)
        )
        slots = {"first": within["since"] // SLOT_MS, "last": within["until"] // SLOT_MS}
        in_slots = f"{this} AND slot BETWEEN :first AND :last"
        reports = self._erase_rows("report_history", "site, slot, sensor", in_slots, **(names | within | slots))
        self._erase_rows("reports", "site, sensor", this, **(names | within))
        self._erase_rows("problems", "site, sensor, reason", this, clock="last", **(names | within))
        return Erased(readings, results, reports)

    def _erase_rows(self, table: str, key: str, condition: str, *, clock: str = "received", **values: Any) -> int:
        """Delete the rows of a period; returns their number."""
        sql = f"""
            DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table}
                WHERE {condition} AND {clock} >= :since AND {clock} < :until LIMIT :step) RETURNING site"""

        def step(transaction: Transaction) -> tuple[int, int] | None:
            rows = len(transaction.run(sql, step=STEP, **values))
            return (rows, 0) if rows else None

        return self._repeat(step)[0]

    def _repeat(self, step: Callable[[Transaction], tuple[int, int] | None]) -> tuple[int, int]:
        """Run steps until one finds nothing, and add up; between them others get as much time as a step takes."""
        first = second = 0
        while True:
            start = time.monotonic()
            done = self._database.write(step)
            if done is None:
                return first, second
            first, second = first + done[0], second + done[1]
            time.sleep(min(time.monotonic() - start, LONGEST_PAUSE_S))


def _erase_readings(
    transaction: Transaction, this: str, names: dict[str, Any], within: dict[str, int], *, counted: bool
) -> tuple[int, int] | None:
    """Erase the readings of the next few frames of a period; returns how many, and how many results; None at the end.

    Others may have erased some while this waited for them.
    """
    sql = f"SELECT time FROM readings WHERE {this} AND time >= :since AND time < :until ORDER BY time LIMIT :step"
    times = sorted({row[0] for row in transaction.run(sql, step=STEP, **(names | within))})
    if not times:
        return None
    site = names["site"]
    if counted:  # before the frames, as saving results does, so that two transactions never wait for each other
        _count_erasure(transaction, site)
    lock_frames(transaction, site, times)
    gone = transaction.run(f"DELETE FROM readings WHERE {AT_TIMES} AND {this} RETURNING seq", rows=times, **names)
    count = "SELECT count(*) FROM readings WHERE readings.site = frames.site AND readings.time = frames.time"
    change = f"UPDATE frames SET recovered = 0, readings = ({count}) WHERE site = :site AND {AT_TIMES}"
    transaction.run(change, rows=times, site=site)
    transaction.run(f"DELETE FROM frames WHERE readings = 0 AND site = :site AND {AT_TIMES}", rows=times, site=site)
    # results last: by now we hold every frame, even one that was recreated while we waited for its predecessor
    return len(gone), _erase_results(transaction, site, times)


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
    transaction.run(f"UPDATE frames SET recovered = 0 WHERE site = :site AND {AT_TIMES}", rows=times, site=site)
    return _erase_results(transaction, site, times)


def _erase_results(transaction: Transaction, site: str, times: list[int]) -> int:
    sql = f"DELETE FROM results WHERE site = :site AND {AT_TIMES} RETURNING time"
    return len(transaction.run(sql, rows=times, site=site))


def _count_erasure(transaction: Transaction, site: str) -> None:
    """Count in the transaction of the erasure, so that no one sees one without the other."""
    transaction.run(
        """INSERT INTO erasures (site, count) VALUES (:site, 1)
        ON CONFLICT (site) DO UPDATE SET count = erasures.count + 1""",
        site=site,
    )
