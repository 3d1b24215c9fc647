"""What was recovered, with its certificate."""

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from cloakwork.collect.records import FAILED, Page, Result, Spot
from cloakwork.collect.store import bulk, frames, pages, tables
from cloakwork.collect.store.database import Database
from cloakwork.collect.store.frames import Held, State
from cloakwork.errors import InputError

MadeFrom = Mapping[int, Mapping[str, int]]
TRIES = 5
_GOOD = tables.results.c.status.not_like(f"{FAILED}%")
log = logging.getLogger(__name__)


def save(database: Database, results: Sequence[Result], made_from: MadeFrom | None) -> int:
    """Keep those whose readings are still there; says how many."""
    for result in results:
        if result.sensors < 1:
            raise InputError(
                f"a result of {result.site} from {result.sensors} sensors: at least one must have reported."
            )
    latest = {(result.site, result.time): result for result in results}
    ordered = [latest[key] for key in sorted(latest)]
    if not ordered:
        return 0
    return database.write(lambda connection: _save(connection, ordered, made_from))


def _save(connection: sa.Connection, results: Sequence[Result], made_from: MadeFrom | None) -> int:
    kept = 0
    for site in dict.fromkeys(result.site for result in results):
        kept += _save_site(connection, site, [result for result in results if result.site == site], made_from)
    return kept


def _save_site(connection: sa.Connection, site: str, results: Sequence[Result], made_from: MadeFrom | None) -> int:
    times = [result.time for result in results]
    before = frames.lock(connection, site, times)
    held = frames.held(connection, site, times)
    valid = [result for result in results if result.time in before and _stands(result, held[result.time], made_from)]
    good = [result for result in valid if result.sensors >= before[result.time].solved]
    if len(good) < len(results):
        dropped = len(results) - len(good)
        log.info("%s: dropped %d results: their readings were erased, or others are from more", site, dropped)
    if good:
        _put(connection, good)
    marks = [
        {
            "frame": result.time,
            "sensors": max(result.sensors, before[result.time].solved),
            "late": _late(result, _sensors(held[result.time]), before[result.time]),
        }
        for result in valid
    ]
    if marks:
        _mark(connection, site, marks)
    return len(good)


def _stands(result: Result, held: Held, made_from: MadeFrom | None) -> bool:
    """Whether all that a result was made from is held; where that is not known, readings of as many sensors.

    Its frame is locked: whoever removes readings of it has done so, or waits for us and then removes the result, too.
    """
    if made_from is None:
        return result.sensors <= _sensors(held)
    return made_from[result.time].items() <= held


def _sensors(held: Held) -> int:
    return len({sensor for sensor, _ in held})


def _put(connection: sa.Connection, results: Sequence[Result]) -> None:
    """Write results, each in place of the one that was there."""
    statement = bulk.insert(connection, tables.results)
    fresh = {column.name: column for column in statement.excluded if not column.primary_key}
    keys = [tables.results.c.site, tables.results.c.time]
    connection.execute(
        statement.on_conflict_do_update(index_elements=keys, set_=fresh), [_row(result) for result in results]
    )


def _mark(connection: sa.Connection, site: str, marks: Sequence[Mapping[str, int]]) -> None:
    """Note the state of each `frame`."""
    table = tables.frames
    change = sa.update(table).where(table.c.site == site, table.c.time == sa.bindparam("frame"))
    connection.execute(change.values(solved=sa.bindparam("sensors"), late=sa.bindparam("late")), marks)


def _late(result: Result, there: int, before: State) -> int:
    """What to note of a frame for which there are readings of so many sensors.

    More may have come while the result was computed; then it is asked for again. But not forever: it may leave a
    sensor out that the site no longer has, or even be from fewer than the one that is there, which stays.
    """
    if there <= result.sensors:
        return 0
    if result.sensors > before.solved:
        return 1
    return before.late + 1 if 0 < before.late < TRIES else 0


def some(
    database: Database,
    site: str,
    *,
    since: int | None,
    until: int | None,
    limit: int,
    after: str | None,
    newest_first: bool,
    maps: bool,
    failed: bool,
) -> Page[Result]:
    """One page."""
    table = tables.results.c
    query = sa.select(*_columns(maps=maps)).where(table.site == site, *pages.within(table.time, since, until))
    if not failed:
        query = query.where(_GOOD)
    if after is not None:
        [text] = pages.read_cursor(after, 1)
        here = pages.whole(text, after)
        query = query.where(table.time < here if newest_first else table.time > here)
    query = query.order_by(*pages.ordered((table.time,), newest_first=newest_first)).limit(pages.check_limit(limit))
    with database.reading() as connection:
        found = [_result(row) for row in connection.execute(query)]
    return pages.page(found, limit, str(found[-1].time) if found else "")


def newest(database: Database, site: str, until: int | None) -> Result | None:
    """The newest before `until` that is no failure."""
    table = tables.results.c
    query = sa.select(*_columns(maps=True)).where(table.site == site, *pages.within(table.time, None, until))
    return _first(database, query.where(_GOOD).order_by(table.time.desc()).limit(1))


def one(database: Database, site: str, time: int) -> Result | None:
    """The result of a time."""
    table = tables.results.c
    return _first(database, sa.select(*_columns(maps=True)).where(table.site == site, table.time == time))


def _first(database: Database, query: sa.Select[Any]) -> Result | None:
    with database.reading() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else _result(row)


def _columns(*, maps: bool) -> list[sa.ColumnElement[Any]]:
    return [column for column in tables.results.c if maps or column.name != "map"]


def _row(result: Result) -> dict[str, object]:
    """Plain types only: a number of NumPy's would be stored as bytes."""
    return {
        "site": result.site,
        "time": int(result.time),
        "sensors": int(result.sensors),
        "expected": int(result.expected),
        "estimator": result.estimator,
        "status": result.status,
        "gap": _float(result.gap),
        "fit": _float(result.fit),
        "set_aside": json.dumps(result.set_aside),
        "counts": None if result.counts is None else json.dumps([float(chance) for chance in result.counts]),
        "sources": json.dumps([asdict(spot) for spot in result.sources], default=float),
        "solved": int(result.solved),
        "took_ms": _float(result.took_ms),
        "map": None if result.map is None else bytes(result.map),
    }


def _result(row: sa.Row[Any]) -> Result:
    told = row._mapping  # noqa: SLF001 (SQLAlchemy's name for a public thing)
    spots = json.loads(told["sources"])
    return Result(
        site=told["site"],
        time=told["time"],
        sensors=told["sensors"],
        expected=told["expected"],
        estimator=told["estimator"],
        status=told["status"],
        gap=_number(told["gap"]),
        fit=_number(told["fit"]),
        set_aside=tuple(json.loads(told["set_aside"])),
        counts=None if told["counts"] is None else tuple(json.loads(told["counts"])),
        sources=tuple(Spot(**{**spot, "at": tuple(spot["at"])}) for spot in spots),
        map=told.get("map"),
        solved=told["solved"],
        took_ms=_number(told["took_ms"]),
    )


def _float(value: float) -> float | None:
    """SQLite has no NaN."""
    return None if math.isnan(value) else float(value)


def _number(value: float | None) -> float:
    return math.nan if value is None else value
