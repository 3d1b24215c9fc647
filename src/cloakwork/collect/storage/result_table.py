"""Stored results, with their certificates."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from pydantic import TypeAdapter

from cloakwork.collect.storage import queries, tables
from cloakwork.collect.storage.database import Database
from cloakwork.collect.storage.reading_table import FrameProgress, held_readings, lock_frames
from cloakwork.collect.storage.records import FAILED, Page, Result

MadeFrom = Mapping[int, Mapping[str, int]]
TRIES = 5
_TABLE = tables.results.c
_RESULT = TypeAdapter(Result)
_LEFT_OUT: dict[str, object] = {"sources": (), "tracks": (), "zones": None, "map": None}  # unless a query asks for them
_NOT_FAILED = _TABLE.status.not_like(f"{FAILED}%")
log = logging.getLogger(__name__)


class _Rank(NamedTuple):
    """The rank of a result among those of its frame: the largest is the best."""

    good: bool
    settled: bool
    followed: bool
    sensors: int


NO_RANK = _Rank(good=False, settled=False, followed=False, sensors=0)


class ResultTable:
    """The results of a store: at most one for each site and time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, results: Sequence[Result], *, made_from: MadeFrom | None = None) -> list[Result]:
        """Store results; returns those that were kept.

        The first result of a site and time stands, so that several collectors agree. Only a better one replaces it: one
        that did not fail, then one that is settled, then one whose sources were followed, then one from more sensors.
        `made_from` is what `FrameTable.values` returned for their times, for results of one site. A result is dropped
        if some of those readings were erased while it was computed (without `made_from`: if it is from more sensors
        than its time has in the store).
        """
        latest = {(result.site, result.time): result for result in results}
        by_site: dict[str, list[Result]] = {}
        for key in sorted(latest):
            by_site.setdefault(key[0], []).append(latest[key])
        if not by_site:
            return []
        return self._database.write(
            lambda connection: [
                kept for site, rows in by_site.items() for kept in _save(connection, site, rows, made_from)
            ]
        )

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

    def last_followed(self, site: str, until: int | None = None) -> Result | None:
        """Return the newest result (before `until`) whose sources were followed, without its map."""
        query = sa.select(*_columns(maps=False)).where(_TABLE.site == site, *queries.within(_TABLE.time, None, until))
        return self._first(query.where(_TABLE.labels.is_not(None)).order_by(_TABLE.time.desc()).limit(1))

    def get(self, site: str, time: int) -> Result | None:
        """Return the result of one time, with its map."""
        return self._first(sa.select(*_columns(maps=True)).where(_TABLE.site == site, _TABLE.time == time))

    def _first(self, query: sa.Select[Any]) -> Result | None:
        return next((_from_row(row) for row in self._database.rows(query)), None)


def _save(connection: sa.Connection, site: str, results: Sequence[Result], made_from: MadeFrom | None) -> list[Result]:
    """Store the results of one site whose readings are still there.

    Their frames are locked: whoever erases their readings has done so, or waits for us and then erases the results too.
    """
    times = [result.time for result in results]
    before = lock_frames(connection, site, times)
    held = held_readings(connection, site, times)
    sensors = {time: len({sensor for sensor, _ in readings}) for time, readings in held.items()}

    def is_valid(result: Result) -> bool:
        if made_from is None:
            return result.sensors <= sensors[result.time]
        return made_from[result.time].items() <= held[result.time]

    valid = [result for result in results if result.time in before and is_valid(result)]
    stored = _stored_ranks(connection, site, times)
    kept = [result for result in valid if _rank(result) > stored.get(result.time, NO_RANK)]
    if len(kept) < len(results):
        dropped = len(results) - len(kept)
        log.info("%s: dropped %d results: their readings were erased, or there are better ones", site, dropped)
    if kept:
        _upsert(connection, kept)
    if valid:
        marks = [_mark(result, sensors[result.time], before[result.time]) for result in valid]
        table = tables.frames
        change = sa.update(table).where(table.c.site == site, table.c.time == sa.bindparam("frame"))
        connection.execute(change.values(solved=sa.bindparam("sensors"), late=sa.bindparam("missed")), marks)
    return kept


def _rank(result: Any) -> _Rank:
    """A result, or its row, replaces another of a lower rank."""
    good = not result.status.startswith(FAILED)
    return _Rank(good, bool(result.settled), result.labels is not None, result.sensors)


def _stored_ranks(connection: sa.Connection, site: str, times: Sequence[int]) -> dict[int, _Rank]:
    query = sa.select(_TABLE.time, _TABLE.status, _TABLE.settled, _TABLE.labels, _TABLE.sensors)
    query = query.where(_TABLE.site == site, queries.among(connection, _TABLE.time, times))
    return {row.time: _rank(row) for row in connection.execute(query)}


def _upsert(connection: sa.Connection, results: Sequence[Result]) -> None:
    statement = queries.insert(connection, tables.results)
    columns = {column.name: column for column in statement.excluded if not column.primary_key}
    statement = statement.on_conflict_do_update(index_elements=[_TABLE.site, _TABLE.time], set_=columns)
    connection.execute(statement, [vars(result) for result in results])


def _mark(result: Result, sensors: int, before: FrameProgress) -> dict[str, int]:
    """The new progress of a frame that has readings of so many sensors.

    More may have arrived while the result was computed; then the frame is listed again. But not forever: a result may
    leave out a sensor that the site no longer has, or be from fewer than the stored one, which stays.
    """
    if sensors <= result.sensors:
        late = 0
    elif result.sensors > before.solved:
        late = 1
    else:
        late = before.late + 1 if 0 < before.late < TRIES else 0
    return {"frame": result.time, "sensors": max(result.sensors, before.solved), "missed": late}


def _columns(*, maps: bool) -> list[sa.ColumnElement[Any]]:
    return [column for column in _TABLE if maps or column.name != "map"]


def _from_row(row: sa.Row[Any]) -> Result:
    return _RESULT.validate_python({**_LEFT_OUT, **row._mapping})  # noqa: SLF001 (SQLAlchemy's name for a public attribute)
