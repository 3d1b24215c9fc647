"""Limits: rates, sizes, times, and requests at once."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloakwork.collect.api import ApiSettings
from cloakwork.collect.api.capacity import ConcurrencyLimiter, RateLimiter
from cloakwork.collect.connection_limits import address_of
from cloakwork.collect.storage import Reading, ReadingStatus
from cloakwork.errors import ApiError
from tests.collect.api_kit import PLAIN, Bench, bench, reading, served
from tests.waiting import PATIENCE, until


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@given(steps=st.lists(st.tuples(st.floats(0, 3), st.floats(0.1, 5)), max_size=60))
def test_a_bucket_never_gives_more_than_its_burst_and_rate(steps: list[tuple[float, float]]) -> None:
    clock = Clock()
    buckets = RateLimiter(rate=2.0, burst=5.0, clock=clock)
    given_out = 0.0
    for pause, amount in steps:
        clock.now += pause
        if buckets.take("a", amount) == 0:
            given_out += amount
        assert given_out <= 5.0 + 2.0 * (clock.now - 100.0) + 1e-9


def test_a_bucket_returns_the_waiting_time_and_keys_are_independent() -> None:
    clock = Clock()
    buckets = RateLimiter(rate=2.0, burst=4.0, clock=clock)
    assert buckets.take("a", 4.0) == 0
    assert buckets.take("a") == pytest.approx(0.5)
    assert buckets.take("b") == 0
    clock.now += 0.5
    assert buckets.wait("a") == 0
    assert buckets.take("a") == 0
    assert buckets.take("big", 10.0) == 0  # more than a bucket holds: served once, and paid for afterwards
    assert buckets.take("big") == pytest.approx(3.5)


def test_the_memory_of_buckets_is_bounded() -> None:
    buckets = RateLimiter(rate=1.0, burst=1.0, most=100, clock=Clock())
    for k in range(1000):
        buckets.take(str(k))
    assert len(buckets) == 100
    assert buckets.take("999") > 0, "the last one is still known"


def test_requests_at_once_are_limited() -> None:
    at_once = ConcurrencyLimiter()
    with at_once.hold("a", 2), at_once.hold("a", 2), at_once.hold("b", 2), pytest.raises(ApiError, match="under way"):
        at_once.hold("a", 2).__enter__()
    with at_once.hold("a", 1):
        pass


def test_addresses_of_one_customer_count_as_one() -> None:
    def seen(host: str) -> str:
        return address_of((host, 1))

    assert seen("2001:db8:1:2::1") == seen("2001:db8:1:2:ffff::9") != seen("2001:db8:1:3::1")
    assert seen("192.0.2.1") != seen("192.0.2.2")
    assert seen("::ffff:192.0.2.1") != seen("::ffff:192.0.2.2")
    assert address_of(None) == ""
    assert len(seen("x" * 1000)) == 64


def test_a_device_that_floods_gets_429_while_others_are_served(tmp_path: Path) -> None:
    with bench(tmp_path, ApiSettings(device_rate=0.001, device_burst=5.0)) as made:
        statuses = Counter(
            made.client.post("/v1/readings", json=reading(k), headers=made.bearer("device")).status_code
            for k in range(30)
        )
        assert statuses == {200: 5, 429: 25}
        refused = made.client.post("/v1/readings", json=reading(99), headers=made.bearer("device"))
        assert refused.json()["error"]["code"] == "too-many"
        assert int(refused.headers["retry-after"]) >= 1
        other = made.client.post("/v1/readings", json=reading(1, sensor="s2"), headers=made.bearer("other"))
        assert other.status_code == 200
        assert made.client.get("/v1/sites", headers=made.bearer("analyst")).status_code == 200
        forbidden = made.client.get("/v1/sites", headers=made.bearer("device"))
        assert forbidden.status_code == 429, "what a device may not do counts as well"


def test_a_batch_counts_for_its_readings(tmp_path: Path) -> None:
    with bench(tmp_path, ApiSettings(device_rate=0.001, device_burst=10.0, readings_per_request=20)) as made:
        batch = [reading(k) for k in range(100)]
        assert made.client.post("/v1/readings", json=batch, headers=made.bearer("device")).status_code == 200
        assert made.client.post("/v1/readings", json=batch, headers=made.bearer("device")).status_code == 200
        assert made.client.post("/v1/readings", json=reading(), headers=made.bearer("device")).status_code == 429
        assert len(made.store.readings.page("hall").items) == 100


@contextmanager
def stuck(made: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A store that takes in nothing of sensor s1 until told to."""
    release = threading.Event()
    usual = made.intake.submit

    def submit(rows: list[Reading]) -> list[ReadingStatus]:
        if rows[0].sensor == "s1":
            release.wait(PATIENCE)
        return usual(rows)

    monkeypatch.setattr(made.intake, "submit", submit)
    try:
        yield release
    finally:
        release.set()


def test_a_device_whose_requests_pile_up_does_not_block_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as (made, address), stuck(made, monkeypatch) as release:
        statuses: list[int] = []

        def send(seq: int) -> None:
            headers = made.bearer("device")
            answer = httpx2.post(
                f"{address}/v1/readings", json=reading(seq), headers=headers, verify=PLAIN, timeout=PATIENCE
            )
            statuses.append(answer.status_code)

        threads = [threading.Thread(target=send, args=(k,)) for k in range(20)]
        for thread in threads:
            thread.start()
        until(lambda: len(statuses) >= 12)
        assert Counter(statuses) == {429: 12}, "eight wait, the others are told to"
        other = httpx2.post(
            f"{address}/v1/readings",
            json=reading(1, sensor="s2"),
            headers=made.bearer("other"),
            verify=PLAIN,
            timeout=PATIENCE,
        )
        assert other.status_code == 200
        reader = httpx2.get(f"{address}/v1/sites", headers=made.bearer("analyst"), verify=PLAIN, timeout=PATIENCE)
        assert reader.status_code == 200
        release.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert Counter(statuses) == {429: 12, 200: 8}


def test_a_body_declared_too_large_is_refused_unread(tmp_path: Path) -> None:
    with served(tmp_path) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            link.sendall(_head(made, "Content-Length: 2000000"))
            answer = _answer(link)
        assert answer.startswith(b"HTTP/1.1 413")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "too-large"


def test_a_body_that_grows_too_large_is_refused_while_it_is_read(tmp_path: Path) -> None:
    with served(tmp_path, ApiSettings(body_bytes=100_000)) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            link.sendall(_head(made, "Transfer-Encoding: chunked"))
            piece = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
            for _ in range(4):  # more than is allowed, and there is no end of it yet
                link.sendall(piece)
            answer = _answer(link)
        assert answer.startswith(b"HTTP/1.1 413")


def test_a_request_with_two_lengths_is_refused_and_its_connection_closed(tmp_path: Path) -> None:
    with served(tmp_path) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            link.sendall(_head(made, "Content-Length: 5\r\nTransfer-Encoding: chunked") + b"0\r\n\r\n")
            answer = _answer(link)
        assert answer.startswith(b"HTTP/1.1 400")
        assert b"connection: close" in answer.lower()


def test_a_body_that_does_not_arrive_times_out(tmp_path: Path) -> None:
    with served(tmp_path, ApiSettings(body_s=0.2)) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            link.sendall(_head(made, "Content-Length: 50") + b'{"v":1,')
            assert _answer(link).startswith(b"HTTP/1.1 408")


def test_without_a_token_no_body_is_read(tmp_path: Path) -> None:
    with served(tmp_path) as (made, address):
        host = urlsplit(address)
        with socket.create_connection((host.hostname, host.port), timeout=PATIENCE) as link:
            link.sendall(_head(made, "Content-Length: 50", who="anonymous"))
            assert _answer(link).startswith(b"HTTP/1.1 401")


def _head(made: Bench, length: str, who: str = "device") -> bytes:
    lines = ["POST /v1/readings HTTP/1.1", "Host: localhost", "Content-Type: application/json", length]
    lines += [f"{name}: {value}" for name, value in made.bearer(who).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _answer(link: socket.socket) -> bytes:
    """All of an answer, whose body is in one piece with a length."""
    found = b""
    while b"\r\n\r\n" not in found or not found.endswith(b"}"):
        piece = link.recv(4096)
        if not piece:
            break
        found += piece
    return found
