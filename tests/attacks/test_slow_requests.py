"""Attack: a few clients occupy all connections of the HTTP port with requests that they never finish."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cloakwork.collect.storage import Role, open_store
from tests.attacks.conftest import Attack
from tests.attacks.slow_clients import SlowClients
from tests.collect.collector_process import SITE, Collector, HttpClient, fork_server
from tests.collect.small_sites import site_file
from tests.ports import free_port
from tests.waiting import PATIENCE, until

ANSWER_S = 20.0
PLACES = 1000  # connections that a collector holds
AT_ONCE = 90  # a device may send 100 requests at once, and more only as time goes on
HALVES = (
    b"",
    b"GET / HTTP/1.1\r\nHost: x\r\nX-",
    b"POST /v1/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    b"POST /v1/readings HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n[",
)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@contextmanager
def collector(folder: Path) -> Iterator[tuple[int, str]]:
    """The port of a collector that is a process of its own, and the token of a device."""
    store = f"sqlite:///{folder / 'store.db'}"
    with open_store(store) as opened:
        operator = opened.tokens.create(Role.OPERATOR).secret
        device = opened.tokens.create(Role.DEVICE, "hall", "s1").secret
    port = free_port()
    words = [str(site_file(folder, SITE)), "--broker", "none", "--listen", f"127.0.0.1:{port}"]
    process = Collector(fork_server(), words, folder / "log", HttpClient(port, operator), store)
    try:
        process.start()
        process.wait_ready()
        yield port, device
    finally:
        process.kill()


def answer(port: int, address: str, request: bytes) -> bytes:
    """The first line of the answer to a request from an address; empty if there is none in time."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S, source_address=(address, 0)) as link:
            link.sendall(request)
            return link.recv(65536).split(b"\r\n")[0]
    except OSError:
        return b""


def reading(number: int, token: str) -> bytes:
    row = {"v": 1, "site": "hall", "sensor": "s1", "seq": number, "time": 2008 * number, "value": 5}
    body = json.dumps(row)
    head = f"POST /v1/readings HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def test_three_addresses_with_half_sent_requests_shut_no_one_out(attack: Attack, tmp_path: Path) -> None:
    """Three addresses hold as many half-sent requests as they can, while others make requests.

    Claim: everyone else is answered, device or stranger, also from an address that was never seen before.
    """
    with (
        collector(tmp_path) as (port, token),
        SlowClients(port, ("127.0.0.2", "127.0.0.3", "127.0.0.4"), HALVES) as slow,
    ):
        until(lambda: slow.opened > PLACES and slow.lost > 0)
        for k in range(attack.size(20, 400)):
            newcomer = f"127.0.{1 + k // 200}.{1 + k % 200}"
            attack.expect(answer(port, newcomer, HEALTH) == b"HTTP/1.1 200 OK")
            if k < AT_ONCE:
                attack.expect(answer(port, "127.0.0.1", reading(k + 1, token)) == b"HTTP/1.1 200 OK")


def test_a_thousand_addresses_shut_no_known_device_out(attack: Attack, tmp_path: Path) -> None:
    """More addresses than there are places hold half-sent requests, while a device sends readings.

    Claim: a device whose address is known from a valid token is answered.
    """
    with collector(tmp_path) as (port, token):
        assert answer(port, "127.0.0.1", reading(1, token)) == b"HTTP/1.1 200 OK"
        links = []
        for k in range(PLACES + 100):
            address = (f"127.1.{k // 200}.{1 + k % 200}", 0)
            links.append(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=address))
        for k in range(attack.size(20, AT_ONCE)):
            attack.expect(answer(port, "127.0.0.1", reading(k + 2, token)) == b"HTTP/1.1 200 OK")
        for link in links:
            link.close()
