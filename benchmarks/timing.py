"""Whether the moment at which a reading leaves a device reveals anything about its noise: it must not."""

import tempfile
import time
from pathlib import Path

import numpy as np
from rich.progress import track
from rich.table import Table
from scipy import stats

from cloakwork.sensor.device import Device
from cloakwork.sensor.outbox import Outbox
from cloakwork.sensor.station import Station
from cloakwork.sensor.store import Folder
from cloakwork.sensor.wire import read_reading
from tests.devices import make_folder

GOAL = 0.02
DRAWS = 100_000
PERIOD = 2  # milliseconds
RATIO = 3017.0
_PUBLISH, _CONNACK, _SUBACK, _PUBACK = 0x30, b"\x20\x02\x00\x00", b"\x90\x03", b"\x40\x02"


class Recorder:
    """A transport that records when each reading leaves, and answers like a broker."""

    def __init__(self) -> None:
        self.left: list[tuple[int, int]] = []  # nanoseconds, value
        self.payloads: list[bytes] = []
        self._answer = b""
        self._open = False

    def start(self) -> None:
        self._open = True

    def status(self) -> str:
        return "open" if self._open else "closed"

    def reason(self) -> str:
        return ""

    def read(self) -> bytes:
        answer, self._answer = self._answer, b""
        return answer

    def write(self, data: bytes) -> None:
        now = time.monotonic_ns()
        while data:
            size, start = _remaining(data)
            packet, data = data[: start + size], data[start + size :]
            self._take(packet, start, now)

    def close(self) -> None:
        self._open = False

    def _take(self, packet: bytes, start: int, now: int) -> None:
        if packet[0] & 0xF0 == _PUBLISH:
            topic = int.from_bytes(packet[start : start + 2], "big")
            at = start + 2 + topic
            self._answer += _PUBACK + packet[at : at + 2]
            if packet[start + 2 : at].endswith(b"/reading"):
                self.payloads.append(packet[at + 2 :])
                self.left.append((now, read_reading(packet[at + 2 :])[2]))
            else:
                echo = packet[start:at] + packet[at + 2 :]
                self._answer += bytes([_PUBLISH, len(echo)]) + echo
        elif packet[0] == 0x10:
            self._answer += _CONNACK
        elif packet[0] == 0x82:
            self._answer += _SUBACK + packet[start : start + 2] + b"\x01"


def run() -> tuple[Table, bool]:
    """The table, and whether both goals are met."""
    table = Table(title=f"When a reading leaves, against its noise: Spearman's rank correlation, {DRAWS:,} draws")
    for name in ("what", "with the noise", "with its size", "note"):
        table.add_column(name, justify="left" if name in {"what", "note"} else "right")
    offsets, taken, values = _measured()
    met = True
    for what, times in (("moment in the slot at which it is sent", offsets), ("time that cloaking takes", taken)):
        signed, size = (float(stats.spearmanr(times, x).statistic) for x in (values, np.abs(values)))
        judged = what.startswith("moment")
        good = max(abs(signed), abs(size)) < GOAL
        met &= good or not judged
        note = f"goal below {GOAL}: {'met' if good else 'MISSED'}" if judged else "why there are slots"
        table.add_row(what, f"{signed:+.4f}", f"{size:+.4f}", note)
    return table, met


def _measured() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    with tempfile.TemporaryDirectory(dir=_memory()) as name:
        device = _device(Path(name))
        taken: list[int] = []
        cloak = device.cloak

        def timed(reading: tuple[int, int] | None, stamp: int) -> bytes:
            start = time.perf_counter_ns()
            message = cloak(reading, stamp)
            taken.append(time.perf_counter_ns() - start)
            return message

        device.cloak = timed  # type: ignore[method-assign, assignment]
        line = Recorder()
        ahead = device.clock.now() * 1_000_000 - time.monotonic_ns() // 1_000_000 * 1_000_000
        station = Station(device, Outbox(Folder(name), 64), line, lambda: (0, 1), unix=lambda: 0)
        for goal in track(range(1000, DRAWS + 1000, 1000), description="sending", transient=True):
            while len(line.left) < goal:
                wait = station.step()
                time.sleep(max(0, wait - 1) / 1000)
        station.stop()
    left = np.array(line.left[:DRAWS])
    offsets = (left[:, 0] + ahead) % (PERIOD * 1_000_000)
    return offsets, np.array(taken[:DRAWS]), left[:, 1]


def _device(folder: Path) -> Device:
    schedule = {"period_ms": PERIOD, "offset_ms": PERIOD // 2, "late_ms": 1, "window_slots": 64, "allowed": 64}
    settings = {"step": [1, 1], "fallback": 0, "together": False, "schedule": schedule | {"block": 64}}
    return Device(make_folder(folder, ratio=RATIO, **settings), Folder(str(folder)))


def _memory() -> str | None:
    """A folder in memory if possible: this measures the processor, not the disk."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - the folder made there has a random name


def _remaining(data: bytes) -> tuple[int, int]:
    """Length of the packet after the fixed header, and where it starts."""
    size = shift = 0
    for at in range(1, 5):
        size |= (data[at] & 0x7F) << shift
        shift += 7
        if not data[at] & 0x80:
            return size, at + 1
    raise ValueError("not a packet")
