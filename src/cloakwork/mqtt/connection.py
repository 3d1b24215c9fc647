"""One connection to an MQTT broker, from its first byte to its last, all in the thread that calls `step`."""

import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from cloakwork.errors import InputError
from cloakwork.mqtt.address import BrokerAddress

KEEP_ALIVE = 60  # seconds
AT_ONCE = 200  # messages that are read before acknowledgements get their turn
IDLE = 1.0  # seconds that a step waits for the network
FULL = 0.02  # seconds between two checks whether a full receiver has room
DISCONNECT = b"\xe0\x00"
LOST = "the broker is gone, or it closed the connection, as it does when another client has the same id"


class Waker:
    """Wakes the thread that waits for the network; any thread may call `wake`."""

    def __init__(self) -> None:
        self.receiver, self._sender = socket.socketpair()
        self.receiver.setblocking(False)
        self._sender.setblocking(False)
        self._pending = False

    def wake(self) -> None:
        """Wake the thread, unless a wake-up is already pending."""
        if not self._pending:
            self._pending = True
            with suppress(OSError):  # full of wake-ups that were not seen yet
                self._sender.send(b"!")

    def clear(self) -> None:
        """Prepare for the next wake-up; look for work after this, not before."""
        with suppress(OSError):
            self.receiver.recv(4096)
        self._pending = False

    def close(self) -> None:
        """Close the sockets."""
        self.receiver.close()
        self._sender.close()


@dataclass(slots=True, eq=False)
class MqttMessage:
    """A message from the broker; the broker sends it again unless `acknowledge` is called, by any thread.

    A topic that is not valid UTF-8 is empty here. The number is valid within one connection only.
    """

    topic: str
    payload: bytes
    retained: bool
    number: int
    waker: Waker = field(repr=False)
    done: bool = False

    def acknowledge(self) -> None:
        """Let the broker forget the message."""
        self.done = True
        self.waker.wake()


@dataclass(frozen=True)
class BrokerState:
    """Whether the client is connected, since when (Unix milliseconds), and why not."""

    connected: bool
    since: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class MqttSession:
    """What a client wants from a broker, and what it does with what it gets.

    Attributes
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
    """

    client_id: str = ""
    lasting: bool = False
    filters: Sequence[str] = ()
    on_message: Callable[[MqttMessage], None] = MqttMessage.acknowledge
    has_room: Callable[[], bool] = lambda: True
    on_ready: Callable[["Connection"], None] = lambda _: None
    on_turn: Callable[["Connection"], None] = lambda _: None
    on_state: Callable[[BrokerState], None] = lambda _: None
    availability: str | None = None
    keep_alive: int = KEEP_ALIVE


class Connection:
    """Delivers messages to a receiver and acknowledges them when the receiver says so.

    Message numbers are valid within one connection only. An acknowledgement that becomes ready after its connection
    has ended must not go out on the next one, where the same number may belong to another message, which would be lost.
    So each connection has its own waiting messages, and they end with it.
    """

    def __init__(self, client: paho.Client, waker: Waker, session: MqttSession) -> None:
        self.granted = False  # the broker has accepted the connection and the subscriptions
        self.reason = ""  # why the connection ended
        self._client, self._waker, self._session = client, waker, session
        self._waiting: deque[MqttMessage] = deque()
        self._received = 0
        self._watched = 0
        self._selector = selectors.DefaultSelector()
        self._selector.register(waker.receiver, selectors.EVENT_READ)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.on_disconnect = self._on_disconnect

    def open(self, broker: BrokerAddress) -> None:
        """Connect; raises what the network raises."""
        if self._session.availability is not None:
            self._client.will_set(self._session.availability, b"offline", qos=1, retain=True)
        self._client.connect(broker.host, broker.port, self._session.keep_alive)
        link = self._client.socket()
        if isinstance(link, socket.socket):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # acknowledgements are small and urgent

    def step(self, *, reading: bool = True) -> bool:
        """Do the work at hand, or wait a little for some; returns False when the connection is over.

        Nothing is read while the receiver is full, so nothing piles up here and the broker keeps its messages. If that
        lasts for two keep-alives the connection ends, because the broker's sign of life is not read either.
        """
        link = self._client.socket()
        if link is None:
            return False
        full = not reading or not self._session.has_room()
        events = (0 if full else selectors.EVENT_READ) | (selectors.EVENT_WRITE if self._client.want_write() else 0)
        buffered = not full and isinstance(link, ssl.SSLSocket) and link.pending() > 0
        ready = self._wait(link, events, 0.0 if buffered else FULL if full else IDLE)
        self._acknowledge()
        if ready & selectors.EVENT_READ or buffered:
            self._read()
        if ready & selectors.EVENT_WRITE:
            self._client.loop_write()
        self._client.loop_misc()
        return self._client.socket() is not None

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> paho.MQTTMessageInfo:
        """Publish a message: with QoS 1 if the broker is to retain it, or else with QoS 0."""
        return self._client.publish(topic, payload, qos=1 if retain else 0, retain=retain)

    def finish(self, patience: float) -> None:
        """Acknowledge what its receiver still completes, for at most `patience` seconds, then disconnect."""
        if not self.granted and not self._waiting:
            return  # the broker has never answered, and would not now
        end = time.monotonic() + patience
        last = None
        if self.granted and self._session.availability is not None:
            last = self.publish(self._session.availability, b"offline", retain=True)
        while self._waiting or self._client.want_write() or (last is not None and not last.is_published()):
            if time.monotonic() > end or not self.step(reading=last is not None):
                break
        link = self._client.socket()
        if isinstance(link, socket.socket):
            _disconnect(link, max(0.1, end - time.monotonic()))

    def close(self) -> None:
        """Close the socket, without a disconnect message."""
        self._selector.close()
        link = self._client.socket()
        if link is not None:
            link.close()

    def _wait(self, link: Any, events: int, timeout: float) -> int:
        """Wait for the link or a wake-up; returns what the link is ready for."""
        if events != self._watched:
            if self._watched:
                self._selector.unregister(link)
            if events:
                self._selector.register(link, events)
            self._watched = events
        ready = 0
        for key, mask in self._selector.select(timeout):
            if key.fileobj is link:
                ready = mask
            else:
                self._waker.clear()
        return ready

    def _read(self) -> None:
        for _ in range(AT_ONCE):
            before = self._received
            self._client.loop_read()
            if self._received == before or not self._session.has_room() or self._client.socket() is None:
                return

    def _acknowledge(self) -> None:
        """Acknowledge in the order in which the messages came, as MQTT demands."""
        while self._waiting and self._waiting[0].done and self._client.socket() is not None:
            self._client.ack(self._waiting.popleft().number, 1)

    def _on_message(self, _: paho.Client, __: object, message: paho.MQTTMessage) -> None:
        self._received += 1
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""
        received = MqttMessage(topic, bytes(message.payload), message.retain, message.mid, self._waker)
        if message.qos:
            self._waiting.append(received)
        self._session.on_message(received)

    def _on_connect(self, client: paho.Client, _: object, __: object, code: Any, ___: object) -> None:
        user = client.username or "clients without a user name"
        if code.is_failure:
            self.reason = f"the broker refuses {user} ({code}): check user, password and client id"
        elif self._session.filters:
            # also when the broker still has the session: the subscriptions may have been others then
            client.subscribe([(name, 1) for name in self._session.filters])
        else:
            self._grant()

    def _on_subscribe(self, client: paho.Client, _: object, __: int, codes: list[Any], ___: object) -> None:
        if any(code.is_failure for code in codes):
            user = client.username or "clients without a user name"
            self.reason = (
                f"the broker does not let {user} subscribe to {', '.join(self._session.filters)}: give it that right"
            )
            client.disconnect()
        else:
            self._grant()

    def _grant(self) -> None:
        self._session.on_ready(self)
        if self._session.availability is not None:
            self.publish(self._session.availability, b"online", retain=True)
        self.granted = True

    def _on_disconnect(self, _: paho.Client, __: object, ___: object, ____: object, _____: object) -> None:
        self.granted = False
        self.reason = self.reason or LOST


class _ClosingSocket(ssl.SSLSocket):
    """Closes at once when its handshake fails; paho would leave it to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


def tls_context(broker: BrokerAddress) -> ssl.SSLContext | None:
    """Make the TLS context with the certificates to trust, None without TLS; refuses an unreadable file."""
    if not broker.tls:
        return None
    try:
        context = ssl.create_default_context(cafile=None if broker.authority is None else str(broker.authority))
    except (OSError, ssl.SSLError):
        raise InputError(
            f"{broker.authority}: cannot be read. Give a file of certificates in PEM form.", path=str(broker.authority)
        ) from None
    context.sslsocket_class = _ClosingSocket
    return context


def make_client(broker: BrokerAddress, context: ssl.SSLContext | None, session: MqttSession) -> paho.Client:
    """Return a client that is not connected yet; the broker keeps the session of a `lasting` one."""
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=session.client_id,
        clean_session=not session.lasting,
        protocol=MQTTProtocolVersion.MQTTv311,
        manual_ack=True,
    )
    if broker.user is not None:
        client.username_pw_set(broker.user, broker.password)
    if context is not None:
        client.tls_set_context(context)
    return client


def describe_failure(problem: Exception, broker: BrokerAddress) -> str:
    """Say why a broker could not be reached."""
    where = f"{broker.host}:{broker.port}"
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"the certificate of {where} is not trusted ({problem.verify_message}). Give its authority's certificate"
    if isinstance(problem, ssl.SSLError):
        return f"{where} does not speak TLS as it should ({problem.reason})"
    if isinstance(problem, socket.gaierror):
        return f"the host {broker.host} is not found"
    if isinstance(problem, TimeoutError):
        return f"{where} does not answer"
    return f"{where} cannot be reached ({getattr(problem, 'strerror', None) or type(problem).__name__})"


def _disconnect(link: socket.socket, patience: float) -> None:
    """Send the disconnect message and wait until the broker has hung up, discarding what it still sends.

    Closing a socket with unread data in it resets the connection: acknowledgements on their way could be lost, and the
    broker would send those messages again.
    """
    end = time.monotonic() + patience
    with suppress(OSError):
        link.settimeout(patience)
        link.sendall(DISCONNECT)
        link.shutdown(socket.SHUT_WR)
        while time.monotonic() < end and link.recv(65536):
            pass
