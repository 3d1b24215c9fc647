"""One connection to an MQTT broker, from its first byte to its last; all of it in the thread that calls `step`."""

import selectors
import socket
import ssl
import time
from collections import deque
from contextlib import suppress
from typing import Any

import paho.mqtt.client as paho

from cloakwork.collect.intake import Intake
from cloakwork.mqtt import BrokerAddress

AT_ONCE = 200  # messages that are read before acknowledgements get their turn
IDLE = 1.0  # seconds that a step waits for the network
DISCONNECT = b"\xe0\x00"
FULL = 0.02  # seconds between two looks whether a full intake has room


class Bell:
    """Wakes the thread that waits for the network; any thread may ring."""

    def __init__(self) -> None:
        self.ear, self._hammer = socket.socketpair()
        self.ear.setblocking(False)
        self._hammer.setblocking(False)
        self._rung = False

    def ring(self) -> None:
        """Wake it, unless someone else has since it last looked."""
        if not self._rung:
            self._rung = True
            with suppress(OSError):  # full of rings that are not heard yet
                self._hammer.send(b"!")

    def hush(self) -> None:
        """Get ready for the next ring; look around after this, not before."""
        with suppress(OSError):
            self.ear.recv(4096)
        self._rung = False

    def close(self) -> None:
        """Let go of the sockets."""
        self.ear.close()
        self._hammer.close()


class _Receipt:
    """A message that is to be acknowledged when it is done with; any thread may say so."""

    __slots__ = ("_bell", "done", "number")

    def __init__(self, number: int, bell: Bell) -> None:
        self.number = number
        self.done = False
        self._bell = bell

    def give(self) -> None:
        self.done = True
        self._bell.ring()


class Connection:
    """Carries messages to an intake, and acknowledgements back.

    Numbers of messages mean something within a connection only. An acknowledgement that is ready when its connection is
    over must not go out on the next one, where the same number may be of another reading, which would be lost. So every
    connection has its own receipts, and they end with it.

    `granted` says that the broker has accepted the subscription, `reason` why the connection ended.
    """

    def __init__(self, client: paho.Client, intake: Intake, bell: Bell, filters: list[str]) -> None:
        self.granted = False
        self.reason = ""
        self._client = client
        self._intake = intake
        self._bell = bell
        self._filters = filters
        self._waiting: deque[_Receipt] = deque()
        self._received = 0
        self._wanted = 0
        self._selector = selectors.DefaultSelector()
        self._selector.register(bell.ear, selectors.EVENT_READ)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        client.on_disconnect = self._on_disconnect

    def open(self, broker: BrokerAddress, keep_alive: int) -> None:
        """Connect; raises what the network raises."""
        self._client.connect(broker.host, broker.port, keep_alive)
        link = self._client.socket()
        if isinstance(link, socket.socket):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # acknowledgements are small, and waited for

    def step(self, *, reading: bool = True) -> bool:
        """Do what there is to do, or wait a little for it; False when the connection is over.

        Nothing is read while the intake is full, so nothing piles up here; the broker keeps what it has. If that lasts
        for two keep-alives the connection ends, because the broker's sign of life is not read either, and a new one is
        made.
        """
        link = self._client.socket()
        if link is None:
            return False
        full = not reading or not self._intake.has_room
        wanted = (0 if full else selectors.EVENT_READ) | (selectors.EVENT_WRITE if self._client.want_write() else 0)
        buffered = not full and isinstance(link, ssl.SSLSocket) and link.pending() > 0
        ready = self._wait(link, wanted, 0.0 if buffered else FULL if full else IDLE)
        self._acknowledge()
        if ready & selectors.EVENT_READ or buffered:
            self._read()
        if ready & selectors.EVENT_WRITE:
            self._client.loop_write()
        self._client.loop_misc()
        return self._client.socket() is not None

    def finish(self, patience: float) -> None:
        """Acknowledge what is on its way into the store, for so many seconds at most, and say goodbye."""
        end = time.monotonic() + patience
        while self._waiting and time.monotonic() < end and self.step(reading=False):
            pass
        while self._client.want_write() and time.monotonic() < end and self.step(reading=False):
            pass
        link = self._client.socket()
        if isinstance(link, socket.socket):
            _part(link, max(0.1, end - time.monotonic()))

    def close(self) -> None:
        """End it without goodbye."""
        self._selector.close()
        link = self._client.socket()
        if link is not None:
            link.close()

    def _wait(self, link: Any, wanted: int, timeout: float) -> int:
        """Wait for the link or the bell; returns what the link is ready for."""
        if wanted != self._wanted:
            if self._wanted:
                self._selector.unregister(link)
            if wanted:
                self._selector.register(link, wanted)
            self._wanted = wanted
        ready = 0
        for key, mask in self._selector.select(timeout):
            if key.fileobj is link:
                ready = mask
            else:
                self._bell.hush()
        return ready

    def _read(self) -> None:
        for _ in range(AT_ONCE):
            before = self._received
            self._client.loop_read()
            if self._received == before or not self._intake.has_room or self._client.socket() is None:
                return

    def _acknowledge(self) -> None:
        """In the order in which the messages came, as MQTT wants it."""
        while self._waiting and self._waiting[0].done and self._client.socket() is not None:
            self._client.ack(self._waiting.popleft().number, 1)

    def _on_message(self, _: paho.Client, __: object, message: paho.MQTTMessage) -> None:
        self._received += 1
        receipt = _Receipt(message.mid, self._bell)
        if message.qos:
            self._waiting.append(receipt)
        try:
            topic = message.topic
        except UnicodeDecodeError:
            topic = ""
        self._intake.offer(topic, bytes(message.payload), receipt.give)

    def _on_connect(self, client: paho.Client, _: object, __: object, code: Any, ___: object) -> None:
        if code.is_failure:
            self.reason = f"the broker refuses this collector ({code}): check user, password and client id"
        else:
            # also when the broker still has the session: the subscriptions may have been others then
            client.subscribe([(name, 1) for name in self._filters])

    def _on_subscribe(self, client: paho.Client, _: object, __: int, codes: list[Any], ___: object) -> None:
        if any(code.is_failure for code in codes):
            self.reason = "the broker does not let this user subscribe: give it the right to read cloakwork/v1/#"
            client.disconnect()
        else:
            self.granted = True

    def _on_disconnect(self, _: paho.Client, __: object, ___: object, ____: object, _____: object) -> None:
        self.granted = False
        if not self.reason:
            self.reason = "the broker is gone, or it closed the connection, as it does when another has our client id"


def _part(link: socket.socket, patience: float) -> None:
    """Say goodbye and wait until the broker has hung up, throwing away what it still sends.

    A link that is closed while something in it is unread is cut off at once: acknowledgements on their way could be
    lost, and the broker would send those readings again.
    """
    end = time.monotonic() + patience
    with suppress(OSError):
        link.settimeout(patience)
        link.sendall(DISCONNECT)
        link.shutdown(socket.SHUT_WR)
        while time.monotonic() < end and link.recv(65536):
            pass
