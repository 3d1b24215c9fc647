"""Periods, limits and cursors: what questions about long tables have in common."""

from collections.abc import Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from cloakwork.collect.records import Page
from cloakwork.errors import InputError

Item = TypeVar("Item")
MOST = 10_000  # rows of a page


def within(column: sa.Column[int], since: int | None, until: int | None) -> list[sa.ColumnElement[bool]]:
    """The conditions since <= column < until."""
    found: list[sa.ColumnElement[bool]] = []
    if since is not None:
        found.append(column >= since)
    if until is not None:
        found.append(column < until)
    return found


def check_limit(limit: int) -> int:
    """Give `limit` back, if it is one."""
    if not 1 <= limit <= MOST:
        raise InputError(f"limit={limit}: between 1 and {MOST} rows can be asked for at once.", limit=limit)
    return limit


def ordered(columns: Sequence[sa.Column[Any]], *, newest_first: bool) -> list[sa.UnaryExpression[Any]]:
    """The same direction for all columns, as one index serves it."""
    return [column.desc() if newest_first else column.asc() for column in columns]


def read_cursor(after: str, parts: int) -> list[str]:
    """What `write_cursor` put together."""
    found = after.split(".")
    if len(found) != parts:
        raise bad_cursor(after)
    return found


def whole(text: str, after: str) -> int:
    """A number of a cursor."""
    try:
        number = int(text)
    except ValueError:
        raise bad_cursor(after) from None
    if not -(2**63) <= number < 2**63:
        raise bad_cursor(after)
    return number


def bad_cursor(after: str) -> InputError:
    """What to raise for a cursor that no page has given out."""
    return InputError(f"after={after[:40]!r} is no cursor: give what the page before had in `next`, or nothing.")


def page(items: Sequence[Item], limit: int, cursor: str) -> Page[Item]:
    """A page; `cursor` stands after its last item."""
    return Page(tuple(items), cursor if len(items) == limit else None)
