"""The collector as one object: what starts ends, and what fails to start leaves nothing behind."""

import socket
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cloakwork.collect.desk import Desk
from cloakwork.collect.place import Watched
from cloakwork.collect.records import Result, Role
from cloakwork.collect.service import Listen, Service
from cloakwork.collect.store import Store
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress
from tests.collect.live_kit import make, moment, readings
from tests.collect.process_kit import SITE, Door, until
from tests.collect.rows import result
from tests.ports import free_port


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return make(tmp_path, SITE)


def ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("cloakwork")]


def test_a_reading_by_http_becomes_a_result_and_all_ends_with_stop(watched: Watched, store: Store) -> None:
    service = Service({"hall": watched}, store, broker=None, listen=Listen(port=0), keep_days=1e6)
    with pytest.raises(RuntimeError, match="not started"):
        assert service.url
    service.start()
    port = int(service.url.rsplit(":", 1)[1])
    assert not service.failed
    for row in readings(watched, 0):
        device = Door(port, store.new_token(Role.DEVICE, "hall", row.sensor).secret)
        assert device.post([row]).body == {"accepted": 1, "again": 0, "alarms": 0}
    until(lambda: store.latest("hall"))
    service.stop()
    assert ours() == []
    with pytest.raises(OSError, match="refused"):
        Door(port, "").ask("GET", "/healthz")
    service.stop()  # harmless
    assert store.latest("hall") is not None, "the store is still the caller's"


def test_what_fails_to_start_leaves_nothing_running_and_can_start_later(watched: Watched, store: Store) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        service = Service({"hall": watched}, store, broker=BrokerAddress("localhost", 1), listen=Listen(port=port))
        with pytest.raises(InputError, match="Address already in use"):
            service.start()
        assert ours() == []
    service = Service({"hall": watched}, store, broker=BrokerAddress("localhost", 1), listen=Listen(port=port))
    service.start()
    assert Door(port, "").ask("GET", "/healthz").body == {"status": "ok"}
    until(lambda: service.subscriber and "cannot be reached" in service.subscriber.state.reason)
    service.stop()
    assert ours() == []


def test_a_server_that_ends_by_itself_is_noticed(watched: Watched, store: Store) -> None:
    service = Service({"hall": watched}, store, broker=None, listen=Listen(port=0))
    service.start()
    service._server.should_exit = True  # noqa: SLF001 - as a fault of it would
    until(lambda: service.failed)
    service.stop()


class Shelf:
    """A store with frames that have grown since they were recovered."""

    def __init__(self, times: Sequence[int]) -> None:
        self.left = set(times)

    def unsolved(self, site: str, limit: int = 100, newest_first: bool = True) -> list[int]:  # noqa: ARG002
        return []

    def outgrown(self, site: str, limit: int = 100, newest_first: bool = True) -> list[int]:  # noqa: ARG002
        return sorted(self.left, reverse=newest_first)[:limit]

    def frames(self, site: str, times: Sequence[int]) -> dict[int, dict[str, int]]:
        raise NotImplementedError

    def save_results(self, results: Sequence[Result], *, made_from: Mapping[int, Mapping[str, int]]) -> int:
        raise NotImplementedError

    def result(self, site: str, time: int) -> Result | None:
        raise NotImplementedError


@pytest.mark.parametrize("count", [5, 1000, 3500])
def test_however_many_frames_have_grown_all_are_recovered_before_the_next_pause(watched: Watched, count: int) -> None:
    shelf = Shelf([moment(watched, number) for number in range(count)])
    desk = Desk(watched, wait=1.0, backlog=1000, clock=lambda: 0)
    wall = moment(watched, count + 100)
    looks = 0
    while desk.look_at <= 5.0:
        desk.look(shelf, 5.0, wall, 60.0)
        looks += 1
        assert looks < 20
        while times := desk.take(5.0, 1.0):
            shelf.left -= set(times)
    assert shelf.left == set()
    assert desk.look_at == 65.0


def test_what_newer_frames_push_out_does_not_count_as_tried(watched: Watched) -> None:
    shelf = Shelf([moment(watched, number) for number in range(5)])
    desk = Desk(watched, wait=1.0, backlog=5, clock=lambda: 0)
    desk.look(shelf, 5.0, moment(watched, 100), 60.0)
    for number in (5, 6):  # while those of the store wait
        for sensor in range(len(watched.ids)):
            desk.frames.add(moment(watched, number), sensor, 5.0)
    for _ in range(2):
        while times := desk.take(5.0, 1.0):
            shelf.left -= set(times)
            desk.count([result(time=when) for when in times], 0.1, 5.0)
        desk.look(shelf, 5.0, moment(watched, 100), 60.0)
    assert shelf.left == set()


def test_a_clock_that_was_ahead_and_is_set_right_leaves_no_frame_behind_that_is_the_newest_for_hours(
    watched: Watched,
) -> None:
    period, wrong = watched.schedule.period_ms, 3_600_000
    clock = [moment(watched, 0) + wrong]
    desk = Desk(watched, wait=1.0, backlog=100, clock=lambda: clock[0])
    desk.count([result(time=clock[0])], 0.01, 5.0)
    clock[0] -= wrong
    for number in (1, 2):
        clock[0] += period
        desk.count([result(time=moment(watched, number))], 0.01, 5.0)
    assert desk.newest == moment(watched, 2)
    assert desk.lag(5.0, clock[0], "").lag_ms == 0
    desk.count([result(time=moment(watched, -9))], 0.01, 5.0)
    assert desk.newest == moment(watched, 2), "an old one that is late is not the newest"
    desk.backlog.add((moment(watched, number), True) for number in (-3, -2, 3))
    assert desk.take(5.0, 1.0) == [moment(watched, 3)]


def test_results_that_the_store_dropped_do_not_count(watched: Watched) -> None:
    desk = Desk(watched, wait=1.0, backlog=100, clock=lambda: moment(watched, 9))
    times = [moment(watched, number) for number in range(3)]
    desk.count([result(time=when) for when in times], 0.3, 5.0, dropped={times[0], times[2]})
    lag = desk.lag(5.0, moment(watched, 9), "")
    assert (lag.solved, desk.newest) == (1, times[1])
    assert lag.per_second == pytest.approx(1 / 60)
    desk.count([result(time=times[2])], 0.3, 5.0, dropped={times[2]})
    assert (desk.lag(5.0, 0, "").solved, desk.newest) == (1, times[1])
