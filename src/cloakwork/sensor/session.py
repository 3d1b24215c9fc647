"""The session with the broker: connect, hear what it knows, send, and retry after a loss."""

from cloakwork.sensor.mqtt import REFUSED, Mqtt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from cloakwork.sensor.device import Device

    class Transport(Protocol):
        """A stream of bytes to the broker; no call waits for the network longer than a slot allows."""

        def start(self) -> None:
            """Start to connect."""

        def status(self) -> str:
            """One of `closed`, `opening` and `open`."""

        def reason(self) -> str:
            """Why the last attempt failed; empty if it succeeded."""

        def read(self) -> bytes:
            """Return the bytes that have arrived."""

        def write(self, data: bytes) -> None:
            """Send."""

        def close(self) -> None:
            """Close the stream."""


IN_FLIGHT = 8
GRACE = 500  # milliseconds, for a broker that reorders messages
PATIENCE = 10000  # milliseconds to wait for the device's own status to come back
LONGEST_PAUSE = 60000


class Session:
    """The session of one device.

    It is ready once the device's own status has come back from the broker. By then the device has also heard the last
    retained reading of this sensor, and knows that it may read its topics. Without that permission it could not notice
    that its storage was restored from a backup.
    """

    def __init__(
        self,
        device: "Device",
        transport: "Transport",
        login: "tuple[str | None, str | None]",
        extra: "tuple[tuple[str, bytes], ...]",
        note: "Callable[[str], None]",
    ) -> None:
        self._device = device
        self._transport = transport
        self._login = login
        self.state = "online"  # to report
        self._extra = extra
        self._note = note
        self._mqtt: Mqtt | None = None
        self._asked: int | None = None  # when the subscription was granted and the status sent
        self._heard: int | None = None  # when that status came back
        self._flying: dict[int, int] = {}
        self._granted_count = 0
        self._status = b""  # the last that was published
        self._retry_at: int | None = None
        self._pause = 1000
        self._why = ""

    def step(self, now: int) -> "list[tuple[Any, ...]]":
        """Serve the link; returns ("confirmed", seq) and ("message", payload, retained) events in order."""
        status = self._transport.status()
        if status == "closed":
            self._lost(now)
        if status != "open":
            return []
        mqtt = self._mqtt = self._mqtt or self._hello()
        mqtt.feed(self._transport.read())
        mqtt.tick(now)
        events: list[tuple[Any, ...]] = []
        for event in mqtt.events():
            if self._mqtt is mqtt:
                events += self._event(event, now)
        if self._asked is not None and self._heard is None and now - self._asked > PATIENCE:
            self._give_up("the broker does not let this device read its own topics: allow it to", now)
        return events

    def ready(self, now: int) -> bool:
        """Whether the device may send: it has heard what the broker knows of this sensor."""
        return self._heard is not None and now - self._heard >= GRACE

    def send(self, messages: "list[tuple[int, bytes]]") -> None:
        """Publish the readings, given with their sequence numbers, that are not in flight already."""
        flying = list(self._flying.values())
        for seq, payload in messages:
            if self._mqtt is None or seq in flying or len(flying) >= IN_FLIGHT:
                continue
            flying.append(seq)
            self._flying[self._mqtt.publish(self._device.topic("data"), payload, retain=True)] = seq

    def publish_state(self, now: int) -> None:
        """Publish the status, unless it equals the last one."""
        status = self._device.status(self.state, now)
        if self._mqtt is not None and status != self._status:
            self._status = status
            self._mqtt.publish(self._device.topic("status"), status, retain=True)

    def flush(self) -> None:
        """Hand pending bytes to the transport."""
        if self._mqtt is not None and self._transport.status() == "open":
            data = self._mqtt.take()
            if data:
                self._transport.write(data)

    def close(self, now: int) -> None:
        """Publish that the device stops, and disconnect."""
        if self._mqtt is not None and self._asked is not None:
            self.state = "offline"
            self.publish_state(now)
            self._mqtt.disconnect()
            self.flush()
        self._transport.close()

    def _event(self, event: "tuple[Any, ...]", now: int) -> "list[tuple[Any, ...]]":
        kind = event[0]
        if kind == "published":
            return [("confirmed", self._flying.pop(event[1], -1))]
        if kind == "message":
            if event[1] == self._device.topic("data"):
                return [("message", event[2], event[3])]
            if self._asked is not None and not event[3] and self._heard is None:
                self._heard, self._why = now, ""
                self._note("connected")
        elif kind == "connected" and self._mqtt is not None:
            self._mqtt.subscribe(self._device.topic("data"))
            self._mqtt.subscribe(self._device.topic("status"))
            self._granted_count = 0
        elif kind == "subscribed" and event[2] != REFUSED:
            self._granted(now)
        elif kind in ("refused", "subscribed"):
            self._give_up("the broker refuses this device: check its user, its password and its permissions", now)
        elif kind == "dead":
            self._give_up("the broker does not answer", now)
        return []

    def _granted(self, now: int) -> None:
        self._granted_count += 1
        if self._granted_count == 2 and self._mqtt is not None:
            self._asked = now
            self.publish_state(now)
            for where, what in self._extra:
                self._mqtt.publish(where, what, retain=True)

    def _hello(self) -> Mqtt:
        device = self._device
        will = device.topic("status"), device.status("offline", 0)
        config = device.config
        # each generation has its own client name, so that two devices of a sensor do not disconnect each other
        name = config["site"] + "." + config["sensor"] + "." + str(config["generation"])
        mqtt = Mqtt(name, self._login[0], self._login[1], will)
        mqtt.connect()
        return mqtt

    def _give_up(self, why: str, now: int) -> None:
        self._say(why)
        self._transport.close()
        self._lost(now)

    def _lost(self, now: int) -> None:
        """Forget the lost connection, and retry after a pause that depends only on the previous pauses."""
        if self._heard is not None:
            self._note("the link to the broker is lost")
            # if another device has the same name, each ends the other's link: growing pauses let one get through
            if now - self._heard > 2 * LONGEST_PAUSE:
                self._pause = 1000
        self._say(self._transport.reason())
        self._mqtt, self._asked, self._heard, self._status, self._flying = None, None, None, b"", {}
        if self._retry_at is None or now >= self._retry_at:
            self._retry_at = now + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._transport.start()

    def _say(self, why: str) -> None:
        """Report a reason once."""
        if why and why != self._why:
            self._why = why
            self._note(why)
