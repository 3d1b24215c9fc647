"""The loop of a device, in steps that never block: measure in a slot, cloak, store, send at a fixed time."""

from cloakwork.sensor.clock import unix_ms
from cloakwork.sensor.device import SPENT, TAKE
from cloakwork.sensor.errors import WireError
from cloakwork.sensor.measuring import ONLINE, REASONS, SKIPPING, SLOW, MeasuringHealth, attempt
from cloakwork.sensor.session import IN_FLIGHT, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cloakwork.sensor.device import Device
    from cloakwork.sensor.measuring import Measured
    from cloakwork.sensor.outbox import Outbox
    from cloakwork.sensor.session import Transport
    from cloakwork.sensor.sntp import NetworkTime

_LONGEST_STEP = 1000


class Station:
    """A running device. Call `step` repeatedly; it returns the longest time to wait, in milliseconds.

    `read` measures: it returns a fraction (numerator, denominator) in the site's unit. If it fails or takes too long,
    the device sends a public constant instead, with noise like any other reading. Unix time comes from `network_time`
    if given, else from `unix`; 0 means that it is not known well enough. `extra` holds further retained messages to
    publish on connecting, such as those for discovery; `login` is a user and a password that replace those in
    device.json.
    """

    def __init__(
        self,
        device: "Device",
        outbox: "Outbox",
        transport: "Transport",
        read: "Callable[[], Measured]",
        *,
        unix: "Callable[[], int]" = unix_ms,
        network_time: "NetworkTime | None" = None,
        note: "Callable[[str], None] | None" = None,
        extra: "tuple[tuple[str, bytes], ...]" = (),
        login: "tuple[str | None, str | None] | None" = None,
    ) -> None:
        self.device = device
        self.outbox = outbox
        self._read = read
        self._network_time = network_time
        self._unix = unix if network_time is None else network_time.unix
        self._note = note or silent
        broker = device.config["broker"]
        own = broker["user"], broker["password"]
        self._session = Session(device, transport, login or own, extra, self._note)
        self._missing = ""
        self._sent = False
        self._moved = False
        self._checked = False  # whether the broker has answered since this start
        self._send_at = device.clock.now()
        self._aligned = False
        self._stamped = 0  # the time of the last slot in which the device measured
        self._made = -1  # the first sequence number since this start
        self._failed = False
        self._skipped = False
        self._health = MeasuringHealth()
        newest = outbox.newest()
        if newest and device.ahead(newest):
            # the messages are newer than the state, so an older state was restored
            self._hear(newest, True, device.clock.now())

    def step(self) -> int:
        """Do what is due. Nothing is due between measuring and sending, so no traffic shows how long measuring took."""
        now = self.device.clock.now()
        if now < self._send_at:
            return max(0, min(_LONGEST_STEP, self._send_at - now - 1))
        self._listen(now)
        if self._session.ready(now):
            self._checked = True
            self._session.send(self.outbox.first(IN_FLIGHT))
            self._session.publish_state(now)
        self._session.flush()
        self._slot()
        now = self.device.clock.now()
        if now < self._send_at:  # a request for the time would be dropped, maybe in every slot
            return self._wait()
        return min(self._keep_time(now), self._wait())

    @property
    def waits(self) -> bool:
        """Whether the broker has yet to answer: to the first call since this start, or to a reading that is sent."""
        return not self._checked or (len(self.outbox) > 0 and self.device.clock.now() >= self._send_at)

    def stop(self) -> None:
        """Disconnect and close the device."""
        self._session.close(self.device.clock.now())
        if self._network_time is not None:
            self._network_time.close()
        self.outbox.tidy()
        self.device.close()

    def _listen(self, now: int) -> None:
        for event in self._session.step(now):
            if event[0] == "message":
                self._hear(event[1], event[2], now)
            elif event[1] >= 0:
                self.outbox.confirmed(event[1])
                if not self._sent and 0 <= self._made <= event[1]:
                    self._sent = True
                    self._note("the broker has the first reading")

    def _hear(self, payload: bytes, retained: bool, now: int) -> None:
        try:
            own = self.outbox.knows(payload)
            if own and not self.device.ahead(payload):
                return
        except WireError:
            return
        # messages made since a backup repeat numbers: they go first. Own ones that show a backup go last, as its proof
        drop = None if own else self.outbox.clear
        # a backup is restored only once: a device that falls behind the broker again has a running copy
        if self.device.heard(payload, retained and not self._moved, now, drop):
            self._moved = True
            self.outbox.clear()
            self._note(
                "the broker knows readings of this sensor that this device did not send: a backup was restored, or the "
                "sensor was provisioned again. The device continues after these readings, in one window"
            )

    def _keep_time(self, now: int) -> int:
        """Serve the time server; returns how long it can wait. The answer must be here before the next slot begins."""
        if self._network_time is None:
            return _LONGEST_STEP
        period = self.device.period
        return self._network_time.serve(period - now % period >= min(_LONGEST_STEP, period // 4))

    def _slot(self) -> None:
        device = self.device
        if not self._may_measure():
            return
        self._align()
        now = device.clock.now()
        start = device.slot_start(now)
        time = self._stamp(start)
        if not self._in_time(start, time) or (self._together and time <= self._stamped):
            device.checkpoint(now)
            return
        verdict = device.begin(now, pause=self._pause(time))
        if verdict not in (TAKE, SPENT):
            return
        if self._network_time is not None:
            self._network_time.drop()
        if verdict == TAKE and not self._in_time(start, time):
            self._skip()
        elif verdict == TAKE:
            self._stamped = time
            made = self.outbox.add(device.cloak(self._measured(start, time), time))
            self._made = made if self._made < 0 else self._made
        state = self._health.state
        self._session.state = "spent" if verdict == SPENT and state == ONLINE else state
        self._send_at = start + device.config["schedule"]["offset_ms"]
        while self._send_at < device.clock.now():
            self._send_at += device.period

    def _may_measure(self) -> bool:
        """Whether the broker has answered if it must, and the time is known if sensors measure together."""
        missing = ""
        if self.device.fresh and not self._checked:
            missing = "before its first reading, this device asks the broker what it knows of this sensor"
        elif self._together and not self._unix():
            missing = "this device waits for the time: all sensors of the site must measure at the same moments"
        if missing and missing != self._missing:
            self._note(missing)
        self._missing = missing
        return not missing

    def _pause(self, time: int) -> bool:
        """Whether the plan makes all devices of the site skip the slot of this time."""
        plan = self.device.config["schedule"]
        return bool(time) and 0 < plan["allowed"] <= time // self.device.period % plan["window_slots"]

    def _in_time(self, start: int, time: int) -> bool:
        """Whether a reading may be measured now, for the slot that began at `start` and has the Unix time `time`.

        Sensors that measure together do so in the first `late_ms` of the slot by Unix time, and once.
        """
        now = self.device.clock.now()
        if now - start >= self.device.period or not self.device.in_time(now):
            return False
        return not self._together or 0 <= self._unix() - time < self.device.late

    @property
    def _together(self) -> bool:
        return bool(self.device.config["together"])

    def _measured(self, start: int, time: int) -> "Measured":
        """The reading, or None if it failed or came too late. The device sends a message in any case."""
        reading, state = attempt(self._read)
        if not self._in_time(start, time):
            reading, state = None, SLOW
        failed = state != ONLINE
        if failed and not self._failed:
            self._note(REASONS[state] + ": the device sends a constant with noise instead, until readings return")
        self._failed = failed
        self._health.add(state)
        return reading

    def _skip(self) -> None:
        """Leave the slot empty, whatever the reading: the storage was slow."""
        if not self._skipped:
            self._note("writing the state took longer than late_ms, so this slot stays empty. A longer late helps")
        self._skipped = True
        self._health.add(SKIPPING)

    def _align(self) -> None:
        """Align slots to multiples of the period in Unix time, so that sensors measure together.

        The clock is only ever held back: a forged time can delay readings but never gain extra ones. A device that is
        a little behind goes on, since waiting for the next slot costs a reading. Unix time was read somewhere between
        `before` and `now`, which are apart where the processor was elsewhere: only what is certain counts, and after a
        long absence the next slot decides.
        """
        before, unix, now, period = self.device.clock.now(), self._unix(), self.device.clock.now(), self.device.period
        if now - before > period // 2:
            return
        ahead = (before - unix) % period
        behind = period - ahead - (now - before)
        most = min(self.device.late - 1, 2 + self.device.late // 8) if self._aligned else 0
        if unix and ahead and (ahead <= period // 2 or behind > most):
            self.device.hold(ahead)
        self._aligned = bool(unix)

    def _stamp(self, start: int) -> int:
        """Unix time of the slot that began at `start`, a multiple of the period and equal for all sensors; or 0."""
        unix, period = self._unix(), self.device.period
        began = unix - (self.device.clock.now() - start)
        return (began + period // 2) // period * period if unix else 0

    def _wait(self) -> int:
        """Milliseconds until the next slot or sending, short enough to serve the link."""
        now, period = self.device.clock.now(), self.device.period
        due = period - now % period
        if now < self._send_at:
            due = min(due, self._send_at - now - 1)
        return max(0, min(due, _LONGEST_STEP))


def silent(text: str) -> None:
    """Ignore notes, on a device without a screen."""
