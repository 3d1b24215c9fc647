"""Attack: the power fails, writes tear, and old copies of a device's storage come back."""

import random
import shutil
from bisect import bisect_left
from pathlib import Path

import pytest

from cloakwork.device import ConstantReading
from cloakwork.sensor.device import TAKE, Device
from cloakwork.sensor.errors import StateError
from cloakwork.sensor.wire import read_reading, write_reading
from tests.attacks.conftest import Attack
from tests.broker import running_broker
from tests.device.agent_kit import QUICK, RATIO, listening, working
from tests.devices import config, make_folder
from tests.sensor.test_power_cuts import Flash, PowerCutError, World, work
from tests.waiting import until

ALLOWED = 4
WINDOW_MS = 10 * 100 - 10  # ten slots, and a reading may be taken 10 ms late


def fullest(times: list[int]) -> int:
    """The most readings in any half-open interval as long as the window."""
    return max((number + 1 - bisect_left(times, last - WINDOW_MS + 1) for number, last in enumerate(times)), default=0)


@pytest.mark.parametrize("block", [1, 3])
def test_power_cuts_neither_overspend_nor_repeat_a_number(attack: Attack, block: int) -> None:
    """Cuts the power at random, tears the write under way, and damages one copy of the state.

    Claim: no interval as long as the window holds more readings than allowed, and no number is used twice.
    """
    rng = random.Random(11 + block)
    device_config = config(schedule={"block": block})
    flash, world = Flash(device_config, 2.5, rng), World()
    numbers: list[int] = []
    times: list[int] = []
    lives = attack.size(150, 6_000)
    for _ in range(lives):
        flash.writes_left = rng.choice([0, 1, 2, rng.randrange(40), rng.randrange(400)])
        try:
            work(Device(device_config, flash, world.ticks), world, rng, numbers, times)  # type: ignore[arg-type]
        except PowerCutError:
            pass
        else:
            flash.damage_one_copy()
        world.now += rng.choice([0, 1, rng.randrange(2000)])
    attack.compare(fullest(times), ALLOWED, tried=lives)
    attack.expect(len(numbers) == len(set(numbers)) > lives // 2)


def test_restored_states_neither_overspend_nor_repeat_a_number(attack: Attack) -> None:
    """Restores any earlier state of a device, again and again, while the broker keeps its last reading.

    Claim: a device that hears its last reading from the broker reuses no number and overspends no window.
    """
    rng = random.Random(23)
    device_config = config()
    flash, world = Flash(device_config, 2.5, rng), World()
    saved = [dict(flash.files)]
    numbers: list[int] = []
    times: list[int] = []
    restored = refused = 0
    lives = attack.size(300, 10_000)
    for _ in range(lives):
        back = rng.random() < 0.5
        if back:
            flash.files = dict(rng.choice(saved))
        device = Device(device_config, flash, world.ticks)  # type: ignore[arg-type]
        last = write_reading(max(numbers, default=0), 0, 0)
        try:
            # as the station does: it recognises its last reading, unless its storage went back
            if numbers and (back or device.ahead(last)):
                restored += device.heard(last, True, device.clock.now())
        except StateError:
            refused += 1  # it went back twice, which looks like a copy: the device stops
            continue
        for _ in range(rng.randrange(120)):
            world.now += rng.choice([1, 50, 97, 100])
            if device.begin(device.clock.now()) == TAKE:
                times.append(world.now)
                numbers.append(read_reading(device.cloak((21, 1), 0))[0])
        saved.append(dict(flash.files))
    assert restored > lives // 10
    assert refused < lives // 2
    attack.compare(fullest(times), ALLOWED, tried=lives)
    attack.expect(len(numbers) == len(set(numbers)) > lives // 2)


def test_a_folder_that_is_copied_back_reuses_no_noise_at_a_real_broker(attack: Attack, tmp_path: Path) -> None:
    """Copies the folder of a running device back to where it was, with a real broker that keeps its last reading.

    Claim: no number appears with two values, and every reading after the copy has a higher number than before.
    """
    folder, backup = tmp_path / "s07", tmp_path / "backup"
    make_folder(folder, ratio=RATIO, schedule=QUICK | {"window_slots": 20})
    with running_broker(tmp_path / "broker") as broker, listening(broker) as listener:
        with working(folder, broker, ConstantReading(21.25)):
            until(lambda: len(listener.readings()) >= 3)
        shutil.copytree(folder, backup)
        for _ in range(attack.size(1, 8)):
            before, goodbyes = len(listener.readings()), listener.goodbyes()
            with working(folder, broker, ConstantReading(22.0)):
                until(lambda: len(listener.readings()) >= before + 3)  # noqa: B023
            until(lambda: listener.goodbyes() > goodbyes)  # noqa: B023
            known = max(listener.readings())
            seen = set(listener.readings())
            shutil.rmtree(folder)
            shutil.copytree(backup, folder)
            with working(folder, broker, ConstantReading(23.0)):
                until(lambda: len(listener.readings()) >= len(seen) + 3)  # noqa: B023
            later = set(listener.readings()) - seen  # `readings` fails if a number has two values
            attack.expect(min(later) > known, tried=len(later))
