"""Attack: clients never finish their requests, or send huge ones, to the proxy and to the listener behind it."""

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from cloakwork.collect.storage import Role, open_store
from tests.attacks.conftest import Attack
from tests.attacks.slow_clients import EACH, SlowClients
from tests.collect.collector_process import SITE, Collector, HttpClient, fork_server
from tests.collect.small_sites import site_file
from tests.deploy.proxy import running_proxy
from tests.ports import free_port
from tests.waiting import until

ANSWER_S = 20.0
HALVES = (
    b"",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX-",
    b"POST /v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    b"POST /v1/readings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n[",
)
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


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


def answer(port: int, address: str, request: bytes, trusted: ssl.SSLContext | None = None) -> bytes:
    """The first line of the answer to a request from an address, by TLS if told whom to trust; empty if none comes."""
    with ExitStack() as stack, suppress(OSError):
        link = stack.enter_context(socket.create_connection(("127.0.0.1", port), ANSWER_S, (address, 0)))
        if trusted is not None:
            link = stack.enter_context(trusted.wrap_socket(link, server_hostname="localhost"))
        with suppress(OSError):  # it may answer before it has read all
            link.sendall(request)
        return link.recv(65536).split(b"\r\n")[0]
    return b""


def reading(number: int, token: str) -> bytes:
    row = {"v": 1, "site": "hall", "sensor": "s1", "seq": number, "time": 2008 * number, "value": 5}
    body = json.dumps(row)
    head = f"POST /v1/readings HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def test_half_sent_requests_to_the_proxy_shut_no_one_out(attack: Attack, tmp_path: Path) -> None:
    """Three addresses hold 1,200 half-sent requests at the proxy, while others make requests.

    Claim: everyone else is answered, device or stranger, and the proxy ends the half-sent requests.
    """
    with (
        collector(tmp_path) as (port, token),
        running_proxy(tmp_path, port) as (secure_port, trusted),
        SlowClients(secure_port, ("127.0.0.2", "127.0.0.3", "127.0.0.4"), HALVES, trusted) as slow,
    ):
        until(lambda: slow.opened > EACH)
        for k in range(attack.size(20, 400)):
            newcomer = f"127.0.{1 + k // 200}.{1 + k % 200}"
            attack.expect(answer(secure_port, newcomer, HEALTH, trusted) == b"HTTP/1.1 200 OK")
            attack.expect(answer(secure_port, "127.0.0.1", reading(k + 1, token), trusted) == b"HTTP/1.1 200 OK")
        until(lambda: slow.lost > 0)


def test_the_local_listener_answers_while_another_program_holds_half_sent_requests(
    attack: Attack, tmp_path: Path
) -> None:
    """A program on this machine holds 400 half-sent requests, which the collector itself never ends.

    Claim: the collector still answers, as long as it may open more files than that.
    """
    unanswered = HALVES[:-1]  # the last one shows no token, so it is refused and ended at once
    with collector(tmp_path) as (port, token), SlowClients(port, ("127.0.0.2",), unanswered) as slow:
        until(lambda: slow.opened >= EACH)
        for k in range(attack.size(20, 400)):
            attack.expect(answer(port, "127.0.0.1", reading(k + 1, token)) == b"HTTP/1.1 200 OK")
        assert slow.lost == 0


def test_the_proxy_refuses_what_is_too_large(attack: Attack, tmp_path: Path) -> None:
    """Heads and bodies that are larger than the proxy allows.

    Claim: the proxy answers each with an error, and the collector never sees one.
    """
    with collector(tmp_path) as (port, token), running_proxy(tmp_path, port) as (secure_port, trusted):
        head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Large: " + b"x" * 40_000 + b"\r\n\r\n"
        attack.expect(answer(secure_port, "127.0.0.1", head, trusted).startswith(b"HTTP/1.1 431"))
        lines = ["POST /v1/readings HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"]
        lines += ["Content-Type: application/json", "Content-Length: 3000000", "", " " * 3_000_000]
        attack.expect(answer(secure_port, "127.0.0.1", "\r\n".join(lines).encode(), trusted)[9:12] in {b"413", b"502"})
