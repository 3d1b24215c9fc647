"""`cloakwork recover` on a file of frames: tracks in the report, the file and the picture."""

import csv
import re
from pathlib import Path

import matplotlib as mpl
import pytest

from cloakwork.cli import recover
from cloakwork.readings import iso_ms
from tests.cli.conftest import Run

SITE = """name = "office"
sensors = 12
baseline = 20.0
[physics]
kind = "floorplan"
cell = 0.5
size = [4.0, 3.0]
walls = [[[2.0, 0.0], [2.0, 3.0]]]
doors = [[[2.0, 1.0], [2.0, 2.0]]]
regime = "steady"
reach = 1.0
[sources]
kind = "lasting"
strength = 5.0
max_count = 2
[privacy]
epsilon = 40.0
delta = 1e-3
alpha = 0.1
window = "10min"
readings_per_window = 10
[motion]
stay = "5min"
[[zone]]
id = "left"
label = "Library"
room = [1.0, 1.0]
[[zone]]
id = "right"
room = [3.0, 1.0]
"""
PERIOD = 60_043
START = 1_763_280_000_000


@pytest.fixture
def moved(succeed: Run, tmp_path: Path) -> tuple[Path, Path]:
    """A person who sits on the left for five minutes, and then on the right."""
    site, readings = tmp_path / "site.toml", tmp_path / "readings.csv"
    site.write_text(SITE)
    succeed("plan", "--no-simulation", site, "--out", tmp_path / "site.plan.json")
    rows = ["time,sensor,seq,steps"]
    for part, at in enumerate(("0.75,0.75", "3.25,2.25")):
        succeed("simulate", site, "--out", readings, "--source", at, "--frames", 5, "--seed", part)
        cells = list(csv.DictReader(readings.read_text().splitlines()))
        known = dict.fromkeys(row["time"] for row in cells)
        times = {time: START + PERIOD * (5 * part + k) for k, time in enumerate(known)}
        rows += [f"{times[row['time']]},{row['sensor']},{5 * part + int(row['seq'])},{row['steps']}" for row in cells]
    readings.write_text("\n".join(rows) + "\n")
    return site, readings


def test_a_person_who_changes_rooms_is_one_track(succeed: Run, moved: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "found.csv"
    values = succeed("recover", *moved, "--out", out, "--json").values
    [track] = values["tracks"]
    assert (values["followed"], values["lag"], values["status"]) == (True, None, {"followed": 10})
    assert (track["since"], track["until"], track["frames"]) == (START, START + 9 * PERIOD, 10)
    assert track["zones"] == {"left": 5, "right": 5}
    assert [source["label"] for source in values["last_sources"]] == [track["label"]]
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [(int(row["label"]), row["settled"]) for row in rows] == [(track["label"], "1")] * 10
    assert [float(row["x"]) < 2 for row in rows] == [True] * 5 + [False] * 5
    said = succeed("recover", *moved).out
    assert "1 track\n" in said
    assert "Library 50 %, right 50 %" in said
    assert "2025-11-16T08:00:00Z" in said


def test_a_long_file_is_followed_with_a_lag(
    succeed: Run, moved: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recover, "MAX_SMOOTHED", 6)
    monkeypatch.setattr(recover, "LAG", 3)
    out = tmp_path / "found.csv"
    values = succeed("recover", *moved, "--out", out, "--json").values
    assert (values["followed"], values["lag"], values["frames"]) == (True, 3, 10)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [iso_ms(row["time"]) for row in rows] == [START + PERIOD * k for k in range(10)]
    assert [row["settled"] for row in rows] == ["1"] * 7 + ["0"] * 3
    printed = succeed("recover", *moved).out
    assert "each judged from those before it and 3 after it" in printed
    assert re.search(r"\d m$", printed, flags=re.MULTILINE), "the radius has its unit"


def test_the_picture_has_a_numbered_mark_the_rooms_and_a_legend(
    succeed: Run, moved: tuple[Path, Path], tmp_path: Path
) -> None:
    picture = tmp_path / "tracks.svg"
    with mpl.rc_context({"svg.fonttype": "none"}):
        succeed("recover", *moved, "--plot", picture)
    text = picture.read_text()
    for part in (r">Library<", r">right<", r">(\d)<[\s\S]*>\1: right, followed since 08:00,"):
        assert re.search(part, text)
