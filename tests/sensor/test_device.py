"""A device: it sends its reading plus the noise of its number, and the number only grows."""

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloakwork.privacy import noise_table
from cloakwork.sensor import noise as device_noise
from cloakwork.sensor.device import FARTHEST, MAX_STEPS, SPENT, TAKE, WAIT, Device
from cloakwork.sensor.errors import RandomError, StateError, TableError
from cloakwork.sensor.keystream import EPOCH, ratchet, sequence, split, stream_key, words
from cloakwork.sensor.state import COPIES, unpack
from cloakwork.sensor.store import Folder
from cloakwork.sensor.table import look_up
from cloakwork.sensor.wire import read_reading, read_status, write_reading
from tests.devices import GENERATION, KEY, SENSOR, SITE, make_folder


class Bench:
    """A device in a folder, with a clock that the test sets."""

    def __init__(self, folder: Path, **changed: Any) -> None:
        self.folder = folder
        self.config = make_folder(folder, **changed)
        self.now = 0
        self.device = Device(self.config, Folder(str(self.folder)), lambda: self.now)

    def start(self) -> Device:
        self.device.close()
        self.device = Device(self.config, Folder(str(self.folder)), lambda: self.now)
        return self.device

    def reading(self, value: tuple[int, int] | None = (21, 1)) -> tuple[int, int, int]:
        """The reading of the next slot that is allowed."""
        while True:
            self.now += self.config["schedule"]["period_ms"] - self.now % self.config["schedule"]["period_ms"]
            if self.device.begin(self.device.clock.now()) == TAKE:
                return read_reading(self.device.cloak(value, 1_800_000_000_000))


Make = Callable[..., Bench]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    benches = []

    def new(**changed: Any) -> Bench:
        benches.append(Bench(tmp_path / "s07", **changed))
        return benches[-1]

    yield new
    for bench in benches:
        bench.device.close()


def expected_noise(counter: int, ratio: float = 2.5) -> int:
    """The noise of a number, computed from the published parts."""
    key = KEY
    for _ in range(counter // EPOCH):
        key = ratchet(key)
    stream = stream_key(key, SITE, SENSOR, GENERATION, counter // EPOCH)
    table = noise_table(ratio)
    drawn = words(stream, sequence(GENERATION, counter), len(table.levels))
    return sum(level.factor * look_up(level.cuts, word) for level, word in zip(table.levels, drawn, strict=True))


@pytest.mark.parametrize("ratio", [2.5, 3017.0])
def test_a_device_sends_its_reading_in_steps_plus_the_noise_of_its_number(make: Make, ratio: float) -> None:
    bench = make(ratio=ratio, schedule={"allowed": 0, "block": 7})
    for counter in range(3 * EPOCH):
        seq, time, value = bench.reading((85, 4))
        assert split(seq) == (GENERATION, counter)
        assert time == 1_800_000_000_000
        assert value - expected_noise(counter, ratio) == 85


@settings(deadline=None)
@given(numerator=st.integers(-(10**12), 10**12), denominator=st.integers(1, 10**9), step=st.floats(1e-6, 1e3))
def test_a_reading_is_rounded_once_and_exactly(numerator: int, denominator: int, step: float) -> None:
    device = object.__new__(Device)
    device.config = {"step": list(step.as_integer_ratio()), "fallback": 7, "values": 0}
    ideal = Fraction(numerator, denominator) / Fraction(step)
    steps = device._steps((numerator, denominator))
    if abs(ideal) < MAX_STEPS:
        assert abs(steps - ideal) <= Fraction(1, 2)
    else:
        assert abs(steps) == MAX_STEPS
    assert device._steps(None) == 7


def test_a_failed_reading_is_a_public_constant_with_noise_like_any_other(make: Make) -> None:
    bench = make()
    _, _, value = bench.reading(None)
    assert value - expected_noise(0) == bench.config["fallback"]


def test_a_slot_gives_one_reading_and_a_late_one_none(make: Make) -> None:
    bench = make(schedule={"allowed": 0})
    assert [bench.device.begin(now) for now in (100, 101, 109, 199)] == [TAKE, WAIT, WAIT, WAIT]
    assert [bench.device.begin(now) for now in (210, 299, 309)] == [WAIT, WAIT, TAKE]


def test_a_spent_budget_is_reported_once_a_slot_until_the_window_moves_on(make: Make) -> None:
    bench = make()  # four readings in ten slots of 100 ms
    decisions = [bench.device.begin(100 * slot) for slot in range(24)]
    assert decisions == (4 * [TAKE] + 6 * [SPENT]) * 2 + 4 * [TAKE]
    assert read_status(bench.device.status("spent", 2300)) == ("spent", 4, 4)
    assert [read_status(bench.device.status("online", 100 * slot))[1] for slot in (20, 21, 22, 23)] == [1, 2, 3, 4]


def test_one_slot_gives_one_message(make: Make) -> None:
    bench = make(schedule={"block": 3})
    bench.reading()
    with pytest.raises(StateError, match="reserved"):
        bench.device.cloak((21, 1), 0)


def test_powered_time_continues_after_a_power_cut_and_rebooting_gains_no_readings(make: Make) -> None:
    bench = make()
    taken = 0
    for _ in range(200):  # the power goes every 60 ms of a slot of 100 ms
        device = bench.start()
        for now in range(bench.now, bench.now + 60, 5):
            bench.now = now
            if device.begin(device.clock.now()) == TAKE:
                device.cloak((21, 1), 0)
                taken += 1
    assert taken <= 4 * (200 * 60 // 1000 + 1)


def test_the_storage_never_holds_the_key_of_a_past_epoch(make: Make) -> None:
    """From the moment on at which the last reading of an epoch is reserved."""
    bench = make(schedule={"allowed": 0, "block": 1})
    key = KEY
    for counter in range(2 * EPOCH + 3):
        bench.reading()
        stored = b"".join((bench.folder / name).read_bytes() for name in COPIES)
        if counter % EPOCH == EPOCH - 1:
            past, key = key, ratchet(key)
            assert past.hex().encode() not in stored
        assert key.hex().encode() in stored


def test_a_restored_device_moves_past_what_the_broker_knows_and_waits_a_window(make: Make) -> None:
    bench = make()
    backup = {name: (bench.folder / name).read_bytes() for name in COPIES}
    sent = [bench.reading()[0] for _ in range(200)]
    for name, data in backup.items():
        (bench.folder / name).write_bytes(data)
    device = bench.start()
    assert device.fresh
    assert device.heard(write_reading(sent[-1], 0, 0), True, device.clock.now())
    resumed = device.clock.now()
    seq, _, value = bench.reading()
    assert seq > sent[-1]
    assert value - expected_noise(split(seq)[1]) == 84
    assert bench.device.clock.now() - resumed >= 10 * 100
    # the same holds after another start
    assert bench.start().heard(b"nonsense", True, 0) is False
    assert bench.reading()[0] > seq


def test_a_device_that_was_provisioned_again_waits_a_window_before_it_starts(make: Make) -> None:
    bench = make()
    assert bench.device.heard(write_reading(sequence(GENERATION - 1, 99), 0, 0), True, 0)
    assert [bench.device.begin(100 * slot) for slot in range(1, 12)] == 10 * [SPENT] + [TAKE]
    bench.device.cloak((21, 1), 0)
    assert not bench.device.heard(write_reading(sequence(GENERATION - 1, 99), 0, 0), True, 1200)


def test_a_newer_provisioning_or_a_forged_number_far_ahead_stops_the_device(make: Make) -> None:
    bench = make()
    with pytest.raises(StateError, match="newer folder"):
        bench.device.heard(write_reading(sequence(GENERATION + 1, 0), 0, 0), True, 0)
    with pytest.raises(StateError, match="far ahead"):
        bench.device.heard(write_reading(sequence(GENERATION, FARTHEST + 1), 0, 0), True, 0)


def test_a_running_copy_stops_the_device_and_forged_numbers_cannot_exhaust_it(make: Make) -> None:
    bench = make()
    bench.reading()
    with pytest.raises(StateError, match="copy"):
        bench.device.heard(write_reading(sequence(GENERATION, 5), 0, 0), False, 150)
    assert bench.device.heard(write_reading(sequence(GENERATION, 5), 0, 0), True, 150)
    assert not bench.device.heard(write_reading(sequence(GENERATION, 2), 0, 0), True, 150)
    with pytest.raises(StateError, match="copy"):
        bench.device.heard(write_reading(sequence(GENERATION, 9), 0, 0), True, 150)


def test_holding_the_clock_back_is_written_before_a_power_cut_can_undo_it(make: Make) -> None:
    bench = make(schedule={"allowed": 4, "window_slots": 10, "block": 3})
    bench.now = 1000
    assert bench.device.begin(bench.device.clock.now()) == TAKE
    bench.device.hold(700)
    assert bench.start().clock.now() == 300


@pytest.mark.parametrize("stuck", [b"\0" * 16, b"\x5a" * 16])
def test_a_generator_that_is_stuck_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch, stuck: bytes) -> None:
    bench = make(keyed=False, schedule={"allowed": 0})
    monkeypatch.setattr("os.urandom", lambda _: stuck)
    with pytest.raises(RandomError, match="random generator"):
        bench.reading()


def test_two_processes_cannot_share_a_folder(make: Make) -> None:
    bench = make()
    with pytest.raises(StateError, match="another process"):
        Device(bench.config, Folder(str(bench.folder)))


def test_another_table_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    make_folder(tmp_path / "s07")
    file = tmp_path / "s07" / "noise.tab"
    config = json.loads((tmp_path / "s07" / "device.json").read_text())
    whole = file.read_bytes()
    for wrong in (noise_table(2.0).cuts, whole[:-16], whole + bytes(16), whole[:40] + b"\x01" + whole[41:]):
        file.write_bytes(wrong)
        with pytest.raises(TableError, match="noise table"):
            Device(config, Folder(str(tmp_path / "s07")))


def test_without_a_key_the_noise_is_new_each_time_and_weak_boards_are_refused(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make(keyed=False, ratio=200.0, schedule={"allowed": 0})
    values = [bench.reading()[2] for _ in range(60)]
    assert len(set(values)) > 30
    assert unpack((bench.folder / "state.0").read_bytes()).key is None  # type: ignore[union-attr]
    monkeypatch.setattr(
        device_noise, "sys", SimpleNamespace(implementation=SimpleNamespace(name="micropython"), platform="rp2")
    )
    with pytest.raises(RandomError, match="rp2"):
        bench.start()


def test_a_state_of_another_device_is_refused(tmp_path: Path) -> None:
    make_folder(tmp_path / "a", keyed=False)
    config = make_folder(tmp_path / "b")
    for name in COPIES:
        (tmp_path / "b" / name).write_bytes((tmp_path / "a" / name).read_bytes())
    with pytest.raises(StateError, match="does not belong"):
        Device(config, Folder(str(tmp_path / "b")))
    with pytest.raises(StateError, match="Provision"):
        Device(config | {"generation": GENERATION + 1}, Folder(str(tmp_path / "b")))
    with pytest.raises(StateError, match="belongs"):  # two sensors may have the same generation
        Device(config | {"sensor": "s08", "keyed": False}, Folder(str(tmp_path / "b")))
