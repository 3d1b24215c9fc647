"""`cloakwork plan`: equal and designed noise side by side, and which sensors to keep."""

import json
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloakwork.cli import main
from cloakwork.site import load_site

ROOMS = '''name = "two-rooms"
baseline = 20.0
sensors = 12
[physics]
kind = "floorplan"
cell = 0.5
drawing = """
....#...
....+...
....#...
"""
regime = "steady"
reach = 1.0
footprint = 0.5
[sources]
kind = "lasting"
[privacy]
epsilon = 4.0
delta = 1e-4
alpha = 0.2
'''
TAIL = '[sources]\nkind = "pulse"\n[privacy]\nepsilon = 4.0\ndelta = 1e-4\nalpha = 0.05\n'
LINE = 'name = "pipe"\nsensors = 6\n[physics]\nkind = "line"\nplaces = 20\nT = 0.01\n' + TAIL
PLANE = 'name = "field"\nsensors = 6\n[physics]\nkind = "plane"\nplaces = [6, 4]\nT = 0.02\n' + TAIL
GRAPH = (
    'name = "feeders"\nsensors = 4\n[physics]\nkind = "graph"\ntau = 0.5\n'
    'edges = [["pump", "hall"], ["hall", "store"], ["store", "the \\"yard\\""], ["store", "pump"]]\n' + TAIL
)
MATRIX = 'name = "kitchen"\nsensors = 3\n[physics]\nkind = "matrix"\nfile = "m.csv"\n' + TAIL
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cloakwork", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call


def written(folder: Path, text: str) -> Path:
    path = folder / "site.toml"
    path.write_text(text)
    (folder / "m.csv").write_text("1,0.5,0,0\n0,0.5,1,0.3\n0.2,0.1,0.4,1\n")
    return path


def row(text: str, name: str) -> list[float]:
    found = re.search(rf"^ ?{name} +(.*)$", text, flags=re.MULTILINE)
    assert found is not None, text
    return [float(number) for number in re.findall(r"[0-9.]+(?:e-?\d+)?", found.group(1))]


def test_equal_and_designed_noise_stand_side_by_side(run: Run, tmp_path: Path) -> None:
    code, out, err = run("plan", written(tmp_path, ROOMS))
    assert (code, err) == (0, "")
    report = load_site(tmp_path / "site.toml").cloak().design_report
    assert row(out, "mean variance over all places") == pytest.approx(
        [report.equal_variance, report.variance], rel=1e-2
    )
    assert row(out, "standard deviation at a typical place") == pytest.approx(
        [report.equal_vicinity, report.vicinity], rel=1e-2
    )
    below = re.search(r"has a mean variance below ([0-9.]+)\.", out)
    assert below is not None
    assert 0.97 * report.variance < float(below.group(1)) <= report.variance
    assert "carry 99 % of the information" in out


def test_a_plan_with_equal_noise_shows_that_alone(run: Run, tmp_path: Path) -> None:
    _, out, _ = run("plan", written(tmp_path, ROOMS + 'design = "equal"\n'))
    assert len(row(out, "mean variance over all places")) == 1
    assert "carry 99 %" not in out


def test_the_design_is_in_the_json(run: Run, tmp_path: Path) -> None:
    _, out, _ = run("plan", written(tmp_path, ROOMS), "--json")
    values = json.loads(out)
    assert len(values["sigma"]) == 12
    design = values["design"]
    assert design["kind"] == "least-error"
    assert design["bound"] <= design["variance"] < design["equal_variance"]
    assert 0 <= design["gap"] < 0.022  # of which 0.02 for rounding to steps
    _, out, _ = run("plan", written(tmp_path, ROOMS + 'design = "equal"\n'), "--json")
    assert json.loads(out)["design"]["kind"] == "equal"
    assert json.loads(out)["design"]["gap"] is None


@pytest.mark.parametrize(
    ("text", "count"),
    [(ROOMS, 7), (LINE, 3), (PLANE, 4), (GRAPH, 2)],
    ids=["rooms", "line", "plane", "graph"],
)
def test_the_tables_make_a_site_of_the_chosen_sensors(text: str, count: int, run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    code, out, err = run("plan", path, "--choose", count, "--json")
    values = json.loads(out)
    assert (code, err) == (0, "")
    assert len(values["sensors"]) == count
    assert [table["id"] for table in tomllib.loads(values["tables"])["sensor"]] == values["sensors"]
    kept = re.sub(r"^sensors = \d+\n", "", text, flags=re.MULTILINE) + values["tables"]
    report = load_site(written(tmp_path, kept)).cloak().design_report
    assert report.variance == pytest.approx(values["chosen"]["variance"], rel=1e-6)
    assert values["chosen"]["variance"] <= values["even"]["variance"]
    assert values["all"]["variance"] <= 1.02 * values["chosen"]["variance"]
    assert len(values["even"]["sensors"]) == count


def test_the_choice_is_told_in_words(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path, ROOMS)
    values = json.loads(run("plan", path, "--choose", 5, "--json")[1])
    _, out, _ = run("plan", path, "--choose", 5)
    assert "5 sensors of two-rooms to keep" in out
    for name in values["sensors"]:
        assert re.search(rf"^ ?{name} +\[", out, flags=re.MULTILINE)
    assert values["tables"].strip() in out
    for who, which in (("these, noise of least error", "chosen"), ("all 12, noise of least error", "all")):
        assert row(out, who)[-1] == pytest.approx(values[which]["variance"], rel=1e-2)
    assert row(out, "all 12, the same noise for all")[-1] == pytest.approx(values["all"]["equal_variance"], rel=1e-2)


def test_chosen_sensors_keep_their_names_and_baselines(run: Run, tmp_path: Path) -> None:
    named = "".join(f'[[sensor]]\nid = "n{k}"\nat = {k / 5}\nbaseline = {k}.5\n' for k in range(6))
    text = LINE.replace("sensors = 6\n", "") + named
    values: dict[str, Any] = json.loads(run("plan", written(tmp_path, text), "--choose", 3, "--json")[1])
    for table in tomllib.loads(values["tables"])["sensor"]:
        number = int(table["id"][1:])
        assert table["at"] == pytest.approx(number / 5)
        assert table["baseline"] == number + 0.5


def test_a_matrix_has_rows_to_keep(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("plan", written(tmp_path, MATRIX), "--choose", 2)
    assert code == 0
    assert re.search(r"Keep these rows of the matrix file, in this order: [123], [123]\.", out)


@pytest.mark.parametrize(("count", "says"), [(13, "has 12 sensors to choose from"), (0, "choose"), ("many", "choose")])
def test_a_count_that_cannot_be_is_refused(count: object, says: str, run: Run, tmp_path: Path) -> None:
    code, out, err = run("plan", written(tmp_path, ROOMS), "--choose", count)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize("text", [ROOMS, LINE, PLANE, GRAPH], ids=["rooms", "line", "plane", "graph"])
def test_plan_says_what_no_method_can_beat(text: str, run: Run, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(text)
    code, out, _ = run("plan", site)
    assert code == 0
    assert "a single source of unit strength" in out
    assert "cannot be told from both in the middle" in out
    assert "Recovery will use PointSources: each of up to 4 sources has the strength 1" in " ".join(out.split())
    values = json.loads(run("plan", site, "--json")[1])["limits"]
    assert values["typical_radius"] is None or values["typical_radius"] >= 0
    assert len(values["sentences"]) == (4 if text == LINE else 3)
