"""Opening a store: every address, every version, and everything that is no store."""

import re
import stat
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa

from cloakwork.collect.storage import ReadingStatus, migrations, open_store
from cloakwork.collect.storage.database import Database
from cloakwork.errors import InputError, StoreAwayError, StoreError
from tests.collect.store_rows import SITE, frames
from tests.forking import python
from tests.postgres import Postgres
from tests.waiting import PATIENCE


def columns(url: str) -> dict[str, set[str]]:
    """The columns of each table."""
    database = Database(url, wait_s=10)
    with database.reading() as transaction:
        look = sa.inspect(transaction.connection)
        found = {table: {str(column["name"]) for column in look.get_columns(table)} for table in look.get_table_names()}
    database.close()
    return {name: told for name, told in found.items() if not name.startswith("sqlite_")}


def version(url: str) -> int:
    database = Database(url, wait_s=10)
    [(found,)] = database.rows("SELECT version FROM cloakwork_version")
    database.close()
    return int(found)


def test_steps_run_in_order_and_once(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of version 1 goes through the steps that came later, and keeps its readings."""
    rows = frames(2)
    with open_store(store_url) as store:
        store.readings.add(rows)
    steps = ("ALTER TABLE readings ADD COLUMN note {text}", "UPDATE readings SET note = 'kept'")
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, *steps))
    for _ in range(2):
        with open_store(store_url) as store:
            assert list(store.readings.iterate(SITE)) == rows
    assert "note" in columns(store_url)["readings"]
    assert version(store_url) == len(migrations.STEPS)


def test_a_step_that_fails_leaves_the_store_as_it_was(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(store_url).close()
    before = columns(store_url)
    with monkeypatch.context() as patch:
        patch.setattr(
            migrations, "STEPS", (*migrations.STEPS, "CREATE TABLE half (done {integer}); DROP TABLE nothing")
        )
        with pytest.raises(StoreError, match="nothing"):
            open_store(store_url)
    assert columns(store_url) == before
    with open_store(store_url) as store:
        assert store.readings.add(frames(1)) == [ReadingStatus.NEW] * 3


def test_a_store_of_a_newer_version_is_refused_untouched(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "STEPS", (*migrations.STEPS, "DROP TABLE tokens"))
        open_store(store_url).close()
    with pytest.raises(StoreError) as refusal:
        open_store(store_url)
    newer = len(migrations.STEPS) + 1
    assert (refusal.value.version, refusal.value.known, version(store_url)) == (newer, newer - 1, newer)


def test_many_processes_may_open_a_new_store_at_once(store_url: str) -> None:
    code = "import sys; from cloakwork.collect.storage import open_store; open_store(sys.argv[1]).sites()"
    running = [python(code, store_url, stderr=subprocess.PIPE) for _ in range(4)]
    said = [process.communicate(timeout=PATIENCE)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0] * 4, said
    with open_store(store_url) as store:
        assert store.frames.waiting(SITE) == []


def test_a_bare_path_is_a_file_that_only_its_owner_may_read(tmp_path: Path) -> None:
    path = tmp_path / "my store.db"
    with open_store(str(path)) as store:
        store.readings.add(frames(1))
        assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    with open_store(f"sqlite:///{path}") as store:
        assert len(list(store.readings.iterate(SITE))) == 3


def test_the_file_waits_for_the_disk_at_each_commit(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "store.db"), wait_s=5)
    with database.reading() as connection:
        settings = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "secure_delete")
        found = [connection.run(f"PRAGMA {name}")[0][0] for name in settings]
    database.close()
    assert found == ["wal", 2, 1, 5000, 1]


def test_postgresql_waits_for_the_disk_at_each_commit(postgres: Postgres, postgres_url: str) -> None:
    name = postgres_url.rsplit("/", 1)[-1]
    postgres.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    database = Database(postgres_url, wait_s=5)
    try:
        with database.reading() as connection:
            settings = ("synchronous_commit", "lock_timeout", "transaction_isolation")
            found = [connection.run(f"SHOW {setting}")[0][0] for setting in settings]
    finally:
        database.close()
        postgres.execute(f"ALTER DATABASE {name} RESET ALL")
    assert found == ["on", "5s", "read committed"]


@pytest.mark.parametrize(
    "content", [b"time,sensor,seq,value\n" * 300, b"\x00" * 4096, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "readings.csv"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged") as refusal:
        open_store(str(path))
    assert str(path) in str(refusal.value)
    assert not isinstance(refusal.value, StoreAwayError)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "empty"),
        ("mysql://me:secret@host/db", "mysql"),
        ("sqlite+aiosqlite:///x.db", "sqlite.aiosqlite"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("postgresql://host:secret@x:y:z/", "cannot be read"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as refusal:
        open_store(url)
    assert "secret" not in str(refusal.value)


def test_a_folder_and_a_place_where_nothing_can_be_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="folder"):
        open_store(str(tmp_path))
    with pytest.raises(StoreError, match=re.escape(str(tmp_path / "no"))):
        open_store(str(tmp_path / "no" / "store.db"))
