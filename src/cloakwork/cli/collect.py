"""`cloakwork collect`."""

import logging
import re
import socket
import sys
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from cloakwork.cli.arguments import (
    DEFAULT_STORE,
    INIT,
    RARE,
    Authority,
    PasswordFile,
    StoreUrl,
    argument,
    option,
    reads,
)
from cloakwork.cli.output import counted, err, note, stop_signal, working
from cloakwork.cli.time_arguments import DAY_MS, parse_span
from cloakwork.collect import (
    EmbeddedBroker,
    ListenAddress,
    Role,
    Service,
    Store,
    load_collected_sites,
    open_store,
)
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress, parse_broker

EMBEDDED, NONE = "embedded", "none"
USUAL_PORT = 1883
LOOK_S = 0.5
NAME = "cloakwork-collector"


def collect(
    sites: Annotated[
        list[Path], argument("Site files, each with its plan next to it.", metavar="SITE...", callback=reads(INIT))
    ],
    broker: Annotated[
        str, option("Broker of the devices: mqtts://user@host, `embedded[:PORT]` (for this machine) or `none`.")
    ] = EMBEDDED,
    password_file: PasswordFile = None,
    ca: Authority = None,
    store: StoreUrl = DEFAULT_STORE,
    listen: Annotated[str, option("Address of the page and API.", metavar="HOST:PORT")] = "127.0.0.1:8080",
    proxied: Annotated[bool, option("A proxy on this machine serves https.", "--proxied")] = False,
    private_network: Annotated[
        bool, option("Listen on another address, without encryption.", "--private-network")
    ] = False,
    group: Annotated[str | None, option("Share the readings with other collectors of this group.", panel=RARE)] = None,
    name: Annotated[str | None, option("Session name at the broker, unique.", panel=RARE)] = None,
    keep: Annotated[int | None, option("Remove older data: 90d, 12h or 4w.", metavar="SPAN", parser=parse_span)] = None,
    home_assistant: Annotated[bool, option("Publish zones and alarms to Home Assistant.", "--home-assistant")] = False,
    page_url: Annotated[str | None, option("Address of the page, for links in Home Assistant.", metavar="URL")] = None,
) -> None:
    """Collect until stopped."""
    host, port = parse_listen(listen)
    address = ListenAddress(host, port, proxied)
    _require_private(address, private_network)
    with working("reading the site files"):
        watched = load_collected_sites(sites)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("cloakwork").setLevel(logging.INFO)
    with ExitStack() as stack:
        opened = stack.enter_context(open_store(store))
        if (broker == NONE or _embedded_port(broker) is not None) and (password_file or ca or group is not None):
            raise InputError("--password-file, --ca and --group need --broker with the address of a real broker.")
        service = Service(
            watched,
            opened,
            broker=_reach(broker, password_file, ca, stack),
            listen=address,
            group=group,
            client_id=session_name(port) if name is None else name,
            keep_days=None if keep is None else keep / DAY_MS,
            home_assistant=home_assistant,
            page_url=page_url,
        )
        stopping = stop_signal()
        service.start()
        stack.callback(service.stop)
        sensors = sum(len(site.ids) for site in watched.values())
        note(f"collecting {', '.join(watched)} ({counted(sensors, 'sensor')})")
        _greet(opened, service)
        while not stopping.wait(LOOK_S):
            if service.failed:
                raise RuntimeError("the HTTP server ended unexpectedly")
        note("stopping: storing what has been received ...")
    note("stopped")


def parse_listen(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[HOST]:PORT`.

    >>> parse_listen("[::1]:8443")
    ('::1', 8443)
    """
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})", text)
    if match is None or int(match[3]) > 65535:
        raise InputError(
            f"--listen {text[:64]}: give an address and a port, such as 127.0.0.1:8080 or [::1]:8080.", listen=text
        )
    return match[1] or match[2], int(match[3])


def _embedded_port(broker: str) -> int | None:
    """The port of `embedded` or `embedded:PORT`, where 0 is any free one; None for another broker."""
    match = re.fullmatch(rf"{EMBEDDED}(?::([0-9]{{1,5}}))?", broker)
    if match is None or int(match[1] or 0) > 65535:
        return None
    return USUAL_PORT if match[1] is None else int(match[1])


def _reach(url: str, password_file: Path | None, authority: Path | None, stack: ExitStack) -> BrokerAddress | None:
    """The address of the broker to use; starts the embedded one if asked for, and stops it with `stack`."""
    if url == NONE:
        return None
    port = _embedded_port(url)
    if port is None:
        return parse_broker(url, password_file=password_file, authority=authority)
    embedded = EmbeddedBroker(port)
    try:
        embedded.start()
    except InputError as problem:
        raise InputError(
            f"{problem} Or give the embedded broker another port: --broker embedded:{USUAL_PORT + 1}.",
            **problem.values,
        ) from None
    stack.callback(embedded.stop)
    note(
        f"embedded broker at mqtt://localhost:{embedded.port}: it serves this machine only, without passwords, and "
        "stores nothing. For devices elsewhere, or if others use this machine, give a real broker with --broker"
    )
    return embedded.broker


def session_name(port: int) -> str:
    """The default name of a collector's session: the same after a restart, and another for each on one network.

    >>> session_name(8080).endswith("-8080")
    True
    """
    host = re.sub(r"[^A-Za-z0-9.-]", "", socket.gethostname())
    return f"{NAME}-{host}-{port}"


def _greet(store: Store, service: Service) -> None:
    """Print the address of the page, and how to sign in."""
    url = service.url
    readers = [token for token in store.tokens.list_all() if token.role is not Role.DEVICE and token.revoked is None]
    if not readers and err.is_terminal and sys.stdin.isatty():
        # on a terminal only: a service writes to logs, which must not hold a way in
        made = store.tokens.create(Role.OPERATOR, label="made at the first start")
        note(
            "sign in as the operator at this address, which works once, within ten minutes. Later, create a token with "
            f"cloakwork token new --role operator:\n  {service.invite(made.token)}"
        )
    else:
        note(f"the page is at {url}/; if you have no token, create a token with: cloakwork token new --role operator")


def _require_private(listen: ListenAddress, private_network: bool) -> None:
    """Refuse to listen beyond this machine, unless the caller says that a proxy or a private network is there."""
    if _is_loopback(listen.host):
        return
    if not private_network:
        raise InputError(
            f"--listen {listen.host}: the collector serves http, so tokens and results would cross the network "
            "unencrypted. Put a proxy with https in front of it, as deploy/Caddyfile does:\n"
            f"  cloakwork collect ... --listen 127.0.0.1:{listen.port} --proxied\n"
            "Or, where everyone on the network may read along (a VPN, containers of one machine):\n"
            f"  cloakwork collect ... --listen {listen.host}:{listen.port} --private-network",
            host=listen.host,
        )
    note("warning: tokens and results cross this network unencrypted")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
