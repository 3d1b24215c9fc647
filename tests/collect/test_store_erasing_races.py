"""Erasing while others write, solve and erase: everyone gets a turn, and no result outlives its readings."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import psycopg
import pytest

from cloakwork.collect.storage import collector_store, open_store
from cloakwork.collect.storage.database import Transaction
from tests.collect.store_rows import SITE, START, frames, moment, reading, result
from tests.waiting import PATIENCE, until


def test_a_lot_is_erased_in_steps_between_which_others_write(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(store_url, wait_s=60) as store, open_store(store_url, wait_s=60) as other:
        monkeypatch.setattr(collector_store, "STEP", 100)
        store.readings.add(frames(800, 1))
        left: list[int] = []

        def pause(seconds: float) -> None:
            """Between two steps, at the latest, the other one writes."""
            other.readings.add([reading("s2", 100_000 + len(left))])
            left.append(sum(1 for row in other.readings.iterate(SITE) if row.sensor == "s1"))
            assert 0 <= seconds <= collector_store.LONGEST_PAUSE_S

        monkeypatch.setattr(collector_store, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pause))
        erased = store.erase(SITE, "s1")
        monkeypatch.undo()
        assert erased.readings == 800
        assert len({count for count in left if 0 < count < 800}) >= 2
        assert len(list(store.readings.iterate(SITE))) == len(left)


def test_readings_that_arrive_in_erased_frames_are_never_lost_to_the_solver(store_url: str) -> None:
    """Erasing again and again while readings come: every reading that is there has a frame that will be solved."""
    with open_store(store_url, wait_s=60) as store, open_store(store_url, wait_s=60) as other:
        stop = threading.Event()
        failures: list[BaseException] = []

        def erase() -> None:
            try:
                while not stop.is_set():
                    other.erase(SITE, since=moment(0), until=moment(20))
                    other.erase(SITE, "s1")
            except BaseException as problem:
                failures.append(problem)

        eraser = threading.Thread(target=erase)
        eraser.start()
        for k in range(80):
            store.readings.add([reading(f"s{sensor}", k % 20, seq=k) for sensor in (1, 2)])
            store.results.save([result(k % 20, 1)])
        stop.set()
        eraser.join()
        assert failures == []
        store.readings.add(frames(20, first=0))
        assert {frame.time for frame in store.frames.times(SITE)} == {row.time for row in store.readings.iterate(SITE)}
        counts = Counter(row.time for row in store.readings.iterate(SITE))
        assert {frame.time: frame.readings for frame in store.frames.waiting(SITE)} == counts


def wait_for_lock(url: str) -> None:
    """Until a transaction has to wait for another one."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(url, autocommit=True) as server:
        until(lambda: server.execute(query).fetchone() != (0,), "nobody waits")


def test_a_result_that_is_saved_while_its_readings_are_erased_waits_and_is_dropped(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, go = threading.Event(), threading.Event()
    count = collector_store._count_erasure  # noqa: SLF001

    def pause(transaction: Transaction, site: str) -> None:
        count(transaction, site)
        counted.set()
        assert go.wait(PATIENCE)

    monkeypatch.setattr(collector_store, "_count_erasure", pause)
    with open_store(postgres_url) as store, open_store(postgres_url) as other, ThreadPoolExecutor(2) as pool:
        store.readings.add(frames(1))
        erasures = other.erasures(SITE)
        erased = pool.submit(store.erase, SITE)
        assert counted.wait(PATIENCE)
        saved = pool.submit(other.results.save, [result(0)], erasures=erasures)
        wait_for_lock(postgres_url)
        go.set()
        assert (erased.result().readings, saved.result()) == (3, [])
        assert (store.frames.times(SITE), store.results.get(SITE, START)) == ([], None)
