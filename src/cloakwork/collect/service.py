"""The collector as one service: broker, intake, live recovery, HTTP and retention, started and stopped together."""

import logging
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread

import uvicorn

from cloakwork.collect.api import ApiContext, Simulation, make_app
from cloakwork.collect.collected_site import CollectedBits, CollectedSite
from cloakwork.collect.intake import Intake
from cloakwork.collect.live_recovery import LiveRecovery
from cloakwork.collect.retention import Retention
from cloakwork.collect.storage import Store, Token, unix_ms
from cloakwork.collect.zone_publisher import ZonePublisher
from cloakwork.errors import InputError
from cloakwork.mqtt import KEEP_ALIVE, BrokerAddress, BrokerState, MqttClient, MqttSession
from cloakwork.readings import ReadingScale

START_S = 20.0  # for the server to listen
STOP_S = 15.0
RETENTION_S = 60.0  # between two looks at old data
GRACE_S = 5  # that a current request may take to end
CLIENT_ID = "cloakwork-collector"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ListenAddress:
    """The address at which the collector listens, unencrypted: for this machine, a private network or a proxy.

    `proxied` says that a proxy on this machine serves https: cookies need it, and its client address is trusted.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    proxied: bool = False


class Service:
    """Collects readings of some sites, from `start` to `stop`. The caller closes the store.

    Devices publish at `broker`; without one, readings arrive by HTTP only. `group` and `client_id` are as
    for `make_subscriber`. Data older than `keep_days` is removed every hour, as long as the clock is trusted. With
    `home_assistant`, the occupied zones and the alarms go there through the broker, with a link to `page_url`.
    `simulation` has the positions of simulated sources, for a demonstration.

    `clock` is the time at the sites in Unix milliseconds, which runs `speed` times faster than real time. Everything
    about readings follows it: frames, quotas, health and retention. The network and sign-in stay in real time.
    """

    def __init__(
        self,
        sites: Mapping[str, CollectedSite | CollectedBits],
        store: Store,
        *,
        broker: BrokerAddress | None,
        listen: ListenAddress | None = None,
        group: str | None = None,
        client_id: str = CLIENT_ID,
        keep_days: float | None = None,
        home_assistant: bool = False,
        page_url: str | None = None,
        simulation: Simulation | None = None,
        clock: Callable[[], int] = unix_ms,
        speed: float = 1.0,
    ) -> None:
        if home_assistant and broker is None:
            raise InputError("zones reach Home Assistant through the broker of the devices: give a broker.")
        self._listen = listen or ListenAddress()
        self.store, self._sites, self._clock = store, sites, clock
        steady = time.monotonic if speed == 1 else lambda: clock() / 1000
        self.subscriber: MqttClient | None = None
        self._zones: ZonePublisher | None = None
        if home_assistant and broker is not None:
            name = f"{client_id}-zones"
            self._zones = ZonePublisher(broker, sites, store, name=name, page_url=page_url, clock=clock)
        listeners = [] if self._zones is None else [self._zones.result]
        self.live = LiveRecovery(store, sites, on_result=listeners, clock=clock, steady=steady, speed=speed)
        rules = {name: site.budget_rules for name, site in sites.items()}
        self.intake = Intake(store, rules, on_new=self.live.on_new, clock=clock)
        if broker is not None:
            self.subscriber = make_subscriber(
                broker, self.intake, client_id=client_id, group=group, sites=sorted(sites), clock=clock
            )
        context = ApiContext(
            store,
            sites,
            self.intake,
            self.live,
            broker=self.subscriber,
            proxied=self._listen.proxied,
            simulation=simulation,
            clock=clock,
            speed=speed,
        )
        app = make_app(context)
        self._access, self._hub = context.access, app.state.hub
        self._server = uvicorn.Server(_config(app, self._listen))
        self._retention: Retention | None = None
        if keep_days is not None:
            sensors = {name: limits.sensors for name, limits in rules.items()}
            self._retention = Retention(store, sensors, keep_days, clock=clock, steady=steady)
        self._socket: socket.socket | None = None
        self._threads: list[Thread] = []
        self._stopping = Event()

    @property
    def url(self) -> str:
        """The address of the page, once started."""
        if self._socket is None:
            raise RuntimeError("not started")
        host, port = self._socket.getsockname()[:2]
        shown = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
        return f"http://{shown}:{port}"

    def invite(self, token: Token) -> str:
        """Return a link that signs a browser in with this token; it works once, for a few minutes."""
        return f"{self.url}/#code={self._access.make_code(token)}"

    @property
    def failed(self) -> bool:
        """Whether the server ended on its own."""
        return bool(self._threads) and not self._threads[0].is_alive()

    def start(self) -> None:
        """Start; raises an error for settings that cannot work."""
        self._socket = _bound(self._listen)
        try:
            scales = {name: ReadingScale.of(site.plan, site.site.unit) for name, site in self._sites.items()}
            now = self._clock()
            self.intake.start({name: self.store.plans.begin(name, scale, now) for name, scale in scales.items()})
            self.live.start()
            self._serve(self._socket)
            for client in (self._zones, self.subscriber):
                if client is not None:
                    client.start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop in an order that stores everything that was accepted, and acknowledges everything that was stored."""
        self._stopping.set()
        if self.subscriber is not None:
            self.subscriber.stop()
        self._server.should_exit = True
        self._hub.close()
        for thread in self._threads:
            thread.join(STOP_S)
        self._threads = []
        if self._socket is not None:
            self._socket.close()
        self.intake.stop()
        self.live.stop(STOP_S)
        if self._zones is not None:
            self._zones.stop()

    def _serve(self, bound: socket.socket) -> None:
        serve, end = partial(self._server.run, [bound]), time.monotonic() + START_S
        self._threads = [Thread(target=serve, daemon=True, name="cloakwork http")]
        if self._retention is not None:
            self._threads.append(Thread(target=self._retain, daemon=True, name="cloakwork retention"))
        for thread in self._threads:
            thread.start()
        while not self._server.started:
            if self.failed or time.monotonic() > end:
                raise InputError("the HTTP server did not start; the log says why.")
            time.sleep(0.01)

    def _retain(self) -> None:
        while self._retention is not None:
            self._retention.check()
            if self._stopping.wait(RETENTION_S):
                return


def _config(app: object, listen: ListenAddress) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http="h11",
        ws="none",
        log_config=None,
        log_level=logging.ERROR,  # it warns about each request that is not HTTP: anyone could fill the log
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        proxy_headers=listen.proxied,
        forwarded_allow_ips="127.0.0.1,::1",
    )


def _bound(listen: ListenAddress) -> socket.socket:
    try:
        family = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((listen.host, listen.port), family=family, backlog=2048)
    except (OSError, OverflowError) as problem:
        reason = str(getattr(problem, "strerror", None) or problem).split(" (", 1)[0]
        raise InputError(
            f"cannot listen on {listen.host}:{listen.port}: {reason}. Give an address of this machine and a free port; "
            "a collector may be running there already.",
            host=listen.host,
            port=listen.port,
        ) from None


def make_subscriber(
    broker: BrokerAddress,
    intake: Intake,
    *,
    client_id: str = CLIENT_ID,
    group: str | None = None,
    sites: Iterable[str] | None = None,
    keep_alive: int = KEEP_ALIVE,
    clock: Callable[[], int] = unix_ms,
) -> MqttClient:
    """Return a client that brings what devices publish to an intake, once it is started.

    Its session outlives a connection: readings that are published while the collector is away wait at the broker, as
    long as the broker has room for them. `client_id` names the session: keep it over restarts, and give each collector
    its own. Collectors of one `group` share the readings among them; they must all watch the same sites. It subscribes
    to `sites`, or to all that the broker has. After `keep_alive` seconds of silence both sides check that the other is
    there.
    """
    if not client_id:
        raise InputError("the client id is empty, so the broker could not keep a session. Give a name.", client_id="")
    if group is not None and (not group or set(group) & set("/+#")):
        raise InputError(f"group={group!r}: give a name without /, + and #.", group=group)
    share = "" if group is None else f"$share/{group}/"

    session = MqttSession(
        client_id=client_id,
        lasting=True,
        filters=[f"{share}cloakwork/v1/{site}/+/+" for site in (["+"] if sites is None else sites)],
        on_message=lambda message: intake.offer(message.topic, message.payload, message.acknowledge),
        has_room=lambda: intake.has_room,
        on_state=_log_state,
        keep_alive=keep_alive,
    )
    return MqttClient(broker, session, clock=clock)


def _log_state(state: BrokerState) -> None:
    if state.connected:
        log.info("connected to the broker")
    else:
        log.warning("no readings from the broker: %s", state.reason)
