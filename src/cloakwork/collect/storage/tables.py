"""The tables, and the migrations that bring a store of an earlier version to them.

A migration never changes once it is released: a new version is a new step.
"""

import json
import math
from collections.abc import Callable
from dataclasses import is_dataclass
from operator import index
from typing import Any

import sqlalchemy as sa

from cloakwork.collect.storage.database import Database
from cloakwork.errors import StoreError

METADATA = sa.MetaData()
_LOCK = 0x636C6F616B  # any number of our own: PostgreSQL lets one transaction hold it


# names sort by their bytes, as in SQLite, whatever the language of the PostgreSQL server
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_REAL: sa.types.TypeEngine[float] = sa.Double().with_variant(sa.REAL(), "sqlite")


class Whole(sa.TypeDecorator[int]):
    """A whole number of any type: SQLite would store and look up NumPy's as bytes."""

    impl = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: sa.Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else int(index(value))


class _Measure(sa.TypeDecorator[float]):
    """A number that may be NaN, which SQLite does not have: stored as NULL."""

    impl = _REAL
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: sa.Dialect) -> float | None:  # noqa: ARG002
        return None if value is None or math.isnan(value) else float(value)

    def process_result_value(self, value: float | None, dialect: sa.Dialect) -> float:  # noqa: ARG002
        return math.nan if value is None else value


class _Json(sa.TypeDecorator[Any]):
    """Lists, dictionaries and dataclasses, as JSON in a text."""

    impl = _TEXT
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else json.dumps(value, default=_plain)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:  # noqa: ARG002
        return None if value is None else json.loads(value)


def _plain(value: Any) -> object:
    """The JSON form of a dataclass, or of a number of NumPy's."""
    return vars(value) if is_dataclass(value) else float(value)


_TYPES: dict[str, sa.types.TypeEngine[Any]] = {
    "text": _TEXT,
    "int": Whole(),
    "float": _Measure(),
    "json": _Json(),
    "bytes": sa.LargeBinary(),
}


def _table(name: str, *columns: str, rowid: bool = False) -> sa.Table:
    """Columns are `name type`, followed by `key` for the primary key, `unique`, or `null` if they may be empty.

    SQLite: a table without row numbers is its own index; strict, because it would store any type in any column.
    """
    parsed = []
    for column in columns:
        title, kind, *marks = column.split()
        made: sa.Column[Any] = sa.Column(title, _TYPES[kind], nullable="null" in marks, autoincrement=False)
        made.primary_key, made.unique = "key" in marks, "unique" in marks or None
        parsed.append(made)
    return sa.Table(name, METADATA, *parsed, sqlite_with_rowid=rowid, sqlite_strict=True)


_SENSOR = ("site text key", "sensor text key")
_REPORT = ("state text", "used int", "allowed int", "received int")
version = _table("cloakwork_version", "version int", rowid=True)
readings = _table("readings", *_SENSOR, "seq int key", "time int", "value int", "received int")
alarms = _table("alarms", *_SENSOR, "seq int key", "received int")
# One row for each time that has readings, and how many. It waits to be recovered while `recovered`, the readings that
# its last result was made from, are fewer.
frames = _table("frames", "site text key", "time int key", "readings int", "recovered int")
# How often readings of a site were erased: anything computed before the last time may depend on erased ones.
erasures = _table("erasures", "site text key", "count int")
# `map` comes last, so that SQLite reads the others without it.
results = _table(
    "results",
    *("site text key", "time int key", "sensors int", "expected int", "estimator text", "status text"),
    *("gap float null", "fit float null", "set_aside json", "counts json null", "sources json", "solved int"),
    *("took_ms float null", "settled int", "labels int null", "tracks json", "zones json null", "map bytes null"),
    rowid=True,
)
reports = _table("reports", *_SENSOR, *_REPORT)
# The last report of each sensor in each slot of a few seconds: enough for a chart, although devices report often.
report_history = _table("report_history", "site text key", "slot int key", "sensor text key", *_REPORT)
problems = _table("problems", *_SENSOR, "reason text key", "count int", "last int")
# How far the tests of the physics are; `state` is the detector's, packed.
physics_checks = _table("physics_checks", "site text key", "model text", "time int", "state bytes", "faults json")
# The plans that a collector worked with, each from the moment `received` on, by which readings are theirs.
plans = _table("plans", "site text key", "received int key", "scale json")
tokens = _table(
    "tokens",
    *("id text key", "digest text unique", "role text", "site text null", "sensor text null"),
    *("label text", "made int", "revoked int null"),
)
_frames, _readings = frames.c, readings.c
sa.Index("readings_by_time", _readings.site, _readings.time, _readings.sensor, _readings.seq)
sa.Index("readings_of_sensor", _readings.site, _readings.sensor, _readings.time)
WAITING = _frames.recovered < _frames.readings
sa.Index("frames_waiting", _frames.site, _frames.time, sqlite_where=WAITING, postgresql_where=WAITING)
# Expected sizes for SQLite's planner: without statistics it assumes few readings per site, and reads them all.
_STATISTICS = {
    ("readings", "readings"): "1000000 1000000 20000 1",
    ("readings", "readings_by_time"): "1000000 1000000 50 1 1",
    ("readings", "readings_of_sensor"): "1000000 1000000 20000 1",
    ("frames", "frames"): "20000 20000 1",
    ("frames", "frames_waiting"): "100 100 1",
    ("results", "sqlite_autoindex_results_1"): "20000 20000 1",
}


def _set_statistics(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ANALYZE sqlite_schema")  # creates the table of statistics
    connection.exec_driver_sql("DELETE FROM sqlite_stat1")
    rows = [(*names, numbers) for names, numbers in _STATISTICS.items()]
    connection.exec_driver_sql("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)", rows)
    connection.exec_driver_sql("ANALYZE sqlite_schema")  # reads them


STEPS: tuple[Callable[[sa.Connection], None], ...] = ()  # from version 1 to 2, from 2 to 3, ...


def migrate(database: Database) -> None:
    """Bring an empty database, or a store of any earlier version, to this one, completely or not at all."""
    with database.reading() as connection:
        current = _version(connection)
    if current != 1 + len(STEPS):
        database.write(lambda connection: _migrate(connection, database.name))


def _migrate(connection: sa.Connection, name: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    current, known = _version(connection), 1 + len(STEPS)  # another process may have been faster
    if current > known:
        raise StoreError(
            f"{name} has version {current}, and this Cloakwork supports up to {known}: use a newer Cloakwork.",
            version=current,
            known=known,
        )
    if current == 0:
        _refuse_foreign_tables(connection, name)
        METADATA.create_all(connection)
        connection.execute(sa.insert(version).values(version=known))
    else:
        for step in STEPS[current - 1 :]:
            step(connection)
        connection.execute(sa.update(version).values(version=known))
    if connection.dialect.name == "sqlite":
        _set_statistics(connection)


def _version(connection: sa.Connection) -> int:
    if not sa.inspect(connection).has_table(version.name):
        return 0
    return int(connection.execute(sa.select(version.c.version)).scalar_one())


def _refuse_foreign_tables(connection: sa.Connection, name: str) -> None:
    taken = sorted(set(sa.inspect(connection).get_table_names()) & set(METADATA.tables))
    if taken:
        raise StoreError(
            f"{name} has a table {taken[0]!r} that is not Cloakwork's: give Cloakwork its own database.",
            taken=taken,
        )
