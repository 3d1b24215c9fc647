"""The wall clock of the collector's machine is set: nothing breaks, and nothing young is removed as too old."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cloakwork.collect.retention import ERASE_S, TRUST_S, Retention
from cloakwork.collect.storage import Erased, Reading, Role, Store, open_store
from cloakwork.collect.storage.readings import ReadingTable
from cloakwork.errors import StoreAwayError
from tests.collect.collector_process import HttpClient
from tests.collect.deployment import Deployment, deployment
from tests.collect.store_rows import SITE as FLAT
from tests.collect.store_rows import reading, report
from tests.waiting import until

SITES = {"a": {"a1", "a2"}, "b": {"b1", "b2"}}
HOUR, DAY, YEAR = 3600.0, 86_400.0, 365 * 86_400.0


class Clocks:
    """A wall clock that can be set, and one that never jumps."""

    def __init__(self) -> None:
        self.ran = 1000.0
        self.wrong = 0.0

    def wall(self) -> int:
        return round(1000 * (1_700_000_000 + self.ran + self.wrong))

    def steady(self) -> float:
        return self.ran


class FakeStore(Store):
    """A store with readings as (sensor, time, received) that records until when it was asked to erase."""

    def __init__(self, clocks: Clocks) -> None:
        self.readings = FakeReadings(self)
        self.clocks = clocks
        self.rows: list[tuple[str, int, int]] = []
        self.removed: list[tuple[str, int]] = []
        self.fails = False

    def erase_older(self, site: str, days: float) -> Erased:
        self.removed.append((site, self.clocks.wall() - round(days * DAY * 1000)))
        if self.fails:
            raise StoreAwayError("away")
        return Erased(1, 0, 0)

    def send(self, *sensors: str, when: int) -> None:
        self.rows += [(sensor, when, self.clocks.wall()) for sensor in sensors]


class FakeReadings(ReadingTable):
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def counts(self, site: str, since: int, until: int, *, received: int) -> dict[str, int]:
        if self._store.fails:
            raise StoreAwayError("away")
        rows = [row for row in self._store.rows if row[0][0] == site and row[2] >= received]
        return {name: 1 for name, when, _ in rows if since <= when < until}


class Bench:
    def __init__(self) -> None:
        self.clocks = Clocks()
        self.fake_store = FakeStore(self.clocks)
        self.retention = Retention(self.fake_store, SITES, 10, clock=self.clocks.wall, steady=self.clocks.steady)

    def pass_time(self, seconds: float, *, sending: tuple[str, ...] = ("a1", "b1")) -> None:
        """Let devices send, and retention look, every few minutes."""
        for _ in range(round(seconds / 300)):
            self.clocks.ran += 300
            self.fake_store.send(*sending, when=round(1000 * (1_700_000_000 + self.clocks.ran)))
            self.retention.check()


def test_old_data_is_removed_at_the_start_and_every_hour_while_devices_agree_with_the_clock() -> None:
    bench = Bench()
    bench.fake_store.send("a2", "b1", when=bench.clocks.wall())
    bench.retention.check()
    assert [site for site, _ in bench.fake_store.removed] == ["a", "b"]
    bench.pass_time(5 * ERASE_S)
    assert len(bench.fake_store.removed) == 2 * 6


@pytest.mark.parametrize("wrong", [DAY, YEAR, 40 * YEAR])
def test_a_clock_that_jumps_ahead_removes_nothing_that_is_young(wrong: float, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.pass_time(ERASE_S)
    before = list(bench.fake_store.removed)
    bench.clocks.wrong = wrong
    bench.pass_time(0.9 * TRUST_S)
    assert bench.fake_store.removed == before
    assert f"the clock of this machine jumped by +{wrong:.0f} s" in caplog.text
    assert caplog.text.count("a: nothing is removed for its age yet") == 1
    bench.clocks.wrong = 0
    bench.pass_time(ERASE_S)
    assert len(bench.fake_store.removed) > len(before)
    assert all(until <= 1000 * (1_700_000_000 + bench.clocks.ran - 10 * DAY) for _, until in bench.fake_store.removed)


def test_a_clock_that_is_wrong_from_the_start_removes_nothing() -> None:
    bench = Bench()
    bench.clocks.wrong = YEAR
    bench.retention = Retention(bench.fake_store, SITES, 10, clock=bench.clocks.wall, steady=bench.clocks.steady)
    bench.pass_time(0.9 * TRUST_S)
    assert bench.fake_store.removed == []


def test_old_data_is_removed_after_a_day_where_no_device_sends() -> None:
    bench = Bench()
    bench.pass_time(TRUST_S - 600, sending=())
    assert bench.fake_store.removed == []
    bench.pass_time(ERASE_S, sending=())
    assert [site for site, _ in bench.fake_store.removed] == ["a", "b"]


def test_readings_that_came_before_the_clock_jumped_prove_nothing() -> None:
    """A device may send any time: one that waits in the store for the clock to be put wrong must not decide."""
    bench = Bench()
    bench.pass_time(ERASE_S)
    before = list(bench.fake_store.removed)
    bench.fake_store.send("a1", "a2", "b1", "b2", when=bench.clocks.wall() + round(1000 * YEAR))
    bench.clocks.wrong = YEAR
    bench.pass_time(2 * ERASE_S)
    assert bench.fake_store.removed == before


def test_a_report_from_when_the_clock_was_ahead_gives_way(store: Store) -> None:
    store.reports.add([report(state="spent", used=9, received=reading(frame=90_000).time)])
    store.reports.add([report(used=3, received=reading(frame=5).time)])
    assert [(one.state, one.used) for one in store.reports.latest(FLAT)] == [("online", 3)]
    store.reports.add([report(used=2, received=reading(frame=4).time)])
    assert [one.used for one in store.reports.latest(FLAT)] == [3], "a second late is another matter: it was overtaken"


@contextmanager
def running(folder: Path, url: str, *words: str) -> Iterator[Deployment]:
    with deployment(folder, url, *words, sensors=("s1", "s2", "s3", "s4")) as parts:
        parts.collector.start()
        parts.collector.wait_ready()
        yield parts


def now_frame(parts: Deployment, number: int) -> list[Reading]:
    """A frame of the slot that is now, by the true clock."""
    period = parts.watched.schedule.period_ms
    when = int(time.time() * 1000) // period * period
    came = when + 20
    rows = parts.frames(number, number + 1)
    return [row._replace(time=when, seq=when // period * 10 + number, received=came) for row in rows]


def send(parts: Deployment, number: int) -> int:
    """Send a frame of now, over the broker; its time."""
    rows = now_frame(parts, number)
    for row in rows:
        parts.devices[row.sensor].publish([row])
    return rows[0].time


def recovered(parts: Deployment, when: int) -> bool:
    with open_store(parts.url) as store:
        result = store.results.get("hall", when)
    return result is not None and result.sensors == 4


def next_slot(parts: Deployment) -> None:
    period = parts.watched.schedule.period_ms / 1000
    time.sleep(period - time.time() % period + 0.01)


@pytest.mark.parametrize("wrong", [-HOUR, YEAR])
def test_a_clock_that_is_set_while_it_works_breaks_neither_frames_nor_tokens_nor_sessions(
    tmp_path: Path, sqlite_url: str, wrong: float
) -> None:
    with running(tmp_path, sqlite_url, "--keep", "10d") as parts:
        client = parts.collector.client
        before = send(parts, 0)
        until(lambda: recovered(parts, before))
        session = Session(client)
        next_slot(parts)
        parts.fork_server.set_clock(wrong)
        after = send(parts, 1)
        until(lambda: recovered(parts, after), parts.collector.log)
        assert session.works()
        assert client.health()["store"]["state"] == "ok"
        next_slot(parts)
        parts.fork_server.set_clock(0)
        last = send(parts, 2)
        until(lambda: recovered(parts, last), parts.collector.log)
        assert session.works()
        with open_store(parts.url) as store:
            made = store.tokens.create(Role.ANALYST).secret
        assert HttpClient(client.port, made).ask("GET", "/v1/sites").status == 200
        assert parts.count() == 12


def test_a_collector_whose_clock_is_more_than_a_day_behind_recovers_all_when_it_is_set_right(
    tmp_path: Path, sqlite_url: str
) -> None:
    """Meanwhile all readings are of a time far ahead for it: stored, counted, and not recovered yet."""
    with running(tmp_path, sqlite_url) as parts:
        parts.fork_server.set_clock(-2 * DAY)
        when = send(parts, 0)
        until(lambda: parts.count() == 4)
        until(lambda: [one for one in parts.collector.client.health()["problems"] if "clock wrong" in one["reason"]])
        parts.fork_server.set_clock(0)
        parts.collector.kill()
        parts.collector.start()
        until(lambda: recovered(parts, when), parts.collector.log)


class Session:
    """A browser that has signed in."""

    def __init__(self, client: HttpClient) -> None:
        self._door = client
        answer = client.ask("POST", "/v1/session", {"token": client.secret})
        assert answer.status == 200
        self._cookie = answer.headers["set-cookie"].split(";")[0]

    def works(self) -> bool:
        return self._door.ask("GET", "/v1/session", cookie=self._cookie).status == 200
