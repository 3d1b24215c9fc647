"""`cloakwork simulate`."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from cloakwork.physics import sources
from cloakwork.readings import ReadingsFile, iso_ms
from cloakwork.site import load_site
from tests.cli.conftest import Run
from tests.device.test_bits import SITE as BITS

SITE = """name = "corridor"
sensors = 7
baseline = 20.0
[physics]
kind = "line"
places = 25
T = 0.01
[sources]
kind = "pulse"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.02
window = "1min"
readings_per_window = 4
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


def test_readings_have_a_row_for_each_sensor_and_frame(succeed: Run, site: Path) -> None:
    out = site.with_name("r.csv")
    said = succeed("simulate", site, "--out", out, "--source", "0.4", "--frames", 10, "--seed", 3).said
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 70
    assert {row["sensor"] for row in rows} == {f"s{k}" for k in range(1, 8)}
    assert [iso_ms(row["time"]) for row in rows[::7]] == [15_079 * k for k in range(10)]
    assert [int(row["seq"]) for row in rows[::7]] == list(range(10))
    assert "wrote 70 readings of 10 frames" in said
    assert "10 frames of a device have a total epsilon of" in said


def test_a_seed_makes_the_noise_reproducible(succeed: Run, site: Path) -> None:
    outs = [site.with_name(f"{k}.csv") for k in range(4)]
    for out, seed in zip(outs, ([1], [1], [2], None), strict=True):
        succeed("simulate", site, "--out", out, "--source", "0.4", *(["--seed", *seed] if seed else []))
    same, again, other, free = (out.read_text() for out in outs)
    assert same == again
    assert len({same, other, free}) == 3


def test_a_true_reading_appears_nowhere(succeed: Run, site: Path) -> None:
    out = site.with_name("r.csv")
    said = succeed("simulate", site, "--out", out, "--source", "0.43:0.7", "--frames", 20, "--seed", 11).said
    loaded = load_site(site)
    cloak = loaded.cloak()
    warmth = loaded.physics.apply(sources(loaded.physics, [0.43], [0.7]))
    secrets = np.concatenate([warmth[warmth > 0.01], (warmth + 20.0)[warmth > 0.01]])
    numbers = np.array([float(text) for text in re.findall(r"\d+\.?\d*(?:e-?\d+)?", said)])
    assert np.abs(numbers[:, None] / secrets - 1).min() > 1e-4
    for frame in ReadingsFile(out, loaded.sensor_ids):
        assert not np.array_equal(frame.steps, np.rint((warmth + 20.0) / cloak.steps))
    exact = [frame.steps - np.rint((warmth + 20.0) / cloak.steps) for frame in ReadingsFile(out, loaded.sensor_ids)]
    assert (np.stack(exact) == 0).mean() < 0.02


def test_plan_knows_sites_of_bits_and_maps_have_none(succeed: Run, run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "site.toml", tmp_path / "sent.csv"
    path.write_text(BITS)
    values = succeed("plan", "--no-simulation", path, "--json").values
    assert values["sensors"] == ["door"]
    assert values["each"] == pytest.approx(0.0665, abs=5e-5)
    over = [span["epsilon"] for span in values["over_time"]]
    assert over == sorted(over)
    assert over[0] == 2.0
    assert over[1] > 2.0
    for command in (("simulate", path, "--out", out), ("recover", path, path)):
        refused = run(*command)
        assert (refused.code, "no map" in refused.err) == (2, True)
