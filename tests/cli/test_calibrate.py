"""`cloakwork calibrate`: what it prints, writes and refuses."""

from pathlib import Path

import numpy as np
import pytest

from cloakwork.collect import open_store
from cloakwork.collect.storage import Reading
from cloakwork.fitting.cloaked_fit import KeptSearch
from cloakwork.readings import ReadingScale
from cloakwork.site import load_site
from tests.cli.conftest import Run
from tests.fitting.test_cloaked_fit import TEXT, cloaked
from tests.fitting.walks import SPOTS, STATED, stated, true_plan, true_readings, write_walk


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, list[object]]:
    """A site file, and the options that name a walk through it."""
    site, spots = stated(), [*SPOTS, None]
    readings = true_readings(true_plan(site), np.ones(12), np.linspace(20.0, 21.1, 12), spots)
    walk, raw = write_walk(tmp_path, site, readings, spots)
    path = tmp_path / "flat.toml"
    path.write_text(STATED, encoding="utf-8")
    return path, ["--walk", walk, "--readings", raw]


def test_the_site_file_gets_the_fitted_physics(succeed: Run, files: tuple[Path, list[object]], tmp_path: Path) -> None:
    path, walk = files
    shown = succeed("calibrate", path, *walk, "--plot", tmp_path / "walk.png")
    assert path.read_text(encoding="utf-8") == STATED, "nothing is written unless asked"
    assert "+[physics.tolerance]" in shown.out
    assert "delete" in shown.err
    assert (tmp_path / "walk.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "walk.png").stat().st_mode & 0o777 == 0o600, "it shows true readings"
    assert "walk.png hold true readings" in " ".join(shown.err.split())
    values = succeed("calibrate", path, *walk, "--write", "--json").values
    site = load_site(path)
    assert values["reach"]["low"] < 1.6 < values["reach"]["high"]
    assert values["strength"]["low"] < 5.0 < values["strength"]["high"]
    assert site.tolerance.diffusion == values["tolerance"]["diffusion"]
    assert abs(site.baselines - np.linspace(20.0, 21.1, 12)).max() < 0.03
    text = path.read_text(encoding="utf-8")
    assert "guess" not in text, "the values are measured"
    assert "# two rooms" in text
    succeed("plan", path)


def test_the_site_file_is_written_elsewhere_or_in_place_never_over_an_input(
    run: Run, files: tuple[Path, list[object]], tmp_path: Path
) -> None:
    path, walk = files
    assert run("calibrate", path, *walk, "--out", tmp_path / "new.toml").code == 0
    assert load_site(tmp_path / "new.toml").name == "flat"
    for words in ([*walk, "--out", path], [*walk, "--out", tmp_path / "b.toml", "--write"], [], walk[:2]):
        assert run("calibrate", path, *words).code == 2
    assert path.read_text(encoding="utf-8") == STATED


def test_swapped_sensors_are_refused_by_name(run: Run, tmp_path: Path) -> None:
    site, spots = stated(), [*SPOTS, None]
    readings = true_readings(true_plan(site), np.ones(12), np.full(12, 20.0), spots)
    readings[:, [1, 8]] = readings[:, [8, 1]]
    walk, raw = write_walk(tmp_path, site, readings, spots)
    path = tmp_path / "flat.toml"
    path.write_text(STATED, encoding="utf-8")
    refused = run("calibrate", path, "--walk", walk, "--readings", raw, "--write")
    assert refused.code == 2
    assert "s02 with s09" in refused.err
    assert path.read_text(encoding="utf-8") == STATED


def test_a_sensor_that_the_walk_does_not_reach_is_named(run: Run, tmp_path: Path) -> None:
    site, spots = stated(), [*SPOTS[:6], None]
    readings = true_readings(true_plan(site, reach=0.5), np.ones(12), np.full(12, 20.0), spots)
    walk, raw = write_walk(tmp_path, site, readings, spots)
    path = tmp_path / "flat.toml"
    path.write_text(STATED, encoding="utf-8")
    refused = run("calibrate", path, "--walk", walk, "--readings", raw)
    assert refused.code == 2
    assert "s12" in refused.err


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_cloaked_readings_of_a_store_correct_reach_and_strength(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, store = tmp_path / "flat.toml", str(tmp_path / "store.db")
    stated_there = TEXT.replace("reach = 1.0 ", "reach = 2.0 ").replace(
        "strength = 3.0 ", "max_count = 2\nstrength = 4.0 "
    )
    path.write_text(stated_there, encoding="utf-8")
    site = load_site(path)
    frames = cloaked(site, site.cloak(), 240, 2, seed=1)
    with open_store(store) as opened:
        opened.readings.add(
            [
                Reading(site.name, sensor, number, frame.time + 1_790_000_000_000, int(value), frame.time)
                for number, frame in enumerate(frames)
                for sensor, value in zip(site.sensor_ids, frame.steps, strict=True)
            ]
        )
    fitting = ("calibrate", path, "--from-store", store, "--kept", tmp_path / "fit")
    with monkeypatch.context() as patch:
        patch.setattr(KeptSearch, "save", interrupted)
        stopped = run(*fitting)
    assert f"The steps so far are in {tmp_path / 'fit'}: run the same command again to go on" in stopped.err
    found = run(*fitting, "--write", "--json")
    assert found.code == 0, found.err
    assert found.values["told"]
    new = load_site(path)
    assert abs(new.spec.sources.strongest / 5.0 - 1) < 0.1
    assert new.tolerance.diffusion == found.values["tolerance"]["diffusion"]
    for words in (["--walk", path], ["--plot", "a.png"], ["--since", "2030-01-01"]):
        assert run("calibrate", path, "--from-store", store, *words).code == 2


def test_readings_made_under_another_plan_are_refused_by_its_id(run: Run, tmp_path: Path) -> None:
    path, store = tmp_path / "flat.toml", str(tmp_path / "store.db")
    path.write_text(STATED, encoding="utf-8")
    with open_store(store) as opened:
        opened.plans.begin("flat", ReadingScale("0123456789ab", "", {}, {}), 0)
        opened.readings.add([Reading("flat", "s01", 1, 1_790_000_000_000, 5, 1)])
    refused = run("calibrate", path, "--from-store", store)
    assert (refused.code, "received under plan 0123456789ab, not one computed now" in refused.err) == (2, True)


def test_an_empty_store_is_called_empty(run: Run, tmp_path: Path) -> None:
    path, store = tmp_path / "flat.toml", str(tmp_path / "store.db")
    path.write_text(STATED, encoding="utf-8")
    with open_store(store):
        pass
    refused = run("calibrate", path, "--from-store", store)
    assert (refused.code, "the store has no readings yet" in refused.err) == (2, True)
