"""The loop of a device, in steps that never wait: measure in a slot, cloak, keep, send at a fixed time."""

from cloakwork.sensor.clock import unix_ms
from cloakwork.sensor.device import SPENT, TAKE
from cloakwork.sensor.errors import SensorError, WireError
from cloakwork.sensor.mqtt import REFUSED, Mqtt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from cloakwork.sensor.device import Device
    from cloakwork.sensor.outbox import Outbox

    class Transport(Protocol):
        """A stream of bytes to the broker; none of its calls waits for the network longer than a slot allows."""

        def start(self) -> None:
            """Begin to connect."""

        def status(self) -> str:
            """One of `closed`, `opening` and `open`."""

        def read(self) -> bytes:
            """What has arrived."""

        def write(self, data: bytes) -> None:
            """Send."""

        def close(self) -> None:
            """Let go."""


IN_FLIGHT = 8
GRACE = 1000  # milliseconds in which a broker sends what it has kept of this sensor
LONGEST_PAUSE = 60000
_LONGEST_STEP = 1000


class Station:
    """A device at work. Call `step` again and again; it returns how many milliseconds to wait at most.

    `read` measures: it returns a fraction (numerator, denominator) in the site's unit. If it fails or takes too long, a
    public constant is sent in its place, with noise like any other reading. `extra` are more retained messages to
    publish on connecting, such as those for discovery; `login` a user and a password other than device.json's.
    """

    def __init__(
        self,
        device: "Device",
        outbox: "Outbox",
        transport: "Transport",
        read: "Callable[[], tuple[int, int]]",
        *,
        unix: "Callable[[], int]" = unix_ms,
        note: "Callable[[str], None] | None" = None,
        extra: "tuple[tuple[str, bytes], ...]" = (),
        login: "tuple[str | None, str | None] | None" = None,
    ) -> None:
        self.device = device
        self.outbox = outbox
        self._transport = transport
        self._read = read
        self._unix = unix
        self._note = note or _silent
        self._extra = extra
        broker = device.config["broker"]
        self._login = login or (broker["user"], broker["password"])
        self._mqtt: Mqtt | None = None
        self._greeted = -1  # when the broker granted the subscription; -1 while it has not
        self._asked = False
        self._sent = False
        self._checked = False  # whether the broker has been asked since this start
        self._in_flight: dict[int, int] = {}
        self._send_at = 0
        self._state = "online"
        self._told: bytes | None = None
        self._retry_at = 0
        self._pause = 1000

    def step(self) -> int:
        """Do what is due."""
        now = self.device.clock.now()
        self._link(now)
        self._slot(now)
        now = self.device.clock.now()
        if self._ready(now) and now >= self._send_at:
            self._send()
        self._flush()
        return self._wait(now)

    def stop(self) -> None:
        """Say goodbye."""
        if self._mqtt is not None and self._greeted >= 0:
            self._tell(self.device.status("offline", self.device.clock.now()))
            self._mqtt.disconnect()
            self._flush()
        self._transport.close()
        self.device.close()

    def _slot(self, now: int) -> None:
        device = self.device
        if device.fresh and not self._checked:
            if not self._asked:
                self._note("before its first reading this device asks the broker what it knows of this sensor")
            self._asked = True
            return
        self._align(now)
        now = device.clock.now()
        start = device.slot_start(now)
        verdict = device.begin(now)
        if verdict == TAKE:
            if not device.in_time(device.clock.now()):
                return  # the storage was slow: this slot stays empty, whatever there was to measure
            time = self._stamp(start)
            self.outbox.add(device.cloak(self._measured(start), time))
        elif verdict != SPENT:
            return
        self._state = "online" if verdict == TAKE else "spent"
        self._send_at = start + device.config["schedule"]["offset_ms"]
        while self._send_at < device.clock.now():
            self._send_at += device.period

    def _measured(self, start: int) -> "tuple[int, int] | None":
        """The reading, or None if it failed or came too late."""
        try:
            numerator, denominator = self._read()
        except Exception:  # whatever a driver does, the message goes out
            self._note("no reading could be taken: a constant is sent in its place, with noise")
            return None
        if type(numerator) is not int or type(denominator) is not int or denominator <= 0:
            raise SensorError("read() returns two whole numbers: a numerator, and a denominator above 0")
        now = self.device.clock.now()
        if now - start < self.device.period and self.device.in_time(now):
            return numerator, denominator
        self._note("a reading took too long: a constant is sent in its place, with noise")
        return None

    def _align(self, now: int) -> None:
        """Let slots begin at multiples of the period in Unix time, so that sensors measure together.

        The clock is only ever held back: whoever forges the time can delay readings, and buys none.
        """
        unix, period = self._unix(), self.device.period
        ahead = (now - unix) % period
        if unix and ahead and (ahead <= period // 2 or not self.device.in_time(period - ahead)):
            self.device.clock.hold(ahead)

    def _stamp(self, start: int) -> int:
        """Unix time of the slot that began at `start`: a multiple of the period, the same for all sensors; or 0."""
        unix, period = self._unix(), self.device.period
        began = unix - (self.device.clock.now() - start)
        return (began + period // 2) // period * period if unix else 0

    def _ready(self, now: int) -> bool:
        """Whether the link is up and the broker has told what it knew of this sensor."""
        if self._greeted < 0 or now - self._greeted < GRACE:
            return False
        self._checked = True
        return True

    def _send(self) -> None:
        mqtt = self._mqtt
        if mqtt is None:
            return
        flying = list(self._in_flight.values())
        for seq, payload in self.outbox.first(IN_FLIGHT):
            if seq not in flying and len(self._in_flight) < IN_FLIGHT:
                self._in_flight[mqtt.publish(self.device.topic("data"), payload, qos=1, retain=True)] = seq
        told = self.device.status(self._state, self._send_at)
        if told != self._told:
            self._tell(told)

    def _tell(self, status: bytes) -> None:
        if self._mqtt is not None:
            self._told = status
            self._mqtt.publish(self.device.topic("status"), status, qos=1, retain=True)

    def _link(self, now: int) -> None:
        status = self._transport.status()
        if status == "closed":
            self._lost(now)
            return
        if status == "opening":
            return
        mqtt = self._mqtt = self._mqtt or self._hello()
        mqtt.feed(self._transport.read())
        mqtt.tick(now)
        for event in mqtt.events():
            if self._mqtt is mqtt:
                self._event(event, now)

    def _lost(self, now: int) -> None:
        """Forget the connection that was, and try again after a pause that depends on nothing but the last ones."""
        if self._mqtt is not None:
            self._note("the link to the broker is lost")
        self._mqtt, self._greeted, self._told, self._in_flight = None, -1, None, {}
        if now >= self._retry_at:
            self._retry_at = now + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._transport.start()

    def _hello(self) -> Mqtt:
        device = self.device
        name = device.config["site"] + "-" + device.config["sensor"]
        will = device.topic("status"), device.status("offline", 0), True
        mqtt = Mqtt(name, self._login[0], self._login[1], will)
        mqtt.connect()
        return mqtt

    def _event(self, event: "tuple[object, ...]", now: int) -> None:
        kind = event[0]
        if kind == "connected" and self._mqtt is not None:
            self._mqtt.subscribe(self.device.topic("data"))
            for where, what in self._extra:
                self._mqtt.publish(where, what, qos=1, retain=True)
        elif kind == "subscribed" and event[2] != REFUSED:
            self._greeted, self._pause = now, 1000
            self._note("connected")
        elif kind == "published":
            self._confirm(self._in_flight.pop(event[1], -1))  # type: ignore[call-overload]
        elif kind == "message":
            self._hear(bytes(event[2]), now)  # type: ignore[call-overload]
        elif kind in ("refused", "dead", "subscribed"):
            self._note("the broker does not answer" if kind == "dead" else "the broker refuses this device")
            self._transport.close()
            self._lost(now)

    def _confirm(self, seq: int) -> None:
        self.outbox.confirmed(seq)
        if seq >= 0 and not self._sent:
            self._sent = True
            self._note("the broker has the first reading")

    def _hear(self, payload: bytes, now: int) -> None:
        try:
            if self.outbox.knows(payload):
                return
        except WireError:
            return
        if self.device.heard(payload, now):
            self.outbox.clear()
            self._note(
                "the broker knows readings of this sensor that this device did not send: a backup was restored, or it "
                "was provisioned again. It goes on after them, when a whole window has passed"
            )

    def _flush(self) -> None:
        if self._mqtt is not None and self._transport.status() == "open":
            data = self._mqtt.take()
            if data:
                self._transport.write(data)

    def _wait(self, now: int) -> int:
        """Milliseconds until the next slot or sending, and never so long that the link is not looked after."""
        period = self.device.period
        due = [period - now % period, _LONGEST_STEP]
        if now < self._send_at:
            due.append(self._send_at - now)
        return max(1, min(due))


def _silent(said: str) -> None:
    """For a device without a screen."""
