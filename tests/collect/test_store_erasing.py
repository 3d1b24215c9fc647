"""Erasing and retention: what is gone is gone everywhere."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from cloakwork.collect.storage import (
    Erased,
    ProblemCount,
    ReadingStatus,
    Store,
    open_store,
)
from tests.collect.store_rows import SITE, START, frames, moment, reading, report, result, waiting

DAY = 86_400_000


def fill(store: Store) -> None:
    """Four frames of three sensors with results, and all that comes with them; two frames of another site."""
    store.readings.add([*frames(4), reading(site="hall"), reading(site="hall", frame=1)])
    store.readings.add([reading(sensor, frame, value=-1) for sensor in ("s1", "s2") for frame in range(4)])
    store.results.save([result(k) for k in range(4)])
    store.results.save([result(0, 1, site="hall")])
    store.reports.add([report(f"s{k}", received=START + k * 10_000) for k in (1, 2, 3)])
    store.reports.add([report(site="hall")])
    store.problems.add([ProblemCount(SITE, "s1", "late", 1, START), ProblemCount(SITE, "s2", "late", 1, START)])


def test_everything_of_a_site_can_be_erased(store: Store) -> None:
    fill(store)
    assert store.erase(SITE) == Erased(readings=12, results=4, reports=3)
    assert not any(
        (
            list(store.readings.iterate(SITE)),
            store.frames.times(SITE),
            waiting(store),
            store.reports.latest(SITE),
        )
    )
    assert not any((store.readings.alarms(SITE), store.problems.counts(SITE), store.reports.history(SITE)))
    assert store.results.latest(SITE) is None
    assert len(list(store.readings.iterate("hall"))) == 2
    assert store.results.latest("hall") is not None
    assert len(store.reports.latest("hall")) == 1
    assert store.erase(SITE) == Erased(0, 0, 0)


def test_a_period_can_be_erased(store: Store) -> None:
    fill(store)
    assert store.erase(SITE, since=moment(1), until=moment(3)) == Erased(readings=6, results=2, reports=0)
    assert [frame.time for frame in store.frames.times(SITE)] == [moment(3), moment(0)]
    assert [one.time for one in store.results.page(SITE).items] == [moment(0), moment(3)]
    assert waiting(store) == []
    assert store.erase(SITE, until=moment(1)) == Erased(3, 1, 0)
    assert store.erase(SITE, since=moment(3)) == Erased(3, 1, 3)


def test_results_that_used_an_erased_frame_go_and_are_computed_again(store: Store) -> None:
    """Sources were followed through 90 frames: those before were settled with the erased one, those after continue."""
    store.readings.add([*frames(90)])
    store.results.save([result(k, labels=2, settled=True) for k in range(90)])
    assert store.erase(SITE, since=moment(20), until=moment(21)) == Erased(readings=3, results=71, reports=0)
    assert [one.time for one in store.results.page(SITE).items] == [moment(k) for k in [*range(10), *range(81, 90)]]
    assert waiting(store) == [moment(k) for k in [*range(10, 20), *range(21, 81)]]
    assert store.erase(SITE, since=moment(20), until=moment(21)) == Erased(0, 0, 0)


def test_a_sensor_is_erased_with_all_results_that_used_it(store: Store) -> None:
    fill(store)
    store.readings.add([reading("s3", 9)])
    store.results.save([result(9, 1)])
    assert store.erase(SITE, "s1") == Erased(readings=4, results=4, reports=1)
    assert {row.sensor for row in store.readings.iterate(SITE)} == {"s2", "s3"}
    assert [one.time for one in store.results.page(SITE).items] == [moment(9)]
    assert waiting(store) == [moment(k) for k in range(4)]
    assert [one.sensor for one in store.reports.latest(SITE)] == ["s2", "s3"]
    assert {one.sensor for one in store.readings.alarms(SITE)} == {"s2"}
    assert [one.sensor for one in store.problems.counts(SITE)] == ["s2"]


def test_erase_older_removes_older_data_only(store: Store) -> None:
    now = time.time_ns() // 1_000_000
    ages = [0.5, 1.9, 2.1, 30]
    times = [now - round(age * DAY) for age in ages]
    store.readings.add([reading(seq=k, time=when, received=when) for k, when in enumerate(times)])
    store.results.save([result(0, 1, time=when) for when in times])
    store.reports.add([report(received=when) for when in times])
    assert store.erase_older(SITE, 2) == Erased(2, 2, 2)
    assert [frame.time for frame in store.frames.times(SITE)] == times[:2]
    assert [one.received for one in store.reports.history(SITE)] == times[1::-1]
    assert store.erase_older(SITE, 2) == Erased(0, 0, 0)
    assert store.erase_older("nowhere", 1) == Erased(0, 0, 0)


def test_an_erasure_reports_that_the_files_still_hold_the_rows_while_someone_reads(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(str(path), wait_s=5) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        store.readings.add([reading("unforgettable", k) for k in range(1500)])
        other.execute("BEGIN")
        assert other.execute("SELECT count(*) FROM readings").fetchone() == (1500,)
        assert store.erase(SITE) == Erased(1500, 0, 0, in_files=True)
        assert other.execute("SELECT count(*) FROM readings").fetchone() == (1500,)
        assert _is_in_files(b"unforgettable", tmp_path)
        other.execute("COMMIT")
        assert store.erase(SITE) == Erased(0, 0, 0)
        assert not _is_in_files(b"unforgettable", tmp_path)
        assert store.readings.add(frames(1)) == [ReadingStatus.NEW] * 3


def _size(folder: Path) -> int:
    """Bytes of the store's files, without the index of the log, which is in memory."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.suffix != ".db-shm")


def _is_in_files(value: bytes, folder: Path) -> bool:
    return any(value in file.read_bytes() for file in folder.iterdir())


def test_a_file_shrinks_after_erasing_and_forgets(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(str(path)) as store:
        store.readings.add([reading("unforgettable", k) for k in range(8000)])
        store.readings.add(frames(1))
        before = _size(tmp_path)
        store.erase(SITE, "unforgettable")
        assert _size(tmp_path) < before / 4
        assert not _is_in_files(b"unforgettable", tmp_path)


def test_nothing_that_was_begun_before_an_erasure_is_kept(store: Store) -> None:
    """Whatever was erased: results also rest on earlier frames. Others of the site are recovered again."""
    rows = frames(2)
    store.readings.add(rows)
    erasures = store.erasures(SITE)
    store.erase(SITE, until=moment(1))
    store.readings.add([row._replace(value=row.value + 1) for row in rows if row.time == moment(0)])
    assert store.results.save([result(0), result(1)], erasures=erasures) == []
    assert waiting(store) == [moment(0), moment(1)]
    assert len(store.results.save([result(0), result(1)], erasures=store.erasures(SITE))) == 2
    assert waiting(store) == []


def test_retention_does_not_hold_up_the_results_of_today(store: Store) -> None:
    now = time.time_ns() // 1_000_000
    store.readings.add([reading(time=now - 3 * DAY), reading(seq=1, time=now)])
    erasures = store.erasures(SITE)
    assert store.erase_older(SITE, 2).readings == 1
    kept = store.results.save([result(0, 1, time=when) for when in (now - 3 * DAY, now)], erasures=erasures)
    assert [one.time for one in kept] == [now], "the other has no readings any more"
