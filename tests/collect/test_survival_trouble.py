"""The collector as a process while things around it fail: it says so, recovers, and loses nothing acknowledged."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.collect.collector_process import Collector
from tests.collect.deployment import Deployment, deployment
from tests.collect.test_store_failures import small_disk
from tests.postgres import Postgres
from tests.waiting import until

ROOM = 600_000  # bytes that are left on a disk
LOCK = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def stored(parts: Deployment, frames: int, *sensors: str) -> None:
    """Wait until these readings are in the store, each once, and nothing else."""
    until(lambda: parts.count() >= len(parts.expected(frames, *sensors)), parts.collector.log)
    assert parts.stored() == parts.expected(frames, *sensors)


def says(collector: Collector, part: str, words: str) -> bool:
    """Whether health says that a part is away, and why."""
    health = collector.client.health()
    return health is not None and health[part]["state"] == "away" and words in health[part]["reason"]


def well(collector: Collector) -> bool:
    health = collector.client.health()
    return health is not None and health["broker"]["state"] == health["store"]["state"] == "ok"


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Another program keeps all writers out."""
    if url.startswith("sqlite"):
        command = [sys.executable, "-c", LOCK, url.removeprefix("sqlite:///")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"locked\n"
            yield
            other.kill()
    else:
        with psycopg.connect(url) as server:
            server.execute("LOCK TABLE readings IN EXCLUSIVE MODE")
            yield


def busy(parts: Deployment, first: int) -> None:
    """What a device hears while nothing can be stored."""
    answer = parts.device.post(parts.frames(first, first + 1, "s4"))
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    assert set(answer.body["error"]) == {"code", "message"}


def test_a_collector_reports_a_stopped_broker_and_receives_its_queue_when_it_is_back(
    tmp_path: Path, sqlite_url: str
) -> None:
    with deployment(tmp_path, sqlite_url) as parts:
        collector, broker = parts.collector, parts.broker
        collector.start()
        collector.wait_ready()
        parts.publish(0, 20)
        stored(parts, 20, "s1", "s2", "s3")
        collector.kill(signal.SIGTERM)
        parts.publish(20, 60)  # kept by the broker, which has to bring them over its restart
        broker.stop()
        collector.start()
        until(lambda: says(collector, "broker", "cannot be reached"))
        away = collector.client.health()["broker"]
        parts.device.insist(parts.frames(0, 20, "s4"))  # HTTP goes on without it
        until(lambda: "no readings from the broker" in collector.log)
        broker.start()
        until(lambda: well(collector))
        assert collector.client.health()["broker"]["since"] > away["since"]
        until(lambda: collector.log.count("connected to the broker") >= 2)  # it is said a moment after it is so
        until(lambda: parts.count() == 200)
        parts.device.insist(parts.frames(20, 60, "s4"))
        stored(parts, 60)
        until(lambda: parts.left() == 0)
        assert collector.log.count("connected to the broker") == 2


def test_a_collector_reports_a_locked_store_and_loses_nothing_acknowledged(tmp_path: Path, store_url: str) -> None:
    with deployment(tmp_path, store_url) as parts:
        collector = parts.collector
        collector.start()
        collector.wait_ready()
        parts.publish(0, 20)
        stored(parts, 20, "s1", "s2", "s3")
        with locked(store_url):
            parts.publish(20, 60)  # acknowledged by the broker, which has to keep them
            until(lambda: says(collector, "store", "was locked by another program"), collector.log)
            busy(parts, 0)
            assert "the store cannot be written, readings wait" in collector.log
            assert parts.count() == 60
            collector.kill()  # and it was not acknowledged by us, or it would be gone now
            collector.start()
            collector.wait_ready()  # to start and to answer it need not write
            assert parts.count() == 60
        until(lambda: well(collector))
        parts.device.insist(parts.frames(0, 60, "s4"))
        stored(parts, 60)
        until(lambda: parts.left() == 0)


def test_a_collector_reports_a_stopped_database_server_and_resumes_when_it_is_back(
    tmp_path: Path, postgres: Postgres, postgres_url: str
) -> None:
    server = postgres
    with server.restarted(), deployment(tmp_path, postgres_url) as parts:
        collector = parts.collector
        collector.start()
        collector.wait_ready()
        parts.publish(0, 20)
        stored(parts, 20, "s1", "s2", "s3")
        server.stop()
        parts.publish(20, 60)
        busy(parts, 0)
        until(lambda: "the store cannot be written, readings wait" in collector.log)
        assert "does not answer" in collector.log
        assert server.password not in collector.log
        assert collector.alive
        server.start()
        until(lambda: well(collector), collector.log)
        parts.device.insist(parts.frames(0, 60, "s4"))
        stored(parts, 60)
        until(lambda: parts.left() == 0)


def fill(parts: Deployment) -> int:
    """Send readings by HTTP until the disk is full; returns how many frames were acknowledged."""
    for first in range(0, 100_000, 400):
        answer = parts.device.post(parts.frames(first, first + 400, "s4"))
        if answer.status == 429:
            time.sleep(float(answer.headers["retry-after"]))
            answer = parts.device.post(parts.frames(first, first + 400, "s4"))
        if answer.status != 200:
            assert answer.status == 503
            assert int(answer.headers["retry-after"]) > 0
            return first
    raise AssertionError("the disk did not fill up")


def full_and_free(parts: Deployment, disk: Path) -> None:
    """From a full disk to one with room again."""
    collector = parts.collector
    collector.start()
    collector.wait_ready()
    ballast, room = disk / "ballast", os.statvfs(disk)
    ballast.write_bytes(bytes(room.f_bavail * room.f_frsize - ROOM))
    acknowledged = fill(parts)
    assert acknowledged > 0
    parts.publish(0, 200)
    until(lambda: says(collector, "store", "the disk is full"), collector.log)
    assert "the disk is full" in collector.log
    ballast.unlink()
    until(lambda: well(collector), collector.log)
    # readings by HTTP that were refused can be there as well, so that their number says nothing
    until(lambda: set(parts.expected(200, "s1", "s2", "s3")) <= set(parts.stored()), collector.log)
    rows = parts.stored()
    assert len(rows) == len(set(rows))
    assert set(parts.expected(acknowledged, "s4")) <= set(rows)
    assert parts.device.post(parts.frames(acknowledged, acknowledged + 20, "s4")).status == 200
    assert "the store can be written again" in collector.log


def test_a_collector_reports_a_full_disk_and_resumes_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 6) as disk, deployment(tmp_path, f"sqlite:///{disk / 'store.db'}") as parts:
        full_and_free(parts, disk)


def test_a_collector_reports_a_full_disk_of_the_database_server_and_resumes(tmp_path: Path, postgres: Postgres) -> None:
    owner = postgres.data.stat()
    with small_disk(postgres.folder / "small", 14, uid=owner.st_uid, gid=owner.st_gid, mode=700) as disk:
        (disk / "space").mkdir(mode=0o700)
        os.chown(disk / "space", owner.st_uid, owner.st_gid)
        postgres.execute(f"CREATE TABLESPACE narrow LOCATION '{disk / 'space'}'")
        postgres.execute("CREATE DATABASE narrow TABLESPACE narrow")
        try:
            with deployment(tmp_path, postgres.url("narrow")) as parts:
                full_and_free(parts, disk)
        finally:
            postgres.execute("DROP DATABASE narrow WITH (FORCE)")
            postgres.execute("DROP TABLESPACE narrow")


def test_a_stopping_collector_stores_acknowledged_readings_and_leaves_the_rest_to_the_broker(
    tmp_path: Path, sqlite_url: str
) -> None:
    with deployment(tmp_path, sqlite_url) as parts:
        collector = parts.collector
        collector.start()
        for turn in range(3):
            collector.wait_ready()
            parts.publish(200 * turn, 200 * turn + 200)
            collector.kill(signal.SIGTERM)  # in the middle
            assert collector.log.count("stopped\n") == turn + 1
            collector.start()
        stored(parts, 600, "s1", "s2", "s3")
        health = collector.wait_ready()
        again = [problem for problem in health["problems"] if problem["reason"].startswith("duplicate")]
        assert again == [], "it acknowledged all that it had stored before it ended"
