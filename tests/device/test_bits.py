"""Binary sensors: from the site file through the plan and a device to the key holder."""

from pathlib import Path

import numpy as np
import pytest

from cloakwork.device import provision
from cloakwork.errors import SiteError
from cloakwork.keys import new_keys, save_keys
from cloakwork.mqtt import BrokerAddress
from cloakwork.privacy import flip_table
from cloakwork.sensor.table import look_up
from cloakwork.site import (
    BitPlan,
    BitSite,
    freeze_bits,
    parse_any_site,
    parse_site,
)
from tests.device.sending import sent, unveiling_of

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
    bits = [int(bit) for bit in np.random.default_rng(3).integers(0, 2, 400)]
    assert "(1, 1)" in (made.folder / "measure.py").read_text()
    assert "binary sensor" in (made.folder / "README.md").read_text()
    assert "baseline" not in (made.folder / "measure.py").read_text(), "that of a bit, not of a number"
    messages = sent(made.folder, [(bit, 1) for bit in bits])
    assert {value for *_, value in messages} == {0, 1}
    flipped = sum(value != bit for (*_, value), bit in zip(messages, bits, strict=True))
    assert 140 < flipped < 250, "about 48 % of 400"
    assert unveiling_of(messages, "door", plan, keys)[1] == bits


def test_a_site_has_readings_or_bits() -> None:
    for table in ("physics", "sources", "privacy"):
        with pytest.raises(SiteError, match="two site files") as refused:
            parse_any_site(SITE + f"[{table}]\n")
        assert refused.value.values["lines"] == {"bits": 2}
    with pytest.raises(SiteError, match="no map"):
        parse_site(SITE)
