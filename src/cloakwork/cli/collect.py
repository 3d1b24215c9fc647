"""`cloakwork collect`."""

import logging
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from threading import Event

from cloakwork.cli.moments import parse_days
from cloakwork.cli.output import busy, counted, err, note
from cloakwork.collect.embedded import EmbeddedBroker
from cloakwork.collect.place import watch_all
from cloakwork.collect.records import Role
from cloakwork.collect.service import Listen, Service
from cloakwork.collect.store import Store, open_store
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress, parse_broker

EMBEDDED, NONE = "embedded", "none"
USUAL_PORT = 1883
LOOK_S = 0.5
_CLEAR = {
    False: "tokens and results cross the network unencrypted. Give --certificate and --private-key, or put a proxy "
    "before it and say --proxied",
    True: "whoever reaches this port does so unencrypted, past the proxy. Listen at 127.0.0.1, or let only the proxy "
    "reach it",
}


@dataclass(frozen=True)
class Options:
    """What the command was given, as it was given."""

    sites: list[Path]
    broker: str
    password_file: Path | None
    ca: Path | None
    store: str
    listen: str
    certificate: Path | None
    private_key: Path | None
    proxied: bool
    group: str | None
    name: str
    keep: str | None
    home_assistant: bool


def run_collect(given: Options) -> None:
    """Collect until stopped."""
    host, port = parse_listen(given.listen)
    listen = Listen(host, port, given.certificate, given.private_key, given.proxied)
    keep = parse_days("--keep", given.keep)
    with busy("reading the site files"):
        sites = watch_all(given.sites)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("cloakwork").setLevel(logging.INFO)
    with ExitStack() as stack:
        store = stack.enter_context(open_store(given.store))
        broker = stack.enter_context(_broker(given))
        service = Service(
            sites,
            store,
            broker=broker,
            listen=listen,
            group=given.group,
            name=given.name,
            keep_days=keep,
            home_assistant=given.home_assistant,
        )
        stopping = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        service.start()
        stack.callback(service.stop)
        note(f"collecting {', '.join(sites)} ({counted(sum(len(one.ids) for one in sites.values()), 'sensor')})")
        _greet(store, service, listen)
        while not stopping.wait(LOOK_S):
            if service.failed:
                raise RuntimeError("the HTTP server ended by itself")
        note("stopping: what was taken in is being stored ...")
    note("stopped")


def parse_listen(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[HOST]:PORT`.

    >>> parse_listen("[::1]:8443")
    ('::1', 8443)
    """
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})", text)
    if match is None or int(match[3]) > 65535:
        raise InputError(f"--listen {text[:64]}: give an address and a port, such as 127.0.0.1:8080 or [::1]:8080.")
    return match[1] or match[2], int(match[3])


@contextmanager
def _broker(given: Options) -> Iterator[BrokerAddress | None]:
    """The broker to listen to, which may be one inside."""
    if given.broker not in {EMBEDDED, NONE}:
        yield parse_broker(given.broker, password_file=given.password_file, authority=given.ca)
        return
    if given.password_file is not None or given.ca is not None or given.group is not None:
        raise InputError("--password-file, --ca and --group go with --broker and the address of a real broker.")
    if given.broker == NONE:
        yield None
        return
    inside = EmbeddedBroker(USUAL_PORT)
    inside.start()
    note(
        f"a broker inside, at mqtt://localhost:{inside.port}: for trying out. It serves this machine only, without "
        "passwords, and keeps nothing. For real devices give a real one with --broker"
    )
    try:
        yield inside.broker
    finally:
        inside.stop()


def _greet(store: Store, service: Service, listen: Listen) -> None:
    """Say where the page is, and how to get in."""
    url = service.url
    readers = [token for token in store.tokens() if token.role is not Role.DEVICE and token.revoked is None]
    if readers:
        note(f"the page is at {url}/")
    elif err.is_terminal and sys.stdin.isatty():
        # on a terminal only: what a service says is kept in logs, where a way in must not be
        made = store.new_token(Role.OPERATOR, label="made at the first start")
        note(
            "sign in, as the operator, at this address; it works once, within ten minutes. Later make a token with "
            f"cloakwork token new --role operator:\n  {service.invite(made.token)}"
        )
    else:
        note(f"the page is at {url}/; nobody can sign in yet: make a token with cloakwork token new --role operator")
    if listen.certificate is None and not _is_loopback(listen.host):
        note(f"warning: {_CLEAR[listen.proxied]}")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
