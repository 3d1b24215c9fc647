"""Stored results, with their certificates."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import TypeAdapter

from cloakwork.collect.storage import queries, tables
from cloakwork.collect.storage.database import Database
from cloakwork.collect.storage.reading_table import lock_frames, mark_frames
from cloakwork.collect.storage.records import FAILED, Page, Result

_TABLE = tables.results.c
_RESULT = TypeAdapter(Result)
_LEFT_OUT: dict[str, object] = {"sources": (), "tracks": (), "zones": None, "map": None}  # unless a query asks for them
_NOT_FAILED = _TABLE.status.not_like(f"{FAILED}%")
log = logging.getLogger(__name__)


class _Rank(NamedTuple):
    """What makes a result better than another of its frame."""

    good: bool
    settled: bool
    followed: bool


class ResultTable:
    """The results of a store: at most one for each site and time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(
        self, results: Sequence[Result], frames: Mapping[int, int] | None = None, *, erasures: int | None = None
    ) -> list[Result]:
        """Store results of one site; returns those that were kept. Marks `frames` as recovered from so many readings.

        By default a result's frame has as many readings as the result has sensors. Of two results of a time the later
        stays, but none takes the place of a better one: one that did not fail, is settled, or was followed. A result of
        a time without readings is dropped. Nothing is stored if readings of the site were erased since the count
        `erasures`: the results may be made from them.
        """
        latest = {result.time: result for result in results}
        if not latest:
            return []
        recovered = {time: result.sensors for time, result in latest.items()} if frames is None else frames
        rows = [latest[time] for time in sorted(latest)]
        return self._database.write(lambda connection: _save(connection, rows, recovered, erasures))

    def page(
        self,
        site: str,
        *,
        since: int | None = None,
        until: int | None = None,
        limit: int = 100,
        after: str | None = None,
        newest_first: bool = False,
        maps: bool = False,
        failed: bool = False,
    ) -> Page[Result]:
        """Return results by time; without their maps (None), unless `maps`.

        Failed ones are left out, unless `failed`: one device can cause them without end, and must not crowd out the
        rest.
        """
        query = sa.select(*_columns(maps=maps)).where(_TABLE.site == site, *queries.within(_TABLE.time, since, until))
        if not failed:
            query = query.where(_NOT_FAILED)
        if after is not None:
            [text] = queries.split_cursor(after, 1)
            time = queries.cursor_number(text, after)
            query = query.where(_TABLE.time < time if newest_first else _TABLE.time > time)
        query = query.order_by(*queries.ordered((_TABLE.time,), newest_first=newest_first))
        results = [_from_row(row) for row in self._database.rows(query.limit(queries.check_limit(limit)))]
        return queries.page(results, limit, str(results[-1].time) if results else "")

    def sampled(self, site: str, since: int, until: int, step: int, *, without: Sequence[str] = ()) -> list[Result]:
        """Return the last result of each step of a period, oldest first, without maps and the columns `without`.

        Failed ones are left out.
        """
        period = (_TABLE.site == site, *queries.within(_TABLE.time, since, until), _NOT_FAILED)
        last = sa.select(sa.func.max(_TABLE.time)).where(*period).group_by((_TABLE.time - since) // step)
        columns = [column for column in _columns(maps=False) if column.name not in without]
        query = sa.select(*columns).where(_TABLE.site == site, _TABLE.time.in_(last)).order_by(_TABLE.time)
        return [_from_row(row) for row in self._database.rows(query)]

    def oldest(self, site: str) -> int | None:
        """Return the time of the oldest result that did not fail."""
        query = sa.select(sa.func.min(_TABLE.time)).where(_TABLE.site == site, _NOT_FAILED)
        time: int | None = self._database.rows(query)[0][0]
        return time

    def latest(self, site: str, until: int | None = None) -> Result | None:
        """Return the newest result (before `until`) that did not fail, with its map."""
        query = sa.select(*_columns(maps=True)).where(_TABLE.site == site, *queries.within(_TABLE.time, None, until))
        return self._first(query.where(_NOT_FAILED).order_by(_TABLE.time.desc()).limit(1))

    def last(self, site: str, until: int | None = None, *, followed: bool = False) -> Result | None:
        """Return the newest result (before `until`) that did not fail, or was even followed, without its map."""
        query = sa.select(*_columns(maps=False)).where(_TABLE.site == site, *queries.within(_TABLE.time, None, until))
        query = query.where(_TABLE.labels.is_not(None) if followed else _NOT_FAILED)
        return self._first(query.order_by(_TABLE.time.desc()).limit(1))

    def get(self, site: str, time: int) -> Result | None:
        """Return the result of one time, with its map."""
        return self._first(sa.select(*_columns(maps=True)).where(_TABLE.site == site, _TABLE.time == time))

    def _first(self, query: sa.Select[Any]) -> Result | None:
        return next((_from_row(row) for row in self._database.rows(query)), None)


def _save(
    connection: sa.Connection, results: Sequence[Result], recovered: Mapping[int, int], erasures: int | None
) -> list[Result]:
    """Store the results of one site, unless their readings may have been erased.

    The count of erasures stays locked: whoever erases readings has counted that, or waits for us and then erases the
    results too.
    """
    site, times = results[0].site, [result.time for result in results]
    if erasures is not None and lock_erasures(connection, site) != erasures:
        log.info("%s: dropped %d results: readings were erased meanwhile", site, len(results))
        return []
    held = lock_frames(connection, site, sorted({*times, *recovered}))
    stored = _stored_ranks(connection, site, times)
    kept = [one for one in results if one.time in held and not _is_worse(_rank(one), stored.get(one.time))]
    if kept:
        _upsert(connection, kept)
    mark_frames(connection, site, recovered)
    return kept


def lock_erasures(connection: sa.Connection, site: str) -> int:
    """Return how often readings of a site were erased, and let no one erase any until the transaction ends."""
    table = tables.erasures.c
    connection.execute(queries.insert(connection, tables.erasures).values(site=site, count=0).on_conflict_do_nothing())
    return int(connection.execute(sa.select(table.count).where(table.site == site).with_for_update()).scalar_one())


def _rank(result: Any) -> _Rank:
    """What a result, or its row, has that another may lack."""
    return _Rank(not result.status.startswith(FAILED), bool(result.settled), result.labels is not None)


def _is_worse(new: _Rank, stored: _Rank | None) -> bool:
    return stored is not None and any(ours < theirs for ours, theirs in zip(new, stored, strict=True))


def _stored_ranks(connection: sa.Connection, site: str, times: Sequence[int]) -> dict[int, _Rank]:
    query = sa.select(_TABLE.time, _TABLE.status, _TABLE.settled, _TABLE.labels)
    query = query.where(_TABLE.site == site, queries.among(connection, _TABLE.time, times))
    return {row.time: _rank(row) for row in connection.execute(query)}


def _upsert(connection: sa.Connection, results: Sequence[Result]) -> None:
    statement = queries.insert(connection, tables.results)
    columns = {column.name: column for column in statement.excluded if not column.primary_key}
    statement = statement.on_conflict_do_update(index_elements=[_TABLE.site, _TABLE.time], set_=columns)
    connection.execute(statement, [vars(result) for result in results])


def _columns(*, maps: bool) -> list[sa.ColumnElement[Any]]:
    return [column for column in _TABLE if maps or column.name != "map"]


def _from_row(row: sa.Row[Any]) -> Result:
    return _RESULT.validate_python({**_LEFT_OUT, **row._mapping})  # noqa: SLF001 (SQLAlchemy's name for a public attribute)
