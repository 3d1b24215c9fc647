"""A site of single sensors with Laplace noise: from the site file through the plan and a board to the key holder."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from cloakwork.device import provision
from cloakwork.keys import load_keys
from cloakwork.mqtt import BrokerAddress
from cloakwork.privacy import NoiseLaw
from cloakwork.sensor.keystream import sequence
from cloakwork.site import Plan, Site, load_plan, parse_site, window_limits
from tests import micropython
from tests.device.sending import unveiling_of
from tests.keystreams import keyed_noise

SITE = """name = "tank"
sensors = 3
[physics]
kind = "line"
places = 12
T = 0.01
[sources]
kind = "pulse"
[privacy]
epsilon = 4.0
delta = 0.0
alpha = 0.05
scope = "sensor"
noise = "laplace"
resolution = 0.1
window = "1min"
readings_per_window = 2
"""


@pytest.fixture(scope="module")
def site() -> Site:
    return parse_site(SITE)


def test_a_plan_a_board_and_a_key_holder_agree_on_laplace_noise(
    site: Site, plan: Plan, keys: Path, tmp_path: Path
) -> None:
    cloak = site.cloak()
    plan.write(tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    assert plan.law is cloak.noise is plan.cloak(site).noise is NoiseLaw.LAPLACE
    assert window_limits(cloak) is None, "those of Gaussian noise would be wrong"
    made = provision(plan, "s1", tmp_path / "s1", broker=BrokerAddress(), keys=keys, resolution=0.1)
    seqs = np.array([sequence(made.generation, counter) for counter in range(1500)])
    table = plan.noise("s1").table
    drawn = keyed_noise(table, load_keys(keys).generations("s1")[-1].key, "tank", "s1", seqs)
    assert abs(drawn).mean() * 2**0.5 == pytest.approx(table.ratio, rel=0.1)
    micropython.copy_sensor(made.folder)
    board = micropython.run(micropython.PROGRAMS / "draws.py", folder=made.folder, timeout=600)
    assert board.returncode == 0, board.stdout + board.stderr
    host = hashlib.sha256(b"".join(b"%d\n" % value for value in drawn.tolist())).hexdigest()
    assert json.loads(board.stdout)["digest"] == host
    messages = [(seq, 1000 * k, 7 + noise) for k, (seq, noise) in enumerate(zip(seqs, drawn, strict=True))]
    assert set(unveiling_of(messages, "s1", plan, keys)[1]) == {7}, "steps"
