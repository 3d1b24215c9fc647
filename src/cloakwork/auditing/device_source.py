"""A test device over MQTT: recorded with one set-up of sources, then with the other."""

import csv
import queue
import time
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from cloakwork._checks import IntArray
from cloakwork.errors import BrokerError, InputError, ReadingError
from cloakwork.keys import DeviceKind, wire_site
from cloakwork.mqtt import BrokerAddress, BrokerState, MqttClient, MqttMessage, MqttSession
from cloakwork.readings import HEADER
from cloakwork.sensor.errors import WireError
from cloakwork.sensor.keystream import split
from cloakwork.sensor.wire import ReplayCheck, read_reading, topic

_REMEMBERED = 1 << 20  # sequence numbers among which two values of one are noticed
_PACED = 3  # readings that show how often the device reads


class _Reading(NamedTuple):
    seq: int
    stamp: int
    value: int
    at: int


class DeviceListener:
    """Receives the readings of one test device, across all set-ups. Use it as a context.

    After `patience` seconds without a reading it gives up; meanwhile it reconnects to a lost broker. `note` receives a
    sentence when the broker goes and comes back.
    """

    def __init__(
        self,
        broker: BrokerAddress,
        *,
        site: str,
        sensor: str,
        patience: float = 60.0,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.sensor, self.patience = sensor, patience
        self.topic = topic(wire_site(site, DeviceKind.BENCH), sensor, DeviceKind.BENCH)
        self.replays = ReplayCheck(_REMEMBERED)  # a number with two values means that noise was used twice
        self._note = note
        self._heard: queue.SimpleQueue[tuple[bytes, int]] = queue.SimpleQueue()
        self._states: queue.SimpleQueue[BrokerState] = queue.SimpleQueue()
        self._connected: bool | None = None
        session = MqttSession(filters=[self.topic], on_message=self._on_message, on_state=self._on_state, keep_alive=20)
        self._client = MqttClient(broker, session)

    def __enter__(self) -> Self:
        self._client.start()
        state = self._states.get()  # the client gives up its first attempt after a while
        if not state.connected:
            self._client.stop()
            raise BrokerError(f"{state.reason}.", reason=state.reason)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop()

    def next(self, seconds: float) -> _Reading | None:
        """Return the next reading, None if there is none in time."""
        try:
            payload, at = self._heard.get(timeout=max(seconds, 0.0))
            return _Reading(*read_reading(payload), at)
        except queue.Empty:
            return None
        except WireError as problem:
            raise ReadingError(f"the device sent something other than a reading: {problem}.") from None

    def forget(self) -> None:
        """Discard all messages so far."""
        while not self._heard.empty():
            self._heard.get()

    def pace(self) -> float | None:
        """Return the seconds between two readings, by the stamps of the next few; None if the device has no clock."""
        stamps: dict[int, int] = {}
        while len(stamps) < _PACED:
            reading = self.next(self.patience)
            if reading is None:
                raise self.silence()
            stamps[reading.seq] = reading.stamp
        steps = pairwise(sorted(stamps.items()))
        apart = [(later - earlier) / (b - a) for (a, earlier), (b, later) in steps if 0 < earlier < later]
        return min(apart) / 1000 if apart else None

    def silence(self) -> BrokerError:
        """Return the error for a silent device or broker."""
        state = self._client.state
        if not state.connected:
            return BrokerError(f"the broker was away for {self.patience:g} s ({state.reason}).", reason=state.reason)
        return BrokerError(
            f"no new reading on {self.topic} for {self.patience:g} s. Is the device on, is its clock set, and was it "
            "provisioned for tests?",
            topic=self.topic,
            patience=self.patience,
        )

    def _on_message(self, message: MqttMessage) -> None:
        message.acknowledge()
        if not message.retained:  # the last reading that the broker kept is of an unknown set-up
            self._heard.put((message.payload, time.time_ns() // 1_000_000))

    def _on_state(self, state: BrokerState) -> None:
        if self._connected is None:
            self._states.put(state)
        elif state.connected != self._connected:
            self._note("the broker is back" if state.connected else "the broker is away: waiting for it")
        self._connected = state.connected


class Recording:
    """The readings of one set-up, written to a file as they come. Use it as a context.

    A file that exists is continued. The first `settle` seconds do not count, because readings in transit are of the
    previous set-up; a reading that is stamped earlier is dropped whenever it arrives.
    """

    def __init__(self, listener: DeviceListener, path: Path, *, settle: float = 0.0) -> None:
        self._listener, self._settle, self.path = listener, settle, path
        self.values: list[int] = []
        self._numbers: list[int] = []
        self._since = 0
        if path.exists():
            self._continue()
        self._file = path.open("a", newline="", encoding="utf-8")
        self._rows = csv.writer(self._file, lineterminator="\n")
        if not self.values:
            self._rows.writerow(HEADER)

    def __enter__(self) -> Self:
        self._since = time.time_ns() // 1_000_000 + round(1000 * self._settle)
        self._listener.forget()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if not self.values:
            self.path.unlink(missing_ok=True)

    def take(self, size: int, progress: Callable[[int], None] = lambda _: None) -> IntArray:
        """Wait for `size` more readings and return them in steps; `progress` receives how many are recorded."""
        first = len(self.values)
        end = time.monotonic() + self._listener.patience + self._settle
        while len(self.values) < first + size:
            reading = self._listener.next(min(end - time.monotonic(), 0.5))
            if reading is not None and self._keep(reading):
                end = time.monotonic() + self._listener.patience
                progress(len(self.values))
            elif time.monotonic() > end:
                raise self._listener.silence()
        return np.array(self.values[first:], dtype=np.int64)

    @property
    def missing(self) -> int:
        """Sequence numbers between the first and the last reading that never came."""
        return gaps(self._numbers)

    def _keep(self, reading: _Reading) -> bool:
        if reading.at < self._since or 0 < reading.stamp < self._since:
            return False
        seen = self._listener.replays.check(reading.seq, reading.value)
        if seen == "alarm":
            raise ReadingError(
                f"number {reading.seq} has two values. Noise was used twice, or someone else publishes in the sensor's "
                "name: these are not reports of one honest device."
            )
        if seen == "again":
            return False
        self._numbers.append(reading.seq)
        self.values.append(reading.value)
        self._rows.writerow((reading.stamp, self._listener.sensor, reading.seq, reading.value))
        self._file.flush()
        return True

    def _continue(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # a last line that was cut off does not count
        try:
            rows = [(row["sensor"], int(row["seq"]), int(row["steps"])) for row in csv.DictReader(whole.splitlines())]
        except (KeyError, TypeError, ValueError):
            rows = []
        if not rows or {sensor for sensor, _, _ in rows} != {self._listener.sensor}:
            raise InputError(
                f"{self.path}: this is no recording of {self._listener.sensor}. Give another folder.",
                path=str(self.path),
            )
        for _, seq, value in rows:
            self._listener.replays.check(seq, value)
            self._numbers.append(seq)
            self.values.append(value)
        if whole != text:
            self.path.write_text(whole, encoding="utf-8")


class DeviceSource:
    """Reports of a test device: those of the first set-up as recorded, those of the second as they come.

    Call it as a mechanism. The audit may stop before the second recording is as long as the first.
    """

    def __init__(self, first: IntArray, second: Recording) -> None:
        self._first, self._second = first, second
        self._next = [0, 0]

    def __call__(self, database: int, size: int, rng: np.random.Generator) -> IntArray:  # noqa: ARG002 - it has its own
        """Return the next readings of a set-up, in steps."""
        start = self._next[database]
        self._next[database] += size
        more = start + size - len(self._second.values)
        if database and more > 0:
            self._second.take(more)
        return np.array((self._second.values if database else self._first)[start : start + size], dtype=np.int64)


def gaps(numbers: Iterable[int]) -> int:
    """Count the sequence numbers missing between the first and the last, within each provisioning of the device.

    >>> gaps([7, 8, 11, 10])
    1
    """
    counters: dict[int, list[int]] = {}
    for number in numbers:
        generation, counter = split(number)
        counters.setdefault(generation, []).append(counter)
    return sum(max(part) - min(part) + 1 - len(part) for part in counters.values())
