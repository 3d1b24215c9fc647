"""MQTT 3.1.1 without the network: bytes in, bytes out, and a list of events.

The caller owns the transport and the clock, so the same code runs over a socket, TLS or a test:

    link = Mqtt("flat-s07", user="s07", password="...", will=("cloakwork/v1/flat/s07/status", b"..."))
    link.connect()
    while ...:
        transport.write(link.take())
        link.feed(transport.read())
        link.tick(now_ms)
        for event in link.events():
            ...

When the transport is lost, or an event says `dead` or `refused`, open a new transport and call `connect` again.
The broker keeps no session meanwhile: the caller sends messages again that were not acknowledged. Messages are sent
with QoS 1, and received with QoS 0 or 1.

Notes
-----
MQTT Version 3.1.1, OASIS Standard, 29 October 2014.
"""

from cloakwork.sensor.errors import SensorError, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST = 1024  # bytes of a packet that arrives; no message that a device subscribes to is larger
REFUSED = 0x80  # the granted QoS of a subscription that the broker does not allow
_CONNECT, _PUBLISH, _SUBSCRIBE, _PINGREQ, _DISCONNECT = 0x10, 0x30, 0x82, 0xC0, 0xE0
_CONNACK, _PUBACK, _SUBACK, _PINGRESP = 0x20, 0x40, 0x90, 0xD0
_LENGTHS = {_CONNACK: 2, _PUBACK: 2, _SUBACK: 3, _PINGRESP: 0}
_CLOSED, _ASKED, _OPEN = 0, 1, 2


class Mqtt:
    """One client and its link to a broker.

    `will` is (topic, payload): the broker publishes and retains it if the link ends without a `disconnect`.
    `keep_alive` is in seconds.
    """

    def __init__(
        self,
        client_id: str,
        user: str | None = None,
        password: str | None = None,
        will: "tuple[str, bytes] | None" = None,
        keep_alive: int = 60,
    ) -> None:
        if not client_id or (password is not None and user is None):
            raise WireError("a client has a name, and a password needs a user")
        flags = 0x02  # no session from before
        body = _text(client_id)
        if will is not None:
            flags |= 0x2C
            body += _topic(will[0]) + _prefixed(will[1])
        for text, flag in ((user, 0x80), (password, 0x40)):
            if text is not None:
                flags |= flag
                body += _text(text)
        self._hello = b"\x00\x04MQTT\x04" + bytes([flags]) + _number(keep_alive) + body
        self._keep_alive = keep_alive * 1000
        self._id = 0
        self._waiting: dict[int, int] = {}
        self._events: list[tuple[Any, ...]] = []
        self._state = _CLOSED
        self._in = bytearray()
        self._out = bytearray()
        self._asked = False  # a CONNECT or a ping waits for its answer
        self._answered = False  # the broker has answered: count the silence from the next tick
        self._since = 0

    @property
    def connected(self) -> bool:
        """Whether the broker has accepted the connection, and nothing has ended it since."""
        return self._state == _OPEN

    def connect(self) -> None:
        """Start on a new transport and forget everything in progress on an old one."""
        self._end()
        self._state = _ASKED
        self._asked = self._answered = True
        self._send(_CONNECT, self._hello)

    def feed(self, data: bytes) -> None:
        """Take the bytes that the transport has read: part of a packet, or many. Bad bytes end the link with `dead`."""
        if self._state == _CLOSED or not data:
            return
        try:
            self._in += data
            at = 0
            while self._state != _CLOSED:
                end = self._packet(at)
                if not end:
                    break
                at = end
            if at:
                self._in = self._in[at:]
        except WireError as error:
            self._die(str(error))
        except MemoryError:
            self._die("out of memory")

    def take(self) -> bytes:
        """The bytes to write to the transport, once."""
        data = bytes(self._out)
        self._out = bytearray()
        return data

    def events(self) -> "list[tuple[Any, ...]]":
        """The events since the last call.

        ("connected",), ("refused", code), ("subscribed", id, granted QoS or REFUSED),
        ("published", id), ("message", topic, payload, retain), ("dead", reason).
        """
        events = self._events
        self._events = []
        return events

    def publish(self, topic: str, payload: bytes, retain: bool = False) -> int:
        """Send a message with QoS 1; returns the id that `published` will name."""
        body = _topic(topic)
        number = self._wait_for(_PUBACK)
        self._send(_PUBLISH | 2 | (1 if retain else 0), body + _number(number) + payload)
        return number

    def subscribe(self, topic: str) -> int:
        """Subscribe to a topic, wildcards allowed, with QoS 1; returns the id that `subscribed` will name."""
        body = _text(topic)
        number = self._wait_for(_SUBACK)
        self._send(_SUBSCRIBE, _number(number) + body + b"\x01")
        return number

    def disconnect(self) -> None:
        """End the link without publishing the will. Write what `take` returns, then close the transport."""
        if self._state == _OPEN:
            self._send(_DISCONNECT, b"")
            self._state = _CLOSED
        else:
            self._end()

    def tick(self, now_ms: int) -> None:
        """Keep the link alive with a ping after half of `keep_alive` without an answer. Call at least twice as often.

        `now_ms` comes from any steady clock in milliseconds.
        """
        if self._state == _CLOSED:
            return
        if self._answered:
            self._since = now_ms
            self._answered = False
        quiet = now_ms - self._since
        if self._asked:
            if quiet >= self._keep_alive:
                self._die("no answer within keep_alive")
        elif quiet >= self._keep_alive // 2:
            self._send(_PINGREQ, b"")
            self._asked = True
            self._since = now_ms

    def _end(self) -> None:
        self._state = _CLOSED
        self._in = bytearray()
        self._out = bytearray()

    def _die(self, reason: str) -> None:
        self._end()
        self._events.append(("dead", reason))

    def _wait_for(self, answer: int) -> int:
        """The next id, for a packet that waits for an answer."""
        if self._state != _OPEN:
            raise SensorError("there is no connection; wait for the event `connected`")
        self._id = self._id % 65535 + 1
        self._waiting[self._id] = answer
        return self._id

    def _send(self, first: int, body: bytes) -> None:
        self._out.append(first)
        length = len(body)
        while length > 127:
            self._out.append(length & 127 | 128)
            length >>= 7
        self._out.append(length)
        self._out += body

    def _packet(self, start: int) -> int:
        """Handle the packet at `start`; returns where it ends, or 0 if it is incomplete."""
        length = shift = 0
        at = start + 1
        while at < len(self._in):
            byte = self._in[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
            if shift > 21:
                raise WireError("malformed: a length of more than four bytes")
        else:
            return 0
        first = self._in[start]
        self._check(first, length)  # before the body arrives, so that no memory is spent on a refused packet
        if at + length > len(self._in):
            return 0
        self._act(first, self._in[at : at + length])
        return at + length

    def _check(self, first: int, length: int) -> None:
        if length > LARGEST:
            raise WireError(f"a packet of more than {LARGEST} bytes")
        if first & 0xF0 == _PUBLISH:
            qos = first >> 1 & 3
            if qos > 1 or (qos == 0 and first & 8):
                raise WireError("malformed: a message of QoS 2, or a duplicate of QoS 0")
        elif _LENGTHS.get(first) != length:
            raise WireError("malformed: not a packet that a broker sends to this client")
        if (first == _CONNACK) != (self._state == _ASKED):
            raise WireError("malformed: the first packet, and no other, answers CONNECT")

    def _act(self, first: int, body: bytearray) -> None:
        if first & 0xF0 == _PUBLISH:
            self._message(first, body)
            return
        # an answer shows that both directions work; messages alone show only one
        self._asked = False
        self._answered = True
        if first == _CONNACK:
            self._accept(body[0], body[1])
        elif first != _PINGRESP:
            self._acknowledged(first, body)

    def _accept(self, flags: int, code: int) -> None:
        if flags:
            raise WireError("malformed: a session from before, or unknown flags, in the answer to CONNECT")
        if code:
            self._end()
            self._events.append(("refused", code))
            return
        self._state = _OPEN
        self._waiting = {}
        self._events.append(("connected",))

    def _acknowledged(self, first: int, body: bytearray) -> None:
        number = body[0] << 8 | body[1]
        if first == _SUBACK and body[2] not in (0, 1, REFUSED):
            raise WireError("malformed: a subscription was granted a QoS that was not asked for")
        if self._waiting.get(number) != first:
            return  # acknowledged twice, which happens when a message is sent again
        del self._waiting[number]
        self._events.append(("published", number) if first == _PUBACK else ("subscribed", number, body[2]))

    def _message(self, first: int, body: bytearray) -> None:
        qos = first >> 1 & 3
        size = body[0] << 8 | body[1] if len(body) > 1 else 0
        at = 2 + size
        if size == 0 or len(body) < at + 2 * qos:
            raise WireError("malformed: a message that ends before it is whole")
        try:
            topic = bytes(body[2:at]).decode()
        except (UnicodeError, ValueError):
            raise WireError("malformed: a topic that is not UTF-8") from None
        _topic(topic)
        if qos:
            if body[at] == 0 == body[at + 1]:
                raise WireError("malformed: a message of QoS 1 without an id")
            self._send(_PUBACK, bytes(body[at : at + 2]))
        self._events.append(("message", topic, bytes(body[at + 2 * qos :]), first & 1 == 1))


def _number(value: int) -> bytes:
    return value.to_bytes(2, "big")


def _prefixed(data: bytes) -> bytes:
    if len(data) > 65535:
        raise WireError("a name, a topic, a password or a will has at most 65535 bytes")
    return _number(len(data)) + data


def _text(text: str) -> bytes:
    if "\0" in text:
        raise WireError("a text of MQTT holds no zero character")
    return _prefixed(text.encode())


def _topic(topic: str) -> bytes:
    if not topic or "+" in topic or "#" in topic:
        raise WireError("a topic to publish on is not empty and has no wildcards")
    return _text(topic)
