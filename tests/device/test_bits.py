"""Binary sensors: from the site file through the plan and a device to the key holder."""

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from cloakwork.device import provision
from cloakwork.errors import SiteError
from cloakwork.keys import Unveiling, load_keys, new_keys, save_keys
from cloakwork.mqtt import BrokerAddress
from cloakwork.privacy import flip_table
from cloakwork.sensor.device import TAKE, Device
from cloakwork.sensor.keystream import sequence
from cloakwork.sensor.store import Folder
from cloakwork.sensor.table import look_up
from cloakwork.sensor.wire import read_reading
from cloakwork.site import (
    BitPlan,
    BitSite,
    freeze_bits,
    parse_any_site,
    parse_site,
)
from tests import micropython
from tests.keystreams import keyed_noise

SITE = """name = "hall"
[bits]
epsilon = 2.0
delta = 1e-5
window = "1min"
readings_per_window = 60
[[zone]]
id = "left"
[[sensor]]
id = "door"
zone = "left"
"""
WORDS = 1 << 127


@pytest.fixture(scope="module")
def site() -> BitSite:
    site = parse_any_site(SITE)
    assert isinstance(site, BitSite)
    return site


@pytest.fixture(scope="module")
def plan(site: BitSite) -> BitPlan:
    return freeze_bits(site)


@pytest.fixture
def keys(tmp_path: Path, site: BitSite) -> Path:
    save_keys(new_keys(site.name), tmp_path / "keys.json")
    return tmp_path / "keys.json"


def sent_bits(folder: Path, bits: list[int | None]) -> list[tuple[int, int, int]]:
    """The messages of a device that reads these bits in slots without end: (seq, time, value)."""
    config = json.loads((folder / "device.json").read_text())
    config["schedule"] |= {"allowed": 0}
    now = [0]
    device = Device(config, Folder(str(folder)), lambda: now[0])
    messages = []
    for bit in bits:
        now[0] += config["schedule"]["period_ms"]
        start = device.slot_start(device.clock.now())
        assert device.begin(start) == TAKE
        messages.append(read_reading(device.cloak(None if bit is None else (bit, 1), start)))
    device.close()
    return messages


def test_the_table_of_a_device_has_exactly_the_probabilities_of_the_flip(site: BitSite, plan: BitPlan) -> None:
    flip = site.flip
    cuts = plan.noise("door").table.cuts
    cut = int.from_bytes(cuts, "big")
    assert 0 <= WORDS - cut - flip.words <= flip.words * 2e-9 + 2, "the frozen surplus, towards more noise"
    for word, flipped in ((cut - 1, 0), (cut, 1), (WORDS - 1, 1), (WORDS + cut - 1, 0), (WORDS + cut, -1)):
        assert look_up(cuts, word) == flipped
    three = flip_table(WORDS // 8, 3).cuts
    drawn = [look_up(three, word) % 3 for word in range(0, 2 * WORDS, WORDS // 8)]
    assert [drawn.count(value) for value in range(3)] == [12, 2, 2]


def test_a_key_holder_gets_the_bits_back_and_no_one_else(plan: BitPlan, keys: Path, tmp_path: Path) -> None:
    made = provision(plan, "door", tmp_path / "door", broker=BrokerAddress(), keys=keys, resolution=1.0)
    bits: list[int | None] = [int(bit) for bit in np.random.default_rng(3).integers(0, 2, 400)]
    assert "(1, 1)" in (made.folder / "measure.py").read_text()
    assert "binary sensor" in (made.folder / "README.md").read_text()
    assert "baseline" not in (made.folder / "measure.py").read_text(), "that of a bit, not of a number"
    sent = sent_bits(made.folder, bits)
    assert {value for *_, value in sent} == {0, 1}
    flipped = sum(value != bit for (*_, value), bit in zip(sent, bits, strict=True))
    assert 140 < flipped < 250, "about 48 % of 400"
    with (tmp_path / "sent.csv").open("w") as file:
        writer = csv.writer(file)
        writer.writerow(("time", "sensor", "seq", "steps"))
        writer.writerows((time, "door", seq, value) for seq, time, value in sent)
    rows = list(Unveiling(tmp_path / "sent.csv", plan, load_keys(keys)))
    assert [int(value) for row in rows for value in row.value] == bits


def test_a_board_draws_the_same_flips(plan: BitPlan, keys: Path, tmp_path: Path) -> None:
    made = provision(plan, "door", tmp_path / "door", broker=BrokerAddress(), keys=keys, resolution=1.0)
    generation = made.generation
    seqs = np.array([sequence(generation, counter) for counter in range(1500)])
    key = load_keys(keys).generations("door")[-1].key
    drawn = keyed_noise(plan.noise("door").table, key, "hall", "door", seqs)
    host = hashlib.sha256(b"".join(b"%d\n" % value for value in drawn.tolist())).hexdigest()
    micropython.copy_sensor(made.folder)
    board = micropython.run(micropython.PROGRAMS / "draws.py", folder=made.folder, timeout=600)
    assert board.returncode == 0, board.stdout + board.stderr
    report = json.loads(board.stdout)
    assert report["digest"] == host
    assert report["steps"] == [[1, 16]], "one look-up a bit"


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('zone = "left"\n', 'zone = "right"\n', ""),
        ("readings_per_window = 60\n", "", "bits.readings_per_window"),
        ("epsilon = 2.0", "epsilon = 1000.0", "bits.epsilon"),
        ("[bits]\n", "[bits]\nalpha = 1.0\n", "bits.alpha"),
        ('[[zone]]\nid = "left"\n', "", "zone"),
        (SITE, SITE + '[[sensor]]\nid = "door"\nzone = "left"\n', "sensor"),
    ],
)
def test_a_site_file_that_is_wrong_about_bits_names_the_key(old: str, new: str, key: str) -> None:
    with pytest.raises(SiteError) as refused:
        parse_any_site(SITE.replace(old, new))
    lines = refused.value.values["lines"]
    assert isinstance(lines, dict)
    assert key in lines


def test_a_site_has_readings_or_bits() -> None:
    for table in ("physics", "sources", "privacy"):
        with pytest.raises(SiteError, match="two site files") as refused:
            parse_any_site(SITE + f"[{table}]\n")
        assert refused.value.values["lines"] == {"bits": 2}
    with pytest.raises(SiteError, match="no map"):
        parse_site(SITE)
