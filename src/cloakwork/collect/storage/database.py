"""Transactions on SQLite or PostgreSQL, set up so that a commit is on the disk; and their errors in our terms."""

import json
import logging
import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import index
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from cloakwork._files import sync_folder
from cloakwork.collect.storage import migrations
from cloakwork.errors import CloakworkError, InputError, StoreAwayError, StoreBusyError, StoreError, StoreFullError

Row = Sequence[Any]
FORMS = "sqlite:///FILE, a path, or postgresql://USER:PASSWORD@HOST/DATABASE"
OLDEST_SQLITE = (3, 38, 0)  # ->> in strict tables
CONNECTIONS = 8
RETRY_S = 0.005
SHORT_WAIT_MS = 100
INCREMENTAL = 2  # SQLite's number for this auto_vacuum mode
LOG_PAUSES_S = (0.0, 0.1, 0.3, 0.6)  # before each attempt to empty the log
VACUUM_PAGES = 500  # returned to the disk in one transaction
MIGRATING, LEADING = 0x636C6F616B, 0x6C656164  # advisory locks of PostgreSQL
_DOES_NOT_FIT = "a value cannot be stored: numbers are whole and have at most 64 bits. Nothing of this call was stored."
_REFUSED = re.compile(r"authentication failed|does not exist|no password supplied|no pg_hba.conf entry")
log = logging.getLogger(__name__)


def unix_ms() -> int:
    """The wall clock in Unix milliseconds."""
    return time.time_ns() // 1_000_000


class Transaction:
    """SQL statements that take effect together."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection, self._words = connection, migrations.WORDS[connection.dialect.name]

    def run(self, sql: str, *, rows: Sequence[Any] | None = None, **values: Any) -> Sequence[Row]:
        """Run one statement and return its rows.

        `rows` become the table {rows}, with a column `item.value`; or numbers, in the condition {among_rows}.
        """
        parameters = {name: _bindable(value) for name, value in values.items()}
        if rows is not None:
            parameters["rows"] = json.dumps(rows, default=index)
        found = self.connection.execute(self._text(sql), parameters)
        return found.all() if found.returns_rows else []

    def each(self, sql: str, values: Sequence[Mapping[str, Any]]) -> None:
        """Run one statement for each set of values."""
        if values:
            self.connection.execute(self._text(sql), values)

    def _text(self, sql: str) -> sa.TextClause:
        return sa.text(re.sub(r"\{(\w+)\}", lambda word: self._words[word[1]], sql))


def _bindable(value: Any) -> Any:
    """A whole number of any type as Python's: SQLite would store and look up NumPy's as bytes."""
    return value if value is None or isinstance(value, str | bytes | float) else index(value)


class Database:
    """Transactions on the database at `url`; `wait_s` is how long a call waits for a lock or a server.

    With `make` False, a missing SQLite file is an error.
    """

    def __init__(self, url: str, *, wait_s: float, make: bool = True) -> None:
        parsed = _parse(url)
        self.wait_s = wait_s
        self.path = Path(parsed.database or "") if parsed.drivername == "sqlite" else None
        self.name = str(self.path or parsed.set(query={}).render_as_string(hide_password=True))
        if not make and self.path is not None and not self.path.exists():
            raise StoreError(
                f"{self.path}: there is no such store. Name the one that the collector created.", store=self.name
            )
        # SQLite lets one connection write at a time; threads queue here, because SQLite itself polls
        self._one_writer = threading.Lock()
        self._lead: sa.Connection | None = None
        self._engine = _postgresql(parsed, wait_s) if self.path is None else _sqlite(parsed, self.path, wait_s)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that only reads."""
        with self._our_errors(), self._engine.begin() as connection:
            yield Transaction(connection)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction that writes; durable when the block ends."""
        with self._our_errors(), self._alone(), self._engine.connect() as connection:
            writer = connection.execution_options(writes=True)
            with writer.begin():
                yield Transaction(writer)

    def rows(self, sql: str, **values: Any) -> Sequence[Row]:
        """Return the rows of one query."""
        with self.reading() as transaction:
            return transaction.run(sql, **values)

    def change(self, sql: str, **values: Any) -> Sequence[Row]:
        """Run one statement as a transaction."""
        with self.writing() as transaction:
            return transaction.run(sql, **values)

    def migrate(self) -> None:
        """Bring the database to this version of the tables, completely or not at all."""
        with self.reading() as transaction:
            current = _version(transaction)
        if current != len(migrations.STEPS):
            with self.writing() as transaction:
                self._migrate(transaction)
        if self.path is None and not self.rows("SELECT 1 FROM pg_stats WHERE tablename = 'readings' LIMIT 1"):
            self.change("ANALYZE readings, frames, results")  # a restored backup has no statistics

    def lead(self) -> bool:
        """Take or keep PostgreSQL's lock for the one that recovers; SQLite has one collector, which always does.

        The lock belongs to a connection: the server gives it to another collector once this one is gone. One thread may
        use it.
        """
        if self.path is not None:
            return True
        try:
            with self._our_errors():
                if self._lead is None:
                    connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                    if not connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({LEADING})").scalar_one():
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

    def shrink(self) -> bool:
        """Shrink an SQLite file and empty its log after rows were deleted; PostgreSQL does so on its own.

        Returns whether it succeeded: a reader or writer that is busy for longer than a second prevents it, and deleted
        rows stay in the files until a later call.
        """
        if self.path is None:
            return True
        try:
            free, before = 1, 0
            while free not in {0, before}:
                # a script, because it works step by step
                before, free = free, self._pragma("freelist_count", first=f"PRAGMA incremental_vacuum({VACUUM_PAGES})")
            for pause in LOG_PAUSES_S:
                time.sleep(pause)
                if self._pragma("wal_checkpoint(TRUNCATE)") == 0:
                    return True
        except StoreAwayError as problem:
            log.info("the file of the store did not shrink: %s", problem)
        return False

    def close(self) -> None:
        """Close all connections; those in use close when their call ends."""
        self._engine.dispose()

    def _migrate(self, transaction: Transaction) -> None:
        if self.path is None:
            transaction.run(f"SELECT pg_advisory_xact_lock({MIGRATING})")
        current, known = _version(transaction), len(migrations.STEPS)  # another process may have been faster
        if current > known:
            raise StoreError(
                f"{self.name} has version {current}, and this Cloakwork supports up to {known}: use a newer Cloakwork.",
                version=current,
                known=known,
            )
        if current == 0:
            transaction.run("CREATE TABLE cloakwork_version (version {integer} NOT NULL) {strict}")
            transaction.run("INSERT INTO cloakwork_version VALUES (0)")
        for step in migrations.STEPS[current:]:
            for statement in step.split(";"):
                transaction.run(statement)
        transaction.run("UPDATE cloakwork_version SET version = :known", known=known)
        if self.path is not None:
            transaction.run("ANALYZE sqlite_schema")  # creates the table of statistics
            transaction.run("DELETE FROM sqlite_stat1")
            rows = [dict(zip(("tbl", "idx", "stat"), row, strict=True)) for row in migrations.STATISTICS]
            transaction.each("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (:tbl, :idx, :stat)", rows)
            transaction.run("ANALYZE sqlite_schema")  # reads them

    def _pragma(self, name: str, *, first: str = "") -> int:
        """Run a PRAGMA that cannot be part of a transaction, unless someone else is writing; returns its number."""
        with self._our_errors(), self._alone(), self._engine.connect() as connection:
            cursor: Any = connection.connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {SHORT_WAIT_MS}")
            try:
                cursor.executescript(first)
                return int(cursor.execute(f"PRAGMA {name}").fetchone()[0])
            finally:
                cursor.execute(f"PRAGMA busy_timeout = {round(self.wait_s * 1000)}")
                cursor.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self.path is not None and not self._one_writer.acquire(timeout=self.wait_s):
            raise self._busy()
        try:
            yield
        finally:
            if self.path is not None:
                self._one_writer.release()

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        """Turn a database's errors into ours, which say what to do."""
        try:
            yield
        except exc.TimeoutError as problem:
            raise self._busy() from problem
        except exc.DBAPIError as problem:
            away = isinstance(problem, exc.OperationalError | exc.InterfaceError) or problem.connection_invalidated
            ours = self._translated(problem.orig, away=away and self.path is None)
            # the database's text about a value that does not fit may contain the value
            raise ours from (None if isinstance(ours, InputError) else problem)
        except sqlite3.Error as problem:  # of a cursor that SQLAlchemy does not know
            raise self._translated(problem, away=False) from problem
        except OverflowError:
            raise InputError(_DOES_NOT_FIT) from None

    def _busy(self) -> StoreBusyError:
        return StoreBusyError(
            f"{self.name} was locked by another program or transaction for {self.wait_s:g} s: nothing was stored. Try "
            "again; if it persists, end the program that holds the lock.",
            store=self.name,
        )

    def _translated(self, problem: Any, *, away: bool) -> CloakworkError:  # noqa: PLR0911 - one for each kind
        """Our error for SQLite's primary result code, or PostgreSQL's SQLSTATE."""
        text = " ".join(str(problem).split("\n", 1)[0].split())
        code: Any = (getattr(problem, "sqlite_errorcode", None) or 0) & 0xFF or getattr(problem, "sqlstate", None) or ""
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, "55P03", "40001", "40P01"}:
            return self._busy()
        if code in {sqlite3.SQLITE_FULL, "53100"}:
            return StoreFullError(
                f"{self.name}: the disk is full. Nothing of this call was stored; acknowledged readings are safe. Free "
                "some space: then the same call works again.",
                store=self.name,
            )
        if code in {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH} or str(code).startswith("22"):
            return InputError(_DOES_NOT_FIT)
        if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            advice = "give another file, or restore a backup"
            return StoreError(
                f"{self.name} is not a database of Cloakwork, or it is damaged ({text}): {advice}.", store=self.name
            )
        # for a refused connection the driver passes on no code, only text
        if str(code).startswith(("28", "3D", "42")) or (not code and _REFUSED.search(text)):
            advice = "check user, password, database and rights in the address of the store"
            return StoreError(f"{self.name}: PostgreSQL refuses ({text}): {advice}.", store=self.name)
        if away or code == "25006":  # a server that is read-only for now, because another one is taking over
            return StoreAwayError(
                f"{self.name} does not answer ({text}): check that it runs, then try again.", store=self.name
            )
        if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR}:
            advice = "check that the folder exists, that this user may write there, and the disk"
            return StoreAwayError(f"{self.name} cannot be opened or written ({text}): {advice}.", store=self.name)
        return StoreError(f"{self.name}: {text}.", store=self.name)


def _version(transaction: Transaction) -> int:
    if not sa.inspect(transaction.connection).has_table("cloakwork_version"):
        return 0
    return int(transaction.run("SELECT version FROM cloakwork_version")[0][0])


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
        raise InputError("a store in memory would lose acknowledged readings: name a file, as in sqlite:///hall.db.")
    return parsed


def _sqlite(url: sa.URL, path: Path, wait_s: float) -> sa.Engine:
    """Open an SQLite file; creates it if it is missing."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(str(part) for part in OLDEST_SQLITE)
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old, {oldest} is needed: use a newer Python.")
    _create_file(path)
    engine = sa.create_engine(
        url, hide_parameters=True, pool_size=CONNECTIONS, pool_timeout=wait_s, connect_args={"timeout": wait_s}
    )

    @event.listens_for(engine, "connect")
    def set_up(raw: sqlite3.Connection, _: Any) -> None:
        raw.isolation_level = None  # we begin transactions: Python would begin them too late for DDL and reads
        if raw.execute("PRAGMA auto_vacuum").fetchone() != (INCREMENTAL,):  # setting it waits for all writers
            raw.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only works before anything else is in the file
        end = time.monotonic() + wait_s
        while True:  # of two processes that open a new file at once, SQLite refuses one here without waiting
            try:
                [mode] = raw.execute("PRAGMA journal_mode = WAL").fetchone()
                break
            except sqlite3.OperationalError as problem:
                if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
            time.sleep(RETRY_S)
        if mode != "wal":
            raise StoreError(f"{path}: its file system does not support a write-ahead log: put it on a local disk.")
        # FULL: each commit waits for the disk, so that it survives a power cut
        for setting in ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF"):
            raw.execute(f"PRAGMA {setting}")
        raw.execute("PRAGMA journal_size_limit = 67108864")

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # a transaction that starts by reading may find later that it cannot write
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _create_file(path: Path) -> None:
    """Create an empty file that only its owner may read; its name is on the disk when this returns."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if path.is_dir():
            raise StoreError(f"{path} is a folder: give the name of a file in it.", store=str(path)) from None
        return
    except OSError as problem:
        advice = "give a file in a folder that exists and that this user may write to"
        raise StoreError(f"{path} cannot be created ({problem.strerror}): {advice}.", store=str(path)) from None
    sync_folder(path.absolute().parent)


def _postgresql(url: sa.URL, wait_s: float) -> sa.Engine:
    """Prepare connections to a PostgreSQL server."""
    seconds = max(2, round(wait_s))
    settings = {
        "connect_timeout": seconds,
        "application_name": "cloakwork",
        # notice a server that vanished silently in about the time that a call waits
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
        raise StoreError("PostgreSQL needs a driver: pip install 'cloakwork[postgres]'.") from None

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
