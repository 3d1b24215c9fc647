"""Transactions on SQLite or PostgreSQL; a transaction that has ended is on the disk."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from cloakwork.collect.storage.engines import (
    WRITES,
    busy_error,
    is_conflict,
    parse_url,
    postgresql_engine,
    sqlite_engine,
    translated_errors,
)
from cloakwork.errors import StoreAwayError, StoreError

Value = TypeVar("Value")
ATTEMPTS = 5  # at a transaction that PostgreSQL aborts because two waited for each other
SHORT_WAIT_MS = 100
LEADER = 0x6C656164  # any number of our own: PostgreSQL lets one connection hold it
FIRST_ANALYSIS = 1000  # rows
LOG_PAUSES_S = (0.0, 0.1, 0.3, 0.6)  # before each attempt to empty the log
VACUUM_PAGES = 500  # returned to the disk in one transaction
log = logging.getLogger(__name__)


class Database:
    """Transactions on the database behind `url`; `wait_s` is how long a call waits for a lock or a server.

    With `make` False, a missing SQLite file is an error.
    """

    def __init__(self, url: str, *, wait_s: float, make: bool = True) -> None:
        parsed = parse_url(url)
        self.wait_s = wait_s
        self.path = None if parsed.database is None or parsed.drivername != "sqlite" else Path(parsed.database)
        if not make and self.path is not None and not self.path.exists():
            raise StoreError(
                f"{self.path}: there is no such store. Name the one that the collector created.", store=str(self.path)
            )
        self.name = str(self.path or parsed.set(query={}).render_as_string(hide_password=True))
        # SQLite lets one connection write at a time; threads queue here, because SQLite itself polls
        self._write_lock = threading.Lock()
        self._closed = False
        self._lead: sa.Connection | None = None
        self._added, self._analyze_at = 0, FIRST_ANALYSIS
        if self.path is not None:
            self._engine = sqlite_engine(parsed, self.name, wait_s)
        else:
            self._engine = postgresql_engine(parsed, wait_s)

    @property
    def is_sqlite(self) -> bool:
        return self.path is not None

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that only reads."""
        self._refuse_closed()
        with translated_errors(self.name, self.wait_s), self._engine.begin() as connection:
            yield connection

    def rows(self, query: sa.Select[*tuple[Any, ...]]) -> Sequence[sa.Row[*tuple[Any, ...]]]:
        """Return what one query selects."""
        with self.reading() as connection:
            return connection.execute(query).all()

    def write(self, work: Callable[[sa.Connection], Value]) -> Value:
        """Run `work` in one transaction, durable when this returns. It may run more than once; the last one counts."""
        self._refuse_closed()
        with translated_errors(self.name, self.wait_s), self._one_writer():
            for _ in range(ATTEMPTS - 1):
                try:
                    return self._write(work)
                except exc.DBAPIError as problem:
                    if not is_conflict(problem):
                        raise
            return self._write(work)

    def lead(self) -> bool:
        """Take or keep PostgreSQL's lock for the one that recovers; SQLite has one collector, which always does.

        The lock belongs to a connection: the server gives it to another collector once this one is gone. One thread may
        use it.
        """
        if self.path is not None:
            return True
        self._refuse_closed()
        try:
            with translated_errors(self.name, self.wait_s):
                if self._lead is None:
                    connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                    if not connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({LEADER})").scalar_one():
                        connection.close()
                        return False
                    self._lead = connection
                    log.info("this collector recovers the frames")
                self._lead.exec_driver_sql("SELECT 1")
        except StoreError:
            self.end_lead()
            raise
        return True

    def end_lead(self) -> None:
        """Give the lock back."""
        if self._lead is not None:
            with suppress(exc.SQLAlchemyError):
                self._lead.invalidate()  # closes it, and with it ends the lock
                self._lead.close()
            self._lead = None

    def size(self, tables: Iterable[str]) -> int:
        """Bytes on the disk: of the whole SQLite file, or of these tables."""
        if self.path is not None:
            return _bytes(self.path) + _bytes(self.path.with_name(f"{self.path.name}-wal"))
        names = ", ".join(f"('{name}')" for name in tables)
        query = f"SELECT sum(pg_total_relation_size(name)) FROM (VALUES {names}) AS ours (name)"  # noqa: S608
        with self.reading() as connection:
            return int(connection.exec_driver_sql(query).scalar_one())

    def rows_added(self, rows: int) -> None:
        """Update PostgreSQL's statistics after the first thousand rows, and each time there are ten times as many.

        PostgreSQL does so on its own after a minute. Until then, and after a restored backup, it might look up readings
        by an index that does not contain their sequence number.
        """
        self._added += rows
        if self.is_sqlite or self._added < self._analyze_at:
            return
        self._analyze_at = self._added * 10
        try:
            self.write(lambda connection: connection.exec_driver_sql("ANALYZE readings, frames, results"))
        except StoreError as problem:
            log.warning("the statistics of the store are out of date: %s", problem)

    def shrink(self) -> bool:
        """Shrink an SQLite file and empty its log after rows were deleted; PostgreSQL does so on its own.

        Returns whether it succeeded: a reader or writer that is busy for longer than a second prevents it, and deleted
        rows stay in the files until a later call.
        """
        if not self.is_sqlite:
            return True
        try:
            while self._outside_transaction(_free_pages):
                pass
            for pause in LOG_PAUSES_S:
                time.sleep(pause)
                if self._outside_transaction(_empty_log):
                    return True
        except StoreAwayError as problem:
            log.info("the file of the store did not shrink: %s", problem)
        return False

    def close(self) -> None:
        """Close all connections; those in use close when their call ends."""
        self._closed = True
        self._engine.dispose()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreError(f"{self.name} was closed: open it again.", store=self.name)

    def _write(self, work: Callable[[sa.Connection], Value]) -> Value:
        with self._engine.connect() as connection:
            writing = connection.execution_options(**{WRITES: True})
            with writing.begin():
                return work(writing)

    def _outside_transaction(self, work: Callable[[sqlite3.Cursor], Value]) -> Value:
        """Run a PRAGMA that cannot be part of a transaction, unless someone else is writing."""
        self._refuse_closed()
        with translated_errors(self.name, self.wait_s), self._one_writer(), self._engine.connect() as connection:
            cursor: Any = connection.connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {SHORT_WAIT_MS}")
            try:
                return work(cursor)
            finally:
                cursor.execute(f"PRAGMA busy_timeout = {round(self.wait_s * 1000)}")
                cursor.close()

    @contextmanager
    def _one_writer(self) -> Iterator[None]:
        if not self.is_sqlite:
            yield
            return
        if not self._write_lock.acquire(timeout=self.wait_s):
            raise busy_error(self.name, self.wait_s)
        try:
            yield
        finally:
            self._write_lock.release()


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a log comes and goes
        return 0


def _free_pages(cursor: sqlite3.Cursor) -> bool:
    """Return some unused pages to the disk; returns whether there are more."""
    before = cursor.execute("PRAGMA freelist_count").fetchone()[0]
    cursor.executescript(f"PRAGMA incremental_vacuum({VACUUM_PAGES})")  # a script, because it works step by step
    after = cursor.execute("PRAGMA freelist_count").fetchone()[0]
    return bool(0 < after < before)


def _empty_log(cursor: sqlite3.Cursor) -> bool:
    """Write the log into the database and truncate it; returns False where a reader still uses it."""
    busy: int = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return busy == 0
