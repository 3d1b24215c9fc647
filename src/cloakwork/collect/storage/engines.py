"""Connections to SQLite and PostgreSQL, set up so that a commit is on the disk; and their errors in our terms."""

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from cloakwork._files import sync_folder
from cloakwork.errors import CloakworkError, InputError, StoreAwayError, StoreBusyError, StoreError, StoreFullError

FORMS = "sqlite:///FILE, a path, or postgresql://USER:PASSWORD@HOST/DATABASE"
OLDEST_SQLITE = (3, 37, 0)  # strict tables
CONNECTIONS = 8
RETRY_S = 0.005
INCREMENTAL = 2  # SQLite's number for this auto_vacuum mode
WRITES = "cloakwork_writes"  # execution option of a transaction that writes
_DOES_NOT_FIT = "a value cannot be stored: numbers are whole and have at most 64 bits. Nothing of this call was stored."
_REFUSED = re.compile(r"authentication failed|does not exist|no password supplied|no pg_hba.conf entry")


def parse_url(url: str) -> sa.URL:
    """Parse the address of a store."""
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


def sqlite_engine(url: sa.URL, name: str, wait_s: float) -> sa.Engine:
    """Open the SQLite file `name`; creates it if it is missing."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(str(part) for part in OLDEST_SQLITE)
        raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old, {oldest} is needed: use a newer Python.")
    _create_file(Path(name))
    engine = sa.create_engine(
        url, hide_parameters=True, pool_size=CONNECTIONS, pool_timeout=wait_s, connect_args={"timeout": wait_s}
    )

    @event.listens_for(engine, "connect")
    def set_up(raw: sqlite3.Connection, _: Any) -> None:
        raw.isolation_level = None  # we begin transactions: Python would begin them too late for DDL and reads
        if raw.execute("PRAGMA auto_vacuum").fetchone() != (INCREMENTAL,):  # setting it waits for all writers
            raw.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only works before anything else is in the file
        if _use_write_ahead_log(raw, wait_s) != "wal":
            raise StoreError(f"{name}: its file system does not support a write-ahead log: put it on a local disk.")
        # FULL: each commit waits for the disk, so that it survives a power cut
        for setting in ("synchronous = FULL", "foreign_keys = ON", "secure_delete = ON", "trusted_schema = OFF"):
            raw.execute(f"PRAGMA {setting}")
        raw.execute("PRAGMA journal_size_limit = 67108864")

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # a transaction that starts by reading may find later that it cannot write
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _use_write_ahead_log(raw: sqlite3.Connection, wait_s: float) -> str:
    """Switch the file to a write-ahead log; returns the journal mode.

    If two processes open a new file at once, SQLite rejects one of them here without waiting, so it retries.
    """
    end = time.monotonic() + wait_s
    while True:
        try:
            return str(raw.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(RETRY_S)


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


def postgresql_engine(url: sa.URL, wait_s: float) -> sa.Engine:
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


@contextmanager
def translated_errors(name: str, wait_s: float) -> Iterator[None]:
    """Turn a database's errors into ours, which say what to do; `name` is the store's, without a password."""
    try:
        yield
    except exc.TimeoutError as problem:
        raise busy_error(name, wait_s) from problem
    except exc.DBAPIError as problem:
        translated = _from_database(problem, name, wait_s)
        # the database's text about a value that does not fit may contain the value
        raise translated from (None if isinstance(translated, InputError) else problem)
    except sqlite3.Error as problem:  # of a cursor that SQLAlchemy does not know
        raise _from_sqlite(problem.sqlite_errorcode, str(problem), name, wait_s) from problem
    except OverflowError:
        raise InputError(_DOES_NOT_FIT) from None


def busy_error(name: str, wait_s: float) -> StoreBusyError:
    """Return the error for a lock that was not released in time."""
    return StoreBusyError(
        f"{name} was locked by another program or transaction for {wait_s:g} s: nothing was stored. Try again; if it "
        "persists, end the program that holds the lock.",
        store=name,
    )


def is_conflict(problem: exc.DBAPIError) -> bool:
    """Whether PostgreSQL aborted one of two transactions that waited for each other: the same work can run again."""
    return _sqlstate(problem) in {"40001", "40P01"}


def _full_error(name: str) -> StoreFullError:
    return StoreFullError(
        f"{name}: the disk is full. Nothing of this call was stored; acknowledged readings are safe. Free some space: "
        "then the same call works again.",
        store=name,
    )


def _from_database(problem: exc.DBAPIError, name: str, wait_s: float) -> CloakworkError:
    if isinstance(problem.orig, sqlite3.Error):
        code = getattr(problem.orig, "sqlite_errorcode", None)
        return _from_sqlite(code, str(problem.orig), name, wait_s)
    return _from_postgresql(problem, name, wait_s)


def _from_sqlite(code: int | None, text: str, name: str, wait_s: float) -> CloakworkError:
    primary = None if code is None else code & 0xFF
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return busy_error(name, wait_s)
    if primary == sqlite3.SQLITE_FULL:
        return _full_error(name)
    if primary in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
        advice = "give another file, or restore a backup"
        return StoreError(f"{name} is not a database of Cloakwork, or it is damaged ({text}): {advice}.", store=name)
    if primary in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR}:
        advice = "check that the folder exists, that this user may write there, and the disk"
        return StoreAwayError(f"{name} cannot be opened or written ({text}): {advice}.", store=name)
    if primary in {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}:
        return InputError(_DOES_NOT_FIT)
    return StoreError(f"{name}: {text}.", store=name)


def _from_postgresql(problem: exc.DBAPIError, name: str, wait_s: float) -> CloakworkError:
    state = _sqlstate(problem)
    text = " ".join(str(problem.orig).split("\n", 1)[0].split())
    if state == "55P03":
        return busy_error(name, wait_s)
    if state == "53100":
        return _full_error(name)
    if state.startswith("22"):
        return InputError(_DOES_NOT_FIT)
    # for a refused connection the driver passes on no code, only text
    if state.startswith(("28", "3D", "42")) or (not state and _REFUSED.search(text)):
        advice = "check user, password, database and rights in the address of the store"
        return StoreError(f"{name}: PostgreSQL refuses ({text}): {advice}.", store=name)
    # 25006: the server is read-only for now, because another one is taking over
    away = isinstance(problem, exc.OperationalError | exc.InterfaceError) or problem.connection_invalidated
    if away or state == "25006":
        return StoreAwayError(f"{name} does not answer ({text}): check that it runs, then try again.", store=name)
    return StoreError(f"{name}: {text}.", store=name)


def _sqlstate(problem: exc.DBAPIError) -> str:
    return str(getattr(problem.orig, "sqlstate", None) or "")
