"""The loop of a device against forged time and slow drivers, with a transport that records what leaves."""

import random
from pathlib import Path

import pytest

from benchmarks.timing import Recorder
from cloakwork.sensor.board import read_config
from cloakwork.sensor.device import Device
from cloakwork.sensor.outbox import Outbox
from cloakwork.sensor.station import Station
from cloakwork.sensor.store import Folder
from cloakwork.sensor.wire import read_reading, write_reading
from tests.devices import make_folder
from tests.sensor.test_power_cuts import overspent


@pytest.mark.parametrize("seed", range(2))
def test_a_forged_clock_delays_readings_and_gains_none(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    make_folder(tmp_path, schedule={"period_ms": 100, "late_ms": 10, "window_slots": 10, "allowed": 4})
    now = 0
    forged = 1_900_000_000_000
    measured: list[int] = []

    def read() -> tuple[int, int]:
        measured.append(now)
        return 21, 1

    store = Folder(str(tmp_path))
    device = Device(read_config(store), store, lambda: now)
    line = Recorder()
    station = Station(device, Outbox(store, 64), line, read, unix=lambda: forged)
    for _ in range(12_000):
        step = rng.choice([1, 2, 5])
        now += step
        forged += step + (rng.randrange(-100, 200) if rng.random() < 0.01 else 0)
        station.step()
    station.stop()
    assert len(measured) > 20
    frames = [read_reading(payload)[1] for payload in line.payloads]
    assert frames == sorted(set(frames))  # no frame has two readings
    assert overspent(measured, 10 * 100 - 10, 4) == []


class Line(Recorder):
    """Records every moment at which bytes leave."""

    def __init__(self) -> None:
        super().__init__()
        self.moments: list[int] = []
        self.clock = [0]

    def write(self, data: bytes) -> None:
        self.moments.append(self.clock[0])
        super().write(data)


def test_nothing_leaves_between_measuring_and_the_moment_of_sending(tmp_path: Path) -> None:
    make_folder(tmp_path, together=False, schedule={"offset_ms": 40, "window_slots": 4, "allowed": 4})
    line = Line()
    rng = random.Random(3)

    def read() -> tuple[int, int]:
        line.clock[0] += rng.randrange(9)  # how long a driver takes may depend on what it reads
        return 21, 1

    store = Folder(str(tmp_path))
    device = Device(read_config(store), store, lambda: line.clock[0])
    station = Station(device, Outbox(store, 64), line, read, unix=lambda: 0)
    for _ in range(6_000):
        line.clock[0] += 1
        station.step()
    station.stop()
    assert len(line.left) > 40
    assert all(moment % 100 >= 40 or moment % 100 == 0 for moment in line.moments[:-1] if moment > 1000)


def test_a_restored_state_is_noticed_from_newer_messages(tmp_path: Path) -> None:
    make_folder(tmp_path, schedule={"window_slots": 4, "allowed": 4})
    before = {name: (tmp_path / name).read_bytes() for name in ("state.0", "state.1")}
    first = numbers(tmp_path, 21)
    for name, data in before.items():  # like copying the provisioned folder onto the board once more
        (tmp_path / name).write_bytes(data)
    second = numbers(tmp_path, 30)
    assert len(first) > 10
    assert len(second) > 10
    assert not set(first) & set(second)


class Returning(Recorder):
    """A broker that is away at first, and then says what it has retained."""

    away, retained = True, b""

    def status(self) -> str:
        return "closed" if self.away else super().status()

    def _take(self, packet: bytes, start: int, now: int) -> None:
        super()._take(packet, start, now)
        if packet[0] == 0x82 and packet.endswith(b"/reading\x01"):
            topic = packet[start + 2 : -1]
            body = topic + self.retained
            self._answer += bytes([0x31, len(body)]) + body


class Failing(Folder):
    """Storage that fails at the second copy of a state that moves past what the broker knows."""

    def write(self, name: str, data: bytes) -> None:
        if name == "state.1" and b'"blocked": 0' not in data:
            raise OSError("no power")
        super().write(name, data)


def test_a_power_cut_while_a_restored_device_moves_on_leaves_no_message_with_a_used_number(tmp_path: Path) -> None:
    make_folder(tmp_path, schedule={"window_slots": 4, "allowed": 4})
    numbers(tmp_path, 21)
    backup = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    last = write_reading(max(numbers(tmp_path, 25)), 1, 5)
    for name, data in backup.items():
        (tmp_path / name).write_bytes(data)
    now = 0
    store = Failing(str(tmp_path))
    device = Device(read_config(store), store, lambda: now)
    outbox, line = Outbox(store, 64), Returning()
    station = Station(device, outbox, line, lambda: (30, 1), unix=lambda: 1_900_000_000_000 + now)
    for _ in range(1000):
        now += 1
        station.step()
    assert len(outbox) > 2
    line.away, line.retained = False, last
    with pytest.raises(OSError, match="no power"):  # noqa: PT012 - one of the steps hears the broker
        for _ in range(3000):
            now += 1
            station.step()
    device.close()
    assert len(Outbox(Folder(str(tmp_path)), 64)) == 0


def numbers(folder: Path, value: int) -> list[int]:
    """The sequence numbers that a device sends in three seconds."""
    now = 0
    store = Folder(str(folder))
    device = Device(read_config(store), store, lambda: now)
    line = Recorder()
    station = Station(device, Outbox(store, 64), line, lambda: (value, 1), unix=lambda: 1_900_000_000_000 + now)
    for _ in range(3000):
        now += 1
        station.step()
    station.stop()
    return [read_reading(payload)[0] for payload in line.payloads]
