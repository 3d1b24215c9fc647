"""The collector as one thing that starts and stops: store, broker, live recovery, HTTP and retention."""

import logging
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread

import uvicorn

from cloakwork.collect.api import (
    AccessControl,
    ApiSettings,
    EventHub,
    LimitedListener,
    Simulation,
    make_app,
    timed_protocol,
)
from cloakwork.collect.intake import Intake
from cloakwork.collect.live import Live
from cloakwork.collect.place import Watched
from cloakwork.collect.records import Token
from cloakwork.collect.retention import Retention
from cloakwork.collect.spent import rules_of
from cloakwork.collect.store import Store
from cloakwork.collect.subscriber import make_subscriber
from cloakwork.collect.zone_publisher import ZonePublisher, zone_broker
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress, MqttClient

STARTING = 20.0  # seconds for the server to listen
ENDING = 15.0
GRACE = 5  # seconds that a request under way may take to end
NAME = "cloakwork-collector"
USUAL_FILES = 4096
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Listen:
    """Where people and devices reach the collector; with a certificate by https.

    `proxied` says that a proxy on this machine speaks https for it: its word about who calls is then believed.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: Path | None = None
    private_key: Path | None = None
    proxied: bool = False

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.private_key is None):
            raise InputError("--certificate and --private-key go together: give both, or neither.")
        if self.certificate is not None and self.proxied:
            raise InputError("--proxied says that a proxy has the certificate: leave out --certificate, or --proxied.")

    @property
    def encrypted(self) -> bool:
        """Whether people reach it by https."""
        return self.certificate is not None or self.proxied


class Service:
    """Collects for some sites, from `start` to `stop`; the store stays the caller's.

    Parameters
    ----------
    broker
        Where devices publish; None for HTTP only.
    group, name
        As for `make_subscriber`: who shares the readings, and the name of this one's session.
    keep_days
        What is older is removed, every hour, as long as the clock can be believed; None keeps everything.
    home_assistant
        Tell Home Assistant, through the broker, which zones are occupied.
    simulation
        Says where simulated sources are, for a demonstration.
    """

    def __init__(
        self,
        sites: Mapping[str, Watched],
        store: Store,
        *,
        broker: BrokerAddress | None,
        listen: Listen | None = None,
        group: str | None = None,
        name: str = NAME,
        keep_days: float | None = None,
        home_assistant: bool = False,
        settings: ApiSettings | None = None,
        simulation: Simulation | None = None,
    ) -> None:
        if home_assistant and broker is None:
            raise InputError("--home-assistant goes through the broker that devices publish to: give one.")
        self._listen = listen or Listen()
        self._settings = replace(settings or ApiSettings(), tls=self._listen.encrypted)
        self.store = store
        self._hub = EventHub()
        sensors = {site: frozenset(watched.ids) for site, watched in sites.items()}
        self.live = Live(store, sites, on_result=[self._hub.publish_result])
        self.intake = Intake(
            store,
            sensors,
            on_new=self.live.on_new,
            on_report=self._hub.publish_reports,
            periods={site: watched.schedule.period_ms for site, watched in sites.items()},
            rules={site: rules_of(watched) for site, watched in sites.items()},
        )
        self.subscriber: MqttClient | None = None
        if broker is not None:
            self.subscriber = make_subscriber(broker, self.intake, client_id=name, group=group, sites=sorted(sites))
        self._zones = None
        if home_assistant and broker is not None:
            self._zones = ZonePublisher(zone_broker(broker), sites, name=f"{name}-zones")
            self.live.listen(self._zones.result)
        app = make_app(
            store,
            sites,
            self.intake,
            self.live,
            broker=self.subscriber,
            hub=self._hub,
            settings=self._settings,
            simulation=simulation,
        )
        self._access: AccessControl = app.state.access
        self._server = uvicorn.Server(_config(app, self._listen, self._settings))
        self._retention = None if keep_days is None else Retention(store, sensors, keep_days)
        self._socket: socket.socket | None = None
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """The address of the page, once started."""
        if self._socket is None:
            raise RuntimeError("not started")
        host, port = self._socket.getsockname()[:2]
        shown = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
        return f"{'https' if self._listen.certificate else 'http'}://{shown}:{port}"

    def invite(self, token: Token) -> str:
        """An address at which a browser is signed in with this token: once, and within some minutes."""
        return f"{self.url}/#code={self._access.codes.make(token)}"

    @property
    def failed(self) -> bool:
        """Whether the server ended by itself."""
        return self._thread is not None and not self._thread.is_alive()

    def start(self) -> None:
        """Begin; what cannot work is refused here."""
        self._socket = _bound(self._listen, self._settings)
        try:
            self.intake.start()
            self.live.start()
            if self._zones is not None:
                self._zones.start()
            self._serve(self._socket)
            if self.subscriber is not None:
                self.subscriber.start()
            if self._retention is not None:
                self._retention.start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End in such an order that all that was taken in is stored, and all that was stored acknowledged."""
        if self._retention is not None:
            self._retention.stop()
        if self.subscriber is not None:
            self.subscriber.stop()
        self._server.should_exit = True
        self._hub.end_soon()
        if self._thread is not None:
            self._thread.join(ENDING)
            self._thread = None
        if self._socket is not None:
            self._socket.close()
        self.intake.stop()
        self.live.stop(ENDING)
        if self._zones is not None:
            self._zones.stop()

    def _serve(self, bound: socket.socket) -> None:
        self._thread = Thread(target=self._server.run, args=([bound],), daemon=True, name="cloakwork http")
        self._thread.start()
        end = time.monotonic() + STARTING
        while not self._server.started:
            if self.failed or time.monotonic() > end:
                raise InputError("the HTTP server did not start; the log says why.")
            time.sleep(0.01)


def _config(app: object, listen: Listen, settings: ApiSettings) -> uvicorn.Config:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=timed_protocol(settings),
        ws="none",
        loop="asyncio",  # which asks our socket for connections; others have ways of their own
        log_config=None,
        log_level=logging.ERROR,  # it warns of each request that is not HTTP: anyone could fill the log
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        proxy_headers=listen.proxied,
        forwarded_allow_ips="127.0.0.1,::1",
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.private_key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as problem:
        raise InputError(
            f"{listen.certificate}, {listen.private_key}: not a certificate with its key in PEM form "
            f"({getattr(problem, 'strerror', None) or type(problem).__name__})."
        ) from None
    return config


def _bound(listen: Listen, settings: ApiSettings) -> socket.socket:
    most = min(settings.connections, _files() // 2)
    per_address = most if listen.proxied else min(settings.connections_per_address, most)
    try:
        family = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((listen.host, listen.port), family=family, backlog=2048)
        return LimitedListener(bound, most=most, per_address=per_address)
    except (OSError, OverflowError) as problem:
        reason = str(getattr(problem, "strerror", None) or problem).split(" (", 1)[0]
        raise InputError(
            f"--listen {listen.host}:{listen.port}: {reason}. Give an address of this machine and a free port."
        ) from None


def _files() -> int:
    """How many files this process may have open."""
    try:
        import resource  # noqa: PLC0415 - not everywhere
    except ImportError:
        return USUAL_FILES
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return USUAL_FILES if soft == resource.RLIM_INFINITY else soft
