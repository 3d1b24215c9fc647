"""`cloakwork recover`: from a file of noisy readings to sources."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cloakwork.readings import iso_ms
from tests.cli.conftest import Run

SITE = """name = "corridor"
baseline = 20.0
[physics]
kind = "line"
places = 50
T = 0.01
[sources]
kind = "pulse"
[privacy]
epsilon = 8.0
delta = 1e-3
alpha = 0.01
"""
LINE = "sensors = 20\n" + SITE
HEADER = "time,sensor,seq,steps\n"


@dataclass(frozen=True)
class Case:
    site: Path
    readings: Path

    def rewrite(self, change: Callable[[list[str]], list[str]]) -> None:
        """Change the rows below the header, of the columns that readings need, with times in milliseconds."""
        with self.readings.open(newline="") as file:
            rows = [
                f"{iso_ms(row['time'])},{row['sensor']},{row['seq']},{row['steps']}" for row in csv.DictReader(file)
            ]
        self.readings.write_text(HEADER + "\n".join(change(rows)) + "\n")


@pytest.fixture
def case(succeed: Run, tmp_path: Path) -> Case:
    site, readings = tmp_path / "site.toml", tmp_path / "readings.csv"
    site.write_text(LINE)
    succeed("simulate", site, "--out", readings, "--source", "0.24", "--source", "0.76", "--frames", 3, "--seed", 1)
    return Case(site, readings)


def near(values: dict[str, Any], truth: list[float]) -> None:
    """Each true source has a found one within 0.06, and every found one is that near to a true one."""
    found = [float(source["at"]) for source in values["last_sources"]]
    assert found
    assert max(min(abs(at - place) for at in found) for place in truth) <= 0.06, found
    assert max(min(abs(at - place) for place in truth) for at in found) <= 0.06, found
    assert sum(source["weight"] for source in values["last_sources"]) == pytest.approx(len(truth), rel=0.2)


def test_bad_rows_and_unknown_sensors_are_named_and_left_out(succeed: Run, case: Case) -> None:
    case.rewrite(lambda rows: [rows[0], "0,s02,0,warm", "0,attic,0,5", "0,s01,9999,5", *rows[2:]])
    done = succeed("recover", case.site, case.readings)
    assert "row 3: steps is not a whole number in range" in done.err
    assert "row 4: unknown sensor 'attic'" in done.err
    assert "row 5: a second reading of one sensor at one time; the first is kept" in done.err
    assert "3 of 62 rows left out" in done.out
    assert "warm" not in done.out + done.err
    left_out = succeed("recover", case.site, case.readings, "--json").values["rows_left_out"]
    assert sum(left_out.values()) == 3
    assert left_out["unknown sensor"] == 1


def test_simulated_sources_are_found_near_the_truth_and_written(succeed: Run, case: Case) -> None:
    out = case.site.with_name("found.csv")
    values = succeed("recover", case.site, case.readings, "--out", out, "--json").values
    near(values, [0.24, 0.76])
    assert (values["frames"], values["incomplete_frames"], values["rows"], values["rows_left_out"]) == (3, 0, 60, {})
    assert (values["status"], values["estimator"], values["doubtful_frames"]) == ({"followed": 3}, "PointSources", 0)
    assert values["fit"] > 0.01
    rows = list(csv.DictReader(out.read_text().splitlines()))
    columns = "time sensors label place x weight radius probability same settled status gap fit set_aside"
    assert list(rows[0]) == columns.split()
    assert {iso_ms(row["time"]) for row in rows} == {0, 3_601_021, 7_202_042}
    ours = [row for row in rows if row["time"] == "1970-01-01T02:00:02.042Z"]
    last = values["last_sources"]
    assert [int(row["place"]) for row in ours] == [source["place"] for source in last]
    assert [float(row["weight"]) for row in ours] == pytest.approx([source["weight"] for source in last], rel=1e-5)


GRAPH = """name = "net"
sensors = 5
[physics]
kind = "graph"
edges = [["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"], ["e", "f"], ["f", "a"]]
tau = 0.2
"""


def test_a_network_names_its_nodes(succeed: Run, tmp_path: Path) -> None:
    site, readings, out = tmp_path / "net.toml", tmp_path / "r.csv", tmp_path / "f.csv"
    site.write_text(GRAPH + SITE[SITE.index("[sources]") :].replace("alpha = 0.01", "alpha = 0.1"))
    succeed("simulate", site, "--out", readings, "--source", "c", "--seed", 2)
    done = succeed("recover", site, readings, "--out", out, "--plot", tmp_path / "net.png", "--json")
    assert [source["at"] for source in done.values["last_sources"]][:1] == ["c"]
    assert next(csv.DictReader(out.read_text().splitlines()))["place"] == "c"
    assert (tmp_path / "net.png").stat().st_size > 3_000


def test_the_plan_beside_is_used_and_that_of_a_changed_site_is_refused(run: Run, case: Case) -> None:
    plan = case.site.with_name("site.plan.json")
    words = ["recover", case.site, case.readings]
    run("plan", "--no-simulation", case.site, "--out", plan)
    assert "using the noise of plan" in run(*words).err
    for old, new, said in (
        ("alpha = 0.01", "alpha = 0.02", f"cloakwork plan {case.site} --out {plan}"),
        ("corridor", "hall", "is the plan of corridor"),
    ):
        case.site.write_text(LINE.replace(old, new))
        done = run(*words)
        assert (done.code, done.out, said in done.err) == (2, "", True)


def test_a_recovery_that_is_interrupted_leaves_nothing_and_says_how_to_go_on(
    run: Run, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cloakwork.cli.recover.recovered_rows", interrupted)
    before = set(case.site.parent.iterdir())
    done = run("recover", case.site, case.readings, "--out", case.site.parent / "found.csv")
    assert done.code == 130
    assert "--out with the name of a folder" in done.err
    assert set(case.site.parent.iterdir()) == before
