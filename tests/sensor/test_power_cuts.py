"""Power cuts, torn writes and kills: no number is used twice and no window is overspent."""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from cloakwork.privacy import noise_table
from cloakwork.sensor.device import TAKE, Device
from cloakwork.sensor.errors import StateError
from cloakwork.sensor.state import load_state
from cloakwork.sensor.wire import read_reading
from tests.devices import config, first_state, make_folder


class PowerCutError(Exception):
    """The power is cut."""


class Flash:
    """Storage in memory whose writes can be torn."""

    path = ""

    def __init__(self, device_config: dict[str, Any], ratio: float, rng: random.Random) -> None:
        self.files = first_state(device_config)
        self.older: dict[str, list[bytes]] = {name: [] for name in self.files}
        self._table = noise_table(ratio).cuts
        self._rng = rng
        self.writes_left = 10**9

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write(self, name: str, data: bytes) -> None:
        self.older[name] = [*self.older[name][-5:], self.files[name]]
        self.writes_left -= 1
        if self.writes_left < 0:
            kept = self._rng.choice([data[: self._rng.randrange(len(data) + 1)], self.files[name]])
            self.files[name] = kept
            raise PowerCutError
        self.files[name] = data

    def lock(self) -> None:
        return None

    def table(self, _: str) -> BytesIO:
        return BytesIO(self._table)

    def damage_one_copy(self) -> None:
        name = self._rng.choice(["state.0", "state.1"])
        data = self.files[name]
        worse = [data[: self._rng.randrange(len(data) + 1)], bytes(len(data)), b""]
        spoilt = bytearray(data or b"x")
        spoilt[self._rng.randrange(len(spoilt))] ^= 1 << self._rng.randrange(8)
        self.files[name] = self._rng.choice([*worse, bytes(spoilt), *self.older[name]])


class World:
    """True time, which the device cannot see while it is off."""

    def __init__(self) -> None:
        self.now = 0

    def ticks(self) -> int:
        return self.now


def overspent(times: list[int], window: int, allowed: int) -> list[int]:
    """Readings that exceed the limit within half-open intervals as long as the window."""
    times = sorted(times)
    return [late for early, late in zip(times, times[allowed:], strict=False) if late - early < window]


def work(device: Device, world: World, rng: random.Random, numbers: list[int], times: list[int]) -> None:
    for _ in range(rng.randrange(400)):
        world.now += rng.choice([1, 3, 50, 97, 100])
        if device.begin(device.clock.now()) == TAKE:
            times.append(world.now)
            numbers.append(read_reading(device.cloak((21, 1), 0))[0])


def test_a_device_without_a_readable_copy_refuses_to_start(tmp_path: Path) -> None:
    device_config = config()
    flash = Flash(device_config, 2.5, random.Random(1))
    for damage in (b"", flash.files["state.0"][:-9], b"{}\n\n"):
        flash.files = {"state.0": damage, "state.1": damage}
        with pytest.raises(StateError, match="Provision"):
            Device(device_config, flash)  # type: ignore[arg-type]


def test_two_copies_of_one_version_that_differ_are_refused() -> None:
    device_config = config()
    flash = Flash(device_config, 2.5, random.Random(1))
    device = Device(device_config, flash, lambda: 0)  # type: ignore[arg-type]
    assert device.begin(0) == TAKE
    other = Flash(device_config, 2.5, random.Random(1))
    device = Device(device_config, other, lambda: 0)  # type: ignore[arg-type]
    assert device.begin(100) == TAKE
    flash.files["state.0"] = other.files["state.0"]
    with pytest.raises(StateError, match="contradict"):
        Device(device_config, flash)  # type: ignore[arg-type]


def test_storage_that_fails_once_costs_a_slot_and_no_number(tmp_path: Path) -> None:
    rng = random.Random(5)
    device_config = config(schedule={"allowed": 0})
    flash, world = Flash(device_config, 2.5, rng), World()
    device = Device(device_config, flash, world.ticks)  # type: ignore[arg-type]
    numbers = []
    for slot in range(300):
        world.now = slot * 100
        flash.writes_left = rng.choice([0, 1, 99])
        try:
            if device.begin(device.clock.now()) == TAKE:
                numbers.append(read_reading(device.cloak((21, 1), 0))[0])
        except PowerCutError:
            continue
        # if the power is cut now, the device starts again with a new number
        own = device_config["site"], device_config["sensor"], device_config["generation"]
        state = load_state(flash, *own)  # type: ignore[arg-type]
        assert state.counter > (max(numbers) & 0xFFFFFFF if numbers else -1)
    assert len(set(numbers)) == len(numbers) > 50


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if possible: a killed process leaves the same files there, and writes are quick."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder made there has a random name
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as name:
        yield Path(name) / "s07"


def test_a_process_killed_hundreds_of_times_repeats_no_number_and_overspends_no_window(quick_folder: Path) -> None:
    plan = {"period_ms": 4, "late_ms": 4, "window_slots": 20, "allowed": 8, "block": 2}
    make_folder(quick_folder, schedule=plan)
    program = Path(__file__).with_name("killed.py")
    line = [sys.executable, str(program), str(quick_folder), "200"]
    done = subprocess.run(line, check=True, capture_output=True, text=True, timeout=600)
    report = json.loads(done.stdout)
    assert report["killed"] == 200
    assert len(report["numbers"]) == len(set(report["numbers"]))
    assert len(report["numbers"]) > 50
    # in 10.1 s the device's clock counts one more, which plans allow for
    window = (plan["window_slots"] * plan["period_ms"] - plan["late_ms"] - 1) * 1_000_000
    assert overspent(report["times"], window, plan["allowed"]) == []
