"""Readings from an MQTT broker: acknowledged only when they are stored, so that the broker keeps the others.

The session outlives a connection: what is published while the collector is away waits at the broker, as long as the
broker has room for it.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event, Thread

from cloakwork.collect.connection import FULL, Bell, Connection
from cloakwork.collect.intake import Intake
from cloakwork.collect.reach import client_for, context_of, why
from cloakwork.errors import InputError
from cloakwork.mqtt import BrokerAddress

KEEP_ALIVE = 60  # seconds
ANSWER = 20.0  # seconds for a broker to let us in
PATIENCE = 5.0  # seconds that stopping waits for readings on their way into the store
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
HELD_BACK = "the store takes no more for now: the broker keeps the readings"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BrokerState:
    """Whether the broker sends us readings, since when (Unix milliseconds), and why not."""

    connected: bool
    since: int
    reason: str


class Subscriber:
    """Brings what devices publish to an intake, from `start` to `stop`.

    Parameters
    ----------
    client_id
        Names the session at the broker. It must be the same after a restart, and no two collectors may have the same.
    group
        Collectors with one group share the readings among them; they must all watch the same sites.
    sites
        Subscribe to these only; to all that the broker has if None.
    keep_alive
        Seconds of silence after which both sides make sure that the other is there.
    """

    def __init__(
        self,
        broker: BrokerAddress,
        intake: Intake,
        *,
        client_id: str = "cloakwork-collector",
        group: str | None = None,
        sites: Iterable[str] | None = None,
        keep_alive: int = KEEP_ALIVE,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        if not client_id:
            raise InputError("the client id is empty: the broker could not keep a session. Give a name.")
        self._broker = broker
        self._intake = intake
        self._client_id = client_id
        self._filters = _filters(group, sites)
        self._keep_alive = keep_alive
        self._clock = clock
        self._context = context_of(broker)
        self._stopping = Event()
        self._thread: Thread | None = None
        self._bell: Bell | None = None
        self._state = BrokerState(False, clock(), "not started")

    @property
    def state(self) -> BrokerState:
        """How the connection is."""
        return self._state

    def start(self) -> None:
        """Connect in the background, again and again if need be."""
        if self._thread is None:
            self._stopping.clear()
            self._bell = Bell()
            self._thread = Thread(target=self._work, args=(self._bell,), daemon=True, name="cloakwork broker")
            self._thread.start()

    def stop(self) -> None:
        """Take nothing more, acknowledge what gets stored within a few seconds, and leave; the session stays."""
        self._stopping.set()
        if self._thread is not None and self._bell is not None:
            self._bell.ring()
            self._thread.join(2 * PATIENCE)  # it may be looking for a host: let it, it ends by itself
            self._thread = None
        self._say(False, "stopped")

    def _work(self, bell: Bell) -> None:
        wait = FIRST_RETRY
        while not self._stopping.is_set():
            client = client_for(self._broker, self._context, self._client_id, lasting=True)
            connection = Connection(client, self._intake, bell, self._filters)
            try:
                connection.open(self._broker, self._keep_alive)
                self._serve(connection)
            except Exception as problem:  # whatever it is, the next attempt may do better
                connection.reason = why(problem, self._broker)
            connection.close()
            if self._state.connected:
                wait = FIRST_RETRY
            if not self._stopping.is_set():
                self._say(False, connection.reason if self._intake.has_room else HELD_BACK)
                self._stopping.wait(wait)
            wait = min(2 * wait, LAST_RETRY)
            while not self._intake.has_room and not self._stopping.wait(FULL):
                pass
        bell.close()

    def _serve(self, connection: Connection) -> None:
        """Work until the connection ends."""
        end = time.monotonic() + ANSWER
        while not self._stopping.is_set() and connection.step():
            if connection.granted and not self._state.connected:
                self._say(True, "")
            if connection.granted or not self._intake.has_room:
                end = time.monotonic() + ANSWER  # while the intake is full, nothing is read: its answer may have come
            elif time.monotonic() > end:
                connection.reason = f"{self._broker.host}:{self._broker.port} does not answer"
                break
        if self._stopping.is_set():
            connection.finish(PATIENCE)

    def _say(self, connected: bool, reason: str) -> None:
        before = self._state
        if (before.connected, before.reason) == (connected, reason):
            return
        since = before.since if before.connected == connected else self._clock()
        self._state = BrokerState(connected, since, reason)
        if connected:
            log.info("connected to the broker")
        elif not self._stopping.is_set():
            log.warning("no readings from the broker: %s", reason)


def _filters(group: str | None, sites: Iterable[str] | None) -> list[str]:
    if group is not None and (not group or set(group) & set("/+#")):
        raise InputError(f"group={group!r}: give a name without /, + and #.", group=group)
    share = "" if group is None else f"$share/{group}/"
    return [f"{share}cloakwork/v1/{site}/+/+" for site in (["+"] if sites is None else sites)]
