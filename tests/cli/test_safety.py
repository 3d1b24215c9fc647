"""What must not happen to a person's files, and what must not be passed over in silence."""

from pathlib import Path

import pytest

from cloakwork.cli.files import written
from tests.cli.conftest import Run
from tests.cli.test_plan import MATRIX
from tests.site.test_sanity import FLAT

SITE = """
name = "pipe"
sensors = 20
baseline = 21.0
[physics]
kind = "line"
places = 40
T = 0.005
[sources]
kind = "pulse"
max_count = 2
[privacy]
epsilon = 4.0
delta = 1e-5
alpha = 0.01
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return path


def test_readings_that_do_not_suit_the_site_are_warned_about(site: Path, run: Run) -> None:
    file = site.parent / "readings.csv"
    assert run("simulate", site, "--source", "0.3", "--frames", 5, "--out", file, "--seed", 1).code == 0
    assert run("recover", site, file, "--json").values["warnings"] == []
    site.write_text(SITE.replace("baseline = 21.0", "baseline = 5.0"))
    done = run("recover", site, file)
    assert (done.code, "warning: " in done.err) == (0, True)


@pytest.mark.parametrize(
    "words",
    [
        "plan site.toml --no-simulation --out site.toml",
        "plan matrix.toml --no-simulation --out m.csv",
        "simulate site.toml --plan plan.csv --out plan.csv",
        "recover site.toml readings.csv --out readings.csv",
        "recover site.toml readings.csv --plot link.png",
        "recover site.toml readings.csv --out new.csv --plot new.csv",
        "unveil site.toml readings.csv --keys keys.json --out readings.csv",
        "series readings.csv --from 2026-01-01 --to 2026-01-02 --filter window:1 --out readings.csv",
        "calibrate site.toml --walk readings.csv --readings readings.csv --out readings.csv",
        "audit readings page.html readings.csv --epsilon 1 --html page.html",
        "keys new site.toml --out site.toml",
        "keys export keys.json --id s1 --out keys.json",
    ],
)
def test_no_command_writes_over_what_it_reads(
    words: str, site: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.parent)
    Path("matrix.toml").write_text(MATRIX)
    Path("m.csv").write_text("1,0.5,0,0\n0,0.5,1,0.3\n0.2,0.1,0.4,1\n")
    for name in ("readings.csv", "site.plan.json", "plan.csv", "keys.json", "page.html"):
        Path(name).write_text("precious")
    Path("link.png").hardlink_to("site.plan.json")
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    done = run(*words.split())
    assert (done.code, "write to another file" in done.err or "ends in" in done.err) == (2, True), done.err
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def test_a_failed_run_leaves_the_old_result_and_no_parts(site: Path, run: Run) -> None:
    out = site.parent / "found.csv"
    out.write_text("mine")
    bad = site.parent / "bad.csv"
    bad.write_text("time,sensor,seq,steps\n0,nobody,0,1\n")
    assert run("recover", site, bad, "--out", out).code == 2
    assert out.read_text() == "mine"
    assert not list(site.parent.glob(".*"))


def test_an_error_names_the_file_that_the_person_gave_and_leaves_no_part(tmp_path: Path) -> None:
    out = tmp_path / "found.csv"
    with pytest.raises(IsADirectoryError) as problem, written(out):
        out.mkdir()
    assert problem.value.filename == str(out)
    assert list(tmp_path.iterdir()) == [out]


def test_a_device_is_written_to_and_not_replaced(site: Path, run: Run) -> None:
    null = Path("/dev/null")
    if not null.is_char_device():
        pytest.fail("this test needs a null device")
    assert run("simulate", site, "--source", "0.3", "--out", null).code == 0
    assert null.is_char_device()


def test_plan_and_provision_warn_of_odd_numbers_and_refuse_impossible_ones(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "flat.toml"
    path.write_text(FLAT.replace("cell = 0.25", "cell = 0.5").replace("reach = 2.0", "reach = 15.0"), encoding="utf-8")
    planned = run("plan", "--no-simulation", path, "--out", tmp_path / "flat.plan.json", "--json")
    assert planned.code == 0, planned.err
    assert "reach = 15" in planned.values["warnings"][0]
    for done in (run("plan", "--no-simulation", path), run("provision", path, "--id", "hall")):
        assert done.code == 0, done.err
        assert "line 11: reach = 15 on a floor" in " ".join(done.said.split())
    path.write_text(FLAT.replace("footprint = 0.5", "footprint = 30.0"), encoding="utf-8")
    for command in (("plan", path), ("plan", path, "--sweep"), ("provision", path, "--id", "hall")):
        refused = run(*command)
        assert (refused.code, "line 12: footprint = 30" in " ".join(refused.err.split())) == (2, True)
