"""The MQTT client: keeps a connection to a broker in a background thread, from `start` to `stop`."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, Thread

from cloakwork.mqtt.address import BrokerAddress
from cloakwork.mqtt.connection import (
    FULL,
    Connection,
    MqttMessage,
    Waker,
    describe_failure,
    make_client,
    tls_context,
)

KEEP_ALIVE = 60  # seconds
ANSWER = 20.0  # seconds for a broker to accept us
PATIENCE = 5.0  # seconds that stopping waits for outstanding acknowledgements
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
HELD_BACK = "nothing is read while the store has no room: the broker keeps the messages"


@dataclass(frozen=True)
class BrokerState:
    """Whether the client is connected, since when (Unix milliseconds), and why not."""

    connected: bool
    since: int
    reason: str


class MqttClient:
    """Connects to a broker, again and again if need be, and serves the connection.

    All callbacks run in the client's own thread and should return soon.

    Parameters
    ----------
    client_id
        Names the session at the broker; no two clients may have the same. Empty: the broker chooses one.
    lasting
        Whether the session outlives the connection: the broker then keeps what is published while the client is away.
    filters
        Topics to subscribe to.
    on_message
        Receives each message, and calls `acknowledge` when the broker may forget it.
    has_room
        While it returns False nothing is read, and the broker keeps its messages.
    on_ready, on_turn
        Called with the connection, to publish on it: when it is ready, and then every second and after each `wake`.
    on_state
        Called with each new state, except when the client is stopped.
    availability
        A retained topic that says `online` while the client is connected, and `offline` otherwise.
    keep_alive
        Seconds of silence after which both sides check that the other is there.
    longest_retry
        Seconds between two attempts to connect, after several have failed.
    """

    def __init__(
        self,
        broker: BrokerAddress,
        *,
        client_id: str = "",
        lasting: bool = False,
        filters: Sequence[str] = (),
        on_message: Callable[[MqttMessage], None] = lambda message: message.acknowledge(),
        has_room: Callable[[], bool] = lambda: True,
        on_ready: Callable[[Connection], None] = lambda _: None,
        on_turn: Callable[[Connection], None] = lambda _: None,
        on_state: Callable[[BrokerState], None] = lambda _: None,
        availability: str | None = None,
        keep_alive: int = KEEP_ALIVE,
        longest_retry: float = LAST_RETRY,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.broker = broker
        self.state = BrokerState(False, clock(), "not started")
        self._context = tls_context(broker)
        self._client_id, self._lasting = client_id, lasting
        self._filters, self._on_message, self._has_room = filters, on_message, has_room
        self._on_ready, self._on_turn, self._on_state = on_ready, on_turn, on_state
        self._availability = availability
        self._keep_alive, self._longest_retry, self._clock = keep_alive, longest_retry, clock
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
            connection = Connection(
                make_client(self.broker, self._context, self._client_id, lasting=self._lasting),
                waker,
                filters=self._filters,
                on_message=self._on_message,
                has_room=self._has_room,
                on_ready=self._on_ready,
                availability=self._availability,
            )
            try:
                connection.open(self.broker, self._keep_alive)
                self._serve(connection)
            except Exception as problem:  # whatever it is, the next attempt may do better
                connection.reason = describe_failure(problem, self.broker)
            connection.close()
            if self.state.connected:
                retry = FIRST_RETRY
            if not self._stopping.is_set():
                self._set_state(False, connection.reason if self._has_room() else HELD_BACK)
                self._stopping.wait(retry)
            retry = min(2 * retry, self._longest_retry)
            while not self._has_room() and not self._stopping.wait(FULL):
                pass
        waker.close()

    def _serve(self, connection: Connection) -> None:
        """Work until the connection ends."""
        end = time.monotonic() + ANSWER
        while not self._stopping.is_set() and connection.step():
            if connection.granted:
                self._set_state(True, "")
                self._on_turn(connection)
            if connection.granted or not self._has_room():
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
            self._on_state(self.state)
