"""Slow offsets: from the site file through the plan and a device, with power cuts, to the key holder and recovery."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cloakwork.device import Target, provision
from cloakwork.errors import InputError
from cloakwork.keys import load_keys
from cloakwork.mqtt import BrokerAddress
from cloakwork.privacy import Keystream
from cloakwork.sensor.device import Device
from cloakwork.sensor.keystream import sequence
from cloakwork.sensor.state import unpack
from cloakwork.sensor.store import Folder
from cloakwork.sensor.wire import write_reading
from cloakwork.site import Plan, Site, parse_site
from tests import micropython
from tests.device.sending import sent, unveiling_of

SITE = """name = "hut"
baseline = 20.0
[physics]
kind = "floorplan"
cell = 1.0
size = [4.0, 2.0]
regime = "steady"
reach = 1.0
[sources]
kind = "lasting"
max_count = 1
[privacy]
epsilon = 8.0
delta = 1e-5
alpha = 0.2
design = "equal"
window = "1min"
readings_per_window = 20
[privacy.stay]
length = "2h"
epsilon = 20.0
delta = 1e-5
[[sensor]]
id = "a"
at = [0.5, 0.5]
[[sensor]]
id = "b"
at = [3.5, 1.5]
"""
PROGRAM = micropython.PROGRAMS / "offsets.py"


@pytest.fixture(scope="module")
def site() -> Site:
    return parse_site(SITE)


def test_a_key_holder_gets_true_readings_back_also_after_power_cuts(plan: Plan, keys: Path, tmp_path: Path) -> None:
    made = provision(plan, "a", tmp_path / "a", broker=BrokerAddress(), keys=keys, resolution=0.01)
    messages = [message for frames in (90, 1, 70, 30) for message in sent(made.folder, frames * [(20, 1)])]
    counters = [seq & 0xFFFFFFF for seq, *_ in messages]
    assert len(set(counters)) == len(counters)
    assert counters[-1] > len(counters) - 1, "a restart skips the counters that were reserved"
    unveiling, steps = unveiling_of(messages, "a", plan, keys)
    assert set(steps) == {plan.noise("a").fallback}
    assert unveiling.verdict().wrong == ()


def test_an_offset_moves_on_past_readings_of_a_backup(plan: Plan, keys: Path, tmp_path: Path) -> None:
    made = provision(plan, "a", tmp_path / "a", broker=BrokerAddress(), keys=keys, resolution=0.01)
    config = json.loads((made.folder / "device.json").read_text())
    device = Device(config, Folder(str(made.folder)), lambda: 0)
    assert device.heard(write_reading(sequence(made.generation, 700), 1, 0), retained=True, now=0)
    device.close()
    state = unpack((made.folder / "state.0").read_bytes())
    assert state is not None
    assert state.offset is not None
    assert state.counter == 701
    noise = plan.noise("a")
    assert noise.slow is not None
    stream = Keystream(load_keys(keys).generations("a")[-1].key, "hut", "a", made.generation)
    known = stream.offsets(noise.slow, [sequence(made.generation, 700)], after=len(noise.table.levels))
    assert known[0] == (state.offset + 128) // 256


def test_offsets_are_the_same_on_a_board_and_on_a_computer(plan: Plan, keys: Path, tmp_path: Path) -> None:
    made = provision(plan, "b", tmp_path / "b", broker=BrokerAddress(), keys=keys, resolution=0.01)
    micropython.copy_sensor(made.folder)
    board = micropython.run(PROGRAM, folder=made.folder, timeout=600)
    assert board.returncode == 0, board.stdout + board.stderr
    ours = subprocess.run(
        [sys.executable, str(PROGRAM), str(made.folder)], check=True, capture_output=True, text=True
    ).stdout
    drawn = json.loads(ours)
    assert drawn == json.loads(board.stdout)
    noise, number = plan.noise("b"), made.generation
    stream = Keystream(load_keys(keys).generations("b")[-1].key, "hut", "b", number)
    assert noise.slow is not None
    seqs = np.array([sequence(number, counter) for counter in range(len(drawn))])
    offsets = stream.offsets(noise.slow, seqs, after=len(noise.table.levels))
    assert drawn == (noise.fallback + stream.noise(noise.table, seqs) + offsets).tolist()
    assert len(set(offsets.tolist())) > 20, "offsets that are renewed"


def test_a_device_in_c_has_no_slow_offset_yet(plan: Plan, keys: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="slow offset"):
        provision(plan, "a", tmp_path / "a", broker=BrokerAddress(), keys=keys, resolution=0.01, target=Target.C)
    assert not (tmp_path / "a").exists()
    assert load_keys(keys).sensors == ()
