"""`cloakwork simulate` and `cloakwork demo`."""

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cloakwork.cli import main
from cloakwork.physics import sources
from cloakwork.site import ReadingsFile, load_site

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

Run = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command that succeeds; what it said, on both streams."""

    def call(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["cloakwork", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        assert stop.value.code in {0, None}, said.err
        return said.out + said.err

    return call


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


def test_readings_have_a_row_for_each_sensor_and_frame(run: Run, site: Path) -> None:
    out = site.with_name("r.csv")
    said = run("simulate", site, "--out", out, "--source", "0.4", "--frames", 10, "--seed", 3)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 70
    assert {row["sensor"] for row in rows} == {f"s{k}" for k in range(1, 8)}
    assert [int(row["time"]) for row in rows[::7]] == [15_000 * k for k in range(10)]
    assert [int(row["seq"]) for row in rows[::7]] == list(range(10))
    assert "wrote 70 readings of 10 frames" in said
    assert "10 frames are 3 windows" in said


def test_a_seed_makes_the_noise_reproducible(run: Run, site: Path) -> None:
    outs = [site.with_name(f"{k}.csv") for k in range(4)]
    for out, seed in zip(outs, ([1], [1], [2], None), strict=True):
        run("simulate", site, "--out", out, "--source", "0.4", *(["--seed", *seed] if seed else []))
    same, again, other, free = (out.read_text() for out in outs)
    assert same == again
    assert len({same, other, free}) == 3


def test_noise_has_the_planned_scale_around_the_true_readings(run: Run, site: Path) -> None:
    """The mean of 400 frames is within 5 standard errors, their spread within 15 % of sigma."""
    out = site.with_name("r.csv")
    run("simulate", site, "--out", out, "--source", "0.4:0.5", "--frames", 400, "--seed", 5)
    loaded = load_site(site)
    cloak = loaded.cloak()
    values = np.stack([frame.steps for frame in ReadingsFile(out, loaded.sensor_ids)]) * cloak.steps
    clean = loaded.physics.apply(sources(loaded.physics, [0.4], [0.5])) + 20.0
    assert (np.abs(values.mean(axis=0) - clean) / cloak.sigmas).max() < 5 / 20
    assert values.std(axis=0) == pytest.approx(cloak.sigmas, rel=0.15)


def test_the_truth_lists_the_sources(run: Run, site: Path) -> None:
    truth = site.with_name("t.csv")
    run("simulate", site, "--out", site.with_name("r.csv"), "--truth", truth, "--source", "0.4:0.5", "--source", "0.8")
    rows = list(csv.DictReader(truth.read_text().splitlines()))
    assert [(row["time"], row["place"], float(row["x"]), float(row["weight"])) for row in rows] == [
        ("0", "9", 0.4, 0.5),
        ("0", "19", 0.8, 1.0),
    ]


def test_a_true_reading_appears_nowhere(run: Run, site: Path) -> None:
    out, truth = site.with_name("r.csv"), site.with_name("t.csv")
    said = run("simulate", site, "--out", out, "--truth", truth, "--source", "0.43:0.7", "--frames", 20, "--seed", 11)
    loaded = load_site(site)
    cloak = loaded.cloak()
    warmth = loaded.physics.apply(sources(loaded.physics, [0.43], [0.7]))
    secrets = np.concatenate([warmth[warmth > 0.01], (warmth + 20.0)[warmth > 0.01]])
    numbers = np.array([float(text) for text in re.findall(r"\d+\.?\d*(?:e-?\d+)?", said + truth.read_text())])
    assert np.abs(numbers[:, None] / secrets - 1).min() > 1e-4
    for frame in ReadingsFile(out, loaded.sensor_ids):
        assert not np.array_equal(frame.steps, np.rint((warmth + 20.0) / cloak.steps))
    exact = [frame.steps - np.rint((warmth + 20.0) / cloak.steps) for frame in ReadingsFile(out, loaded.sensor_ids)]
    assert (np.stack(exact) == 0).mean() < 0.02


def test_no_source_is_a_simulation_too(run: Run, site: Path) -> None:
    out = site.with_name("r.csv")
    run("simulate", site, "--out", out, "--seed", 1)
    assert len(out.read_text().splitlines()) == 8


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
def test_a_numbered_place_is_a_whole_number(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site.toml").write_text(PATHS)
    (tmp_path / "m.csv").write_text("1,0.5,0\n0,0.5,1\n")
    (tmp_path / "p.csv").write_text("0,1,1\n1,2,1\n")
    arguments = ["simulate", tmp_path / "site.toml", "--out", tmp_path / "r.csv", "--source", source]
    monkeypatch.setattr(sys, "argv", ["cloakwork", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "internal error" not in capsys.readouterr().err


def test_the_demo_draws_what_everyone_sees(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "pictures" / "today"
    said = run("demo", "--out", folder)
    picture = folder / "demo.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000
    for part in ("reading on the sofa", "asleep", "at the desk", "What it means"):
        assert part in said


def test_the_demo_follows_its_seed(run: Run, tmp_path: Path) -> None:
    first, again, other = (
        json.dumps([line for line in run("demo", "--out", tmp_path, "--seed", seed).splitlines() if " m" in line[-40:]])
        for seed in (3, 3, 4)
    )
    drop = re.compile(r"drew .* s;")
    assert drop.sub("", first) == drop.sub("", again)
    assert drop.sub("", first) != drop.sub("", other)
