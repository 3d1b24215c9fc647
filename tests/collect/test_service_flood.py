"""A device that sends as fast as it can does not keep the others from being heard."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cloakwork.collect.storage import Role, open_store
from tests.collect.collector_process import HttpClient
from tests.collect.deployment import Deployment, deployment
from tests.waiting import PATIENCE, until


@contextmanager
def flooding(threads: int, call: Callable[[int], object]) -> Iterator[None]:
    """Call as often as possible, from several threads, while the block runs."""
    stop = threading.Event()

    def work(number: int) -> None:
        turn = 0
        while not stop.is_set():
            call(threads * turn + number)
            turn += 1

    crowd = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for one in crowd:
        one.start()
    try:
        yield
    finally:
        stop.set()
        for one in crowd:
            one.join(PATIENCE)


def answers(parts: Deployment, client: HttpClient, flood: Counter[int]) -> list[int]:
    """The answers to a well-behaved device that sends ten readings during a flood of at least a hundred requests."""
    until(lambda: flood.total() > 20)
    statuses = [client.post(parts.frames(k, k + 1, "s3")).status for k in range(10)]
    until(lambda: flood.total() > 100)
    return statuses


@contextmanager
def two_devices(folder: Path, url: str) -> Iterator[tuple[Deployment, HttpClient]]:
    with deployment(folder, url) as parts:
        with open_store(url) as store:
            other = HttpClient(parts.device.port, store.tokens.create(Role.DEVICE, "hall", "s3").secret)
        parts.collector.start()
        parts.collector.wait_ready()
        yield parts, other


def test_a_device_that_floods_http_does_not_keep_another_out(tmp_path: Path, sqlite_url: str) -> None:
    with two_devices(tmp_path, sqlite_url) as (parts, other):
        statuses: Counter[int] = Counter()
        with flooding(8, lambda k: statuses.update([parts.device.post(parts.frames(k, k + 20, "s4")).status])):
            said = answers(parts, other, statuses)
        assert set(said) == {200}
        assert set(statuses) <= {200, 429}
        with open_store(sqlite_url) as store:
            kept = list(store.readings.page("hall", sensor="s3").items)
        assert len(kept) == len(said)


def test_a_flood_of_wrong_tokens_does_not_keep_a_device_out(tmp_path: Path, sqlite_url: str) -> None:
    with two_devices(tmp_path, sqlite_url) as (parts, other):
        guesser = HttpClient(other.port, "cw_" + "x" * 43)
        assert other.post(parts.frames(0, 1, "s3")).status == 200
        statuses: Counter[int] = Counter()
        with flooding(4, lambda _: statuses.update([guesser.post(parts.frames(0, 1, "s3")).status])):
            said = answers(parts, other, statuses)
        assert set(said) == {200}
        assert set(statuses) == {401}


def test_readings_of_others_come_through_a_burst_of_one_device_at_the_broker(tmp_path: Path, sqlite_url: str) -> None:
    """Thousands wait in one queue with the others, which are late by the time it takes to store the burst."""
    with deployment(tmp_path, sqlite_url) as parts:
        parts.collector.start()
        parts.collector.wait_ready()
        burst = threading.Thread(target=parts.devices["s1"].publish, args=(parts.frames(0, 3_000, "s1"),))
        burst.start()
        parts.devices["s2"].publish(parts.frames(0, 50, "s2"))
        burst.join(PATIENCE)
        until(lambda: parts.count() == 3_050)
        assert parts.stored() == sorted(parts.expected(3_000, "s1") + parts.expected(50, "s2"))
