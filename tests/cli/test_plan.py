"""`cloakwork plan`: equal and designed noise side by side, which sensors to keep, and the frozen plan."""

from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from cloakwork.privacy import Profile
from cloakwork.site import forecast, freeze, load_plan, load_site
from tests.cli.conftest import Run
from tests.site.test_tradeoff import SITE as SIMULATED

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
MATRIX = 'name = "kitchen"\nsensors = 3\n[physics]\nkind = "matrix"\nfile = "m.csv"\n' + TAIL


def written(folder: Path, text: str) -> Path:
    path = folder / "site.toml"
    path.write_text(text)
    (folder / "m.csv").write_text("1,0.5,0,0\n0,0.5,1,0.3\n0.2,0.1,0.4,1\n")
    return path


EXAMPLES = ("src/cloakwork/site/example.toml", "src/cloakwork/demo/office.toml")


@pytest.mark.parametrize("site", [ROOMS, *EXAMPLES], ids=["rooms", "flat", "office"])
def test_the_answer_has_at_most_18_lines_and_no_figure_without_a_label(
    site: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloakwork.cli.report.out", Console(width=100, force_terminal=True))
    file = Path(site).resolve() if site in EXAMPLES else written(tmp_path, site)
    monkeypatch.chdir(file.parent)  # the last line has the name of the file, however long its path
    done = run("plan", "--no-simulation", file.name)
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert len(lines) <= (18 if site in EXAMPLES else 24), "warnings of the site file make it longer"
    assert max(map(len, lines)) <= 100
    labels = [line.split("  ")[0] for line in lines if line and not line.startswith(" ")]
    warnings = ["WARNING"] * (2 * (site == ROOMS))
    assert labels[1:] == ["Guarantee", "Not hidden", "Accuracy", *labels[4:5], *warnings, "Next"]
    assert labels[4].startswith("Someone keeps readings for")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulations of a few frames."""
    monkeypatch.setattr("cloakwork.cli.plan_report.forecast", partial(forecast, frames=40))


@pytest.mark.usefixtures("tiny")
def test_a_plan_says_how_often_the_map_is_right_and_keeps_it_for_provision(succeed: Run, tmp_path: Path) -> None:
    site, file = tmp_path / "site.toml", tmp_path / "site.plan.json"
    site.write_text(SIMULATED)
    first = succeed("plan", site, "--out", file)
    told = load_plan(file).forecast
    assert told is not None
    assert not told.useless
    assert f"Accuracy {told.sentence}" in " ".join(first.out.split())
    assert told.room > told.usual_room
    again = succeed("plan", site, "--no-simulation", "--json").values
    assert again["plan"] == load_plan(file).digest, "a forecast has no part in the digest"
    made = succeed("provision", site, "--id", load_plan(file).ids[0])
    assert f"expect of the map: {told.sentence}" in " ".join(made.err.split())


@pytest.mark.usefixtures("tiny")
def test_a_useless_map_is_called_so(succeed: Run, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(SIMULATED.replace("epsilon = 8.0", "epsilon = 0.5"))
    assert "no better than always guessing" in " ".join(succeed("plan", site).out.split())


def test_a_plan_is_written_for_devices_and_printed_as_before(run: Run, tmp_path: Path) -> None:
    site, out = written(tmp_path, ROOMS), tmp_path / "site.plan.json"
    plain, done = run("plan", "--no-simulation", site), run("plan", "--no-simulation", site, "--out", out)
    assert done.code == 0
    assert done.out.partition("\nNext")[0] == plain.out.partition("\nNext")[0]
    assert "then cloakwork provision" in " ".join(done.out.partition("\nNext")[2].split())
    plan = load_plan(out)
    assert done.err == f"wrote the plan {plan.digest[:12]} to {out}\n"
    loaded = load_site(site)
    assert plan == freeze(loaded, loaded.cloak())
    assert run("plan", "--no-simulation", site, "--out", out, "--json").values["plan"] == plan.digest
    assert list(tmp_path.glob(".*")) == []


def test_a_plan_that_takes_the_place_of_another_says_which_devices_that_concerns(run: Run, tmp_path: Path) -> None:
    site, out = written(tmp_path, LINE), tmp_path / "site.plan.json"
    run("plan", "--no-simulation", site, "--out", out)
    old = load_plan(out).digest
    again = run("plan", "--no-simulation", site, "--out", out)
    assert "provision" not in again.err
    done = run("plan", "--no-simulation", written(tmp_path, LINE.replace("alpha = 0.05", "alpha = 0.06")), "--out", out)
    assert done.code == 0
    kept = tmp_path / f"site.plan.{old[:12]}.json"
    assert f"it replaces plan {old[:12]}" in done.err
    assert f"kept as {kept}" in done.err
    assert load_plan(kept).digest == old != load_plan(out).digest


def test_a_day_holds_as_many_readings_as_its_windows_and_no_more(run: Run, tmp_path: Path) -> None:
    """24 hours, 4 readings an hour: the ledger slides, so a day is not 25 windows but 24."""
    site = written(tmp_path, LINE + "readings_per_window = 4\n")
    values = run("plan", "--no-simulation", site, "--json").values
    hour, working, day, week, year = values["over_time"]
    assert [one["time"] for one in values["over_time"]] == ["1 hour", "8 hours", "1 day", "1 week", "1 year"]
    assert working["std"] == pytest.approx(values["limits"]["typical_std"] / 8**0.5)
    assert (hour["readings"], hour["epsilon"]) == (4, 4.0)
    assert (day["readings"], week["readings"]) == (4 * 24, 4 * 168)
    assert 4 * 8_760 < year["readings"] <= 4 * 8_766
    loaded = load_site(site).cloak()
    expected = Profile(loaded.frame_mu).compose(96).epsilon(1e-4)
    assert day["epsilon"] == expected == pytest.approx(loaded.profile.compose(24).epsilon(1e-4), rel=1e-9)
    long = run("plan", "--no-simulation", written(tmp_path, LINE + 'window = "1w"\n'), "--json").values
    assert [one["time"] for one in long["over_time"]] == ["1 week", "1 year"]
