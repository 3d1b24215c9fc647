"""How the store finds things: by an index, however much there is."""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from cloakwork.collect.storage import Store, open_store
from tests.collect.store_rows import SITE, frames, moment, result

CURSOR = f"{moment(3)}.s1.3"
CALLS: dict[str, Callable[[Store], object]] = {
    "add_readings": lambda store: store.readings.add(frames(2)),
    "frame": lambda store: store.frames.values(SITE, [moment(3)])[moment(3)],
    "frames": lambda store: store.frames.values(SITE, [moment(3), moment(4)]),
    "frame_times": lambda store: store.frames.times(SITE),
    "frame_times of a period": lambda store: store.frames.times(SITE, moment(3), moment(5)),
    "waiting": lambda store: store.frames.waiting(SITE),
    "waiting up to a time": lambda store: store.frames.waiting(SITE, moment(3), 2),
    "readings after": lambda store: store.readings.page(SITE, after=CURSOR),
    "readings before": lambda store: store.readings.page(SITE, after=CURSOR, newest_first=True),
    "readings of a sensor": lambda store: store.readings.page(SITE, sensor="s1", since=moment(3)),
    "readings of a sensor after": lambda store: store.readings.page(SITE, sensor="s1", after=CURSOR),
    "save_results": lambda store: store.results.save([result(3)]),
    "results": lambda store: store.results.page(SITE, after=str(moment(3))),
    "latest": lambda store: store.results.latest(SITE),
    "latest up to a time": lambda store: store.results.latest(SITE, moment(3)),
    "report_history": lambda store: store.reports.history(SITE, since=moment(3)),
    "erase": lambda store: store.erase(SITE, until=moment(3)),
    "erase a sensor": lambda store: store.erase(SITE, "s1", since=moment(3), until=moment(5)),
}


@pytest.fixture
def statements() -> Iterator[list[tuple[str, Any]]]:
    """What is asked of a database from now on, with parameters."""
    found: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, ___: Any, many: bool) -> None:
        found.append((statement, parameters[0] if many else parameters))

    event.listen(Engine, "before_cursor_execute", note)
    yield found
    event.remove(Engine, "before_cursor_execute", note)


@pytest.mark.parametrize("name", CALLS)
def test_no_call_reads_all_of_a_large_table(tmp_path: Path, statements: list[tuple[str, Any]], name: str) -> None:
    path = tmp_path / "store.db"
    with open_store(str(path)) as store:
        store.readings.add(frames(8))
        store.results.save([result(k) for k in range(5)])
        statements.clear()
        CALLS[name](store)
        asked = [(text, given) for text, given in statements if re.match(r"\s*(SELECT|UPDATE|DELETE|INSERT)", text)]
        with closing(sqlite3.connect(path)) as file:
            steps = [row[3] for text, given in asked for row in file.execute(f"EXPLAIN QUERY PLAN {text}", given)]
    assert steps
    for step in steps:
        assert not re.search(r"SCAN (readings|frames|results|report_history)|TEMP B-TREE", step), steps
        assert not re.search(r"(readings|report_history) USING .*\(site=\?\)", step), steps


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("sensor", [None, "s1"])
def test_a_later_page_takes_no_longer_than_the_first(
    tmp_path: Path, statements: list[tuple[str, Any]], sensor: str | None, newest_first: bool
) -> None:
    path, steps = tmp_path / "store.db", Counter[int]()
    with open_store(str(path)) as store:
        store.readings.add(frames(300))
        statements.clear()
        far = 2 if newest_first else 297
        for after in (None, f"{moment(far)}.s1.{far}"):
            store.readings.page(SITE, sensor=sensor, limit=3, after=after, newest_first=newest_first)
    with closing(sqlite3.connect(path)) as file:
        for number, (text, given) in enumerate((text, given) for text, given in statements if "SELECT" in text):
            file.set_progress_handler(lambda number=number: steps.update([number]), 1)  # type: ignore[misc]
            assert file.execute(text, given).fetchall()
    assert len(steps) == 2
    assert steps[1] < 2 * steps[0]


def test_a_server_that_knows_nothing_of_its_tables_looks_at_them(
    postgres_url: str, statements: list[tuple[str, Any]]
) -> None:
    """As after a backup was restored: until it has statistics, it reads whole tables."""
    with open_store(postgres_url) as store:
        store.readings.add(frames(400))
        statements.clear()
        store.frames.values(SITE, [moment(3)])
        [asked] = [(text, given) for text, given in statements if "FROM readings" in text]
    with open_store(postgres_url), psycopg.connect(postgres_url) as server:
        assert server.execute("SELECT n_distinct FROM pg_stats WHERE tablename = 'readings'").fetchall()
        plan = server.execute(f"EXPLAIN {asked[0]}".encode(), asked[1]).fetchall()
        assert any("Index Cond" in line and "ANY" in line for (line,) in plan), plan
