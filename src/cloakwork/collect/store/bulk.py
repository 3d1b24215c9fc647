"""Many rows in one statement, as one parameter or one a column: a parameter for each value would cost most of the time.

SQLite unpacks them from JSON and PostgreSQL from arrays; the statements around that are the same.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import index
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from cloakwork.collect.store import tables

Item = TypeVar("Item")
Columns = Sequence[sa.Column[Any]]
Rows = Sequence[tuple[Any, ...]]
PART = 1000  # rows of one statement


def insert(connection: sa.Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that can say what to do on a conflict: both databases have it, each in its own module."""
    return sqlite.insert(table) if _is_sqlite(connection) else postgresql.insert(table)


def insert_new(connection: sa.Connection, table: sa.Table, rows: Rows, *, key: Columns) -> set[Any]:
    """Insert rows (in the order of the table's columns) whose key is not there yet; gives the keys of those."""
    found: set[Any] = set()
    for part in batches(rows, PART):
        # SQLite would take an ON right after a table for a join
        given = sa.select(_given(connection, list(table.c), part)).where(sa.true())
        statement = insert(connection, table).from_select(table.c.keys(), given)
        found |= {tuple(row) for row in connection.execute(statement.on_conflict_do_nothing().returning(*key))}
    return found


def look_up(connection: sa.Connection, table: sa.Table, rows: Rows, *, key: Columns) -> Iterator[sa.Row[Any]]:
    """The whole rows that have one of these keys."""
    for part in batches(rows, PART):
        given = _given(connection, key, part)
        same = sa.and_(*(column == given.c[column.name] for column in key))
        yield from connection.execute(sa.select(table).select_from(given.join(table, same)))


def delete(connection: sa.Connection, table: sa.Table, rows: Rows, *, key: Columns) -> int:
    """Remove the rows that have one of these keys; says how many there were."""
    if _is_sqlite(connection):  # it has no DELETE with two tables, and is quick at many small ones
        each = sa.and_(*(column == sa.bindparam(f"key_{column.name}") for column in key))
        names = [f"key_{column.name}" for column in key]
        values = [dict(zip(names, row, strict=True)) for row in rows]
        return connection.execute(sa.delete(table).where(each), values).rowcount
    count = 0
    for part in batches(rows, PART):
        given = _given(connection, key, part)
        same = sa.and_(*(column == given.c[column.name] for column in key))
        count += connection.execute(sa.delete(table).where(same)).rowcount
    return count


def among(connection: sa.Connection, column: sa.Column[Any], values: Iterable[Any]) -> sa.ColumnElement[bool]:
    """The condition that a column has one of any number of values."""
    if _is_sqlite(connection):
        packed = sa.func.json_each(_packed(values)).table_valued("value")
        return column.in_(sa.select(packed.c.value))
    return column == sa.any_(_array(column, values))


def batches(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Lists of at most `size`."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part


def _given(connection: sa.Connection, columns: Columns, rows: Rows) -> sa.FromClause:
    """Rows as a table whose columns have the names of `columns`."""
    if _is_sqlite(connection):
        packed = sa.func.json_each(_packed(rows)).table_valued("value")
        cells = [
            sa.func.json_extract(packed.c.value, sa.literal_column(f"'$[{place}]'"), type_=column.type).label(
                column.name
            )
            for place, column in enumerate(columns)
        ]
        return sa.select(*cells).subquery()
    arrays = [_array(column, values) for column, values in zip(columns, zip(*rows, strict=True), strict=True)]
    named = [sa.column(column.name, column.type) for column in columns]
    return sa.func.unnest(*arrays).table_valued(*named).render_derived()


def _packed(values: Iterable[Any]) -> sa.BindParameter[str]:
    return sa.bindparam(None, json.dumps(list(values), default=index), type_=sa.Text, unique=True)


def _array(column: sa.Column[Any], values: Iterable[Any]) -> sa.BindParameter[Sequence[Any]]:
    # the database's own type: ours would look at each number, which is dear when there are thousands
    kind = sa.BigInteger() if isinstance(column.type, tables.Whole) else column.type
    return sa.bindparam(None, list(values), type_=postgresql.ARRAY(kind), unique=True)


def _is_sqlite(connection: sa.Connection) -> bool:
    return connection.dialect.name == "sqlite"
