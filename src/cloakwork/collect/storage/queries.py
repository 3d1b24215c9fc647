"""Building blocks of queries: periods, pages, and many rows in one statement.

Many rows travel as one parameter, or one per column, because a parameter per value would take most of the time. SQLite
unpacks them from JSON and PostgreSQL from arrays; the statements around them are the same.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import index
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from cloakwork.collect.storage import tables
from cloakwork.collect.storage.records import Page
from cloakwork.errors import InputError

Item = TypeVar("Item")
Columns = Sequence[sa.Column[Any]]
Rows = Sequence[tuple[Any, ...]]
LARGEST_PAGE = 10_000  # rows
BATCH = 1000  # rows per statement


def within(column: sa.Column[int], since: int | None, until: int | None) -> list[sa.ColumnElement[bool]]:
    """Return the conditions since <= column < until."""
    conditions: list[sa.ColumnElement[bool]] = []
    if since is not None:
        conditions.append(column >= since)
    if until is not None:
        conditions.append(column < until)
    return conditions


def check_limit(limit: int) -> int:
    """Return `limit` if it is valid."""
    if not 1 <= limit <= LARGEST_PAGE:
        raise InputError(f"limit={limit}: ask for between 1 and {LARGEST_PAGE} rows at once.", limit=limit)
    return limit


def ordered(columns: Sequence[sa.Column[Any]], *, newest_first: bool) -> list[sa.UnaryExpression[Any]]:
    """Order all columns in the same direction, so that one index serves."""
    return [column.desc() if newest_first else column.asc() for column in columns]


def page(items: Sequence[Item], limit: int, cursor: str) -> Page[Item]:
    """Return a page; `cursor` points behind its last item."""
    return Page(tuple(items), cursor if len(items) == limit else None)


def split_cursor(after: str, parts: int) -> list[str]:
    """Split a cursor at its dots."""
    texts = after.split(".")
    if len(texts) != parts:
        raise _bad_cursor(after)
    return texts


def cursor_number(text: str, after: str) -> int:
    """Parse a number of the cursor `after`."""
    try:
        number = int(text)
    except ValueError:
        raise _bad_cursor(after) from None
    if not -(2**63) <= number < 2**63:
        raise _bad_cursor(after)
    return number


def _bad_cursor(after: str) -> InputError:
    return InputError(
        f"after={after[:40]!r} is not a cursor: pass `next` of the previous page, or nothing.", after=after[:40]
    )


def insert(connection: sa.Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that supports ON CONFLICT; SQLAlchemy has one for each database."""
    return sqlite.insert(table) if _is_sqlite(connection) else postgresql.insert(table)


def insert_new(connection: sa.Connection, table: sa.Table, rows: Rows, *, key: Columns) -> set[Any]:
    """Insert rows (in the order of the table's columns) whose key is new; returns the keys of those."""
    inserted: set[Any] = set()
    for batch in batches(rows, BATCH):
        # without the WHERE, SQLite would read ON CONFLICT as the ON of a join
        values = sa.select(_as_table(connection, list(table.c), batch)).where(sa.true())
        statement = insert(connection, table).from_select(table.c.keys(), values)
        inserted |= {tuple(row) for row in connection.execute(statement.on_conflict_do_nothing().returning(*key))}
    return inserted


def look_up(connection: sa.Connection, table: sa.Table, keys: Rows, *, key: Columns) -> Iterator[sa.Row[Any]]:
    """Yield the rows that have one of these keys."""
    for batch in batches(keys, BATCH):
        wanted = _as_table(connection, key, batch)
        same = sa.and_(*(column == wanted.c[column.name] for column in key))
        yield from connection.execute(sa.select(table).select_from(wanted.join(table, same)))


def delete(connection: sa.Connection, table: sa.Table, keys: Rows, *, key: Columns) -> int:
    """Delete the rows that have one of these keys; returns their number."""
    if _is_sqlite(connection):  # it has no DELETE with two tables, and is fast at many small ones
        same = sa.and_(*(column == sa.bindparam(f"key_{column.name}") for column in key))
        names = [f"key_{column.name}" for column in key]
        values = [dict(zip(names, row, strict=True)) for row in keys]
        return connection.execute(sa.delete(table).where(same), values).rowcount
    count = 0
    for batch in batches(keys, BATCH):
        unwanted = _as_table(connection, key, batch)
        same = sa.and_(*(column == unwanted.c[column.name] for column in key))
        count += connection.execute(sa.delete(table).where(same)).rowcount
    return count


def among(connection: sa.Connection, column: sa.Column[Any], values: Iterable[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that a column has one of any number of values."""
    if _is_sqlite(connection):
        unpacked = sa.func.json_each(_as_json(values)).table_valued("value")
        return column.in_(sa.select(unpacked.c.value))
    return column == sa.any_(_as_array(column, values))


def batches(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of at most `size` items."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _as_table(connection: sa.Connection, columns: Columns, rows: Rows) -> sa.FromClause:
    """Rows as a table whose columns have the names of `columns`."""
    if _is_sqlite(connection):
        unpacked = sa.func.json_each(_as_json(rows)).table_valued("value")
        cells = []
        for number, column in enumerate(columns):
            path: sa.ColumnClause[str] = sa.literal_column(f"'$[{number}]'")
            cells.append(sa.func.json_extract(unpacked.c.value, path, type_=column.type).label(column.name))
        return sa.select(*cells).subquery()
    arrays = [_as_array(column, values) for column, values in zip(columns, zip(*rows, strict=True), strict=True)]
    named = [sa.column(column.name, column.type) for column in columns]
    return sa.func.unnest(*arrays).table_valued(*named).render_derived()


def _as_json(values: Iterable[Any]) -> sa.BindParameter[str]:
    return sa.bindparam(None, json.dumps(list(values), default=index), type_=sa.Text, unique=True)


def _as_array(column: sa.Column[Any], values: Iterable[Any]) -> sa.BindParameter[Sequence[Any]]:
    # the database's own type: ours would check each number, which is slow for thousands
    kind = sa.BigInteger() if isinstance(column.type, tables.Whole) else column.type
    return sa.bindparam(None, list(values), type_=postgresql.ARRAY(kind), unique=True)


def _is_sqlite(connection: sa.Connection) -> bool:
    return connection.dialect.name == "sqlite"
