"""The MQTT client: keeps a connection to a broker in a background thread, from `start` to `stop`."""

import time
from collections.abc import Callable
from threading import Event, Thread

from cloakwork.mqtt.address import BrokerAddress
from cloakwork.mqtt.connection import (
    FULL,
    BrokerState,
    Connection,
    MqttSession,
    Waker,
    describe_failure,
    make_client,
    tls_context,
)

ANSWER = 20.0  # seconds for a broker to accept us
PATIENCE = 5.0  # seconds that stopping waits for outstanding acknowledgements
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
HELD_BACK = "nothing is read while the store has no room: the broker keeps the messages"


class MqttClient:
    """Connects to a broker, again and again if need be, and serves the connection.

    The callbacks of the session run in the client's own thread and should return soon.
    """

    def __init__(
        self,
        broker: BrokerAddress,
        session: MqttSession,
        *,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.broker, self.state = broker, BrokerState(False, clock(), "not started")
        self._context, self._session, self._clock = tls_context(broker), session, clock
        self._stopping = Event()
        self._thread: Thread | None = None
        self._waker: Waker | None = None

    def start(self) -> None:
        """Connect in the background."""
        if self._thread is None:
            self._stopping.clear()
            self._waker = Waker()
            self._thread = Thread(target=self._work, args=(self._waker,), daemon=True, name="cloakwork mqtt")
            self._thread.start()

    def stop(self) -> None:
        """Receive nothing more, send outstanding acknowledgements for a few seconds, and disconnect."""
        self._stopping.set()
        if self._thread is not None:
            self.wake()
            self._thread.join(2 * PATIENCE)  # it may be resolving a host name, and then ends on its own
            self._thread = None
        self._set_state(False, "stopped")

    def wake(self) -> None:
        """Have `on_turn` called at once, if connected; any thread may do so."""
        if self._waker is not None:
            self._waker.wake()

    def _work(self, waker: Waker) -> None:
        retry = FIRST_RETRY
        while not self._stopping.is_set():
            client = make_client(self.broker, self._context, self._session)
            connection = Connection(client, waker, self._session)
            try:
                connection.open(self.broker)
                self._serve(connection)
            except Exception as problem:  # whatever it is, the next attempt may do better
                connection.reason = describe_failure(problem, self.broker)
            connection.close()
            if self.state.connected:
                retry = FIRST_RETRY
            if not self._stopping.is_set():
                self._set_state(False, connection.reason if self._session.has_room() else HELD_BACK)
                self._stopping.wait(retry)
            retry = min(2 * retry, LAST_RETRY)
            while not self._session.has_room() and not self._stopping.wait(FULL):
                pass
        waker.close()

    def _serve(self, connection: Connection) -> None:
        """Work until the connection ends."""
        end = time.monotonic() + ANSWER
        while not self._stopping.is_set() and connection.step():
            if connection.granted:
                self._set_state(True, "")
                self._session.on_turn(connection)
            if connection.granted or not self._session.has_room():
                end = time.monotonic() + ANSWER  # while there is no room, an answer may have come unread
            elif time.monotonic() > end:
                connection.reason = f"{self.broker.host}:{self.broker.port} does not answer"
                break
        if self._stopping.is_set():
            connection.finish(PATIENCE)

    def _set_state(self, connected: bool, reason: str) -> None:
        before = self.state
        if (before.connected, before.reason) == (connected, reason):
            return
        since = before.since if before.connected == connected else self._clock()
        self.state = BrokerState(connected, since, reason)
        if not self._stopping.is_set():
            self._session.on_state(self.state)
