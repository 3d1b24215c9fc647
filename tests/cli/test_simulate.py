"""`cloakwork simulate`."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from cloakwork.physics import sources
from cloakwork.readings import ReadingsFile, iso_ms
from cloakwork.site import load_plan, load_site
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


PATHS = """name = "net"
sensors = 2
[physics]
kind = "matrix"
file = "m.csv"
pairs = "p.csv"
[sources]
kind = "pulse"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.02
"""


@pytest.mark.parametrize("source", ["nan", "inf", "1.7", "9", "a"])
def test_a_numbered_place_is_a_whole_number(source: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(PATHS)
    (tmp_path / "m.csv").write_text("1,0.5,0\n0,0.5,1\n")
    (tmp_path / "p.csv").write_text("0,1,1\n1,2,1\n")
    done = run("simulate", tmp_path / "site.toml", "--out", tmp_path / "r.csv", "--source", source)
    assert done.code == 2
    assert f"--source {source}" in done.err


def steps(path: Path) -> list[str]:
    return [row["steps"] for row in csv.DictReader(path.read_text().splitlines())]


def test_a_plan_simulates_what_the_site_file_does(succeed: Run, site: Path) -> None:
    words = ["--source", "0.4", "--frames", 20, "--seed", 3]
    plain, planned, beside = (site.with_name(f"{name}.csv") for name in ("plain", "planned", "beside"))
    succeed("simulate", site, "--out", plain, *words)
    succeed("plan", "--no-simulation", site, "--out", site.with_name("p.json"))
    done = succeed("simulate", site, "--out", planned, "--plan", site.with_name("p.json"), *words)
    assert "using the noise of plan" in done.err
    succeed("plan", "--no-simulation", site, "--out", site.with_name("site.plan.json"))
    assert "site.plan.json" in succeed("simulate", site, "--out", beside, *words).err
    assert steps(plain) == steps(planned) == steps(beside)
    assert planned.read_text() == beside.read_text()
    assert {row["plan"] for row in csv.DictReader(planned.read_text().splitlines())} == {
        load_plan(site.with_name("p.json")).id
    }


def test_plan_and_simulate_know_sites_of_bits(succeed: Run, run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "site.toml", tmp_path / "sent.csv"
    path.write_text(BITS)
    values = succeed("plan", "--no-simulation", path, "--json").values
    assert values["sensors"] == ["door"]
    assert values["each"] == pytest.approx(0.0665, abs=5e-5)
    over = [span["epsilon"] for span in values["over_time"]]
    assert over == sorted(over)
    assert over[0] == 2.0
    assert over[1] > 2.0
    succeed("simulate", str(path), "--out", str(out), "--frames", "60", "--in-use", "door", "--seed", "1")
    with out.open() as file:
        bits = [row["steps"] for row in csv.DictReader(file) if row["sensor"] == "door"]
    assert len(bits) == 60
    assert set(bits) == {"0", "1"}
    assert run("simulate", str(path), "--out", str(out), "--in-use", "s1").code == 2
    assert run("simulate", str(path), "--out", str(out), "--source", "0.3").code == 2
    refused = run("recover", str(path), str(out))
    assert refused.code == 2
    assert "no map" in refused.err
