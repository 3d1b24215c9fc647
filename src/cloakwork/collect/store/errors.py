"""What can go wrong with a store. Until it is mended nothing is acknowledged; what was acknowledged is safe."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc

from cloakwork.errors import CloakworkError, InputError

_DOES_NOT_FIT = "a value cannot be stored: numbers are whole and have at most 64 bits. Nothing of this call was stored."
_REFUSED = re.compile(r"authentication failed|does not exist|no password supplied|no pg_hba.conf entry")


class StoreError(CloakworkError):
    """The store cannot do what was asked, and trying again alone will not help."""


class StoreAwayError(StoreError):
    """The store cannot be used for now: try again. Nothing of the failed call was stored, or all of it."""


class StoreBusyError(StoreAwayError):
    """Someone else held a lock for longer than the store waits."""


class StoreFullError(StoreAwayError):
    """There is no room on the disk."""


@contextmanager
def translated(name: str, wait_s: float) -> Iterator[None]:
    """Turn what a database says into an error that says what to do; `name` is the store's, without a password."""
    try:
        yield
    except exc.TimeoutError as problem:
        raise busy(name, wait_s) from problem
    except exc.DBAPIError as problem:
        ours = _of_database(problem, name, wait_s)
        # what a database says of a value that does not fit may hold the value
        raise ours from (None if isinstance(ours, InputError) else problem)
    except sqlite3.Error as problem:  # of a cursor that SQLAlchemy does not know of
        raise _of_sqlite(problem.sqlite_errorcode, str(problem), name, wait_s) from problem
    except OverflowError:
        raise InputError(_DOES_NOT_FIT) from None


def busy(name: str, wait_s: float) -> StoreBusyError:
    """What to raise after waiting in vain."""
    return StoreBusyError(
        f"{name} was locked by another program or transaction for {wait_s:g} s: nothing was stored. Try again; if it "
        "lasts, end the program that holds the lock.",
        store=name,
    )


def full(name: str) -> StoreFullError:
    """What to raise when the disk is full."""
    return StoreFullError(
        f"{name}: the disk is full: nothing of this was stored, what was acknowledged is safe. Make room on the disk: "
        "then the same call works again.",
        store=name,
    )


def is_conflict(problem: exc.DBAPIError) -> bool:
    """Whether PostgreSQL gave up one of two transactions that waited for each other: the same work can run again."""
    return _state(problem) in {"40001", "40P01"}


def _of_database(problem: exc.DBAPIError, name: str, wait_s: float) -> CloakworkError:
    code = getattr(problem.orig, "sqlite_errorcode", None)
    if isinstance(problem.orig, sqlite3.Error):
        return _of_sqlite(code, str(problem.orig), name, wait_s)
    return _of_postgresql(problem, name, wait_s)


def _of_sqlite(code: int | None, said: str, name: str, wait_s: float) -> CloakworkError:
    primary = None if code is None else code & 0xFF
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return busy(name, wait_s)
    if primary == sqlite3.SQLITE_FULL:
        return full(name)
    if primary in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
        advice = "give another file, or put back a backup"
        return StoreError(f"{name} is not a database of Cloakwork, or it is damaged ({said}): {advice}.", store=name)
    if primary in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR}:
        advice = "check that the folder exists, that this user may write there, and the disk"
        return StoreAwayError(f"{name} cannot be opened or written ({said}): {advice}.", store=name)
    if primary in {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}:
        return InputError(_DOES_NOT_FIT)
    return StoreError(f"{name}: {said}.", store=name)


def _of_postgresql(problem: exc.DBAPIError, name: str, wait_s: float) -> CloakworkError:
    state = _state(problem)
    said = " ".join(str(problem.orig).split("\n", 1)[0].split())
    if state == "55P03":
        return busy(name, wait_s)
    if state == "53100":
        return full(name)
    if state.startswith("22"):
        return InputError(_DOES_NOT_FIT)
    # of a connection that was refused, the driver passes on no code but only words
    if state.startswith(("28", "3D", "42")) or (not state and _REFUSED.search(said)):
        advice = "check user, password, database and rights in the address of the store"
        return StoreError(f"{name}: PostgreSQL refuses ({said}): {advice}.", store=name)
    # 25006: for now the server only reads, because another one is taking over
    away = isinstance(problem, exc.OperationalError | exc.InterfaceError) or problem.connection_invalidated
    if away or state == "25006":
        return StoreAwayError(f"{name} does not answer ({said}): check that it runs; try again.", store=name)
    return StoreError(f"{name}: {said}.", store=name)


def _state(problem: exc.DBAPIError) -> str:
    return str(getattr(problem.orig, "sqlstate", None) or "")
