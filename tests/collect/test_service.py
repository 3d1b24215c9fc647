"""The collector as one object: what starts ends, and what fails to start leaves nothing behind."""

import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from cloakwork.collect.collected_site import CollectedSite
from cloakwork.collect.service import ListenAddress, Service
from cloakwork.collect.site_queue import SiteQueue
from cloakwork.collect.storage import Role, Store
from cloakwork.collect.storage.reading_table import FrameTable
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress
from tests.collect.collector_process import SITE, HttpClient
from tests.collect.small_sites import make, moment, readings
from tests.collect.store_rows import result
from tests.ports import free_port
from tests.waiting import until


@pytest.fixture
def watched(tmp_path: Path) -> CollectedSite:
    return make(tmp_path, SITE)


def ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("cloakwork")]


def test_a_reading_by_http_becomes_a_result_and_all_ends_with_stop(watched: CollectedSite, store: Store) -> None:
    service = Service({"hall": watched}, store, broker=None, listen=ListenAddress(port=0), keep_days=1e6)
    with pytest.raises(RuntimeError, match="not started"):
        assert service.url
    service.start()
    port = int(service.url.rsplit(":", 1)[1])
    assert not service.failed
    for row in readings(watched, 0):
        device = HttpClient(port, store.tokens.create(Role.DEVICE, "hall", row.sensor).secret)
        assert device.post([row]).body == {"accepted": 1, "again": 0, "alarms": 0}
    until(lambda: store.results.latest("hall"))
    service.stop()
    assert ours() == []
    with pytest.raises(OSError, match="refused"):
        HttpClient(port, "").ask("GET", "/healthz")
    service.stop()  # harmless
    assert store.results.latest("hall") is not None, "the store is still the caller's"


def test_a_service_that_fails_to_start_leaves_nothing_running_and_can_start_later(
    watched: CollectedSite, store: Store
) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        service = Service(
            {"hall": watched}, store, broker=BrokerAddress("localhost", 1), listen=ListenAddress(port=port)
        )
        with pytest.raises(InputError, match=str(port)):
            service.start()
        assert ours() == []
    service = Service({"hall": watched}, store, broker=BrokerAddress("localhost", 1), listen=ListenAddress(port=port))
    service.start()
    assert HttpClient(port, "").ask("GET", "/healthz").body == {"status": "ok"}
    until(lambda: service.subscriber and "cannot be reached" in service.subscriber.state.reason)
    service.stop()
    assert ours() == []


def test_a_server_that_ends_on_its_own_is_noticed(watched: CollectedSite, store: Store) -> None:
    service = Service({"hall": watched}, store, broker=None, listen=ListenAddress(port=0))
    service.start()
    service._server.should_exit = True  # noqa: SLF001 - as a fault of it would
    until(lambda: service.failed)
    service.stop()


class OutgrownFrames(FrameTable):
    """Frames that have grown since they were recovered."""

    def __init__(self, times: Sequence[int]) -> None:
        self.left = set(times)

    def unsolved(self, site: str, limit: int = 100, *, newest_first: bool = True) -> list[int]:  # noqa: ARG002
        return []

    def outgrown(self, site: str, limit: int = 100, *, newest_first: bool = True) -> list[int]:  # noqa: ARG002
        return sorted(self.left, reverse=newest_first)[:limit]


@pytest.mark.parametrize("count", [5, 1000, 3500])
def test_all_outgrown_frames_are_queued_before_the_next_pause(
    watched: CollectedSite, sqlite_store: Store, count: int
) -> None:
    frames = sqlite_store.frames = OutgrownFrames([moment(watched, number) for number in range(count)])
    queue = SiteQueue(watched, wait=1.0, backlog=1000, clock=lambda: 0)
    wall = moment(watched, count + 100)
    looks = 0
    while queue.check_at <= 5.0:
        queue.find_missed(sqlite_store, 5.0, wall, 60.0)
        looks += 1
        assert looks < 20
        while times := queue.take(5.0, 1.0):
            frames.left -= set(times)
    assert frames.left == set()
    assert queue.check_at == 65.0


def test_frames_dropped_for_newer_ones_do_not_count_as_tried(watched: CollectedSite, sqlite_store: Store) -> None:
    frames = sqlite_store.frames = OutgrownFrames([moment(watched, number) for number in range(5)])
    queue = SiteQueue(watched, wait=1.0, backlog=5, clock=lambda: 0)
    queue.find_missed(sqlite_store, 5.0, moment(watched, 100), 60.0)
    for number in (5, 6):  # while those of the store wait
        for sensor in range(len(watched.ids)):
            queue.frames.add(moment(watched, number), sensor, 5.0)
    for _ in range(2):
        while times := queue.take(5.0, 1.0):
            frames.left -= set(times)
            queue.count([result(time=when) for when in times], 0.1, 5.0)
        queue.find_missed(sqlite_store, 5.0, moment(watched, 100), 60.0)
    assert frames.left == set()


def test_a_clock_that_was_ahead_and_is_set_right_leaves_no_frame_behind_that_is_the_newest_for_hours(
    watched: CollectedSite,
) -> None:
    period, wrong = watched.schedule.period_ms, 3_600_000
    clock = [moment(watched, 0) + wrong]
    queue = SiteQueue(watched, wait=1.0, backlog=100, clock=lambda: clock[0])
    queue.count([result(time=clock[0])], 0.01, 5.0)
    clock[0] -= wrong
    for number in (1, 2):
        clock[0] += period
        queue.count([result(time=moment(watched, number))], 0.01, 5.0)
    assert queue.newest == moment(watched, 2)
    assert queue.state(5.0, clock[0], "").lag_ms == 0
    queue.count([result(time=moment(watched, -9))], 0.01, 5.0)
    assert queue.newest == moment(watched, 2), "an old one that is late is not the newest"
    queue.backlog.add({moment(watched, number): True for number in (-3, -2, 3)})
    assert queue.take(5.0, 1.0) == [moment(watched, number) for number in (-3, -2, 3)], "in the order of time"


def test_results_that_the_store_dropped_do_not_count(watched: CollectedSite) -> None:
    queue = SiteQueue(watched, wait=1.0, backlog=100, clock=lambda: moment(watched, 9))
    times = [moment(watched, number) for number in range(3)]
    queue.count([result(time=when) for when in times], 0.3, 5.0, dropped={times[0], times[2]})
    lag = queue.state(5.0, moment(watched, 9), "")
    assert (lag.solved, queue.newest) == (1, times[1])
    assert lag.per_second == pytest.approx(1 / 60)
    queue.count([result(time=times[2])], 0.3, 5.0, dropped={times[2]})
    assert (queue.state(5.0, 0, "").solved, queue.newest) == (1, times[1])
