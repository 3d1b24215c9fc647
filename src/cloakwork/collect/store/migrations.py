"""The tables, version by version. A step, once released, never changes: a new version is a new step."""

from collections.abc import Callable

import sqlalchemy as sa

from cloakwork.collect.store import tables
from cloakwork.collect.store.database import Database
from cloakwork.collect.store.errors import StoreError

_LOCK = 0x636C6F616B  # any number that is ours alone: PostgreSQL lets one transaction hold it
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
CREATE TABLE results (
    site {text} NOT NULL, time {int} NOT NULL, sensors {int} NOT NULL, expected {int} NOT NULL,
    estimator {text} NOT NULL, status {text} NOT NULL, gap {float}, fit {float}, set_aside {text} NOT NULL,
    counts {text}, sources {text} NOT NULL, solved {int} NOT NULL, took_ms {float}, map {bytes},
    PRIMARY KEY (site, time)){plain};
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
# What SQLite's planner should expect: without a word it takes few readings a site for granted, and reads them all.
_STATISTICS = {
    ("readings", "readings"): "1000000 1000000 20000 1",
    ("readings", "readings_by_time"): "1000000 1000000 50 1 1",
    ("readings", "readings_of_sensor"): "1000000 1000000 20000 1",
    ("frames", "frames"): "20000 20000 1",
    ("frames", "frames_unsolved"): "100 100 1",
    ("frames", "frames_outgrown"): "100 100 1",
    ("results", "sqlite_autoindex_results_1"): "20000 20000 1",
}
# SQLite: a table without row numbers is its own index; strict, because it would keep any type in any column.
_SQLITE = {"text": "TEXT", "int": "INTEGER", "float": "REAL", "bytes": "BLOB"}
_SQLITE |= {"keyed": " STRICT, WITHOUT ROWID", "plain": " STRICT"}
# PostgreSQL: names in the order of their bytes, as in SQLite, whatever the language of the server.
_POSTGRESQL = {"text": 'TEXT COLLATE "C"', "int": "BIGINT", "float": "DOUBLE PRECISION", "bytes": "BYTEA"}
_POSTGRESQL |= {"keyed": "", "plain": ""}

Step = Callable[[sa.Connection], None]


def _to_1(connection: sa.Connection) -> None:
    words = _SQLITE if connection.dialect.name == "sqlite" else _POSTGRESQL
    for statement in _FIRST.format(**words).split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("ANALYZE sqlite_schema")  # makes the table of statistics
        rows = [(*names, numbers) for names, numbers in _STATISTICS.items()]
        connection.exec_driver_sql("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES (?, ?, ?)", rows)
        connection.exec_driver_sql("ANALYZE sqlite_schema")  # reads them


STEPS: tuple[Step, ...] = (_to_1,)


def migrate(database: Database) -> None:
    """Bring a store from whatever version it has, 0 being an empty database, to this one; all or nothing."""
    with database.reading() as connection:
        version = _version(connection)
    if version != len(STEPS):
        database.write(lambda connection: _migrate(connection, database.name))


def _migrate(connection: sa.Connection, name: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    version = _version(connection)  # another process may have been quicker
    if version > len(STEPS):
        raise StoreError(
            f"{name} is of version {version}, and this Cloakwork knows up to {len(STEPS)}: use a newer Cloakwork.",
            version=version,
            known=len(STEPS),
        )
    if version == 0:
        _refuse_others(connection, name)
        connection.exec_driver_sql("CREATE TABLE cloakwork_version (version INTEGER NOT NULL)")
        connection.execute(sa.insert(tables.version).values(version=0))
    for step in STEPS[version:]:
        step(connection)
    connection.execute(sa.update(tables.version).values(version=len(STEPS)))


def _version(connection: sa.Connection) -> int:
    if not sa.inspect(connection).has_table(tables.version.name):
        return 0
    return int(connection.execute(sa.select(tables.version.c.version)).scalar_one())


def _refuse_others(connection: sa.Connection, name: str) -> None:
    taken = sorted(set(sa.inspect(connection).get_table_names()) & set(tables.METADATA.tables))
    if taken:
        raise StoreError(
            f"{name} has a table {taken[0]!r} that is not Cloakwork's: give Cloakwork a database of its own.",
            taken=taken,
        )
