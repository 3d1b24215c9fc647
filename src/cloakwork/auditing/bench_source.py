"""A device on the bench, over a broker: recorded with one set-up of sources, then with the other."""

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
from cloakwork.mqtt import BrokerAddress, BrokerState, MqttClient, MqttMessage
from cloakwork.readings import HEADER
from cloakwork.sensor.errors import WireError
from cloakwork.sensor.keystream import split
from cloakwork.sensor.wire import ReplayCheck, read_reading, topic

KEEP_ALIVE = 20  # seconds
REMEMBERED = 1 << 20  # sequence numbers among which two values of one are noticed
_LONGEST_RETRY = 10.0  # seconds between two attempts to reach a broker
_PACED = 3  # readings that show how often the device reads


class _Heard(NamedTuple):
    payload: bytes
    at: int


class BenchListener:
    """Records one device that was provisioned for the bench. Use it as a context.

    `site` is the name without `-bench`. After `patience` seconds without a reading it gives up; meanwhile it tries to
    reconnect to a lost broker. `note` receives a sentence when the broker goes and comes back.

    Notes
    -----
    It remembers the value of each sequence number across all set-ups: a number with two values means that noise was
    used twice.
    """

    def __init__(
        self,
        broker: BrokerAddress,
        *,
        site: str,
        sensor: str,
        patience: float = 60.0,
        note: Callable[[str], None] = lambda _: None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.sensor, self.patience, self.clock = sensor, patience, clock
        self.topic = topic(wire_site(site, DeviceKind.BENCH), sensor, DeviceKind.BENCH)
        self.replay_check = ReplayCheck(REMEMBERED)
        self.recorded = 0  # readings, in all set-ups
        self._note = note
        self._heard: queue.SimpleQueue[_Heard] = queue.SimpleQueue()
        self._first_state: queue.SimpleQueue[BrokerState] = queue.SimpleQueue()
        self._connected: bool | None = None
        self._client = MqttClient(
            broker,
            filters=[self.topic],
            on_message=self._on_message,
            on_state=self._on_state,
            keep_alive=KEEP_ALIVE,
            longest_retry=_LONGEST_RETRY,
        )

    def __enter__(self) -> Self:
        self._client.start()
        state = self._first_state.get()  # the client gives up its first attempt after a while
        if not state.connected:
            self._client.stop()
            raise BrokerError(f"{state.reason}.", reason=state.reason)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop()

    def next(self, seconds: float) -> _Heard | None:
        """The next message of the device, None if there is none in time."""
        try:
            return self._heard.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return None

    def forget(self) -> None:
        """Discard all messages so far."""
        while not self._heard.empty():
            self._heard.get()

    def pace(self) -> float | None:
        """Seconds between two readings, by the stamps of the next few; None if the device has no clock."""
        stamps: dict[int, int] = {}
        end = time.monotonic() + _PACED * self.patience
        while len(stamps) < _PACED:
            heard = self.next(min(self.patience, end - time.monotonic()))
            if heard is None:
                raise self.silence()
            seq, stamp, _ = _reading(heard)
            stamps[seq] = stamp
        ordered = pairwise(sorted(stamps.items()))
        # an empty slot may use up a number, or not
        apart = [(later - earlier) / (b - a) for (a, earlier), (b, later) in ordered if 0 < earlier < later]
        return min(apart) / 1000 if apart else None

    def silence(self) -> BrokerError:
        """The error for a silent device or broker."""
        kept = " What was recorded is kept." if self.recorded else ""
        state = self._client.state
        if not state.connected:
            return BrokerError(
                f"the broker was away for {self.patience:g} s ({state.reason}).{kept}", reason=state.reason
            )
        return BrokerError(
            f"no reading on {self.topic} for {self.patience:g} s. Is the device on, and was it provisioned for the "
            f"bench?{kept}",
            topic=self.topic,
            patience=self.patience,
        )

    def _on_message(self, message: MqttMessage) -> None:
        message.acknowledge()
        if message.retained:
            return  # the last reading that the broker kept, of an unknown set-up
        self._heard.put(_Heard(message.payload, self.clock()))

    def _on_state(self, state: BrokerState) -> None:
        if self._connected is None:
            self._first_state.put(state)
        elif state.connected != self._connected:
            self._note("the broker is back" if state.connected else "the broker is away: waiting for it")
        self._connected = state.connected


class SetupRecording:
    """The recording of one set-up, written to a file of readings as it grows. Use it as a context.

    The file must not exist yet, unless an earlier recording of this set-up is `continued`; it is removed again if no
    reading came. The first `settle` seconds do not count, because readings in transit are of the previous set-up. A
    reading that is stamped earlier is dropped whenever it arrives.
    """

    def __init__(self, bench: BenchListener, path: Path, *, settle: float = 0.0, continued: bool = False) -> None:
        self._bench, self._settle = bench, settle
        self.path = path
        self.values: list[int] = []
        self.dropped = self._again = 0
        self._numbers: list[int] = []
        self._since = self._behind = 0
        goes_on = continued and path.exists()
        if goes_on:
            self._read_earlier()
        try:
            self._file = path.open("a" if goes_on else "x", newline="", encoding="utf-8")
        except FileExistsError:
            raise InputError(f"{path} is there already: give another folder, or move it away.") from None
        self._rows = csv.writer(self._file, lineterminator="\n")
        if not goes_on:
            self._rows.writerow(HEADER)

    def __enter__(self) -> Self:
        self._since = self._bench.clock() + round(1000 * self._settle)
        self._bench.forget()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if not self.values:
            self.path.unlink(missing_ok=True)

    def _read_earlier(self) -> None:
        """Take over the readings of the file; a last line that was cut off in the middle does not count."""
        text = self.path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        rows = list(csv.DictReader(whole.splitlines()))
        try:
            readings = [(int(row["seq"]), int(row["steps"])) for row in rows]
        except (KeyError, TypeError, ValueError):
            readings = []
        if not readings or {row["sensor"] for row in rows} != {self._bench.sensor}:
            raise InputError(
                f"{self.path}: this is no recording of {self._bench.sensor}. Give another folder.", path=str(self.path)
            )
        for number, value in readings:
            self._bench.replay_check.check(number, value)
            self._numbers.append(number)
            self.values.append(value)
        if whole != text:
            self.path.write_text(whole, encoding="utf-8")

    def take(self, size: int, progress: Callable[[int], None] = lambda _: None) -> IntArray:
        """Wait for `size` more readings, in steps; `progress` receives how many are recorded in all."""
        first = len(self.values)
        end = time.monotonic() + self._bench.patience + self._settle
        while len(self.values) < first + size:
            heard = self._bench.next(min(end - time.monotonic(), 0.5))
            if heard is not None and self._keep(heard):
                end = time.monotonic() + self._bench.patience
                progress(len(self.values))
            elif time.monotonic() > end:
                raise self._stale() or self._bench.silence()
        return np.array(self.values[first:], dtype=np.int64)

    @property
    def missing(self) -> int:
        """Sequence numbers between the first and the last reading that never came."""
        return gaps(self._numbers)

    def _keep(self, heard: _Heard) -> bool:
        seq, stamp, value = _reading(heard)
        if heard.at < self._since or 0 < stamp < self._since:
            self._behind = self._since - stamp
            self.dropped += 1
            return False
        seen = self._bench.replay_check.check(seq, value)
        if seen == "alarm":
            raise ReadingError(
                f"number {seq} has two values. Noise was used twice, or someone else publishes in the sensor's name: "
                "these are not reports of one honest device."
            )
        if seen == "again":
            self._again += 1
            return False
        self._rows.writerow((stamp, self._bench.sensor, seq, value))
        self._file.flush()
        self.values.append(value)
        self._numbers.append(seq)
        self._bench.recorded += 1
        self._again = 0
        return True

    def _stale(self) -> BrokerError | None:
        if self._again:
            return BrokerError(
                f"no new reading for {self._bench.patience:g} s: all {self._again} that came were recorded before. The "
                "device repeats itself, or someone replays its readings."
            )
        if self.values or not self.dropped:
            return None
        return BrokerError(
            f"all {self.dropped} readings are stamped {self._behind / 1000:.0f} s or more before this set-up began. "
            "Set the device's clock, or this computer's."
        )


class BenchSource:
    """Reports for an audit: those of the first set-up as recorded, those of the second as they are recorded.

    Call it as a mechanism. The audit may stop before the second recording is as long as the first. `progress` receives
    how many readings of the second are recorded.
    """

    def __init__(
        self, first: IntArray, second: SetupRecording, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        self._first, self._second, self._progress = first, second, progress
        self._next = [0, 0]

    @property
    def ceiling(self) -> int:
        """Readings of the first set-up."""
        return len(self._first)

    def __call__(self, database: int, size: int, rng: np.random.Generator) -> IntArray:  # noqa: ARG002 - the device has its own
        """The next readings of a set-up, in steps."""
        start = self._next[database]
        self._next[database] += size
        if not database:
            return self._first[start : start + size]
        if (more := start + size - len(self._second.values)) > 0:
            self._second.take(more, self._progress)
        return np.array(self._second.values[start : start + size], dtype=np.int64)


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


def _reading(heard: _Heard) -> tuple[int, int, int]:
    """Sequence number, stamp and value of a message."""
    try:
        return read_reading(heard.payload)
    except WireError as problem:
        raise ReadingError(f"the device sent something other than a reading: {problem}.") from None
