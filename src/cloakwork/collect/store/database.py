"""A connection pool to SQLite or PostgreSQL, set so that a transaction that has ended is on the disk."""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event, exc

from cloakwork.collect.store import tables
from cloakwork.collect.store.errors import StoreAwayError, StoreError, busy, is_conflict, translated
from cloakwork.errors import InputError

Found = TypeVar("Found")
ATTEMPTS = 5  # of a transaction that PostgreSQL gives up because two waited for each other
OLDEST_SQLITE = (3, 37, 0)  # strict tables
SOON_MS = 100
AGAIN_S = 0.005
CONNECTIONS = 8
FIRST_COUNT = 1000  # rows
INCREMENTAL = 2  # as SQLite calls it
PAGES = 500  # of a file that are given back in one transaction
FORMS = "sqlite:///FILE, a path, or postgresql://USER:PASSWORD@HOST/DATABASE"
log = logging.getLogger(__name__)
_WRITES = "cloakwork_writes"


class Database:
    """Transactions on the database behind `url`; `wait_s` is how long to wait for a lock or a server."""

    def __init__(self, url: str, *, wait_s: float, make: bool = True) -> None:
        parsed = _parse(url)
        self.wait_s = wait_s
        self.path = None if parsed.database is None or _is_server(parsed) else Path(parsed.database)
        if not make and self.path is not None and not self.path.exists():
            raise StoreError(f"{self.path}: there is no such store. Name that of the collector, which makes it.")
        self.name = str(self.path or parsed.set(query={}).render_as_string(hide_password=True))
        # SQLite lets one connection write at a time; threads queue here, because its own waiting is a poll
        self._turn = threading.Lock()
        self._closed = False
        self._added, self._count_at = 0, FIRST_COUNT
        self._engine = _sqlite(parsed, self.name, wait_s) if self.path is not None else _postgresql(parsed, wait_s)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is one file."""
        return self.path is not None

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that only reads."""
        self._refuse_closed()
        with translated(self.name, self.wait_s), self._engine.begin() as connection:
            yield connection

    def write(self, work: Callable[[sa.Connection], Found]) -> Found:
        """Do `work` in one transaction, durable when this returns; it may run more than once, the last time counts."""
        self._refuse_closed()
        with translated(self.name, self.wait_s), self._one_writer():
            for _ in range(ATTEMPTS - 1):
                try:
                    return self._write(work)
                except exc.DBAPIError as problem:
                    if not is_conflict(problem):
                        raise
            return self._write(work)

    def size(self) -> int:
        """Bytes on the disk."""
        if self.path is not None:
            return _bytes(self.path) + _bytes(self.path.with_name(f"{self.path.name}-wal"))
        sizes = ", ".join(f"('{name}')" for name in tables.METADATA.tables)
        query = f"SELECT sum(pg_total_relation_size(name)) FROM (VALUES {sizes}) AS ours (name)"  # noqa: S608
        with self.reading() as connection:
            return int(connection.exec_driver_sql(query).scalar_one())

    def grew(self, rows: int) -> None:
        """Say that rows were added: after the first thousand, and each time ten times as many, PostgreSQL counts anew.

        It does so by itself after a minute. Until then, and after a restored backup, it might look up readings by an
        index that does not hold their number.
        """
        self._added += rows
        if self.is_sqlite or self._added < self._count_at:
            return
        self._count_at = self._added * 10
        try:
            self.write(lambda connection: connection.exec_driver_sql("ANALYZE readings, frames, results"))
        except StoreError as problem:
            log.warning("the statistics of the store are old: %s", problem)

    def tidy(self) -> None:
        """Let the file shrink after rows were removed, and the log forget them; PostgreSQL does so by itself.

        It does not wait for others for long: what is not done now is done the next time.
        """
        if not self.is_sqlite:
            return
        try:
            while self._apart(_give_back):
                pass
            self._apart(_empty_log)
        except StoreAwayError as problem:
            log.info("the file of the store did not shrink: %s", problem)

    def close(self) -> None:
        """Close all connections; those in use when their call ends."""
        self._closed = True
        self._engine.dispose()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreError(f"{self.name} was closed: open it again.", store=self.name)

    def _write(self, work: Callable[[sa.Connection], Found]) -> Found:
        with self._engine.connect() as connection:
            writing = connection.execution_options(**{_WRITES: True})
            with writing.begin():
                return work(writing)

    def _apart(self, work: Callable[[sqlite3.Cursor], Found]) -> Found:
        """Do something to the file that is no transaction, if nobody else writes just now."""
        self._refuse_closed()
        with translated(self.name, self.wait_s), self._one_writer(), self._engine.connect() as connection:
            cursor: Any = connection.connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {SOON_MS}")
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
        if not self._turn.acquire(timeout=self.wait_s):
            raise busy(self.name, self.wait_s)
        try:
            yield
        finally:
            self._turn.release()


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a log comes and goes
        return 0


def _give_back(cursor: sqlite3.Cursor) -> bool:
    """Give some unused pages back to the disk; whether there are more."""
    before = cursor.execute("PRAGMA freelist_count").fetchone()[0]
    cursor.executescript(f"PRAGMA incremental_vacuum({PAGES})")  # a script, because this is done step by step
    after = cursor.execute("PRAGMA freelist_count").fetchone()[0]
    return bool(0 < after < before)


def _empty_log(cursor: sqlite3.Cursor) -> None:
    """Write the log into the database and forget it, as far as readers allow."""
    cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _parse(url: str) -> sa.URL:
    if "://" not in url:
        if not url:
            raise InputError(f"the address of the store is empty: use {FORMS}.")
        return sa.URL.create("sqlite", database=url)
    try:
        parsed = sa.make_url(url)
    except (exc.ArgumentError, ValueError):
        raise InputError(f"the address of the store cannot be read: use {FORMS}.") from None
    if parsed.drivername in {"postgresql", "postgres", "postgresql+psycopg"}:
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername != "sqlite":
        raise InputError(f"the store cannot be a {parsed.drivername} database: use {FORMS}.", given=parsed.drivername)
    if not parsed.database or parsed.database == ":memory:":
        raise InputError("a store in memory would forget what it acknowledged: name a file, as in sqlite:///hall.db.")
    return parsed


def _is_server(url: sa.URL) -> bool:
    return url.drivername != "sqlite"


def _sqlite(url: sa.URL, name: str, wait_s: float) -> sa.Engine:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(str(part) for part in OLDEST_SQLITE)
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old, {wanted} is needed: use a newer Python.")
    _make_file(Path(name))
    engine = sa.create_engine(
        url, hide_parameters=True, pool_size=CONNECTIONS, pool_timeout=wait_s, connect_args={"timeout": wait_s}
    )

    @event.listens_for(engine, "connect")
    def set_up(raw: sqlite3.Connection, _: Any) -> None:
        raw.isolation_level = None  # we begin transactions: Python would begin them too late for DDL and reads
        if raw.execute("PRAGMA auto_vacuum").fetchone() != (INCREMENTAL,):  # to set it waits for all who write
            raw.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before anything else is in the file
        if _write_ahead(raw, wait_s) != "wal":
            raise StoreError(f"{name}: its file system cannot hold a write-ahead log: put it on a local disk.")
        # FULL: each commit waits for the disk, so that it outlives a power cut
        for setting in ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF"):
            raw.execute(f"PRAGMA {setting}")
        raw.execute("PRAGMA journal_size_limit = 67108864")

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # a transaction that starts by reading and then writes may find that it cannot
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _write_ahead(raw: sqlite3.Connection, wait_s: float) -> str:
    """Have the file keep a write-ahead log; says which journal it keeps.

    Of two who open a new file at once SQLite turns one away at this step, however long it may wait: it tries again.
    """
    end = time.monotonic() + wait_s
    while True:
        try:
            return str(raw.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(AGAIN_S)


def _make_file(path: Path) -> None:
    """Make an empty file that only its owner may read; its name is on the disk when this returns."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if path.is_dir():
            raise StoreError(f"{path} is a folder: give the name of a file in it.") from None
        return
    except OSError as problem:
        advice = "give a file in a folder that exists and where this user may write"
        raise StoreError(f"{path} cannot be made ({problem.strerror}): {advice}.") from None
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _postgresql(url: sa.URL, wait_s: float) -> sa.Engine:
    seconds = max(2, round(wait_s))
    settings = {
        "connect_timeout": seconds,
        "application_name": "cloakwork",
        # a server that vanished without a word is noticed in about the time that we wait
        "keepalives_idle": seconds,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": seconds * 2000,
    }
    try:
        engine = sa.create_engine(
            url,
            hide_parameters=True,
            pool_pre_ping=True,
            pool_size=CONNECTIONS,
            pool_timeout=wait_s,
            connect_args={name: value for name, value in settings.items() if name not in url.query},
        )
    except ImportError:
        raise StoreError("PostgreSQL needs a driver that is not installed: pip install 'psycopg[binary]'.") from None

    @event.listens_for(engine, "connect")
    def set_up(raw: Any, _: Any) -> None:
        with raw.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {max(1, round(wait_s * 1000))}")
            cursor.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute("SHOW synchronous_commit")
            if cursor.fetchone() == ("off",):
                cursor.execute("SET synchronous_commit = on")  # a commit waits for the disk
        raw.commit()

    return engine
