"""Sites that are collected, frames that become results, and what a whole window gives away."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from cloakwork.cli.app import app
from cloakwork.collect.attack import attack
from cloakwork.collect.collected_site import CollectedSite, load_collected_site, load_collected_sites
from cloakwork.collect.solver import Solver
from cloakwork.collect.storage import Reading
from cloakwork.errors import ReadingError, SiteError
from cloakwork.readings import Frame, frame_recovery, iso_ms, partial_cloak
from cloakwork.recovery import Recovery, recover
from tests.collect.small_sites import LINE, MANY, as_file, make, moment, readings, site_file, values


@pytest.fixture
def watched(tmp_path: Path) -> CollectedSite:
    return make(tmp_path)


def frame(watched: CollectedSite, rows: list[Reading]) -> Frame:
    return watched.frame(rows[0].time, {row.sensor: row.value for row in rows})


def frames(watched: CollectedSite, rows: list[Reading]) -> list[Frame]:
    times = dict.fromkeys(row.time for row in rows)
    return [frame(watched, [row for row in rows if row.time == when]) for when in times]


def test_a_site_that_has_changed_since_its_plan_is_refused(tmp_path: Path) -> None:
    path = site_file(tmp_path)
    path.write_text(LINE.replace("T = 0.01", "T = 0.02"))
    with pytest.raises(SiteError, match="has changed since"):
        load_collected_site(path)


def test_two_sites_of_one_name_are_refused(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    paths = [site_file(folder) for folder in folders]
    with pytest.raises(SiteError, match="corridor"):
        load_collected_sites(paths)
    assert list(load_collected_sites(paths[:1])) == ["corridor"]


@pytest.mark.parametrize("text", [LINE, MANY], ids=["PointSources", "BasisPursuit"])
def test_results_are_those_of_the_command(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched = make(tmp_path, text)
    rows = [readings(watched, number, without=["s05"] if number == 2 else []) for number in range(4)]
    results = Solver(watched).solve([frame(watched, part) for part in rows])
    out = tmp_path / "found.csv"
    file = as_file([row for part in rows for row in part], tmp_path / "readings.csv")
    asked = ["recover", str(tmp_path / "site.toml"), str(file), "--out", str(out), "--json", "--alone"]
    app(asked, standalone_mode=False)
    capsys.readouterr()
    found = list(csv.DictReader(out.read_text().splitlines()))
    assert [result.sensors for result in results] == [12, 12, 11, 12]
    assert {iso_ms(row["time"]) for row in found} == {result.time for result in results}
    for result in results:
        theirs = [row for row in found if iso_ms(row["time"]) == result.time]
        assert {(row["status"], row["set_aside"]) for row in theirs} == {(result.status, " ".join(result.set_aside))}
        for row in theirs:
            assert (float(row["gap"]), float(row["fit"])) == pytest.approx((result.gap, result.fit), rel=1e-9)
        ours = [(spot.at[0], spot.weight, spot.radius, spot.probability) for spot in result.sources]
        listed = [row for row in theirs if row["place"]]
        assert [row["place"] for row in listed] == [str(spot.place) for spot in result.sources]
        numbers = [[float(row[name]) for name in ("x", "weight", "radius", "probability")] for row in listed]
        np.testing.assert_allclose(numbers, np.reshape(ours, (-1, 4)) if ours else [], rtol=1e-9)


def refuse(monkeypatch: pytest.MonkeyPatch, steps: int, problem: Exception) -> None:
    """Let recovery fail whenever a reading is this far from the baseline."""

    def picky(given: np.ndarray[tuple[int, int], np.dtype[np.float64]], part: object, **options: object) -> Recovery:
        if (np.abs(given) > steps).any():
            raise problem
        return recover(given, part, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(frame_recovery, "recover", picky)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (ReadingError("a sentence that helps."), "failed: a sentence that helps."),
        (ZeroDivisionError("secret 42"), "failed: the solver raised ZeroDivisionError"),
    ],
)
def test_a_frame_that_cannot_be_recovered_is_recorded_and_the_others_are(
    problem: Exception, said: str, watched: CollectedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [readings(watched, number) for number in range(3)]
    rows[1] = [row._replace(value=2**50) for row in rows[1]]
    refuse(monkeypatch, 10**6, problem)
    results = Solver(watched).solve([frame(watched, part) for part in rows])
    assert [result.failed for result in results] == [False, True, False]
    bad = results[1]
    assert bad.status == said
    assert (bad.time, bad.sensors, bad.expected) == (rows[1][0].time, 12, 12)
    assert (bad.sources, bad.map, bad.counts) == ((), None, None)
    assert math.isnan(bad.gap)


def test_frames_that_tell_nothing_are_not_worth_the_time(watched: CollectedSite) -> None:
    when = moment(watched, 0)
    said = values(watched)
    few = dict(list(said.items())[:5])
    frames = [watched.frame(when + 1, few), watched.frame(when + 2, said)]
    results = [Solver(watched).alone(frame) for frame in [*frames, watched.frame(moment(watched, 1), few)]]
    assert [result.failed for result in results] == [True, False, False]
    assert "not a multiple of the period" in results[0].status


def test_a_window_counts_each_sensor_for_itself(watched: CollectedSite) -> None:
    rows = [row for number in range(6) for row in readings(watched, number, without=["s01"])]
    fewer = [row for row in rows if not (row.sensor == "s02" and row.seq > 1)]
    said = attack(watched, frames(watched, [*fewer, rows[0]._replace(sensor="stranger")]))
    assert said is not None
    assert (said.sensors, said.readings) == (11, len(fewer))
    present = np.arange(12) != 0
    numbers = np.array([2] + [6] * 10)
    cloak = watched.cloak
    means = np.array([np.mean([row.value for row in fewer if row.sensor == name]) for name in watched.ids[1:]])
    sigma = np.sqrt((cloak.sigmas[present] ** 2 + cloak.steps[present] ** 2 / 6) / numbers)
    rest = partial_cloak(cloak, present)
    oracle = recover(
        (means * rest.steps - watched.site.baselines[present])[None, :],
        rest.physics,
        sigma=sigma,
        estimator=watched.estimator.estimator,
    )
    assert said.counts == pytest.approx(oracle.counts[0].tolist(), abs=1e-6)
