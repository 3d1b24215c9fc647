"""A store in trouble: locked, full, away, killed. It says so, loses nothing that it acknowledged, and goes on."""

import os
import random
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.pool import Pool

from cloakwork.collect.storage import ReadingStatus, Role, Store, open_store
from cloakwork.errors import StoreAwayError, StoreError, StoreFullError
from tests.collect.store_rows import SITE, frames, reading
from tests.forking import python
from tests.parts import program
from tests.postgres import Postgres

NEW, AGAIN = ReadingStatus.NEW, ReadingStatus.AGAIN
# a process that says which readings were acknowledged, until it is killed
WRITER = """
import sys
from cloakwork.collect.storage import Reading
from cloakwork.collect.storage import open_store
url, first = sys.argv[1], int(sys.argv[2])
with open_store(url, wait_s=60) as store:
    for start in range(first, first + 100_000, 20):
        store.readings.add([Reading("flat", f"s{k % 4}", k, k // 4, k, 1) for k in range(start, start + 20)])
        print(start + 20, flush=True)
"""


@pytest.fixture
def room() -> Iterator[dict[str, int]]:
    """How many pages a file of SQLite may have, in every connection; `pages` can be changed while a store is open."""
    limit = {"pages": 1 << 30}

    def set_limit(raw: Any, *_: object) -> None:
        if isinstance(raw, sqlite3.Connection):
            raw.execute(f"PRAGMA max_page_count = {limit['pages']}")

    event.listen(Pool, "checkout", set_limit)
    yield limit
    event.remove(Pool, "checkout", set_limit)


def fill_until_full(store: Store) -> int:
    """Add readings until there is no room; gives how many were acknowledged."""
    acknowledged = []

    def fill() -> None:
        for start in range(0, 1_000_000, 100):
            store.readings.add([reading("s1", k) for k in range(start, start + 100)])
            acknowledged.append(start + 100)

    with pytest.raises(StoreFullError):
        fill()
    return acknowledged[-1]


def check_after_full(store: Store, acknowledged: int) -> None:
    """All that was acknowledged is there, and the same call works."""
    assert [row.seq for row in store.readings.iterate(SITE)] == list(range(acknowledged))
    rows = [reading("s1", k) for k in range(acknowledged - 50, acknowledged + 50)]
    assert store.readings.add(rows) == [AGAIN] * 50 + [NEW] * 50
    assert [row.seq for row in store.readings.iterate(SITE)] == list(range(acknowledged + 50))


def test_a_full_file_loses_nothing_and_goes_on_when_there_is_room(tmp_path: Path, room: dict[str, int]) -> None:
    path = tmp_path / "store.db"
    with open_store(str(path)) as store:
        token = store.tokens.create(Role.ANALYST)
        room["pages"] = 120
        acknowledged = fill_until_full(store)
        with pytest.raises(StoreFullError):
            store.readings.add(frames(500, first=acknowledged))
        assert store.tokens.check(token.secret) is not None
        assert [row.seq for row in store.readings.iterate(SITE)] == list(range(acknowledged))
        room["pages"] = 1 << 30
        check_after_full(store, acknowledged)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@contextmanager
def small_disk(folder: Path, megabytes: int, **options: int) -> Iterator[Path]:
    """A disk of its own, where the system lets us have one."""
    folder.mkdir()
    told = ",".join([f"size={megabytes}m", *(f"{name}={value}" for name, value in options.items())])
    mount, unmount = program("mount"), program("umount")
    if os.geteuid() != 0 or mount is None or unmount is None:
        pytest.skip("only root may mount a small disk")
    mounted = subprocess.run([mount, "-t", "tmpfs", "-o", told, "tmpfs", folder], check=False, capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("this system lets nobody mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run([unmount, "--lazy", folder], check=True)


def test_acknowledged_readings_survive_a_crash_of_the_server(postgres: Postgres, postgres_url: str) -> None:
    server = postgres
    with server.restarted(), open_store(postgres_url, wait_s=5) as store:
        for round_ in range(2):
            acknowledged: list[int] = []

            def write(first: int = round_ * 100_000, acknowledged: list[int] = acknowledged) -> None:
                for start in range(first, first + 100_000, 10):
                    try:
                        store.readings.add([reading("s1", k) for k in range(start, start + 10)])
                    except StoreAwayError:
                        return
                    acknowledged.extend(range(start, start + 10))

            writer = threading.Thread(target=write)
            writer.start()
            while not acknowledged and writer.is_alive():
                time.sleep(0.01)
            time.sleep(random.uniform(0, 0.3))
            server.kill()
            writer.join()
            server.start()
            stored = [row.seq for row in store.readings.iterate(SITE)]
            assert acknowledged
            assert set(acknowledged) <= set(stored)
            assert len(stored) == len(set(stored))


@pytest.mark.parametrize(
    ("part", "other", "reason"),
    [
        (":{password}@", ":wrong@", "authentication failed"),
        ("/postgres", "/nothing", '"nothing" does not exist'),
    ],
)
def test_the_error_of_a_server_that_refuses_hides_the_password(
    postgres: Postgres, part: str, other: str, reason: str
) -> None:
    url = postgres.url().replace(part.format(password=postgres.password), other)
    with pytest.raises(StoreError, match=reason) as refusal:
        open_store(url, wait_s=2)
    assert not isinstance(refusal.value, StoreAwayError)
    assert "wrong" not in str(refusal.value)
    assert postgres.password not in str(refusal.value)


def test_readings_acknowledged_to_a_process_survive_when_it_is_killed(store_url: str) -> None:
    """Killed while it writes, several times: everything it acknowledged is there once, in whole calls."""
    first = 0
    for _ in range(3):
        with python(WRITER, store_url, first, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            said = [process.stdout.readline()]
            time.sleep(random.uniform(0, 0.3))
            process.kill()
            said += process.stdout.read().split()
        acknowledged = int(said[-1])
        with open_store(store_url) as store:
            stored = sorted(row.seq for row in store.readings.iterate(SITE))
            assert stored == list(range(len(stored)))
            assert len(stored) >= acknowledged
            assert len(stored) % 20 == 0
            assert len(store.frames.times(SITE, limit=10_000)) == min(len(stored) // 4, 10_000)
        first = len(stored)
