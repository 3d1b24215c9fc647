"""Idle connections are closed, and connections are limited."""

import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from cloakwork.collect.api import ApiSettings
from cloakwork.collect.service import ListenAddress, Service
from cloakwork.collect.storage import Role, open_store
from tests.broker import make_certificates
from tests.collect.api_kit import PLAIN, watched
from tests.waiting import PATIENCE, until

QUICK = ApiSettings(head_s=0.5, read_s=0.5)
SLOW = replace(QUICK, head_s=60.0)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@contextmanager
def serving(
    folder: Path, settings: ApiSettings = QUICK, listen: ListenAddress | None = None
) -> Iterator[tuple[Service, int]]:
    with open_store(str(folder / "store.db")) as store:
        service = Service(
            {"hall": watched()}, store, broker=None, listen=listen or ListenAddress(port=0), settings=settings
        )
        service.start()
        try:
            yield service, urlsplit(service.url).port or 0
        finally:
            service.stop()


def connect(port: int, source: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=(source, 0))


def gone(link: socket.socket, seconds: float = PATIENCE) -> bool:
    """Whether the other side ends the connection; what it says before is read."""
    link.settimeout(seconds)
    try:
        while link.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def answered(link: socket.socket, times: int = 1) -> bool:
    """Whether so many answers come that all is well."""
    told = b""
    while told.count(b'{"status":"ok"}') < times:
        piece = link.recv(65536)
        if not piece:
            return False
        told += piece
    return told.count(b"HTTP/1.1 200") == times


def whole_answer(link: socket.socket) -> bytes:
    """An answer whose body is a list."""
    told = b""
    while not told.endswith(b"}]"):
        piece = link.recv(65536)
        assert piece, "the connection has ended"
        told += piece
    return told


def wait_inside(service: Service, count: int) -> None:
    """Until the server counts so many: it notices a moment later that someone has come, or gone."""
    until(lambda: len(service._connections) == count)  # noqa: SLF001 - from outside it cannot be seen


def hold(
    stack: ExitStack,
    service: Service,
    port: int,
    count: int,
    *,
    beside: int = 0,
    source: str = "127.0.0.1",
    after: int | None = None,
) -> list[socket.socket]:
    """So many connections that say nothing, beside those that are held already; `after` of them are left in all."""
    wait_inside(service, beside)
    held = [stack.enter_context(connect(port, source)) for _ in range(count)]
    wait_inside(service, beside + count if after is None else after)
    return held


def asks(port: int, source: str = "127.0.0.1") -> bool:
    """Whether a request from an address is served."""
    try:
        with connect(port, source) as link:
            link.sendall(HEALTH)
            return answered(link)
    except OSError:
        return False


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-", HEALTH + b"GET /he"])
def test_a_connection_without_a_request_is_closed(tmp_path: Path, said: bytes) -> None:
    with serving(tmp_path) as (_, port), ExitStack() as stack:
        links = [stack.enter_context(connect(port)) for _ in range(30)]
        for link in links:
            link.sendall(said)
        assert all(gone(link) for link in links)
        until(lambda: asks(port))


@pytest.mark.parametrize(
    "head", [b"", b"POST /v1/readings HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n"], ids=["head", "body"]
)
def test_a_request_that_trickles_in_is_cut_off(tmp_path: Path, head: bytes) -> None:
    """Of the second the answer, that a token is needed, is long written while its body still comes."""
    with serving(tmp_path) as (_, port), connect(port) as link:
        link.sendall(head)
        began = time.monotonic()
        ended = False
        while not ended and time.monotonic() < began + 60:
            try:
                link.sendall(b"G")
                time.sleep(0.02)
            except OSError:
                ended = True
        assert ended


def test_a_request_may_take_longer_than_its_head_and_connections_are_used_again(tmp_path: Path) -> None:
    with serving(tmp_path) as (service, port), httpx2.Client(verify=PLAIN, base_url=service.url) as client:
        token = service.store.tokens.create(Role.ANALYST).secret
        with client.stream("GET", "/v1/events", headers={"Authorization": f"Bearer {token}"}) as stream:
            assert stream.status_code == 200
            lines = stream.iter_lines()
            assert next(lines).startswith("retry")
            time.sleep(3 * QUICK.head_s)
            service._hub.end_soon()  # noqa: SLF001 - as when it stops
            assert any(line == "event: end" for line in lines)
        until(lambda: uses_again(port))


def uses_again(port: int) -> bool:
    """Whether one connection serves request after request; False if this machine was too slow to ask in time."""
    with connect(port) as link:
        try:
            for times in (1, 1, 1, 1, 1, 3):
                began = time.monotonic()
                link.sendall(times * HEALTH)
                served = answered(link, times)
                time.sleep(0.2)
                if time.monotonic() > began + QUICK.head_s:
                    return False
                assert served
        except OSError:
            assert time.monotonic() > began + QUICK.head_s, "it was ended although the next request came in time"
            return False
    return True


def test_a_client_that_does_not_read_responses_is_disconnected(tmp_path: Path) -> None:
    with serving(tmp_path) as (service, port), connect(port) as link:
        ask = b"GET /static/style.css HTTP/1.1\r\nHost: x\r\n\r\n"
        link.settimeout(0.2)
        end, ended = time.monotonic() + PATIENCE, False
        while not ended and time.monotonic() < end:
            try:
                link.sendall(200 * ask)
            except TimeoutError:
                continue
            except OSError:
                ended = True
        assert ended
        assert not service.failed


def test_a_newcomer_takes_the_place_of_the_address_with_the_most_connections(tmp_path: Path) -> None:
    with (
        serving(tmp_path, replace(SLOW, connections=10, connections_per_address=6)) as (service, port),
        ExitStack() as stack,
    ):
        many = hold(stack, service, port, 6)
        few = hold(stack, service, port, 4, beside=6, source="127.0.0.3")
        assert asks(port, "127.0.0.2")
        assert gone(many[0])
        assert not gone(few[0], 0.1)
        hold(stack, service, port, 3, beside=9, source="127.0.0.5", after=10)
        assert gone(many[1])
        assert gone(many[2])
        assert not gone(few[0], 0.1), "all three have four or fewer by now"


def test_a_client_with_a_token_keeps_its_place_and_its_address_goes_first(tmp_path: Path) -> None:
    with serving(tmp_path, replace(SLOW, connections=4, connections_per_address=4)) as (service, port):
        secret = service.store.tokens.create(Role.ANALYST).secret
        ask = f"GET /v1/sites HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n".encode()
        with ExitStack() as stack:
            device = stack.enter_context(connect(port))
            device.sendall(ask)
            assert b"200 OK" in whole_answer(device)
            [beside] = hold(stack, service, port, 1, beside=1)
            hold(stack, service, port, 2, beside=2, source="127.0.0.2")
            for k in range(3, 20):  # more addresses than places, each with one connection
                assert asks(port, f"127.0.0.{k}")
                wait_inside(service, 3)
                hold(stack, service, port, 1, beside=3, source=f"127.0.0.{k}")
            assert not gone(beside, 0.1), "its address is known"
            device.sendall(ask)
            assert b"200 OK" in whole_answer(device)


def test_a_proxy_may_use_all_connections(tmp_path: Path) -> None:
    settings = replace(SLOW, connections=8, connections_per_address=2)
    with serving(tmp_path, settings, ListenAddress(port=0, proxied=True)) as (service, port), ExitStack() as stack:
        hold(stack, service, port, 7)
        assert asks(port)


def test_an_unfinished_tls_handshake_counts_as_a_connection(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    listen = ListenAddress(port=0, certificate=tmp_path / "server.pem", private_key=tmp_path / "server.key")
    trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    with serving(tmp_path, replace(QUICK, connections_per_address=5), listen) as (service, port), ExitStack() as stack:

        def greets() -> bool:
            try:
                with connect(port) as link, trusting.wrap_socket(link, server_hostname="localhost") as safe:
                    safe.sendall(HEALTH)
                    return answered(safe)
            except OSError:
                return False

        until(greets)
        links = hold(stack, service, port, 5)
        assert not greets()
        links[0].close()
        until(greets)
        links[1].settimeout(60)
        quiet = stack.enter_context(trusting.wrap_socket(links[1], server_hostname="localhost"))
        assert gone(quiet)


def test_requests_that_are_not_http_do_not_fill_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(tmp_path, SLOW) as (_, port):
        for said in (
            b"\x16\x03\x01 nonsense\r\n\r\n",
            HEALTH[:-2] + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        ):
            with connect(port) as link:
                link.sendall(said)
                assert link.recv(65536).startswith(b"HTTP/1.1 ")
        assert asks(port)
    assert [record for record in caplog.records if record.name.startswith("uvicorn")] == []
