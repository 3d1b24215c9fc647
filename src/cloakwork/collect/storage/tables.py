"""The tables: their columns for queries, and the migrations that create them.

A migration never changes once it is released: a new version is a new step.
"""

from collections.abc import Callable
from functools import partial
from operator import index
from typing import Any

import sqlalchemy as sa

from cloakwork.collect.storage.database import Database
from cloakwork.errors import StoreError

METADATA = sa.MetaData()
_LOCK = 0x636C6F616B  # any number of our own: PostgreSQL lets one transaction hold it


class Whole(sa.TypeDecorator[int]):
    """A whole number of any type: SQLite would store and look up NumPy's as bytes."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: sa.Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else index(value)


_TYPES: dict[str, type[sa.types.TypeEngine[Any]]] = {
    "text": sa.Text,
    "int": Whole,
    "float": sa.Double,
    "bytes": sa.LargeBinary,
    "version": sa.Integer,
}


def _table(name: str, *columns: str) -> sa.Table:
    """Columns are `name type`, followed by `key` for the primary key or `null` if they may be empty."""
    parsed = []
    for column in columns:
        title, kind, *marks = column.split()
        key, optional = "key" in marks, "null" in marks
        parsed.append(sa.Column(title, _TYPES[kind], primary_key=key, nullable=optional, autoincrement=False))
    return sa.Table(name, METADATA, *parsed)


_SENSOR = ("site text key", "sensor text key")
_REPORT = ("state text", "used int", "allowed int", "received int")
version = _table("cloakwork_version", "version version")
readings = _table("readings", *_SENSOR, "seq int key", "time int", "value int", "received int")
alarms = _table("alarms", *_SENSOR, "seq int key", "received int")
# One row for each time that has readings. `solved`: sensors of its result, 0 without one. `late`: 0 unless more sensors
# have readings than the result is from, else 1 plus the number of results since then that still left them out.
frames = _table("frames", "site text key", "time int key", "solved int", "late int")
# How often readings of a site were erased: anything computed before the last time may depend on erased ones.
erasures = _table("erasures", "site text key", "count int")
# `map` comes last, so that SQLite reads the others without it.
results = _table(
    "results",
    *("site text key", "time int key", "sensors int", "expected int", "estimator text", "status text"),
    *("gap float null", "fit float null", "set_aside text", "counts text null", "sources text", "solved int"),
    *("took_ms float null", "settled int", "labels int null", "tracks text", "zones text null", "map bytes null"),
)
reports = _table("reports", *_SENSOR, *_REPORT)
# The last report of each sensor in each slot of a few seconds: enough for a chart, although devices report often.
report_history = _table("report_history", "site text key", "slot int key", "sensor text key", *_REPORT)
problems = _table("problems", *_SENSOR, "reason text key", "count int", "last int")
# How far the tests of the physics are; `state` is the detector's, packed.
physics_checks = _table("physics_checks", "site text key", "model text", "time int", "state bytes", "faults text")
# The plans that a collector worked with, each from the moment `received` on, by which readings are theirs.
plans = _table("plans", "site text key", "received int key", "scale text")
tokens = _table(
    "tokens",
    *("id text key", "digest text", "role text", "site text null", "sensor text null"),
    *("label text", "made int", "revoked int null"),
)

_FIRST = """
CREATE TABLE readings (
    site {text} NOT NULL, sensor {text} NOT NULL, seq {int} NOT NULL,
    time {int} NOT NULL, value {int} NOT NULL, received {int} NOT NULL,
    PRIMARY KEY (site, sensor, seq)){keyed};
CREATE INDEX readings_by_time ON readings (site, time, sensor, seq);
CREATE INDEX readings_of_sensor ON readings (site, sensor, time);
CREATE TABLE alarms (
    site {text} NOT NULL, sensor {text} NOT NULL, seq {int} NOT NULL, received {int} NOT NULL,
    PRIMARY KEY (site, sensor, seq)){keyed};
CREATE TABLE frames (
    site {text} NOT NULL, time {int} NOT NULL, solved {int} NOT NULL, late {int} NOT NULL,
    PRIMARY KEY (site, time)){keyed};
CREATE INDEX frames_unsolved ON frames (site, time) WHERE solved = 0;
CREATE INDEX frames_outgrown ON frames (site, time) WHERE late > 0;
CREATE TABLE erasures (site {text} NOT NULL, count {int} NOT NULL, PRIMARY KEY (site)){keyed};
CREATE TABLE reports (
    site {text} NOT NULL, sensor {text} NOT NULL,
    state {text} NOT NULL, used {int} NOT NULL, allowed {int} NOT NULL, received {int} NOT NULL,
    PRIMARY KEY (site, sensor)){keyed};
CREATE TABLE report_history (
    site {text} NOT NULL, slot {int} NOT NULL, sensor {text} NOT NULL,
    state {text} NOT NULL, used {int} NOT NULL, allowed {int} NOT NULL, received {int} NOT NULL,
    PRIMARY KEY (site, slot, sensor)){keyed};
CREATE TABLE problems (
    site {text} NOT NULL, sensor {text} NOT NULL, reason {text} NOT NULL,
    count {int} NOT NULL, last {int} NOT NULL,
    PRIMARY KEY (site, sensor, reason)){keyed};
CREATE TABLE tokens (
    id {text} NOT NULL, digest {text} NOT NULL UNIQUE, role {text} NOT NULL, site {text}, sensor {text},
    label {text} NOT NULL, made {int} NOT NULL, revoked {int},
    PRIMARY KEY (id)){keyed};
"""
# Version 1 had results without tracks: they are recovered again.
_SECOND = """
DROP TABLE IF EXISTS results;
CREATE TABLE results (
    site {text} NOT NULL, time {int} NOT NULL, sensors {int} NOT NULL, expected {int} NOT NULL,
    estimator {text} NOT NULL, status {text} NOT NULL, gap {float}, fit {float}, set_aside {text} NOT NULL,
    counts {text}, sources {text} NOT NULL, solved {int} NOT NULL, took_ms {float}, settled {int} NOT NULL,
    labels {int}, tracks {text} NOT NULL, zones {text}, map {bytes},
    PRIMARY KEY (site, time)){plain};
UPDATE frames SET solved = 0, late = 0;
"""
_THIRD = """
CREATE TABLE physics_checks (
    site {text} NOT NULL, model {text} NOT NULL, time {int} NOT NULL, state {bytes} NOT NULL, faults {text} NOT NULL,
    PRIMARY KEY (site)){keyed};
"""
_FOURTH = """
CREATE TABLE plans (
    site {text} NOT NULL, received {int} NOT NULL, scale {text} NOT NULL,
    PRIMARY KEY (site, received)){keyed};
"""
# Expected sizes for SQLite's planner: without statistics it assumes few readings per site, and reads them all.
_STATISTICS = {
    ("readings", "readings"): "1000000 1000000 20000 1",
    ("readings", "readings_by_time"): "1000000 1000000 50 1 1",
    ("readings", "readings_of_sensor"): "1000000 1000000 20000 1",
    ("frames", "frames"): "20000 20000 1",
    ("frames", "frames_unsolved"): "100 100 1",
    ("frames", "frames_outgrown"): "100 100 1",
    ("results", "sqlite_autoindex_results_1"): "20000 20000 1",
}
# SQLite: a table without row numbers is its own index; STRICT, because it would store any type in any column.
_SQLITE = {"text": "TEXT", "int": "INTEGER", "float": "REAL", "bytes": "BLOB"}
_SQLITE |= {"keyed": " STRICT, WITHOUT ROWID", "plain": " STRICT"}
# PostgreSQL: names sort by their bytes, as in SQLite, whatever the language of the server.
_POSTGRESQL = {"text": 'TEXT COLLATE "C"', "int": "BIGINT", "float": "DOUBLE PRECISION", "bytes": "BYTEA"}
_POSTGRESQL |= {"keyed": "", "plain": ""}


def _run(statements: str, connection: sa.Connection) -> None:
    types = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    for statement in statements.format(**types).split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)


def _set_statistics(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ANALYZE sqlite_schema")  # creates the table of statistics
    connection.exec_driver_sql("DELETE FROM sqlite_stat1")
    rows = [(*names, numbers) for names, numbers in _STATISTICS.items()]
    connection.exec_driver_sql("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)", rows)
    connection.exec_driver_sql("ANALYZE sqlite_schema")  # reads them


STEPS: tuple[Callable[[sa.Connection], None], ...] = tuple(
    partial(_run, step) for step in (_FIRST, _SECOND, _THIRD, _FOURTH)
)


def migrate(database: Database) -> None:
    """Bring a store of any earlier version (0 is an empty database) to this one, completely or not at all."""
    with database.reading() as connection:
        current = _version(connection)
    if current != len(STEPS):
        database.write(lambda connection: _migrate(connection, database.name))


def _migrate(connection: sa.Connection, name: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    current = _version(connection)  # another process may have been faster
    if current > len(STEPS):
        raise StoreError(
            f"{name} has version {current}, and this Cloakwork supports up to {len(STEPS)}: use a newer Cloakwork.",
            version=current,
            known=len(STEPS),
        )
    if current == 0:
        _refuse_foreign_tables(connection, name)
        connection.exec_driver_sql("CREATE TABLE cloakwork_version (version INTEGER NOT NULL)")
        connection.execute(sa.insert(version).values(version=0))
    for step in STEPS[current:]:
        step(connection)
    if connection.dialect.name == "sqlite":
        _set_statistics(connection)
    connection.execute(sa.update(version).values(version=len(STEPS)))


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
